"""What a question names: entities, times, attributes, and the words it is about. Read once, asked often."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.protocol.classification import is_code_file
from evidentia.protocol.question_words import ATTRIBUTES, CALENDAR, COMMON, GENERIC, WordProbe, probe_of, stem_of
from evidentia.query.conversation import leans, subject_words
from evidentia.query.decomposition import split_comparison
from evidentia.query.normalisation import is_identifier, normalise_text
from evidentia.query.words import Word, words_of
from evidentia.text.english import AUXILIARIES, FUNCTION_WORDS, QUESTION_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evidentia.contracts.evidence import Turn

MAX_WORDS: Final = 256
MAX_ENTITIES: Final = 16
_MAX_TERMS: Final = 32
_LEAST_INITIALS: Final = 3
"""Words of a name whose first letters may stand for it."""
_INNER: Final = frozenset(("of", "de", "the", "for", "&"))
"""Words that may stand inside a name."""
_YEAR: Final = re.compile(r"(?<![\w.,-])(?:19|20)\d\d(?![\w%]|[.,]\d)")
_TIME: Final = re.compile(
    r"(?:(?:since|until|before|after|from|by|in|during|between) )?"
    r"(?:(?:early|mid|late)[ -])?(?:q[1-4]|h[12]|first half of|second half of|"
    r"\d{1,2}(?:st|[nr]d|th)?(?: of)?(?= (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)))?\s?"
    r"(?:(?:january|february|march|april|may(?= \d)|june|july|august|september|october|november|december)\b(?: \d{1,2},?)?)?\s?"
    r"(?:(?:19|20)\d\d(?:-\d\d(?:-\d\d)?)?(?: (?:to|and|until|till|-) (?:19|20)\d\d)?)?"
    r"|(?:last|this|next|previous|current|past) (?:\d+ )?(?:year|quarter|month|week|decade)s?|today|yesterday|currently|right now|latest"
)
_HAS_TIME: Final = re.compile(
    r"\d|last|this|next|previous|current|past|today|yesterday|now|latest|january|february|march|april|june|july|"
    r"august|september|october|november|december"
)
_PIECE: Final = re.compile(r"\w+")
_NUMBERED: Final = re.compile(r"\d+(?:[-/]\d+)+")


class Entity(NamedTuple):
    """Something that a question names, and the words by which it is found."""

    text: str
    probes: tuple[WordProbe, ...]
    initials: str = ""
    weak: tuple[WordProbe, ...] = ()
    """Words of it that any text may have, such as `small` and `team`: beside others they do not show that it is meant."""

    def occurs(self, text: str) -> bool:
        """Tell whether a text, in lower case, speaks of it: what has digits as it is, of other words at least half, one of them telling."""
        found = 0
        is_told = len(self.weak) == len(self.probes)
        for probe in self.probes:
            if probe.occurs(text):
                found += 1
                is_told = is_told or probe not in self.weak
            elif probe.spellings:
                return False
        return (is_told and 2 * found >= len(self.probes)) or (bool(self.initials) and probe_of(self.initials).occurs(text))


class QuestionFacts(NamedTuple):
    """What was read in a question."""

    text: str
    """In one spelling."""
    words: tuple[Word, ...]
    entities: tuple[Entity, ...]
    """What it names: names, identifiers, quoted phrases. Empty for a question in plain words."""
    topic: tuple[WordProbe, ...]
    """The words it is about, each once; those of the conversation among them, where it leans on that."""
    content: frozenset[str]
    """The stems of all its words that may name a subject."""
    subject: tuple[str, ...]
    """Words of the conversation."""
    years: tuple[str, ...]
    attributes: tuple[str, ...]
    sides: tuple[Entity, ...]
    """The two sides of a comparison."""
    parts: tuple[tuple[WordProbe, ...], ...] = ()
    """The subjects of what is asked, one for each question in it; what is only told or ordered is not among them."""


def read_question(question: str, *, turns: Sequence[Turn] = ()) -> QuestionFacts:
    """Return what a question names."""
    text = normalise_text(question)
    words = tuple(words_of(text, limit=MAX_WORDS))
    sides = _sides(words)
    subject = subject_words(turns) if turns and leans(text) else ()
    spoken = [*(word.text for word in words if word.is_content), *subject]
    return QuestionFacts(
        text=text,
        words=words,
        entities=tuple(_entities(words, sides)),
        topic=_topic(spoken),
        content=frozenset(stem for word in spoken for stem in _stems(word)),
        subject=subject,
        years=tuple(dict.fromkeys(_YEAR.findall(text))),
        attributes=tuple(dict.fromkeys(word.plain for word in words if word.plain in ATTRIBUTES)),
        sides=sides,
        parts=tuple(_parts_asked(words)),
    )


def times_of(facts: QuestionFacts) -> tuple[str, ...]:
    """Return the times that a question speaks of, as it puts them, in small letters."""
    lowered = facts.text.casefold()
    if not _HAS_TIME.search(lowered):
        return ()
    found = (match[0].strip() for match in _TIME.finditer(lowered) if match[0].strip())
    return tuple(dict.fromkeys(each for each in found if _HAS_TIME.search(each)))


def entity_of(text: str) -> Entity:
    """Return an entity by its name."""
    parts = [part.strip('"') for part in text.split()]
    kept = [part for part in parts if part.casefold() not in FUNCTION_WORDS and any(map(str.isalnum, part))] or parts
    is_title = len(kept) >= _LEAST_INITIALS and all(part[:1].isupper() and part.isalpha() for part in kept)
    initials = "".join(part[0] for part in kept) if is_title else ""
    words = [each for part in kept for each in _parts(part.strip(".,;:!?()'"))]
    probes = tuple(map(probe_of, words))
    weak = tuple(probe for word, probe in zip(words, probes, strict=True) if word.casefold() in _WEAK)
    return Entity(text.strip('"'), probes, initials.upper(), weak)


def _entities(words: Sequence[Word], sides: Sequence[Entity]) -> Iterator[Entity]:
    """Yield each name once, then the sides of a comparison that are names too.

    A word in capitals at the start of a sentence is a name only when something else shows it.
    """
    names = [" ".join(word.text for word in run) for run in _runs(words)]
    names += [side.text for side in sides if side.text[:1].isupper()]
    seen: set[str] = set()
    for name in names[:MAX_ENTITIES]:
        if name.casefold() not in seen:
            seen.add(name.casefold())
            yield entity_of(name)


def _runs(words: Sequence[Word]) -> Iterator[list[Word]]:
    run: list[Word] = []
    for place, word in enumerate(words):
        if word.is_quoted:
            if run:
                yield run
            yield [word]
            run = []
            continue
        is_part = _is_named(words, place) or (bool(run) and word.plain in _INNER and place + 1 < len(words) and words[place + 1].is_name)
        if is_part:
            run.append(word)
        if run and (not is_part or word.tail or word.text.endswith("'s")):
            yield run
            run = []
    if run:
        yield run


def _is_named(words: Sequence[Word], place: int) -> bool:
    word = words[place]
    text = word.text
    if text.isalpha() and text.islower():  # as most words of a question
        return False
    if word.plain in _QUARTERS or (word.plain in GENERIC and not _is_inside_name(words, place)):
        return False
    if is_identifier(word.text) or _NUMBERED.fullmatch(word.text):
        return not _YEAR.match(word.text) and not is_code_file(word.text) and not _is_of_code(words, word)
    if not word.is_name or word.plain in FUNCTION_WORDS:
        return False
    is_first = not place or words[place - 1].tail[-1:] in {".", "?", "!", ":"}
    if not is_first:
        return True
    is_marked = (word.text.isupper() and len(word.text) > 1) or word.text.endswith("'s")
    is_led = place + 1 < len(words) and words[place + 1].is_name and not word.tail
    return is_marked or is_led or len(words) == 1


def _is_of_code(words: Sequence[Word], word: Word) -> bool:
    """Tell whether a word is a name of code in a question that speaks of a file of code: it belongs to the work, not to the knowledge."""
    return "_" in word.text and any(is_code_file(other.text) for other in words)


def _parts_asked(words: Sequence[Word]) -> Iterator[tuple[WordProbe, ...]]:
    """Yield the subject of each question: sentences that ask, divided where `and` is followed by a word that asks."""
    part: list[Word] = []
    is_asked = False
    for place, word in enumerate(words):
        following = words[place + 1].plain if place + 1 < len(words) else ""
        if word.plain == "and" and following in QUESTION_WORDS and part:
            subject = _subject(part)
            if subject and (is_asked or part[0].plain in _ASKERS):
                yield subject
            part, is_asked = [], True
            continue
        part.append(word)
        if word.tail[-1:] in _ENDS or place + 1 == len(words):
            subject = _subject(part)
            if subject and (is_asked or "?" in word.tail or part[0].plain in _ASKERS):
                yield subject
            part, is_asked = [], False


def _subject(part: Sequence[Word]) -> tuple[WordProbe, ...]:
    """Return the words that a question is about, general ones among them; none where it only leans on what was said before."""
    spoken = [word.text for word in part if word.is_content]
    return _probes(spoken) if any(word.casefold() not in GENERIC for word in spoken) else ()


def _is_inside_name(words: Sequence[Word], place: int) -> bool:
    """Tell whether a word that names nothing by itself is part of a name, as in `General Data Protection Regulation`."""
    if not words[place].is_name or not place or words[place].text.isupper():
        return False
    near = [words[place - 1]] if place > 1 and not words[place - 1].tail else []
    near += words[place + 1 : place + 2] if not words[place].tail else []
    return any(other.is_name and other.plain not in FUNCTION_WORDS and other.plain not in CALENDAR for other in near)


_WEAK: Final = COMMON | GENERIC | frozenset(("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"))
_ENDS: Final = frozenset((".", "?", "!"))
_ASKERS: Final = QUESTION_WORDS | AUXILIARIES
_QUARTERS: Final = frozenset(("q1", "q2", "q3", "q4", "h1", "h2"))


def _topic(spoken: Sequence[str]) -> tuple[WordProbe, ...]:
    """Return the words that tell the subject; those that only tell how it is asked when there are no others."""
    plain = [word.strip('"').removesuffix("'s") for word in spoken]
    specific = [word for word in plain if (low := word.casefold()) not in GENERIC and low not in _QUARTERS and not _YEAR.fullmatch(word)]
    return _probes(specific or plain)


def _probes(words: Sequence[str]) -> tuple[WordProbe, ...]:
    parts = [part for word in words for part in _parts(word.strip('"'))]
    return tuple({probe.stem: probe for probe in map(probe_of, parts[:_MAX_TERMS]) if probe.start}.values())


def _parts(word: str) -> list[str]:
    """Return the words of a phrase, and of a word that is joined by hyphens and has no digit."""
    if " " not in word and ("-" not in word or any(map(str.isdigit, word))):
        return [word]
    return [part for part in re.split(r"[\s-]+", word) if len(part) > 1 and part.casefold() not in FUNCTION_WORDS] or [word]


def _stems(word: str) -> list[str]:
    lowered = word.casefold()
    if lowered.isalpha():
        return [stem_of(lowered)]
    return [stem_of(piece) if piece.isalpha() else piece for piece in _PIECE.findall(lowered)]


def _sides(words: Sequence[Word]) -> tuple[Entity, ...]:
    """Return the sides of a comparison by what each has that the other has not."""
    parts = split_comparison(words)
    if not parts:
        return ()
    first, second = ([word.text for word in words_of(part, limit=MAX_WORDS) if word.is_content] for part in parts)
    left = [word for word in first if word.casefold() not in {other.casefold() for other in second}]
    right = [word for word in second if word.casefold() not in {other.casefold() for other in first}]
    return (entity_of(" ".join(left)), entity_of(" ".join(right))) if left and right else ()
