"""Operations are declared once; what is derived from the declaration fits the base and the doors."""

from __future__ import annotations

import inspect

import msgspec
import pytest

from evidentia import AsyncBase
from evidentia.contracts.operations import OPERATIONS, Operation

pytest.importorskip("starlette", reason="the extra `server` is not installed")

OF_A_BASE = [each for each in OPERATIONS if each.base_method]
LOCAL_ONLY = {"add_policy", "backup", "close", "governor", "path", "rotate_key", "settings"}
"""What a base does that no single operation does."""


def wire_names(operation: Operation) -> set[str]:
    body = operation.request
    fields = msgspec.structs.fields(body) if isinstance(body, type) and issubclass(body, msgspec.Struct) else ()
    return {*operation.path_names, *(field.name for field in operation.query), *(field.encode_name for field in fields)}


def test_every_operation_has_a_name_and_a_route_of_its_own() -> None:
    assert len(OPERATIONS) == len({each.name for each in OPERATIONS}) == len({each.route for each in OPERATIONS})


def test_a_route_with_a_name_in_it_stands_after_the_fixed_ones_that_it_fits() -> None:
    """The first route that fits is taken."""
    for place, operation in enumerate(OPERATIONS):
        parts = operation.path.split("/")
        for before in OPERATIONS[:place]:
            ours = before.path.split("/")
            is_alike = before.method == operation.method and len(ours) == len(parts)
            fits = is_alike and all(mine.startswith("{") or mine == part for mine, part in zip(ours, parts, strict=True))
            assert not fits, (before.name, operation.name)


def test_every_operation_is_answered_and_answers_belong_to_operations() -> None:
    from evidentia.serving.operations.registry import ENDPOINTS

    assert [each.name for each in OPERATIONS] == [each.name for each in ENDPOINTS]


@pytest.mark.parametrize("operation", OF_A_BASE, ids=lambda each: each.name)
def test_the_method_of_a_base_takes_what_the_operation_names(operation: Operation) -> None:
    taken = inspect.signature(getattr(AsyncBase, operation.base_method)).parameters

    assert set() == set(operation.parameters) - set(taken)
    assert set() == set(operation.parameters.values()) - wire_names(operation)


def test_every_method_of_a_base_is_an_operation_or_local() -> None:
    public = {name for name in vars(AsyncBase) if not name.startswith("_")}

    assert LOCAL_ONLY == public - {each.base_method for each in OPERATIONS}
