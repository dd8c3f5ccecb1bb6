"""The closed vocabularies of the contract: tiers, levels, kinds and states.

Every vocabulary is written in lower case on the wire and read in any case. `ranked` ones order their members;
the order is the one a filter such as `authority_tier >= "curated"` uses.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Mapping


class Vocabulary(StrEnum):
    """A closed set of words; unknown words are refused by name."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str):
            return None
        word = value.strip().lower().replace("-", "_").replace(" ", "_")
        return next((member for member in cls if member.value == word), None)

    @classmethod
    def words(cls) -> tuple[str, ...]:
        """Return every accepted word in its declared order."""
        return tuple(member.value for member in cls)


class RankedVocabulary(Vocabulary):
    """A closed set of words declared from lowest to highest."""

    @property
    def rank(self) -> int:
        """Return the position in the declared order, 0 for the lowest."""
        return ranks_of(type(self))[self]


@cache
def ranks_of(vocabulary: type[Vocabulary]) -> Mapping[str, int]:
    """Return the position of each word in the declared order."""
    return {member: position for position, member in enumerate(vocabulary)}


class AuthorityTier(RankedVocabulary):
    """How much a source's word weighs, lowest first."""

    EPHEMERAL = "ephemeral"
    USER = "user"
    DERIVED = "derived"
    CURATED = "curated"
    CANONICAL = "canonical"


class Classification(RankedVocabulary):
    """How closely a document is held, lowest first; also the clearance of a principal."""

    PUBLIC = "public"
    INTERNAL = "internal"
    CONFIDENTIAL = "confidential"
    RESTRICTED = "restricted"


class ContentType(Vocabulary):
    """What a document is for."""

    CODE = "code"
    DOCUMENTATION = "documentation"
    CONFIG = "config"
    LOG = "log"
    ANNOTATION = "annotation"
    SCHEMA = "schema"
    RUNBOOK = "runbook"


class DeprecationStatus(Vocabulary):
    """Whether a document still holds."""

    ACTIVE = "active"
    DEPRECATED = "deprecated"
    ARCHIVED = "archived"


class SourceType(Vocabulary):
    """How a source is searched."""

    INVERTED_INDEX = "inverted_index"
    VECTOR_STORE = "vector_store"
    RELATIONAL_DB = "relational_db"
    KNOWLEDGE_GRAPH = "knowledge_graph"
    API = "api"
    LOG_STORE = "log_store"
    CODE_INDEX = "code_index"
    HUMAN_ANNOTATION_STORE = "human_annotation_store"
    MEMORY_LAYER = "memory_layer"


class LatencyTier(RankedVocabulary):
    """How soon a source answers, soonest first; the 99th percentiles are 10, 100, 1000 and 5000 ms."""

    HOT = "hot"
    WARM = "warm"
    COLD = "cold"
    ARCHIVE = "archive"


class QueryCapability(Vocabulary):
    """What kind of question a source can be asked."""

    EXACT_MATCH = "exact_match"
    SEMANTIC = "semantic"
    STRUCTURED = "structured"
    GRAPH_TRAVERSAL = "graph_traversal"


class RetrievalMode(Vocabulary):
    """Which legs of the base's own search take part."""

    HYBRID = "hybrid"
    LEXICAL = "lexical"
    DENSE = "dense"


class FusionMethod(Vocabulary):
    """How ranked lists become one."""

    LINEAR = "linear"
    RRF = "rrf"
    LEARNED = "learned"


class QueryStepName(Vocabulary):
    """The steps by which a question is understood, in their order."""

    CONTEXT = "context"
    NORMALISE = "normalise"
    SPELLING = "spelling"
    ABBREVIATIONS = "abbreviations"
    SYNONYMS = "synonyms"
    DECOMPOSE = "decompose"
    REWRITE = "rewrite"


class Similarity(Vocabulary):
    """How near two vectors are."""

    COSINE = "cosine"
    DOT = "dot"
    EUCLIDEAN = "euclidean"


class GovernanceMode(RankedVocabulary):
    """What policies in scope do to an answer, the least first."""

    OFF = "off"
    ANNOTATE = "annotate"
    FILTER = "filter"
    ENFORCE = "enforce"


class OnTimeout(Vocabulary):
    """What becomes of a request whose own search does not finish within the deadline."""

    DEGRADE = "degrade"
    """It is answered without the base's own evidence, and says so."""
    WAIT = "wait"
    """The search is waited for, however long it takes; sources outside and models keep to the deadline."""
    REFUSE = "refuse"
    """It fails with `search_timed_out`."""


class CoverageState(Vocabulary):
    """What happened to one source during one request."""

    SEARCHED = "searched"
    CACHED = "cached"
    STALE = "stale"
    TIMED_OUT = "timed_out"
    FAILED = "failed"
    BREAKER_OPEN = "breaker_open"
    SKIPPED = "skipped"
    DENIED = "denied"


class ConnectionKind(Vocabulary):
    """Where a registered source is, and so what asks it."""

    OWN = "own"
    PYTHON = "python"
    BASE = "base"
    REMOTE = "remote"
    MCP = "mcp"
    MEMORY = "memory"


class BreakerState(Vocabulary):
    """Whether a source is asked: as usual, not for a while, or once to see."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class CacheTier(Vocabulary):
    """Where candidates were kept, nearest first: L1, L2, L3 and L4."""

    REQUEST = "request"
    SESSION = "session"
    GLOBAL = "global"
    PRECOMPUTED = "precomputed"


class AnnotationTargetType(Vocabulary):
    """What an annotation speaks about."""

    DOCUMENT = "document"
    CODE_SYMBOL = "code_symbol"
    CONFIG_KEY = "config_key"
    SERVICE = "service"
    INCIDENT = "incident"


class AnnotationType(Vocabulary):
    """What an annotation does."""

    CORRECTION = "correction"
    LABEL = "label"
    KNOWLEDGE = "knowledge"
    REVIEW = "review"
    DEPRECATION_NOTICE = "deprecation_notice"


class ExpertiseLevel(Vocabulary):
    """On what footing an annotation's author speaks."""

    DOMAIN_EXPERT = "domain_expert"
    SENIOR_ENGINEER = "senior_engineer"
    TEAM_LEAD = "team_lead"
    CONTRIBUTOR = "contributor"
    UNKNOWN = "unknown"


class EventKind(Vocabulary):
    """What an entry of the event log records."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"
    ACCESS_CHANGED = "access_changed"
