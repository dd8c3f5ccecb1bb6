"""The versions of a base: which there are, and what differs between two of them, each as the asker may see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.contracts.doors import VersionList
from evidentia.contracts.versions import VersionDiff
from evidentia.serving.operations.asking import LIMIT, Asked, Endpoint, Group, QueryField, Reply
from evidentia.serving.operations.evidence_endpoints import needed
from evidentia.serving.operations.refusals import NOT_FOUND
from evidentia.serving.operations.roles import READERS

if TYPE_CHECKING:
    from evidentia.serving.operations.plane import Plane


async def list_versions(plane: Plane, asked: Asked) -> Reply:
    """Return the newest versions with what each holds."""
    found = await plane.office.base_for(asked.principal).versions(limit=asked.query["limit"])
    return Reply(VersionList(versions=tuple(found)))


async def show_diff(plane: Plane, asked: Asked) -> Reply:
    """Return what differs between two versions."""
    older, newer = needed(asked, "older"), needed(asked, "newer")
    return Reply(await plane.office.base_for(asked.principal).diff(older, newer, limit=asked.query["limit"]))


_OLDER: Final = QueryField("older", "The version to begin with: its number, a hash such as its `corpus_version`, or its beginning.")
_NEWER: Final = QueryField("newer", "The version to end with, named likewise.")
_A: Final = Group.ADMINISTRATION

ENDPOINTS: Final = (
    Endpoint("list_versions", "GET", "/v1/versions", "List versions", READERS, list_versions, VersionList, query=(LIMIT,), group=_A),
    Endpoint(
        "show_diff",
        "GET",
        "/v1/versions/diff",
        "Show what differs between two versions",
        READERS,
        show_diff,
        VersionDiff,
        query=(_OLDER, _NEWER, LIMIT),
        group=_A,
        faults=(NOT_FOUND,),
    ),
)
