"""Where two JSON values differ first, in words a reader can look up."""

from __future__ import annotations


def first_difference(before: object, after: object, path: str) -> tuple[str, str, str]:
    """Return where two JSON values differ first, and both sides of it."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            if before.get(key) != after.get(key):
                return first_difference(before.get(key), after.get(key), f"{path}.{key}")
    if isinstance(before, list | tuple) and isinstance(after, list | tuple) and len(before) == len(after):
        for place, (was, came) in enumerate(zip(before, after, strict=True)):
            if was != came:
                return first_difference(was, came, f"{path}[{place}]")
    return path, str(before), str(after)
