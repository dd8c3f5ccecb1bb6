"""Which words of a claim count, and which of them mean the same. English and small: a word missing here costs a find, never a lie."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import Stemmer

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
