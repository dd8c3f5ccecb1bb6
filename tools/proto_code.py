"""The Python files beside what protoc writes: words and numbers of enums, conversions both ways, and the table of methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from proto_conversions import Writing, reading_function
from proto_plan import Form, Kind, snake

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from proto_numbers import Numbers
    from proto_plan import MessagePlan, Plan

STUBS: Final = "evidentia.protobuf.evidentia.v1"
_TYPES: Final = "types_pb2"
_NOTE: Final = "Written by tools/write_proto.py; nothing here is changed by hand."


def code_files(plan: Plan, numbers: Numbers) -> dict[str, str]:
    """Return the text of every file under its path."""
    return {
        "__init__.py": '"""What does the wire look like for gRPC?\n\nGenerated code only; nothing here is written by hand.\n"""\n',
        "evidentia/__init__.py": f'"""The package of the schema.\n\n{_NOTE}\n"""\n',
        "evidentia/v1/__init__.py": f'"""The first version of the schema, and its messages.\n\n{_NOTE}\n"""\n',
        "words.py": _words_file(plan, numbers),
        "writing.py": _writing_file(plan),
        "reading.py": _reading_file(plan),
        "conversion.py": _conversion_file(plan),
        "methods.py": _methods_file(plan),
    }


def _words_file(plan: Plan, numbers: Numbers) -> str:
    parts = [
        _docstring("The words of every vocabulary and their numbers on the wire."),
        "from __future__ import annotations\n\nfrom typing import Final\n\n",
        _WORDS_CLASS,
    ]
    for enum in plan.enums:
        given = numbers.of_enum(enum)
        name = snake(enum.name).upper()
        parts.append(f"{name}_NUMBERS: Final = {{\n" + "".join(f'    "{word}": {given[word]},\n' for word in enum.words) + "}")
        parts.append(f"{name}_WORDS: Final = Words({{number: word for word, number in {name}_NUMBERS.items()}})\n")
    return "\n".join(parts)


def _writing_file(plan: Plan) -> str:
    writing = Writing(plan)
    head = [
        _docstring("Structs as what the constructors of messages take: dicts all the way down, None for what is left out."),
        "from __future__ import annotations\n\nfrom typing import TYPE_CHECKING, Any, Final\n\nimport msgspec\nfrom msgspec import UNSET\n",
        _imports(_union_members(plan)),
        _words_import(plan, "NUMBERS"),
        "if TYPE_CHECKING:\n    from collections.abc import Mapping\n",
        _indented(_imports(_annotated(plan))),
        "Fields = dict[str, Any]  # Any: numbers, texts, and more of these\n",
        'moment = msgspec.to_builtins\n_encode = msgspec.json.Encoder(order="deterministic").encode\n\n',
        'def dumps(it: object) -> str:\n    """Return JSON text."""\n    return _encode(it).decode()\n\n',
    ]
    functions = [_documented(writing.function(message), "Return the fields of the message.") for message in plan.all_messages]
    tables = [table for message in plan.messages if (table := writing.arms_table(message))]
    return "\n".join(head) + "\n" + "\n\n\n".join([*functions, *tables]) + "\n"


def _reading_file(plan: Plan) -> str:
    modules = _modules(plan)
    head = [
        _docstring("Messages as plain objects, as JSON would give them: what was left out is left out, and the contract checks the rest."),
        "from __future__ import annotations\n\nfrom typing import TYPE_CHECKING, Any\n\nimport msgspec\n",
        _words_import(plan, "WORDS"),
        "if TYPE_CHECKING:\n    from " + STUBS + " import " + ", ".join(sorted(set(modules.values()))) + "\n",
        "Fields = dict[str, Any]  # Any: numbers, texts, and more of these\n",
        "loads = msgspec.json.Decoder().decode\n\n",
    ]
    functions = [
        _documented(reading_function(message, message_class=f"{modules[message.name]}.{message.name}"), "Return what the message says.")
        for message in plan.all_messages
    ]
    return "\n".join(head) + "\n" + "\n\n\n".join(functions) + "\n"


def _conversion_file(plan: Plan) -> str:
    named = [message for message in plan.messages if message.module]
    rows = [
        f'    "{each.name}": ({each.name}, {_TYPES}.{each.name}, writing.write_{snake(each.name)}, reading.read_{snake(each.name)}),'
        for each in named
    ]
    return "\n".join(
        [
            _docstring("Every contract that has a message of its own, to its message and back."),
            "from __future__ import annotations\n\nfrom typing import TYPE_CHECKING, Any, Final\n",
            _imports(named),
            "from evidentia.contracts.decoding import convert\nfrom evidentia.protobuf import reading, writing",
            f"from {STUBS} import {_TYPES}\n",
            "if TYPE_CHECKING:\n    from collections.abc import Callable, Mapping\n",
            _ROW,
            "CONVERSIONS: Final[Mapping[str, Row]] = {",
            *rows,
            "}\n\n",
            _BOTH_WAYS,
        ]
    )


def _methods_file(plan: Plan) -> str:
    modules = _modules(plan)
    rows: list[str] = []
    for each in plan.methods:
        request, response = each.request.name, each.response.name
        rows += [
            "    Method(",
            f'        service="{each.service}",',
            f'        name="{each.name}",',
            f"        is_stream={each.is_stream},",
            f"        request={modules[request]}.{request},",
            f"        response={modules[response]}.{response},",
            f"        write_request=writing.write_{snake(request)},",
            f"        read_request=reading.read_{snake(request)},",
            f"        write_response=writing.write_{snake(response)},",
            f"        read_response=reading.read_{snake(response)},",
            "    ),",
        ]
    services = sorted({f"{snake(service)}_pb2" for service in plan.services})
    return "\n".join(
        [
            _docstring("Every method with its messages and their conversions, for servers and clients to go through."),
            "from __future__ import annotations\n\nfrom typing import TYPE_CHECKING, Any, Final, NamedTuple\n",
            f"from evidentia.protobuf import reading, writing\nfrom {STUBS} import {', '.join(services)}\n",
            "if TYPE_CHECKING:\n    from collections.abc import Callable\n\n",
            _METHOD_CLASS,
            "METHODS: Final = (",
            *rows,
            ")",
            "DESCRIPTORS: Final = (" + " ".join(f"{each}.DESCRIPTOR," for each in services) + ")",
            '"""The files that hold the services, for reflection."""\n',
        ]
    )


_WORDS_CLASS: Final = '''\
class Words(dict[int, str]):
    """The word of every number; one that nobody knows stays a number, and is refused as a word that nobody knows."""

    def __missing__(self, number: int) -> str:
        """Return the number itself."""
        return str(number)

'''
_ROW: Final = '''\
Row = tuple[Any, Any, "Callable[[Any], dict[str, Any]]", "Callable[[Any], Any]"]
"""A contract, the class of its message, and the functions that write and read it."""
'''
_BOTH_WAYS: Final = '''\
def to_message(name: str, it: object) -> Any:
    """Return the message of a contract, by its name."""
    _, message_class, write, _ = CONVERSIONS[name]
    return message_class(**write(it))


def from_message(name: str, message: Any) -> Any:
    """Return what a message says as its contract, checked as JSON is; raises msgspec.ValidationError."""
    contract, _, _, read = CONVERSIONS[name]
    return convert(read(message), contract)
'''
_METHOD_CLASS: Final = '''\
class Method(NamedTuple):
    """One method: `write_*` return what the class of the message takes as keywords, `read_*` plain objects as JSON gives them."""

    service: str
    name: str
    is_stream: bool
    request: Any
    response: Any
    write_request: Callable[[Any], dict[str, Any]]
    read_request: Callable[[Any], dict[str, Any]]
    write_response: Callable[[Any], dict[str, Any]]
    read_response: Callable[[Any], Any]

    @property
    def full_service(self) -> str:
        """Return the service as gRPC calls it."""
        return f"evidentia.v1.{self.service}"

    @property
    def path(self) -> str:
        """Return the method as gRPC calls it."""
        return f"/{self.full_service}/{self.name}"

'''


def _docstring(first: str) -> str:
    return f'"""{first}\n\n{_NOTE}\n"""\n'


def _documented(source: str, words: str) -> str:
    head, _, body = source.partition("\n")
    return f'{head}\n    """{words}"""\n{body}'


def _modules(plan: Plan) -> dict[str, str]:
    """Return the module that protoc puts each message into."""
    modules = {message.name: _TYPES for message in plan.messages}
    for method in plan.methods:
        modules[method.request.name] = modules[method.response.name] = f"{snake(method.service)}_pb2"
    return modules


def _union_members(plan: Plan) -> list[MessagePlan]:
    """Return the structs that a table names, and so are needed when the code runs."""
    by_name = {message.name: message for message in plan.messages}
    arms = [field for message in plan.messages if message.form is Form.UNION for field in message.fields]
    counted = [field for field in arms if field.shape.kind is Kind.MESSAGE and field.arm_of and not field.is_builtin]
    return [by_name[name] for name in sorted({field.shape.proto for field in counted})]


def _annotated(plan: Plan) -> list[MessagePlan]:
    needed = {message.name for message in _union_members(plan)}
    return [message for message in plan.messages if message.module and message.name not in needed]


def _imports(messages: Sequence[MessagePlan]) -> str:
    by_module: dict[str, list[str]] = {}
    for message in messages:
        by_module.setdefault(message.module, []).append(message.name)
    lines = [f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(by_module.items())]
    return "\n".join(lines)


def _words_import(plan: Plan, end: str) -> str:
    names: Iterable[str] = (f"    {snake(enum.name).upper()}_{end}," for enum in plan.enums)
    return "\n".join(["from evidentia.protobuf.words import (", *names, ")\n"])


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines()) + "\n"
