"""A base that is served on a real socket, the same base opened in its directory, and tokens of several people."""

from __future__ import annotations

import csv
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import evidentia
from evidentia.contracts.control import Role, TokenFacts
from evidentia.contracts.vocabulary import Classification
from evidentia.serving.identity.callers import Grants
from evidentia.wiring.embedded import create
from serving.rest_planes import Served, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evidentia.contracts.access import Principal

AS_OF = "2031-01-01T00:00:00Z"
PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000028000000280800000000a995e7b10000004349444154789c636060e311929053d13230b371f2f00b894a48cb29aaa8"
    "6be99a306dcea215ebb6ec3a70eccca51bf79ebc62185538aa7054e1a8c25185a30a4957080052a5db5f68d6bd8d0000000049454e44ae426082"
)
"""A small picture."""


class Holder(NamedTuple):
    """Somebody with a token: what they show, and who they are to the base."""

    token: str
    principal: Principal


class RemoteWorld(NamedTuple):
    """A served base and where it is."""

    served: Served
    directory: Path
    material: Path

    @property
    def url(self) -> str:
        """Return where it is served."""
        return self.served.url

    def holder(self, name: str, *roles: Role, clearance: Classification = Classification.INTERNAL, is_delegate: bool = False) -> Holder:
        """Return a new token of the operator's tenant with its principal."""
        facts = TokenFacts(clearance=clearance, is_delegate=is_delegate)
        issued = self.served.control.tokens.issue(name=name, roles=roles, tenant="default", by="test", facts=facts)
        return Holder(issued.token, Grants().principal_of(issued.info))


def write_material(directory: Path) -> None:
    """Write files of several kinds: texts, a page with an image, a sheet, a corpus, and something nobody can read."""
    (directory / "guides").mkdir(parents=True)
    (directory / "guides" / "keys.md").write_text("# Keys\n\nKeys are rotated every ninety days by the security team.\n", encoding="utf-8")
    (directory / "guides" / "plan.md").write_text("# Plan\n\nThe plan of the vault.\n\n![The vault](vault.png)\n", encoding="utf-8")
    (directory / "guides" / "vault.png").write_bytes(PICTURE)
    (directory / "notes.txt").write_text("Backups of the vault are kept for seven years.\n", encoding="utf-8")
    with (directory / "teams.csv").open("w", encoding="utf-8", newline="") as sheet:
        csv.writer(sheet).writerows([["team", "people"], ["security", "7"], ["storage", "5"]])
    lines = [
        '{"_id": "r1", "title": "Audit", "text": "Auditors read every rotation of keys."}',
        "no record",
        '{"_id": "r2", "text": "Vaults burn."}',
    ]
    (directory / "more.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (directory / "broken.pdf").write_bytes(b"%PDF-1.4 and nothing more")


@contextmanager
def remote_world(directory: Path, *, settings: str = "") -> Iterator[RemoteWorld]:
    """Serve a base over some material that its owner has taken in; it has answered once, so that everything is open."""
    base, material = directory / "base", directory / "material"
    write_material(material)
    create(base)
    if settings:
        (base / "evidentia.toml").write_text(settings, encoding="utf-8")
    with evidentia.connect(base) as owner:
        owner.ingest([material], source="handbook", authority="canonical")
        owner.ingest([material / "notes.txt"], source="secrets", classification="restricted")
    with serving(base) as served:
        world = RemoteWorld(served, base, material)
        with evidentia.connect(served.url, token=world.holder("the first", Role.READER).token) as first:
            first.retrieve("is anything open?")
        yield world
