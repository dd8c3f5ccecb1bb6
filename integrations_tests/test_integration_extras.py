"""Each integration stands alone, and says what to install when its framework is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from evidentia.contracts.errors import InvalidFieldError
from evidentia.integrations.base_client import Asker

FRAMEWORKS = {"langchain": "langchain_core", "llamaindex": "llama_index", "haystack": "haystack"}


def said_by(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_missing_framework_names_its_extra(name: str) -> None:
    program = f"""
import sys
sys.modules[{FRAMEWORKS[name]!r}] = None
from evidentia.contracts.errors import MissingExtraError
try:
    import evidentia.integrations.{name}
except MissingExtraError as error:
    print(error)
"""
    expected = f"evidentia.integrations.{name} needs the extra '{name}': pip install 'evidentia[{name}]'"

    assert expected == said_by(program)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_an_integration_loads_no_other_framework(name: str) -> None:
    others = {package for other, package in FRAMEWORKS.items() if other != name}
    program = f"import sys, evidentia.integrations.{name}; print(*sorted({others!r} & set(sys.modules)))"

    assert "" == said_by(program)


def test_a_base_loads_no_framework() -> None:
    program = (
        f"import sys, evidentia.base.sync_base, evidentia.integrations; print(*sorted({set(FRAMEWORKS.values())!r} & set(sys.modules)))"
    )

    assert "" == said_by(program)


def test_what_is_no_base_is_refused() -> None:
    with pytest.raises(InvalidFieldError, match="got int"):
        Asker(7)  # type: ignore[arg-type]  # what a caller without a type checker may do
