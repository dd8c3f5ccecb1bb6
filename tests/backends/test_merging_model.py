"""Learned merging: a model file gives integers, the same ones every time, and judged groups give a model file."""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING

import lightgbm
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidentia.backends.lightgbm.lightgbm_merger import LARGEST_SCORE, LightGbmMerger, stamp
from evidentia.backends.lightgbm.merger_training import JudgedGroup, fit, mean_ndcg
from evidentia.contracts.errors import InvalidFieldError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evidentia.backends.lightgbm.merger_training import FittedModel

FEATURES = ("lexical", "dense", "noise")
FITTED_ON = "legs/3"
ONE = 1 << 16


def make_groups(count: int = 40, *, size: int = 12) -> list[JudgedGroup]:
    """Return groups in which what both legs like is what answers the question."""
    draw = random.Random(7)
    groups = []
    for number in range(count):
        rows = tuple((draw.randrange(ONE), draw.randrange(ONE), draw.randrange(ONE)) for _ in range(size))
        groups.append(JudgedGroup(id=f"q{number:03}", features=rows, grades=tuple(2 * (row[0] + row[1]) // (ONE + 1) for row in rows)))
    return groups


def fit_small(groups: Sequence[JudgedGroup], *, seed: int = 1, held_out: float = 0.25) -> FittedModel:
    return fit(groups, features=FEATURES, fitted_on=FITTED_ON, seed=seed, held_out=held_out, trees=10)


@pytest.fixture(scope="module")
def fitted() -> FittedModel:
    return fit_small(make_groups())


@pytest.fixture(scope="module")
def merger(fitted: FittedModel, tmp_path_factory: pytest.TempPathFactory) -> LightGbmMerger:
    path = tmp_path_factory.mktemp("models") / "merging.txt"
    path.write_bytes(fitted.content)
    return LightGbmMerger(path, features=FEATURES, fitted_on=FITTED_ON)


def open_bytes(content: bytes, *, features: Sequence[str] = FEATURES, fitted_on: str = FITTED_ON) -> LightGbmMerger:
    return LightGbmMerger.of_bytes(content, features=features, fitted_on=fitted_on)


rows = st.tuples(*[st.integers(min_value=-(2**53), max_value=2**53)] * len(FEATURES))


# --- scores ---


def test_what_both_legs_like_gets_the_higher_score(merger: LightGbmMerger) -> None:
    both, one, none = merger.merge([(60_000, 60_000, 9), (60_000, 5_000, 9), (2_000, 2_000, 9)])

    assert both > one > none


def test_scores_are_those_of_lightgbm_at_sixteen_bits(merger: LightGbmMerger, fitted: FittedModel) -> None:
    candidates = [row for group in make_groups(3) for row in group.features]
    plain = lightgbm.Booster(model_str=fitted.content.decode()).predict(np.array(candidates, dtype=np.float64))

    assert tuple(round(float(score) * ONE) for score in np.asarray(plain)) == merger.merge(candidates)


@settings(deadline=None)
@given(st.lists(rows, max_size=20))
def test_no_candidate_has_an_influence_on_another(merger: LightGbmMerger, candidates: list[tuple[int, ...]]) -> None:
    together = merger.merge(candidates)

    assert tuple(merger.merge([row])[0] for row in candidates) == together
    assert all(isinstance(score, int) for score in together)


def test_nothing_to_score_is_an_answer(merger: LightGbmMerger) -> None:
    assert () == merger.merge([])


@pytest.mark.parametrize(
    ("row", "problem"), [((1, 2), "2 values"), ((1, 2, 3, 4), "4 values"), ((0, 0, 2**53 + 1), "beyond"), ((0, 0, -(10**400)), "beyond")]
)
def test_rows_that_the_model_would_misread_are_refused(merger: LightGbmMerger, row: tuple[int, ...], problem: str) -> None:
    with pytest.raises(InvalidFieldError, match=problem) as caught:
        merger.merge([(1, 2, 3), row])

    assert "features[1]" == caught.value.field


def test_scores_have_32_bits_at_most(fitted: FittedModel) -> None:
    lines = lightgbm.Booster(model_str=fitted.content.decode()).model_to_string().split("\n")
    steep = ["leaf_value=" + " ".join(["1e300"] * len(line.split())) if line.startswith("leaf_value=") else line for line in lines]
    sizes = [place for place, line in enumerate(steep) if line.startswith("tree_sizes=")]
    del steep[sizes[0]]

    assert (LARGEST_SCORE * ONE,) == open_bytes(stamp("\n".join(steep), fitted_on=FITTED_ON)).merge([(1, 2, 3)])


# --- model files ---


def test_identity_is_that_of_the_bytes(merger: LightGbmMerger, fitted: FittedModel) -> None:
    other = fit_small(make_groups(), seed=2)

    assert merger.identity == open_bytes(fitted.content).identity
    assert merger.identity != open_bytes(other.content).identity


@pytest.mark.parametrize("names", [("dense", "lexical", "noise"), ("lexical", "dense"), (*FEATURES, "more"), ()])
def test_model_of_other_features_is_refused(fitted: FittedModel, names: tuple[str, ...]) -> None:
    with pytest.raises(InvalidFieldError, match="columns are not"):
        open_bytes(fitted.content, features=names)


def test_model_of_another_version_is_refused(fitted: FittedModel) -> None:
    with pytest.raises(InvalidFieldError, match="features 'legs/3', and this Evidentia has 'legs/4'"):
        open_bytes(fitted.content, fitted_on="legs/4")


@settings(deadline=None)
@given(st.data())
def test_changed_byte_never_reaches_lightgbm(fitted: FittedModel, data: st.DataObject) -> None:
    place = data.draw(st.integers(min_value=0, max_value=len(fitted.content) - 1))
    flip = data.draw(st.integers(min_value=1, max_value=255))
    changed = bytearray(fitted.content)
    changed[place] ^= flip

    with pytest.raises(InvalidFieldError, match="fit the model again"):
        open_bytes(bytes(changed))


@pytest.mark.parametrize("content", [b"", b"tree\n", b"tree\nversion=v4\n", b"\xff" * 100, b"evidentia_features=1"])
def test_file_that_is_no_model_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidFieldError, match="no file that Evidentia fitted"):
        open_bytes(content)


def test_stamped_text_that_lightgbm_cannot_read_is_refused() -> None:
    text = "tree\nversion=v4\nfeature_names=lexical dense noise\n"

    with pytest.raises(InvalidFieldError, match="LightGBM cannot read it"):
        open_bytes(stamp(text, fitted_on=FITTED_ON))


def test_only_a_text_model_is_stamped() -> None:
    with pytest.raises(InvalidFieldError, match="does not begin"):
        stamp("{}", fitted_on="columns")


@pytest.mark.parametrize("name", ["", "a\nb", "a=b", "ß"])
def test_identity_of_features_that_does_not_fit_a_line_is_refused(name: str) -> None:
    with pytest.raises(InvalidFieldError, match="fitted_on"):
        stamp("tree\n", fitted_on=name)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidFieldError, match=r"nowhere\.txt"):
        LightGbmMerger(tmp_path / "nowhere.txt", features=FEATURES, fitted_on=FITTED_ON)


def test_without_lightgbm_the_extra_is_named(fitted: FittedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)

    with pytest.raises(MissingExtraError, match=r"evidentia\[learned\]"):
        open_bytes(fitted.content)


# --- fitting ---


def test_same_groups_in_any_order_give_the_same_bytes(fitted: FittedModel) -> None:
    draw = random.Random(3)
    shuffled = []
    for group in make_groups():
        order = draw.sample(range(len(group.grades)), len(group.grades))
        shuffled.append(
            JudgedGroup(id=group.id, features=tuple(group.features[n] for n in order), grades=tuple(group.grades[n] for n in order))
        )
    draw.shuffle(shuffled)

    assert fitted == fit_small(shuffled)


def test_held_out_groups_are_not_learnt_from(fitted: FittedModel) -> None:
    seen = [group for group in make_groups() if group.id not in fitted.held_out]
    alone = fit_small(seen, held_out=0)

    assert 10 == len(fitted.held_out)
    assert (fitted.content, fitted.fitted_ndcg) == (alone.content, alone.fitted_ndcg)
    assert ((), None) == (alone.held_out, alone.held_out_ndcg)


def test_the_seed_chooses_what_is_held_out(fitted: FittedModel) -> None:
    assert fitted.held_out != fit_small(make_groups(), seed=2).held_out


def test_what_was_learnt_holds_for_groups_not_seen(fitted: FittedModel, merger: LightGbmMerger) -> None:
    unseen = [group for group in make_groups() if group.id in fitted.held_out]

    assert fitted.held_out_ndcg is not None
    assert fitted.held_out_ndcg > 0.9
    assert fitted.held_out_ndcg == mean_ndcg(merger, unseen)


def test_measure_takes_the_worse_of_equals_first_and_skips_groups_with_nothing_to_find(merger: LightGbmMerger) -> None:
    equal = JudgedGroup(id="equal", features=((1, 2, 3), (1, 2, 3)), grades=(1, 0))
    void = JudgedGroup(id="void", features=((1, 2, 3),), grades=(0,))

    assert mean_ndcg(merger, [equal, void]) == pytest.approx(0.6309297535714575)
    assert mean_ndcg(merger, [void]) is None


def group_of(*grades: int, width: int = 3, name: str = "q") -> JudgedGroup:
    return JudgedGroup(id=name, features=((1,) * width,) * len(grades), grades=grades)


@pytest.mark.parametrize(
    ("groups", "problem"),
    [
        ([], "no group has candidates of different grades"),
        ([group_of(1, 1)], "no group has candidates of different grades"),
        ([group_of(0, 1)], "too little in them"),
        ([group_of(0, 1), group_of(0, 1)], "one id"),
        ([group_of(0, 31)], "between 0 and 30"),
        ([group_of(0, -1)], "between 0 and 30"),
        ([group_of()], "0 grades for 0 candidates"),
        ([JudgedGroup(id="q", features=((1, 2, 3),), grades=(0, 1))], "2 grades for 1 candidates"),
        ([group_of(0, 1, width=2)], "2 values"),
    ],
)
def test_groups_that_cannot_teach_are_refused(groups: list[JudgedGroup], problem: str) -> None:
    with pytest.raises(InvalidFieldError, match=problem):
        fit_small(groups, held_out=0)


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan")])
def test_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(InvalidFieldError, match="held_out"):
        fit_small(make_groups(), held_out=share)


@pytest.mark.parametrize("names", [("a", "a", "b"), ("a", "b c", "d"), ("a", "b=", "d"), ("a", "ß", "c"), ("", "b", "c")])
def test_feature_names_that_a_model_file_cannot_hold_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(InvalidFieldError, match="'features'"):
        fit(make_groups(), features=names, fitted_on="columns", seed=1)


# --- a third party's set ---


def read_judged(path: Path) -> list[JudgedGroup]:
    """Return LightGBM's own example, its numbers from 0 to 1 as integers at 2^-16."""
    judged = []
    for line in path.read_text(encoding="utf-8").splitlines():
        grade, *pairs = line.split()
        row = [0] * 300
        for column, value in (pair.split(":") for pair in pairs):
            row[int(column) - 1] = round(float(value) * ONE)
        judged.append((tuple(row), int(grade)))
    groups = []
    for number, size in enumerate(path.with_suffix(path.suffix + ".query").read_text(encoding="utf-8").split()):
        part, judged = judged[: int(size)], judged[int(size) :]
        groups.append(JudgedGroup(id=f"{number:04}", features=tuple(row for row, _ in part), grades=tuple(grade for _, grade in part)))
    return groups


def test_example_of_lightgbm_is_ordered_as_well_as_by_lightgbm_itself(shared_data: Path) -> None:
    folder = shared_data / "lightgbm_lambdarank"
    if not folder.is_dir():
        pytest.skip("the third-party sets are not here")
    names = [f"column_{number}" for number in range(300)]
    model = fit(read_judged(folder / "rank.train"), features=names, fitted_on="columns", seed=1, held_out=0)
    reached = mean_ndcg(open_bytes(model.content, features=names, fitted_on="columns"), read_judged(folder / "rank.test"))

    assert reached is not None
    assert reached >= 0.712
