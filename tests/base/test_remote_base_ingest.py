"""Files that are sent to a served base become the documents that a local ingest makes of them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from evidentia import Base, connect
from evidentia.base.remote_ingest import prepare_sending
from evidentia.contracts.control import Role
from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.vocabulary import Classification
from serving.remote_worlds import PICTURE, RemoteWorld, remote_world, write_material

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evidentia.contracts.reports import IngestProgress, IngestReport

pytest.importorskip("starlette", reason="the extra `server` is not installed")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RemoteWorld]:
    with remote_world(tmp_path_factory.mktemp("remote")) as served:
        yield served


@pytest.fixture(scope="module")
def remote(world: RemoteWorld) -> Iterator[Base]:
    admin = world.holder("an admin", Role.ADMIN, clearance=Classification.RESTRICTED)
    with connect(world.url, token=admin.token) as base:
        yield base


def counts(report: IngestReport) -> dict[str, int]:
    return {name: getattr(report, name) for name in ("seen", "added", "changed", "unchanged", "access_changed", "removed", "chunks")}


def skips(report: IngestReport) -> list[tuple[str, str]]:
    return sorted((entry.path, entry.reason) for entry in report.skipped)


def texts(base: Base, source: str) -> dict[str, list[str]]:
    named = [name for name, _, _ in base.documents() if base.chunks(name)[0].source_id == source]
    return {name: [chunk.content for chunk in base.chunks(name)] for name in named}


def test_the_same_files_become_the_same_documents(world: RemoteWorld, remote: Base, tmp_path: Path) -> None:
    with connect(tmp_path / "local", init=True) as local:
        at_home = local.ingest([world.material], source="sent", tags=("a", "b"))
        from_afar = remote.ingest([world.material], source="sent", tags=("a", "b"))
        texts_at_home, texts_from_afar = texts(local, "sent"), texts(remote, "sent")
        layouts = [base.layout(next(name for name in texts_at_home if "plan" in name)) for base in (local, remote)]

    assert counts(at_home) == counts(from_afar)
    assert skips(at_home) == skips(from_afar)
    assert texts_at_home == texts_from_afar
    assert len(texts_at_home) > 4
    assert [1, 1] == [len(layout.images) for layout in layouts if layout]


def test_what_was_sent_before_is_unchanged(world: RemoteWorld, remote: Base) -> None:
    first = remote.ingest([world.material], source="again")
    second = remote.ingest([world.material], source="again")

    assert (first.added, 0) == (second.unchanged, second.added)
    assert first.corpus_version == second.corpus_version == remote.head().corpus_version


def test_a_file_that_is_named_brings_the_images_it_shows(remote: Base, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("# Page\n\n![A vault](pictures/vault.png)\n", encoding="utf-8")
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "vault.png").write_bytes(PICTURE)
    report = remote.ingest([tmp_path / "page.md"], source="named")
    (name,) = texts(remote, "named")
    layout = remote.layout(name)

    assert (1, 1, ()) == (report.seen, report.added, report.skipped)
    assert layout is not None
    assert [PICTURE] == [remote.image(image.image_hash)[1] for image in layout.images]


def test_progress_is_told_and_every_batch_is_durable_by_then(world: RemoteWorld, remote: Base) -> None:
    told: list[tuple[IngestProgress, bool]] = []
    main = threading.current_thread()
    report = remote.ingest(
        [world.material], source="told", on_progress=lambda each: told.append((each, threading.current_thread() is main))
    )

    assert told[-1][0].seen == report.seen
    assert told[-1][0].stored == report.added
    assert [] == [each for each, is_main in told if each.commit is None or is_main]


def test_nothing_that_can_be_sent_is_an_account_too(remote: Base, tmp_path: Path) -> None:
    (tmp_path / ".hidden.md").write_text("hidden")
    report = remote.ingest([tmp_path / ".hidden.md"], source="nothing")

    assert [(".hidden.md", "bad_name")] == skips(report)
    assert (1, 0, remote.head().sequence) == (report.seen, report.added, report.sequence)


@pytest.mark.parametrize(
    ("field", "options"),
    [("paths", {}), ("authority", {"authority": "holy"}), ("classification", {"classification": "x"}), ("source", {"source": "../x"})],
)
def test_what_is_wrong_is_said_before_anything_is_sent(remote: Base, tmp_path: Path, field: str, options: dict[str, str]) -> None:
    before = remote.head()
    (tmp_path / "x.md").write_text("x")
    with pytest.raises(InvalidFieldError, match=field):
        remote.ingest([tmp_path / ("x.md" if options else "none")], **options)  # type: ignore[arg-type]  # words by name

    assert before == remote.head()


# --- parcels ---


@pytest.mark.parametrize("parcel_bytes", [1, 60, 10_000_000])
def test_parcels_of_any_size_hold_every_file_once_and_images_beside_their_documents(tmp_path: Path, parcel_bytes: int) -> None:
    write_material(tmp_path / "material")
    sending = prepare_sending([tmp_path / "material"], parcel_bytes=parcel_bytes)
    parcels = list(sending.parcels)
    own = [file.path for parcel in parcels for file in parcel.files if file.path not in parcel.shown]
    (with_plan,) = [parcel for parcel in parcels if "guides/plan.md" in {file.path for file in parcel.files}]

    assert ["broken.pdf", "guides/keys.md", "guides/plan.md", "guides/vault.png", "notes.txt", "teams.csv"] == sorted(
        set(own) - {"more.jsonl"}
    )
    assert "guides/vault.png" in {file.path for file in with_plan.files}
    assert [("more.jsonl:2", "bad_line")] == [(entry.path, entry.reason) for entry in sending.skipped]
    lines = [line for parcel in parcels for file in parcel.files if file.path == "more.jsonl" for line in file.content.split(b"\n")]
    assert 2 == len(lines)


def test_a_line_that_repeats_an_id_stays_out_wherever_the_first_one_went(tmp_path: Path) -> None:
    lines = [b'{"_id": "a", "text": "one"}', b'{"_id": "b", "text": "two"}', b'{"_id": "a", "text": "three"}']
    (tmp_path / "corpus.jsonl").write_bytes(b"\n".join(lines))
    sending = prepare_sending([tmp_path / "corpus.jsonl"], parcel_bytes=1)
    sent = [parcel.files[0].content for parcel in sending.parcels]

    assert lines[:2] == sent
    assert [("corpus.jsonl:3", "duplicate_id")] == [(entry.path, entry.reason) for entry in sending.skipped]
