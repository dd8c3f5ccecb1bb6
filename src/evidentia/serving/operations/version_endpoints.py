"""The versions of a base: which there are, and what differs between two of them, each as the asker may see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.contracts.doors import VersionList
from evidentia.contracts.versions import VersionDiff
from evidentia.serving.operations.api_errors import NOT_FOUND
from evidentia.serving.operations.endpoint import LIMIT, Endpoint, Group, OperationRequest, QueryField, Reply
from evidentia.serving.operations.evidence_endpoints import needed
from evidentia.serving.operations.roles import READERS

if TYPE_CHECKING:
    from evidentia.serving.operations.server_context import ServerContext


async def list_versions(context: ServerContext, request: OperationRequest) -> Reply:
    """Return the newest versions with what each holds."""
    found = await context.served_base.base_for(request.principal).versions(limit=request.query["limit"])
    return Reply(VersionList(versions=tuple(found)))


async def show_diff(context: ServerContext, request: OperationRequest) -> Reply:
    """Return what differs between two versions."""
    older, newer = needed(request, "older"), needed(request, "newer")
    return Reply(await context.served_base.base_for(request.principal).diff(older, newer, limit=request.query["limit"]))


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
