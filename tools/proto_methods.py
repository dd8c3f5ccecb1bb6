"""A method as whoever offers it says it, and the plan that the types of all methods come to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import inspect as look
from proto_plan import JSON, Absence, FieldPlan, Form, Label, MessagePlan, MethodPlan, Plan, snake
from proto_shapes import Shapes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import msgspec


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
