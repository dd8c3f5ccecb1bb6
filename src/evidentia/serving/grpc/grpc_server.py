"""The gRPC server: its port, its limits, health and reflection, and an orderly end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from evidentia.serving.grpc.grpc_methods import handlers, service_names
from evidentia.serving.operations.registry import ENDPOINTS

if TYPE_CHECKING:
    from evidentia.serving.operations.server_context import ServerContext

MAX_AT_ONCE: Final = 200
"""More calls than this are told to come back."""
MAX_METADATA_BYTES: Final = 16 << 10
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", max(endpoint.max_bytes for endpoint in ENDPOINTS)),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_metadata_size", MAX_METADATA_BYTES),
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.max_connection_idle_ms", 600_000),
)


class GrpcDoor:
    """A gRPC server over a plane, on the event loop that starts it."""

    def __init__(self, context: ServerContext, *, credentials: grpc.ServerCredentials | None = None, is_shared: bool = False) -> None:
        options = (*_OPTIONS, ("grpc.so_reuseport", int(is_shared)))
        self._server = grpc.aio.server(options=options, maximum_concurrent_rpcs=MAX_AT_ONCE)
        self._credentials = credentials
        self._health = health.aio.HealthServicer()
        for handler in handlers(context):
            self._server.add_generic_rpc_handlers((handler,))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        reflection.enable_server_reflection((*service_names(), health.SERVICE_NAME, reflection.SERVICE_NAME), self._server)

    async def start(self, address: str) -> int:
        """Listen at `host:port` and return the port; an address that is taken or not ours is an OSError."""
        try:
            if self._credentials is None:
                port = self._server.add_insecure_port(address)
            else:
                port = self._server.add_secure_port(address, self._credentials)
        except RuntimeError as error:
            raise OSError(f"cannot listen for gRPC at '{address}'") from error
        await self._server.start()
        for name in ("", *service_names()):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)
        return port

    async def stop(self, *, grace_s: float) -> None:
        """Say that no more is taken, let calls under way finish, and end."""
        await self._health.enter_graceful_shutdown()
        await self._server.stop(grace_s)


def credentials_of(*, certificate: bytes, private_key: bytes, authorities: bytes | None = None) -> grpc.ServerCredentials:
    """Return what a server shows; with `authorities`, clients have to show a certificate too."""
    return grpc.ssl_server_credentials(
        [(private_key, certificate)], root_certificates=authorities, require_client_auth=authorities is not None
    )
