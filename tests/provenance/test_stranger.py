"""A stranger with docs/custody.md accepts what we export and rejects whatever was changed in it."""

from __future__ import annotations

import ast
import copy
import json
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import stranger

from evidentia import EvidenceResponse, FragmentExport, connect
from evidentia.engine.answer_verification import verify_response
from evidentia.provenance.verification import verify_export
from soak import IS_SOAKED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Return exports of several documents, as parsed JSON."""
    folder = tmp_path_factory.mktemp("stranger")
    (folder / "docs").mkdir()
    for number in range(5):
        paragraphs = "\n\n".join(f'Paragraph {each} of page {number}: naïve ☃ \t "quoted" \\ text.\r\n' * 8 for each in range(20))
        (folder / "docs" / f"{number}.md").write_bytes(f"---\ntitle: T\n---\n# Page {number}\n\n{paragraphs}".encode())
    with connect(folder / "base", init=True) as base:
        base.rotate_key()
        base.ingest([folder / "docs"], source="pages")
        chunk_ids = [chunk.chunk_id for number in range(5) for chunk in base.chunks(f"pages:{number}.md")]
        return [json.loads(msgspec.json.encode(base.export(chunk_id))) for chunk_id in chunk_ids]


def test_the_stranger_imports_nothing_of_ours() -> None:
    tree = ast.parse(Path(stranger.__file__).read_text())
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}

    assert imported <= sys.stdlib_module_names | {"__future__"}


def test_the_stranger_accepts_every_export(exports: list[dict[str, Any]]) -> None:
    assert len(exports) > 10
    assert [[]] * len(exports) == [stranger.problems(export) for export in exports]


def test_the_stranger_and_we_reject_every_mutation(exports: list[dict[str, Any]]) -> None:
    """Each scalar of an export is changed in turn, those of the signed head and its keys among them."""
    export = random.Random(1).choice(exports)
    missed = []
    for path in _scalars(export):
        mutated = copy.deepcopy(export)
        _change(mutated, path)
        if not stranger.problems(mutated):
            missed.append(("stranger", path))
        if _accept(mutated):
            missed.append(("we", path))

    assert [] == missed


# --- answers ---

UNCOVERED = {("latency_ms",), ("receipt_id",)}
"""What docs/custody.md says the hashes of an answer do not cover; a star stands for any name or number."""


class Wiki:
    """A source outside the base, with a lie in its reply."""

    def retrieve(self, query: str, *, limit: int) -> list[dict[str, object]]:
        said: list[dict[str, object]] = [
            {"id": str(each), "content": f"Said of {query}: {each} \N{SNOWMAN}.", "url": f"https://wiki/{each}"} for each in range(3)
        ]
        return [*said[:limit], {"content": ""}, {"content": "of unknown origin"}]


ASKED: dict[str, dict[str, Any]] = {
    "plain": {},
    "facets": {"facets": ["tags", "language", "source_id", "extra.none"], "explain": True, "limit": 3},
    "withheld": {"token_budget": 40, "limit": 9},
    "filtered": {"filter": 'language = "de" AND tags contains "a"', "facets": ["language"]},
    "policy": {"source_policy": {"denied_sources": ["notes"], "minimum_authority": "user"}},
    "denied": {"source_policy": {"allowed_sources": ["pages", "nowhere"]}},
    "everything": {"facets": ["tags"], "token_budget": 60, "filter": 'language = "en"', "explain": True, "limit": 4},
    "cut": {"token_budget": 54, "filter": 'document_id contains "policy"'},
    "late": {"latency_deadline_ms": 1},
    "outside": {"limit": 20, "as_of": "2100-01-01T00:00:00Z"},
    "outside again": {"limit": 20, "as_of": "2100-01-01T00:00:00Z", "token_budget": 200},
    "empty": {"filter": 'language = "fr"', "facets": ["language"]},
}


@pytest.fixture(scope="module")
def responses(tmp_path_factory: pytest.TempPathFactory) -> dict[str, EvidenceResponse]:
    """Return answers with everything an answer can have today."""
    folder = tmp_path_factory.mktemp("answers")
    for source, count in (("pages", 6), ("notes", 3)):
        (folder / source).mkdir()
        for number in range(count):
            front = f"---\nlanguage: {'de' if number % 2 else 'en'}\ntags: [a, t{number}]\n---\n"
            (folder / source / f"{number}.md").write_text(f'{front}Keys \N{SNOWMAN} \\ "{number}" rotate {"keys " * number}')
    for name, minutes in (("policy", 30), ("guide", 45)):
        told = f"Keys need a session. The session timeout is {minutes} minutes. It holds for all keys."
        (folder / "pages" / f"{name}.md").write_text(told)
    with connect(folder / "base", init=True) as base:
        for source in ("pages", "notes"):
            base.ingest([folder / source], source=source)
        base.add_source({"source_id": "wiki", "source_type": "api", "expected_p99_ms": 230}, Wiki())
        return {
            name: base.retrieve("keys", **{"as_of": "2026-01-01T00:00:00Z", "latency_deadline_ms": 20_000} | fields)
            for name, fields in ASKED.items()
        }


def test_the_stranger_accepts_every_answer(responses: dict[str, EvidenceResponse]) -> None:
    answers = {name: _parsed(response) for name, response in responses.items()}

    assert {name: [] for name in answers} == {name: stranger.answer_problems(answer) for name, answer in answers.items()}
    assert all(verify_response(response).ok for response in responses.values())
    assert answers["facets"]["facets"]["tags"]
    assert answers["withheld"]["withheld"]
    assert answers["denied"]["source_coverage"]["nowhere"]["state"] == "denied"
    assert answers["empty"]["fragments"] == []
    assert {"https://wiki/0"} <= {each["metadata"].get("origin") for each in answers["outside"]["fragments"]}
    assert answers["outside again"]["source_coverage"]["wiki"]["state"] == "cached"


def test_the_order_of_keys_in_json_does_not_matter(responses: dict[str, EvidenceResponse]) -> None:
    """JSON objects have no order, and many a tool sorts them."""
    for name, response in responses.items():
        reordered = json.loads(json.dumps(_parsed(response), sort_keys=True))

        assert stranger.answer_problems(reordered) == [], name
        assert _accept_answer(reordered), name


def test_conflicts_flags_and_cuts_are_among_what_is_checked(responses: dict[str, EvidenceResponse]) -> None:
    answers = responses.values()

    assert any(response.conflicts for response in answers)
    assert any(fragment.flags for response in answers for fragment in response.fragments)
    assert any(fragment.is_truncated and fragment.cut_off for response in answers for fragment in response.fragments)


@pytest.mark.parametrize("name", ASKED)
def test_every_scalar_of_an_answer_is_covered_or_listed_as_not(responses: dict[str, EvidenceResponse], name: str) -> None:
    assert [] == _missed(_parsed(responses[name]))


def test_what_is_listed_as_not_covered_occurs(responses: dict[str, EvidenceResponse]) -> None:
    """A field that is listed and never occurs would be a claim that nobody checks."""
    seen = {pattern for response in responses.values() for path in _scalars(_parsed(response)) if (pattern := _uncovered(path))}

    assert seen == UNCOVERED


def test_what_is_taken_out_put_in_or_moved_is_found(responses: dict[str, EvidenceResponse]) -> None:
    missed, tried = [], 0
    for name, response in responses.items():
        for label, mutated in _rearranged(_parsed(response)):
            tried += 1
            if not stranger.answer_problems(mutated):
                missed.append((name, label, "stranger"))
            if _accept_answer(mutated):
                missed.append((name, label, "we"))

    assert [] == missed
    assert tried > 100


def test_a_fragment_of_another_answer_does_not_fit(responses: dict[str, EvidenceResponse]) -> None:
    plain, other = _parsed(responses["plain"]), _parsed(responses["filtered"])
    plain["fragments"][0] = other["fragments"][-1]

    assert ["result", "response"] == stranger.answer_problems(plain)


def _parsed(response: EvidenceResponse) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(response.to_json())
    return parsed


def _missed(answer: dict[str, Any]) -> list[tuple[str, tuple[Any, ...]]]:
    """Change scalars in turn; return where a change of what is covered is accepted, or one of what is not is rejected.

    Of those that differ by places in lists alone, the first and the last are changed; each of them with EVIDENTIA_SOAK=full.
    """
    missed = []
    for path in _scalars(answer) if IS_SOAKED else _outermost(_scalars(answer)):
        mutated = copy.deepcopy(answer)
        _change(mutated, path)
        is_covered = _uncovered(path) is None
        if bool(stranger.answer_problems(mutated)) != is_covered:
            missed.append(("stranger", path))
        if is_covered and _accept_answer(mutated):
            missed.append(("we", path))
    return missed


def _outermost(paths: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the first and the last path of each form."""
    found: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for path in paths:
        form = tuple("*" if isinstance(step, int) else step for step in path)
        found.setdefault(form, []).append(path)
    return [path for alike in found.values() for path in dict.fromkeys((alike[0], alike[-1]))]


def _uncovered(path: tuple[Any, ...]) -> tuple[str, ...] | None:
    """Return the entry of the list that a path falls under."""
    fitting = (each for each in UNCOVERED if len(each) == len(path))
    return next((each for each in fitting if all(mark in ("*", step) for mark, step in zip(each, path, strict=True))), None)


def _rearranged(answer: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for field in ("fragments", "withheld"):
        given = answer[field]
        for number in range(len(given)):
            yield f"{field} without {number}", answer | {field: given[:number] + given[number + 1 :]}
            yield f"{field} with {number} twice", answer | {field: [*given, given[number]]}
        if len(given) > 1:
            yield f"{field} reversed", answer | {field: given[::-1]}
    for field in ("facets", "source_coverage"):
        for name in answer[field]:
            rest = {key: value for key, value in answer[field].items() if key != name}
            yield f"{field} without {name}", answer | {field: rest}
            yield f"{field} with {name} renamed", answer | {field: rest | {f"{name}x": answer[field][name]}}
    for name, counts in answer["facets"].items():
        yield f"{name} with another value", answer | {"facets": answer["facets"] | {name: counts | {"new": 1}}}
        for value in counts:
            rest = {key: count for key, count in counts.items() if key != value}
            yield f"{name} without {value}", answer | {"facets": answer["facets"] | {name: rest}}
    if answer["fragments"]:
        moved = {"chunk_id": answer["fragments"][0]["chunk_id"], "reason": "moved"}
        yield "a fragment withheld", answer | {"fragments": answer["fragments"][1:], "withheld": [*answer["withheld"], moved]}


def _accept_answer(mutated: dict[str, Any]) -> bool:
    try:
        return verify_response(msgspec.convert(mutated, EvidenceResponse)).ok
    except msgspec.ValidationError:
        return False


# --- changes ---


def _accept(mutated: dict[str, Any]) -> bool:
    try:
        return verify_export(msgspec.convert(mutated, FragmentExport)).ok
    except msgspec.ValidationError:
        return False


def _scalars(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # Any: JSON as parsed
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _scalars(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _scalars(inner, (*path, index))
    else:
        yield path


def _change(export: dict[str, Any], path: tuple[Any, ...]) -> None:
    *outer, last = path
    holder: Any = export
    for step in outer:
        holder = holder[step]
    value = holder[last]
    if isinstance(value, bool):
        holder[last] = not value
    elif isinstance(value, int):
        holder[last] = value + 1
    elif isinstance(value, str) and value and value[0] in "0123456789abcdef":
        holder[last] = ("1" if value[0] != "1" else "2") + value[1:]
    else:
        holder[last] = f"{value}x"
