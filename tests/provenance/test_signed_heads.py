"""Heads of the log are signed, keys vouch for each other, and a witness notices a history that was rewritten or taken back."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import stranger
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from evidentia import Base, connect
from evidentia.backends.embedded.records.head_signer import KEY_NAME
from evidentia.base.maintenance import restore
from evidentia.contracts.errors import BaseDamagedError, NotAllowedError, NotFoundError
from evidentia.contracts.ids import PrincipalId
from evidentia.contracts.provenance import SignedHead
from evidentia.provenance.signed_heads import head_faults, is_signed, verify_head
from evidentia.serving.cli import main
from soak import cases

if TYPE_CHECKING:
    from pathlib import Path

OWNER_ONLY = 0o600


@pytest.fixture
def base(tmp_path: Path) -> Base:
    """Return a base with two versions and a rotated key."""
    (tmp_path / "a.md").write_text("Keys rotate every 30 days.")
    opened = connect(tmp_path / "base", init=True)
    opened.ingest([tmp_path / "a.md"], source="pages", embed=False)
    opened.rotate_key()
    return opened


def checks(base: Base, *witnessed: SignedHead) -> list[str]:
    report = verify_head(base.signed_head(), witnessed=witnessed, earlier=base.signed_head, consistency=base.consistency)
    return [link.check for link in report.broken]


def parsed(signed: SignedHead) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(msgspec.json.encode(signed))
    return plain


def add(base: Base, text: str) -> None:
    file = base.path.parent / f"{len(text)}.md"
    file.write_text(text)
    base.ingest([file], source="pages", embed=False)


# --- keys ---


def test_a_new_base_has_a_key_that_only_its_owner_can_read(base: Base) -> None:
    assert OWNER_ONLY == (base.path / KEY_NAME).stat().st_mode & 0o777


def test_every_head_is_signed_by_the_key_in_force(base: Base) -> None:
    heads = [base.signed_head(sequence) for sequence in range(base.head().sequence + 1)]
    first, second = base.signed_head().keys

    assert [0, 2] == [first.sequence, second.sequence]
    assert [first.public_key] * 2 + [second.public_key] == [signed.head.public_key for signed in heads]
    assert [[]] * 3 == [list(head_faults(signed)) for signed in heads]
    assert [[]] * 3 == [stranger.head_problems(parsed(signed)) for signed in heads]
    assert base.verify().signed_by == second.public_key


def test_the_stranger_and_we_reject_every_changed_leaf_of_a_head(base: Base) -> None:
    plain = parsed(base.signed_head())
    missed = []
    for path in leaves(plain):
        other = changed(plain, path)
        if not stranger.head_problems(other):
            missed.append(("stranger", path))
        if not list(head_faults(msgspec.convert(other, SignedHead))):
            missed.append(("we", path))

    assert [] == missed


@settings(max_examples=cases(20, of=200), deadline=None)
@given(seed=st.binary(min_size=32, max_size=32), message=st.binary(max_size=80), flipped=st.integers(0, 64 * 8 - 1))
def test_the_stranger_reads_signatures_as_we_do(seed: bytes, message: bytes, flipped: int) -> None:
    private = Ed25519PrivateKey.from_private_bytes(seed)
    key, signature = private.public_key().public_bytes_raw().hex(), private.sign(message)
    wrong = bytearray(signature)
    wrong[flipped // 8] ^= 1 << flipped % 8

    assert stranger.is_signed(message, signature.hex(), key)
    assert is_signed(message, signature=signature.hex(), public_key=key)
    assert not stranger.is_signed(message, wrong.hex(), key)
    assert not is_signed(message, signature=wrong.hex(), public_key=key)
    assert not stranger.is_signed(message + b"x", signature.hex(), key)


def test_only_the_owner_rotates(base: Base) -> None:
    with connect(base.path, principal=stranger_principal()) as other, pytest.raises(NotAllowedError):
        other.rotate_key()


def test_a_rotation_that_was_killed_before_its_file_had_the_name_is_completed(base: Base) -> None:
    """The commit says which key is in force; the file that waits for its name holds it."""
    (base.path / KEY_NAME).rename(base.path / f"{KEY_NAME}.new")
    (base.path / KEY_NAME).write_text("the key before it")
    add(base, "another page")

    assert base.verify().ok
    assert not (base.path / f"{KEY_NAME}.new").exists()
    assert all(key.signature for key in base.signed_head().keys)


def test_a_rotation_that_was_killed_before_its_commit_leaves_the_key(base: Base) -> None:
    before = base.signed_head().keys
    private = (base.path / KEY_NAME).read_bytes()
    with connect(base.path.parent / "other", init=True) as other:
        shutil.copy(other.path / KEY_NAME, base.path / f"{KEY_NAME}.new")
    add(base, "another page")

    assert (before, private) == (base.signed_head().keys, (base.path / KEY_NAME).read_bytes())
    assert base.verify().ok


@pytest.mark.parametrize("content", [b"", b"no key", b"\xff" * 200])
def test_a_key_file_that_holds_no_key_is_named(base: Base, content: bytes) -> None:
    (base.path / KEY_NAME).write_bytes(content)

    with pytest.raises(BaseDamagedError, match="it holds no private key; put the right one back, or remove it"):
        add(base, "another page")
    assert base.verify().ok


def test_the_key_of_another_base_is_refused(base: Base) -> None:
    with connect(base.path.parent / "other", init=True) as other:
        shutil.copy(other.path / KEY_NAME, base.path / KEY_NAME)

    with pytest.raises(BaseDamagedError, match="it is not the key that this base signs with"):
        add(base, "another page")


def test_a_base_that_lost_its_key_goes_on_with_another_and_says_so(base: Base) -> None:
    witnessed = base.signed_head()
    (base.path / KEY_NAME).unlink()
    add(base, "another page")

    assert base.verify().ok
    assert "" == base.signed_head().keys[-1].signature
    assert ["key"] == checks(base, witnessed)


# --- backups ---


def test_a_backup_takes_the_private_key_along_never_and_old_heads_still_verify(base: Base, tmp_path: Path) -> None:
    report = base.backup(tmp_path / "copy")
    private = (base.path / KEY_NAME).read_bytes()
    restore(tmp_path / "copy", tmp_path / "restored")

    assert KEY_NAME in [each.name for each in report.left_out]
    assert not any(private in path.read_bytes() for path in (tmp_path / "copy").rglob("*") if path.is_file())
    with connect(tmp_path / "restored") as restored:
        assert restored.verify().ok
        assert base.signed_head() == restored.signed_head()
        assert [] == checks(restored, base.signed_head())
        (restored.path / KEY_NAME).write_bytes(private)
        add(restored, "another page")
        assert [] == checks(restored, base.signed_head())


# --- witness ---


def test_a_history_that_goes_on_is_accepted(base: Base) -> None:
    seen = [base.signed_head()]
    for text in ("one more", "and one more", "and yet another"):
        add(base, text)
        assert [] == checks(base, *seen)
        seen.append(base.signed_head())
    base.rotate_key()

    assert [] == checks(base, *seen)


def test_a_rolled_back_base_is_noticed(base: Base) -> None:
    shutil.copytree(base.path, base.path.parent / "before")
    add(base, "another page")

    with connect(base.path.parent / "before") as before:
        assert ["witness"] == checks(before, base.signed_head())


def test_a_forked_base_is_noticed(base: Base) -> None:
    """Both have the key and sign what they say; whoever saw the one does not take the other."""
    shutil.copytree(base.path, base.path.parent / "fork")
    with connect(base.path.parent / "fork") as fork:
        add(fork, "a page")
        add(fork, "another page")
        add(base, "yet another page")

        assert [] == list(head_faults(fork.signed_head()))
        assert ["witness"] == checks(fork, base.signed_head())


def test_another_base_is_noticed(base: Base) -> None:
    with connect(base.path.parent / "other", init=True) as other:
        assert ["witness"] == checks(other, base.signed_head())


def test_a_log_that_does_not_begin_with_the_witnessed_one_is_noticed(base: Base) -> None:
    witnessed = base.signed_head()
    add(base, "another page")
    forged = msgspec.structs.replace(base.consistency(witnessed.head.log_size), first_root=base.signed_head().head.log_root)
    report = verify_head(base.signed_head(), witnessed=[witnessed], earlier=base.signed_head, consistency=lambda _: forged)

    assert ["witness"] == [link.check for link in report.broken]


def test_the_command_keeps_a_witness_file_that_only_grows(base: Base, capsys: pytest.CaptureFixture[str]) -> None:
    file = base.path.parent / "witness.jsonl"
    command = ["--base", str(base.path), "verify", "--head", "--witness", str(file)]
    assert 0 == main(command) == main(command)
    first = file.read_bytes()
    add(base, "another page")
    assert 0 == main(command)
    second = file.read_bytes()
    shutil.copytree(base.path, base.path.parent / "kept")
    add(base, "yet another page")
    assert 0 == main(command)
    capsys.readouterr()

    assert 1 == first.count(b"\n")
    assert second.startswith(first)
    assert 1 == main(["--base", str(base.path.parent / "kept"), *command[2:]])
    assert "the base was rolled back" in capsys.readouterr().out
    assert 3 == file.read_bytes().count(b"\n")


@pytest.mark.parametrize("line", [b"{}", b"[1", b'{"head": 1}', b"\xff"])
def test_a_witness_file_with_something_else_in_it_is_refused(base: Base, line: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    file = base.path.parent / "witness.jsonl"
    file.write_bytes(line + b"\n")

    assert 2 == main(["--base", str(base.path), "verify", "--head", "--witness", str(file)])
    assert "cannot be verified" in capsys.readouterr().err
    assert line + b"\n" == file.read_bytes()


@pytest.mark.parametrize("arguments", [["--witness", "x"], ["--head", "pages:a.md"]])
def test_options_that_do_not_go_together_are_refused(base: Base, arguments: list[str]) -> None:
    assert 2 == main(["--base", str(base.path), "verify", *arguments])


def test_the_command_shows_and_rotates_the_key(base: Base, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["--base", str(base.path), "key", "--rotate"])
    printed = capsys.readouterr().out.splitlines()

    assert [f"{key.public_key}  since version {key.sequence}" for key in base.signed_head().keys] == printed
    assert 3 == len(printed)


# --- what the base keeps of it ---


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE signed_heads SET signature = zeroblob(64) WHERE sequence = 1",
        "UPDATE signed_heads SET head = CAST(replace(head, '\"sequence\":1', '\"sequence\":7') AS BLOB) WHERE sequence = 1",
        "DELETE FROM signed_heads WHERE sequence = 1",
        "INSERT INTO signed_heads SELECT 9, head, signature FROM signed_heads WHERE sequence = 1",
        "DELETE FROM signing_keys WHERE sequence = 2",
        "UPDATE version_secrets SET secret = zeroblob(32)",
        "INSERT INTO version_secrets VALUES (zeroblob(32))",
        "DELETE FROM version_secrets",
    ],
)
def test_what_is_stored_of_keys_and_heads_is_verified(base: Base, statement: str) -> None:
    with closing(sqlite3.connect(base.path / "evidentia.sqlite")) as database:
        assert 1 == database.execute(statement).rowcount
        database.commit()

    assert not base.verify().ok


def test_a_version_that_never_was_has_no_head(base: Base) -> None:
    with pytest.raises(NotFoundError):
        base.signed_head(99)


def stranger_principal() -> Any:
    from evidentia import Principal

    return Principal(principal_id=PrincipalId("somebody"))


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:  # Any: JSON as parsed
    if isinstance(value, dict | list):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        return [leaf for key, each in inner for leaf in leaves(each, (*path, key))]
    return [path]


def changed(plain: Any, path: tuple[Any, ...]) -> Any:
    if not path:
        return plain + 1 if isinstance(plain, int) else ("1" if plain[:1] != "1" else "2") + plain[1:]
    copied = plain.copy()
    copied[path[0]] = changed(plain[path[0]], path[1:])
    return copied
