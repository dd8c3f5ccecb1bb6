"""The operations of a served base as methods of gRPC services: the one table of operations, in other words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from proto_methods import Method
from reference import sources

from evidentia.contracts.operations import OperationGroup
from evidentia.serving.operations.registry import ENDPOINTS
from evidentia.serving.operations.request_decoding import camel, flat_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evidentia.serving.operations.endpoint import Endpoint

_SERVICES: Final[Mapping[OperationGroup, str]] = {
    OperationGroup.EVIDENCE: "EvidenceService",
    OperationGroup.GOVERNANCE: "GovernanceService",
    OperationGroup.ADMINISTRATION: "AdministrationService",
}


def methods() -> list[Method]:
    """Return every operation as a method."""
    return [
        Method(
            service=_SERVICES[each.group],
            name=camel(each.name),
            about=f"{each.summary}.",
            request=flat_of(each).message,
            reply=each.reply,
            is_stream=each.is_stream,
            words=_words(each),
        )
        for each in ENDPOINTS
    ]


def _words(endpoint: Endpoint) -> dict[str, str]:
    """Return what is said about the fields of a request: under those of its body, and about its parameters."""
    body = sources.field_words(endpoint.request) if isinstance(endpoint.request, type) else {}
    return body | {field.name: field.about for field in endpoint.query}
