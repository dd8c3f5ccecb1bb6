"""Fit the confidence on all development sets, with one corpus left out at a time, and say how far it can be trusted elsewhere.

    python tools/fit_confidence.py
    python tools/fit_confidence.py --rows /tmp/rows.npz    (keeps what the engine said, and fits again from there)

Every question of every set is asked through the engine as a default request; the features are those of an answer, worked out by the same
function. Questions of one set asked of the base of another are negatives, and so are those that a set calls unanswerable. Writes
src/evidentia/ranking/confidence.json, benchmarks/results/confidence.json and the pictures docs/images/confidence-*.svg.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from judged_bases import SOURCE, base_of  # noqa: E402  # beside this folder
from judged_sets import SETS, JudgedSet  # noqa: E402
from quality_measures import area_under_curve, brier, brier_of_constant, calibration_error  # noqa: E402

from evidentia.contracts.access import local_owner  # noqa: E402
from evidentia.contracts.evidence import DecomposedQuery, EvidenceRequest, Turn  # noqa: E402
from evidentia.contracts.search import LegScores  # noqa: E402
from evidentia.engine.stage_log import StageLog  # noqa: E402
from evidentia.ranking.confidence import FEATURE_BITS, FEATURES, INTERCEPT, CandidateFeatures  # noqa: E402
from evidentia.wiring import embedded  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from evidentia.engine.pipeline import Answered, Engine

Floats = NDArray[np.float64]
MODEL = ROOT / "src" / "evidentia" / "ranking" / "confidence.json"
RESULTS = ROOT / "benchmarks" / "results" / "confidence.json"
IMAGES = ROOT / "docs" / "images"
PAGE = ROOT / "docs" / "ranking.md"
FROM, UNTIL = "<!-- tools/fit_confidence.py writes from here -->", "<!-- to here -->"
DEV = [name for name, layout in SETS.items() if layout.is_dev]
CORPUS = {name: SETS[name].folder for name in DEV}
TEN, ONE, DEADLINE_MS, SETTLED, CORPUS_MASS = 10, 1 << FEATURE_BITS, 60_000, 1e-8, 3_000
MAX_QUESTIONS = 800
"""Of a larger set so many questions are taken, at equal steps; every corpus weighs the same anyhow."""
STRANGERS = 40
"""So many questions of each other corpus are asked of a base, as negatives."""
MAX_ERROR, GATE = 0.10, 0.3
STRANGE_MASS, UNANSWERABLE_MASS, FIRST_WEIGHT, RIDGE = 0.2, 0.03, 6.0, 1.0
"""What strangers and unanswerable questions weigh beside those of a corpus, a first fragment beside another, and the ridge."""
JUDGED, STRANGE, UNANSWERABLE = "judged", "strange", "UNANSWERABLE"
LEGS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "both": (
        ("nearest", "lead_of_nearest", "distance_of_nearest", "best_attained", "agreement", "tenth"),
        ("document_place", "place", "is_first_of_a_leg", "words_of_best", "lead_of_cosine", "behind", "tenth"),
    ),
    "words": (
        ("best_attained", "lead_of_best", "terms"),
        ("document_place", "place", "words_of_best", "lead_of_words", "behind", "tenth"),
    ),
    "vectors": (
        ("nearest", "lead_of_nearest", "distance_of_nearest"),
        ("document_place", "place", "lead_of_cosine", "distance_of_cosine", "behind", "distance_of_nearest"),
    ),
}
"""The features of both factors of each model: those without which the corpora left out came out worse, of all in `FEATURES`."""


class Rows(NamedTuple):
    """One line for each fragment of each answer: its features, whether it is relevant, and where it comes from."""

    features: Floats
    relevant: Floats
    sets: NDArray[np.str_]
    questions: NDArray[np.str_]
    places: NDArray[np.int64]
    kinds: NDArray[np.str_]

    def of(self, which: NDArray[np.bool_]) -> Rows:
        """Return some of the lines."""
        features, relevant, sets, questions, places, kinds = self
        return Rows(features[which], relevant[which], sets[which], questions[which], places[which], kinds[which])


def main() -> None:
    """Ask, fit, measure, write."""
    parser = argparse.ArgumentParser(description="Fit the confidence on all development sets.")
    parser.add_argument("--rows", type=Path, help="keep the features in this file, or take them from there")
    given = parser.parse_args()
    rows = _read(given.rows) if given.rows and given.rows.exists() else ask_all()
    if given.rows and not given.rows.exists():
        np.savez_compressed(
            given.rows, **{f"{legs}-{name}": array for legs, each in rows.items() for name, array in each._asdict().items()}
        )
    questions = len(np.unique(np.char.add(rows["both"].sets, rows["both"].questions)[rows["both"].kinds == JUDGED]))
    basis = f"{len(set(CORPUS.values()))} judged collections, {questions} questions"
    model: dict[str, Any] = {"basis": basis}
    results: dict[str, Any] = {"command": "python tools/fit_confidence.py", "basis": basis, "left_out": {}, "fitted": {}}
    for legs in LEGS:
        model[legs] = fit(rows[legs], legs)
        left_out = leave_one_corpus_out(rows[legs], legs)
        results["left_out"][legs] = figures(rows[legs], left_out)
        results["fitted"][legs] = figures(rows[legs], said_by(model[legs], rows[legs].features))
        print(table(results["left_out"][legs], title=f"{legs}, corpus left out"), table(results["fitted"][legs], title=f"{legs}, fitted"))
        if legs == "both":
            results["wrong"] = wrong(rows[legs], left_out)
            results["gate"] = gate(rows[legs], left_out)
            draw(rows[legs], left_out)
    stored = json.loads(MODEL.read_text(encoding="utf-8"))
    MODEL.write_text(json.dumps({**stored, "second": model}, indent=2) + "\n", encoding="utf-8")
    RESULTS.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(FROM)
    PAGE.write_text(
        f"{before}{FROM}\n{page_table(results['left_out'], results['gate'])}\n{UNTIL}{rest.partition(UNTIL)[2]}", encoding="utf-8"
    )
    print("\n".join(f"{each['set']} {each['question']}: said {each['said']}, relevant {each['relevant']}" for each in results["wrong"]))


# --- what the engine says ---


def ask_all() -> dict[str, Rows]:
    """Ask every set its own questions and those of strangers, and return the lines for each choice of legs."""
    found: dict[str, list[tuple[Any, ...]]] = {legs: [] for legs in LEGS}
    sets = {name: JudgedSet(name) for name in DEV}
    for name, judged in sets.items():
        parts = embedded.open_parts(base_of(judged))
        engine = parts.engine(parts.config)
        for question_id, text, turns, grades, kind in _asked(name, sets):
            answered = _answer(engine, text, turns)
            for legs, (features, chosen) in _candidates(answered).items():
                documents = [answered.found.hits[each].document_id.removeprefix(f"{SOURCE}:") for each in chosen.values()]
                for place, (own, document) in enumerate(zip(chosen, documents, strict=True)):
                    found[legs].append((features.row(own), grades.get(document, 0) > 0, name, question_id, place, kind))
        parts.close()
        print(f"{name}: asked", file=sys.stderr, flush=True)
    return {legs: _rows(lines) for legs, lines in found.items()}


def _asked(name: str, sets: Mapping[str, JudgedSet]) -> Iterator[tuple[str, str, tuple[Turn, ...], Mapping[str, int], str]]:
    for each in _some(sets[name].questions, MAX_QUESTIONS):
        kind = JUDGED if each.is_judged else str(each.metadata.get("answerability"))
        if kind in (JUDGED, UNANSWERABLE):
            yield each.question_id, each.text, tuple(Turn(role=turn["role"], text=turn["text"]) for turn in each.turns), each.grades, kind
    strangers = {CORPUS[other]: other for other in reversed(DEV) if CORPUS[other] != CORPUS[name]}
    for other in strangers.values() if not name.endswith("_alone") else ():
        for each in _some(sets[other].questions, STRANGERS):
            yield f"{other}:{each.question_id}", each.text, (), {}, STRANGE


def _some(questions: Sequence[Any], most: int) -> list[Any]:
    step = max(1.0, len(questions) / most)
    return [questions[int(place * step)] for place in range(min(most, len(questions)))]


def _answer(engine: Engine, text: str, turns: tuple[Turn, ...]) -> Answered:
    request = EvidenceRequest(query=DecomposedQuery(text=text), turns=turns, latency_deadline_ms=DEADLINE_MS, receipt=False)
    log = StageLog(engine.clock, deadline_ms=DEADLINE_MS)
    return engine.conclude(engine.search(engine.prepare(request, principal=local_owner(), log=log, is_live=False), log), log)


def _candidates(answered: Answered) -> dict[str, tuple[CandidateFeatures, dict[int, int]]]:
    """Return the features for each choice of legs, with the first ten fragments: where they stand there, and among all candidates."""
    found, legs = answered.found, answered.found.parts[0].legs
    at = {hit.chunk_id: place for place, hit in enumerate(found.hits)}
    by_words, by_vectors = ([at[each] for each in ranking] for ranking in found.parts[0].rankings)
    everything = {place: place for place in range(len(legs))}
    chosen = {
        "both": (everything, [at[each.ranked.hit.chunk_id] for each in answered.chosen]),
        "words": ({place: own for own, place in enumerate(sorted(by_words))}, by_words),
        "vectors": ({place: own for own, place in enumerate(sorted(by_vectors))}, by_vectors),
    }
    described = {}
    for name, (own_of, best) in chosen.items():
        features = CandidateFeatures(
            [_only(legs[place], name) for place in own_of],
            [found.hits[place].document_id for place in own_of],
            attainable=found.counts.attainable,
            score_bits=found.dense.score_bits if found.dense else 0,
            terms=len(answered.question.words.terms),
        )
        described[name] = (features, {own_of[place]: place for place in best[:TEN]})
    return described


def _only(leg: LegScores, legs: str) -> LegScores:
    """Return what is left of both legs' scores where some took no part."""
    return LegScores(lexical=0 if legs == "vectors" else leg.lexical, dense=None if legs == "words" else leg.dense)


def _rows(lines: list[tuple[Any, ...]]) -> Rows:
    features, relevant, sets, questions, places, kinds = zip(*lines, strict=True)
    return Rows(
        np.array(features, dtype=np.float64) / ONE, np.array(relevant, dtype=np.float64), np.array(sets), np.array(questions),
        np.array(places), np.array(kinds),
    )  # fmt: skip


def _read(path: Path) -> dict[str, Rows]:
    with np.load(path) as stored:
        return {legs: Rows(*(stored[f"{legs}-{name}"] for name in Rows._fields)) for legs in LEGS}


# --- fitting ---


def fit(rows: Rows, legs: str) -> dict[str, dict[str, int]]:
    """Return the coefficients of both factors at 2^-16: whether a question is one of the base's own, and what then is relevant."""
    about_questions, about_fragments = LEGS[legs]
    own = rows.kinds == JUDGED
    first, answered = rows.of(rows.places == 0), rows.of(own)
    masses = {JUDGED: 1.0, STRANGE: STRANGE_MASS, UNANSWERABLE: UNANSWERABLE_MASS}
    weights = np.where(answered.places == 0, FIRST_WEIGHT, 1.0)
    known = _newton(first, about_questions, (first.kinds == JUDGED).astype(np.float64), _masses(first, np.ones(len(first.places)), masses))
    given = _factor(known, answered.features)
    return {"question": known, "fragment": _newton(answered, about_fragments, answered.relevant, _masses(answered, weights, masses), given)}


def _newton(rows: Rows, names: Sequence[str], labels: Floats, masses: Floats, given: Floats | float = 1.0) -> dict[str, int]:
    """Return maximum-likelihood coefficients of a curve times a given factor, by Fisher scoring, with a ridge on unit variances."""
    columns = rows.features[:, [FEATURES.index(name) for name in names]]
    mean, deviation = columns.mean(axis=0), np.where(columns.std(axis=0) > 0, columns.std(axis=0), 1.0)
    design = np.column_stack([np.ones(len(columns)), (columns - mean) / deviation])
    ridge = np.append(0.0, np.full(len(names), RIDGE))
    weights = np.zeros(design.shape[1])
    for _ in range(50):
        own = _curve(design @ weights)
        chance = np.minimum(own * given, 1 - 1e-12)
        slope = (1 - own) / (1 - chance)
        gradient = design.T @ (masses * (labels - chance) * slope) - ridge * weights
        curvature = (design * (masses * chance * (1 - own) * slope)[:, None]).T @ design + np.diag(ridge + 1e-9)
        step = np.linalg.solve(curvature, gradient)
        weights += step
        if float(np.abs(step).max()) < SETTLED:
            break
    slopes = weights[1:] / deviation
    fitted = {INTERCEPT: weights[0] - float(slopes @ mean), **dict(zip(names, slopes, strict=True))}
    return {name: round(float(value) * ONE) for name, value in fitted.items()}


def said_by(model: Mapping[str, Mapping[str, int]], features: Floats) -> Floats:
    """Return what a model says of features."""
    return _factor(model["question"], features) * _factor(model["fragment"], features)


def _factor(weights: Mapping[str, int], features: Floats) -> Floats:
    return _curve(features @ np.array([weights.get(name, 0) / ONE for name in FEATURES]) + weights[INTERCEPT] / ONE)


def leave_one_corpus_out(rows: Rows, legs: str) -> Floats:
    """Return what is said of each fragment by a model that saw nothing of its corpus, neither its base nor its questions."""
    corpora = np.array([CORPUS[name] for name in rows.sets])
    asked = np.array([CORPUS.get(each.partition(":")[0], "") for each in rows.questions])
    said = np.zeros(len(rows.relevant))
    for corpus in sorted(set(CORPUS.values())):
        own = corpora == corpus
        said[own] = said_by(fit(rows.of(~own & (asked != corpus)), legs), rows.features[own])
    return said


def _curve(points: Floats) -> Floats:
    chance: Floats = 1 / (1 + np.exp(-np.clip(points, -30, 30)))
    return chance


def _masses(rows: Rows, weights: Floats, masses: Mapping[str, float]) -> Floats:
    """Return what each line counts: every corpus as much, and within it each kind of question as stated."""
    counted = weights.copy()
    corpora = np.array([CORPUS[name] for name in rows.sets])
    for corpus in set(CORPUS.values()):
        for kind, mass in masses.items():
            which = (corpora == corpus) & (rows.kinds == kind)
            if which.any():
                counted[which] *= CORPUS_MASS * mass / counted[which].sum()
    return counted


# --- figures ---


def figures(rows: Rows, said: Floats) -> dict[str, Any]:
    """Return for each set how well it is calibrated, for the first fragment and the first ten, and what strangers are told."""
    found: dict[str, Any] = {}
    for name in DEV:
        own = rows.sets == name
        first = own & (rows.places == 0)
        judged = first & (rows.kinds == JUDGED)
        found[name] = {"first": _calibration(rows, said, judged), "first ten": _calibration(rows, said, own & (rows.kinds == JUDGED))}
        for kind in (STRANGE, UNANSWERABLE):
            other = first & (rows.kinds == kind)
            if other.any():
                found[name][kind] = {
                    "said": round(float(said[other].mean()), 4),
                    "said at the 90th percentile": round(float(np.quantile(said[other], 0.9)), 4),
                    "AUC": round(area_under_curve(said[judged].tolist(), said[other].tolist()) or 0.0, 4),
                }
    return found


def _calibration(rows: Rows, said: Floats, which: NDArray[np.bool_]) -> dict[str, Any]:
    chances, outcomes = said[which], rows.relevant[which]
    return {
        "fragments": int(which.sum()), "relevant": round(float(outcomes.mean()), 4), "said": round(float(chances.mean()), 4),
        "ECE": round(calibration_error(chances, outcomes), 4), "Brier": round(brier(chances, outcomes), 4),
        "constant": round(brier_of_constant(outcomes), 4),
    }  # fmt: skip


def table(found: Mapping[str, Any], *, title: str) -> str:
    """Return the figures as a table."""
    lines = [
        f"\n{title}",
        "| set | relevant, said | ECE | Brier, constant | of ten: relevant, said | ECE | Brier, constant | strangers, AUC |",
    ]
    lines.append("|---|---|--:|---|---|--:|---|---|")
    for name, each in found.items():
        cells = [name]
        for which in ("first", "first ten"):
            one = each[which]
            worse = "" if one["Brier"] < one["constant"] else " worse"
            cells += [f"{one['relevant']:.3f}, {one['said']:.3f}", f"{one['ECE']:.3f}", f"{one['Brier']:.4f}, {one['constant']:.4f}{worse}"]
        cells.append("; ".join(f"{each[kind]['said']:.3f}, {each[kind]['AUC']:.3f}" for kind in (STRANGE, UNANSWERABLE) if kind in each))
        lines.append(f"| {' | '.join(cells)} |")
    means = [float(np.mean([each[which]["ECE"] for each in found.values()])) for which in ("first", "first ten")]
    return "\n".join([*lines, f"mean ECE: first {means[0]:.4f}, first ten {means[1]:.4f}"])


def page_table(left_out: Mapping[str, Mapping[str, Any]], passed: Mapping[str, float]) -> str:
    """Return what the page on ranking says: a table by set for both legs, the means for all, and where the aims are missed."""
    lines = [
        "",
        "| set, left out | fragments | relevant | said | calibration error | Brier score | a constant's |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    missed = []
    for name, each in left_out["both"].items():
        for which in ("first", "first ten"):
            one = each[which]
            cells = (f"{one['relevant']:.3f}", f"{one['said']:.3f}", f"{one['ECE']:.3f}", f"{one['Brier']:.4f}", f"{one['constant']:.4f}")
            lines.append(f"| {name} | {which} | {' | '.join(cells)} |")
            if one["ECE"] > MAX_ERROR:
                missed.append(f"{name} ({which}) with an error of {one['ECE']:.3f}")
            if one["Brier"] >= one["constant"]:
                missed.append(f"{name} ({which}) with a Brier score no better than a constant's")
    lines += ["", "| legs | mean error, first | mean error, first ten | said of strangers' first | AUC, own questions against strangers' |"]
    lines.append("|---|--:|--:|--:|--:|")
    for legs, sets in left_out.items():
        means = [np.mean([each[which]["ECE"] for each in sets.values()]) for which in ("first", "first ten")]
        means += [np.mean([each[STRANGE][what] for each in sets.values() if STRANGE in each]) for what in ("said", "AUC")]
        lines.append(f"| {legs} | {' | '.join(f'{mean:.3f}' for mean in means)} |")
    unanswerable = {name: each[UNANSWERABLE]["AUC"] for name, each in left_out["both"].items() if UNANSWERABLE in each}
    told = ", ".join(f"{value:.3f} on {name}" for name, value in unanswerable.items())
    lines += ["", f"The AUC of answerable against unanswerable questions by the first fragment's confidence is {told}."]
    right, strange = passed["right"], passed[STRANGE]
    lines.append(f"A threshold of {GATE} lets {right:.0%} of the relevant first fragments pass, and {strange:.0%} of strangers'.")
    lines.append(f"The aim is an error of at most {MAX_ERROR} on each set and a Brier score below a constant's.")
    lines += ["It is missed by:", "", *(f"- {each}" for each in missed)] if missed else []
    return "\n".join([*lines, ""])


def gate(rows: Rows, said: Floats) -> dict[str, float]:
    """Return what a threshold as in the template against off-topic answers lets pass, in the mean over sets."""
    passed: dict[str, list[float]] = {"right": [], STRANGE: []}
    for name in DEV:
        first = (rows.sets == name) & (rows.places == 0)
        for kind, which in (("right", first & (rows.relevant > 0)), (STRANGE, first & (rows.kinds == STRANGE))):
            if which.any():
                passed[kind].append(float((said[which] >= GATE).mean()))
    return {kind: round(float(np.mean(shares)), 4) for kind, shares in passed.items()}


def wrong(rows: Rows, said: Floats, *, most: int = 2) -> list[dict[str, Any]]:
    """Return the first fragments about which the confidence is most mistaken, some of each set in both directions."""
    found = []
    for name in DEV:
        own = np.flatnonzero((rows.sets == name) & (rows.places == 0) & (rows.kinds != STRANGE))
        by_error = own[np.argsort(said[own] - rows.relevant[own], kind="stable")]
        found += [
            {"set": name, "question": str(rows.questions[at]), "said": round(float(said[at]), 3), "relevant": bool(rows.relevant[at])}
            for at in (*by_error[:most], *by_error[::-1][:most])
        ]
    return found


# --- pictures ---

SIDE, GAP, ACROSS = 150, 46, 4


def draw(rows: Rows, said: Floats) -> None:
    """Write reliability diagrams: ten bins of equal mass for each set, said against true, with the corpus left out."""
    for title, which in (("first", rows.places == 0), ("first-ten", rows.places < TEN)):
        plots = [_plot(name, rows, said, which & (rows.sets == name) & (rows.kinds == JUDGED), number) for number, name in enumerate(DEV)]
        height = -(-len(DEV) // ACROSS) * (SIDE + GAP) + 30
        width = ACROSS * (SIDE + GAP) + 20
        style = "text{font:11px sans-serif;fill:#444}.f{fill:#fff;stroke:#bbb}.d{stroke:#999;stroke-dasharray:4 3}"
        style += ".l{fill:none;stroke:#2563a8;stroke-width:1.5}.p{fill:#2563a8}"
        content = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"><title>Reliability, {title}</title>'
        content += f'<style>{style}</style><rect width="100%" height="100%" fill="#fff"/>{"".join(plots)}'
        content += f'<text x="{width // 2}" y="{height - 8}" text-anchor="middle">across: said; up: relevant (0 to 1)</text></svg>\n'
        (IMAGES / f"confidence-{title}.svg").write_text(content, encoding="utf-8")


def _plot(name: str, rows: Rows, said: Floats, which: NDArray[np.bool_], number: int) -> str:
    left, top = 30 + number % ACROSS * (SIDE + GAP), 24 + number // ACROSS * (SIDE + GAP)
    order = np.argsort(said[which], kind="stable")
    bins = [(float(said[which][part].mean()), float(rows.relevant[which][part].mean())) for part in np.array_split(order, TEN)]
    points = [f"{left + x * SIDE:.1f},{top + (1 - y) * SIDE:.1f}" for x, y in bins]
    dots = "".join(f'<circle class="p" r="2.5" cx="{point.partition(",")[0]}" cy="{point.partition(",")[2]}"/>' for point in points)
    error = calibration_error(said[which], rows.relevant[which])
    return (
        f'<text x="{left}" y="{top - 6}">{name}, error {error:.3f}</text>'
        f'<rect class="f" x="{left}" y="{top}" width="{SIDE}" height="{SIDE}"/>'
        f'<path class="d" d="M{left} {top + SIDE}L{left + SIDE} {top}"/><polyline class="l" points="{" ".join(points)}"/>{dots}'
    )


if __name__ == "__main__":
    main()
