"""Documents over HTTP: taken in once, kept within their tenant, and never outside their source."""

from __future__ import annotations

import asyncio
import fcntl
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import TYPE_CHECKING, Any

import httpx2
import msgspec
import pytest

import evidentia
from evidentia.contracts.access import Principal, local_owner
from evidentia.contracts.control import Role
from evidentia.contracts.doors import IngestRequest, SentDocument
from evidentia.contracts.errors import BaseBusyError
from evidentia.contracts.ids import TenantId
from evidentia.contracts.operations import MAX_SENT_BYTES
from evidentia.serving.operations.document_endpoints import source_of, take_in
from evidentia.serving.operations.served_base import ServedBase
from evidentia.wiring.embedded import INBOX_NAME
from evidentia.wiring.settings_file import SETTINGS_NAME
from serving.rest_planes import Served, serving
from serving.served_bases import PLAIN, TENANTS, A, B, asked, cleared, made, sent_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAMES = count(1)
DOCUMENTS = "/v1/documents"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(made(tmp_path_factory.mktemp("served"))) as served:
        yield served


@pytest.fixture
def plane(shared: Served) -> Served:
    """Return the plane as a tenant of its own sees it."""
    return shared.within(f"sender-{next(NAMES)}")


def ingested(plane: Served, **body: Any) -> dict[str, Any]:
    reply = plane.admin.post(DOCUMENTS, json=body)
    assert 200 == reply.status_code, reply.text
    return dict(reply.json())


def listed(plane: Served) -> list[str]:
    owner = cleared(plane, "restricted", groups=("oncall",))
    return [each["document_id"].partition(":")[2] for each in owner.get(DOCUMENTS, params={"limit": 500}).json()["documents"]]


def counted(report: dict[str, Any]) -> tuple[int, int, int, int]:
    return report["added"], report["changed"], report["unchanged"], len(report["skipped"])


# --- what is taken in ---


def test_what_is_unchanged_is_skipped_and_what_changed_is_the_next_version(plane: Served) -> None:
    files = [sent_file("guides/setup.md", "# Setup\n\nTurn the crank."), sent_file("notes.txt", "The crank is red.")]
    documents = [{"id": "faq", "text": "Cranks are oiled weekly.", "title": "FAQ", "metadata": {"b": "2", "a": "1"}}]
    first = ingested(plane, files=files, documents=documents)
    again = ingested(plane, files=files[::-1], documents=[{**documents[0], "metadata": {"a": "1", "b": "2"}}])
    changed = ingested(plane, files=[sent_file("notes.txt", "The crank is blue.")], documents=documents)

    assert [(3, 0, 0, 0), (0, 0, 3, 0), (0, 1, 1, 0)] == [counted(each) for each in (first, again, changed)]
    assert ["faq", "guides/setup.md", "notes.txt"] == listed(plane)
    assert "blue" in asked(plane.reader, "colour of the crank: red or blue")["fragments"][0]["content"] + "".join(
        each["content"] for each in asked(plane.reader, "crank blue")["fragments"]
    )


def test_no_place_on_the_server_is_told_and_nothing_is_left_there(plane: Served) -> None:
    report = ingested(plane, files=[sent_file("a.md", "An apple."), sent_file("b.bin", b"\0\1\2")], documents=[{"id": "x", "text": ""}])
    answer = asked(plane.reader, "apple", explain=True)
    told = json.dumps([report, answer, plane.admin.get("/v1/audit").json(), plane.admin.get(DOCUMENTS).json()])
    base = plane.control.directory

    assert str(base) not in told
    assert INBOX_NAME not in told
    assert {f"{plane.tenant}.lock", "staged"} <= {each.name for each in (base / INBOX_NAME).iterdir()}
    assert [] == list((base / INBOX_NAME / "staged").iterdir())
    assert ["documents[0]"] == [each["path"] for each in report["skipped"] if "documents" in each["path"]]


def test_documents_come_in_as_their_tenants_and_claim_no_more_than_they_are_given(plane: Served) -> None:
    metadata = {"tenant": "default", "classification": "public", "authority": "canonical"}
    ingested(plane, documents=[{"id": "sly", "text": "A sly text.", "metadata": metadata}], classification="confidential")
    [entry] = cleared(plane, "confidential").get(DOCUMENTS).json()["documents"]

    assert {"tenant": plane.tenant, "classification": "confidential", "acl": []} == entry["access"]
    assert [] == cleared(plane, "internal").get(DOCUMENTS).json()["documents"]
    assert not any("sly" in each for each in shared_documents(plane))


def shared_documents(plane: Served) -> list[str]:
    """Return what a reader of the operator's tenant sees."""
    operator = plane.within("default")
    return [each["document_id"] for each in cleared(operator, "restricted").get(DOCUMENTS, params={"limit": 500}).json()["documents"]]


def test_access_is_what_the_request_says(plane: Served) -> None:
    ingested(plane, documents=[{"id": "a", "text": "For the night shift."}], classification="confidential", acl=["group:oncall"])

    assert [] == cleared(plane, "confidential").get(DOCUMENTS).json()["documents"]
    assert [] == cleared(plane, "internal", groups=("oncall",)).get(DOCUMENTS).json()["documents"]
    [entry] = cleared(plane, "confidential", groups=("oncall",)).get(DOCUMENTS).json()["documents"]
    assert {"tenant": plane.tenant, "classification": "confidential", "acl": ["group:oncall"]} == entry["access"]


def test_two_tenants_with_the_same_names_have_two_documents(shared: Served) -> None:
    first, second = shared.within("twin-a"), shared.within("twin_a")
    for plane, word in ((first, "lemon"), (second, "melon")):
        ingested(plane, documents=[{"id": "fruit", "text": f"The {word} is ripe."}], files=[sent_file("f.md", word)], source="docs")

    for plane, word in ((first, "lemon"), (second, "melon")):
        assert ["f.md", "fruit"] == listed(plane)
        assert all(word in each["content"] for each in asked(plane.reader, "lemon melon ripe")["fragments"])


def test_sources_of_tenants_are_never_called_the_same() -> None:
    tenants = ["a", "a_", "_a", "a:", "a:b", "a_b", "a__b", "a_cb", "a_ub", "a.b", "a-b", "default", "default_", "b"]
    names = {source_of(name, tenant=tenant) for tenant in tenants for name in ("docs", "b__docs", "cb__docs", "b")}

    assert len(tenants) * 4 == len(names)


@pytest.mark.parametrize("source", ["", ".x", "_acme__docs", "a/b", "..", "a~b", "x" * 101, "docs\n", "a b", "a:b", "ä"])
def test_a_source_that_cannot_be_is_refused(plane: Served, source: str) -> None:
    reply = plane.admin.post(DOCUMENTS, json={"documents": [{"id": "a", "text": "b"}], "source": source})

    assert 422 == reply.status_code
    assert "source" in reply.json()["error"]["message"]


# --- what is refused ---

BAD_PATHS = [
    "../x", "a/../../x", "a/..", "..", ".", "/x", "//x", "/", "a//b", "a/", "./a", "a/./b", "a\\..\\b", "..\\x", "C:\\x", ".hidden",
    "a/.git/config",
    "a\0b", "a\nb", "a\u202eb", "\x7f", "x" * 256, "ä" * 200, "/".join("d" * 200 for _ in range(6)), " \t", "a/\u200b\u2028",
]  # fmt: skip


@pytest.mark.parametrize("path", BAD_PATHS)
def test_a_path_that_leads_elsewhere_is_refused_and_nothing_is_written(plane: Served, path: str) -> None:
    reply = plane.admin.post(DOCUMENTS, json={"files": [sent_file("good.md", "good"), sent_file(path, "bad")]})

    assert 422 == reply.status_code, reply.text
    assert "files[1].path" in reply.json()["error"]["message"] or "files[...].path" in reply.json()["error"]["message"]
    assert [] == listed(plane)
    assert [] == list(
        (plane.control.directory / INBOX_NAME / "staged").glob("*") if (plane.control.directory / INBOX_NAME).exists() else []
    )


SETS = [["a.md", "a.md"], ["a", "a/b.md"], ["a/b/c.md", "a/b"], ["x/y.md", "z.md", "x/y.md/z.md"]]


@pytest.mark.parametrize("paths", SETS)
def test_paths_that_cannot_be_together_are_refused(plane: Served, paths: list[str]) -> None:
    reply = plane.admin.post(DOCUMENTS, json={"files": [sent_file(each, each) for each in paths]})

    assert 422 == reply.status_code
    assert "files[" in reply.json()["error"]["message"]
    assert [] == listed(plane)


def test_names_that_differ_in_case_are_two_documents_where_the_disk_can_tell_them_apart(plane: Served) -> None:
    report = ingested(plane, files=[sent_file("A.md", "upper"), sent_file("a.md", "lower")])

    assert (2, 0, 0, 0) == counted(report)


@pytest.mark.parametrize("content", ["!", "YQ", "YQ=", "Y Q==", "ä", 3, None, "YQ==YQ=="])
def test_content_that_is_not_base64_is_refused(plane: Served, content: Any) -> None:
    reply = plane.admin.post(DOCUMENTS, json={"files": [{"path": "a.md", "content": content}]})

    assert 422 == reply.status_code, reply.text
    assert "files" in reply.json()["error"]["message"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"documents": [], "files": []},
        {"documents": [{"id": str(each)} for each in range(10_001)]},
        {"documents": [{"id": "a", "text": "b"}], "acl": ["everybody"]},
        {"documents": [{"id": "a", "text": "b"}], "tags": [""]},
        {"documents": [{"id": "a", "text": "b"}], "tenant": "default"},
        {"documents": [{"id": "a", "text": "b", "tenant": "default"}]},
        {"documents": [{"id": "a", "text": "b"}], "prune": True},
        {"documents": [{"id": "a", "text": "b", "metadata": {"x": 3}}]},
        {"documents": [{"text": "b"}]},
        {"documents": {"id": "a"}},
    ],
)
def test_a_body_that_cannot_be_right_is_refused(plane: Served, body: dict[str, Any]) -> None:
    assert 422 == plane.admin.post(DOCUMENTS, json=body).status_code
    assert [] == listed(plane)


def test_what_cannot_be_read_is_reported_by_its_place(plane: Served) -> None:
    documents = [
        {"id": "a", "text": "fine"},
        {"id": "b"},
        {"id": "\u0007", "text": "x"},
        {"id": "a", "text": "other"},
        {"id": "a", "text": "fine"},
    ]
    report = ingested(plane, documents=documents, files=[sent_file("broken.pdf", b"%PDF-1.4 no"), sent_file("a.txt", "ok")])
    told = {each["path"]: each["message"] for each in report["skipped"]}

    assert 2 == report["added"]
    assert {"documents[1]", "documents[2]", "documents[3]", "broken.pdf"} == set(told)
    assert told["documents[1]"].startswith("documents[1] ")


def test_a_document_and_a_file_of_one_name_are_told_apart_or_reported(plane: Served) -> None:
    report = ingested(plane, documents=[{"id": "a.md", "text": "as a text"}], files=[sent_file("a.md", "as a file")])

    assert (1, ["documents[0]"]) == (report["added"], [each["path"] for each in report["skipped"]])


def test_a_corpus_may_be_sent_as_a_file(plane: Served) -> None:
    lines = b'{"_id": "one", "text": "uno"}\n{"_id": "two", "text": "dos"}\n'
    ingested(plane, files=[sent_file("documents.jsonl", lines)], documents=[{"id": "three", "text": "tres"}])

    assert ["one", "three", "two"] == listed(plane)


def test_a_huge_body_is_refused_while_it_is_read(plane: Served) -> None:
    def endless() -> Iterator[bytes]:
        yield b'{"files": [{"path": "a.md", "content": "'
        for _ in range(MAX_SENT_BYTES // (1 << 20) + 1):
            yield b"A" * (1 << 20)

    reply = plane.admin.post(DOCUMENTS, content=endless(), headers={"content-type": "application/json"})

    assert (413, "body_too_large") == (reply.status_code, reply.json()["error"]["code"])


def test_a_document_that_a_directory_of_the_server_still_has_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("From the machine.", encoding="utf-8")
    with evidentia.connect(tmp_path / "base", init=True) as base:
        base.ingest([tmp_path / "docs"], embed=False)
    (tmp_path / "base" / SETTINGS_NAME).write_text(PLAIN, encoding="utf-8")
    with serving(tmp_path / "base") as plane:
        reply = plane.admin.post(DOCUMENTS, json={"files": [sent_file("a.md", "From afar.")]})

    assert (409, "document_elsewhere") == (reply.status_code, reply.json()["error"]["code"])
    assert str(tmp_path) not in reply.text


# --- one at a time, off the loop, and after a crash ---


def test_what_comes_at_once_is_taken_in_one_after_the_other(plane: Served) -> None:
    def send(number: int) -> int:
        with httpx2.Client(base_url=plane.url, headers=plane.admin.headers, timeout=60, trust_env=False) as client:
            body = {"documents": [{"id": f"d{number}", "text": f"Number {number}."}], "files": [sent_file("same.md", str(number))]}
            return client.post(DOCUMENTS, json=body).status_code

    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(send, range(8)))

    assert [200] * 8 == statuses
    assert [f"d{number}" for number in range(8)] + ["same.md"] == listed(plane)


def test_while_one_waits_for_its_turn_others_are_answered(shared: Served) -> None:
    plane = shared.within("patient")
    inbox = plane.control.directory / INBOX_NAME
    ingested(plane, documents=[{"id": "first", "text": "one"}])
    done = threading.Event()
    with (inbox / "patient.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        def send() -> None:
            ingested(plane, documents=[{"id": "second", "text": "two"}])
            done.set()

        waiting = threading.Thread(target=send)
        waiting.start()
        answers = [plane.reader.get("/v1/health").status_code for _ in range(50)]
        assert not done.is_set()
    waiting.join()

    assert [200] * 50 == answers
    assert ["first", "second"] == listed(plane)


def office_of(tmp_path: Path, settings: str = PLAIN) -> ServedBase:
    with evidentia.connect(tmp_path / "base", init=True):
        pass
    (tmp_path / "base" / SETTINGS_NAME).write_text(settings, encoding="utf-8")
    return ServedBase.open(tmp_path / "base")


def owner_in(tenant: str) -> Principal:
    return msgspec.structs.replace(local_owner(), tenant=TenantId(tenant))


def request_of(*words: str) -> IngestRequest:
    return IngestRequest(documents=tuple(SentDocument(id=word, text=word) for word in words))


def test_who_waits_too_long_is_told_to_come_back(tmp_path: Path) -> None:
    async def late() -> None:
        served_base = office_of(tmp_path, PLAIN + "[storage]\nwriter_wait_ms = 60\n")
        await take_in(served_base, request_of("a"), principal=owner_in("default"))
        with (served_base.directory / INBOX_NAME / "default.lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with pytest.raises(BaseBusyError) as told:
                await take_in(served_base, request_of("b"), principal=owner_in("default"))
            assert str(tmp_path) not in str(told.value)
        assert 1 == (await take_in(served_base, request_of("b"), principal=owner_in("default"))).added
        await served_base.close()

    asyncio.run(late())


def test_tenants_do_not_wait_for_each_other(tmp_path: Path) -> None:
    async def beside() -> int:
        served_base = office_of(tmp_path, PLAIN + "[storage]\nwriter_wait_ms = 60\n")
        await take_in(served_base, request_of("a"), principal=owner_in("slow"))
        with (served_base.directory / INBOX_NAME / "slow.lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            added = (await take_in(served_base, request_of("a"), principal=owner_in("quick"))).added
        await served_base.close()
        return added

    assert 1 == asyncio.run(beside())


def test_no_more_tenants_read_at_a_time_than_there_are_places_and_each_gives_its_place_back(tmp_path: Path) -> None:
    async def full() -> int:
        served_base = office_of(tmp_path, PLAIN + "[storage]\nwriter_wait_ms = 60\n[limits]\ningests = 2\n")
        for _ in range(5):
            await take_in(served_base, request_of("a"), principal=owner_in("one"))
        with served_base.ingest_places, served_base.ingest_places, pytest.raises(BaseBusyError):
            await take_in(served_base, request_of("b"), principal=owner_in("one"))
        added = (await take_in(served_base, request_of("b"), principal=owner_in("one"))).added
        await served_base.close()
        return added

    assert 1 == asyncio.run(full())


def test_who_is_cancelled_leaves_the_lock_to_the_work_that_goes_on(tmp_path: Path) -> None:
    async def cancelled() -> list[str]:
        served_base = office_of(tmp_path)
        first = asyncio.create_task(take_in(served_base, request_of("a"), principal=owner_in("default")))
        await asyncio.sleep(0.01)  # wherever it is by then, nothing may be mixed up
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await take_in(served_base, request_of("b"), principal=owner_in("default"))
        live = await served_base.base_for(local_owner(), None).documents()
        await served_base.close()
        return [name for name, _, _ in live]

    assert ["documents:a", "documents:b"] == asyncio.run(cancelled())


def test_what_a_crash_left_behind_is_cleared_and_never_taken_in(tmp_path: Path) -> None:
    async def after() -> tuple[list[str], list[str]]:
        served_base = office_of(tmp_path)
        left = served_base.directory / INBOX_NAME / "staged" / "documents" / "files"
        left.mkdir(parents=True)
        (left / "left.md").write_text("left behind", encoding="utf-8")
        (tmp_path / "outside").mkdir()
        (tmp_path / "outside" / "secret.md").write_text("secret", encoding="utf-8")
        (left / "planted").symlink_to(tmp_path / "outside", target_is_directory=True)
        await take_in(served_base, request_of("a"), principal=owner_in("default"))
        live = await served_base.base_for(local_owner(), None).documents()
        await served_base.close()
        return [name for name, _, _ in live], [each.name for each in (served_base.directory / INBOX_NAME / "staged").iterdir()]

    assert (["documents:a"], []) == asyncio.run(after())
    assert "secret" == (tmp_path / "outside" / "secret.md").read_text(encoding="utf-8")


def test_a_stage_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    async def linked() -> None:
        served_base = office_of(tmp_path)
        (tmp_path / "outside").mkdir()
        (served_base.directory / INBOX_NAME).mkdir()
        (served_base.directory / INBOX_NAME / "staged").symlink_to(tmp_path / "outside", target_is_directory=True)
        (tmp_path / "outside" / "kept").mkdir()
        await take_in(served_base, request_of("a"), principal=owner_in("default"))
        await served_base.close()

    asyncio.run(linked())
    assert ["kept"] == [each.name for each in (tmp_path / "outside").iterdir()]


# --- taking out, and who may see ---


@pytest.mark.parametrize("path", ["/v1/documents/remove", "/v1/documents/access"])
def test_another_tenants_document_is_not_there(shared: Served, path: str) -> None:
    for tenant, other in (TENANTS, TENANTS[::-1], ("default", A)):
        admin = shared.within(tenant).admin
        name, missing = f"{source_of('shelf', tenant=other)}:public.md", f"{source_of('shelf', tenant=other)}:publix.md"
        theirs = admin.post(path, json={"document_ids": [name]})
        nothing = admin.post(path, json={"document_ids": [missing]})
        assert (404, 404) == (theirs.status_code, nothing.status_code)
        assert theirs.text.replace(name, "") == nothing.text.replace(missing, "")
        assert name in [each["document_id"] for each in cleared(shared.within(other), "public").get(DOCUMENTS).json()["documents"]]


def test_all_or_none_are_taken_out(plane: Served) -> None:
    ingested(plane, documents=[{"id": each, "text": each} for each in "abc"])
    prefix = source_of("documents", tenant=plane.tenant)
    wrong = plane.admin.post("/v1/documents/remove", json={"document_ids": [f"{prefix}:a", f"{source_of('shelf', tenant=B)}:public.md"]})
    before = listed(plane)
    right = plane.admin.post("/v1/documents/remove", json={"document_ids": [f"{prefix}:a", f"{prefix}:b", f"{prefix}:a"]})

    assert (404, ["a", "b", "c"]) == (wrong.status_code, before)
    assert (200, 2) == (right.status_code, right.json()["removed"])
    assert ["c"] == listed(plane)
    assert 404 == plane.admin.post("/v1/documents/remove", json={"document_ids": [f"{prefix}:a"]}).status_code


def test_access_changes_at_once_and_within_the_tenant(plane: Served) -> None:
    ingested(plane, documents=[{"id": "a", "text": "A text for some."}])
    name = f"{source_of('documents', tenant=plane.tenant)}:a"
    before = [each["document_id"] for each in asked(plane.reader, "text for some")["fragments"]]
    reply = plane.admin.post(
        "/v1/documents/access", json={"document_ids": [name], "classification": "restricted", "acl": ["user:x", "user:x"]}
    )
    after = [each["document_id"] for each in asked(plane.reader, "text for some")["fragments"]]
    spoof = plane.admin.post("/v1/documents/access", json={"document_ids": [name], "tenant": B})

    assert ([name], 200, []) == (before, reply.status_code, after)
    assert 422 == spoof.status_code
    assert 422 == plane.admin.post("/v1/documents/access", json={"document_ids": [name], "acl": ["all"]}).status_code


def test_chunks_are_for_who_may_see_the_document(shared: Served) -> None:
    name = f"{source_of('shelf', tenant=A)}:confidential.md"
    may, may_not = (
        cleared(shared.within(A), "confidential"),
        [cleared(shared.within(A), "internal"), cleared(shared.within(B), "restricted")],
    )

    assert 1 == len(may.get("/v1/chunks", params={"document": name}).json()["chunks"])
    assert [404, 404] == [each.get("/v1/chunks", params={"document": name}).status_code for each in may_not]
    assert 422 == may.get("/v1/chunks").status_code


def test_documents_are_paged_in_order(plane: Served) -> None:
    ingested(plane, documents=[{"id": f"d{each:02}", "text": "x"} for each in range(25)])
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = plane.reader.get(DOCUMENTS, params={"limit": 10, **({"cursor": cursor} if cursor else {})}).json()
        found += [each["document_id"].partition(":")[2] for each in page["documents"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break

    assert [f"d{each:02}" for each in range(25)] == found
    assert 422 == plane.reader.get(DOCUMENTS, params={"cursor": "x"}).status_code


# --- the audit ---


def test_what_admins_do_stands_in_the_audit(tmp_path: Path) -> None:
    with evidentia.connect(tmp_path / "base", init=True):
        pass
    with serving(tmp_path / "base") as plane:
        admin, name = plane.admin, "documents:a"
        source = {"source_id": "notes", "connection": {"kind": "memory"}}
        acts: list[tuple[str, str, dict[str, Any] | None]] = [
            ("POST", DOCUMENTS, {"documents": [{"id": "a", "text": "A secret text."}]}),
            ("POST", "/v1/documents/access", {"document_ids": [name], "classification": "public"}),
            ("POST", "/v1/documents/remove", {"document_ids": [name]}),
            ("POST", "/v1/sources", source),
            ("POST", "/v1/sources/notes/changed", None),
            ("DELETE", "/v1/sources/notes", None),
            ("POST", "/v1/cache/flush", {}),
            ("POST", "/v1/base/embed", None),
            ("POST", "/v1/base/gc", {"keep_versions": 1}),
        ]
        replies = [admin.request(method, path, json=body) for method, path, body in acts]
        refused = admin.post("/v1/documents/remove", json={"document_ids": ["documents:b"]}).status_code
        changes = [
            each for each in plane.client(Role.AUDITOR).get("/v1/audit").json()["changes"] if each["kind"] in {"document", "source", "base"}
        ]

    assert [200, 200, 200, 201, 200, 200, 200, 200, 200] == [each.status_code for each in replies], [each.text for each in replies]
    assert 404 == refused
    assert ["document"] * 3 + ["source"] * 3 + ["base"] * 3 == [each["kind"] for each in changes]
    assert all(each["by"].startswith("a admin (") for each in changes)
    assert "secret text" not in json.dumps(changes)
