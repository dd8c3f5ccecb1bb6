"""Who asks, and what a document demands of whoever asks.

The rule itself (`policy.access`) is elsewhere; these are the facts it decides on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from evidentia.contracts.decoding import convert
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.ids import PrincipalId, TenantId
from evidentia.contracts.vocabulary import Classification

DEFAULT_TENANT = TenantId("default")
LOCAL_OWNER = PrincipalId("local-owner")
ACL_KINDS = ("user", "group", "role")
_ACL_ENTRY = re.compile(rf"(?:{'|'.join(ACL_KINDS)}):[^\s,]{{1,128}}")
_SPACED_ENTRY = re.compile(rf"(?:{'|'.join(ACL_KINDS)}):[^\s,](?:[^,]{{0,126}}[^\s,])?")


class AccessRule(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True):
    """What a document demands: tenant, clearance and, when not empty, a matching ACL entry.

    ACL entries read `user:alice`, `group:oncall` or `role:auditor` and are kept sorted without duplicates.
    """

    tenant: TenantId = DEFAULT_TENANT
    classification: Classification = Classification.INTERNAL
    acl: tuple[str, ...] = ()


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Whoever asks, with the facts access is decided on."""

    principal_id: PrincipalId
    tenant: TenantId = DEFAULT_TENANT
    clearance: Classification = Classification.PUBLIC
    roles: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    attributes: Mapping[str, str] = msgspec.field(default_factory=dict)
    is_owner: bool = False
    """The owner of a local base stands in every ACL and outside attribute rules, within one tenant; a server never grants this."""


def is_acl_entry(entry: str, *, is_written: bool = True) -> bool:
    """Tell whether `entry` reads `user:name`, `group:name` or `role:name`.

    Where people write entries, a space in a name is more likely two entries with the comma forgotten; what programs make may hold
    spaces, as the names of tokens do.
    """
    pattern = _ACL_ENTRY if is_written else _SPACED_ENTRY
    return pattern.fullmatch(entry) is not None and entry.isprintable()


def normalised(principal: Principal) -> Principal:
    """Return a principal in its one form: words as members, roles and groups sorted without duplicates."""
    try:
        read = convert(msgspec.to_builtins(principal), Principal)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise InvalidFieldError("principal", str(error)) from error
    return msgspec.structs.replace(read, roles=tuple(sorted(set(read.roles))), groups=tuple(sorted(set(read.groups))))


def local_owner() -> Principal:
    """Return the principal a local base acts as unless told otherwise."""
    return Principal(principal_id=LOCAL_OWNER, clearance=Classification.RESTRICTED, is_owner=True)
