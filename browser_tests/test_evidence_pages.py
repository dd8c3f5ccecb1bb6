"""What the base has, in the browser: sources and their freshness, documents, versions and what differs after an ingest."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harbour import document, sent
from playwright.sync_api import expect

if TYPE_CHECKING:
    from collections.abc import Callable

    from harbour import Harbour
    from watching import Watched


def test_sources_tell_their_state_and_their_freshness(window: Callable[..., Watched], keys: dict[str, str]) -> None:
    seen = window()
    page = seen.sign_in(keys["olga"])
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Evidence").click()
    row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=re.compile("handbook")))

    expect(row).to_contain_text("canonical")
    expect(row).to_contain_text("promised within 7d")
    seen.check()


def test_an_ingest_makes_a_version_whose_differences_are_shown(
    window: Callable[..., Watched], keys: dict[str, str], harbour: Harbour
) -> None:
    buoy = document("buoy.md", "The buoy", "The buoy is red and rings in fog.\n")
    sent(harbour.admin, "/v1/documents", {"documents": [buoy], "source": "notices"})
    sent(harbour.admin, "/v1/documents", {"documents": [{**buoy, "text": "The buoy is green and rings in fog.\n"}], "source": "notices"})
    seen = window()
    page = seen.sign_in(keys["olga"], path="/dashboard/evidence")
    page.get_by_role("navigation", name="Evidence").get_by_role("link", name="Versions").click()
    seen.check()
    page.get_by_role("link", name=re.compile("with the one before")).first.click()

    changed = page.get_by_role("region", name="Text changed")
    expect(changed.get_by_role("link", name="notices:buoy.md")).to_be_visible()
    seen.check()
    changed.get_by_role("link", name="notices:buoy.md").click()
    expect(page.get_by_role("region", name="Text of chunk 0")).to_contain_text("The buoy is green")
    seen.check()


def test_documents_are_those_that_one_may_see(window: Callable[..., Watched], keys: dict[str, str]) -> None:
    seen = window()
    page = seen.sign_in(keys["ben"], path="/dashboard/evidence/documents")

    expect(page.get_by_role("link", name="handbook:gate.md")).to_be_visible()
    expect(page.get_by_text("security:code.md")).to_have_count(0)
    seen.check()
