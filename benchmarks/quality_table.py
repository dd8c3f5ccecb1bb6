"""The scoreboard: what a run of the quality benchmark comes to, as figures with intervals and as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from quality_measures import (
    Figure,
    area_under_curve,
    brier,
    brier_of_constant,
    calibration_error,
    interval_of_mean,
    interval_of_means,
    interval_over_questions,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    Rows = Mapping[str, Mapping[str, Any]]  # Any: a stored row has numbers, lists and words

MEASURES = {"ndcg10": "nDCG@10", "ndcg10_of_100": "nDCG@10 of 100", "r100": "R@100"}
DEFAULT, PEER = "default", "bm25s"
FIRST, TEN = "first", "first ten"


def summarise(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of a run: for each set and way, for each set the default request against every other way, and means over sets."""
    sets = {name: _summarised(each) for name, each in report["sets"].items()}
    dev = [name for name, each in report["sets"].items() if each["is_dev"]]
    groups = {"development sets": dev, "all sets": list(report["sets"])}
    means = {title: _means(report["sets"], names) for title, names in groups.items() if names}
    return {**{key: value for key, value in report.items() if key != "sets"}, "sets": sets, "means": means}


def _summarised(judged: Mapping[str, Any]) -> dict[str, Any]:
    ways = judged["ways"]
    peer = ways.get(PEER, {})
    return {
        **{key: judged[key] for key in ("split", "is_dev", "documents", "questions")},
        "ways": {way: _figures(rows, peer) for way, rows in ways.items()},
        "default_minus": {way: _differences(ways[DEFAULT], rows) for way, rows in ways.items() if way != DEFAULT and DEFAULT in ways},
    }


def _figures(rows: Rows, peer: Rows) -> dict[str, Any]:
    figures: dict[str, Any] = {
        name: interval_of_mean([row[key] for row in _judged(rows).values()]).rounded() for key, name in MEASURES.items() if _has(rows, key)
    }
    empty = [each for each, row in _judged(rows).items() if not row["found"]]
    figures["empty"] = len(empty)
    figures["empty where bm25s finds"] = sum(bool(peer.get(each, {}).get("found")) for each in empty)
    figures["degraded"] = sum("degraded" in row for row in rows.values())
    if any("confidence" in row for row in rows.values()):
        figures["calibration"] = {title: _calibration(rows, most=most) for title, most in ((FIRST, 1), (TEN, 10))}
    labelled = {each: row for each, row in rows.items() if row.get("label") and "first" in row}
    if labelled:
        figures["answerability"] = _answerability(labelled)
    return figures


def _calibration(rows: Rows, *, most: int) -> dict[str, Any]:
    pairs = {each: [(float(confidence), int(hit)) for confidence, hit in row["confidence"][:most]] for each, row in _judged(rows).items()}
    outcomes = np.array([hit for each in pairs.values() for _, hit in each], dtype=np.float64)
    return {
        "fragments": int(outcomes.size),
        "relevant": round(float(outcomes.mean()), 4) if outcomes.size else None,
        "ECE": interval_over_questions(pairs, calibration_error).rounded(),
        "Brier": interval_over_questions(pairs, brier).rounded(),
        "constant": round(brier_of_constant(outcomes), 4),
        "Brier minus constant": interval_over_questions(pairs, lambda said, was: brier(said, was) - brier_of_constant(was)).rounded(),
    }


def _answerability(rows: Rows) -> dict[str, float | None]:
    """Return how well the first fragment's confidence tells questions that can be answered from those that cannot."""

    def first(label: str) -> list[float]:
        return [row["first"] or 0.0 for row in rows.values() if row["label"] == label]

    found = {label: area_under_curve(first("ANSWERABLE"), first(label)) for label in ("UNANSWERABLE", "UNDERSPECIFIED")}
    return {f"AUC against {label}": None if value is None else round(value, 4) for label, value in found.items()}


def _differences(default: Rows, other: Rows) -> dict[str, list[float]]:
    shared = [each for each in _judged(default) if each in other]
    return {
        name: interval_of_mean([default[each][key] - other[each][key] for each in shared]).rounded()
        for key, name in MEASURES.items()
        if _has(default, key) and _has(other, key)
    }


def _means(sets: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    ways = [way for way in sets[names[0]]["ways"] if all(way in sets[name]["ways"] for name in names)]
    found: dict[str, Any] = {"sets": len(names), "ways": {}, "default_minus": {}}
    for way in ways:
        rows = [_judged(sets[name]["ways"][way]) for name in names]
        keys = [key for key in MEASURES if all(_has(each, key) for each in rows)]
        found["ways"][way] = {
            MEASURES[key]: interval_of_means([[row[key] for row in each.values()] for each in rows]).rounded() for key in keys
        }
        if way != DEFAULT and DEFAULT in ways:
            found["default_minus"][way] = {
                MEASURES[key]: _mean_difference(sets, names, way, key=key).rounded()
                for key in keys
                if all(_has(sets[name]["ways"][DEFAULT], key) for name in names)
            }
    return found


def _mean_difference(sets: Mapping[str, Any], names: list[str], way: str, *, key: str) -> Figure:
    pairs = [(sets[name]["ways"][DEFAULT], sets[name]["ways"][way]) for name in names]
    return interval_of_means([[own[each][key] - other[each][key] for each in _judged(own)] for own, other in pairs])


def _judged(rows: Rows) -> dict[str, Mapping[str, Any]]:
    return {each: row for each, row in rows.items() if "ndcg10" in row}


def _has(rows: Rows, key: str) -> bool:
    judged = _judged(rows)
    return bool(judged) and all(key in row for row in judged.values())


# --- text ---


def render(summary: Mapping[str, Any]) -> str:
    """Return the scoreboard as Markdown tables."""
    return "\n".join([*_quality(summary), "", *_against(summary), "", *_confidence(summary), ""])


def _quality(summary: Mapping[str, Any]) -> list[str]:
    lines = [
        "| set | questions | way | nDCG@10 | nDCG@10 of 100 | R@100 | empty | of them bm25s finds | degraded |",
        "|---|--:|---|---|---|---|--:|--:|--:|",
    ]
    for name, judged in summary["sets"].items():
        for way, figures in judged["ways"].items():
            cells = [_figure(figures.get(measure)) for measure in MEASURES.values()]
            counts = [str(figures[key]) for key in ("empty", "empty where bm25s finds", "degraded")]
            lines.append(_row(name, str(judged["questions"]), way, *cells, *counts))
    for title, mean in summary["means"].items():
        lines += [
            _row(
                f"**mean of {title}**",
                str(mean["sets"]),
                way,
                *(_figure(figures.get(measure)) for measure in MEASURES.values()),
                "",
                "",
                "",
            )
            for way, figures in mean["ways"].items()
        ]
    return lines


def _against(summary: Mapping[str, Any]) -> list[str]:
    groups = {**summary["sets"], **{f"**mean of {title}**": mean for title, mean in summary["means"].items()}}
    others = sorted({way for each in groups.values() for way in each["default_minus"]}, key=["relevance", "lexical", "dense", PEER].index)
    if not others:
        return []
    lines = [_row("nDCG@10, default minus", *others), _row(*(["---"] * (len(others) + 1)))]
    for name, each in groups.items():
        lines.append(_row(name, *(_figure(each["default_minus"].get(way, {}).get("nDCG@10"), sign="+") for way in others)))
    return lines


def _confidence(summary: Mapping[str, Any]) -> list[str]:
    lines = [
        "| set | fragments | relevant | calibration error | Brier score | a constant's | difference |",
        "|---|---|--:|---|---|--:|---|",
    ]
    errors: dict[str, list[float]] = {}
    for name, judged in summary["sets"].items():
        for title, each in judged["ways"].get(DEFAULT, {}).get("calibration", {}).items():
            errors.setdefault(title, []).append(each["ECE"][0])
            cells = (
                _figure(each["ECE"]),
                _figure(each["Brier"]),
                f"{each['constant']:.4f}",
                _figure(each["Brier minus constant"], sign="+"),
            )
            lines.append(_row(name, title, f"{each['relevant'] or 0:.3f}", *cells))
    lines += [_row("**mean of all sets**", title, "", f"{np.mean(found):.4f}", "", "", "") for title, found in errors.items()]
    return lines if errors else []


def _figure(figure: list[float] | None, *, sign: str = "") -> str:
    if figure is None:
        return ""
    value, low, high = figure
    return f"{value:{sign}.4f} ({low:{sign}.3f} to {high:{sign}.3f})"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
