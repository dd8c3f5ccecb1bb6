"""What Office files declare about themselves in their core properties."""

from __future__ import annotations

from datetime import datetime

_FIELDS = (("title", "title"), ("author", "author"), ("created", "created"), ("updated", "modified"), ("language", "language"))
_TEMPLATE_TITLES = frozenset({"PowerPoint Presentation", "Word Document"})
_TEMPLATE_AUTHORS = frozenset({"python-docx", "Steve Canny"})


def declared_properties(properties: object) -> dict[str, str | tuple[str, ...]]:
    """Return the declared title, author, dates, language and keywords; what is malformed counts as absent."""
    declared: dict[str, str | tuple[str, ...]] = {}
    for key, attribute in _FIELDS:
        value = _property(properties, attribute)
        if isinstance(value, datetime):
            declared[key] = value.isoformat()
        elif isinstance(value, str) and value.strip() and value not in _TEMPLATE_TITLES | _TEMPLATE_AUTHORS:
            declared[key] = value.strip()
    keywords = _property(properties, "keywords")
    if isinstance(keywords, str) and keywords.strip():
        declared["tags"] = tuple(word.strip() for word in keywords.replace(";", ",").split(",") if word.strip())
    return declared


def _property(properties: object, attribute: str) -> object:
    try:
        return getattr(properties, attribute)
    except ValueError:
        return None
