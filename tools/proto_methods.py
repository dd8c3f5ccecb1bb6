"""The operations of a served base as methods of gRPC services, and the plan that the types of all methods come to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import inspect as look
from proto_plan import JSON, Absence, FieldPlan, Form, Label, MessagePlan, MethodPlan, Plan, snake
from proto_shapes import Shapes
from reference import sources

from evidentia.contracts.operations import OperationGroup
from evidentia.serving.operations.registry import ENDPOINTS
from evidentia.serving.operations.request_decoding import camel, flat_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import msgspec

    from evidentia.serving.operations.endpoint import Endpoint


class Method(NamedTuple):
    """One method as whoever offers it says it."""

    service: str
    name: str
    about: str
    request: type[msgspec.Struct]
    reply: Any
    """A type; None for any JSON object."""
    is_stream: bool = False
    words: Mapping[str, str] = {}
    """What is said about the fields of the request, by name."""


def plan_of(methods: Sequence[Method]) -> Plan:
    """Return everything that the methods need, in an order that depends on names alone."""
    shapes = Shapes()
    drafts = [(each, _request(shapes, each), _response(shapes, each)) for each in methods]
    shared = shapes.finished()
    taken = {message.name for message in shared} | set(shapes.enums)
    plans = [
        MethodPlan(
            each.service,
            each.name,
            each.about,
            request._replace(name=_free(f"{each.name}Request", each.service, taken)),
            response._replace(name=_free(f"{each.name}Response", each.service, taken)),
            each.is_stream,
        )
        for each, request, response in drafts
    ]
    plans.sort(key=lambda plan: (plan.service, plan.name))
    return Plan(shared, tuple(shapes.enums[name] for name in sorted(shapes.enums)), tuple(plans))


def _request(shapes: Shapes, method: Method) -> MessagePlan:
    info = look.type_info(method.request)
    if not isinstance(info, look.StructType):
        raise TypeError(f"the request of '{method.name}' is no struct")
    fields = shapes.fields_of(info, words=method.words, is_request=True)
    return MessagePlan("", Form.STRUCT, fields, f"What {method.name} is asked with.")


def _response(shapes: Shapes, method: Method) -> MessagePlan:
    about = f"What {method.name} answers{', part by part' if method.is_stream else ''}."
    if method.reply is None:
        return MessagePlan("", Form.REPLY, (FieldPlan("reply", JSON, absence=Absence.REFUSED),), about)
    shape = shapes.shape_of(look.type_info(method.reply))
    return MessagePlan("", Form.REPLY, (FieldPlan(snake(shape.word), shape, Label.IMPLICIT, Absence.REFUSED),), about)


def _free(name: str, service: str, taken: set[str]) -> str:
    """Return the name that lint asks for; where a contract has it, the other one that lint allows."""
    return f"{service}{name}" if name in taken else name


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
