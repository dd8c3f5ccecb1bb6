"""Every operation of a served base, declared once: what it is called, where it is, who may ask it, with what, and what comes back.

Doors, clients and descriptions are derived from this table; `serving.operations` binds each entry to what answers it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.contracts.control import (
    AuditPage,
    CallsReply,
    CallsRequest,
    DecisionPage,
    EndReply,
    EndRequest,
    EventPage,
    IssuedToken,
    PolicyPage,
    PolicyPatch,
    PolicyTemplates,
    PolicyVersions,
    PushReply,
    PushRequest,
    Role,
    RunPage,
    SecretKept,
    SecretNames,
    SecretValue,
    StartReply,
    StartRequest,
    TokenInfo,
    TokenList,
    TokenRequest,
)
from evidentia.contracts.decisions import DecisionCounts, DecisionStatus, LogReport, RecordProof
from evidentia.contracts.documents import CommitSummary, VersionDiff
from evidentia.contracts.doors import (
    AccessRequest,
    ChunkList,
    Count,
    DocumentIds,
    DocumentPage,
    Done,
    EvidenceAsk,
    FlushRequest,
    FreshnessList,
    GcRequest,
    ImageView,
    IngestRequest,
    LayoutView,
    NoteIds,
    NoteList,
    NoteRequest,
    ReceiptView,
    SourceList,
    TableList,
    TableQuestion,
    TraceList,
    TrialRequest,
    VerifyRequest,
    VersionList,
    WarmRequest,
)
from evidentia.contracts.evidence import EvidenceResponse, StreamEvent
from evidentia.contracts.policies import Enforcement, PolicyAction, PolicyBody, ShadowTrial, StoredPolicy
from evidentia.contracts.policy_trials import Calibration, ShadowReport
from evidentia.contracts.provenance import ConsistencyProof, FragmentExport, SignedHead, VerifyReport
from evidentia.contracts.receipts import ReplayReport, WhyReport
from evidentia.contracts.reports import CacheStats, DoctorReport, GcReport, IngestReport
from evidentia.contracts.retrieval import SourceTrial, WarmReport
from evidentia.contracts.runs import Phase, RunStatus, RunSummary, RunTrace
from evidentia.contracts.sources import Note, SourceDescriptor
from evidentia.contracts.tables import OpenTable, TableAnswer
from evidentia.contracts.telemetry import RequestTrace
from evidentia.contracts.vectors import EmbedReport
from evidentia.contracts.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_LIMIT: Final = 500
MAX_BYTES: Final = 1 << 20
"""Of a request's body, where an operation does not say otherwise."""
MAX_ANSWER_BYTES: Final = 16 << 20
"""Of a body that holds a whole answer."""
MAX_SENT_BYTES: Final = 64 << 20
"""Of a body that carries documents."""
_IN_BRACES: Final = re.compile(r"{(\w+)}")

READERS: Final = tuple(Role)
"""Everybody with a token."""
AGENTS: Final = (Role.AGENT, Role.ADMIN)
AUDITORS: Final = (Role.AUDITOR, Role.ADMIN)
"""Who sees what others of the tenant asked and did, within their own clearance."""
WRITERS: Final = (Role.ADMIN,)


class OperationGroup(Vocabulary):
    """What an operation is about."""

    EVIDENCE = "evidence"
    GOVERNANCE = "governance"
    ADMINISTRATION = "administration"


class QueryField(NamedTuple):
    """One parameter that may stand after the question mark."""

    name: str
    about: str
    kind: type = str
    """str, int, bool, or the vocabulary whose words are taken."""
    default: int | None = None
    least: int = 1
    most: int = MAX_LIMIT
    most_chars: int = 500


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One thing that can be asked of a served base, whichever door it comes through."""

    name: str
    route: str
    """The HTTP method and the path, with what is named in it in braces."""
    roles: tuple[Role, ...]
    """Of these, one is enough."""
    reply: object
    """The type of the answer, or of each part of it; None for any JSON object."""
    summary: str = field(kw_only=True)
    description: str = field(kw_only=True)
    request: object = None
    """The message with the parameters that stand neither in the path nor in the query; None when there are none."""
    query: tuple[QueryField, ...] = ()
    status: int = 200
    refusals: tuple[int, ...] = ()
    """HTTP statuses that only some operations answer with; those that any may have are not named."""
    has_version: bool = False
    """Whether the answer carries an ETag, and a change may name the version it replaces."""
    group: OperationGroup = OperationGroup.GOVERNANCE
    is_writing: bool = False
    """Whether it belongs to the one process that writes: it changes something, or lives in memory as open runs do."""
    is_base_wide: bool = False
    """Whether it is about the whole base, which only tokens of the operator's tenant are for."""
    is_stream: bool = False
    is_safe: bool = False
    """Whether it changes nothing although it is a POST, so that a client may send it once more when the connection broke."""
    max_bytes: int = MAX_BYTES
    base_method: str = ""
    """The method of a base that does the same; empty where a base has none."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """What that method's parameters are called here, where the names differ."""

    @property
    def method(self) -> str:
        """Return the HTTP method."""
        return self.route.partition(" ")[0]

    @property
    def path(self) -> str:
        """Return the path below the root of the server."""
        return self.route.partition(" ")[2]

    @property
    def path_names(self) -> tuple[str, ...]:
        """Return what stands in the path in braces, in order."""
        return tuple(_IN_BRACES.findall(self.path))

    @property
    def hands_out_content(self) -> bool:
        """Tell whether it hands out what documents hold, or which there are: its answers then pass the policies."""
        return HANDS_OUT_CONTENT[self.name]

    @property
    def is_repeatable(self) -> bool:
        """Tell whether asking twice does no more than asking once."""
        return self.is_safe or self.method == "GET"


LIMIT: Final = QueryField("limit", "At most this many.", int, default=50)
CURSOR: Final = QueryField("cursor", "The `next_cursor` of the page before.")
MINUTES: Final = QueryField("minutes", "Only what happened in the last minutes.", int, least=1, most=60 * 24 * 366)
_CHUNK: Final = QueryField("chunk", "The id of the chunk.", most_chars=2_000)
_TABLE: Final = QueryField("table", "The id of the table.", most_chars=2_000)
_DOCUMENT: Final = QueryField("document", "The id of the document.", most_chars=2_000)
_NOTE_FILTERS: Final = (QueryField("agent", "Only notes of this agent."), QueryField("session", "Only notes of this session."))
_POLICY_FILTERS: Final = (
    QueryField("category", "Only policies of this category."),
    QueryField("enabled", "Only those that are enabled, or that are not.", bool),
    QueryField("enforcement", "Only those that are enforced, or in shadow.", Enforcement),
    QueryField("name", "Only the one with this name."),
)
_POLICY_VERSION: Final = QueryField("version", "This version; also of a policy that was removed.", int, most=10**9)
_RUN_FILTERS: Final = (
    QueryField("agent", "Only runs of this agent."),
    QueryField("status", "Only runs that stand like this.", RunStatus),
)
_DECISION_FILTERS: Final = (
    QueryField("agent", "Only about runs of this agent."),
    QueryField("action", "Only with this action.", PolicyAction),
    QueryField("category", "Only of this category."),
    QueryField("policy", "Only by the policy with this name or id."),
    QueryField("phase", "Only in this phase.", Phase),
    QueryField("status", "Only those that came about like this.", DecisionStatus),
    QueryField("run", "Only about this run."),
)
_CALIBRATION: Final = (
    QueryField("rule", "The rule whose threshold is wanted, such as min_relevance_score."),
    QueryField("policy", "The name or id of the policy beside whose rules it is read."),
    QueryField("agent", "Only runs of this agent; may be a glob."),
)
_FIRST_SIZE: Final = QueryField("first_size", "How many entries the earlier log had.", int, default=0, least=0, most=10**12)
_SEQUENCE: Final = QueryField("sequence", "The number of the version; the newest by default.", int, least=0, most=10**12)
_OLDER: Final = QueryField("older", "The version to begin with: its number, a hash such as its `corpus_version`, or its beginning.")
_NEWER: Final = QueryField("newer", "The version to end with, named likewise.")
_E: Final = OperationGroup.EVIDENCE
_A: Final = OperationGroup.ADMINISTRATION

# A table: what an operation is, and below it what it is called in words. A path with a name in it stands after the fixed ones beside it,
# because the first route that fits is taken.
# fmt: off
OPERATIONS: Final = (
    # Evidence
    Operation("retrieve", "POST /v1/evidence", READERS, EvidenceResponse, request=EvidenceAsk, group=_E, is_safe=True,
        base_method="retrieve",
        summary="Ask for evidence", description="Answer a question with ranked, attributed fragments."),
    Operation("retrieve_stream", "POST /v1/evidence/stream", READERS, StreamEvent, request=EvidenceAsk, group=_E, is_stream=True,
        is_safe=True, base_method="retrieve_stream",
        summary="Ask for evidence, and hear what each source does",
        description="Yield what happens while a question is answered, and last the answer itself."),
    Operation("verify", "POST /v1/verify", READERS, VerifyReport, request=VerifyRequest, refusals=(404,), group=_E,
        max_bytes=MAX_ANSWER_BYTES, is_safe=True, base_method="verify",
        summary="Recompute custody",
        description="Recompute the custody of an answer, of an exported fragment, or of a document or chunk of this base."),
    Operation("export", "GET /v1/export", READERS, FragmentExport, query=(_CHUNK,), refusals=(404,), group=_E, base_method="export",
        parameters={"chunk_id": "chunk"},
        summary="Export a fragment", description="Return a fragment with everything a stranger needs to check it offline."),
    Operation("show_receipt", "GET /v1/receipts/{id}", READERS, ReceiptView, refusals=(404,), group=_E,
        summary="Show a receipt",
        description="Return what a receipt says; those of others only to auditors and admins of their tenant, within their clearance."),
    Operation("replay", "POST /v1/receipts/{id}/replay", READERS, ReplayReport, refusals=(404, 502), group=_E, is_safe=True,
        base_method="replay", parameters={"receipt_id": "id"},
        summary="Answer a receipt again",
        description="Answer a receipt's request again on its own version and say whether the result is the same."),
    Operation("why", "GET /v1/receipts/{id}/why", READERS, WhyReport, query=(_CHUNK,), refusals=(404, 502), group=_E, base_method="why",
        parameters={"receipt_id": "id", "chunk_id": "chunk"},
        summary="Say why a chunk is or is not in an answer", description="Say why a chunk is, or is not, in the answer of a receipt."),
    Operation("list_tables", "GET /v1/tables", READERS, TableList, group=_E, base_method="tables",
        summary="List tables", description="Return the tables of the documents that the asker may see."),
    Operation("open_table", "GET /v1/tables/cells", READERS, OpenTable, query=(_TABLE,), refusals=(404,), group=_E,
        base_method="open_table", parameters={"table_id": "table"},
        summary="Open a table", description="Return a table with its cells."),
    Operation("ask_tables", "POST /v1/tables/ask", READERS, TableAnswer, request=TableQuestion, group=_E, is_safe=True,
        base_method="ask_tables",
        summary="Ask tables", description="Answer a question from the rows of tables, or say why there is no answer."),
    Operation("show_layout", "GET /v1/layout", READERS, LayoutView, query=(_DOCUMENT,), refusals=(404,), group=_E, base_method="layout",
        parameters={"document_id": "document"},
        summary="Show pages, images and tables of a document", description="Return the pages, images and tables of a document."),
    Operation("show_image", "GET /v1/images/{hash}", READERS, ImageView, refusals=(404,), group=_E, base_method="image",
        parameters={"image_hash": "hash"},
        summary="Show an image", description="Return an image by the hash that a fragment or a layout names."),
    Operation("remember", "POST /v1/notes", AGENTS, Note, request=NoteRequest, status=201, group=_E, base_method="remember",
        summary="Write a note", description="Write a note that later requests of the same principal, agent and session find."),
    Operation("list_notes", "GET /v1/notes", AGENTS, NoteList, query=_NOTE_FILTERS, group=_E, base_method="notes",
        summary="List your notes", description="Return the asker's notes."),
    Operation("forget", "POST /v1/notes/forget", AGENTS, Count, request=NoteIds, group=_E, base_method="forget",
        summary="Forget notes", description="Forget notes, and return how many there were."),
    # Documents
    Operation("ingest", "POST /v1/documents", WRITERS, IngestReport, request=IngestRequest, refusals=(409,), group=_E, is_writing=True,
        max_bytes=MAX_SENT_BYTES, base_method="ingest",
        summary="Send documents", description="Take in texts and files; what is unchanged is skipped, what cannot be read is reported."),
    Operation("list_documents", "GET /v1/documents", READERS, DocumentPage, query=(CURSOR, LIMIT), group=_E, base_method="documents",
        summary="List documents", description="Return the live documents that the asker may see, page by page."),
    Operation("list_chunks", "GET /v1/chunks", READERS, ChunkList, query=(_DOCUMENT,), refusals=(404,), group=_E, base_method="chunks",
        parameters={"document_id": "document"},
        summary="List the chunks of a document", description="Return the chunks of a document in order."),
    Operation("remove_documents", "POST /v1/documents/remove", WRITERS, CommitSummary, request=DocumentIds, refusals=(404,), group=_E,
        is_writing=True, base_method="remove",
        summary="Remove documents",
        description="Remove documents of the tenant; their old versions stay readable until they are collected."),
    Operation("set_access", "POST /v1/documents/access", WRITERS, CommitSummary, request=AccessRequest, refusals=(404,), group=_E,
        is_writing=True, base_method="set_access",
        summary="Say who may see documents", description="Give documents of the tenant another access rule, as a new version."),
    # Sources
    Operation("list_sources", "GET /v1/sources", READERS, SourceList, group=_E, base_method="sources",
        summary="List sources",
        description="Return every source that the asker may know of, with its health; "
            "where it is, only to the operator's admins and auditors."),
    Operation("list_freshness", "GET /v1/sources/freshness", READERS, FreshnessList, group=_E, base_method="source_freshness",
        summary="List how fresh sources are",
        description="Return how old every source's data is beside what it promises; ages are for the operator's admins and auditors."),
    Operation("add_source", "POST /v1/sources", WRITERS, SourceDescriptor, request=SourceDescriptor, status=201, refusals=(409,), group=_E,
        is_writing=True, is_base_wide=True, base_method="add_source",
        summary="Register a source",
        description="Register a source outside the base; its address has to be one that the server may speak to."),
    Operation("remove_source", "DELETE /v1/sources/{id}", WRITERS, Done, refusals=(404,), group=_E, is_writing=True, is_base_wide=True,
        base_method="remove_source", parameters={"source_id": "id"},
        summary="Forget a source", description="Forget a source outside the base, and what was kept of it."),
    Operation("test_source", "POST /v1/sources/{id}/test", WRITERS, SourceTrial, request=TrialRequest, refusals=(404, 502), group=_E,
        is_base_wide=True, is_safe=True, base_method="test_source", parameters={"source_id": "id"},
        summary="Ask one source by itself", description="Ask one source outside the base by itself; nothing of it is kept or ranked."),
    Operation("source_changed", "POST /v1/sources/{id}/changed", WRITERS, Count, refusals=(404,), group=_E, is_writing=True,
        is_base_wide=True, base_method="source_changed", parameters={"source_id": "id"},
        summary="Say that a source's data has changed",
        description="Say that a source's data has changed: what was kept of it is forgotten."),
    # Policies
    Operation("list_policies", "GET /v1/policies", READERS, PolicyPage, query=(*_POLICY_FILTERS, CURSOR, LIMIT), base_method="policies",
        summary="List policies", description="Return the policies that were not removed, page by page."),
    Operation("create_policy", "POST /v1/policies", WRITERS, StoredPolicy, request=PolicyBody, status=201, refusals=(409,),
        has_version=True, is_writing=True,
        summary="Create a policy", description="Put a new policy in force."),
    Operation("push_policies", "POST /v1/policies/push", WRITERS, PushReply, request=PushRequest, is_writing=True,
        summary="Put several policies in force, all or none", description="Put several policies in force by their names, all or none."),
    Operation("list_templates", "GET /v1/policies/templates", READERS, PolicyTemplates,
        summary="List policies to begin with", description="Return policies to begin with."),
    Operation("show_policy_schema", "GET /v1/policies/schema", READERS, None,
        summary="Show the JSON Schema of a policy", description="Return the JSON Schema of a policy."),
    Operation("show_rules_schema", "GET /v1/policies/schema/{category}", READERS, None, refusals=(404,),
        summary="Show the JSON Schema of a category's rules", description="Return the JSON Schema of the rules of one category."),
    Operation("show_policy", "GET /v1/policies/{id}", READERS, StoredPolicy, query=(_POLICY_VERSION,), refusals=(404,), has_version=True,
        summary="Show a policy", description="Return a policy, by its id or its name, in the newest or a named version."),
    Operation("replace_policy", "PUT /v1/policies/{id}", WRITERS, StoredPolicy, request=PolicyBody, refusals=(404, 409, 412),
        has_version=True, is_writing=True,
        summary="Replace a policy", description="Put the next version of a policy in force."),
    Operation("change_policy", "PATCH /v1/policies/{id}", WRITERS, StoredPolicy, request=PolicyPatch, refusals=(404, 409, 412),
        has_version=True, is_writing=True,
        summary="Change some fields of a policy",
        description="Put the next version of a policy in force, with the fields that are given; "
            "rules that are not named stay as they are."),
    Operation("remove_policy", "DELETE /v1/policies/{id}", WRITERS, StoredPolicy, refusals=(404, 412), has_version=True, is_writing=True,
        base_method="remove_policy", parameters={"name": "id"},
        summary="Take a policy out of force", description="Take a policy out of force; its versions stay readable."),
    Operation("list_policy_versions", "GET /v1/policies/{id}/versions", READERS, PolicyVersions, refusals=(404,),
        summary="List the versions of a policy", description="Return every version of a policy, also of one that was removed."),
    # Runs
    Operation("start_run", "POST /v1/runs", AGENTS, StartReply, request=StartRequest, status=201, refusals=(409, 429), is_writing=True,
        summary="Begin a run", description="Begin a run under the policies in force; the same request again is the same run."),
    Operation("list_runs", "GET /v1/runs", READERS, RunPage, query=(*_RUN_FILTERS, MINUTES, CURSOR, LIMIT),
        summary="List runs, the newest first",
        description="Return the asker's runs, or to auditors and admins those of the tenant, the newest first."),
    Operation("show_run", "GET /v1/runs/{id}", READERS, RunSummary, refusals=(404,),
        summary="Show a run", description="Return one run as a line of the list."),
    Operation("record_calls", "POST /v1/runs/{id}/calls", AGENTS, CallsReply, request=CallsRequest, refusals=(404, 409), is_writing=True,
        summary="Record what a run does",
        description="Record calls in order, and return what was decided about each; nothing is recorded when one cannot be right."),
    Operation("end_run", "POST /v1/runs/{id}/end", AGENTS, EndReply, request=EndRequest, refusals=(404,), is_writing=True,
        summary="End a run", description="End a run, and return what was decided about all of it."),
    Operation("list_run_decisions", "GET /v1/runs/{id}/decisions", READERS, DecisionPage, query=(CURSOR, LIMIT), refusals=(404,),
        summary="List what was decided about a run", description="Return what was decided about one run, in order."),
    Operation("show_trace", "GET /v1/runs/{id}/trace", READERS, RunTrace, refusals=(404,),
        summary="Show a run with its spans", description="Return one run with its spans."),
    # Decisions
    Operation("list_events", "GET /v1/governance/events", READERS, EventPage,
        query=(MINUTES._replace(default=60), *_DECISION_FILTERS, CURSOR, LIMIT),
        summary="List what policies did lately", description="Return what policies did in the last minutes, the newest first."),
    Operation("list_decisions", "GET /v1/decisions", READERS, DecisionPage, query=(MINUTES, *_DECISION_FILTERS, CURSOR, LIMIT),
        summary="List decisions in full", description="Return decisions in full, the newest first."),
    Operation("count_decisions", "GET /v1/decisions/counts", READERS, DecisionCounts, query=(MINUTES, *_DECISION_FILTERS),
        summary="Count decisions", description="Return how many decisions fit, by what became of the calls; as many as the lists hold."),
    Operation("verify_log", "GET /v1/decisions/verify", AUDITORS, LogReport,
        summary="Check the whole log", description="Recompute every chain, and name the first record that does not fit."),
    Operation("show_proof", "GET /v1/decisions/{log}/{seq}/proof", READERS, RecordProof, refusals=(404,),
        summary="Prove that a record is in its log", description="Return the path from a record to the root of its log."),
    # Trials of policies
    Operation("try_policy", "POST /v1/trials/shadow", AUDITORS, ShadowReport, request=ShadowTrial,
        summary="Say what a policy would have changed",
        description="Return what a policy would have changed in the tenant's runs, had it been in force."),
    Operation("calibrate_rule", "GET /v1/trials/calibration", AUDITORS, Calibration,
        query=(*_CALIBRATION, MINUTES._replace(default=60 * 24 * 7)), refusals=(404,),
        summary="Say where a threshold belongs",
        description="Return where the threshold of a rule belongs by the tenant's good runs, and how often it would trigger."),
    # Administration: audit, secrets and tokens
    Operation("list_changes", "GET /v1/audit", AUDITORS, AuditPage, query=(CURSOR, LIMIT), group=_A,
        summary="List who changed what", description="Return who changed which policy, token or secret, the oldest first."),
    Operation("list_secrets", "GET /v1/secrets", WRITERS, SecretNames, group=_A,
        summary="List the names of secrets", description="Return the names of the secrets."),
    Operation("show_secret", "GET /v1/secrets/{name}", WRITERS, SecretKept, refusals=(404,), group=_A,
        summary="Say since when a secret is kept", description="Say since when a secret is kept; never what it is."),
    Operation("put_secret", "PUT /v1/secrets/{name}", WRITERS, SecretKept, request=SecretValue, refusals=(409,), group=_A, is_writing=True,
        summary="Keep a secret", description="Keep a secret, encrypted."),
    Operation("remove_secret", "DELETE /v1/secrets/{name}", WRITERS, SecretKept, refusals=(404,), group=_A, is_writing=True,
        summary="Forget a secret", description="Forget a secret."),
    Operation("list_tokens", "GET /v1/tokens", WRITERS, TokenList, group=_A,
        summary="List tokens", description="Return the tokens of the tenant, without their secrets."),
    Operation("issue_token", "POST /v1/tokens", WRITERS, IssuedToken, request=TokenRequest, status=201, group=_A, is_writing=True,
        summary="Make a token", description="Make a token; its secret is in this answer and nowhere else."),
    Operation("revoke_token", "DELETE /v1/tokens/{id}", WRITERS, TokenInfo, refusals=(404,), group=_A, is_writing=True,
        summary="Revoke a token", description="Make a token worthless from now on."),
    # Administration: upkeep of the base
    Operation("show_head", "GET /v1/base/head", READERS, CommitSummary, group=_A, base_method="head",
        summary="Show the newest version", description="Return the newest version."),
    Operation("show_signed_head", "GET /v1/base/signed-head", READERS, SignedHead, query=(_SEQUENCE,), refusals=(404,), group=_A,
        base_method="signed_head",
        summary="Show a signed head", description="Return the signed head of a version, the newest by default, with the public keys."),
    Operation("show_consistency", "GET /v1/base/consistency", READERS, ConsistencyProof, query=(_FIRST_SIZE,), group=_A,
        base_method="consistency",
        summary="Prove that the log only grew", description="Return the proof that an earlier event log is a prefix of the present one."),
    Operation("verify_base", "POST /v1/base/verify", AUDITORS, VerifyReport, group=_A, is_base_wide=True, is_safe=True,
        base_method="verify",
        summary="Verify the whole base", description="Recompute the custody of the whole base."),
    Operation("doctor", "GET /v1/base/doctor", AUDITORS, DoctorReport, group=_A, is_base_wide=True, base_method="doctor",
        summary="Check the base", description="Check the installation and the base, quickly."),
    Operation("embed", "POST /v1/base/embed", WRITERS, EmbedReport, group=_A, is_writing=True, is_base_wide=True, base_method="embed",
        summary="Embed what lacks a vector", description="Give every chunk that lacks one its vector."),
    Operation("collect", "POST /v1/base/gc", WRITERS, GcReport, request=GcRequest, group=_A, is_writing=True, is_base_wide=True,
        base_method="gc",
        summary="Remove old versions", description="Remove all but the newest versions."),
    Operation("list_traces", "GET /v1/traces", AUDITORS, TraceList, query=(LIMIT,), group=_A, is_base_wide=True, base_method="traces",
        summary="List requests", description="Return the newest requests with what took how long."),
    Operation("show_request", "GET /v1/traces/{id}", AUDITORS, RequestTrace, refusals=(404,), group=_A, is_base_wide=True,
        base_method="trace", parameters={"request_id": "id"},
        summary="Show a request", description="Return one request by its id, the beginning of it, or its receipt."),
    Operation("show_cache", "GET /v1/cache", AUDITORS, CacheStats, group=_A, is_base_wide=True, base_method="cache_stats",
        summary="Show what is kept", description="Return what is kept of what sources said, and how often it served."),
    Operation("flush_cache", "POST /v1/cache/flush", WRITERS, Count, request=FlushRequest, group=_A, is_writing=True, is_base_wide=True,
        base_method="flush_cache", parameters={"source": "source_id"},
        summary="Forget what is kept", description="Forget what was kept, of one source or of all."),
    Operation("warm_cache", "POST /v1/cache/warm", WRITERS, WarmReport, request=WarmRequest, group=_A, is_writing=True, is_base_wide=True,
        base_method="warm",
        summary="Ask ahead of time", description="Ask questions ahead of time, so that what sources say is kept."),
    # Versions of the base
    Operation("list_versions", "GET /v1/versions", READERS, VersionList, query=(LIMIT,), group=_A, base_method="versions",
        summary="List versions", description="Return the newest versions with what each holds."),
    Operation("show_diff", "GET /v1/versions/diff", READERS, VersionDiff, query=(_OLDER, _NEWER, LIMIT), refusals=(404,), group=_A,
        base_method="diff",
        summary="Show what differs between two versions", description="Return what differs between two versions."),
)
# fmt: on

OPERATION_BY_NAME: Final = {each.name: each for each in OPERATIONS}

_CONTENT: Final = """
    retrieve retrieve_stream verify export show_receipt replay why list_tables open_table ask_tables show_layout show_image list_notes
    list_documents list_chunks test_source show_diff
"""
_NO_CONTENT: Final = """
    remember forget ingest remove_documents set_access list_sources list_freshness add_source remove_source source_changed list_policies
    create_policy push_policies list_templates show_policy_schema show_rules_schema show_policy replace_policy change_policy
    remove_policy list_policy_versions start_run list_runs show_run record_calls end_run list_run_decisions show_trace list_events
    list_decisions count_decisions verify_log show_proof try_policy calibrate_rule list_changes list_secrets show_secret put_secret
    remove_secret list_tokens issue_token revoke_token verify_base show_head show_signed_head show_consistency doctor embed collect
    list_traces show_request show_cache flush_cache warm_cache list_versions
"""
HANDS_OUT_CONTENT: Final = dict.fromkeys(_NO_CONTENT.split(), False) | dict.fromkeys(_CONTENT.split(), True)
"""Whether each operation hands out content. One that is declared in neither list is asked for in vain when `base` is imported."""
