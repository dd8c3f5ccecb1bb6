"""Which categories of policies there are: an open registry, with `retrieval`, `grounding` and `protocol` built in."""

from __future__ import annotations

from typing import Final

from evidentia.contracts.errors import InvalidFieldError
from evidentia.policy.grounding_rules import GROUNDING
from evidentia.policy.handlers import Category
from evidentia.policy.protocol_run import PROTOCOL
from evidentia.policy.retrieval_rules import RETRIEVAL
from evidentia.policy.rule_checks import nearest

__all__ = ["Category", "categories", "category", "find_category", "position", "register_category", "unregister_category"]

_BUILT_IN: Final = (RETRIEVAL, GROUNDING, PROTOCOL)
_registry: Final[dict[str, Category]] = {each.name: each for each in _BUILT_IN}


def register_category(category: Category) -> None:
    """Add a category; the same one twice is no harm, another one of a name that is taken is refused."""
    if not category.name or not category.name.isidentifier():
        raise InvalidFieldError("category", f"'{category.name!r:.100}' is no name; use letters, digits and underscores")
    if _registry.setdefault(category.name, category) != category:
        raise InvalidFieldError("category", f"there is already a category '{category.name}'; register yours under another name")


def unregister_category(name: str) -> None:
    """Take a category out again; those built in stay."""
    if name in {each.name for each in _BUILT_IN}:
        raise InvalidFieldError("category", f"the category '{name}' is built in")
    _registry.pop(name, None)


def find_category(name: object) -> Category | None:
    """Return a category by its name; None when there is none."""
    return _registry.get(name) if isinstance(name, str) else None


def category(name: str) -> Category:
    """Return a category by its name, or raise InvalidFieldError with the nearest one."""
    found = find_category(name)
    if found is None:
        near = nearest(name, _registry)
        meant = f"did you mean '{near}'?" if near else f"the categories are {', '.join(each.name for each in categories())}"
        raise InvalidFieldError("category", f"there is no category {name!r:.100}; {meant}")
    return found


def categories() -> tuple[Category, ...]:
    """Return every category: those built in, then the others by name."""
    return tuple(sorted(_registry.values(), key=lambda each: position(each.name)))


def position(name: str) -> tuple[int, str]:
    """Return where a category stands among others."""
    built_in = [each.name for each in _BUILT_IN]
    return (built_in.index(name), "") if name in built_in else (len(built_in), name)
