"""The agent protocol: profiles as data, what a run tells of its calls and its reply, and a whole trace for checking afterwards.

A profile says what an agent may do and in which order. What is recorded are facts that hold under any profile; the policy category
`protocol` decides about them. Rule names and their words are public API.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, NewType

import msgspec

from evidentia.contracts.ids import Sha256
from evidentia.contracts.vocabulary import Vocabulary

# --- calls ---
# What every call that a run records has in common.

SpanId = NewType("SpanId", str)

Metadata = Mapping[str, Any]  # Any: numbers, words and lists as the rule says; always JSON


class RunCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", gc=False):
    """One thing a run records."""

    is_announced: ClassVar[bool] = False
    """Whether it is said before it happens: what stops it prevents it, and the run goes on."""

    span: SpanId | None = None
    """The open span it belongs under; None is the run itself."""


# --- protocol ---


class TaskKind(Vocabulary):
    """What kind of work a request is; what is uncertain counts as knowledge."""

    KNOWLEDGE = "knowledge"
    CODE = "code"
    MIXED = "mixed"
    UNCERTAIN = "uncertain"


class QuestionType(Vocabulary):
    """What a question is after; the first fifteen have to do with structured data, the others with text."""

    VALUE = "value"
    PRICE = "price"
    QUANTITY = "quantity"
    INVENTORY = "inventory"
    SPECIFICATION = "specification"
    RANKING = "ranking"
    COMPARISON = "comparison"
    SUMMARY = "summary"
    EXTRACTION = "extraction"
    LIST = "list"
    TABLE = "table"
    NAME_LOOKUP = "name_lookup"
    HISTORY = "history"
    MIXED = "mixed"
    UNCLEAR = "unclear"
    CONCEPT = "concept"
    DEFINITION = "definition"
    WORKFLOW = "workflow"
    POLICY = "policy"
    EXPLANATION = "explanation"


class Breadth(Vocabulary):
    """How much a question needs to see."""

    LOOKUP = "lookup"
    MODERATE = "moderate"
    """Synthesis, comparison, summarising, telling apart."""
    BROAD = "broad"
    """Comprehensive analysis, scattered knowledge, several entities or periods, lists, catalogues, timelines, rosters, overviews."""
    UNSURE = "unsure"


class ToolRole(Vocabulary):
    """What a tool is to the protocol."""

    SKILL = "skill"
    """A registered retrieval tool of a skill."""
    TABLE = "table"
    TEXT = "text"
    LOCAL = "local"
    """The sandboxed search of local files that belongs to the protocol."""
    FILESYSTEM = "filesystem"
    """Glob, Read, LS, Bash and the like."""
    OTHER = "other"

    @property
    def retrieves(self) -> bool:
        """Tell whether a tool of this role is a retrieval source of the protocol."""
        return self in {ToolRole.SKILL, ToolRole.TABLE, ToolRole.TEXT, ToolRole.LOCAL}


class Shortfall(Vocabulary):
    """What a result lacks; which of these make it insufficient is the profile's word."""

    EMPTY = "empty"
    ERROR = "error"
    """Nothing but a message that begins with `Error:`."""
    NO_SPREADSHEET = "no_spreadsheet"
    """Nothing but `no excel files found`."""
    OFF_TOPIC = "off_topic"
    """No shared entity and no relevant evidence in any result."""
    MISSING_ENTITY = "missing_entity"
    """There is something, but not about the core entity or scope."""
    NO_EVIDENCE = "no_evidence"
    PARTIAL = "partial"
    """Only part of what a list, a history, a comparison or a mixed question asks for."""
    TRUNCATED = "truncated"


class NextStep(Vocabulary):
    """What an agent should do after a result."""

    ANSWER = "answer"
    REWRITE = "rewrite"
    """Put the question otherwise and ask the same tool."""
    SWITCH = "switch"
    """Ask the next source."""
    NOT_FOUND = "not_found"
    """Say that no relevant information was found."""


class ProtocolRule(Vocabulary):
    """Every rule of the protocol; a violation names one of these."""

    ALLOWED_TOOLS = "allowed_tools"
    FILESYSTEM_TOOLS = "filesystem_tools"
    CODE_PORTION = "code_portion"
    """In a mixed task, a code tool was used for the knowledge portion."""
    SKILL_FIRST = "skill_first"
    SEQUENTIAL = "sequential"
    ANSWER_BEFORE_RETRIEVAL = "answer_before_retrieval"
    SOURCE_ORDER = "source_order"
    """A source was asked before an earlier one of the order that may answer."""
    TOOL_CHOICE = "tool_choice"
    RAW_QUERY = "raw_query"
    LOST_ENTITY = "lost_entity"
    FOREIGN_TOPIC = "foreign_topic"
    TOP_K_TOOL = "top_k_tool"
    TOP_K_VALUE = "top_k_value"
    NEEDLESS_CALL = "needless_call"
    STOPPED_EARLY = "stopped_early"
    """The reply came although results were insufficient and a source was left."""
    CALL_CAP = "call_cap"
    RETRY_ORDER = "retry_order"
    REPEATED_QUERY = "repeated_query"
    EARLY_NOT_FOUND = "early_not_found"
    TRUNCATION_COUNTS = "truncation_counts"
    FILE_NAMES = "file_names"
    SOURCE_CODES = "source_codes"
    """A `__src` column or a code of it reached the reply."""
    INSTRUCTIONS = "instructions"
    """A line of ours in a tool's result was not followed."""
    IMAGE_IGNORED = "image_ignored"
    IMAGE_MISPLACED = "image_misplaced"
    IMAGES_AT_END = "images_at_end"
    CITATION_MISSING = "citation_missing"
    CITATION_GRAMMAR = "citation_grammar"
    CITATION_UNRESOLVED = "citation_unresolved"
    CITATION_PLACEMENT = "citation_placement"
    CITATION_COUNT = "citation_count"
    CITATIONS_AT_END = "citations_at_end"
    SELF_KNOWLEDGE_OFF = "self_knowledge_off"
    SELF_KNOWLEDGE_NEEDLESS = "self_knowledge_needless"
    SELF_KNOWLEDGE_MIXED = "self_knowledge_mixed"
    SELF_KNOWLEDGE_SCOPE = "self_knowledge_scope"
    SELF_KNOWLEDGE_CITED = "self_knowledge_cited"
    UNCERTAINTY_UNSTATED = "uncertainty_unstated"
    SELF_CHECK = "self_check"
    """The reply was released without a self-check, or against it."""


class FirstRetry(Vocabulary):
    """What comes first when a result is insufficient."""

    SAME_TOOL = "same_tool"
    """Rewrite and ask the same tool once more, then the next source."""
    NEXT_SOURCE = "next_source"


class TopK(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many results to ask for by the breadth of the question, and the steps in which it may be raised."""

    lookup: int = 50
    moderate: int = 50
    broad: int = 100
    unsure: int = 50
    retry: int | None = None
    """What a retry of `rag_retrieve` asks for; None where it is raised by one step."""
    steps: tuple[int, ...] = (50, 100)


class SelfKnowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a model may add of its own; only what retrieval left open."""

    is_enabled: bool = False
    forbidden: tuple[str, ...] = ()
    """Kinds of facts that may not be supplied: prices, fees, discounts, rankings and so on."""


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A protocol as data: it renders to a prompt and compiles to what enforces it."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    title: str = ""
    classifies_tasks: bool = True
    order: tuple[tuple[ToolRole, ...], ...] = ((ToolRole.SKILL,), (ToolRole.TABLE, ToolRole.TEXT))
    """Sources in the order in which they are asked; those of one step are alternatives that the question type chooses between."""
    forbidden_tools: tuple[str, ...] = ("Glob", "Read", "LS", "Bash", "Grep")
    """File-system tools by name, in any case; their commands too (`ls`, `find`, `cat`, `head`, `tail`, `grep`)."""
    allows_explicit_file: bool = True
    """Whether a file that the user asks for by name may be read with a file-system tool."""
    table_first: tuple[QuestionType, ...] = ()
    text_first: tuple[QuestionType, ...] = ()
    rewrites_queries: bool = True
    variants: tuple[str, ...] = ()
    """What kinds of words are added to a query."""
    expanded_more: tuple[str, ...] = ()
    """Kinds of questions whose queries are widened further."""
    least_containment: float = 0.5
    """The least share of the question's entities that a query has to keep."""
    top_k: TopK = TopK()
    insufficient: tuple[Shortfall, ...] = (Shortfall.EMPTY, Shortfall.ERROR, Shortfall.NO_SPREADSHEET, Shortfall.OFF_TOPIC)
    call_cap: int | None = 3
    """Retrieval calls per question, all tools together; None is without a bound."""
    first_retry: FirstRetry = FirstRetry.SAME_TOOL
    states_truncation: bool = True
    handles_images: bool = True
    most_citations: int = 2
    """Per paragraph or list; one for each file and sheet may exceed it."""
    self_knowledge: SelfKnowledge = SelfKnowledge()
    self_check: tuple[str, ...] = ()
    """The questions that are answered before a reply; none where the profile has no self-check."""
    sections: Mapping[ProtocolRule, str] = msgspec.field(default_factory=dict)
    """Where each rule is written; a rule that is not named here is not part of the profile."""


class TaskOpened(RunCall, frozen=True, kw_only=True, tag="task"):
    """A question was put to the agent: what kind of work it is and what it is after. Its words stay out."""

    task: TaskKind = TaskKind.UNCERTAIN
    question_type: QuestionType = QuestionType.UNCLEAR
    breadth: Breadth = Breadth.UNSURE
    question_hash: Sha256 | None = None
    skills: tuple[str, ...] = ()
    """The registered skill tools that suit the question."""
    has_self_knowledge: bool | None = None
    """Whether supplements are allowed in this run; None leaves it to the profile."""


class ToolAsked(RunCall, frozen=True, kw_only=True, tag="ask"):
    """A tool is about to be called; said before it runs, so that it can be stopped."""

    is_announced = True

    call: int = 0
    """Counts the calls of the run from 1."""
    name: str = ""
    role: ToolRole = ToolRole.OTHER
    is_knowledge: bool = True
    """Whether it serves the knowledge portion of the task; False for the code portion of a mixed one."""
    top_k: int | None = None
    """None where it was left out."""
    query_hash: Sha256 | None = None
    """Of the query with case and spaces made even."""
    is_raw: bool = False
    """The query is the question as it was asked."""
    works_raw: bool = False
    """The question already works well as a query."""
    containment: float = 1.0
    """The share of the question's entities that the query keeps."""
    strays: int = 0
    """Content words that neither the question nor any expansion of it explains."""
    is_explicit_file: bool = False
    """It reads the very file that the user asked for."""


class ToolAnswered(RunCall, frozen=True, kw_only=True, tag="answer"):
    """A tool came back."""

    call: int = 0
    results: int = 0
    shortfalls: tuple[Shortfall, ...] = ()
    total: int | None = None
    displayed: int | None = None
    omitted: int | None = None
    images: int = 0


class ReplyFinding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something in a reply that a rule speaks of, and where; which rules count is the profile's word."""

    rule: ProtocolRule
    reason: str
    block: int | None = None
    """The paragraph or list, from 1; None for the reply as a whole."""
    count: int | None = None
    """How many, where the rule counts: citations of a block."""
    metadata: Metadata = msgspec.field(default_factory=dict)


class ReplyDrafted(RunCall, frozen=True, kw_only=True, tag="reply"):
    """The reply as it would go out, and what was found in it."""

    is_announced = True

    reply_hash: Sha256 | None = None
    says_not_found: bool = False
    uses_evidence: bool = False
    """It says more than that nothing was found, and something was retrieved."""
    has_supplement: bool = False
    findings: tuple[ReplyFinding, ...] = ()
    is_checked: bool = True
    """Whether the self-check was asked for before."""


class SkillTool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A retrieval tool that a skill brings, and what it is good for."""

    name: str
    description: str = ""
    topics: tuple[str, ...] = ()
    """Words that tell when it suits; empty judges by the description, and a tool without either suits everything."""


class TracedCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One tool call of a trace, with what went in and what came out."""

    name: str
    arguments: Mapping[str, Any] = msgspec.field(default_factory=dict)  # Any: whatever the tool takes, as JSON
    result: str = ""
    start: float | None = None
    end: float | None = None
    """Seconds on any clock; calls whose spans overlap were not made one after the other. None: in the order of the list."""
    portion: TaskKind | None = None
    """`knowledge` or `code` in a mixed task; None is judged from the tool."""


class AgentTrace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an agent did about one question, in its own words; what is not labelled is judged."""

    question: str
    profile: str = "first_call"
    calls: tuple[TracedCall, ...] = ()
    reply: str = ""
    skills: tuple[SkillTool, ...] = ()
    task: TaskKind | None = None
    question_type: QuestionType | None = None
    breadth: Breadth | None = None
    explicit_file: str | None = None
    """The path the user asked to be read; None is judged from the question."""
    raw_query_works: bool | None = None
    has_self_knowledge: bool | None = None
    is_self_checked: bool = True
    name: str = ""


class TraceFinding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A rule that a trace breaks: where it is written, what was wrong, and at which call or block."""

    rule: ProtocolRule
    section: str
    reason: str
    call: int | None = None
    block: int | None = None
    metadata: Metadata = msgspec.field(default_factory=dict)


class SelfCheckAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One question of the self-check, answered from the trace."""

    question: str
    is_yes: bool
    findings: tuple[TraceFinding, ...] = ()


class ReplyReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the check of a reply found; `ok` when it may go out."""

    ok: bool
    findings: tuple[TraceFinding, ...] = ()
    answers: tuple[SelfCheckAnswer, ...] = ()
    text: str = ""
    """The list for the agent: what to put right; empty when there is nothing."""


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """What to do after a result, and why."""

    step: NextStep
    is_sufficient: bool
    shortfalls: tuple[Shortfall, ...] = ()
    tool: str = ""
    """The tool to ask next, for `rewrite` and `switch`."""
    top_k: int | None = None
    query: str = ""
    """A query that would do."""
    reason: str = ""


class PreparedQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A question made ready for retrieval, with what was read in it."""

    query: str
    entities: tuple[str, ...] = ()
    time_scope: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    intent: QuestionType = QuestionType.UNCLEAR
    variants: tuple[str, ...] = ()
    """Synonyms, aliases, abbreviations, historical names and category terms that were added."""
    is_question: bool = False
    """The question works as it is."""
