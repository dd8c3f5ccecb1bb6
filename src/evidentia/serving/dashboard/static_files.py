"""The files that pages refer to: read once, named with the beginning of their hash, and kept by browsers for as long as they like."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from starlette.responses import Response

from evidentia.serving.dashboard.http_headers import HEADERS
from evidentia.serving.operations.api_errors import NOT_FOUND

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

FOLDER: Final = Path(__file__).parent / "assets"
TYPES: Final = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
"""What is sent; other files in the folder are not."""
FOREVER: Final = "public, max-age=31536000, immutable"
_TAG_DIGITS: Final = 12


class Asset(NamedTuple):
    """One file."""

    content: bytes
    kind: str
    tag: str


@cache
def assets() -> Mapping[str, Asset]:
    """Return every file that is sent, by name."""
    found = {}
    for path in sorted(FOLDER.iterdir()):
        if path.suffix in TYPES:
            content = path.read_bytes()
            found[path.name] = Asset(content, TYPES[path.suffix], hashlib.sha256(content).hexdigest()[:_TAG_DIGITS])
    return found


def address_of(name: str) -> str:
    """Return where a file is fetched from; it changes when the file does."""
    return f"/dashboard/assets/{assets()[name].tag}/{name}"


async def send(request: Request) -> Response:
    """Send a file to anybody."""
    asset = assets().get(request.path_params["name"])
    if asset is None or asset.tag != request.path_params["tag"]:
        return Response(b"there is no such file", NOT_FOUND, headers=HEADERS, media_type="text/plain")
    return Response(asset.content, headers={**HEADERS, "cache-control": FOREVER, "content-type": asset.kind})
