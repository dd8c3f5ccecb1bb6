"""Threads that read messages of a type for the first time at the same moment all read them, and the process lives."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import tracemalloc
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.contracts.decoding import convert, decode_json, has_more_values, json_decoder, msgpack_decoder

if TYPE_CHECKING:
    from pathlib import Path

TOGETHER = """
    import sys, threading, msgspec
    from evidentia.contracts import decoding
    sys.setswitchinterval(1e-6)  # with msgspec.convert itself, this ends in a segmentation fault nearly always
    def fresh_type():
        kind = None
        for number in range(10):
            fields = [(f"field_{each}", int, 0) for each in range(20)]
            kind = msgspec.defstruct(f"Fresh{number}", fields + ([("inner", kind | None, None)] if kind else []))
        return kind
    def read(kind, ways, together, found):
        together.wait()
        found.append(ways[len(found) % len(ways)](kind))
    plain = {"field_0": 1, "inner": {"field_1": 2, "inner": {"field_3": 4}}}
    content = msgspec.json.encode(plain)
    ways = [
        lambda kind: decoding.convert(plain, kind),
        lambda kind: decoding.decode_json(content, kind),
        lambda kind: decoding.json_decoder(kind)(content),
        lambda kind: decoding.msgpack_decoder(kind)(msgspec.msgpack.encode(plain)),
    ]
    for _ in range(40):
        kind, together, found = fresh_type(), threading.Barrier(8), []
        threads = [threading.Thread(target=read, args=(kind, ways, together, found)) for _ in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert len(found) == 8 and all(each.inner.inner.field_3 == 4 for each in found)
"""
ASKING = """
    import sys
    from concurrent.futures import ThreadPoolExecutor
    from evidentia import connect
    sys.setswitchinterval(1e-6)
    with connect(sys.argv[1]) as base, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: base.retrieve("keys", mode="lexical", latency_deadline_ms=60_000, receipt=False), range(8)))
    assert {len(answer.fragments) for answer in answers} == {1}
"""


class Point(msgspec.Struct):
    """A message."""

    x: int


def test_threads_that_read_a_new_type_at_once_all_read_it() -> None:
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(TOGETHER)], capture_output=True, text=True, check=False)

    assert (0, "") == (ran.returncode, ran.stderr)


def test_threads_that_ask_a_new_process_at_once_are_all_answered(tmp_path: Path) -> None:
    from evidentia import connect

    (tmp_path / "keys.md").write_text("Keys are rotated every month.\n", encoding="utf-8")
    with connect(tmp_path / "base", init=True) as base:
        base.ingest([tmp_path / "keys.md"], embed=False)
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(ASKING), str(tmp_path / "base")], capture_output=True, text=True, check=False
    )

    assert (0, "") == (ran.returncode, ran.stderr)


def test_each_way_gives_the_message() -> None:
    point = Point(3)

    assert [point] * 4 == [
        convert({"x": 3}, Point),
        decode_json(b'{"x": 3}', Point),
        json_decoder(Point)(b'{"x": 3}'),
        msgpack_decoder(Point)(msgspec.msgpack.encode(point)),
    ]


def test_what_does_not_fit_is_refused_as_before() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"Expected `int`, got `str`"):
        convert({"x": "3"}, Point)
    assert Point(3) == convert({"x": "3"}, Point, strict=False)


# --- counting before reading ---


@given(
    st.recursive(
        st.none() | st.integers() | st.text(alphabet='a,[{"\\ \n'), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_values_are_counted_as_they_would_be_read(value: object) -> None:
    content = json.dumps(value).encode()
    count = count_of(value)

    assert not has_more_values(content, count)
    assert not count_at_least(value) > 1 or has_more_values(content, count_at_least(value) - 1)


def count_of(value: object) -> int:
    """Return how many commas and brackets stand outside of strings, and one."""
    if isinstance(value, list):
        return 1 + max(1, sum(map(count_of, value)))
    if isinstance(value, dict):
        return 1 + max(1, sum(map(count_of, value.values())))
    return 1


def count_at_least(value: object) -> int:
    """Return how many values there are."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(count_at_least, inner))


@pytest.mark.parametrize("content", [b"[" + b"{}," * 100_000 + b"{}]", b"[" * 100_000, b'["a' + b"\\" * 4 + b'",' + b"1," * 100_000])
def test_many_values_are_noticed_without_reading_them(content: bytes) -> None:
    tracemalloc.start()
    try:
        is_crowded = has_more_values(content, 50_000)
        held = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert is_crowded
    assert held < 10_000


def test_a_long_text_with_many_commas_is_one_value() -> None:
    assert not has_more_values(json.dumps({"text": "a, [b], {c}; " * 100_000}).encode(), 3)
