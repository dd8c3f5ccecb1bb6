"""Profiles of the agent protocol by name, and profiles of one's own: what they change is checked, and every problem has a path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from evidentia.contracts.decoding import convert
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


def _types(words: str) -> tuple[QuestionType, ...]:
    return tuple(QuestionType(word) for word in words.split())


def _sections(profile: str, rules: Mapping[int, str]) -> Mapping[ProtocolRule, str]:
    """Return the section that each rule is from, by the rules of each section in their order."""
    return {ProtocolRule(rule): f"{profile}.{number}" for number, words in rules.items() for rule in words.split()}


_TEXT_FIRST: Final = _types("concept definition workflow policy explanation")

FIRST_CALL: Final = Profile(
    name="first_call",
    title="One good call",
    table_first=_types("value price quantity specification ranking comparison list table name_lookup history mixed unclear"),
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
    sections=_sections(
        "first_call",
        {
            0: "code_portion",
            1: "allowed_tools filesystem_tools",
            2: "skill_first sequential answer_before_retrieval tool_choice",
            3: "raw_query lost_entity foreign_topic",
            4: "top_k_tool top_k_value",
            5: "needless_call",
            6: "stopped_early call_cap retry_order repeated_query early_not_found",
            7: "truncation_counts file_names source_codes instructions",
            8: "image_ignored image_misplaced images_at_end",
            9: "citation_missing citation_grammar citation_unresolved citation_placement citation_count citations_at_end",
            11: (
                "self_knowledge_off self_knowledge_needless self_knowledge_mixed self_knowledge_scope self_knowledge_cited "
                "uncertainty_unstated"
            ),
            12: "self_check",
        },
    ),
)

THOROUGH: Final = Profile(
    name="thorough",
    title="Every source before giving up",
    classifies_tasks=False,
    order=((ToolRole.SKILL,), (ToolRole.TABLE, ToolRole.TEXT), (ToolRole.LOCAL,)),
    forbidden_tools=(),
    table_first=_types(
        "value price quantity inventory specification ranking comparison summary extraction list table name_lookup history mixed unclear"
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
    sections=_sections(
        "thorough",
        {
            1: "skill_first sequential answer_before_retrieval source_order tool_choice",
            2: "raw_query lost_entity foreign_topic",
            3: "top_k_tool top_k_value",
            4: "stopped_early",
            5: "retry_order repeated_query early_not_found",
            6: "truncation_counts file_names source_codes instructions",
            7: "citation_missing citation_grammar citation_unresolved citation_placement citation_count citations_at_end",
        },
    ),
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
    return PROFILES[plain] if isinstance(plain, str) else convert(_merged(plain), Profile)


def profile_problems(given: object) -> list[FieldProblem]:
    """Return every problem of what should name or describe a profile; paths begin with `profile`."""
    if isinstance(given, str):
        return [] if given in PROFILES else [_unknown_profile("profile", given)]
    if not isinstance(given, Mapping):
        return [FieldProblem("profile", "expected the name of a profile, or a map with based_on, name and what is different")]
    problems = _shape_problems(given)
    if problems:
        return problems
    return list(_sense_problems(convert(_merged(given), Profile)))


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
