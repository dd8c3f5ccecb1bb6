"""A profile in words, for a system prompt or a hook: one line for each of its rules, and every number and list from its data.

What is enforced and what is said come from the same profile, so that neither can drift from the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evidentia.contracts.protocol import FirstRetry, ProtocolRule, SkillTool, ToolRole
from evidentia.policy.protocol_profiles import TOOL_NAMES, active_rules
from evidentia.policy.protocol_words import FINDINGS, listed, plain, spelt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from evidentia.contracts.protocol import Profile

_R: Final = ProtocolRule
_TABLE: Final = TOOL_NAMES[ToolRole.TABLE]
_TEXT: Final = TOOL_NAMES[ToolRole.TEXT]


def render(profile: Profile, *, skills: Sequence[SkillTool | str] = ()) -> str:
    """Return the text of a profile in Markdown; `skills` are the retrieval tools of skills that are registered."""
    tools = [SkillTool(name=each) if isinstance(each, str) else each for each in skills]
    parts = [f"# Retrieval protocol: {plain(profile.title or profile.name)}", _opening(profile)]
    rules = frozenset(active_rules(profile))
    for title, lines in _sections(profile, tools, rules):
        if lines:
            parts.append("\n".join([f"## {title}", *(f"- {line}" for line in lines)]))
    return "\n\n".join(parts) + "\n"


def _sections(profile: Profile, tools: Sequence[SkillTool], rules: frozenset[ProtocolRule]) -> Iterator[tuple[str, list[str]]]:
    def said(*wanted: ProtocolRule) -> list[str]:
        return [_RULES[rule](profile) for rule in wanted if rule in rules]

    files = [_explicit_file(profile)] if rules & {_R.ALLOWED_TOOLS, _R.FILESYSTEM_TOOLS} and profile.allows_explicit_file else []
    yield "Tools", [*said(_R.CODE_PORTION, _R.ALLOWED_TOOLS, _R.FILESYSTEM_TOOLS), *files]
    yield (
        "Order",
        [
            f"Sources, in this order: {_order(profile)}.",
            *said(_R.SKILL_FIRST),
            *(f"Skill tool {_skill(tool)}" for tool in tools if ToolRole.SKILL in _roles(profile)),
            *said(_R.SOURCE_ORDER, _R.TOOL_CHOICE, _R.SEQUENTIAL, _R.ANSWER_BEFORE_RETRIEVAL),
        ],
    )
    yield "Queries", [*said(_R.RAW_QUERY), *_widening(profile), *said(_R.LOST_ENTITY, _R.FOREIGN_TOPIC, _R.REPEATED_QUERY)]
    yield "top_k", said(_R.TOP_K_TOOL, _R.TOP_K_VALUE)
    enough = [f"A result falls short when it is {listed([spelt(each) for each in profile.insufficient], 'or')}; anything else is enough."]
    yield "After each result", [*enough, *said(_R.NEEDLESS_CALL, _R.RETRY_ORDER, _R.CALL_CAP, _R.STOPPED_EARLY, _R.EARLY_NOT_FOUND)]
    for title, found in FINDINGS.items():
        yield title, [line(profile) for rule, line in found.items() if rule in rules]
    checks = [plain(question) for question in profile.self_check]
    yield "Before you reply", [*said(_R.SELF_CHECK), *(checks if _R.SELF_CHECK in rules else [])]


def _opening(profile: Profile) -> str:
    if not profile.classifies_tasks:
        return "This is how questions are answered from documents and tables."
    return (
        "First tell what the request is. Questions of fact, summaries, comparisons, lists and the like are knowledge, and so is whatever "
        "you are unsure of: follow this text. Work on code is free. In a mixed request this text binds the knowledge portion."
    )


def _roles(profile: Profile) -> list[ToolRole]:
    return [role for step in profile.order for role in step]


def _order(profile: Profile) -> str:
    return " → ".join(listed([TOOL_NAMES[role] for role in step], "or") for step in profile.order)


def _skill(tool: SkillTool) -> str:
    about = plain(tool.description) or ", ".join(plain(topic) for topic in tool.topics)
    return f"`{plain(tool.name)}`: {about}" if about else f"`{plain(tool.name)}`"


def _explicit_file(profile: Profile) -> str:
    del profile
    return "Exception: the user asks you to read one particular file; then read that file, and no other."


def _allowed(profile: Profile) -> str:
    return f"Look things up with {listed([TOOL_NAMES[role] for role in _roles(profile)], 'or')} and nothing else."


def _forbidden(profile: Profile) -> str:
    named = f" ({listed(profile.forbidden_tools, 'or')}, and their commands)" if profile.forbidden_tools else ""
    return f"Never look for knowledge with file-system tools{named}, not even when retrieval found nothing."


def _choice(profile: Profile) -> str:
    table, text = (listed([spelt(each) for each in kinds], "and") for kinds in (profile.table_first, profile.text_first))
    return f"Begin with {_TABLE} for questions of the kinds {table}; with {_TEXT} for pure {text} questions only."


def _last_sources(profile: Profile) -> str:
    steps = [[TOOL_NAMES[role] for role in step if role is not ToolRole.SKILL] for step in profile.order]
    later = [listed(step, "and") for step in steps if step]
    return f"Take the next step only when all of the one before fell short: {', then '.join(later)}."


def _widening(profile: Profile) -> list[str]:
    added = [f"Add {listed([plain(each) for each in profile.variants], 'and')} that help."] if profile.variants else []
    kinds = listed([plain(each) for each in profile.expanded_more], "and")
    return [*added, *([f"Widen {kinds} queries further."] if profile.expanded_more else [])]


def _kept(profile: Profile) -> str:
    return f"Keep what is asked about: at least {round(profile.least_containment * 100)}% of the names in the question stay in the query."


def _repeated(profile: Profile) -> str:
    more = f", unless you ask {_TEXT} for more results" if profile.top_k.retry is None else ""
    return f"Never send the same query to the same tool twice{more}."


def _top_k(profile: Profile) -> str:
    top_k = profile.top_k
    values = (
        f"{top_k.lookup} to look up a fact, {top_k.moderate} to combine, compare or tell apart, {top_k.broad} for lists, timelines, "
        f"overviews and several subjects; unsure, or left out: {top_k.unsure}"
    )
    if top_k.retry is not None:
        return f"{values}. On a retry use {top_k.retry}."
    return f"{values}. Raise it one step ({' → '.join(map(str, top_k.steps))}) when what came back is too little or too narrow."


def _retry(profile: Profile) -> str:
    if profile.first_retry is FirstRetry.SAME_TOOL:
        return f"When it falls short, rewrite the query and ask the same tool once more; then ask the next source ({_pair(profile)})."
    return f"When it falls short, ask the next source at once ({_pair(profile)}); come back to a tool only for more results."


def _pair(profile: Profile) -> str:
    return f"{_TABLE} ↔ {_TEXT}" if {ToolRole.TABLE, ToolRole.TEXT} <= set(_roles(profile)) else _order(profile)


def _not_found(profile: Profile) -> str:
    sources = [TOOL_NAMES[role] for role in _roles(profile) if role is not ToolRole.SKILL]
    skills = "every skill tool that suits, " if ToolRole.SKILL in _roles(profile) else ""
    cap = "" if profile.call_cap is None else f", or after call {profile.call_cap}"
    return f"Say that no relevant information was found only after {skills}{listed(sources, 'and')} were asked{cap}."


_RULES: Final[Mapping[ProtocolRule, Callable[[Profile], str]]] = {
    _R.CODE_PORTION: lambda _: "In a mixed request, code tools serve the code portion alone.",
    _R.ALLOWED_TOOLS: _allowed,
    _R.FILESYSTEM_TOOLS: _forbidden,
    _R.SKILL_FIRST: lambda _: "Where a skill's retrieval tool suits the question, it goes first.",
    _R.SOURCE_ORDER: _last_sources,
    _R.TOOL_CHOICE: _choice,
    _R.SEQUENTIAL: lambda _: "One call at a time: wait for a result and weigh it before you ask again.",
    _R.ANSWER_BEFORE_RETRIEVAL: lambda _: "Retrieve before you answer; what you remember is no source.",
    _R.RAW_QUERY: lambda _: (
        "Do not send the question as it stands unless it already is a good query: name entity, period, attributes, intent."
    ),
    _R.LOST_ENTITY: _kept,
    _R.FOREIGN_TOPIC: lambda _: "Bring no other topic in.",
    _R.REPEATED_QUERY: _repeated,
    _R.TOP_K_TOOL: lambda _: f"Only {_TEXT} takes top_k.",
    _R.TOP_K_VALUE: _top_k,
    _R.NEEDLESS_CALL: lambda _: "When a result is enough, even in part, answer now: no second look, no call for completeness.",
    _R.RETRY_ORDER: _retry,
    _R.CALL_CAP: lambda profile: (
        f"At most {profile.call_cap} retrieval calls for a question, all tools together; a tool's own fallback is one call."
    ),
    _R.STOPPED_EARLY: lambda _: "Do not answer from results that fall short while another source can be asked.",
    _R.EARLY_NOT_FOUND: _not_found,
    _R.SELF_CHECK: lambda profile: f"Answer these {len(profile.self_check)} questions; one no, and you put it right before you reply:",
}
