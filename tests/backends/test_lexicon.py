"""A caller's words are those of the chunks that the caller may see, and of nothing else."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidentia.backends.embedded.index import EmbeddedIndex
from evidentia.backends.embedded.lexical.postings import PostingsBuilder
from evidentia.backends.embedded.lexical.segments import Segment, write_segment
from evidentia.backends.embedded.lexical.term_dictionary import TERMS_PER_SIGNPOST, EmbeddedLexicon, TermDictionary
from evidentia.backends.embedded.records.writer import EmbeddedWriter, create_base
from evidentia.contracts.access import AccessRule, Principal, local_owner
from evidentia.contracts.documents import ChangeSet
from evidentia.contracts.ids import PrincipalId
from evidentia.contracts.search import Definition
from evidentia.contracts.settings import SearchSettings
from evidentia.contracts.vocabulary import Classification
from evidentia.policy.access import access_scope
from evidentia.testing.determinism import RepeatableEntropy, SteppingClock
from evidentia.testing.documents import make_document
from evidentia.text.edits import distance
from evidentia.text.tokens import Tokeniser

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evidentia.contracts.ports import Lexicon, SupportsLexicon

TOKENISER = Tokeniser()
SENTENCES = [
    "harbour", "harbor", "habrour", "harbours", "key", "keys kay", "naïve", "rotate_keys", "IL-6", "東京都",
    "service level agreement (SLA)", "Service Level Agreement (SLA)", "SLA (second life avatar)", "site level agreement (SLA)",
    "service-level agreement (SLAs)", "service level agreement (SeLA)",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=4).map(" and ".join)
ASKED = ["harbour", "harbor", "hrbour", "key", "kys", "naive", "il6", "東", "東京", "zzz", "sla", "level"]


def _lexicon(directory: Path, segments: Sequence[Sequence[str]], mask: Sequence[bool], *, is_cut: bool = False) -> EmbeddedLexicon:
    """Return the lexicon behind a mask; one that is cut does not meet what the mask hides while it counts."""
    opened = []
    for number, texts in enumerate(segments):
        path = directory / f"{len(list(directory.iterdir()))}-{number}"
        arrays = PostingsBuilder(TOKENISER).build(texts, chunk_keys=list(range(len(texts))))
        write_segment(path, tokeniser="t", chunk_count=len(texts), arrays=arrays)
        opened.append(Segment(path))
    seen = np.asarray(mask, dtype=np.bool_)
    vocabulary = TermDictionary(opened).shown(seen) if is_cut else TermDictionary(opened)
    return EmbeddedLexicon(vocabulary, mask=seen, count=lambda term: int(np.count_nonzero(seen[vocabulary.postings(term).places])))


def _answers(lexicon: Lexicon) -> list[object]:
    found: list[object] = []
    for term in ASKED:
        found += [lexicon.chunks_with(term), *(lexicon.similar(term, edits=edits) for edits in (0, 1, 2, 3))]
    for short in ("SLA", "sla", "SeLA", "IL"):
        found.append(lexicon.long_forms(short))
    for long in ("service level agreement", "Service-Level  Agreement", "second life avatar", "level"):
        found.append(lexicon.short_forms(long))
    return found


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.tuples(TEXTS, st.booleans()), min_size=1, max_size=4), min_size=1, max_size=3))
def test_what_is_outside_the_mask_has_no_influence(segments: list[list[tuple[str, bool]]]) -> None:
    """Answers over everything through a mask equal those over a corpus that holds only what the mask shows."""
    with tempfile.TemporaryDirectory() as name:
        everything = [[text for text, _ in segment] for segment in segments]
        mask = [is_seen for segment in segments for _, is_seen in segment]
        seen = [[text for text, is_seen in segment if is_seen] for segment in segments]
        shown = [texts for texts in seen if texts]

        masked, cut = _lexicon(Path(name), everything, mask), _lexicon(Path(name), everything, mask, is_cut=True)
        restricted = _lexicon(Path(name), shown, [True] * sum(map(len, shown)))
        assert _answers(restricted) == _answers(masked) == _answers(cut)


@settings(max_examples=60, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=6), st.data())
def test_similar_terms_are_those_that_comparing_every_visible_term_that_begins_alike_finds(texts: list[str], data: st.DataObject) -> None:
    mask = data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts)))
    term, edits = data.draw(st.sampled_from(ASKED)), data.draw(st.integers(0, 3))
    terms = [set(TOKENISER.terms(text)) for text, is_seen in zip(texts, mask, strict=True) if is_seen]
    counts = {each: sum(each in held for held in terms) for each in set().union(*terms)}
    expected = sorted(
        (distance(each, term), -count, each) for each, count in counts.items() if each[0] == term[0] and 0 < distance(each, term) <= edits
    )
    with tempfile.TemporaryDirectory() as name:
        lexicon = _lexicon(Path(name), [texts[:2], texts[2:]] if texts[2:] else [texts], mask)

        assert [(each, -count) for _, count, each in expected] == lexicon.similar(term, edits=edits)
        assert counts.get(term, 0) == lexicon.chunks_with(term)


def test_long_forms_come_by_how_many_chunks_say_so(tmp_path: Path) -> None:
    texts = (
        ["service level agreement (SLA)"] * 3
        + ["site level agreement (SLA), Site Level Agreement (SLA)"] * 2
        + ["SLA (second life avatar)"]
    )
    lexicon = _lexicon(tmp_path, [texts], [True] * len(texts))

    expected = [("SLA", "service level agreement", 3), ("SLA", "site level agreement", 2), ("SLA", "second life avatar", 1)]
    assert [Definition(short=short, long=long, chunks=chunks) for short, long, chunks in expected] == lexicon.long_forms("sla")


def test_short_forms_are_found_by_lower_case_words(tmp_path: Path) -> None:
    texts = ["service-level agreement (SeLA)", "service level agreement (SLA)", "service level agreement (SLA)"]
    lexicon = _lexicon(tmp_path, [texts], [True] * len(texts))

    assert [("SLA", 2), ("SeLA", 1)] == [(each.short, each.chunks) for each in lexicon.short_forms("Service\nLevel-Agreement")]
    assert [] == lexicon.short_forms("service level")


def test_equally_near_terms_come_by_frequency_and_then_by_name(tmp_path: Path) -> None:
    lexicon = _lexicon(tmp_path, [["kex kev", "kev"], ["kez", "keyx", "kxx"]], [True] * 5)

    assert [("kev", 2), ("kex", 1), ("keyx", 1), ("kez", 1)] == lexicon.similar("key", edits=1)


def test_an_empty_base_has_no_words(tmp_path: Path) -> None:
    lexicon = _lexicon(tmp_path, [], [])

    assert (0, [], [], []) == (lexicon.chunks_with("a"), lexicon.similar("a", edits=2), lexicon.long_forms("A"), lexicon.short_forms("a"))


# --- through a snapshot ---


@pytest.fixture
def base(tmp_path: Path) -> Callable[[dict[str, Classification]], EmbeddedIndex]:
    """Return what makes a base of texts with their classification, and opens it."""

    def make(texts: dict[str, Classification]) -> EmbeddedIndex:
        directory = tmp_path / str(len(list(tmp_path.iterdir())))
        clock, entropy = SteppingClock(), RepeatableEntropy()
        create_base(directory, clock=clock, entropy=entropy)
        writer = EmbeddedWriter(directory, clock=clock, entropy=entropy, language="english", wait_ms=0)
        for number, (text, classification) in enumerate(texts.items()):
            writer.commit(ChangeSet(documents=(make_document(str(number), text, access=AccessRule(classification=classification)),)))
        writer.close()
        return EmbeddedIndex(directory, tokeniser=TOKENISER.identity)

    return make


def test_a_scope_shows_the_words_of_its_documents_alone(base: Callable[[dict[str, Classification]], EmbeddedIndex]) -> None:
    public = dict.fromkeys(SENTENCES[::2], Classification.PUBLIC)
    secret = dict.fromkeys(SENTENCES, Classification.RESTRICTED)
    reader = access_scope(Principal(principal_id=PrincipalId("r"), clearance=Classification.PUBLIC), acl_scope=None, rules=())
    owner = access_scope(local_owner(), acl_scope=None, rules=())
    whole, restricted = base(secret | public), base(public)
    snapshot: SupportsLexicon = whole.at(search=SearchSettings())

    assert _answers(restricted.at(search=SearchSettings()).lexicon(owner)) == _answers(snapshot.lexicon(reader))
    assert _answers(snapshot.lexicon(owner)) != _answers(snapshot.lexicon(reader))
    assert snapshot.lexicon(owner) is snapshot.lexicon(owner)
    whole.close()
    restricted.close()


def test_every_term_of_a_large_vocabulary_is_found_and_nothing_beside_it(tmp_path: Path) -> None:
    words = [f"{first}{second}zq" for first in "abcdefghijklmn" for second in "bcdfghklmnprst"]
    assert 3 * TERMS_PER_SIGNPOST < len(words)
    lexicon = _lexicon(tmp_path, [[" ".join(words), words[0]], [words[0]]], [True] * 3)

    assert [3, *[1] * (len(words) - 1)] == [lexicon.chunks_with(word) for word in words]
    assert {0} == {lexicon.chunks_with(f"{word[:-1]}{last}") for word in words for last in ("p", "qq", "r", "")}
