"""Text files line by line, so that an error can name the file and the line. Refuses bytes that are not UTF-8."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.contracts.errors import InvalidFieldError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_BYTE_ORDER_MARK = "\ufeff"


def numbered_lines(path: Path, *, field: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank with their numbers from 1, one at a time; line ends may be LF or CRLF."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                text = _decode(line, path, number, field=field)
                if text.strip():
                    yield number, text
    except OSError as error:
        raise InvalidFieldError(field, f"'{path}' cannot be read: {error.strerror}") from error


def line_error(path: Path, number: int, problem: str, *, field: str) -> InvalidFieldError:
    """Return the error that names the file, the line and what is wrong with it."""
    return InvalidFieldError(field, f"'{path}', line {number}: {problem}")


def _decode(line: bytes, path: Path, number: int, *, field: str) -> str:
    try:
        text = line.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise line_error(path, number, f"byte {error.start + 1} is not UTF-8", field=field) from error
    return text.removeprefix(_BYTE_ORDER_MARK) if number == 1 else text
