"""The self-check before a reply: its questions answered from the findings, and the list of corrections for the agent.

Which findings speak against which question is data. A question that is not known here is answered yes only when nothing was found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.contracts.protocol import Profile, ProtocolRule, SelfCheckAnswer, TraceFinding

if TYPE_CHECKING:
    from collections.abc import Sequence


_FIRST_RETRY: Final = 2
_MAX_REASON_LENGTH: Final = 400


class _Question(NamedTuple):
    """What a question of the self-check is known by, and the rules that speak against it."""

    words: tuple[str, ...]
    """All of them stand in the question, in any case."""
    rules: frozenset[ProtocolRule]
    is_about_first: bool = False
    """Only what came right after the first result counts."""


_TOOLS: Final = frozenset({ProtocolRule.ALLOWED_TOOLS, ProtocolRule.FILESYSTEM_TOOLS, ProtocolRule.CODE_PORTION})
_CALLS: Final = frozenset({ProtocolRule.NEEDLESS_CALL, ProtocolRule.REPEATED_QUERY})
_CITATIONS: Final = frozenset(rule for rule in ProtocolRule if rule.value.startswith("citation"))
_SUPPLEMENTS: Final = frozenset({ProtocolRule.UNCERTAINTY_UNSTATED}) | {
    rule for rule in ProtocolRule if rule.value.startswith("self_knowledge")
}
QUESTIONS: Final = (
    _Question(("self-knowledge",), _SUPPLEMENTS),
    _Question(("citation",), _CITATIONS),
    _Question(("exactly once",), _CALLS, is_about_first=True),
    _Question(("once", "first"), _CALLS, is_about_first=True),
    _Question(("sufficient",), _CALLS),
    _Question(("at most",), frozenset({ProtocolRule.CALL_CAP})),
    _Question(("no more than",), frozenset({ProtocolRule.CALL_CAP})),
    _Question(("tools",), _TOOLS),
    _Question(("filesystem",), _TOOLS),
    _Question(("file system",), _TOOLS),
    _Question(("truncated",), frozenset({ProtocolRule.TRUNCATION_COUNTS})),
    _Question(("image",), frozenset({ProtocolRule.IMAGE_IGNORED, ProtocolRule.IMAGE_MISPLACED, ProtocolRule.IMAGES_AT_END})),
)
"""The first that fits decides; the six of the protocol, and two that profiles of others may ask."""


def self_check(profile: Profile, findings: Sequence[TraceFinding]) -> tuple[SelfCheckAnswer, ...]:
    """Return an answer to each question of the profile, in order, with the findings that speak against it."""
    return tuple(_answer(question, findings) for question in profile.self_check)


def list_for_agent(findings: Sequence[TraceFinding]) -> str:
    """Return one line per finding: the rule, where, what is wrong and what to do; empty when there is nothing."""
    return "\n".join(dict.fromkeys(_line(finding) for finding in findings))


def _answer(question: str, findings: Sequence[TraceFinding]) -> SelfCheckAnswer:
    lowered = question.lower()
    known = next((known for known in QUESTIONS if all(word in lowered for word in known.words)), None)
    against = tuple(finding for finding in findings if known is None or _speaks_against(finding, known))
    return SelfCheckAnswer(question=question, is_yes=not against, findings=against)


def _speaks_against(finding: TraceFinding, known: _Question) -> bool:
    retrieval = finding.metadata.get("retrieval_calls", finding.call)
    is_early = not isinstance(retrieval, int) or retrieval <= _FIRST_RETRY
    return finding.rule in known.rules and (is_early or not known.is_about_first)


def _line(finding: TraceFinding) -> str:
    where = [finding.section] if finding.section else []
    if finding.call is not None:
        where.append(f"call {finding.call}")
    if finding.block is not None:
        where.append(f"block {finding.block}")
    # A reason may quote a file name: it stays on its line.
    reason = " ".join(finding.reason.split())[:_MAX_REASON_LENGTH]
    return f"- {finding.rule.value} ({', '.join(where)}): {reason}. {WHAT_TO_DO[finding.rule]}."


WHAT_TO_DO: Final = {
    ProtocolRule.ALLOWED_TOOLS: "Answer from the retrieval tools only",
    ProtocolRule.FILESYSTEM_TOOLS: "Leave the file system alone and ask a retrieval tool",
    ProtocolRule.CODE_PORTION: "Use retrieval tools for the knowledge portion and code tools for the code portion only",
    ProtocolRule.SKILL_FIRST: "Ask the skill's retrieval tool first",
    ProtocolRule.SEQUENTIAL: "Make one retrieval call at a time and read its result before the next",
    ProtocolRule.ANSWER_BEFORE_RETRIEVAL: "Retrieve first, then answer from what was found",
    ProtocolRule.SOURCE_ORDER: "Ask the earlier source first",
    ProtocolRule.TOOL_CHOICE: "Ask the tool that suits the kind of question",
    ProtocolRule.RAW_QUERY: "Rewrite the question as a query: entity, time, attributes, synonyms",
    ProtocolRule.LOST_ENTITY: "Keep what the question is about in the query",
    ProtocolRule.FOREIGN_TOPIC: "Take out of the query what the question does not ask for",
    ProtocolRule.TOP_K_TOOL: "Pass top_k to rag_retrieve only",
    ProtocolRule.TOP_K_VALUE: "Choose top_k by how much the question needs to see",
    ProtocolRule.NEEDLESS_CALL: "Answer from the results you have",
    ProtocolRule.STOPPED_EARLY: "Ask the next source before you reply",
    ProtocolRule.CALL_CAP: "Make no further retrieval call and answer from what was found",
    ProtocolRule.RETRY_ORDER: "Follow the order of retries",
    ProtocolRule.REPEATED_QUERY: "Put the question otherwise before you ask the same tool again",
    ProtocolRule.EARLY_NOT_FOUND: "Ask the sources that are left before you say that nothing was found",
    ProtocolRule.TRUNCATION_COUNTS: "Tell the user how many there are in total, how many are displayed and how many are omitted",
    ProtocolRule.FILE_NAMES: "Name files as file_ref_table does",
    ProtocolRule.SOURCE_CODES: "Take the code out of the reply and cite file, sheet and rows instead",
    ProtocolRule.INSTRUCTIONS: "Follow the line at the start of the tool's result",
    ProtocolRule.IMAGE_IGNORED: "Show the image next to the text that it belongs to",
    ProtocolRule.IMAGE_MISPLACED: "Move the image next to the text that it belongs to",
    ProtocolRule.IMAGES_AT_END: "Move each image next to the text that it belongs to",
    ProtocolRule.CITATION_MISSING: "Add the citation directly after the paragraph or list",
    ProtocolRule.CITATION_GRAMMAR: "Write the citation as the tool's result shows",
    ProtocolRule.CITATION_UNRESOLVED: "Cite only what was returned, as it stands in the result",
    ProtocolRule.CITATION_PLACEMENT: "Move the citation directly after the paragraph or list that it belongs to",
    ProtocolRule.CITATION_COUNT: "Keep the one or two citations that carry the paragraph or list",
    ProtocolRule.CITATIONS_AT_END: "Move each citation directly after the paragraph or list that it belongs to",
    ProtocolRule.SELF_KNOWLEDGE_OFF: "Take the supplement out",
    ProtocolRule.SELF_KNOWLEDGE_NEEDLESS: "Take the supplement out: what was retrieved is enough",
    ProtocolRule.SELF_KNOWLEDGE_MIXED: "Split retrieved facts and supplement into paragraphs of their own",
    ProtocolRule.SELF_KNOWLEDGE_SCOPE: "Keep the supplement to general background",
    ProtocolRule.SELF_KNOWLEDGE_CITED: "Take the citation out of the supplement",
    ProtocolRule.UNCERTAINTY_UNSTATED: "Say in the supplement that it may be uncertain or out of date",
    ProtocolRule.SELF_CHECK: "Check the reply before it goes out",
}
"""What an agent does about each rule."""
