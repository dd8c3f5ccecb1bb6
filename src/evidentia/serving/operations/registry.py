"""Every declared operation with what answers it: a function of one of the modules beside, else the method of the base itself."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from evidentia.base.async_base import AsyncBase
from evidentia.contracts.operations import OPERATIONS, Operation
from evidentia.serving.operations import (
    admin_endpoints,
    document_endpoints,
    evidence_endpoints,
    policy_endpoints,
    run_endpoints,
    source_endpoints,
)
from evidentia.serving.operations.api_errors import bad_field
from evidentia.serving.operations.endpoint import Endpoint, OperationRequest, Reply, bind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evidentia.serving.operations.server_context import ServerContext

_MODULES: Final = (admin_endpoints, document_endpoints, evidence_endpoints, policy_endpoints, run_endpoints, source_endpoints)


class BaseAnswer(NamedTuple):
    """Answers an operation with the method of a base that does the same: parameters by name, the answer in its message."""

    operation: Operation
    signature: inspect.Signature

    @classmethod
    def of(cls, operation: Operation) -> BaseAnswer:
        """Return the answer of an operation that a base has a method for."""
        return cls(operation, inspect.signature(getattr(AsyncBase, operation.base_method)))

    async def answer(self, context: ServerContext, request: OperationRequest) -> Reply:
        """Ask the base as whoever asks sees it, or as the owner of the tenant where the operation is about the whole base."""
        served = context.served_base
        base = (
            served.base_of(request.tenant, request.token)
            if self.operation.is_base_wide
            else served.base_for(request.principal, request.token)
        )
        return Reply(self._message(await getattr(base, self.operation.base_method)(**self._arguments(request))))

    def _arguments(self, request: OperationRequest) -> dict[str, object]:
        given: dict[str, object] = {**request.query, **request.path}
        if isinstance(request.body, msgspec.Struct):
            given |= msgspec.structs.asdict(request.body)
        arguments: dict[str, object] = {}
        for parameter in self.signature.parameters.values():
            name = self.operation.parameters.get(parameter.name, parameter.name)
            if name in given:
                if given[name] is None and parameter.default is parameter.empty:
                    raise bad_field(name, "it is missing")
                arguments[parameter.name] = given[name]
        return arguments

    def _message(self, answer: Any) -> object:  # noqa: ANN401 - whatever the method returns
        """Return what a method returned as the message of the operation: itself, or its fields in order."""
        kind: Any = self.operation.reply  # Any: the class of a message
        if isinstance(answer, kind):
            return answer
        names = kind.__struct_fields__
        values = [answer] if len(names) == 1 else answer
        return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in zip(names, values, strict=True)})


def _endpoints() -> tuple[Endpoint, ...]:
    by_name: Mapping[str, Endpoint] = {
        each.name: each for module in _MODULES for each in vars(module).values() if isinstance(each, Endpoint)
    }
    return tuple(by_name.get(each.name) or bind(each, BaseAnswer.of(each).answer) for each in OPERATIONS)


ENDPOINTS: Final = _endpoints()
