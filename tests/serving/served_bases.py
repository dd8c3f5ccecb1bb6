"""A base with documents of two tenants, of every classification and behind an ACL, served on a real socket."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import TYPE_CHECKING, Any

import evidentia
from evidentia.contracts.control import Role, TokenFacts
from evidentia.contracts.vocabulary import Classification
from evidentia.serving.operations.document_endpoints import source_of
from evidentia.wiring.settings_file import SETTINGS_NAME

if TYPE_CHECKING:
    from pathlib import Path

    import httpx2

    from serving.rest_planes import Served

A, B = "acme", "globex"
TENANTS = (A, B)
PLAIN = '[embedding]\nencoder = "none"\n'
LEVELS = tuple(each.value for each in Classification)
TABLE = "item,price\nbolt,4\nnut,7\n"


def picture(shade: int) -> bytes:
    """Return a PNG of 64 by 64 points of one grey."""

    def part(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = zlib.compress(b"".join(b"\0" + bytes((shade + x) % 256 for x in range(64)) for _ in range(64)))
    head = struct.pack(">IIBBBBB", 64, 64, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", rows) + part(b"IEND", b"")


def made(directory: Path, *, settings: str = PLAIN) -> Path:
    """Make a base; what two tenants have in it is alike but for one word."""
    base = directory / "base"
    with evidentia.connect(base, init=True):
        pass
    (base / SETTINGS_NAME).write_text(settings, encoding="utf-8")
    with evidentia.connect(base) as opened:
        for tenant, word in ((A, "anvil"), (B, "beacon")):
            for level in LEVELS:
                folder = directory / tenant / level
                folder.mkdir(parents=True)
                text = f"# Keys\n\nThe {word} key of {level} matters expires after {len(level)} days.\n"
                (folder / f"{level}.md").write_text(text, encoding="utf-8")
                opened.ingest([folder], source=source_of("shelf", tenant=tenant), classification=level, tenant=tenant)
            folder = directory / tenant / "acl"
            folder.mkdir()
            (folder / "oncall.md").write_text(f"# Oncall\n\nThe {word} pager key is kept by the night shift.\n", encoding="utf-8")
            opened.ingest([folder], source=source_of("shelf", tenant=tenant), acl=["group:oncall"], tenant=tenant)
            folder = directory / tenant / "rich"
            folder.mkdir()
            (folder / "prices.csv").write_text(TABLE.replace("bolt", word), encoding="utf-8")
            (folder / "drawing.md").write_text(f"# Drawing\n\n![a {word} plan](plan.png)\n", encoding="utf-8")
            (folder / "plan.png").write_bytes(picture(len(tenant)))
            opened.ingest([folder], source=source_of("shelf", tenant=tenant), tenant=tenant)
    return base


def cleared(plane: Served, level: str, *, groups: tuple[str, ...] = (), is_delegate: bool = False, name: str = "reader") -> httpx2.Client:
    """Return a reader of the plane's tenant with a clearance."""
    facts = TokenFacts(clearance=Classification(level), groups=groups, is_delegate=is_delegate)
    return plane.holding(plane.token(Role.READER, name=name, facts=facts))


def asked(client: httpx2.Client, text: str, **fields: Any) -> dict[str, Any]:
    """Ask for evidence and return the answer."""
    reply = client.post("/v1/evidence", json={"query": {"text": text}, "latency_deadline_ms": 20_000, **fields})
    assert 200 == reply.status_code, reply.text
    return dict(reply.json())


def sent_file(path: str, content: bytes | str) -> dict[str, str]:
    """Return a file as it is sent."""
    return {"path": path, "content": base64.b64encode(content if isinstance(content, bytes) else content.encode()).decode()}
