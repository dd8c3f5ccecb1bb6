"""Who is connected: the principal behind a connection or a token, and the session in which they ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from evidentia.contracts.access import Principal, normalised
from evidentia.contracts.control import Role, TokenInfo
from evidentia.contracts.decoding import decode_json
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.ids import PrincipalId, TenantId
from evidentia.contracts.vocabulary import Classification

if TYPE_CHECKING:
    from collections.abc import Mapping


MAY_ASK = (Role.AGENT, Role.ADMIN)
"""Whose tokens are for agents' tools, which ask, keep notes and speak for runs."""


class Caller(NamedTuple):
    """Who asks, in which session, with which client."""

    principal: Principal
    session: str = ""
    """What the transport calls the session; empty where there is only one, or none is kept."""
    agent_name: str = ""
    token: TokenInfo | None = None
    """By which they were let in; None for the principal that the server was started as."""

    @property
    def key(self) -> bytes:
        """Return what tells this principal from every other, facts included."""
        return identity_of(self.principal)


class Facts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is true of the holder of a token, in the place of what the token itself says."""

    clearance: Classification = Classification.INTERNAL
    groups: tuple[str, ...] = ()
    attributes: dict[str, str] = msgspec.field(default_factory=dict)


class Grants:
    """From a token to a principal: name, tenant and roles are the token's; the rest too, unless a file of principals knows the name."""

    def __init__(self, facts: Mapping[str, Facts] | None = None) -> None:
        self._facts = dict(facts or {})

    @classmethod
    def read(cls, raw: bytes) -> Grants:
        """Return the grants in a JSON object `{token name: {clearance, groups, attributes}}`."""
        try:
            return cls(decode_json(raw, dict[str, Facts]))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidFieldError("principals", f"the file is no map of principals: {error}") from error

    def principal_of(self, token: TokenInfo) -> Principal:
        """Return who a token's holder is to the base; never the owner."""
        facts = self._facts.get(token.name, token.facts)
        return normalised(
            Principal(
                principal_id=PrincipalId(token.name),
                tenant=TenantId(token.tenant),
                clearance=facts.clearance,
                roles=tuple(role.value for role in token.roles),
                groups=facts.groups,
                attributes=facts.attributes,
            )
        )


def identity_of(principal: Principal) -> bytes:
    """Return the bytes of a principal; two with the same bytes may see the same."""
    return msgspec.json.encode(principal, order="deterministic")
