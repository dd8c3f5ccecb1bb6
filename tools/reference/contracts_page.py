"""docs/reference/contracts.md: every message, vocabulary and named type of the contracts room."""

from __future__ import annotations

import importlib
import inspect
from enum import EnumMeta
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.vocabulary import RankedVocabulary, Vocabulary
from reference import sources
from reference.fields import fields_of
from reference.markdown import code, page, prose, table
from reference.schemas import SCHEMAS, schema_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

# In the order a newcomer asks: the question and its answer, then what is stored, then what is reported. Others follow by name.
FIRST = (
    "ids",
    "evidence",
    "sources",
    "access",
    "annotations",
    "provenance",
    "documents",
    "layout",
    "retrieval",
    "reports",
    "predicates",
    "predicate_values",
)
ELSEWHERE = ("errors", "ports", "settings", "vocabulary")

INTRODUCTION = """\
Messages are immutable, and on the wire they are JSON with these names.
A field without a default is required.
Types are written as in Python: `tuple[X, ...]` is a list on the wire, `Mapping[str, X]` an object, `datetime` an RFC 3339 text.
The messages that cross a border have a JSON Schema in [schemas](schemas)."""


def contracts_page() -> str:
    """Return the page."""
    sections = [_section(module) for module in _modules() if list(_messages(module))]
    return page("Contracts", INTRODUCTION, *sections, _vocabularies(), _named_types())


def messages() -> Iterator[type[msgspec.Struct]]:
    """Yield every message of the page."""
    for module in _modules():
        yield from _messages(module)


def vocabularies() -> list[type[Vocabulary]]:
    """Return every vocabulary of the contracts in the order they were declared, those of other modules after the shared ones."""
    declared = [each for module in (_module("vocabulary"), *_modules()) for each in vars(module).values()]
    words = [each for each in declared if isinstance(each, EnumMeta) and issubclass(each, Vocabulary) and len(each)]
    return list(dict.fromkeys(words))


def _modules() -> list[ModuleType]:
    found = {path.stem for path in (sources.PACKAGE / "contracts").glob("*.py")} - {"__init__", *ELSEWHERE}
    return [_module(name) for name in (*FIRST, *sorted(found - set(FIRST)))]


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"evidentia.contracts.{name}")


def _messages(module: ModuleType) -> Iterator[type[msgspec.Struct]]:
    for name, each in vars(module).items():
        if isinstance(each, type) and issubclass(each, msgspec.Struct) and each.__module__ == module.__name__ and not name.startswith("_"):
            yield each


def _section(module: ModuleType) -> str:
    name = module.__name__.rpartition(".")[2]
    return "\n\n".join([f"## `{name}`", prose(inspect.getdoc(module)), *map(_message, _messages(module))])


def _message(cls: type[msgspec.Struct]) -> str:
    rows = [(code(field.name), code(field.type), field.default, field.bounds, field.words) for field in fields_of(cls)]
    config = cls.__struct_config__
    blocks = [f"### {cls.__name__}", prose(inspect.getdoc(cls))]
    if config.tag is not None:
        blocks.append(f'On the wire, `{config.tag_field}` is `"{config.tag}"`.')
    if cls in SCHEMAS:
        blocks.append(f"JSON Schema: [{schema_name(cls)}](schemas/{schema_name(cls)}).")
    blocks.append(table(("field", "type", "default", "range", "note"), rows))
    return "\n\n".join(blocks)


def _vocabularies() -> str:
    return "\n\n".join(["## Vocabularies", prose(inspect.getdoc(_module("vocabulary"))), *map(_vocabulary, vocabularies())])


def _vocabulary(vocabulary: type[Vocabulary]) -> str:
    words = ", ".join(map(code, vocabulary.words()))
    order = "Words, lowest first" if issubclass(vocabulary, RankedVocabulary) else "Words"
    return f"### {vocabulary.__name__}\n\n{prose(inspect.getdoc(vocabulary))}\n\n{order}: {words}."


def _named_types() -> str:
    paths = [Path(inspect.getfile(module)) for module in _modules()]
    rows = [(code(alias.name), code(alias.meaning), alias.words) for path in paths for alias in sources.aliases(path)]
    words = "Ids are types of their own, so that one cannot be passed where another is meant; on the wire they are what they stand for."
    return "\n\n".join(["## Named types", words, table(("name", "stands for", "note"), rows)])
