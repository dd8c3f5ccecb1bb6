"""Everything a source proposes passes here: it is read, cleaned, bounded and given an identity, or refused and counted.

A source that lies is contained and reported, never raised for. What it says of its own authority is not heard, its scores only
order its own reply, and its access rules can only be stricter than the source's.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple, TypeGuard
from unicodedata import unidata_version

import msgspec

from evidentia.contracts.access import AccessRule
from evidentia.contracts.canonical import encode_struct, sha256_hex
from evidentia.contracts.evidence import SCORE_ONE
from evidentia.contracts.ids import chunk_id_of, document_id_of
from evidentia.contracts.retrieval import Candidate, ExternalCandidate, SourceAsk
from evidentia.contracts.vocabulary import ContentType
from evidentia.provenance.custody_chain import INTAKE_TOOL, INTAKE_VERSION
from evidentia.provenance.custody_exchange import FAULT_KEY
from evidentia.sources import intake_fields as values
from evidentia.sources.intake_fields import (
    CUT_FLAG,
    MAX_ID_CHARS,
    MAX_ORIGIN_CHARS,
    MAX_TITLE_CHARS,
    NO_ORIGIN_FLAG,
    PLAIN_TEXT,
    Fault,
    RefusedError,
    clean_text,
    cut_text,
    is_clean_line,
    read_metadata,
)

if TYPE_CHECKING:
    from evidentia.contracts.settings import SourceSettings
    from evidentia.contracts.sources import SourceDescriptor


_MILLION: Final = 1_000_000
_CLEANED: Final = 4
"""This many times the characters that are kept are cleaned, since cleaning makes a text shorter."""


class Taken(NamedTuple):
    """What came in: candidates in the source's order, what was wrong and how often, and whether some of the reply was not read."""

    candidates: tuple[ExternalCandidate, ...]
    faults: Mapping[str, int]
    is_cut: bool


class _Accepted(NamedTuple):
    candidate: ExternalCandidate
    """Ranked as it came; its rank is known at the end."""
    score: int | None
    """At 2^-32."""


def intake_identity(settings: SourceSettings) -> str:
    """Return a word that is another one whenever the intake may make something else of the same reply."""
    limits = (settings.most_candidates, settings.most_chars, settings.most_reply_chars)
    return f"{INTAKE_TOOL}/{INTAKE_VERSION} unicode/{unidata_version} {'/'.join(map(str, limits))}"


class Intake:
    """Takes in the reply of one source to one question. One thread gives; any thread may ask at any moment what has come so far.

    What `admits` refuses, because of the rule it came with, leaves no trace but the room it took.
    """

    def __init__(
        self,
        descriptor: SourceDescriptor,
        ask: SourceAsk,
        *,
        settings: SourceSettings,
        now: Callable[[], datetime],
        admits: Callable[[ExternalCandidate], bool] | None = None,
    ) -> None:
        self._admits = admits
        self._source_id, self._authority_tier = descriptor.source_id, descriptor.authority_tier
        self._query, self._as_of = ask.query.text, ask.as_of
        self._now = now
        self._most_candidates, self._most_chars = settings.most_candidates, settings.most_chars
        self._most_reply_chars = settings.most_reply_chars
        self._least = AccessRule(tenant=ask.principal.tenant, classification=descriptor.access_policy.minimum_clearance)
        self._lock = threading.Lock()
        self._accepted: list[_Accepted] = []
        self._faults: Counter[Fault] = Counter()
        self._proposals = 0
        self._chars = 0
        self._is_cut = False

    def take(self, proposed: object) -> bool:
        """Read one proposal; False means that a limit is reached and nothing more will be read. Never raises for what a source does."""
        if self._is_cut:
            return False
        if self._proposals >= self._most_candidates:
            return self._stop(Fault.TOO_MANY)
        left = self._most_reply_chars - self._chars
        if left <= 0:
            return self._stop(Fault.REPLY_TOO_LARGE)
        self._proposals += 1
        faults: list[Fault] = []
        plain = read_plain(proposed, most=min(left, self._most_chars), latest=self._as_of)
        accepted = self._read(proposed, most=left, faults=faults) if plain is None else self._accept_plain(plain)
        if accepted is not None and self._admits is not None and not self._admits(accepted.candidate):
            return True  # the caller may not see it, so nothing is said of it
        with self._lock:
            if accepted is not None:
                self._accepted.append(accepted)
            if faults:
                self._faults.update(faults)
                self._is_cut = Fault.REPLY_TOO_LARGE in faults
        return not self._is_cut

    def finished(self) -> Taken:
        """Return what has come in so far."""
        with self._lock:
            accepted, faults, is_cut = list(self._accepted), dict(self._faults), self._is_cut
        kept = _in_order(accepted)
        if len(kept) < len(accepted):
            faults[Fault.DUPLICATE_ID] = len(accepted) - len(kept)
        candidates = tuple([_ranked(each, rank) for rank, each in enumerate(kept, start=1)])
        return Taken(candidates=candidates, faults={fault.value: faults[fault] for fault in sorted(faults)}, is_cut=is_cut)

    def _accept_plain(self, plain: Plain) -> _Accepted:
        """Do what `_accept` does where every field is what it should be."""
        content, own_id, score, origin, title, updated_at, content_type = plain
        self._chars += len(content) + len(origin) + len(title)
        source_id = self._source_id
        content_bytes = content.encode()
        content_hash = sha256_hex(content_bytes)
        document_id = document_id_of(source_id, own_id or content_hash)
        candidate = ExternalCandidate(
            chunk_id=chunk_id_of(document_id, position=0, content_hash=content_hash),
            document_id=document_id,
            source_id=source_id,
            content=content,
            content_hash=content_hash,
            received_hash=content_hash,
            received_length=len(content_bytes),
            rank=len(self._accepted) + 1,
            query=self._query,
            origin=origin,
            retrieved_at=self._now(),
            updated_at=updated_at,
            title=title,
            content_type=content_type,
            authority_tier=self._authority_tier,
            access=self._least,
            flags=() if origin else (NO_ORIGIN_FLAG,),
        )
        return _Accepted(candidate, score)

    def _stop(self, fault: Fault) -> bool:
        with self._lock:
            self._faults[fault] += 1
            self._is_cut = True
        return False

    def _read(self, proposed: object, *, most: int, faults: list[Fault]) -> _Accepted | None:
        try:
            _refuse_broken(proposed)
            return self._accept(fields_of(proposed), most=most, faults=faults)
        except RefusedError as refused:
            faults.append(refused.fault)
        except Exception:  # noqa: BLE001  # a proposal is an object of the source's, and any method of it may raise anything
            faults.append(Fault.UNREADABLE)
        return None

    def _accept(self, fields: Fields, *, most: int, faults: list[Fault]) -> _Accepted:
        received, is_unread = values.read_content(fields.content, most=most)
        self._chars += len(received)
        if is_unread:
            faults.append(Fault.REPLY_TOO_LARGE)
        max_kept = self._most_chars
        cleaned = clean_text(received[: max_kept * _CLEANED])
        content = cut_text(cleaned, most=max_kept)
        if not content.strip():
            raise RefusedError(Fault.EMPTY)
        is_cut = is_unread or len(received) > max_kept * _CLEANED or len(content) < len(cleaned)
        if is_cut:
            faults.append(Fault.TOO_LONG)
        score = values.read_share(fields.score, scale=SCORE_ONE, fault=Fault.BAD_SCORE, faults=faults)
        candidate = self._candidate(fields, content=content, received=received, is_cut=is_cut, faults=faults)
        self._chars += _described_chars(candidate)
        return _Accepted(candidate=candidate, score=score)

    def _candidate(self, fields: Fields, *, content: str, received: str, is_cut: bool, faults: list[Fault]) -> ExternalCandidate:
        source_id = self._source_id
        content_bytes = content.encode()
        content_hash = sha256_hex(content_bytes)
        received_bytes = content_bytes if received == content else received.encode("utf-8", "surrogatepass")
        origin = values.read_line(fields.origin, most=values.MAX_ORIGIN_CHARS, fault=Fault.BAD_ORIGIN, faults=faults)
        document_id = document_id_of(source_id, values.read_id(fields.own_id, faults) or content_hash)
        return ExternalCandidate(
            chunk_id=chunk_id_of(document_id, position=0, content_hash=content_hash),
            document_id=document_id,
            source_id=source_id,
            content=content,
            content_hash=content_hash,
            received_hash=content_hash if received_bytes is content_bytes else sha256_hex(received_bytes),
            received_length=len(received_bytes),
            rank=len(self._accepted) + 1,
            query=self._query,
            origin=origin,
            retrieved_at=self._now(),
            updated_at=values.read_moment(fields.updated_at, latest=self._as_of, faults=faults),
            title=values.read_line(fields.title, most=values.MAX_TITLE_CHARS, fault=Fault.BAD_TITLE, faults=faults),
            media_type=values.read_media_type(fields.media_type, faults),
            content_type=values.read_content_type(fields.content_type, faults),
            authority_tier=self._authority_tier,
            access=values.read_access(fields.access, least=self._least),
            confidence_millionths=values.read_share(fields.confidence, scale=_MILLION, fault=Fault.BAD_CONFIDENCE, faults=faults),
            metadata=read_metadata(fields.metadata, faults),
            flags=((CUT_FLAG,) if is_cut else ()) + (() if origin else (NO_ORIGIN_FLAG,)),
        )


def _refuse_broken(proposed: object) -> None:
    """Refuse what stands for a fragment whose custody was found broken (`provenance.exchange`)."""
    if isinstance(proposed, Candidate) and FAULT_KEY in proposed.metadata:
        raise RefusedError(Fault.BROKEN_CUSTODY)


def _in_order(accepted: list[_Accepted]) -> list[ExternalCandidate]:
    """Return one candidate per id, best first: by score where all have one, else as they came.

    Of several with one id the first of that order stays, so that with scores the order of arrival has no say at all.
    """
    is_scored = None not in [each.score for each in accepted]
    ordered = sorted(accepted, key=_standing) if is_scored else accepted
    if len({each.candidate.document_id for each in ordered}) == len(ordered):
        return [each.candidate for each in ordered]
    kept: dict[str, _Accepted] = {}
    for each in ordered:
        first = kept.setdefault(each.candidate.document_id, each)
        if is_scored and first is not each and _standing(first) == _standing(each):
            kept[each.candidate.document_id] = min(first, each, key=lambda one: encode_struct(_ranked(one.candidate, 0)))
    return [each.candidate for each in kept.values()]


def _ranked(candidate: ExternalCandidate, rank: int) -> ExternalCandidate:
    return candidate if candidate.rank == rank else msgspec.structs.replace(candidate, rank=rank)


def _standing(accepted: _Accepted) -> tuple[int, str]:
    return -(accepted.score or 0), accepted.candidate.chunk_id


def _described_chars(candidate: ExternalCandidate) -> int:
    if not candidate.metadata:
        return len(candidate.origin) + len(candidate.title)
    return len(candidate.origin) + len(candidate.title) + sum(len(name) + len(value) for name, value in candidate.metadata.items())


# --- intake plain ---
# The short way into the base: tells at once that nothing of a proposal would have to be cleaned, cut, put right or left out.
#
# It only ever says yes where the readers in `intake_values` would return what they were given. Every field is read once.

Plain = tuple[str, str, int | None, str, str, datetime | None, ContentType]
"""Content, own id, score at 2^-32, origin, title, date and kind of a proposal that is taken as it stands."""


def read_plain(proposed: object, *, most: int, latest: datetime) -> Plain | None:
    """Return what a `Candidate` of at most `most` characters says, if it is plain; None says nothing."""
    if type(proposed) is not Candidate:
        return None
    fields = msgspec.structs.astuple(proposed)
    content, own_id, score, origin, title, updated_at, media_type, content_type, confidence, access, metadata = fields
    is_plain = (
        _is_plain_text(content, most=most)
        and is_clean_line(own_id, most=MAX_ID_CHARS)
        and is_clean_line(origin, most=MAX_ORIGIN_CHARS)
        and type(title) is str
        and (not title or is_clean_line(title, most=MAX_TITLE_CHARS))
        and (updated_at is None or (type(updated_at) is datetime and updated_at.tzinfo is UTC and updated_at <= latest))
        and (score is None or (type(score) is float and 0 <= score <= 1))
        and type(content_type) is ContentType
        and type(media_type) is str
        and media_type == PLAIN_TEXT
        and confidence is None
        and access is None
        and type(metadata) is dict
        and not metadata
    )
    if not is_plain:
        return None
    return content, own_id, None if score is None else round(score * SCORE_ONE), origin, title, updated_at, content_type


def _is_plain_text(value: object, *, most: int) -> TypeGuard[str]:
    return type(value) is str and len(value) <= most and clean_text(value) == value and not value.isspace() and value != ""


# --- intake shapes ---
# The shapes in which a candidate may come, each read into the same fields. Refuses to guess at anything else.
#
# Read are: `Candidate`; a mapping; a text, or bytes; a pair of one of these and its score; and objects with the attributes of a document
# of LangChain (`page_content`), a node of LlamaIndex (`get_content()`, alone or under `node`) or a document of Haystack (`content`).

_ABSENT: Final = object()
_PAIR: Final = 2

_CONTENT_NAMES: Final = ("content", "text", "page_content", "body")
_ID_NAMES: Final = ("own_id", "chunk_id", "id", "_id")
_ORIGIN_NAMES: Final = ("origin", "source", "url", "uri")
_ORIGIN_IN_METADATA: Final = ("origin", "source", "url", "uri", "file_path")


class Fields(NamedTuple):
    """What a source says of a candidate, not yet believed."""

    content: object
    own_id: object = None
    score: object = None
    origin: object = None
    title: object = None
    updated_at: object = None
    media_type: object = None
    content_type: object = None
    confidence: object = None
    access: object = None
    metadata: object = None


def fields_of(proposed: object) -> Fields:
    """Return the fields of a proposal in any of the shapes, or raise RefusedError."""
    if isinstance(proposed, tuple) and len(proposed) == _PAIR:
        return _single_fields(proposed[0])._replace(score=proposed[1])
    return _single_fields(proposed)


def _single_fields(proposed: object) -> Fields:
    if isinstance(proposed, Candidate):
        return Fields(
            proposed.content,
            proposed.own_id,
            proposed.score,
            proposed.origin,
            proposed.title,
            proposed.updated_at,
            proposed.media_type,
            proposed.content_type,
            proposed.confidence,
            proposed.access,
            proposed.metadata,
        )
    if isinstance(proposed, (str, bytes, bytearray)):
        return Fields(content=proposed)
    if isinstance(proposed, Mapping):
        return _with_metadata(_mapping_fields(proposed))
    return _with_metadata(_object_fields(proposed))


def _mapping_fields(proposed: Mapping[object, object]) -> Fields:
    content = _first(proposed, _CONTENT_NAMES)
    if content is None:
        raise RefusedError(Fault.NOT_A_CANDIDATE)
    others = {name: proposed.get(name) for name in ("score", "title", "updated_at", "media_type", "content_type", "confidence", "access")}
    return Fields(
        content=content,
        own_id=_first(proposed, _ID_NAMES),
        origin=_first(proposed, _ORIGIN_NAMES),
        metadata=_first(proposed, ("metadata", "meta")),
        **others,
    )


def _object_fields(proposed: object) -> Fields:
    content = getattr(proposed, "page_content", _ABSENT)
    if content is not _ABSENT:
        return Fields(content=content, own_id=getattr(proposed, "id", None), metadata=getattr(proposed, "metadata", None))
    node = getattr(proposed, "node", proposed)
    get_content = getattr(node, "get_content", None)
    if callable(get_content):
        own_id, metadata = getattr(node, "node_id", None), getattr(node, "metadata", None)
        return Fields(content=get_content(), own_id=own_id, metadata=metadata, score=getattr(proposed, "score", None))
    content = getattr(proposed, "content", _ABSENT)
    if content is _ABSENT:
        raise RefusedError(Fault.NOT_A_CANDIDATE)
    own_id, metadata = getattr(proposed, "id", None), getattr(proposed, "meta", None)
    return Fields(content=content, own_id=own_id, metadata=metadata, score=getattr(proposed, "score", None))


def _with_metadata(fields: Fields) -> Fields:
    """Return the fields with what documents of these frameworks keep in their metadata."""
    metadata = fields.metadata
    if not isinstance(metadata, Mapping):
        return fields
    return fields._replace(
        origin=fields.origin if fields.origin is not None else _first(metadata, _ORIGIN_IN_METADATA),
        title=fields.title if fields.title is not None else metadata.get("title"),
        updated_at=fields.updated_at if fields.updated_at is not None else metadata.get("updated_at"),
    )


def _first(mapping: Mapping[object, object], names: tuple[str, ...]) -> object:
    """Return the first of the values that is there; None counts as absent."""
    return next((value for name in names if (value := mapping.get(name)) is not None), None)
