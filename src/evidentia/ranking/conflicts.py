"""Which fragments disagree, and which of them is preferred. Flags, never drops: the losers stay where they are.

A conflict is one claim (`claims`) that different documents give different values for. A document that gives several values for one claim
lists them, and takes no part in it. Which fragment is preferred is one integer per fragment, the criteria as bit fields in their order, so
that a lower one never outweighs a higher one; the chunk id decides last.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import msgspec

from evidentia.contracts.evidence import Conflict
from evidentia.contracts.ids import ChunkId, DocumentId
from evidentia.contracts.vocabulary import AuthorityTier
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


# --- claim values ---
# Values of claims: where one stands in a sentence, and when two of them are the same. Converts only what converts exactly.
#
# Values are compared within a *dimension*: durations up to weeks, months and years, bytes, percentages, money of one currency, dates,
# times of day, versions, plain numbers, flags, words. 90 days and 3 months are not comparable, nor is a number without a unit to one that
# has it.

_MILLISECONDS: Final = {
    **dict.fromkeys(("ms", "msec", "millis", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1_000),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
    **dict.fromkeys(("w", "week", "weeks"), 604_800_000),
}
_MONTHS: Final = {"month": 1, "months": 1, "year": 12, "years": 12}
_BYTES: Final = {
    name: level for level, letter in enumerate("kmgtp", start=1) for name in (f"{letter}b", f"{letter}ib", letter, f"{letter}i")
}
_BYTE_WORDS: Final = {"byte": 0, "bytes": 0, "kilobytes": 1, "megabytes": 2, "gigabytes": 3, "terabytes": 4}
_PERCENT: Final = ("%", "percent")
_CURRENCIES: Final = {"$": "usd", "\u20ac": "eur", "\u00a3": "gbp", "\u00a5": "jpy"}
_CURRENCY_CODES: Final = ("usd", "eur", "gbp", "chf", "jpy", "dollars", "euros", "euro", "pounds")
_CURRENCY_WORDS: Final = {"dollars": "usd", "euros": "eur", "euro": "eur", "pounds": "gbp"}
_MONTH_NAMES: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_FLAGS: Final = {
    **dict.fromkeys(("true", "yes", "on", "enabled"), "true"),
    **dict.fromkeys(("false", "no", "off", "disabled"), "false"),
}
_NO_VALUES: Final = frozenset(
    "none null nil n/a na tbd tba unknown varies various todo see below above default auto changeme example optional required string "  # noqa: SIM905 - a list of words reads as words
    "integer number boolean float here - -- ... pending other mixed multiple".split()
)
_MAX_DIGITS: Final = 18
_THOUSAND: Final = (1024, 1000)
_TOP_LEVEL: Final = 6
_WORD_VALUE: Final = re.compile(r"[\w.@/+:~-]+(?: [\w.@/+-]+){0,2}")
_RANGE: Final = re.compile(r"[\d.]+[\w%]*[/~:+-]+[\d.]+[\w%]*")
_ALTERNATIVE: Final = re.compile(r"\b(?:or|and|to|per|see|if|the|is|are)\b", re.IGNORECASE)

_NAMED_MONTH: Final = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_SPACED_UNITS: Final = (
    r"ms|msecs?|millis|milliseconds?|s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?|days?|weeks?|months?|years?|[kmgtp]i?b|bytes?"
    r"|(?:kilo|mega|giga|tera)bytes|%|percent|usd|eur|gbp|chf|jpy|dollars|euros?|pounds"
)
_VALUE: Final = re.compile(
    rf"""(?<![\w.,:/\#@+\\\u2013-])(?:
      (?P<iso>\d{{4}}-\d\d-\d\d)
    | (?P<clock>\d{{1,2}}:\d\d)
    | (?P<day>\d{{1,2}})(?:st|[nr]d|th)?\ (?:of\ )?(?P<month>{_NAMED_MONTH})\.?,?\ (?P<year>\d{{4}})
    | (?P<us_month>{_NAMED_MONTH})\.?\ (?P<us_day>\d{{1,2}})(?:st|[nr]d|th)?,?\ (?P<us_year>\d{{4}})
    | (?P<currency>[$€£¥]\ ?|(?:usd|eur|gbp|chf|jpy)\ )?(?:v(?=\d+\.))?(?P<number>\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d+(?:\.\d+)*)
      (?:(?P<unit>[smhdwkgt]|[kmgtp]i)|[\ -]?(?P<spaced>{_SPACED_UNITS}))?
    )(?![\w/%]|[.,:\u2013-]\d|-\w)""",
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_DIGIT: Final = re.compile("[0-9]")
_JOINED: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,:/#@+\\\u2013-")
"""What a number is no value behind, as the pattern says too."""
_SHORT_LEADS: Final = frozenset(("$", "\u20ac", "\u00a3", "\u00a5", "v", "V"))
_NUMBERED: Final = frozenset(("severity", "sev", "priority", "tier", "level", "class", "grade", "zone"))
_LEAD_WORDS: Final = frozenset((*_MONTH_NAMES, *_CURRENCIES, "usd", "eur", "gbp", "chf", "jpy"))


class Value(NamedTuple):
    """A value in one spelling; two of the same dimension are the same if and only if their texts are."""

    dimension: str
    text: str


def find_value(text: str) -> re.Match[str] | None:
    """Return where the only value of a sentence stands; None when there is none or more than one, as in lists and ranges."""
    found = _find_next(text, 0)
    if found is None or _find_next(text, found.end()) is not None:
        return None
    return found


def _find_next(text: str, start: int) -> re.Match[str] | None:
    """Try the pattern only where a number begins: searching with it is slow."""
    digit = _DIGIT.search(text, start)
    while digit is not None:
        place = digit.start()
        before = text[place - 1] if place else ""
        if before == " ":
            found = _match_after_space(text, start, place)
        elif before in _SHORT_LEADS:
            found = _VALUE.match(text, max(start, place - 1)) or _VALUE.match(text, place)
        else:
            found = None if before in _JOINED else _VALUE.match(text, place)
        if found is not None:
            return found
        following = text.find(" ", place)
        digit = _DIGIT.search(text, following) if following >= 0 else None
    return None


def _match_after_space(text: str, start: int, digit: int) -> re.Match[str] | None:
    """Match a value at its first digit, or with the currency or month before it; None when it numbers a name."""
    word = text.rfind(" ", 0, digit - 1) + 1
    last = text[word : digit - 1].lower()
    if last in _NUMBERED:
        return None
    with_lead = _VALUE.match(text, max(start, word)) if last[:3] in _LEAD_WORDS else None
    return with_lead or _VALUE.match(text, digit)


def is_unit(word: str) -> bool:
    """Say whether a word at the end of a name gives the unit of its value, as in `timeout_ms`."""
    return len(word) > 1 and word in _UNIT_NAMES


def read_value(text: str, *, unit: str = "") -> Value | None:
    """Return a short text as a value, a bare number with the unit its name gave; None when it says nothing definite."""
    bare = " ".join(text.split()).lower()
    found = _VALUE.fullmatch(text.strip())
    if found is not None:
        return _read_quantity(found, unit=unit)
    if bare in _FLAGS:
        return Value("flag", _FLAGS[bare])
    is_unclear = _RANGE.fullmatch(bare) is not None or (" " in bare and _DIGIT.search(bare) is not None)
    if is_unclear or bare in _NO_VALUES or _WORD_VALUE.fullmatch(bare) is None or _ALTERNATIVE.search(bare):
        return None
    return Value("word", bare)


def _read_quantity(found: re.Match[str], *, unit: str) -> Value | None:
    parts = found.groupdict()
    if parts["iso"]:
        return Value("date", parts["iso"])
    if parts["clock"]:
        return Value("clock", parts["clock"].rjust(5, "0"))
    if parts["number"] is None:
        return _read_date(parts["day"] or parts["us_day"], parts["month"] or parts["us_month"], parts["year"] or parts["us_year"])
    digits = parts["number"].replace(",", "")
    if len(digits) > _MAX_DIGITS:
        return None
    currency = (parts["currency"] or "").strip().lower()
    if digits.count(".") > 1 or found[0][:1] in "vV":
        return Value("version", digits)
    spelt = parts["unit"] or parts["spaced"] or ""
    # Glued capitals are sizes (512M), glued small letters times (30m).
    name = f"{spelt}b" if parts["unit"] and spelt in {"K", "M", "G", "T"} else spelt
    return _measure(Decimal(digits), (name or unit).lower(), currency=_CURRENCIES.get(currency, currency))


def _measure(number: Decimal, unit: str, *, currency: str) -> Value | None:
    if currency:
        return None if unit else Value(f"money {currency}", _spell(number))
    if unit in _MILLISECONDS:
        return Value("duration", _spell(number * _MILLISECONDS[unit]))
    if unit in _MONTHS:
        return Value("months", _spell(number * _MONTHS[unit]))
    if unit in _BYTE_WORDS or unit in _BYTES:
        return Value("bytes", _spell_bytes(number, _BYTE_WORDS.get(unit, _BYTES.get(unit, 0))))
    if unit in _CURRENCY_CODES:
        return Value(f"money {_CURRENCY_WORDS.get(unit, unit)}", _spell(number))
    return Value("percent" if unit in _PERCENT else "number", _spell(number))


def _spell(number: Decimal) -> str:
    return f"{number.normalize():f}"


def _spell_bytes(number: Decimal, level: int) -> str:
    """Return the size in its largest whole unit, reading 1000 and 1024 alike: nobody can tell which one a document means."""
    while number % 1 and level:
        number, level = number * 1024, level - 1
    while number and level < _TOP_LEVEL and any(number % thousand == 0 for thousand in _THOUSAND):
        number /= 1024 if number % 1024 == 0 else 1000
        level += 1
    return f"{_spell(number)} {level}"


def _read_date(day: str, month: str, year: str) -> Value:
    number = _MONTH_NAMES.index(month[:3].lower()) + 1
    return Value("date", f"{year}-{number:02}-{int(day):02}")


_UNIT_NAMES: Final = frozenset([*_MILLISECONDS, *_MONTHS, *_BYTES, *_BYTE_WORDS, *_PERCENT, *_CURRENCY_CODES]) - {"min", "k", "m", "g"}
