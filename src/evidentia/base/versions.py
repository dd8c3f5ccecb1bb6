"""The versions of a base and their differences, each as the caller may see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.contracts.errors import InvalidFieldError
from evidentia.policy.access import access_scope

if TYPE_CHECKING:
    from evidentia.contracts.access import Principal
    from evidentia.contracts.search import AccessScope
    from evidentia.contracts.versions import VersionDiff, VersionSummary
    from evidentia.wiring.embedded import BaseComponents

MAX_VERSIONS = 10_000
MAX_DOCUMENTS = 100_000


def versions(parts: BaseComponents, principal: Principal, *, limit: int) -> list[VersionSummary]:
    """Return the newest versions."""
    _check_limit(limit, most=MAX_VERSIONS)
    return parts.history.versions(limit=limit, scope=_scope(parts, principal))


def diff(parts: BaseComponents, principal: Principal, older: int | str, newer: int | str, *, limit: int) -> VersionDiff:
    """Return what differs between two versions."""
    _check_limit(limit, most=MAX_DOCUMENTS)
    return parts.history.diff(older, newer, limit=limit, scope=_scope(parts, principal))


def _check_limit(limit: int, *, most: int) -> None:
    if not 1 <= limit <= most:
        raise InvalidFieldError("limit", f"{limit} is not between 1 and {most}")


def _scope(parts: BaseComponents, principal: Principal) -> AccessScope | None:
    """Return what a caller may see; the owner sees to the whole base."""
    return None if principal.is_owner else access_scope(principal, acl_scope=None, rules=parts.settings.access.rules)
