"""The canonical form is RFC 8785's, byte for byte."""

from __future__ import annotations

import random
import string
from typing import TYPE_CHECKING

import msgspec
import pytest
import rfc8785

from evidentia.contracts import canonical
from evidentia.contracts.errors import InvalidFieldError
from soak import cases

if TYPE_CHECKING:
    from collections.abc import Callable

RECORDS = cases(20_000, of=100_000)
ALPHABET = [
    *string.printable,
    *map(chr, range(0x20)),
    *"\x7f\x80\u00e9\u0301\u200b\u2028\u2029\ufeff\ufffd\uffff",
    *"\U0001f600\U0010ffff",
    '"',
    "\\",
    "/",
    "<",
    "\u0430",
    "\u4e2d",
]


def _value(chance: random.Random, depth: int) -> object:
    makers: list[Callable[[], object]] = [
        lambda: "".join(chance.choices(ALPHABET, k=chance.randrange(12))),
        lambda: chance.choice([0, -1, 1, 2**53 - 1, -(2**53) + 1, chance.randrange(-(10**9), 10**9)]),
        lambda: chance.random() < 0.5,
        lambda: None,
        lambda: "",
        lambda: [_value(chance, depth - 1) for _ in range(chance.randrange(4))],
        lambda: _record(chance, depth - 1),
    ]
    return chance.choice(makers if depth else makers[:5])()


def _record(chance: random.Random, depth: int) -> dict[str, object]:
    keys = {"".join(chance.choices(string.printable[:95], k=chance.randrange(1, 6))) for _ in range(chance.randrange(5))}
    return {key: _value(chance, depth) for key in sorted(keys, key=lambda _: chance.random())}


def test_random_records_encode_as_the_reference_does() -> None:
    chance = random.Random(8785)
    differing = 0
    for _ in range(RECORDS):
        record = _record(chance, 3)
        differing += canonical.encode_record(record) != rfc8785.dumps(record)  # type: ignore[arg-type]  # its own JSON alias

    assert 0 == differing


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (0.5, r"field '\$.a\[0\]': canonical records hold only .*, not float"),
        (2**53, r"field '\$.a\[0\]': 9007199254740992 is outside the safe integers of JSON"),
        (b"x", "not bytes"),
        ({"é": 1}, "key 'é' is not an ASCII string"),
        ({1: 1}, "key 1 is not an ASCII string"),
        ("\ud800", "unpaired surrogate"),
    ],
)
def test_what_has_no_canonical_form_is_refused_by_name(value: object, problem: str) -> None:
    with pytest.raises(InvalidFieldError, match=problem):
        canonical.encode_record({"a": [value]})


def test_messages_that_are_hashed_hold_no_floats() -> None:
    """`encode_struct` does not look; this test does, for every type that is hashed."""
    from evidentia.contracts.provenance import CommitRecord, DocumentCustody, IngestEvent
    from evidentia.contracts.sources import SourceDescriptor
    from evidentia.provenance.corpus_hash import CorpusMember

    for kind in (CommitRecord, DocumentCustody, IngestEvent, SourceDescriptor, CorpusMember):
        schema = msgspec.json.encode(msgspec.json.schema(kind))
        assert b'"type":"number"' not in schema, kind
