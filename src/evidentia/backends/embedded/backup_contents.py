"""What of a base goes into a backup besides records and logs, and what is left out and why."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evidentia.backends.embedded.backup_manifest import name_problem
from evidentia.backends.embedded.backup_sink import pieces
from evidentia.backends.embedded.database import DATABASE_NAME, SEGMENTS_NAME
from evidentia.backends.embedded.decision_log_file import DECISIONS_NAME
from evidentia.backends.embedded.receipts import RECEIPTS_NAME
from evidentia.backends.embedded.vector_file import VECTORS_NAME
from evidentia.backends.embedded.vector_graph import GRAPHS_NAME
from evidentia.backends.embedded.writer_lock import LOCK_NAME
from evidentia.contracts.backups import LeftOut
from evidentia.contracts.canonical import sha256_hex

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.backends.embedded.backup_sink import Sink
    from evidentia.contracts.settings import Settings

_TEMPORARY: Final = re.compile(r".+(-wal|-shm|-journal|\.new)")
_REBUILT: Final = "it is made again when it is needed"
_FOLDERS: Final = (SEGMENTS_NAME, VECTORS_NAME, RECEIPTS_NAME, DECISIONS_NAME)


def copy_synonyms(folder: Path, sink: Sink) -> list[LeftOut]:
    """Copy the synonyms that answers were made with; each is called after its hash, so one that is still being written is known."""
    left_out: list[LeftOut] = []
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        name, content = f"{folder.name}/{path.name}", path.read_bytes()
        if sha256_hex(content) == path.name:
            sink.add(name, [content])
        else:
            left_out.append(LeftOut(name=name, reason="it does not have the hash that it is called after"))
    return left_out


def copy_named(directory: Path, settings: Settings, sink: Sink) -> list[LeftOut]:
    """Copy the models and synonyms that settings name and that lie inside the base."""
    left_out: list[LeftOut] = []
    for named in _named_by(settings):
        place = Path(os.path.normpath(directory / named))
        if not place.is_relative_to(os.path.normpath(directory)):
            left_out.append(LeftOut(name=_shown(named), reason="evidentia.toml names it, and it lies outside the base"))
        elif place.exists():
            left_out += _copy_tree(place, sink, beneath=Path(os.path.normpath(directory)))
        else:
            left_out.append(LeftOut(name=_shown(named), reason="evidentia.toml names it, and it is not there"))
    return left_out


def copy_file(path: Path, sink: Sink) -> None:
    """Copy a file of the base as it is now; one that is not there needs no copy."""
    with suppress(FileNotFoundError), path.open("rb") as file:
        sink.add(path.name, pieces(file))


def left_behind(directory: Path, sink: Sink, *, rebuilt: Sequence[str]) -> list[LeftOut]:
    """Return what lies in a base and was not copied, apart from what SQLite and writers keep beside their files."""
    copied = {each.name.partition("/")[0] for each in sink.files}
    left_out: list[LeftOut] = []
    for path in sorted(directory.iterdir()):
        name = path.name
        if name in copied or name in (*_FOLDERS, DATABASE_NAME, LOCK_NAME) or _TEMPORARY.fullmatch(name):
            continue
        is_rebuilt = name in (*rebuilt, GRAPHS_NAME)
        left_out.append(LeftOut(name=_shown(name), reason=_REBUILT if is_rebuilt else "it is no part of a base"))
    return left_out


def _named_by(settings: Settings) -> list[str]:
    embedding = settings.embedding
    folders = (embedding.folder, embedding.query_folder) if embedding.encoder == "folder" else ()
    named = (settings.query.synonyms, settings.ranking.reranker, settings.ranking.merging_model, settings.server.jwt.keys, *folders)
    return list(dict.fromkeys(each for each in named if each))


def _copy_tree(place: Path, sink: Sink, *, beneath: Path) -> list[LeftOut]:
    left_out: list[LeftOut] = []
    present = {each.name for each in sink.files}
    for path in sorted(place.rglob("*")) if place.is_dir() else (place,):
        name = path.relative_to(beneath).as_posix()
        if name in present or not path.is_file():
            continue
        problem = name_problem(name)
        if problem:
            left_out.append(LeftOut(name=_shown(name), reason=f"its name cannot be kept: {problem}"))
            continue
        with path.open("rb") as file:
            sink.add(name, pieces(file))
    return left_out


def _shown(name: str) -> str:
    """Return a name that has a UTF-8 form."""
    return name.encode(errors="backslashreplace").decode()
