"""What the watch over every page notices: without this, a page that breaks the rules would pass in silence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from watching import Watched

SCRIPT = "document.head.append(Object.assign(document.createElement('script'), {textContent: 'window.canary = 1'}))"
PICTURE = "document.body.append(Object.assign(document.createElement('img'), {src: 'http://example.com/a.png', alt: ''}))"
DIALOG = "setTimeout(() => alert('here'))"
UNCAUGHT = "setTimeout(() => { throw new Error('thrown') })"


@pytest.mark.parametrize(
    ("act", "said"),
    [(SCRIPT, "policy: script-src"), (PICTURE, "policy: img-src"), (DIALOG, "dialog: here"), (UNCAUGHT, "uncaught: thrown")],
)
def test_what_goes_wrong_on_a_page_is_noticed(window: Callable[..., Watched], act: str, said: str) -> None:
    seen = window()
    seen.page.goto("/dashboard/sign-in")
    seen.page.evaluate(act)
    seen.page.wait_for_timeout(200)

    assert any(said in problem for problem in seen.problems), seen.problems
    seen.problems.clear()


def test_a_page_that_is_left_for_another_host_is_noticed_and_never_asked_for(window: Callable[..., Watched]) -> None:
    seen = window()
    seen.page.goto("/dashboard/sign-in")
    seen.page.evaluate("setTimeout(() => { location = 'http://example.com/' })")
    seen.page.wait_for_timeout(200)

    assert "a request left for http://example.com/" in seen.problems
    seen.page.goto("/dashboard/sign-in")
    seen.problems.clear()


def test_a_field_without_a_name_breaks_the_rules(window: Callable[..., Watched]) -> None:
    seen = window()
    seen.page.goto("/dashboard/sign-in")
    seen.page.evaluate("document.querySelector('main').append(document.createElement('input'))")

    with pytest.raises(AssertionError, match="label: Form elements must have labels"):
        seen.check()
