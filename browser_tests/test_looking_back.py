"""What has to be true of everything that the other tests did; these run last."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harbour import Harbour
    from watching import Coverage


@pytest.fixture
def _all_passed(request: pytest.FixtureRequest) -> None:
    if request.session.testsfailed:
        pytest.skip("a test that failed did not see all of its pages")


@pytest.mark.usefixtures("_all_passed")
def test_every_kind_of_page_was_held_to_the_rules(coverage: Coverage) -> None:
    assert [] == coverage.unchecked


def test_the_log_tells_of_no_failure_and_of_nothing_that_was_asked(harbour: Harbour) -> None:
    assert [] == [line for line in harbour.said if "page failed" in line or "Traceback" in line or "gate" in line]
