"""The dispatcher against every example of the specification (https://www.jsonrpc.org/specification, section 7), and what it leaves open."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.serving.jsonrpc.dispatch import INVALID_PARAMS, MAX_AT_ONCE, MAX_IN_BATCH, RpcMethod, dispatch, failure


async def subtract(raw: bytes) -> bytes:
    params = json.loads(raw)
    return json.dumps(params["minuend"] - params["subtrahend"]).encode()


async def add_up(raw: bytes) -> bytes:
    return json.dumps(sum(json.loads(raw).values())).encode()


async def get_data(_: bytes) -> bytes:
    return b'["hello", 5]'


async def nothing(_: bytes) -> bytes:
    return b"null"


async def fail(_: bytes) -> bytes:
    raise failure(INVALID_PARAMS, "invalid_field", "field 'x': no", hint="correct it")


METHODS = {
    "subtract": RpcMethod(subtract, order=("minuend", "subtrahend")),
    "sum": RpcMethod(add_up, order=("a", "b", "c")),
    "update": RpcMethod(nothing, order=("a", "b", "c", "d", "e")),
    "notify_hello": RpcMethod(nothing, order=("a",)),
    "notify_sum": RpcMethod(add_up, order=("a", "b", "c")),
    "get_data": RpcMethod(get_data),
    "echo": RpcMethod(lambda raw: asyncio.sleep(0, raw)),
    "fail": RpcMethod(fail),
}


def called(raw: str | bytes, methods: dict[str, RpcMethod] | None = None) -> Any:
    """Return the answer, with errors as the specification shows them: without `data`, which it leaves to servers."""
    content = asyncio.run(dispatch(raw if isinstance(raw, bytes) else raw.encode(), METHODS if methods is None else methods))
    if content is None:
        return None
    answer = json.loads(content)
    for each in answer if isinstance(answer, list) else [answer]:
        if "error" in each:
            assert {"code", "message", "data"} == set(each["error"])
            del each["error"]["data"]
    return answer


def error(code: int, message: str, reply_to: object = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "error": {"code": code, "message": message}, "id": reply_to}


PARSE_ERROR = error(-32700, "Parse error")
INVALID_REQUEST = error(-32600, "Invalid Request")
BATCH = """[
        {"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},
        {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]},
        {"jsonrpc": "2.0", "method": "subtract", "params": [42,23], "id": "2"},
        {"foo": "boo"},
        {"jsonrpc": "2.0", "method": "foo.get", "params": {"name": "myself"}, "id": "5"},
        {"jsonrpc": "2.0", "method": "get_data", "id": "9"}
    ]"""
BATCH_ANSWER = [
    {"jsonrpc": "2.0", "result": 7, "id": "1"},
    {"jsonrpc": "2.0", "result": 19, "id": "2"},
    INVALID_REQUEST,
    error(-32601, "Method not found", "5"),
    {"jsonrpc": "2.0", "result": ["hello", 5], "id": "9"},
]
NOTIFICATIONS = """[
        {"jsonrpc": "2.0", "method": "notify_sum", "params": [1,2,4]},
        {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]}
    ]"""
SPECIFIED: list[tuple[str, str, Any]] = [
    (
        "positional",
        '{"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1}',
        {"jsonrpc": "2.0", "result": 19, "id": 1},
    ),
    (
        "positional, the other way round",
        '{"jsonrpc": "2.0", "method": "subtract", "params": [23, 42], "id": 2}',
        {"jsonrpc": "2.0", "result": -19, "id": 2},
    ),
    (
        "named",
        '{"jsonrpc": "2.0", "method": "subtract", "params": {"subtrahend": 23, "minuend": 42}, "id": 3}',
        {"jsonrpc": "2.0", "result": 19, "id": 3},
    ),
    (
        "named, the other way round",
        '{"jsonrpc": "2.0", "method": "subtract", "params": {"minuend": 42, "subtrahend": 23}, "id": 4}',
        {"jsonrpc": "2.0", "result": 19, "id": 4},
    ),
    ("notification", '{"jsonrpc": "2.0", "method": "update", "params": [1,2,3,4,5]}', None),
    ("notification of what is not there", '{"jsonrpc": "2.0", "method": "foobar"}', None),
    ("no such method", '{"jsonrpc": "2.0", "method": "foobar", "id": "1"}', error(-32601, "Method not found", "1")),
    ("invalid JSON", '{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]', PARSE_ERROR),
    ("invalid request", '{"jsonrpc": "2.0", "method": 1, "params": "bar"}', INVALID_REQUEST),
    (
        "batch of invalid JSON",
        '[{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},{"jsonrpc": "2.0", "method"]',
        PARSE_ERROR,
    ),
    ("empty batch", "[]", INVALID_REQUEST),
    ("invalid batch that is not empty", "[1]", [INVALID_REQUEST]),
    ("invalid batch", "[1,2,3]", [INVALID_REQUEST] * 3),
    ("batch", BATCH, BATCH_ANSWER),
    ("batch of notifications", NOTIFICATIONS, None),
]


@pytest.mark.parametrize(("raw", "expected"), [pytest.param(raw, expected, id=name) for name, raw, expected in SPECIFIED])
def test_an_example_of_the_specification(raw: str, expected: Any) -> None:
    assert expected == called(raw)


INVALID = [
    ("1", None),
    ('"x"', None),
    ("null", None),
    ("{}", None),
    ('{"method": "get_data", "id": 1}', None),
    ('{"jsonrpc": 2.0, "method": "get_data", "id": 1}', None),
    ('{"jsonrpc": "1.0", "method": "get_data", "id": 1}', None),
    ('{"jsonrpc": "2.0", "id": 1}', 1),
    ('{"jsonrpc": "2.0", "method": null, "id": 1}', 1),
    ('{"jsonrpc": "2.0", "method": "get_data", "params": null, "id": 1}', 1),
    ('{"jsonrpc": "2.0", "method": "get_data", "params": 5, "id": "x"}', "x"),
    ('{"jsonrpc": "2.0", "method": "get_data", "id": {}}', None),
    ('{"jsonrpc": "2.0", "method": "get_data", "id": [1]}', None),
    ('{"jsonrpc": "2.0", "method": "get_data", "id": true}', None),
]


@pytest.mark.parametrize(("raw", "reply_to"), INVALID)
def test_what_is_no_call_is_told_so_with_its_id_where_it_has_one(raw: str, reply_to: object) -> None:
    assert error(-32600, "Invalid Request", reply_to) == called(raw)


@pytest.mark.parametrize("reply_to", ["1", '"a"', "null", "-3", "1.5", "123456789012345678901234567890", '"\\u00e9"'])
def test_an_id_comes_back_as_it_was_sent(reply_to: str) -> None:
    content = asyncio.run(dispatch(b' { "jsonrpc" : "2.0" , "method":"get_data", "id" : %s }' % reply_to.encode(), METHODS))

    assert content is not None
    assert content.endswith(b'"id":%s}' % reply_to.encode())


@pytest.mark.parametrize("raw", [b"", b" ", b"\xff", b'{"jsonrpc": "2.0", "x": "\xff"}', b"[" * 100_000, b"\xef\xbb\xbf{}", b"{} {}"])
def test_what_is_no_json_is_a_parse_error(raw: bytes) -> None:
    assert PARSE_ERROR == called(raw)


def test_parameters_by_position_need_an_order_and_not_more_than_it_names() -> None:
    refused = error(-32602, "Invalid params", 1)

    assert refused == called('{"jsonrpc": "2.0", "method": "echo", "params": [1], "id": 1}')
    assert refused == called('{"jsonrpc": "2.0", "method": "sum", "params": [1, 2, 3, 4], "id": 1}')
    assert {} == called('{"jsonrpc": "2.0", "method": "echo", "params": [], "id": 1}')["result"]
    assert 3 == called('{"jsonrpc": "2.0", "method": "sum", "params": [1, 2], "id": 1}')["result"]


def test_a_notification_that_fails_is_silent_and_a_call_is_not() -> None:
    assert None is called('{"jsonrpc": "2.0", "method": "fail"}')
    assert error(-32602, "Invalid params", None) == called('{"jsonrpc": "2.0", "method": "fail", "id": null}')


def test_a_batch_has_a_largest_size() -> None:
    call = '{"jsonrpc": "2.0", "method": "get_data", "id": 1}'

    assert MAX_IN_BATCH == len(called(f"[{','.join([call] * MAX_IN_BATCH)}]"))
    assert INVALID_REQUEST == called(f"[{','.join([call] * (MAX_IN_BATCH + 1))}]")


@pytest.mark.parametrize("params", [b"[%s]", b'{"jsonrpc": "2.0", "method": "echo", "id": 1, "params": [%s]}'])
def test_a_million_calls_or_parameters_take_no_memory(params: bytes) -> None:
    raw = params % b",".join([b"1"] * 1_000_000)
    tracemalloc.start()
    answer = called(raw)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert answer["error"]["code"] in {-32600, -32602}
    assert most < 5 * len(raw)


def test_reads_of_a_batch_run_together_and_a_write_runs_alone_in_its_place() -> None:
    running = 0
    seen: list[tuple[str, int]] = []

    async def observe(name: str) -> bytes:
        nonlocal running
        running += 1
        for _ in range(5):
            await asyncio.sleep(0)
        seen.append((name, running))
        for _ in range(5):
            await asyncio.sleep(0)
        running -= 1
        return b"null"

    methods = {"read": RpcMethod(lambda _: observe("read")), "write": RpcMethod(lambda _: observe("write"), is_writing=True)}
    order = ["read"] * 3 + ["write"] * 2 + ["read"] * 20
    calls = [{"jsonrpc": "2.0", "method": name, "id": place} for place, name in enumerate(order)]
    answers = called(json.dumps(calls), methods)

    assert list(range(len(order))) == [each["id"] for each in answers]
    assert order == [name for name, _ in seen]
    assert [3] * 3 + [1] * 2 == [at_once for _, at_once in seen[:5]]
    assert MAX_AT_ONCE == max(at_once for _, at_once in seen)


@given(
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
)
def test_any_json_gets_an_answer_of_the_protocol(sent: object) -> None:
    answer = called(json.dumps(sent))

    for each in answer if isinstance(answer, list) else [answer]:
        assert (-32600, None) == (each["error"]["code"], each["id"])


@given(st.dictionaries(st.text(min_size=1), st.integers() | st.text() | st.lists(st.booleans())))
def test_named_parameters_arrive_as_they_were_sent(params: dict[str, Any]) -> None:
    assert params == called(json.dumps({"jsonrpc": "2.0", "method": "echo", "params": params, "id": 0}))["result"]
