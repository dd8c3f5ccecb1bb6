"""A question made ready for retrieval, and what is to be said of a query that an agent wrote itself.

A prepared query has the names, times and attributes of the question and its other words of substance, in their order, then variants:
short and long forms that the corpus explains, the user's synonyms (aliases and historical names among them), words of the shipped groups.
Nothing is added that the question does not lead to. Questions for lists, extracts, overviews and histories are given more.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import structs

from evidentia.contracts.protocol import PreparedQuery, QuestionType
from evidentia.protocol.classification import question_type
from evidentia.protocol.question_words import COMMON, GENERIC, probe_of, relatives, stem_of, words_near
from evidentia.protocol.questions import QuestionFacts, read_question, times_of
from evidentia.query.corrections import expand_abbreviations
from evidentia.query.normalisation import normalise_text
from evidentia.query.synonyms import Synonyms, expand_synonyms
from evidentia.query.words import Word, words_of
from evidentia.tables.phrases import BEFORE_PERIOD, MAX_OPERATOR_LENGTH, OPERATORS, PERIODS
from evidentia.text.english import AUXILIARIES, FUNCTION_WORDS, PERSONAL, QUESTION_WORDS
from evidentia.text.tokens import Tokeniser

if TYPE_CHECKING:
    from evidentia.contracts.evidence import Turn
    from evidentia.contracts.ports import Lexicon


AnySynonyms = Synonyms | Mapping[str, tuple[str, ...]]
"""What was read from a file of synonyms, or words with their other names."""

MAX_VARIANTS: Final = 4
MAX_VARIANTS_EXPANDED: Final = 10
MAX_WORKING_WORDS: Final = 12
LEAST_STRAYS: Final = 5
"""Unexplained words that make another topic, where they are twice as many as the others."""
MANY_STRAYS: Final = 6
"""Unexplained words that make another topic, where they are as many as the others."""
MAX_QUERY_LENGTH: Final = 2_000
"""Characters of a query that are looked at."""
_LEAST_SHARED: Final = 4
"""Letters that two words have to share at their beginning to be one family."""
_EXPANDED: Final = frozenset((QuestionType.LIST, QuestionType.EXTRACTION, QuestionType.SUMMARY, QuestionType.HISTORY, QuestionType.TABLE))
INTENT_WORDS: Final = {
    QuestionType.LIST: ("list", "overview", "catalogue"),
    QuestionType.EXTRACTION: ("list", "details"),
    QuestionType.SUMMARY: ("summary", "overview"),
    QuestionType.HISTORY: ("history", "timeline", "changes"),
    QuestionType.TABLE: ("table", "list"),
    QuestionType.RANKING: ("ranking",),
    QuestionType.COMPARISON: ("comparison",),
    QuestionType.PRICE: ("price",),
    QuestionType.SPECIFICATION: ("specifications",),
    QuestionType.INVENTORY: ("stock",),
    QuestionType.WORKFLOW: ("procedure", "steps"),
    QuestionType.POLICY: ("policy", "rules"),
    QuestionType.DEFINITION: ("definition",),
    QuestionType.EXPLANATION: ("reason", "cause"),
    QuestionType.MIXED: ("explanation",),
}
"""What is added to a query by what the question is after."""
_WORDS: Final = re.compile(r"\w+(?:['.-]\w+)*")
_ASKING: Final = QUESTION_WORDS | AUXILIARIES | PERSONAL | frozenset(("i", "we", "you", "me", "us", "please", "my", "our", "your"))
# ruff: noqa: SIM905 - a list of words reads as words
_COMMANDS: Final = frozenset(
    "show give tell list name find explain compare summarise summarize extract define describe get put pull collect gather enumerate walk "
    "tabulate rank outline look".split()
)
_FILLERS: Final = _COMMANDS | frozenset("need want know like say says said mean means happened happen thing things anything".split())
_tokeniser: Final = Tokeniser("english")


class QueryFacts(NamedTuple):
    """What is to be said of a query beside the question it is for."""

    is_raw: bool
    containment: float
    strays: int


def prepare_query(
    question: str,
    *,
    turns: Sequence[Turn] = (),
    synonyms: AnySynonyms | None = None,
    lexicon: Lexicon | None = None,
    kind: QuestionType | None = None,
    for_tables: bool = False,
) -> PreparedQuery:
    """Return a query for a question, with what was read in it; a question that works as it is stays as it is.

    One for tables keeps the conditions, comparisons and orders of the question, and is given no variants: a planner explains every word.
    """
    facts, kind = read_question(question, turns=turns), kind or question_type(question)
    prepared = prepare(facts, kind=kind, synonyms=synonyms, lexicon=lexicon)
    if not for_tables:
        return prepared
    return structs.replace(prepared, query=facts.text if prepared.is_question else table_query(facts), variants=())


def prepare(
    facts: QuestionFacts, *, kind: QuestionType, synonyms: AnySynonyms | None = None, lexicon: Lexicon | None = None
) -> PreparedQuery:
    """Return a query for a question that was read before."""
    core = core_words(facts)
    variants = _variants(facts, core, kind=kind, synonyms=synonyms, lexicon=lexicon)
    is_question = works_raw(facts)
    named = tuple(entity.text for entity in facts.entities) or tuple(word for word in core if word.casefold() not in GENERIC)
    return PreparedQuery(
        query=facts.text if is_question else " ".join((*core, *variants)),
        entities=named,
        time_scope=times_of(facts),
        attributes=facts.attributes,
        intent=kind,
        variants=variants,
        is_question=is_question,
    )


def works_raw(facts: QuestionFacts) -> bool:
    """Tell whether a question already is a query: a few words of substance, nothing that asks or commands."""
    words = facts.words
    if not words or len(words) > MAX_WORKING_WORDS or "?" in words[-1].tail:
        return False
    if words[0].plain in _COMMANDS or any(word.plain in _ASKING and not word.is_quoted for word in words):
        return False
    return 2 * sum(word.is_content for word in words) >= len(words)


def even(text: str) -> str:
    """Return a text without regard to case, spaces and punctuation."""
    return " ".join(_WORDS.findall(text[:MAX_QUERY_LENGTH].casefold()))


def core_words(facts: QuestionFacts) -> tuple[str, ...]:
    """Return the words of substance of a question in their order, and those of the conversation."""
    kept = (word.text.strip('"') for word in facts.words if word.is_content and (word.is_quoted or word.plain not in _FILLERS))
    return tuple(dict.fromkeys((*kept, *facts.subject))) or tuple(word.text for word in facts.words)


def category_terms(core: Sequence[str], *, each: int) -> list[str]:
    """Return words of the groups that the subject's words stand in; names and words that only ask have none."""
    plain = [word for word in core if word.islower() and word not in GENERIC]
    return [near for word in plain for near in words_near(stem_of(word))[:each]]


def explained_stems(facts: QuestionFacts, *, synonyms: AnySynonyms | None = None, lexicon: Lexicon | None = None) -> frozenset[str]:
    """Return the stems that a question leads to: its own, of the groups its words stand in, of short and long forms, of synonyms."""
    stems = set(facts.content)
    for stem in facts.content:
        stems.update(probe.stem for probe in relatives(stem))
    if lexicon is not None:
        stems.update(expand_abbreviations(facts.text, tokeniser=_tokeniser, lexicon=lexicon).weights)
    if synonyms is not None:
        stems.update(stem_of(word) for name in _synonym_terms(facts.text, synonyms) for word in even(name).split())
    return frozenset(stems)


def judge_query(
    query: str,
    *,
    facts: QuestionFacts,
    explained: Collection[str],
    evidence: Sequence[str] = (),
    synonyms: AnySynonyms | None = None,
) -> QueryFacts:
    """Return what is to be said of a query; `explained` are the stems that the question leads to, `evidence` what was found before."""
    cut = normalise_text(query[:MAX_QUERY_LENGTH])
    evened = even(cut)
    is_raw = evened == even(facts.text)
    return QueryFacts(
        is_raw=is_raw,
        containment=1.0 if is_raw else _containment(cut, facts, synonyms),
        strays=_strays(evened, facts, explained, evidence),
    )


def _variants(
    facts: QuestionFacts, core: Sequence[str], *, kind: QuestionType, synonyms: AnySynonyms | None, lexicon: Lexicon | None
) -> tuple[str, ...]:
    """Return what is added, what the corpus and the user know before what is shipped; never a word that is there."""
    most = MAX_VARIANTS_EXPANDED if kind in _EXPANDED else MAX_VARIANTS
    found: list[str] = []
    if lexicon is not None:
        found += expand_abbreviations(facts.text, tokeniser=_tokeniser, lexicon=lexicon).weights
    if synonyms is not None:
        found += _synonym_terms(facts.text, synonyms)
    found += [entity.initials for entity in facts.entities if entity.initials]
    found += INTENT_WORDS.get(kind, ())
    found += category_terms(core, each=2 if kind in _EXPANDED else 1)
    there = {stem_of(word) for text in core for word in even(text).split()}
    fresh: dict[str, str] = {}
    for word in found:
        stem = stem_of(word.casefold())
        if stem not in there:
            fresh.setdefault(stem, word)
    return tuple(fresh.values())[:most]


def _synonym_terms(text: str, synonyms: AnySynonyms) -> list[str]:
    if isinstance(synonyms, Synonyms):
        return list(expand_synonyms(text, tokeniser=_tokeniser, synonyms=synonyms).weights)
    lowered = text.casefold()
    return [name for word, names in synonyms.items() if _is_in(word, lowered) for name in names]


def _is_in(name: str, lowered: str) -> bool:
    return all(probe_of(part).occurs(lowered) for part in name.split())


def _containment(query: str, facts: QuestionFacts, synonyms: AnySynonyms | None) -> float:
    """Return the share of the names that a query keeps; without names, how much of the subject, where half counts as all."""
    lowered = query.casefold()
    if facts.entities:
        kept = sum(entity.occurs(lowered) or _is_renamed(entity.text, lowered, synonyms) for entity in facts.entities)
        return kept / len(facts.entities)
    asked = {probe.stem for part in facts.parts for probe in part}
    topic = tuple(probe for probe in facts.topic if probe.stem in asked) or facts.topic
    if not topic:
        return 1.0
    shared = sum(
        probe.occurs(lowered)
        or any(other.occurs(lowered) for other in relatives(probe.stem))
        or _is_renamed(probe.start, lowered, synonyms)
        for probe in topic
    )
    return min(1.0, 2 * shared / len(topic))


def _is_renamed(name: str, lowered: str, synonyms: AnySynonyms | None) -> bool:
    return synonyms is not None and any(_is_in(other, lowered) for other in _synonym_terms(name, synonyms))


def _strays(evened: str, facts: QuestionFacts, explained: Collection[str], evidence: Sequence[str]) -> int:
    """Return how many words of substance nothing explains, where they are several and twice as many as those that are explained, or many.

    Fewer are words of the agent's own for the same thing: nobody can know all of them, so they are no strays.
    """
    strays: set[str] = set()
    known = 0
    for word in dict.fromkeys(evened.split()):
        stem = stem_of(word) if word.isalpha() else word
        if word in FUNCTION_WORDS or (stem not in facts.content and (word in GENERIC or word in COMMON)):
            continue
        if stem in explained or _is_kin(word, facts) or any(probe_of(word).occurs(text) for text in evidence):
            known += 1
        elif word.isalpha():
            strays.add(stem)
    count = len(strays)
    is_topic = count >= max(LEAST_STRAYS, 2 * known) or count >= max(MANY_STRAYS, known)
    return count if is_topic else 0


def _is_kin(word: str, facts: QuestionFacts) -> bool:
    """Tell whether a word is a name of the question, begins like one of its words, or belongs to what a short form stands for."""
    if not word.isalpha():
        return probe_of(word).occurs(facts.text.casefold())
    if len(word) >= _LEAST_SHARED and any(stem.startswith(word[:_LEAST_SHARED]) for stem in facts.content):
        return True
    return any(probe.short and word[0] in probe.short for probe in facts.topic)


# --- queries for tables ---
# A question as a query for tables: every condition, comparison and order stays as it was asked; only how one asks for them goes.
#
# Text-to-SQL reads `more than`, `how many`, `not` and superlatives, which a query for texts leaves out. Where nothing can
# go, the query begins with a word that only asks, so that it is never the question itself.

_POLITE: Final = re.compile(
    r"(?:(?:hi|hello|hey|please|kindly|ok|okay|well|so|and|also|thanks)\b[,!.]*\s+|"
    r"(?:can|could|would|will) (?:you|i|we) (?:please |kindly )?|do you (?:know|have) (?=what|which|who|how|when|where)|"
    r"i(?:'d| would)? (?:like|want|need|wish) to (?:know|see|have|get|find|learn) (?:out )?|let (?:me|us) (?:know|see) |"
    r"tell (?:me|us) (?:about )?)+",
    re.IGNORECASE,
)
_COMMAND: Final = re.compile(
    r"(?:list|show|display|give|find|return|get|provide|print|report|fetch|retrieve|tell|"
    r"i(?:'d| would)? (?:like|want|need)|what(?:'s| is| are| was| were)|"
    r"how much (?:is|are|was|were|does|do|did|will|would))(?:\s+(?:me|us))?\s+(?:(?:the|a|an)\s+)?",
    re.IGNORECASE,
)
_CHOICE: Final = re.compile(r"(?:which|what)\s+(?=\w)(?!is\b|are\b|was\b|were\b|do\b|does\b|did\b|has\b|have\b|of\b)", re.IGNORECASE)
_NUMBER: Final = re.compile(r"how many\s+", re.IGNORECASE)
_PROMPT: Final = "list"
_ASKERS: Final = QUESTION_WORDS | AUXILIARIES
_RATE_LENGTH: Final = 2
"""Words of `a month`."""
# ruff: noqa: SIM905 - a list of words reads as words
_DROPPED: Final = frozenset(
    "the a an this that these those our my your do does did done can could will would shall should may might must be been being please me "
    "us i we you there currently really exactly just still usually normally typically actually ever also".split()
)
"""Words that change neither what is asked nor of what; those that divide it (`have`, `are`, `who`) are not among them."""


def table_query(facts: QuestionFacts) -> str:
    """Return a question without what is only polite or only asks: `Which X ...` as `List X ...`, `How many X` as `Number of X`."""
    text = facts.text.strip().rstrip("?!. ")
    bare = _POLITE.sub("", text, count=1) if _POLITE.match(text) else text
    asked = _lead_off(bare)
    return " ".join((asked or text, *facts.subject))


def terse_table_query(facts: QuestionFacts) -> str:
    """Return the same in fewer words: without articles, auxiliaries and the like, operators excepted."""
    words = words_of(table_query(facts), limit=len(facts.words) + len(facts.subject) + 2)
    kept = [word for run in _runs(words) for word in run]
    return " ".join(map(_spelt, kept)).rstrip(",;:?!. ")


def _lead_off(text: str) -> str:
    for pattern, instead in ((_NUMBER, "number of "), (_CHOICE, f"{_PROMPT} ")):
        if found := pattern.match(text):
            return f"{instead}{text[found.end() :]}"
    found = _COMMAND.match(text)
    if found and text[found.end() :].strip():
        return text[found.end() :]
    first, _, rest = text.partition(" ")
    return f"{_PROMPT} {first.lower() if first.casefold() in _ASKERS else first} {rest}".rstrip() if text else ""


def _runs(words: Sequence[Word]) -> list[Sequence[Word]]:
    """Return the stretches that stay: each operator whole, and other words that say something."""
    kept: list[Sequence[Word]] = []
    place = 0
    while place < len(words):
        length = _operator_length(words, place)
        if length:
            kept.append(words[place : place + length])
        elif words[place].is_quoted or words[place].plain not in _DROPPED:
            kept.append(words[place : place + 1])
        place += length or 1
    return kept


def _operator_length(words: Sequence[Word], place: int) -> int:
    for length in range(min(MAX_OPERATOR_LENGTH, len(words) - place), 0, -1):
        phrase = tuple(word.plain for word in words[place : place + length])
        if phrase in OPERATORS or (length == _RATE_LENGTH and phrase[0] in BEFORE_PERIOD and phrase[1] in PERIODS):
            return length
    return 0


def _spelt(word: Word) -> str:
    """Return a word with the mark after it, where that may divide what is asked."""
    return word.text + "".join(mark for mark in word.tail[:1] if mark in ",.;")
