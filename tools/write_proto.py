"""Write src/evidentia/protobuf from the contracts and the operations; a test compares what it writes with what is there.

Usage: python tools/write_proto.py [--protoc PYTHON] [DIRECTORY]

PYTHON is an interpreter that has grpcio-tools 1.76, such as that of a virtual environment of its own: its generator asks for no newer
protobuf than users have. Without it, everything is written but what protoc writes.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from pathlib import Path

from proto_code import STUBS, code_files
from proto_methods import Method, methods, plan_of
from proto_numbers import Numbers
from proto_text import FOLDER, proto_files

ROOM = Path(__file__).resolve().parents[1] / "src" / "evidentia" / "protobuf"
LOCK = "numbers.json"
_BARE_MAPPING = re.compile(r"\b_Mapping(?=[],])")
"""What stubs write where a dict may stand for a message, without what it holds."""


def main() -> None:
    """Write every file, and remove schemas of services that are gone."""
    parser = argparse.ArgumentParser(description="Write the schema of gRPC, and the code that goes with it.")
    parser.add_argument("directory", nargs="?", type=Path, default=ROOM)
    parser.add_argument("--protoc", type=Path, help="an interpreter that has grpcio-tools 1.76")
    arguments = parser.parse_args()
    lock = ROOM / LOCK
    files = wire_files(methods(), lock=lock.read_text(encoding="utf-8") if lock.is_file() else "{}")
    for name, text in files.items():
        path = arguments.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for path in sorted((arguments.directory / FOLDER).glob("*.proto")):
        if f"{FOLDER}/{path.name}" not in files:
            path.unlink()
    print(f"wrote {len(files)} files to {arguments.directory}")
    if arguments.protoc is not None:
        compile_protos(arguments.directory, python=arguments.protoc)


def wire_files(offered: list[Method], *, lock: str) -> dict[str, str]:
    """Return the text of every file that needs no protoc under its path, the lock file with its new numbers included."""
    plan = plan_of(offered)
    numbers = Numbers(lock)
    files = proto_files(plan, numbers) | code_files(plan, numbers)
    return {**files, LOCK: numbers.text()}


def compile_protos(directory: Path, *, python: Path) -> None:
    """Write the modules of protoc, with imports that hold inside the package."""
    folder = directory / FOLDER
    for stale in sorted(folder.glob("*_pb2.py*")):
        stale.unlink()
    protos = sorted(str(path.relative_to(directory)) for path in folder.glob("*.proto"))
    command = [str(python), "-m", "grpc_tools.protoc", f"-I{directory}", f"--python_out={directory}", f"--pyi_out={directory}", *protos]
    subprocess.run(command, check=True, cwd=directory)  # noqa: S603 - the interpreter is the caller's choice
    for path in sorted(folder.glob("*_pb2.py*")):
        text = path.read_text(encoding="utf-8").replace("from evidentia.v1 import", f"from {STUBS} import")
        path.write_text(_BARE_MAPPING.sub("_Mapping[str, object]", text), encoding="utf-8")
    print(f"compiled {len(protos)} schemas")


if __name__ == "__main__":
    main()
