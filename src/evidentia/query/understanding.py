"""What a question asks for, found step by step without a model.

Every step is a pure function with a module of its own, is switched by the settings, and is left out when the request says so. A step adds;
none takes a word away from the question. The text that is encoded gains words of the conversation and nothing else: what the other steps
add are terms of the index, which are no words.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.answer_rules import TODAY, AnswerRules
from evidentia.contracts.evidence import EvidenceRequest, QueryStep, SubQuery
from evidentia.contracts.search import LexicalQuery
from evidentia.contracts.vocabulary import QueryStepName
from evidentia.query.conversation import Context, follow, leans, subject_words
from evidentia.query.corrections import correct_spelling, expand_abbreviations
from evidentia.query.decomposition import decompose
from evidentia.query.lexical import (
    PARTIAL_WEIGHT,
    QUOTED,
    REQUIRED,
    Expansion,
    added_terms,
    corrected_text,
    expand,
    lexical_query,
    own_lines_first,
    without_terms,
)
from evidentia.query.normalisation import Verbatim, describe, find_verbatim, normalise_text
from evidentia.query.synonyms import Synonyms, expand_synonyms
from evidentia.text.english import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evidentia.contracts.ports import Lexicon
    from evidentia.contracts.settings import QuerySettings
    from evidentia.text.tokens import Tokeniser

WHOLE_WEIGHT: Final = 1_000_000
"""The weight of a part that counts in full, in millionths."""
MAX_REWRITTEN_LENGTH: Final = 32_768
_COLOURS: Final = re.compile(r"\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]")
"""Sequences by which terminals set colours (ECMA-48); whoever pastes from one does not mean them."""
_NOT_ENGLISH: Final = "its rules are for English"
_NO_CONTEXT: Final = Context("")
_NO_LEXICON: Final = "the words of the base cannot be asked for"


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to search for, and how much its matches count in millionths."""

    text: str
    lexical: LexicalQuery
    weight: int = WHOLE_WEIGHT
    asked: str = ""
    """What a source outside the base is asked for it: whole sentences, with words of the conversation and without slips."""


class Understanding(msgspec.Struct, frozen=True, kw_only=True):
    """A question as it is searched: the text to encode, the terms, the parts (the whole when it has none), and what was done."""

    text: str
    asked: str
    """What a source outside the base is asked."""
    lexical: LexicalQuery
    parts: tuple[Part, ...]
    steps: tuple[QueryStep, ...] = ()
    verbatim: Verbatim = Verbatim()
    """The phrases and identifiers of the question itself."""


def understand(
    request: EvidenceRequest,
    *,
    tokeniser: Tokeniser,
    lexicon: Lexicon | None,
    settings: QuerySettings,
    rules: AnswerRules = TODAY,
    synonyms: Synonyms | None = None,
    rewritten: str | None = None,
    on_text: Callable[[str], None] | None = None,
) -> Understanding:
    """Return what a request asks for; `on_text` is told the text to encode as soon as it stands, before its words are understood.

    A text that a model rewrote replaces the question first. Then: 1. words of the conversation, where the question leans on it; 2. one
    spelling of characters; 3. to 5. terms to search for as well: corrections, short and long forms, synonyms; 6. parts. Parts that the
    request brings are used as they are.
    """
    reader = _Reader(request, tokeniser=tokeniser, lexicon=lexicon, settings=settings, rules=rules, synonyms=synonyms)
    asked = reader.rewrite(rewritten)
    subject = reader.take_context(asked)
    question = reader.spell(asked)
    text = reader.encoded_text(asked, question, subject=subject)
    if on_text is not None:
        on_text(text)
    query = reader.normalise(asked, question)
    lexical = expand(query, reader.expand(question, query=query, subject=subject, is_noted=True))
    asked_of_others = reader.asked_of_others(question, subject=subject)
    return Understanding(
        text=text,
        asked=asked_of_others,
        lexical=lexical,
        parts=reader.split(question, subject=subject) or (Part(text=text, lexical=lexical, asked=asked_of_others),),
        steps=tuple(reader.steps),
        verbatim=reader.verbatim or find_verbatim(question),
    )


class _Reader:
    """Runs the steps that are switched on for one request and keeps what each has to say."""

    def __init__(
        self,
        request: EvidenceRequest,
        *,
        tokeniser: Tokeniser,
        lexicon: Lexicon | None,
        settings: QuerySettings,
        rules: AnswerRules,
        synonyms: Synonyms | None,
    ) -> None:
        self._request = request
        self._rules = rules
        self._tokeniser = tokeniser
        self._lexicon = lexicon
        self._synonyms = synonyms
        self._is_english = tokeniser.language in LANGUAGES
        switches = {
            QueryStepName.CONTEXT: settings.context,
            QueryStepName.NORMALISE: settings.normalise,
            QueryStepName.SPELLING: settings.spelling,
            QueryStepName.ABBREVIATIONS: settings.abbreviations,
            QueryStepName.SYNONYMS: bool(settings.synonyms),
            QueryStepName.DECOMPOSE: settings.decompose,
            QueryStepName.REWRITE: True,
        }
        self._is_on = {step: is_on and step not in request.without for step, is_on in switches.items()}
        self.steps: list[QueryStep] = []
        self._corrected: dict[str, str] = {}
        self.verbatim: Verbatim | None = None

    def rewrite(self, rewritten: str | None) -> str:
        """Return the text that a model made of the question, if one did, else the question."""
        asked = self._request.query.text
        if self._rules.prefers_quotations and "\x1b" in asked:
            asked = _COLOURS.sub("", asked)
        if rewritten is None or not self._is_on[QueryStepName.REWRITE]:
            return asked
        if rewritten == asked or len(rewritten) > MAX_REWRITTEN_LENGTH or not self._tokeniser.terms(rewritten):
            note = "nothing was changed" if rewritten == asked else "the new text has no words or is too long, so the question stays"
            self._note(QueryStepName.REWRITE, note)
            return asked
        self._note(QueryStepName.REWRITE, "the question was replaced", added=(rewritten,))
        return rewritten

    def take_context(self, question: str) -> Context:
        """Return words of the conversation that the question needs."""
        if not self._is_on[QueryStepName.CONTEXT]:
            return _NO_CONTEXT
        if not self._request.turns:
            context = Context("there are no earlier turns")
        elif not self._is_english:
            context = Context(_NOT_ENGLISH)
        elif self._rules.follows_topics and question == self._request.query.text:  # one that a model rewrote has read the turns
            context = follow(normalise_text(question), self._request.turns, tokeniser=self._tokeniser, lexicon=self._lexicon)
        else:
            context = self._pointed_context(question)
        self._note(QueryStepName.CONTEXT, context.note, added=context.words)
        return context

    def _pointed_context(self, question: str) -> Context:
        """Return what a question took from the conversation before it could follow a topic."""
        if not leans(normalise_text(question)):
            return Context("the question stands by itself")
        words = subject_words(self._request.turns)
        note = "the question leans on the conversation" if words else "the earlier turns name no subject"
        weights = dict.fromkeys(added_terms(" ".join(words), self._tokeniser), PARTIAL_WEIGHT)
        return Context(note, words, weights, encoded=words, asked=words)

    def spell(self, question: str) -> str:
        """Return the question in its one spelling."""
        return normalise_text(question) if self._is_on[QueryStepName.NORMALISE] else question

    def normalise(self, question: str, spelt: str) -> LexicalQuery:
        """Return the terms of a question, as it was asked and as it is spelt."""
        asked = self._words(question)
        if not self._is_on[QueryStepName.NORMALISE]:
            return asked
        query = asked if spelt == question else _keep_terms(self._words(self._spelt_lines(question, spelt)), asked)
        done = "characters are as they were" if spelt == question else "characters and spacing were made alike"
        self.verbatim = find_verbatim(spelt)
        note = "; ".join(filter(None, (done, describe(self.verbatim))))
        self._note(QueryStepName.NORMALISE, note, added=tuple(term for term in query.terms if term not in asked.terms))
        return query

    def expand(self, text: str, *, query: LexicalQuery, subject: Context, is_noted: bool = False) -> list[Expansion]:
        """Return what each step adds to a text, the conversation's words first."""
        expansions = [Expansion(weights=subject.weights, note="")]
        for step in (QueryStepName.SPELLING, QueryStepName.ABBREVIATIONS, QueryStepName.SYNONYMS):
            if self._is_on[step]:
                expansion = without_terms(self._additions(step, text), query.terms)
                expansions.append(expansion)
                self._corrected.update(expansion.corrected)
                if is_noted:
                    self._note(step, expansion.note, added=tuple(expansion.weights))
        return expansions

    def encoded_text(self, asked: str, spelt: str, *, subject: Context) -> str:
        """Return what is encoded of a question: what was pasted comes behind its own words."""
        ordered = own_lines_first(asked) if self._rules.prefers_quotations else asked
        return self.join(spelt if ordered == asked else self.spell(ordered), subject.encoded)

    def join(self, text: str, subject: Sequence[str]) -> str:
        """Return what is encoded; the marks of a quotation are for the words, and a vector is made without them."""
        if self._rules.prefers_quotations:
            text = REQUIRED.sub(r"\1", text)
        return " ".join(filter(None, (QUOTED.sub(r"\1", text), *subject)))

    def asked_of_others(self, text: str, *, subject: Context) -> str:
        """Return what a source outside the base is asked: a slip is put right there, since nobody else would take it for one."""
        return " ".join((corrected_text(text, self._corrected), *subject.asked))

    def split(self, question: str, *, subject: Context) -> tuple[Part, ...]:
        """Return the parts that the request brings, else those that the rules find."""
        if given := self._request.query.subqueries:
            if QueryStepName.DECOMPOSE not in self._request.without:
                self._note(QueryStepName.DECOMPOSE, "the request brings its own parts", added=tuple(part.text for part in given))
            return tuple(self._given_part(part) for part in given)
        if not self._is_on[QueryStepName.DECOMPOSE]:
            return ()
        texts = decompose(question, is_eager=not self._rules.splits_questions) if self._is_english else ()
        note = f"{len(texts)} parts" if texts else "the question is one part" if self._is_english else _NOT_ENGLISH
        self._note(QueryStepName.DECOMPOSE, note, added=texts)
        return tuple(self._found_part(text, subject=subject) for text in texts)

    def _given_part(self, part: SubQuery) -> Part:
        weight = round(part.weight * WHOLE_WEIGHT)
        return Part(text=self.join(part.text, ()), lexical=self._words(part.text), weight=weight, asked=part.text)

    def _found_part(self, text: str, *, subject: Context) -> Part:
        query = self._words(text)
        lexical = expand(query, self.expand(text, query=query, subject=subject))
        return Part(text=self.join(text, subject.encoded), lexical=lexical, asked=self.asked_of_others(text, subject=subject))

    def _spelt_lines(self, question: str, spelt: str) -> str:
        """Return a question of several lines in its one spelling, still in lines: their form tells what was pasted."""
        if "\n" not in question or not self._rules.prefers_quotations:
            return spelt
        lines = question.split("\n")
        return "\n".join(line[: len(line) - len(line.lstrip())] + normalise_text(line) for line in lines)

    def _words(self, text: str) -> LexicalQuery:
        return lexical_query(text, self._tokeniser, rules=self._rules)

    def _additions(self, step: QueryStepName, text: str) -> Expansion:
        if step is QueryStepName.SYNONYMS:
            if self._synonyms is None:
                return Expansion(note="no synonyms were read")
            return expand_synonyms(text, tokeniser=self._tokeniser, synonyms=self._synonyms)
        if self._lexicon is None:
            return Expansion(note=_NO_LEXICON)
        additions = correct_spelling if step is QueryStepName.SPELLING else expand_abbreviations
        return additions(text, tokeniser=self._tokeniser, lexicon=self._lexicon)

    def _note(self, step: QueryStepName, note: str, *, added: tuple[str, ...] = ()) -> None:
        self.steps.append(QueryStep(step=step, note=note, added=added))


def _keep_terms(query: LexicalQuery, asked: LexicalQuery) -> LexicalQuery:
    """Return the query with terms that another spelling of the question would have lost."""
    lost = {term: times for term, times in asked.terms.items() if term not in query.terms}
    if not lost:
        return query
    weights = {**query.weights, **{term: asked.weights[term] for term in lost if term in asked.weights}}
    return msgspec.structs.replace(query, terms=dict(sorted({**query.terms, **lost}.items())), weights=dict(sorted(weights.items())))
