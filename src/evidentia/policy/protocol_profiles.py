"""Profiles of the agent protocol by name, and profiles of one's own: what they change is checked, and every problem has a path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from evidentia.contracts.errors import FieldProblem, InvalidFieldError
from evidentia.contracts.protocol import FirstRetry, Profile, ProtocolRule, QuestionType, SelfKnowledge, Shortfall, ToolRole, TopK
from evidentia.policy.rule_checks import field_problems, nearest, shown, unknown_name

# --- built-in profiles ---
# The two profiles that come with Evidentia, as data: one that expects the first call to do, and one that leaves no source unasked.
#
# Both have numbered sections, which docs/protocol.md lists; `sections` says for each rule where it stands ("first_call.5", "thorough.3").
# Choices where a document leaves room:
# - The cap is over all tools together and ends the search, even where a source was not asked.
# - A further call after a sufficient result is a violation in `first_call`; in `thorough` where it moves on to a later step.
# - In `first_call` the order of sources has nothing that `skill_first` does not say, so `source_order` is no rule of it.
# - `thorough` says nothing of images, supplements, a self-check, kinds of tasks or forbidden tools, so it has no rules for them.

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


# --- profiles ---

__all__ = ["PROFILES", "TOOL_NAMES", "active_rules", "profile_of", "profile_problems"]

PROFILES: Final[Mapping[str, Profile]] = MappingProxyType({each.name: each for each in (FIRST_CALL, THOROUGH)})
"""By name."""

_BASED_ON: Final = "based_on"
_PARTS: Final[Mapping[str, type[msgspec.Struct]]] = {"top_k": TopK, "self_knowledge": SelfKnowledge}
"""Fields that hold fields themselves; what a change leaves out of them stays as it was."""
_SECTIONS: Final = "sections"
_IMAGE_RULES: Final = (ProtocolRule.IMAGE_IGNORED, ProtocolRule.IMAGE_MISPLACED, ProtocolRule.IMAGES_AT_END)


def profile_of(given: str | Mapping[str, Any] | Profile) -> Profile:  # Any: as an author writes it
    """Return a profile by its name, or one derived from it; raise InvalidFieldError with the first problem.

    A map names what it is based on and what is different: `{"based_on": "first_call", "name": "mine", "call_cap": 2}`. Of `top_k`,
    `self_knowledge` and `sections` only what is named changes; a rule whose section is null is left out.
    """
    plain: str | Mapping[str, Any] = msgspec.to_builtins(given) if isinstance(given, Profile) else given
    for problem in profile_problems(plain):
        text = problem.problem + (f"; did you mean '{problem.suggestion}'?" if problem.suggestion else "")
        raise InvalidFieldError(problem.path, text)
    return PROFILES[plain] if isinstance(plain, str) else msgspec.convert(_merged(plain), Profile)


def profile_problems(given: object) -> list[FieldProblem]:
    """Return every problem of what should name or describe a profile; paths begin with `profile`."""
    if isinstance(given, str):
        return [] if given in PROFILES else [_unknown_profile("profile", given)]
    if not isinstance(given, Mapping):
        return [FieldProblem("profile", "expected the name of a profile, or a map with based_on, name and what is different")]
    problems = _shape_problems(given)
    if problems:
        return problems
    return list(_sense_problems(msgspec.convert(_merged(given), Profile)))


def active_rules(profile: Profile) -> tuple[ProtocolRule, ...]:
    """Return the rules of a profile that can be broken, in their declared order: those with a section that no setting turns off."""
    off = {
        ProtocolRule.RAW_QUERY: not profile.rewrites_queries,
        ProtocolRule.CALL_CAP: profile.call_cap is None,
        ProtocolRule.TRUNCATION_COUNTS: not profile.states_truncation,
        ProtocolRule.SELF_CHECK: not profile.self_check,
        **dict.fromkeys(_IMAGE_RULES, not profile.handles_images),
    }
    return tuple(rule for rule in ProtocolRule if rule in profile.sections and not off.get(rule, False))


def _unknown_profile(path: str, name: str) -> FieldProblem:
    known = " and ".join(f"'{each}'" for each in PROFILES)
    return FieldProblem(path, f"there is no profile '{shown(name)}'; there are {known}", nearest(name, PROFILES))


def _shape_problems(given: Mapping[Any, Any]) -> list[FieldProblem]:
    """Return what is wrong with names and types."""
    problems: list[FieldProblem] = []
    base = given.get(_BASED_ON)
    if _BASED_ON in given and not isinstance(base, str):
        problems.append(FieldProblem(f"profile.{_BASED_ON}", "expected the name of a profile"))
    elif isinstance(base, str) and base not in PROFILES:
        problems.append(_unknown_profile(f"profile.{_BASED_ON}", base))
    inner = {*_PARTS, _SECTIONS, _BASED_ON}
    known = {field.name for field in msgspec.structs.fields(Profile)}
    named = [*sorted(known), _BASED_ON]
    problems += [unknown_name(name, named, within="profile.", what="a field of a profile") for name in given if name not in named]
    plain = {name: value for name, value in given.items() if name not in inner and name in known}
    problems += field_problems(plain, Profile, within="profile.", what="a field of a profile")
    for name, part in _PARTS.items():
        if name in given:
            problems += _part_problems(given[name], part, within=f"profile.{name}")
    return problems + list(_section_problems(given.get(_SECTIONS, {})))


def _part_problems(given: object, expected: type[msgspec.Struct], *, within: str) -> list[FieldProblem]:
    if not isinstance(given, Mapping):
        return [FieldProblem(within, "expected a map of what is different")]
    return field_problems(given, expected, within=f"{within}.", what=f"a field of {within.partition('.')[2]}")


def _section_problems(given: object) -> Iterator[FieldProblem]:
    if not isinstance(given, Mapping):
        yield FieldProblem("profile.sections", "expected a map from rules to where they are written")
        return
    for rule, section in given.items():
        if rule not in ProtocolRule.words():
            yield unknown_name(rule, ProtocolRule.words(), within="profile.sections.", what="a rule of the protocol")
        elif section is not None and not (isinstance(section, str) and section.strip() and section.isprintable()):
            yield FieldProblem(f"profile.sections.{rule}", "expected where the rule is written, in one line, or null to leave it out")


def _merged(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a whole profile as plain values: the one it is based on, with what is different."""
    base = PROFILES.get(given.get(_BASED_ON, ""))
    merged: dict[str, Any] = {} if base is None else msgspec.to_builtins(base)
    for name, value in given.items():
        if name in _PARTS or name == _SECTIONS:
            merged[name] = {**merged.get(name, {}), **value}
        elif name != _BASED_ON:
            merged[name] = value
    merged[_SECTIONS] = {rule: section for rule, section in merged.get(_SECTIONS, {}).items() if section is not None}
    return merged


def _sense_problems(profile: Profile) -> Iterator[FieldProblem]:
    """Yield what types cannot say about a whole profile."""
    known = PROFILES.get(profile.name)
    if known is not None and profile != known:
        yield FieldProblem("profile.name", f"'{profile.name}' is the name of a built-in profile; give yours another")
    if not profile.sections:
        yield FieldProblem("profile.sections", "names no rule, so nothing would be checked; base the profile on another, or name some")
    if profile.call_cap is not None and profile.call_cap < 1:
        yield FieldProblem("profile.call_cap", f"{profile.call_cap} is less than 1; null is without a bound")
    if profile.most_citations < 1:
        yield FieldProblem("profile.most_citations", f"{profile.most_citations} is less than 1")
    if not 0 <= profile.least_containment <= 1:
        yield FieldProblem("profile.least_containment", f"{profile.least_containment} is not between 0 and 1")
    twice = [each.value for each in profile.table_first if each in profile.text_first]
    if twice:
        yield FieldProblem("profile.text_first", f"'{twice[0]}' is in table_first too; a type of question has one tool to begin with")
    yield from _order_problems(profile)
    yield from _top_k_problems(profile.top_k)


def _order_problems(profile: Profile) -> Iterator[FieldProblem]:
    roles = [role for step in profile.order for role in step]
    if not roles or not all(profile.order):
        yield FieldProblem("profile.order", "expected steps with at least one source each")
    for role in roles:
        if not role.retrieves:
            yield FieldProblem("profile.order", f"'{role.value}' is no source; those are skill, table, text and local")
        elif roles.count(role) > 1:
            yield FieldProblem("profile.order", f"'{role.value}' is named more than once")
            return


def _top_k_problems(top_k: TopK) -> Iterator[FieldProblem]:
    for name in ("lookup", "moderate", "broad", "unsure", "retry"):
        value = getattr(top_k, name)
        if value is not None and value < 1:
            yield FieldProblem(f"profile.top_k.{name}", f"{value} is less than 1")
    steps = top_k.steps
    if not steps or steps[0] < 1 or list(steps) != sorted(set(steps)):
        yield FieldProblem("profile.top_k.steps", "expected whole numbers from 1, each larger than the one before")
