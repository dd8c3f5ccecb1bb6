"""Names under which files are sent: within their source, each once, and none both a file and a directory."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from evidentia.serving.operations.api_errors import bad_field

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.contracts.doors import SentFile
    from evidentia.serving.operations.api_errors import ApiError

MAX_NAME_BYTES: Final = 255
"""Of one part of a path, as file systems have it."""
MAX_PATH_BYTES: Final = 1_000
_PROBLEM: Final = "write a path within the source, such as 'guides/setup.md': no root, no '.' or '..', no hidden or unprintable name"


def checked_paths(files: Sequence[SentFile]) -> list[PurePosixPath]:
    """Return the paths in order, or refuse the first that cannot be."""
    paths = [_checked(file.path, place) for place, file in enumerate(files)]
    taken: dict[PurePosixPath, int] = {}
    for place, path in enumerate(paths):
        if path in taken:
            raise _refused(place, f"files[{taken[path]}] has the same path")
        taken[path] = place
    for place, path in enumerate(paths):
        if above := next((each for each in path.parents if each in taken), None):
            raise _refused(place, f"files[{taken[above]}] is a file where this needs a directory")
    return paths


def _checked(text: str, place: int) -> PurePosixPath:
    path = PurePosixPath(text)
    is_plain = str(path) == text and path.parts and not path.is_absolute() and text.isprintable() and "\\" not in text
    if not is_plain or any(part.startswith(".") for part in path.parts):
        raise _refused(place, _PROBLEM)
    if len(text.encode()) > MAX_PATH_BYTES or any(len(part.encode()) > MAX_NAME_BYTES for part in path.parts):
        raise _refused(place, f"write at most {MAX_NAME_BYTES} bytes between two slashes, and {MAX_PATH_BYTES} in all")
    return path


def _refused(place: int, problem: str) -> ApiError:
    return bad_field(f"files[{place}].path", problem)
