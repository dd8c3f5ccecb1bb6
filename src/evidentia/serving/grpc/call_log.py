"""Request ids and log of gRPC: each call of ours has an id, which its client is told, and a line when it has ended.

It stands before everything else, so that a call is logged that is refused before it is read. Health and reflection are passed over.
"""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import grpc

from evidentia.serving.hosting.request_log import tell
from evidentia.serving.operations.registry import ENDPOINTS
from evidentia.serving.operations.request_decoding import camel
from evidentia.serving.operations.request_facts import HEADER, ID_BYTES, RequestFacts, answering, id_given

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from evidentia.serving.operations.server_context import ServerContext

    Context = grpc.aio.ServicerContext[Any, Any]  # Any: the messages of whichever method

OWN: Final = "/evidentia."
"""How the methods of our services begin."""
_OPERATIONS: Final = {camel(endpoint.name): endpoint.name for endpoint in ENDPOINTS}
_OUR_FAULTS: Final = ("INTERNAL", "UNKNOWN", "UNAVAILABLE", "DATA_LOSS")


class CallLogInterceptor(grpc.aio.ServerInterceptor):
    """Gives each call its id, and logs how it was answered."""

    def __init__(self, context: ServerContext) -> None:
        self._elapsed_ns = context.parts.clock.elapsed_ns
        self._entropy = context.parts.entropy
        self._is_on = context.served_base.settings.telemetry.logs

    async def intercept_service(self, continuation: Callable[..., Any], details: grpc.HandlerCallDetails) -> Any:  # noqa: ANN401 - a handler
        """Return the handler of a method, with the log around it."""
        handler = await continuation(details)
        if handler is None or not details.method.startswith(OWN):
            return handler
        metadata = [(name, value) for name, value in details.invocation_metadata or () if isinstance(value, str)]
        facts = RequestFacts(id_given(metadata) or self._entropy.take(ID_BYTES).hex(), door="grpc")
        facts.operation = _OPERATIONS.get(details.method.rpartition("/")[2], "")
        read, write = handler.request_deserializer, handler.response_serializer
        if handler.response_streaming:
            answer = self._stream(handler.stream_stream or handler.unary_stream, facts)
            make = grpc.stream_stream_rpc_method_handler if handler.request_streaming else grpc.unary_stream_rpc_method_handler
        else:
            answer = self._single(handler.stream_unary or handler.unary_unary, facts)
            make = grpc.stream_unary_rpc_method_handler if handler.request_streaming else grpc.unary_unary_rpc_method_handler
        return make(answer, read, write)

    def _single(self, behaviour: Callable[..., Any], facts: RequestFacts) -> Callable[..., Any]:
        async def answer(sent: Any, context: Context) -> Any:  # noqa: ANN401 - a message, or several of them
            async with self._logged(context, facts):
                return await behaviour(sent, context)

        return answer

    def _stream(self, behaviour: Callable[..., Any], facts: RequestFacts) -> Callable[..., Any]:
        async def answer(sent: Any, context: Context) -> AsyncIterator[Any]:  # noqa: ANN401 - likewise
            async with self._logged(context, facts):
                async for part in behaviour(sent, context):
                    yield part

        return answer

    @asynccontextmanager
    async def _logged(self, context: Context, facts: RequestFacts) -> AsyncIterator[None]:
        began_ns, is_over = self._elapsed_ns(), False
        try:
            with answering(facts):
                context.set_trailing_metadata(((HEADER, facts.request_id),))  # a refusal has metadata of its own, and the id in it
                yield
            is_over = True
        finally:
            if self._is_on:
                code: object = context.code()  # a number while no status is set, whatever the package says
                name = "OK" if is_over else code.name if isinstance(code, grpc.StatusCode) else "CANCELLED"
                level = logging.INFO if is_over else logging.ERROR if name in _OUR_FAULTS else logging.WARNING
                tell(
                    facts,
                    name,
                    took_ns=self._elapsed_ns() - began_ns,
                    level=level,
                    client=context.peer().partition(":")[2].rpartition(":")[0],
                )
