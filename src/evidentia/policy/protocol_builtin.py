"""The two profiles that come with Evidentia, as data: one that expects the first call to do, and one that leaves no source unasked.

Both have numbered sections, which docs/protocol.md lists; `sections` says for each rule where it stands ("first_call.5", "thorough.3").
Choices where a document leaves room:
- The cap is over all tools together and ends the search, even where a source was not asked.
- A further call after a sufficient result is a violation in `first_call`; in `thorough` where it moves on to a later step.
- In `first_call` the order of sources has nothing that `skill_first` does not say, so `source_order` is no rule of it.
- `thorough` says nothing of images, supplements, a self-check, kinds of tasks or forbidden tools, so it has no rules for them.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from evidentia.contracts.protocol import FirstRetry, Profile, ProtocolRule, QuestionType, SelfKnowledge, Shortfall, ToolRole, TopK

if TYPE_CHECKING:
    from collections.abc import Mapping

TOOL_NAMES: Final[Mapping[ToolRole, str]] = MappingProxyType(
    {
        ToolRole.SKILL: "a suitable skill tool",
        ToolRole.TABLE: "table_rag_retrieve",
        ToolRole.TEXT: "rag_retrieve",
        ToolRole.LOCAL: "local_file_retrieve",
    }
)
"""What a source of each role is called where a profile is put into words."""

_TEXT_FIRST: Final = (
    QuestionType.CONCEPT,
    QuestionType.DEFINITION,
    QuestionType.WORKFLOW,
    QuestionType.POLICY,
    QuestionType.EXPLANATION,
)

FIRST_CALL: Final = Profile(
    name="first_call",
    title="One good call",
    table_first=(
        QuestionType.VALUE,
        QuestionType.PRICE,
        QuestionType.QUANTITY,
        QuestionType.SPECIFICATION,
        QuestionType.RANKING,
        QuestionType.COMPARISON,
        QuestionType.LIST,
        QuestionType.TABLE,
        QuestionType.NAME_LOOKUP,
        QuestionType.HISTORY,
        QuestionType.MIXED,
        QuestionType.UNCLEAR,
    ),
    text_first=_TEXT_FIRST,
    variants=("synonyms", "aliases", "abbreviations", "historical names", "category terms"),
    expanded_more=("list", "extraction", "overview", "timeline"),
    top_k=TopK(lookup=50, moderate=50, broad=100, unsure=50, retry=100, steps=(50, 100)),
    insufficient=(Shortfall.EMPTY, Shortfall.ERROR, Shortfall.NO_SPREADSHEET, Shortfall.OFF_TOPIC),
    call_cap=3,
    first_retry=FirstRetry.SAME_TOOL,
    self_knowledge=SelfKnowledge(
        forbidden=(
            "prices",
            "fees",
            "discounts",
            "rankings",
            "internal policies",
            "user details",
            "current status",
            "latest updates",
            "exact numbers",
            "dates",
            "metrics",
            "specifications",
        )
    ),
    self_check=(
        "Were allowed retrieval tools the only ones that looked things up, and was the file system left alone?",
        "Were there at most as many retrieval calls as the cap allows?",
        "Did the answer follow as soon as a result was sufficient?",
        "If the first result sufficed, was retrieval called once and no more?",
        "Does each paragraph or list that rests on a result carry its citation right behind it?",
        "Is self-knowledge, if any was added, set apart from retrieved facts and of a kind that is allowed?",
    ),
    sections={
        ProtocolRule.CODE_PORTION: "first_call.0",
        ProtocolRule.ALLOWED_TOOLS: "first_call.1",
        ProtocolRule.FILESYSTEM_TOOLS: "first_call.1",
        ProtocolRule.SKILL_FIRST: "first_call.2",
        ProtocolRule.SEQUENTIAL: "first_call.2",
        ProtocolRule.ANSWER_BEFORE_RETRIEVAL: "first_call.2",
        ProtocolRule.TOOL_CHOICE: "first_call.2",
        ProtocolRule.RAW_QUERY: "first_call.3",
        ProtocolRule.LOST_ENTITY: "first_call.3",
        ProtocolRule.FOREIGN_TOPIC: "first_call.3",
        ProtocolRule.TOP_K_TOOL: "first_call.4",
        ProtocolRule.TOP_K_VALUE: "first_call.4",
        ProtocolRule.NEEDLESS_CALL: "first_call.5",
        ProtocolRule.STOPPED_EARLY: "first_call.6",
        ProtocolRule.CALL_CAP: "first_call.6",
        ProtocolRule.RETRY_ORDER: "first_call.6",
        ProtocolRule.REPEATED_QUERY: "first_call.6",
        ProtocolRule.EARLY_NOT_FOUND: "first_call.6",
        ProtocolRule.TRUNCATION_COUNTS: "first_call.7",
        ProtocolRule.FILE_NAMES: "first_call.7",
        ProtocolRule.SOURCE_CODES: "first_call.7",
        ProtocolRule.INSTRUCTIONS: "first_call.7",
        ProtocolRule.IMAGE_IGNORED: "first_call.8",
        ProtocolRule.IMAGE_MISPLACED: "first_call.8",
        ProtocolRule.IMAGES_AT_END: "first_call.8",
        ProtocolRule.CITATION_MISSING: "first_call.9",
        ProtocolRule.CITATION_GRAMMAR: "first_call.9",
        ProtocolRule.CITATION_UNRESOLVED: "first_call.9",
        ProtocolRule.CITATION_PLACEMENT: "first_call.9",
        ProtocolRule.CITATION_COUNT: "first_call.9",
        ProtocolRule.CITATIONS_AT_END: "first_call.9",
        ProtocolRule.SELF_KNOWLEDGE_OFF: "first_call.11",
        ProtocolRule.SELF_KNOWLEDGE_NEEDLESS: "first_call.11",
        ProtocolRule.SELF_KNOWLEDGE_MIXED: "first_call.11",
        ProtocolRule.SELF_KNOWLEDGE_SCOPE: "first_call.11",
        ProtocolRule.SELF_KNOWLEDGE_CITED: "first_call.11",
        ProtocolRule.UNCERTAINTY_UNSTATED: "first_call.11",
        ProtocolRule.SELF_CHECK: "first_call.12",
    },
)

THOROUGH: Final = Profile(
    name="thorough",
    title="Every source before giving up",
    classifies_tasks=False,
    order=((ToolRole.SKILL,), (ToolRole.TABLE, ToolRole.TEXT), (ToolRole.LOCAL,)),
    forbidden_tools=(),
    table_first=(
        QuestionType.VALUE,
        QuestionType.PRICE,
        QuestionType.QUANTITY,
        QuestionType.INVENTORY,
        QuestionType.SPECIFICATION,
        QuestionType.RANKING,
        QuestionType.COMPARISON,
        QuestionType.SUMMARY,
        QuestionType.EXTRACTION,
        QuestionType.LIST,
        QuestionType.TABLE,
        QuestionType.NAME_LOOKUP,
        QuestionType.HISTORY,
        QuestionType.MIXED,
        QuestionType.UNCLEAR,
    ),
    text_first=_TEXT_FIRST,
    variants=("synonyms", "aliases", "abbreviations", "related titles", "historical names", "category terms"),
    expanded_more=("list", "extraction", "overview", "historical", "roster", "timeline", "archive"),
    top_k=TopK(lookup=30, moderate=50, broad=100, unsure=100, retry=None, steps=(30, 50, 100)),
    insufficient=(
        Shortfall.EMPTY,
        Shortfall.ERROR,
        Shortfall.NO_SPREADSHEET,
        Shortfall.OFF_TOPIC,
        Shortfall.MISSING_ENTITY,
        Shortfall.NO_EVIDENCE,
        Shortfall.PARTIAL,
        Shortfall.TRUNCATED,
    ),
    call_cap=None,
    first_retry=FirstRetry.NEXT_SOURCE,
    handles_images=False,
    sections={
        ProtocolRule.SKILL_FIRST: "thorough.1",
        ProtocolRule.SEQUENTIAL: "thorough.1",
        ProtocolRule.ANSWER_BEFORE_RETRIEVAL: "thorough.1",
        ProtocolRule.SOURCE_ORDER: "thorough.1",
        ProtocolRule.TOOL_CHOICE: "thorough.1",
        ProtocolRule.RAW_QUERY: "thorough.2",
        ProtocolRule.LOST_ENTITY: "thorough.2",
        ProtocolRule.FOREIGN_TOPIC: "thorough.2",
        ProtocolRule.TOP_K_TOOL: "thorough.3",
        ProtocolRule.TOP_K_VALUE: "thorough.3",
        ProtocolRule.STOPPED_EARLY: "thorough.4",
        ProtocolRule.RETRY_ORDER: "thorough.5",
        ProtocolRule.REPEATED_QUERY: "thorough.5",
        ProtocolRule.EARLY_NOT_FOUND: "thorough.5",
        ProtocolRule.TRUNCATION_COUNTS: "thorough.6",
        ProtocolRule.FILE_NAMES: "thorough.6",
        ProtocolRule.SOURCE_CODES: "thorough.6",
        ProtocolRule.INSTRUCTIONS: "thorough.6",
        ProtocolRule.CITATION_MISSING: "thorough.7",
        ProtocolRule.CITATION_GRAMMAR: "thorough.7",
        ProtocolRule.CITATION_UNRESOLVED: "thorough.7",
        ProtocolRule.CITATION_PLACEMENT: "thorough.7",
        ProtocolRule.CITATION_COUNT: "thorough.7",
        ProtocolRule.CITATIONS_AT_END: "thorough.7",
    },
)
