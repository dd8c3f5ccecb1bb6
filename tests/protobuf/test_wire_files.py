"""The wire is what the contracts and the operations say, and no number on it is ever given twice."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf.descriptor import FieldDescriptor

from evidentia.protobuf.evidentia.v1 import types_pb2
from evidentia.protobuf.methods import DESCRIPTORS, METHODS
from evidentia.serving.operations.registry import ENDPOINTS
from evidentia.serving.operations.request_decoding import camel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google.protobuf.descriptor import Descriptor

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tools"
ROOM = ROOT / "src" / "evidentia" / "protobuf"
PROTOC_VARIABLE = "EVIDENTIA_PROTOC"
"""Names an interpreter that has grpcio-tools 1.76, where this one has not."""
SCALARS = {
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_DOUBLE: "double",
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_BYTES: "bytes",
}


def protoc() -> str | None:
    has_own = importlib.util.find_spec("grpc_tools") is not None
    return os.environ.get(PROTOC_VARIABLE) or (sys.executable if has_own else None)


def write(directory: Path, *options: str, hash_seed: str = "1") -> dict[str, str]:
    command = [sys.executable, str(TOOLS / "write_proto.py"), str(directory), *options]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PYTHONHASHSEED": hash_seed})
    return files_under(directory)


def files_under(directory: Path) -> dict[str, str]:
    files = (path for path in directory.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(directory).as_posix(): path.read_text(encoding="utf-8") for path in files}


def is_of_protoc(name: str) -> bool:
    return "_pb2." in name


def differing(written: dict[str, str], committed: dict[str, str]) -> list[str]:
    return sorted(name for name in written.keys() | committed.keys() if written.get(name) != committed.get(name))


def test_the_committed_schema_and_conversions_are_what_the_code_gives(tmp_path: Path) -> None:
    committed = {name: text for name, text in files_under(ROOM).items() if not is_of_protoc(name)}

    assert [] == differing(write(tmp_path), committed), "run tools/write_proto.py, and read the difference before you commit it"


def test_the_committed_modules_are_what_protoc_gives(tmp_path: Path) -> None:
    python = protoc()
    if python is None:
        pytest.skip(f"there is no grpcio-tools here; {PROTOC_VARIABLE} may name an interpreter that has it")

    assert [] == differing(write(tmp_path, "--protoc", python), files_under(ROOM))


def test_what_is_written_does_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    assert write(tmp_path / "one", hash_seed="1") == write(tmp_path / "two", hash_seed="2")


def test_the_schema_passes_the_standard_lint() -> None:
    buf = shutil.which(os.environ.get("BUF", "buf"))
    if buf is None:
        pytest.skip("there is no buf here; the variable BUF may name it")

    linted = subprocess.run([buf, "lint"], cwd=ROOT, capture_output=True, text=True, check=False)

    assert (0, "") == (linted.returncode, linted.stdout)


def test_every_operation_is_a_method() -> None:
    assert sorted(camel(endpoint.name) for endpoint in ENDPOINTS) == sorted(method.name for method in METHODS)


def test_every_method_is_in_the_services_that_protoc_knows() -> None:
    known = {
        f"/{service.full_name}/{method.name}": (method.input_type.name, method.output_type.name)
        for file in DESCRIPTORS
        for service in file.services_by_name.values()
        for method in service.methods
    }

    assert known == {each.path: (each.request.DESCRIPTOR.name, each.response.DESCRIPTOR.name) for each in METHODS}


# --- numbers ---


def descriptors() -> Iterator[Descriptor]:
    for file in (types_pb2.DESCRIPTOR, *DESCRIPTORS):
        yield from file.message_types_by_name.values()


def key_of(field: FieldDescriptor) -> str:
    def type_of(of: FieldDescriptor) -> str:
        named = of.message_type or of.enum_type
        return SCALARS[of.type] if named is None else str(named.name)

    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        return f"{field.name}: map<string, {type_of(entry.fields_by_name['value'])}>"
    return f"{field.name}: {'repeated ' if field.is_repeated else ''}{type_of(field)}"


def test_the_compiled_messages_have_the_numbers_of_the_lock_file() -> None:
    lock = json.loads((ROOM / "numbers.json").read_text(encoding="utf-8"))["messages"]

    for descriptor in descriptors():
        kept = lock[descriptor.name]
        assert {key_of(field): field.number for field in descriptor.fields}.items() <= kept.items(), descriptor.name


def test_the_compiled_enums_have_the_numbers_of_the_lock_file() -> None:
    lock = json.loads((ROOM / "numbers.json").read_text(encoding="utf-8"))["enums"]

    for name, enum in types_pb2.DESCRIPTOR.enum_types_by_name.items():
        prefix = next(value.name for value in enum.values if value.number == 0).removesuffix("UNSPECIFIED")
        named = {value.name.removeprefix(prefix).lower(): value.number for value in enum.values if value.number}
        assert named.items() <= lock[name].items(), name


def test_no_number_stands_twice_in_the_lock_file() -> None:
    lock = json.loads((ROOM / "numbers.json").read_text(encoding="utf-8"))

    for name, kept in (lock["messages"] | lock["enums"]).items():
        assert len(kept) == len(set(kept.values())), name


@pytest.fixture
def proto(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the parts of the generator that numbers go through."""
    monkeypatch.syspath_prepend(str(TOOLS))
    numbers, plan, text = (importlib.import_module(name) for name in ("proto_numbers", "proto_plan", "proto_text"))
    return type("Parts", (), {"Numbers": numbers.Numbers, "allot": staticmethod(numbers.allot), "plan": plan, "text": text})


def test_a_new_name_gets_the_next_number(proto: Any) -> None:
    kept = {"a": 1, "b": 2}

    assert {"c": 3, "a": 1, "d": 4} == proto.allot(kept, ["c", "a", "d"])
    assert {"a": 1, "b": 2, "c": 3, "d": 4} == kept


def test_the_number_of_a_removed_field_is_not_given_again(proto: Any) -> None:
    kept: dict[str, int] = {}
    proto.allot(kept, ["a", "b", "c"])

    assert {"a": 1, "d": 4} == proto.allot(kept, ["a", "d"])
    assert {"c": 3} == proto.allot(kept, ["c"])


def test_the_order_of_fields_does_not_move_numbers(proto: Any) -> None:
    kept: dict[str, int] = {}
    proto.allot(kept, ["a", "b"])

    assert {"b": 2, "a": 1} == proto.allot(kept, ["b", "a"])


def test_a_field_that_changes_its_type_gets_another_number_and_leaves_the_old_one_reserved(proto: Any) -> None:
    plan = proto.plan
    before = plan.MessagePlan("Thing", plan.Form.STRUCT, (plan.FieldPlan("size", plan.INTEGER), plan.FieldPlan("name", plan.TEXT)))
    after = plan.MessagePlan("Thing", plan.Form.STRUCT, (plan.FieldPlan("size", plan.TEXT),))
    numbers = proto.Numbers()
    numbers.of_message(before)
    again = proto.Numbers(numbers.text())

    assert {"size": 3} == again.of_message(after)
    assert ((1, 2), ("name",)) == again.reserved_of_message(after)


def test_what_is_reserved_stands_in_the_schema(proto: Any) -> None:
    plan = proto.plan
    enum = plan.EnumPlan("Tier", ("high",))
    numbers = proto.Numbers(json.dumps({"enums": {"Tier": {"low": 1, "high": 2}}}))

    text = proto.text.proto_files(plan.Plan((), (enum,), ()), numbers)["evidentia/v1/types.proto"]

    assert 'reserved 1;\n  reserved "TIER_LOW";\n  TIER_UNSPECIFIED = 0;\n  TIER_HIGH = 2;' in text
