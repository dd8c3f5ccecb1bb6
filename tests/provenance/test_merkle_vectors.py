"""The published RFC 6962 vectors, good and deliberately broken."""

from __future__ import annotations

import base64
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from evidentia.provenance import merkle

if TYPE_CHECKING:
    from pathlib import Path

VECTORS = 518


def _hashes(case: dict[str, Any]) -> list[bytes]:
    return [base64.b64decode(each) for each in case["proof"] or ()]


def _answer(family: str, case: dict[str, Any]) -> bool:
    path = _hashes(case)
    if family == "inclusion":
        return merkle.verify_inclusion(
            base64.b64decode(case["leafHash"] or ""),
            index=case["leafIdx"],
            size=case["treeSize"],
            path=path,
            root=base64.b64decode(case["root"] or ""),
        )
    if family == "subtreeinclusion":
        return merkle.verify_subtree_inclusion(
            base64.b64decode(case["leafHash"] or ""),
            index=case["leafIdx"],
            start=case["start"],
            end=case["end"],
            path=path,
            root=base64.b64decode(case["root"] or ""),
        )
    first, second = base64.b64decode(case["root1"] or ""), base64.b64decode(case["root2"] or "")
    if family == "consistency":
        return merkle.verify_consistency(first=case["size1"], second=case["size2"], path=path, first_root=first, second_root=second)
    return merkle.verify_subtree_consistency(
        start=case["start"], end=case["end"], size=case["size"], path=path, subtree_root=first, root=second
    )


def test_every_published_vector_is_answered_as_published(shared_data: Path) -> None:
    folder = shared_data / "merkle_vectors" / "testdata"
    if not folder.is_dir():
        pytest.skip(f"no Merkle vectors at {folder}")
    answered: Counter[bool] = Counter()
    wrong = []
    for file in sorted(folder.rglob("*.json")):
        family = file.relative_to(folder).parts[0]
        case = json.loads(file.read_text())
        is_right = _answer(family, case) is not case["wantErr"]
        answered[is_right] += 1
        if not is_right:
            wrong.append(str(file.relative_to(folder)))

    assert [] == wrong
    assert VECTORS == answered[True]
