"""Which fragments disagree, and which of them is preferred. Flags, never drops: the losers stay where they are.

A conflict is one claim (`claims`) that different documents give different values for. A document that gives several values for one claim
lists them, and takes no part in it. Which fragment is preferred is one integer per fragment, the criteria as bit fields in their order, so
that a lower one never outweighs a higher one; the chunk id decides last.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from evidentia.contracts.evidence import Conflict
from evidentia.contracts.ids import ChunkId, DocumentId
from evidentia.contracts.vocabulary import AuthorityTier
from evidentia.ranking.claim_values import Value, read_value
from evidentia.ranking.claims import Claim, extract_claims, title_words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_CHAIN_BITS: Final = 16
_UPDATED_BITS: Final = 64
_TIER_BITS: Final = 4
_STANDING_BITS: Final = 2
_FIELDS: Final = (("annotation", _STANDING_BITS), ("authority", _TIER_BITS), ("updated_at", _UPDATED_BITS), ("chain", _CHAIN_BITS))
_MAX_CHAIN_LENGTH: Final = (1 << _CHAIN_BITS) - 1
_MAX_NAME_LENGTH: Final = 80
_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)

_VERBS: Final = re.compile(
    r"\b(?:is|are|be|equals?|set|rotates?|keeps?|retains?|stores?|deletes?|purges?|removes?|requires?|needs?|expires?|lasts?|listens?"
    r"|runs?|takes?|uses?|allows?|permits?|costs?|supports?|limits?|times? out|retries|retry|has|have|gets?|receives?|accrues?|sends?"
    r"|refreshes|serves?|polls?|accepts?|holds?|waits?|contains?|closes?|opens?|starts?|ends?|begins?|may|can|must|shall|earns?|pays?"
    r"|covers?|charges?|renews?|returns?|scales?|caches?|stays?|remains?|exceed)\b",
    re.IGNORECASE,
)
_HEDGES: Final = re.compile(
    r"\b(?:was|were|had|did|been|will|would|could|might|never|not(?! (?:exceed|more|less|fewer|be (?:longer|more|less)))"
    r"|no longer(?! than)|isn't|aren't|cannot|previously|formerly|earlier|used to|until|proposed?|propos(?:al|es)|suggests?|plans to"
    r"|planned|considers?|considering|if|unless|example|instance|e\.g|say|said|says|claims that|reported|reportedly|asked|about"
    r"|approximately|around|roughly|almost|nearly|usually|typically|often|sometimes|average|mean|median|estimated|expected|over|under|above|below|between"
    r"|either|(?<!no )(?<!not )(?:more|less|fewer|longer) than|from|except|one of|or|some|observed|measured|last (?:year|month|week)"
    r"|yesterday|today|when|while|because|instead|rather)\b|~|\"|\u201c",
    re.IGNORECASE,
)
_ENUMERATORS: Final = re.compile(
    r"(?:\b(?:fig|figure|table|section|step|page|chapter|appendix|phase|part|item|level|tier|ticket|issue|room|floor|line|rule|article|no"
    r"|clause|paragraph|incident|day|week|quarter|grade|class|priority|severity|sev|zone)|[#(])[.]?\s*$",
    re.IGNORECASE,
)
_NAME_EDGE: Final = re.compile(r"^(?:(?:the|a|an|all|our|we|you|each|every|in|for|must|please)\s+)+", re.IGNORECASE)
_COPULA: Final = re.compile(r"^(?:is|are|(?:must|should|shall) be)\b", re.IGNORECASE)


class Standing(IntEnum):
    """What people have said about a fragment; a correction outweighs any other annotation."""

    NONE = 0
    ANNOTATED = 1
    CORRECTION = 2


class ClaimedFragment(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a fragment brings to a conflict."""

    chunk_id: ChunkId
    document_id: DocumentId
    text: str
    title: str = ""
    authority_tier: AuthorityTier = AuthorityTier.DERIVED
    updated_at: datetime | None = None
    chain_length: int = 0
    standing: Standing = Standing.NONE


_Made: TypeAlias = list[tuple[ClaimedFragment, Claim]]


class _Position(msgspec.Struct, frozen=True, gc=False):
    """One fragment's value for one claim."""

    fragment: ClaimedFragment
    claim: Claim
    value: Value


def preference_of(fragment: ClaimedFragment) -> int:
    """Return the preference as one integer, greater first; equal ones are told apart by the smaller chunk id."""
    fields = (
        int(fragment.standing),
        fragment.authority_tier.rank,
        _count_microseconds(fragment.updated_at),
        _MAX_CHAIN_LENGTH - min(max(0, fragment.chain_length), _MAX_CHAIN_LENGTH),
    )
    preference = 0
    for (_, bits), number in zip(_FIELDS, fields, strict=True):
        preference = preference << bits | number
    return preference


def read_claims(fragment: ClaimedFragment) -> Sequence[Claim]:
    """Return what a fragment claims; depends on its text and title alone, so it may be remembered by chunk id."""
    return extract_claims(fragment.text, title=fragment.title)


def find_conflicts(
    fragments: Sequence[ClaimedFragment], *, read: Callable[[ClaimedFragment], Sequence[Claim]] = read_claims
) -> tuple[Conflict, ...]:
    """Return the conflicts in the order of their words, whatever the order of the fragments.

    `read` is where a caller that remembers claims gives them; reading is most of the cost.

    1. Read the claims of every fragment.
    2. Keep those that at least two documents make, with values of one dimension, one value per document.
    3. Prefer one fragment; those with another value are the losers, best first.
    """
    if len({fragment.document_id for fragment in fragments}) < 2:  # noqa: PLR2004 - it takes two to disagree
        return ()
    conflicts = []
    for key, positions in sorted(_group(fragments, read).items()):
        ordered = sorted(_drop_lists(positions), key=lambda position: (-preference_of(position.fragment), position.fragment.chunk_id))
        conflict = _decide(ordered)
        if conflict is not None:
            conflicts.append((key, conflict))
    return tuple(conflict for _, conflict in conflicts)


def _group(
    fragments: Iterable[ClaimedFragment], read: Callable[[ClaimedFragment], Sequence[Claim]]
) -> dict[tuple[tuple[str, ...], str], list[_Position]]:
    """Return the positions by claim and dimension; values are read only where two documents make a claim."""
    by_key: dict[frozenset[str], _Made] = {}
    for fragment in fragments:
        for claim in read(fragment):
            by_key.setdefault(claim.key, []).append((fragment, claim))
    groups: dict[tuple[tuple[str, ...], str], list[_Position]] = {}
    for key, made in _join_house_rules(by_key).items():
        if len(made) == 1 or not _may_differ(made):
            continue
        for fragment, claim in made:
            value = read_value(claim.value, unit=claim.unit) if _is_definite(claim) else None
            if value is not None:
                groups.setdefault((tuple(sorted(key)), value.dimension), []).append(_Position(fragment, claim, value))
    return groups


def _join_house_rules(by_key: dict[frozenset[str], _Made]) -> dict[frozenset[str], _Made]:
    """Join claims that are specific, made for the whole house, and differ in their titles only, as those of a policy and a handbook.

    Titles with a word in common (`Handbook Japan`, `Handbook France`) may well be about different things, and join nothing.
    """
    keys_of_own: dict[frozenset[str], dict[frozenset[str], frozenset[str]]] = {}
    for key, made in by_key.items():
        for fragment, claim in made:
            if claim.own:
                titles = keys_of_own.setdefault(claim.own, {})
                titles[key] = titles.get(key, frozenset()) | title_words_of(fragment.title)
    joined = dict(by_key)
    for _, titles in sorted(keys_of_own.items(), key=lambda entry: sorted(entry[0])):
        is_disjoint = sum(map(len, titles.values())) == len(frozenset().union(*titles.values()))
        if len(titles) > 1 and is_disjoint:
            first, *others = sorted(titles, key=sorted)
            joined[first] = [pair for key in (first, *others) for pair in joined.pop(key, ())]
    return joined


def _may_differ(made: _Made) -> bool:
    """Say whether there are two documents and two spellings of the value; where there are not, nothing needs to be read."""
    first_fragment, first_claim = made[0]
    has_documents = any(fragment.document_id != first_fragment.document_id for fragment, _ in made)
    return has_documents and any((claim.value, claim.unit) != (first_claim.value, first_claim.unit) for _, claim in made)


def _is_definite(claim: Claim) -> bool:
    """Say whether a sentence states its value: in the present, without doubt or condition, and not as the number of a figure or step."""
    if not claim.sentence:
        return True
    rest = f"{claim.sentence[: claim.start]} {claim.sentence[claim.end :]}"
    has_number = _ENUMERATORS.search(claim.sentence[: claim.start]) is not None
    return not has_number and _VERBS.search(rest) is not None and _HEDGES.search(rest) is None


def _drop_lists(positions: list[_Position]) -> list[_Position]:
    """Return the positions of documents that take one value only, one for each fragment."""
    values: dict[DocumentId, set[str]] = {}
    for position in positions:
        values.setdefault(position.fragment.document_id, set()).add(position.value.text)
    by_chunk = {position.fragment.chunk_id: position for position in positions if len(values[position.fragment.document_id]) == 1}
    return list(by_chunk.values())


def _decide(ordered: list[_Position]) -> Conflict | None:
    if not ordered:
        return None
    winner = ordered[0]
    losers = [position for position in ordered if position.value != winner.value]
    if not losers:
        return None
    subject, attribute = _name(winner.claim)
    return Conflict(
        subject=subject,
        attribute=attribute,
        winner=winner.fragment.chunk_id,
        value=winner.claim.value,
        losers=tuple(loser.fragment.chunk_id for loser in losers),
        losing_values=tuple(loser.claim.value for loser in losers),
        decided_by=_name_criterion(preference_of(winner.fragment), preference_of(losers[0].fragment)),
    )


def _name_criterion(winning: int, losing: int) -> str:
    """Return the highest field in which the two preferences differ."""
    differing = winning ^ losing
    below = sum(bits for _, bits in _FIELDS)
    for name, bits in _FIELDS:
        below -= bits
        if differing >> below:
            return name
    return "id"


def _name(claim: Claim) -> tuple[str, str]:
    """Return subject and attribute as the claim words them, cut to 80 characters."""
    subject, attribute = claim.subject, claim.attribute
    if claim.sentence:
        before = claim.sentence[: claim.start].strip()
        verb = _VERBS.search(before)
        noun, predicate = (before[: verb.start()], before[verb.start() :]) if verb else (before, "")
        noun, predicate = _NAME_EDGE.sub("", noun).strip(), _COPULA.sub("", predicate).strip()
        head, _, last = noun.rpartition(" ")
        subject, attribute = (noun or claim.subject, predicate) if predicate else (head or claim.subject, last)
    return subject[:_MAX_NAME_LENGTH], attribute[:_MAX_NAME_LENGTH]


def _count_microseconds(moment: datetime | None) -> int:
    """Return microseconds since the year 1, and one more: 0 is the unknown moment. A moment without a zone is taken as UTC."""
    if moment is None:
        return 0
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - _BEGINNING) // timedelta(microseconds=1) + 1
