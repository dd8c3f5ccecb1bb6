"""Which runs two scopes have in common, and whether one lies within another: decided facet by facet, with facts as proof."""

from __future__ import annotations

from collections import deque
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from evidentia.contracts.policies import DEFAULT_TENANT, Policy
from evidentia.contracts.runs import RetrievedDocument, RunFacts, RunId
from evidentia.policy.evaluator import in_scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from evidentia.policy.retrieval_rules import RetrievalLimits


_FACETS: Final = (
    ("agents", "agent_name", "exclude_agents"),
    ("agent_ids", "agent_id", ""),
    ("agent_groups", "agent_group", ""),
    ("agent_types", "agent_type", ""),
    ("workflows", "workflow_name", ""),
    ("users", "user_id", "exclude_users"),
    ("user_groups", "user_group", ""),
    ("teams", "team", ""),
    ("tools", "tool", "exclude_tools"),
    ("models", "model", "exclude_models"),
    ("tenants", "tenant", ""),
)
_PLAIN: Final = RunFacts(run_id=RunId("witness"), agent_name="agent")


class _Reach(NamedTuple):
    """The values of one facet that a policy is for; without `wanted`, all that are not excluded."""

    wanted: tuple[str, ...]
    excluded: tuple[str, ...]

    @property
    def patterns(self) -> tuple[str, ...]:
        return (*self.wanted, *self.excluded)

    def holds(self, matches: Sequence[bool]) -> bool:
        """Tell whether a value is reached, from which of the patterns match it."""
        wanted, excluded = matches[: len(self.wanted)], matches[len(self.wanted) :]
        return (not self.wanted or any(wanted)) and not any(excluded)


def shared_facts(*policies: Policy) -> RunFacts | None:
    """Return the facts of a run that every policy is for, or None when there can be no such run. Raises UndecidedError."""
    found: dict[str, str] = {}
    for facet, fact, exclusion in _FACETS:
        reaches = tuple(_reach(policy, facet, exclusion) for policy in policies)
        if not any(reach.patterns for reach in reaches):
            continue
        value = _value(reaches, _all_hold, default=getattr(_PLAIN, fact))
        if value is None:
            return None
        found[fact] = value
    facts = _facts(found)
    if not all(in_scope(policy, facts) for policy in policies):
        raise UndecidedError  # the witness does not hold, so nothing is claimed
    return facts


def covers(wider: Policy, narrower: Policy) -> bool:
    """Tell whether every run that one policy is for is one that the other is for. Raises UndecidedError."""
    for facet, fact, exclusion in _FACETS:
        reaches = (_reach(narrower, facet, exclusion), _reach(wider, facet, exclusion))
        if not reaches[1].patterns:
            continue
        if _value(reaches, _only_first_holds, default=getattr(_PLAIN, fact)) is not None:
            return False
    return True


def near_misses(policy: Policy) -> Iterator[RunFacts]:
    """Yield facts that come closest to a scope which matches nothing: one for each name that it asks for in vain."""
    for facet, fact, exclusion in _FACETS:
        reach = _reach(policy, facet, exclusion)
        if _value((reach,), _all_hold, default=getattr(_PLAIN, fact)) is None:
            for pattern in reach.wanted or ("agent",):
                yield _facts({"tenant": policy.tenant, fact: pattern.replace("*", "x").replace("?", "x")})


def _facts(values: Mapping[str, str]) -> RunFacts:
    return msgspec.structs.replace(_PLAIN, **values)


@lru_cache(maxsize=4_096)
def _value(reaches: tuple[_Reach, ...], wanted: Callable[[Sequence[_Reach], Sequence[bool]], bool], *, default: str) -> str | None:
    """Return a value of a facet: what runs have by default where it will do, then none at all, then any name; None without any.

    Many policies share a scope, so answers are kept.
    """
    patterns = [pattern for reach in reaches for pattern in reach.patterns]

    def is_wanted(matches: Sequence[bool]) -> bool:
        return wanted(reaches, matches)

    for plain in (default, ""):
        if is_wanted([_matches(pattern, plain) for pattern in patterns]):
            return plain
    return find_name(patterns, is_wanted)


def _matches(pattern: str, value: str) -> bool:
    return fnmatchcase(value, pattern) if is_glob(pattern) else pattern == value


def _all_hold(reaches: Sequence[_Reach], matches: Sequence[bool]) -> bool:
    return all(_held(reaches, matches))


def _only_first_holds(reaches: Sequence[_Reach], matches: Sequence[bool]) -> bool:
    first, *others = _held(reaches, matches)
    return first and not any(others)


def _held(reaches: Sequence[_Reach], matches: Sequence[bool]) -> Iterator[bool]:
    at = 0
    for reach in reaches:
        end = at + len(reach.patterns)
        yield reach.holds(matches[at:end])
        at = end


def _reach(policy: Policy, facet: str, exclusion: str) -> _Reach:
    scope = policy.body.scope
    if facet != "tenants":
        return _Reach(getattr(scope, facet), getattr(scope, exclusion) if exclusion else ())
    if is_glob(policy.tenant):
        raise UndecidedError
    if not scope.tenants:
        return _Reach((policy.tenant,), ())
    if policy.tenant == DEFAULT_TENANT:
        return _Reach(scope.tenants, ())
    is_named = any(_matches(pattern, policy.tenant) for pattern in scope.tenants)
    return _Reach((policy.tenant,), () if is_named else (policy.tenant,))


# --- globs ---
# Which names patterns have in common, decided exactly: a search over the product of their automata, with a name as proof.
#
# A pattern without glob characters is a name. Refuses to guess: a product that grows too large is undecided.

MAX_STATES: Final = 2_000
_FRIENDLY: Final = "xabcdefghijklmnopqrstuvwyz0123456789-_XABCDEFGHIJKLMNOPQRSTUVWYZ"
_LAST: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)


class UndecidedError(Exception):
    """The product of the patterns is too large to be searched."""


class _GlobToken(NamedTuple):
    """One piece of a pattern: a character, `?`, `*` or a class in brackets."""

    text: str
    is_star: bool = False
    is_literal: bool = False

    def takes(self, character: str) -> bool:
        return self.text == character if self.is_literal else fnmatchcase(character, self.text)


def find_name(patterns: Sequence[str], wanted: Callable[[tuple[bool, ...]], bool]) -> str | None:
    """Return a name for which `wanted` holds of whether each pattern matches it, or None when there is none.

    Names are not empty. Names that stand in the patterns are preferred, then short ones. Raises UndecidedError.
    """
    for guess in _guesses(patterns):
        if wanted(tuple(fnmatchcase(guess, pattern) if is_glob(pattern) else guess == pattern for pattern in patterns)):
            return guess
    return _search([_tokens(pattern) for pattern in patterns], wanted)


def is_glob(pattern: str) -> bool:
    """Tell whether a pattern has glob characters; one without is compared as it is."""
    return any(character in pattern for character in "*?[")


def _guesses(patterns: Sequence[str]) -> Iterator[str]:
    yield "agent"
    for pattern in patterns:
        yield pattern.replace("*", "x").replace("?", "x")


def _search(patterns: Sequence[tuple[_GlobToken, ...]], wanted: Callable[[tuple[bool, ...]], bool]) -> str | None:
    """Walk over all names by length; two names that leave every pattern in the same state are one."""
    alphabet = _alphabet(patterns)
    begin = tuple(_closed(pattern, 1) for pattern in patterns)
    # The empty name is no name, so the state of the beginning is not marked as seen: a word may come back to it.
    seen: set[tuple[int, ...]] = set()
    pending = deque([("", begin)])
    while pending:
        word, states = pending.popleft()
        for character in alphabet:
            after = tuple(_step(pattern, state, character) for pattern, state in zip(patterns, states, strict=True))
            if after in seen:
                continue
            name = word + character
            if wanted(tuple(bool(state >> len(pattern) & 1) for pattern, state in zip(patterns, after, strict=True))):
                return name
            seen.add(after)
            if len(seen) > MAX_STATES:
                raise UndecidedError
            pending.append((name, after))
    return None


def _step(pattern: tuple[_GlobToken, ...], state: int, character: str) -> int:
    """Return the positions (as bits) after a character."""
    after = 0
    for position, token in enumerate(pattern):
        if state >> position & 1 and (token.is_star or token.takes(character)):
            after |= 1 << (position if token.is_star else position + 1)
    return _closed(pattern, after)


def _closed(pattern: tuple[_GlobToken, ...], state: int) -> int:
    for position, token in enumerate(pattern):
        if token.is_star and state >> position & 1:
            state |= 1 << (position + 1)
    return state


def _tokens(pattern: str) -> tuple[_GlobToken, ...]:
    found: list[_GlobToken] = []
    at = 0
    while at < len(pattern):
        end = _class_end(pattern, at) if pattern[at] == "[" else at
        text = pattern[at : end + 1]
        is_class = len(text) > 1
        found.append(_GlobToken(text, is_star=text == "*", is_literal=not is_class and text not in {"*", "?"}))
        at = end + 1
    return tuple(found)


def _class_end(pattern: str, start: int) -> int:
    """Return where a class ends; a bracket that is never closed is a character."""
    at = start + 1
    if pattern[at : at + 1] == "!":
        at += 1
    end = pattern.find("]", at + 1 if pattern[at : at + 1] == "]" else at)
    return start if end < 0 else end


def _alphabet(patterns: Sequence[tuple[_GlobToken, ...]]) -> tuple[str, ...]:
    """Return one character of every class that the patterns tell apart, friendly ones where there is a choice."""
    tokens = [token for pattern in patterns for token in pattern if not token.is_star]
    named = sorted({character for token in tokens if token.text != "?" for character in token.text})
    cuts = sorted({0} | {point for character in named for point in (ord(character), ord(character) + 1) if point <= _LAST})
    found: dict[tuple[bool, ...], str] = {}
    for character in (*_FRIENDLY, *named, *(chr(cut) for cut in cuts if cut not in _SURROGATES)):
        found.setdefault(tuple(token.takes(character) for token in tokens), character)
    return tuple(found.values())


# --- documents ---
# Documents that stand for all: one for every way in which the rules of some retrieval policies can tell documents apart.
#
# A rule about a document compares one field with a threshold or a set, so its answer is the same within a cell of the grid that all
# thresholds and sets cut. Asking about one document of each cell is asking about every document there is.

LOWEST_SCORE: Final = 0.0
HIGHEST_SCORE: Final = 1.0
MAX_CELLS: Final = 20_000
_ELSEWHERE: Final = "elsewhere"


def cells(limits: Sequence[RetrievalLimits], *, is_bounded: bool = False) -> list[RetrievedDocument]:
    """Return one document of every cell; with `is_bounded` only those with scores from 0 to 1. Raises UndecidedError when too many."""
    return _documents(_scores(limits, is_bounded=is_bounded), _sources(limits), _collections(limits), _ages(limits))


def best_documents(limits: Sequence[RetrievalLimits]) -> list[RetrievedDocument]:
    """Return documents with scores from 0 to 1 such that, if all are blocked, every such document is.

    The best score, an unblocked source and no age are best for every rule at once; only the collection is a choice. Rules that
    are read literally can hide each other, so with those every cell is a choice.
    """
    if any(each.is_literal for each in limits):
        return cells(limits, is_bounded=True)
    return _documents([HIGHEST_SCORE], [fresh_source(limits)], _collections(limits), [0])


def fresh_source(limits: Iterable[RetrievalLimits]) -> str:
    """Return a source that no policy blocks."""
    return _fresh({source for each in limits for source in each.blocked})


def _documents(
    scores: Sequence[float], sources: Sequence[str], collections: Sequence[str], ages: Sequence[int | None]
) -> list[RetrievedDocument]:
    if len(scores) * len(sources) * len(collections) * len(ages) > MAX_CELLS:
        raise UndecidedError
    return [
        RetrievedDocument(relevance_score=score, source=source, collection=collection, age_days=age)
        for score, source, collection, age in product(scores, sources, collections, ages)
    ]


def _scores(limits: Iterable[RetrievalLimits], *, is_bounded: bool) -> list[float]:
    """Return every threshold and a score below all, which between them lie in every interval that thresholds cut."""
    thresholds = {each.min_relevance for each in limits}
    if is_bounded:
        return sorted({LOWEST_SCORE, HIGHEST_SCORE} | {each for each in thresholds if LOWEST_SCORE <= each <= HIGHEST_SCORE}, reverse=True)
    lowest = min(thresholds)
    return sorted(thresholds | {LOWEST_SCORE if lowest > LOWEST_SCORE else lowest - 1}, reverse=True)


def _ages(limits: Iterable[RetrievalLimits]) -> list[int | None]:
    return [*sorted({0} | {age for each in limits for age in (each.max_age, each.max_age + 1)}), None]


def _sources(limits: Sequence[RetrievalLimits]) -> list[str]:
    blocked = sorted({source for each in limits for source in each.blocked})
    return _classes([fresh_source(limits), *blocked], lambda source: tuple(source in each.blocked for each in limits))


def _collections(limits: Sequence[RetrievalLimits]) -> list[str]:
    allowed = sorted({collection for each in limits for collection in each.allowed})
    return _classes([*allowed, _fresh(set(allowed))], lambda collection: tuple(collection in each.allowed for each in limits))


def _classes(names: Iterable[str], kind_of: Callable[[str], tuple[bool, ...]]) -> list[str]:
    """Return the first name of each kind: names that are in the same sets are one to the rules."""
    found: dict[tuple[bool, ...], str] = {}
    for name in names:
        found.setdefault(kind_of(name), name)
    return list(found.values())


def _fresh(taken: set[str]) -> str:
    name = _ELSEWHERE
    while name in taken:
        name += "-x"
    return name
