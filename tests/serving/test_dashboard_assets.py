"""The files of the dashboard: those of others are unchanged and named with their licence, and nothing is inline anywhere."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

import pytest

from evidentia.serving.dashboard.static_files import FOLDER, address_of, assets
from evidentia.wiring.embedded import create
from serving.dashboard_doors import serving_dashboard

if TYPE_CHECKING:
    from pathlib import Path

TEMPLATES = FOLDER.parent / "templates"
NOTICE = (FOLDER / "NOTICE.txt").read_text(encoding="utf-8")
MAX_BYTES = 250_000


def _named() -> dict[str, str]:
    return dict(re.findall(r"^(\S+)\n  from .*\n  licence .*\n  sha256   ([0-9a-f]{64})$", NOTICE, re.MULTILINE))


def test_files_of_others_are_what_the_notice_says() -> None:
    found = {name: hashlib.sha256(asset.content).hexdigest() for name, asset in assets().items() if ".min." in name}

    assert _named() == found
    assert {"htmx.min.js", "hx-sse.min.js", "pico.min.css", "uplot.min.js", "uplot.min.css"} == set(found)


def test_everything_together_is_small() -> None:
    assert sum(len(asset.content) for asset in assets().values()) < MAX_BYTES


@pytest.mark.parametrize("path", sorted(TEMPLATES.rglob("*.html")), ids=lambda path: str(path.relative_to(TEMPLATES)))
def test_no_template_has_anything_inline_or_unescaped(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    assert not re.search(r"\|\s*safe\b|Markup|autoescape", text)
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|hx-on|javascript:|js:|hx-vals=.js", text, re.IGNORECASE)
    assert not re.search(r"<script(?! src=\"\{\{ asset\()", text)
    assert not re.search(r"(src|href|action)=\"(https?:)?//", text)


def test_no_script_of_ours_makes_code_or_markup_of_text() -> None:
    for name in sorted(name for name in assets() if name.endswith(".js") and ".min." not in name):
        text = assets()[name].content.decode()

        assert not re.search(r"\beval\b|new Function|innerHTML|outerHTML|insertAdjacentHTML|document\.write", text), name


def test_files_are_kept_by_browsers_and_change_their_address_with_their_content(tmp_path: Path) -> None:
    create(tmp_path / "base")
    with serving_dashboard(tmp_path / "base") as door:
        client = door.browser().client
        reply = client.get(address_of("dashboard.css"))
        gone = client.get("/dashboard/assets/000000000000/dashboard.css")
        notice = client.get("/dashboard/assets/000000000000/NOTICE.txt")
        outside = client.get("/dashboard/assets/000000000000/..%2Fdesk.py")

    assert 200 == reply.status_code
    assert "public, max-age=31536000, immutable" == reply.headers["cache-control"]
    assert "text/css; charset=utf-8" == reply.headers["content-type"]
    assert "nosniff" == reply.headers["x-content-type-options"]
    assert (404, 404, 404) == (gone.status_code, notice.status_code, outside.status_code if outside.status_code != 303 else 404)
