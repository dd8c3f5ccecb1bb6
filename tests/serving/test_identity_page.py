"""docs/identity.md says of every operation who may ask for it, as the operations themselves do."""

from __future__ import annotations

from pathlib import Path

import pytest
from cogapp import Cog  # type: ignore[import-untyped]  # it ships no types

from evidentia.backends.embedded.logs import usage_log
from evidentia.backends.jwt import jwt_verifier
from evidentia.foundation import rate_limit
from evidentia.serving.identity import admission, sessions
from evidentia.serving.operations.registry import ENDPOINTS


def spaced(number: int) -> str:
    return f"{number:,}".replace(",", " ")


PAGE = Path(__file__).resolve().parents[2] / "docs" / "identity.md"


def test_the_table_of_roles_is_that_of_the_operations() -> None:
    """When this fails, run `cog -r docs/identity.md`."""
    assert 0 == Cog().main(["cog", "--check", str(PAGE)])
    assert all(f"| `{endpoint.name}` |" in PAGE.read_text(encoding="utf-8") for endpoint in ENDPOINTS)


@pytest.mark.parametrize(
    "sentence",
    [
        f"at most {spaced(admission.MAX_BURST)}, and it fills evenly",
        f"no more than {spaced(rate_limit.MAX_KEYS)} holders",
        f"every {usage_log.WRITE_S} seconds and at the end",
        f"{admission.WRONG.burst} at once, then one in two seconds",
        f"{spaced(jwt_verifier.MAX_LENGTH)} characters at most",
        f"believed for {jwt_verifier.KEPT_NS // 10**9} seconds at most",
        f"A token has {sessions.MAX_OF_ONE} sessions at most",
    ],
)
def test_numbers_on_the_page_are_those_of_the_program(sentence: str) -> None:
    assert sentence in PAGE.read_text(encoding="utf-8")
