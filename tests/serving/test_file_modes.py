"""Who may read the files of a base: its owner alone, whatever the umask says, in copies and in what is restored as well."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

import evidentia
from evidentia.contracts.control import Role
from evidentia.wiring.embedded import restore
from serving.rest_planes import GOOD, SEED_BODY, recorded, serving, started
from serving.served_bases import asked, picture, sent_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(params=[0o000, 0o022])
def _umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def open_to_others(root: Path) -> dict[str, str]:
    """Return what others than the owner could read or write below a directory, and the directory itself."""
    found = {}
    for path in (root, *root.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        wanted = 0o700 if path.is_dir() else 0o600
        if mode & ~wanted and not path.is_socket():
            found[str(path.relative_to(root))] = oct(mode)
    return found


def filled(directory: Path) -> Path:
    """Make a base in which everything was done that makes a file."""
    base, documents = directory / "base", directory / "documents"
    documents.mkdir()
    (documents / "keys.md").write_text("# Keys\n\nSigning keys expire after 30 days.\n\n![a plan](plan.png)\n", encoding="utf-8")
    (documents / "plan.png").write_bytes(picture(3))
    (documents / "prices.csv").write_text("item,price\nbolt,4\nnut,7\n", encoding="utf-8")
    with evidentia.connect(base, init=True) as opened:
        opened.ingest([documents], source="docs")
        (documents / "keys.md").write_text("# Keys\n\nSigning keys expire after 90 days.\n", encoding="utf-8")
        opened.ingest([documents], source="docs")
        opened.add_source({"source_id": "other"}, lambda query: [{"content": f"keys and {query}"}])
        opened.retrieve("signing keys")
        opened.ask_tables("price of a bolt")
        opened.remember("a note")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVIDENTIA_SECRET_KEY", "a long text that nobody guesses")
        with serving(base, is_durable=True) as plane:
            plane.admin.post("/v1/policies", json={**SEED_BODY, "scope": {}})
            plane.admin.put("/v1/secrets/ONE", json={"value": "x"})
            plane.admin.post(
                "/v1/documents", json={"files": [sent_file("a.md", "# A\n\nsigning keys")], "documents": [{"id": "b", "text": "keys"}]}
            )
            asked(plane.holding(plane.token(Role.READER, name="r")), "signing keys")
            recorded(plane, started(plane), 1, GOOD)
            plane.admin.post("/v1/base/gc", json={})
            assert {} == open_to_others(base)  # with everything open: locks and the side files of databases are there too
    return base


@pytest.mark.usefixtures("_umask")
def test_a_base_its_copies_and_what_is_restored_are_for_their_owner_alone(tmp_path: Path) -> None:
    base = filled(tmp_path)
    with evidentia.connect(base) as opened:
        opened.backup(tmp_path / "copy")
        opened.backup(tmp_path / "copy.tar")
        assert {} == open_to_others(base)
    restored = [tmp_path / "again", tmp_path / "from-tar"]
    restore(tmp_path / "copy", restored[0])
    restored[1].mkdir()  # a directory that is there already, for everybody to read
    restore(tmp_path / "copy.tar", restored[1])
    with evidentia.connect(restored[0]) as opened:
        opened.retrieve("keys")

    assert 25 < len(list(base.rglob("*")))
    for root in (base, tmp_path / "copy", tmp_path / "copy.tar", *restored):
        assert {} == open_to_others(root), root


@pytest.mark.usefixtures("_umask")
def test_a_base_that_is_made_in_a_directory_of_everybodys_closes_it(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir(mode=0o755)
    evidentia.connect(tmp_path / "base", init=True).close()

    assert {} == open_to_others(tmp_path / "base")
