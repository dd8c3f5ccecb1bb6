"""Tests of the dashboard in a real browser, against `evidentia serve` in a process of its own: `make test-browser`.

Without Chromium or what drives it they are all skipped, unless EVIDENTIA_BROWSER is `required`.
"""

from __future__ import annotations

import importlib.util
import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harbour import Harbour
    from playwright.sync_api import Browser
    from watching import Coverage, Watched

NEEDED = ("playwright", "axe_playwright_python")


def _missing() -> str:
    for name in NEEDED:
        if importlib.util.find_spec(name) is None:
            return f"there is no {name}: pip install {name.replace('_', '-')}"
    return "" if Path("/usr/bin/chromium").exists() else "there is no /usr/bin/chromium: apt-get install chromium"


def pytest_configure() -> None:
    """Stop before the modules are imported where something is missing that they need."""
    problem = _missing()
    if problem and os.environ.get("EVIDENTIA_BROWSER") == "required":
        pytest.exit(problem, returncode=1)
    if problem:
        pytest.exit(f"skipped, {problem}", returncode=0)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have the tests that look back on all others come last."""
    items.sort(key=lambda item: item.path.name == "test_looking_back.py")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start Chromium."""
    from playwright.sync_api import expect, sync_playwright
    from watching import CHROMIUM, FLAGS, PATIENCE_MS

    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS), chromium_sandbox=False)
        yield started
        started.close()


@pytest.fixture(scope="session")
def coverage() -> Coverage:
    """Count the kinds of page that were seen and that were checked."""
    from watching import Coverage

    return Coverage()


@pytest.fixture(scope="session")
def harbour(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harbour]:
    """Serve a base with documents of two tenants."""
    from harbour import furnish, served

    with served(tmp_path_factory.mktemp("harbour")) as serving:
        furnish(serving)
        yield serving


@pytest.fixture
def window(browser: Browser, harbour: Harbour, coverage: Coverage) -> Iterator[Callable[..., Watched]]:
    """Open windows, each of a browser of its own; what went wrong in any of them is told in the end."""
    from watching import Watched

    with ExitStack() as stack:

        def opened(url: str = "", **options: Any) -> Watched:
            made = Watched(browser, url or harbour.url, coverage, **options)
            stack.callback(made.close)
            return made

        yield opened


@pytest.fixture(scope="session")
def keys(harbour: Harbour) -> dict[str, str]:
    """Issue the keys of those who sign in, by name."""
    from harbour import run_cli

    issued = {"ben": harbour.issue("ben", "reader", facts={"clearance": "internal"})["token"]}
    # An admin gives no group that it does not have, so this one is made at the machine.
    facts = ("--name", "ada", "--role", "reader", "--clearance", "confidential", "--group", "security")
    issued["ada"] = run_cli("tokens", "add", *facts, base=harbour.base).strip()
    issued["cleo"] = harbour.issue("cleo", "reader", by=harbour.other_admin)["token"]
    issued["olga"] = harbour.issue("olga", "admin", "auditor")["token"]
    issued["agent"] = harbour.issue("harbour agent", "agent")["token"]
    return issued
