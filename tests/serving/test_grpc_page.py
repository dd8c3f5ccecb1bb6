"""The page about gRPC names every service, every status and where a fault stands."""

from __future__ import annotations

from pathlib import Path

from evidentia.protobuf.methods import METHODS
from evidentia.serving.grpc.grpc_server import CODES, FAULT

PAGE = (Path(__file__).parents[2] / "docs" / "grpc.md").read_text(encoding="utf-8")


def test_services_statuses_and_the_fault_are_on_the_page() -> None:
    named = {*(method.full_service for method in METHODS), *(code.name for code in CODES.values()), FAULT}

    assert [] == sorted(name for name in named if f"`{name}`" not in PAGE)
