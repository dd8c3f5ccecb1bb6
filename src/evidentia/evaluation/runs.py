"""Ranked results of many queries, and TREC run files of them. Refuses a query that ranks one document twice.

A line is `query Q0 document rank score tag`. The rank column is the order; other tools sort by score and may break ties differently.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from evidentia.contracts.errors import InvalidFieldError

if TYPE_CHECKING:
    from pathlib import Path


DEFAULT_SCORE_BITS: Final = 16

_FIELD: Final = "run"
_COLUMNS: Final = ("query", "Q0", "document", "rank", "score", "tag")
_RANK: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
_SCORE: Final = re.compile(r"[+-]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)
_ESCAPES: Final = re.compile(r"(?:%[0-9A-F]{2})+", re.ASCII)


class ScoredDocument(NamedTuple):
    """A document with its fixed-point score; the score's unit is in the run."""

    document_id: str
    score: int


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What one system answered: documents best first, by query id. Scores are integers at 2^-score_bits."""

    tag: str
    rankings: Mapping[str, tuple[ScoredDocument, ...]]
    score_bits: int = DEFAULT_SCORE_BITS

    def ranked_ids(self) -> dict[str, tuple[str, ...]]:
        """Return the document ids of every query, best first; queries are sorted by id."""
        return {query_id: tuple(scored.document_id for scored in self.rankings[query_id]) for query_id in sorted(self.rankings)}


def render_run(run: Run) -> Iterator[str]:
    """Yield the lines of the TREC file without line ends: queries sorted by id, ranks from 1, scores as exact decimals.

    White space, unprintable characters and % in ids become escapes such as %20, so that there are always six columns. A query without
    results has no line: the format cannot express it.
    """
    tag = _escape(run.tag)
    for query_id in sorted(run.rankings):
        _check_unique(query_id, run.rankings[query_id])
        for rank, (document_id, score) in enumerate(run.rankings[query_id], start=1):
            yield f"{_escape(query_id)} Q0 {_escape(document_id)} {rank} {_exact_decimal(score, bits=run.score_bits)} {tag}"


def write_run(run: Run, path: Path) -> None:
    """Write the TREC file; the same run gives the same bytes."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in render_run(run))


def read_run(path: Path, *, score_bits: int = DEFAULT_SCORE_BITS) -> Run:
    """Return the run of a TREC file, ordered by the rank column; scores are rounded to 2^-score_bits, which never changes the order."""
    found: dict[str, dict[int, ScoredDocument]] = {}
    seen: set[tuple[str, str]] = set()
    tag: str | None = None
    for number, line in numbered_lines(path, field=_FIELD):
        query_id, rank, scored, own_tag = _parse_line(path, number, line, bits=score_bits)
        tag = own_tag if tag is None else tag
        if own_tag != tag:
            raise line_error(path, number, f"tag '{own_tag}' is not '{tag}' as on the lines before", field=_FIELD)
        if rank in found.setdefault(query_id, {}):
            raise line_error(path, number, f"query '{query_id}' has rank {rank} twice", field=_FIELD)
        if (query_id, scored.document_id) in seen:
            raise line_error(path, number, f"query '{query_id}' ranks document '{scored.document_id}' twice", field=_FIELD)
        found[query_id][rank] = scored
        seen.add((query_id, scored.document_id))
    if tag is None:
        raise InvalidFieldError(_FIELD, f"'{path}' holds no results")
    rankings = {query_id: tuple(found[query_id][rank] for rank in sorted(found[query_id])) for query_id in sorted(found)}
    return Run(tag=tag, rankings=rankings, score_bits=score_bits)


def _parse_line(path: Path, number: int, line: str, *, bits: int) -> tuple[str, int, ScoredDocument, str]:
    columns = re.split(r"[ \t]+", line.strip(" \t"))
    if len(columns) != len(_COLUMNS):
        problem = f"expected the 6 columns '{' '.join(_COLUMNS)}', found {len(columns)}; a space within an id is written as %20"
        raise line_error(path, number, problem, field=_FIELD)
    query_id, _, document_id, rank, score, tag = columns
    if not _RANK.fullmatch(rank):
        raise line_error(path, number, f"rank '{rank}' is not a number from 0", field=_FIELD)
    if not _SCORE.fullmatch(score):
        raise line_error(path, number, f"score '{score}' is not a finite decimal", field=_FIELD)
    fixed = math.floor(Fraction(score) * (1 << bits) + Fraction(1, 2))
    return _unescape(query_id), int(rank), ScoredDocument(_unescape(document_id), fixed), _unescape(tag)


def _check_unique(query_id: str, ranking: tuple[ScoredDocument, ...]) -> None:
    seen: set[str] = set()
    for document_id, _ in ranking:
        if document_id in seen:
            raise InvalidFieldError(_FIELD, f"query '{query_id}' ranks document '{document_id}' twice")
        seen.add(document_id)


def _exact_decimal(score: int, *, bits: int) -> str:
    whole, rest = divmod(abs(score), 1 << bits)
    # rest / 2^bits = rest * 5^bits / 10^bits, so `bits` digits are always enough.
    digits = str(rest * 5**bits).zfill(bits).rstrip("0") if rest else "0"
    return f"{'-' if score < 0 else ''}{whole}.{digits}"


def _escape(name: str) -> str:
    if not name:
        raise InvalidFieldError(_FIELD, "an empty id or tag cannot be a column of a run file")
    return "".join(_escape_character(character) for character in name)


def _escape_character(character: str) -> str:
    if character.isprintable() and not character.isspace() and character != "%":
        return character
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))


def _unescape(column: str) -> str:
    try:
        name = _ESCAPES.sub(lambda escapes: bytes.fromhex(escapes[0].replace("%", "")).decode("utf-8", "surrogatepass"), column)
    except UnicodeDecodeError:
        return column
    # Other tools write ids as they are: what our writer would not have written, such as '50%' or 'a%2Fb', stays as it stands.
    return name if name and _escape(name) == column else column


# --- lines ---
# Text files line by line, so that an error can name the file and the line. Refuses bytes that are not UTF-8.

_BYTE_ORDER_MARK = "\ufeff"


def numbered_lines(path: Path, *, field: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank with their numbers from 1, one at a time; line ends may be LF or CRLF."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                text = _decode(line, path, number, field=field)
                if text.strip():
                    yield number, text
    except OSError as error:
        raise InvalidFieldError(field, f"'{path}' cannot be read: {error.strerror}") from error


def line_error(path: Path, number: int, problem: str, *, field: str) -> InvalidFieldError:
    """Return the error that names the file, the line and what is wrong with it."""
    return InvalidFieldError(field, f"'{path}', line {number}: {problem}")


def _decode(line: bytes, path: Path, number: int, *, field: str) -> str:
    try:
        text = line.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise line_error(path, number, f"byte {error.start + 1} is not UTF-8", field=field) from error
    return text.removeprefix(_BYTE_ORDER_MARK) if number == 1 else text
