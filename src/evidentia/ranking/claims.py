"""What a text claims: settings, table cells and definite sentences, each as a key of words and a value. No model; precision first.

The key is every word that counts in the claim, together with what title, headings and sections say about whose claim it is. Two claims are
about the same thing only if their keys are equal, so a qualifier (`in staging`, `for contractors`) keeps claims apart. A sentence with more
than one value claims nothing. Linear in the text: lines and sentences of unusual length are passed over.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

import Stemmer

from evidentia.ranking.claim_values import find_value, is_unit

MAX_TEXT_LENGTH: Final = 20_000
"""Characters of a text that are looked at."""
_MAX_LINE_LENGTH: Final = 160
_MAX_SENTENCE_LENGTH: Final = 240
_MAX_PARAGRAPH_LENGTH: Final = 8_000
_MAX_KEY_WORDS: Final = 5
_MAX_ROOTS: Final = 9
_MAX_WORDS: Final = 24
_LEAST_ROOTS_WITH_LEAD: Final = 3
_MAX_SCALAR_LENGTH: Final = 48
_MAX_SPACES: Final = 3
_REMEMBERED_NAMES: Final = 1 << 13
_REMEMBERED_CONTEXTS: Final = 1 << 10

_SETTING: Final = re.compile(r"""(?:[-*+]\s+)?(?:export\s+)?["'`*]*([A-Za-z][\w. /()-]{0,59}?)["'`*]*\s?[:=]\s*(.*)""")
_INLINE_COMMENT: Final = re.compile(r"\s(?:#|//|--\s).*$")
_BULLET: Final = re.compile(r"(?:[-*+\u2022]|\d{1,2}[.)])\s+")
_HEADING: Final = re.compile(r"#{1,6}\s")
_RULE_ROW: Final = re.compile(r"[|\s:-]+")
_SENTENCE: Final = re.compile(r"[^.!?;]*+(?:[.!?;](?!\s)[^.!?;]*+)*+[.!?;]?")
_DIGIT: Final = re.compile("[0-9]")
_MARKS: Final = frozenset("#[|`/-")
_NOT_SCALAR: Final = re.compile(r"""[,;|(){}\[\]<>$*?\u2026]|://""")
_NAME_WORD: Final = re.compile(r"[^\W_]+")
_NOT_ASSIGNED: Final = frozenset("=>:/")
_OPENINGS: Final = frozenset(("", "{"))
_PRONOUNS: Final = frozenset(("it", "this", "they", "these", "that", "those", "he", "she", "which", "here", "both"))
_CALLERS: Final = frozenset(("we", "you", "set", "use", "rotate", "keep", "retain", "store", "delete", "please"))
_UNNAMED: Final = frozenset(
    "name id title description author date created updated modified time timestamp "  # noqa: SIM905 - a list of words reads as words
    "tag tags url link path page note warning tip example see source type kind status category label language apiversion version "
    "summary step important reviewed approved question answer q a key revision comment subject to cc".split()
)


class Claim(NamedTuple):
    """One claim: equal keys are about the same thing. `sentence` is empty unless the claim is one, with its value at `start` to `end`.

    `own` is the key without the title, for a specific claim of a document that speaks for the whole house; otherwise empty.
    """

    key: frozenset[str]
    own: frozenset[str]
    subject: str
    attribute: str
    value: str
    unit: str = ""
    sentence: str = ""
    start: int = 0
    end: int = 0


def extract_claims(text: str, *, title: str) -> list[Claim]:
    """Return what the text may claim, in order; whether a sentence is definite enough is left to whoever compares two of them."""
    text = text[:MAX_TEXT_LENGTH]
    if ":" not in text and "=" not in text and _DIGIT.search(text) is None:
        return []
    return _Reader(title).read(text)


class _Reader:
    """Goes through the lines of one text, with the headings, sections and parents in force."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._headings: list[tuple[int, str]] = [(0, title[:_MAX_SENTENCE_LENGTH])]
        self._known_context: _Context | None = None
        self._parents: list[tuple[int, str]] = []
        self._header: list[str] | None = None
        self._paragraph: list[str] = []
        self._claims: list[Claim] = []

    def read(self, text: str) -> list[Claim]:
        lines = text.splitlines()
        lines.append("")
        for number in range(len(lines) - 1):
            line = lines[number]
            bare = line.strip()
            if not bare:
                self._end_paragraph()
                self._header = None
                continue
            is_taken = bare[0] in _MARKS and self._read_mark(bare, lines[number + 1])
            if not is_taken and (":" in bare or "=" in bare) and len(bare) <= _MAX_LINE_LENGTH:
                is_taken = self._read_setting(line, bare, lines[number + 1])
            if not is_taken:
                self._read_prose(bare)
        self._end_paragraph()
        return self._claims

    def _read_mark(self, bare: str, following: str) -> bool:
        """Take a line that is told by its first character: heading or comment, section, table row, fence."""
        first = bare[0]
        if first == "#":
            self._end_paragraph()
            # One hash right above a line of a file is a comment; a heading has a blank line below it, or more hashes.
            if _HEADING.match(bare) and (bare.startswith("##") or not following.strip()):
                self._enter_heading(bare)
            return True
        if first == "[" and bare[-1] == "]":
            self._end_paragraph()
            self._parents = [(-1, bare.strip("[] \"'"))]
            return True
        if first == "|":
            self._end_paragraph()
            self._read_row(bare, following.strip())
            return True
        return bare.startswith(("```", "//", "---"))

    def _enter_heading(self, bare: str) -> None:
        level = len(bare) - len(bare.lstrip("#"))
        kept = [heading for heading in self._headings if heading[0] < level]
        self._headings = [*kept, (level, bare[:_MAX_SENTENCE_LENGTH])]
        self._known_context = None
        self._parents = []

    def _read_row(self, bare: str, following: str) -> None:
        if len(bare) > 2 * _MAX_SENTENCE_LENGTH:
            return
        cells = [cell.strip(" *`") for cell in bare.strip("|").split("|")]
        if self._header is None:
            self._header = cells if following[:1] == "|" and _RULE_ROW.fullmatch(following[: 2 * _MAX_SENTENCE_LENGTH]) else []
            return
        if len(cells) != len(self._header) or _RULE_ROW.fullmatch(bare):
            return
        for head, cell in zip(self._header[1:], cells[1:], strict=True):
            self._add_named(head, cell, path=cells[0])

    def _read_setting(self, line: str, bare: str, following: str) -> bool:
        """Take `name: value` or `name = value`; what follows it in lower case makes it prose."""
        found = _SETTING.match(bare)
        if found is None:
            return False
        name, value = found.groups()
        if value[:1] in _NOT_ASSIGNED or name.count(" ") >= _MAX_KEY_WORDS:
            return False
        indent = len(line) - len(line.lstrip())
        while self._parents and self._parents[-1][0] >= indent:
            self._parents.pop()
        value = _clean(value)
        if value in _OPENINGS:
            self._end_paragraph()
            self._parents.append((indent, name))
            return True
        if not _is_scalar(value):
            return " " not in value
        if _goes_on(following):
            return False
        if self._paragraph:
            self._end_paragraph()
        self._add_named(name, value, path=" ".join([parent for _, parent in self._parents]))
        return True

    def _add_named(self, name: str, value: str, *, path: str) -> None:
        roots, unit = _read_name(path, name)
        if roots and _is_scalar(value):
            key, alone = self._keys_of(roots)
            if names_a_subject(key):
                self._claims.append(Claim(key, alone, path or self._title, name, value, unit))

    def _keys_of(self, roots: frozenset[str]) -> tuple[frozenset[str], frozenset[str]]:
        if self._known_context is None:
            self._known_context = _read_context(self._headings[0][1], " ".join(text for _, text in self._headings[1:]))
        context = self._known_context
        if not is_specific(roots):
            return roots | context.names_and_topics, frozenset()
        return roots | context.names, roots if context.is_general else frozenset()

    def _read_prose(self, bare: str) -> None:
        bullet = _BULLET.match(bare)
        if bullet:
            self._end_paragraph()
            bare = bare[bullet.end() :]
        self._paragraph.append(bare)

    def _end_paragraph(self) -> None:
        if not self._paragraph:
            return
        paragraph = " ".join(self._paragraph)[:_MAX_PARAGRAPH_LENGTH]
        self._paragraph = []
        if _DIGIT.search(paragraph) is None:
            return
        for found in _SENTENCE.findall(paragraph):
            sentence = found.strip()
            if len(sentence) <= _MAX_SENTENCE_LENGTH and sentence.count(" ") <= _MAX_WORDS and _DIGIT.search(sentence):
                self._read_sentence(sentence)

    def _read_sentence(self, sentence: str) -> None:
        if "*" in sentence or "`" in sentence:
            sentence = sentence.replace("**", "").replace("`", "")
        first = sentence.partition(" ")[0].lower().rstrip(",")
        if first in _PRONOUNS:
            return
        found = find_value(sentence)
        if found is None or not found.start() or sentence[-1] == "?":
            return
        own = roots_of(f"{sentence[: found.start()]} {sentence[found.end() :]}")
        if not own or len(own) > _MAX_ROOTS:
            return
        if len(own) >= _LEAST_ROOTS_WITH_LEAD and first not in _CALLERS and not _has_copula(sentence):
            # Who calls whom matters: without a form of `be`, the first word is the one that acts.
            own.append(f"{own[0]} acts")
        key, alone = self._keys_of(frozenset(own))
        if names_a_subject(key):
            self._claims.append(Claim(key, alone, self._title, "", found[0].strip(), "", sentence, found.start(), found.end()))


class _Context(NamedTuple):
    """What title and headings say about whose claims stand under them."""

    names: frozenset[str]
    names_and_topics: frozenset[str]
    is_general: bool


@lru_cache(maxsize=_REMEMBERED_CONTEXTS)
def _read_context(title: str, headings: str) -> _Context:
    """Return the context of a title and the headings in force; it is general where these add no name to a general title."""
    names, names_and_topics = context_roots_of(f"{title} {headings}")
    is_general = speaks_for_all(title) and (not headings or names <= context_roots_of(title)[0])
    return _Context(names, names_and_topics, is_general)


@lru_cache(maxsize=_REMEMBERED_NAMES)
def _read_name(path: str, name: str) -> tuple[frozenset[str], str]:
    """Return the roots of a setting's name under its sections, and the unit that the name ends in; no roots where it names nothing."""
    if name.lower() in _UNNAMED:
        return frozenset(), ""
    words = _NAME_WORD.findall(name)
    unit = words[-1].lower() if words and (is_unit(words[-1].lower()) or name.endswith(f"({words[-1]})")) else ""
    roots = roots_of(f"{path} {' '.join(words[:-1] if unit else words)}")
    return (frozenset(roots), unit) if len(roots) <= _MAX_ROOTS else (frozenset(), "")


def _clean(value: str) -> str:
    """Return the value without comment, quotes and the mark that ends it."""
    if "#" in value or "//" in value or "--" in value:
        value = _INLINE_COMMENT.sub("", value)
    return value.strip(" \t*`").rstrip(",;.").strip("\"'")


def _is_scalar(value: str) -> bool:
    if not 0 < len(value) <= _MAX_SCALAR_LENGTH:
        return False
    return value.isalnum() or (value.count(" ") <= _MAX_SPACES and _NOT_SCALAR.search(value.lstrip("$")) is None)


def _goes_on(following: str) -> bool:
    """Say whether the next line continues a sentence."""
    return following.lstrip()[:1].islower() and ":" not in following and "=" not in following


def _has_copula(sentence: str) -> bool:
    return " is " in sentence or " are " in sentence or " be " in sentence


# --- claim words ---
# Which words of a claim count, and which of them mean the same. English and small: a word missing here costs a find, never a lie.

_WORD: Final = re.compile(r"[^\W_]+")
_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_TIME_OUT: Final = re.compile(r"\btimes? out\b", re.IGNORECASE)
_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_MAX_WORD_LENGTH: Final = 40
_REMEMBERED_WORDS: Final = 1 << 15
_SPECIFIC_ROOTS: Final = 2

_FILLERS: Final = frozenset(
    # Function words, verbs that only tie a value to its subject, and kinds of things whose name stands next to them.
    "a about after all an and any are as at automatically be been being by can "  # noqa: SIM905 - a list of words reads as words
    "configured currently do does each ensure equal equals exactly following for from get gets has have in into is it its just listen "
    "listens listening may must no not note now of on only or our out please run running runs s set shall should simply so than that "
    "the their them then there they this to today use used uses using via we when which will with within you your also always per "
    "receive receives entitled limited times takes take accept accepts given stay stays remain remains app application "
    "option options parameter service services setting settings system systems value values current".split()
)
_SAME_MEANING: Final = (
    ("keep", "kept", "retain", "retention", "store", "preserve", "hold"),
    ("delete", "purge", "remove", "erase"),
    ("require", "need"),
    ("employee", "staff"),
    ("leave", "holiday", "vacation"),
    ("length", "long", "period", "duration", "last", "lifetime", "ttl", "valid", "expire", "expiry"),
    ("interval", "frequency", "cycle", "every"),
    ("min", "minimum", "least", "fewer", "less", "lowest"),
    ("max", "maximum", "most", "up", "more", "exceed"),
    ("connection", "conn"),
    ("database", "db"),
    ("production", "prod"),
)
_DOCUMENT_WORDS: Final = frozenset(
    # Kinds of documents, and who writes them for everybody: none of them tells one subject from another.
    "announcement calendar terms architecture article basics change changelog changes chapter "  # noqa: SIM905 - a list of words reads as words
    "cheatsheet checklist conf config configuration decision definitions deployment details doc docs document documentation draft "
    "env example examples faq file final general guide guideline guidelines handbook help how howto index ini internal intro "
    "introduction item json limits list manual md memo migration minutes new news note notes notice old operation operations "
    "operator operators ops overview page parameters plan playbook policies policy procedure process properties question "
    "questions quick quickstart readme record records reference release releases report requirement requirements review rule "
    "rules runbook section setup sheet spec specification standard standards start summary text toml topic txt update updated "
    "updates wiki yaml yml authentication benefits company compliance corporate engineering facts finance hr infrastructure it "
    "legal login logging management monitoring onboarding organisation privacy risk security support team teams technical time "
    "workplace working code conduct continuity hardening level levels limit pricing procurement program programme rate rates "
    "recruiting sales timeout timeouts tuning".split()
)
_GENERAL_KINDS: Final = frozenset(
    "policy policies handbook faq rules standard standards guideline guidelines "  # noqa: SIM905 - likewise
    "guide procedure process terms calendar manual checklist code notice schedule".split()
)
"""Kinds of documents that speak for the whole house."""
_TOPIC_WORDS: Final = frozenset(
    # What whole documents are about: told by a claim that is specific itself, and needed by one that is not.
    "access account accounts audit backup backups build customer customers data "  # noqa: SIM905 - a list of words reads as words
    "desk employee employees expense expenses front incident inventory key keys network office password passwords people "
    "personnel recovery retention schedule session sessions staff travel user users work".split()
)
_ATTRIBUTES: Final = (
    "port timeout limit size interval version default max min number count keep length threshold rate request connection read write "
    "retry replica memory cpu pool batch cache level mode enable disable host address path url log time second minute hour day week "
    "month year concurrency thread delay backoff budget deadline capacity quota age name type state window response"
)


def roots_of(text: str) -> list[str]:
    """Return the roots of the words that count, in order; numbers stay as they are."""
    if " out" in text:
        text = _TIME_OUT.sub("timeout", text)
    roots: list[str] = []
    for word in _WORD.findall(text):
        roots += _roots_of_word(word)
    return roots


def context_roots_of(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return what a title or heading says about whose claims stand under it: the roots of names, and those with the topics as well."""
    names: list[str] = []
    topics: list[str] = []
    for word in _WORD.findall(text):
        is_topic, roots = _context_roots_of_word(word)
        (topics if is_topic else names).extend(roots)
    return frozenset(names), frozenset(names + topics)


def title_words_of(title: str) -> frozenset[str]:
    """Return the words of a title in lower case, without years and fillers."""
    words = (word.lower() for word in _WORD.findall(title))
    return frozenset(word for word in words if word not in _FILLERS and not _YEAR.fullmatch(word))


def speaks_for_all(title: str) -> bool:
    """Say whether the title is that of a policy, handbook or the like, not of one thing's documentation."""
    return any(word.lower() in _GENERAL_KINDS for word in _WORD.findall(title))


def names_a_subject(key: frozenset[str]) -> bool:
    """Say whether a claim is about something: `timeout` alone could be anybody's."""
    return len(key) > 1 and not key <= _attributes()


def is_specific(roots: frozenset[str]) -> bool:
    """Say whether a claim names its subject by itself, so that the topic of its document adds nothing."""
    return len(roots - _attributes()) >= _SPECIFIC_ROOTS


@lru_cache(maxsize=_REMEMBERED_WORDS)
def _roots_of_word(word: str) -> tuple[str, ...]:
    word = word[:_MAX_WORD_LENGTH]
    parts = [word] if word.islower() or word.isupper() else _HUMP.split(word)
    lowered = [part.lower() for part in parts]
    return tuple(_root(part) for part in lowered if part not in _FILLERS)


@lru_cache(maxsize=_REMEMBERED_WORDS)
def _context_roots_of_word(word: str) -> tuple[bool, tuple[str, ...]]:
    lowered = word.lower()
    return lowered in _TOPIC_WORDS, () if lowered in _DOCUMENT_WORDS or _YEAR.fullmatch(word) else _roots_of_word(word)


def _root(word: str) -> str:
    stem = _stem(word)
    return _meanings().get(stem, stem)


def _stem(word: str) -> str:
    stem: str = _stemmer().stemWord(word)
    return stem


@lru_cache(maxsize=1)
def _stemmer() -> Stemmer.Stemmer:
    return Stemmer.Stemmer("english", 0)


@lru_cache(maxsize=1)
def _meanings() -> dict[str, str]:
    return {_stem(word): words[0] for words in _SAME_MEANING for word in words}


@lru_cache(maxsize=1)
def _attributes() -> frozenset[str]:
    return frozenset(_root(word) for word in _ATTRIBUTES.split())
