"""docs/reference/settings.md: every setting of evidentia.toml with its default and its bounds."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from evidentia.wiring.settings_file import SETTINGS_NAME, setting_tables, settings_template
from reference.fields import Field, fields_of
from reference.markdown import page, prose

if TYPE_CHECKING:
    import msgspec

INTRODUCTION = f"""\
A base reads `{SETTINGS_NAME}` in its own directory; what is not there has its default.
A setting that does not exist is refused with `unknown_setting`, and a value outside its range with `invalid_field`."""


def settings_page() -> str:
    """Return the page."""
    template = f"## The file\n\n`evidentia init` writes this file.\n\n```toml\n{settings_template()}```"
    return page("Settings", INTRODUCTION, template, *(_section(name, group) for name, group in setting_tables()))


def _section(name: str, group: type[msgspec.Struct]) -> str:
    return "\n\n".join([f"## `[{name}]`", prose(inspect.getdoc(group)), *(_setting(name, field) for field in fields_of(group))])


def _setting(group: str, field: Field) -> str:
    facts = [f"- Type: `{field.type}`", f"- Default: {field.default}", f"- Range: {field.bounds}" if field.bounds else ""]
    return "\n\n".join([f"### `{group}.{field.name}`", prose(field.words), "\n".join(filter(None, facts))])
