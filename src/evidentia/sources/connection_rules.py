"""What each kind of connection needs and may have; a key itself is refused wherever it could be written down.

No message repeats what might be a key.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlsplit

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.vocabulary import ConnectionKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evidentia.contracts.sources import SourceConnection

_NEEDED: Final[Mapping[ConnectionKind, tuple[str, ...]]] = {
    ConnectionKind.OWN: (),
    ConnectionKind.PYTHON: (),
    ConnectionKind.MEMORY: (),
    ConnectionKind.BASE: ("address",),
    ConnectionKind.REMOTE: ("address",),
    ConnectionKind.MCP: ("address", "tool"),
}
_MAY_HAVE_KEY: Final = frozenset({ConnectionKind.REMOTE, ConnectionKind.MCP})
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_LIKE_A_SECRET: Final = re.compile(
    r"key|sig|"
    r"(?:.*[^a-z])?(?:(?:api|access|secret|private|auth|client)[^a-z]?(?:key|token|secret)|password|passwd|passphrase|secret|token"
    r"|credentials?|authori[sz]ation|signature|cookie)"
)
_SCHEMES: Final = ("http", "https")
MAX_ADDRESS_LENGTH: Final = 2_048
KEY_HINT: Final = "put it into an environment variable and name that in connection.key_variable"


def check_connection(connection: SourceConnection) -> None:
    """Raise InvalidFieldError for what a connection lacks, and for what it has that its kind does not use."""
    kind = connection.kind
    needed = _NEEDED[kind]
    for name, value in (("address", connection.address), ("tool", connection.tool)):
        if name in needed and not value.strip():
            raise InvalidFieldError(f"connection.{name}", f"a source of kind '{kind}' needs it")
        if name not in needed and value:
            raise InvalidFieldError(f"connection.{name}", f"a source of kind '{kind}' has none; leave it out")
        if not value.isprintable() or len(value) > MAX_ADDRESS_LENGTH:
            raise InvalidFieldError(f"connection.{name}", f"it is longer than {MAX_ADDRESS_LENGTH} characters or holds control characters")
    _check_key(connection)
    if kind is ConnectionKind.REMOTE or (kind is ConnectionKind.MCP and _is_web_address(connection.address)):
        _check_address(connection.address)


def _check_key(connection: SourceConnection) -> None:
    kind, variable = connection.kind, connection.key_variable
    if variable and kind not in _MAY_HAVE_KEY:
        raise InvalidFieldError("connection.key_variable", f"a source of kind '{kind}' needs no key; leave it out")
    if variable and not _VARIABLE.fullmatch(variable):
        raise InvalidFieldError(
            "connection.key_variable",
            "it is not the name of an environment variable (letters, digits and underscores); never the key itself",
        )
    if connection.options and kind is ConnectionKind.OWN:
        raise InvalidFieldError("connection.options", "the base's own sources have none; leave them out")
    for name in connection.options:
        if _LIKE_A_SECRET.fullmatch(name.lower()):
            raise InvalidFieldError("connection.options", f"{name[:80]!a} looks like a key, and keys are not stored; {KEY_HINT}")


def _is_web_address(address: str) -> bool:
    return address.lower().startswith(tuple(f"{scheme}://" for scheme in _SCHEMES))


def _check_address(address: str) -> None:
    try:
        parts = urlsplit(address)
        is_complete = parts.scheme in _SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_complete = False
    if not is_complete or any(character.isspace() for character in address):
        raise InvalidFieldError("connection.address", "it is not an address such as https://host:8080/path")
    if "@" in parts.netloc:
        raise InvalidFieldError("connection.address", f"it holds a name or password before the host, which is not stored; {KEY_HINT}")
    for name, _ in parse_qsl(parts.query, keep_blank_values=True):
        if _LIKE_A_SECRET.fullmatch(name.lower()):
            raise InvalidFieldError("connection.address", f"its part {name[:80]!a} looks like a key, which is not stored; {KEY_HINT}")
