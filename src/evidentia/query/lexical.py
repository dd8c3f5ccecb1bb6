"""What a question's words ask of the index: terms with how often each is asked for and what it counts, and phrases.

Quotations prefer: what is quoted, stands between code ticks or was pasted (a log line, a line of a stack trace) counts as terms like the
rest, and raises what holds it as it is written. Only `+"..."` binds: its words must stand together and in order. A quote that is never
closed is an ordinary character. Pasted text is read as words, never as anything else.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from evidentia.contracts.answer_rules import TODAY, AnswerRules
from evidentia.contracts.search import LexicalQuery
from evidentia.text.english import FUNCTION_WORDS, LANGUAGES
from evidentia.text.tokens import STOP_WORDS, Tokeniser

QUOTES: Final = '"\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}'
QUOTED: Final = re.compile(f"[{QUOTES}]([^{QUOTES}]+)[{QUOTES}]")
"""A quoted stretch; the group is what stands between the quotes."""
REQUIRED: Final = re.compile(rf"(?<!\S)\+{QUOTED.pattern}")
"""A quoted stretch that every hit must hold."""
MAX_PREFERRED: Final = 32
MAX_PHRASE_TERMS: Final = 32
"""A longer stretch prefers its beginning."""


def lexical_query(text: str, tokeniser: Tokeniser, *, rules: AnswerRules = TODAY) -> LexicalQuery:
    """Return the terms and phrases of a question, by the rules of an engine version."""
    terms = Counter(tokeniser.terms(text))
    query = LexicalQuery(terms=dict(sorted(terms.items())))
    lines = _read_lines(text) if rules.prefers_quotations or rules.weighs_terms else ()
    if rules.weighs_terms:
        query = msgspec.structs.replace(query, weights=_term_weights(terms, lines, tokeniser))
    if not rules.prefers_quotations:
        phrases = (tuple(tokeniser.phrase_terms(quoted)) for quoted in QUOTED.findall(text))
        return msgspec.structs.replace(query, phrases=tuple(phrase for phrase in phrases if len(phrase) > 1))
    required = (tuple(tokeniser.phrase_terms(quoted)) for quoted in REQUIRED.findall(text))
    preferred = (tuple(tokeniser.phrase_terms(stretch))[:MAX_PHRASE_TERMS] for stretch in _preferred_stretches(text, lines))
    found = dict.fromkeys(phrase for phrase in preferred if len(phrase) > 1)
    return msgspec.structs.replace(query, phrases=tuple(filter(None, required)), preferred=tuple(found)[:MAX_PREFERRED])


# --- quotations ---
# What of a question is quoted, stands between ticks, or was pasted: told by its form alone, line by line.

_FORM_CHARS: Final = 256
"""The form of a line shows at its beginning; the patterns look no further."""
_TICKED: Final = re.compile(r"(?<!`)(`{1,3})([^`\n]+)\1(?!`)")
_FENCE: Final = re.compile(r"\s*(```|~~~)(?!.*\1)")
_STAMP: Final = r"\[?(?:\d{4}[-/]\d\d[-/]\d\d[T ])?\d\d:\d\d:\d\d\S*\s+|\w{3} +\d{1,2} \d\d:\d\d:\d\d\s+|\d{4}-\d\d-\d\d\s+"
_LEVEL: Final = r"\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL|SEVERE|PANIC)\]?(?:[:\s]\s*|$)"
_LOGGED: Final = re.compile(rf"\s*(?:(?:{_STAMP})+(?:\S+ )??(?:{_LEVEL})?|{_LEVEL})")
_FRAME: Final = re.compile(
    r"\s*(?:File \"[^\"]*\", line \d+|Traceback \(most recent call last\)|at \S+ ?\(.*\)\s*$|at \S+:\d+\S*\s*$"
    r"|\.\.\. \d+ (?:more|common frames)|goroutine \d+|\S+\.\w{1,5}:\d+\b)"
)
_RAISED: Final = re.compile(
    r"\s*(?:Caused by: |(?:[\w$]+\.)*\w*(?:Error|Exception|Warning|Failure)(?::\s|$)|(?:error|fatal|panic)(?:\[\w+\])?: )"
)
_CLAUSE: Final = re.compile(r":\s+")


class _Line(NamedTuple):
    """One line of a question: whether it was pasted, and what of it is preferred."""

    text: str
    is_pasted: bool
    stretches: tuple[str, ...] = ()


def _read_lines(text: str) -> list[_Line]:
    """Return the lines of a question; those in a fence are code, and what follows a frame further in is its source line."""
    if not any(mark in text for mark in ("\n", ":", ")")):
        return [_Line(text, is_pasted=False)]
    found: list[_Line] = []
    is_fenced = is_framed = False
    for line in text.split("\n"):
        head, was_framed = line[:_FORM_CHARS], is_framed
        is_framed = _FRAME.match(head) is not None
        logged = _LOGGED.match(head)
        if _FENCE.match(head):
            is_fenced = not is_fenced
            found.append(_Line(line, is_pasted=False))
        elif is_framed:
            found.append(_Line(line, is_pasted=True))
        elif logged or _RAISED.match(head):
            message = line[logged.end() :] if logged else line
            found.append(_Line(line, is_pasted=True, stretches=tuple(_CLAUSE.split(message))))
        else:
            is_code = is_fenced or (was_framed and head[:1].isspace())
            found.append(_Line(line, is_pasted=is_code, stretches=(line,) if is_code else ()))
    return found


def own_lines_first(text: str) -> str:
    """Return a text with its pasted lines at the end: an encoder reads the beginning."""
    lines = _read_lines(text) if "\n" in text else ()
    return "\n".join(line.text for line in sorted(lines, key=lambda line: line.is_pasted)) if lines else text


def _preferred_stretches(text: str, lines: Iterable[_Line]) -> Iterator[str]:
    """Yield what should be found as it is written: quoted and ticked stretches first, then what pasted lines say."""
    yield from QUOTED.findall(REQUIRED.sub(" ", text))
    yield from (stretch for _, stretch in _TICKED.findall(text))
    for line in lines:
        yield from line.stretches


# --- weights ---
# What a term of the question counts. Figures for each rule are in docs/understanding.md.
#
# A function word says little of the subject, and in a corpus where it is rare (tables, code) it would count most of all. A word that the
# question repeats counts up to twice (BM25's k3 at 1). What was pasted counts together at most as much as the question's own words.

FUNCTION_WEIGHT: Final = 96
"""What a function word counts, in 256ths."""
LEAST_OWN_TERMS: Final = 16
"""Pasted terms count in full up to this many, however short the question is."""
_BITS: Final = 8
_LATIN: Final = frozenset(("e.g", "i.e", "etc"))
_TRIMMED: Final = f"`*.,;:!?()[]{{}}<>'{QUOTES}"
_ENDS: Final = tuple(".!?:;`([{" + QUOTES)
_APOSTROPHES: Final = str.maketrans(dict.fromkeys("\N{RIGHT SINGLE QUOTATION MARK}\N{MODIFIER LETTER APOSTROPHE}", "'"))


def _term_weights(terms: Mapping[str, int], lines: Iterable[_Line], tokeniser: Tokeniser) -> dict[str, int]:
    """Return what each occurrence of a term counts in 256ths, where that is less than 256."""
    own, pasted = Counter[str](), Counter[str]()
    for line in lines:
        (pasted if line.is_pasted else own).update(_subject_terms(line.text, tokeniser))
    named = own + pasted
    if not named:
        own = named = Counter(terms)  # nothing but function words: they are what is asked for
    added = pasted.keys() - own.keys()
    share = 1 << _BITS if not own else min(1 << _BITS, (max(len(own), LEAST_OWN_TERMS) << _BITS) // max(1, len(added)))
    weights: dict[str, int] = {}
    for term, times in terms.items():
        most, counted = ((share if term in added else 1 << _BITS), named[term]) if term in named else (FUNCTION_WEIGHT, times)
        weight = max(1, 2 * most * counted // ((1 + counted) * times))
        if weight < 1 << _BITS:
            weights[term] = weight
    return dict(sorted(weights.items()))


def _subject_terms(text: str, tokeniser: Tokeniser) -> Iterator[str]:
    """Yield the terms of a text that may name its subject, as often as they do."""
    is_english, has_small = tokeniser.language in LANGUAGES, any(map(str.islower, text))
    begins = True
    for piece in text.split():
        found = tokeniser.analyse(piece).terms
        bare = piece.strip(_TRIMMED)
        if not is_english or not _is_function_word(bare.translate(_APOSTROPHES).casefold()):
            yield from found if len(found) == 1 or not is_english else _named_parts(bare, found)
        elif bare.isupper() and has_small and (len(bare) > 1 or (bare == "A" and not begins)):
            yield from found  # WHO, IT, US and hepatitis A are no function words; I is
        begins = piece.endswith(_ENDS) or not bare


def _is_function_word(plain: str) -> bool:
    return plain in FUNCTION_WORDS or plain in _LATIN or plain.partition("'")[0] in FUNCTION_WORDS


def _named_parts(bare: str, found: tuple[str, ...]) -> Iterator[str]:
    """Yield the terms of a compound without the one-letter parts of an abbreviation, or function words that it is searched whole with."""
    letters = bare.replace(".", "")
    is_abbreviation = letters.isascii() and letters.isalpha() and len(letters) == len(found) - 1
    for number, term in enumerate(found):
        is_part = number > 0 and "-" not in bare
        if not (is_part and (is_abbreviation or term in FUNCTION_WORDS)):
            yield term


# --- expansion ---
# Terms that a step adds to a question, and how additions of several steps become one.

FULL_WEIGHT: Final = 1 << _BITS
"""What a term counts that stands in for one which occurs nowhere: as much as a term that was asked for."""
PARTIAL_WEIGHT: Final = 128
"""What a term counts that is added beside one which was asked for."""
MAX_EXPANSIONS: Final = 64
"""A question is given no more terms than these."""


class Expansion(msgspec.Struct, frozen=True, kw_only=True):
    """Terms that were added with their weights in 256ths, in the order of finding, and what was done in one line."""

    weights: Mapping[str, int] = msgspec.field(default_factory=dict)
    note: str
    corrected: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Words of the question, in lower case, that are taken for others."""


def corrected_text(text: str, corrected: Mapping[str, str]) -> str:
    """Return a text with words replaced, except those in quotes."""
    if not corrected:
        return text
    words = "|".join(map(re.escape, corrected))
    either = re.compile(rf"{QUOTED.pattern}|\b(?P<word>{words})\b", re.IGNORECASE)
    return either.sub(lambda found: corrected.get(found["word"].lower(), found[0]) if found["word"] else found[0], text)


def added_terms(text: str, tokeniser: Tokeniser) -> list[str]:
    """Return the terms of an added text; stop words are left out unless there is nothing else."""
    terms = list(dict.fromkeys(tokeniser.terms(text)))
    return [term for term in terms if term not in STOP_WORDS] or terms


def without_terms(expansion: Expansion, terms: Mapping[str, int]) -> Expansion:
    """Return the expansion without terms that were asked for."""
    weights = {term: weight for term, weight in expansion.weights.items() if term not in terms}
    return msgspec.structs.replace(expansion, weights=weights)


def expand(query: LexicalQuery, expansions: Iterable[Expansion]) -> LexicalQuery:
    """Return the query with the additions; a term added twice counts its greater weight, and of too many the first stay."""
    weights: dict[str, int] = {}
    for expansion in expansions:
        for term, weight in expansion.weights.items():
            if term not in query.terms and (term in weights or len(weights) < MAX_EXPANSIONS):
                weights[term] = max(weight, weights.get(term, 0))
    return msgspec.structs.replace(query, expansions=dict(sorted(weights.items())))
