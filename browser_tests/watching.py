"""A browser page under watch: whatever goes wrong on it is kept, and every page is held to the rules of accessibility."""

from __future__ import annotations

import re
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Request, Response, Route, ViewportSize

CHROMIUM: Final = "/usr/bin/chromium"
FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
SIZE: Final[ViewportSize] = {"width": 1280, "height": 800}
PATIENCE_MS: Final = 10_000
Scheme = Literal["light", "dark"]
SCHEMES: Final[tuple[Scheme, ...]] = ("light", "dark")
FAILED: Final = 400
ABORTED: Final = "net::ERR_ABORTED"
_CSP: Final = """
document.addEventListener("securitypolicyviolation", (event) => {
  console.error("policy: " + event.violatedDirective + " " + event.blockedURI);
});
"""
_AXE: Final = (
    "axe.run(document, {resultTypes: ['violations']}).then((found) => found.violations.map((each) => "
    "each.id + ': ' + each.help + ' at ' + each.nodes.map((node) => node.target.join(' ') + ' (' + node.failureSummary + ')').join(', ')))"
)
_ID: Final = re.compile(r"/(?=[^/]*\d)[A-Za-z0-9_.:-]{6,}(?=/|$)")


class Coverage:
    """Which kinds of page were seen, and which of them were held to the rules; one for all tests."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.checked: set[str] = set()

    def see(self, address: str) -> None:
        """Note that somebody came to a page."""
        if kind_of(address).startswith("/dashboard"):
            self.seen.add(kind_of(address))

    @property
    def unchecked(self) -> list[str]:
        """Return the pages that somebody came to and nobody checked."""
        return sorted(self.seen - self.checked)


class Watched:
    """One window of somebody's browser."""

    def __init__(self, browser: Browser, url: str, coverage: Coverage, *, scheme: Scheme = "light", **options: Any) -> None:
        self.url = url
        self.problems: list[str] = []
        self.context = browser.new_context(
            base_url=url, viewport=SIZE, color_scheme=scheme, reduced_motion="reduce", locale="en-GB", timezone_id="UTC", **options
        )
        self.context.set_default_timeout(PATIENCE_MS)
        self.context.add_init_script(_CSP)
        self.context.route(re.compile(rf"^(?!{re.escape(url)}/|data:|blob:|about:)"), self._refuse)
        self._coverage = coverage
        self._allowed: tuple[int, ...] = ()
        self._scheme = scheme
        self._is_found_wanting = False
        self.page = self._watched(self.context.new_page())

    def _is_own(self, address: str) -> bool:
        return address.startswith((f"{self.url}/", "data:", "blob:", "about:"))

    def _refuse(self, route: Route) -> None:
        self.problems.append(f"a request left for {route.request.url}")
        route.abort()

    def _watched(self, page: Page) -> Page:
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.problems.append(f"uncaught: {error}"))
        page.on("dialog", self._on_dialog)
        page.on("request", self._on_request)
        page.on("requestfailed", self._on_failed)
        page.on("response", self._on_response)
        page.on("framenavigated", lambda frame: None if frame.parent_frame else self._coverage.see(frame.url))
        return page

    def _on_console(self, message: ConsoleMessage) -> None:
        is_status = "Failed to load resource" in message.text and any(f"status of {code}" in message.text for code in self._allowed)
        if message.type == "error" and not is_status:
            self.problems.append(f"console: {message.text}")

    def _on_dialog(self, dialog: Dialog) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _on_request(self, request: Request) -> None:
        if not self._is_own(request.url):
            self.problems.append(f"asked for {request.url}")

    def _on_failed(self, request: Request) -> None:
        # A page that is left ends its live stream, and a file that is saved is no page.
        if request.failure != ABORTED:
            self.problems.append(f"failed: {request.url} {request.failure}")

    def _on_response(self, response: Response) -> None:
        if response.status >= FAILED and response.status not in self._allowed:
            self.problems.append(f"{response.status}: {response.url}")

    @contextmanager
    def allowing(self, *statuses: int) -> Iterator[None]:
        """Expect refusals for a while."""
        before, self._allowed = self._allowed, statuses
        try:
            yield
        finally:
            self._allowed = before

    def open(self, path: str) -> Page:
        """Go to a page, and hold it to the rules."""
        self.page.goto(path)
        self.check()
        return self.page

    def check(self) -> None:
        """Hold what is shown to the rules of accessibility, light and dark, and to having no problems."""
        was_found_wanting, self._is_found_wanting = self._is_found_wanting, True
        self.page.wait_for_load_state()  # a link that was clicked shows its page part by part
        self.page.evaluate(_axe())
        for scheme in SCHEMES:
            self.page.emulate_media(color_scheme=scheme)
            found = self.page.evaluate(_AXE)
            assert not found, f"{self.page.url} ({scheme}): {found}"
        self.page.emulate_media(color_scheme=self._scheme)
        self._coverage.checked.add(kind_of(self.page.url))
        assert not self.problems, f"{self.page.url}: {self.problems}"
        self._is_found_wanting = was_found_wanting

    def sign_in(self, key: str, *, path: str = "/dashboard") -> Page:
        """Come in by a key, to a page."""
        self.page.goto(path)
        self.page.get_by_label("Key", exact=True).fill(key)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url(lambda address: "/sign-in" not in address)
        return self.page

    def close(self) -> None:
        """Check the page that is open, close the window and say what went wrong."""
        try:
            if self._is_found_wanting:
                return
            if kind_of(self.page.url) in self._coverage.unchecked:
                self.check()
            assert not self.problems, str(self.problems)
            assert self.page.evaluate("window.canary === undefined"), "a script that somebody wrote was run"
        finally:
            self.context.close()


@cache
def _axe() -> str:
    return (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


def kind_of(address: str) -> str:
    """Return the path of an address with ids left out."""
    return _ID.sub("/*", urlsplit(address).path)
