"""The whole of an ingest in one function; each step is one call."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from evidentia.contracts.errors import DuplicateDocumentError
from evidentia.ingest.batches import Batches, IngestCounts, OnProgress
from evidentia.ingest.document_claims import check_options, check_settings
from evidentia.ingest.file_ingest import FileIngest
from evidentia.ingest.jsonl_corpus import RecordIngest
from evidentia.ingest.reader_pool import UNTIMED, ReaderPool, ReadingTime
from evidentia.ingest.readers.file_types import Family, family_of
from evidentia.ingest.reasons import NoteReason, legible
from evidentia.ingest.recipe import Recipe
from evidentia.ingest.version_control import RootHistory, read_history
from evidentia.ingest.walk import Walk, WalkedFile, is_file, walk_paths

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evidentia.contracts.documents import IngestOptions, KnownDocument
    from evidentia.contracts.ids import DocumentId, SourceId
    from evidentia.contracts.ports import Clock, EvidenceWriter
    from evidentia.contracts.reports import IngestReport
    from evidentia.contracts.settings import IngestSettings


IDS_PER_QUESTION = 1_000
MAX_NAMES_FOR_GIT = 100


def ingest_paths(
    paths: Sequence[str | Path],
    *,
    options: IngestOptions,
    settings: IngestSettings,
    language: str,
    writer: EvidenceWriter,
    clock: Clock,
    on_progress: OnProgress | None = None,
    time: ReadingTime = UNTIMED,
) -> IngestReport:
    """Bring files, directories and corpora into a base, and account for everything that was seen.

    1. check the options  2. walk the paths  3. refuse ids that another root owns  4. ask version control
    5. bring in the files  6. bring in the records of corpora  7. commit the rest  8. prune  9. report

    Steps 1 to 3 raise before anything is committed; from then on a file that cannot be read is an entry in the report, and so is one
    that `time` leaves no room for.
    """
    options = check_options(options)
    check_settings(settings)
    walk = walk_paths(paths, ignore=settings.ignore)
    files, corpora = _divided(walk)
    recipe = Recipe(options, settings, language)
    tally = IngestCounts()
    moved = _refuse_foreign_ids(files, recipe, writer, tally)
    histories = _histories(files, walk, tally)
    for entry in walk.skipped:
        tally.skip(entry)
    batches = Batches(writer, settings, tally, total=None if corpora else len(files) + len(walk.skipped), on_progress=on_progress)
    records = RecordIngest(recipe, writer=writer, clock=clock, batches=batches, tally=tally, time=time)
    with ReaderPool(settings, time=time) as pool:
        FileIngest(recipe, writer=writer, clock=clock, batches=batches, tally=tally, pool=pool, time=time).ingest(files, histories)
    if corpora:
        records.reserve(file.own_id for file in files)
        records.ingest(corpora)
    batches.commit()
    if options.prune:
        _prune(walk, corpora, moved, options=options, writer=writer, records=records, batches=batches, tally=tally)
    return tally.report()


def _divided(walk: Walk) -> tuple[list[WalkedFile], list[WalkedFile]]:
    files: list[WalkedFile] = []
    corpora: list[WalkedFile] = []
    for file in walk.files:
        (corpora if family_of(file.own_id) is Family.CORPUS else files).append(file)
    return files, corpora


def _refuse_foreign_ids(files: Sequence[WalkedFile], recipe: Recipe, writer: EvidenceWriter, tally: IngestCounts) -> dict[str, str]:
    """Refuse an id that is live from another root which still has the file; return the roots that have moved, old to new."""
    moved: dict[str, str] = {}
    for start in range(0, len(files), IDS_PER_QUESTION):
        some = files[start : start + IDS_PER_QUESTION]
        known = writer.known([recipe.document_id(file.own_id) for file in some])
        for file in some:
            remembered = known.get(recipe.document_id(file.own_id))
            if remembered is None or remembered.root == file.root:
                continue
            if not remembered.root:
                tally.note(file.own_id, [f"{NoteReason.REPLACED_RECORD.value}: replaces a record of a corpus that had the same id"])
            elif is_file(remembered.root, file.own_id):
                raise DuplicateDocumentError(legible(file.own_id), first=legible(remembered.root), second=legible(file.root))
            elif not Path(remembered.root).exists():
                moved[remembered.root] = file.root
    return moved


def _histories(files: Sequence[WalkedFile], walk: Walk, tally: IngestCounts) -> dict[str, RootHistory]:
    histories: dict[str, RootHistory] = {}
    for root in sorted({file.root for file in files}):
        names = [Path(file.path).name for file in files if file.root == root] if root not in walk.roots else []
        histories[root] = read_history(root, names=names if 0 < len(names) <= MAX_NAMES_FOR_GIT else (".",))
        if histories[root].problem:
            tally.note(Path(root).name, [f"{NoteReason.VERSION_CONTROL.value}: has an unknown history: {histories[root].problem}"])
    return histories


def _prune(
    walk: Walk,
    corpora: Sequence[WalkedFile],
    moved: Mapping[str, str],
    *,
    options: IngestOptions,
    writer: EvidenceWriter,
    records: RecordIngest,
    batches: Batches,
    tally: IngestCounts,
) -> None:
    """Remove what is gone; records only when their corpora were given by name and every line of them could be read."""
    live = writer.live_documents(options.source)
    batches.remove(gone_files(live, source=options.source, walk=walk, moved=moved))
    if not corpora or not all(corpus.is_named for corpus in corpora):
        return
    if records.lines_skipped:
        reason = f"{NoteReason.NOT_PRUNED.value}: was not pruned, because {records.lines_skipped} lines could not be read"
        tally.note(corpora[0].own_id, [reason])
        return
    batches.remove(gone_records(live, source=options.source, has_seen=records.has_seen))


# --- pruning ---
# Which live documents are gone from where they came from; refuses to call gone what merely could not be looked at.


def gone_files(
    live: Mapping[DocumentId, KnownDocument], *, source: SourceId, walk: Walk, moved: Mapping[str, str]
) -> tuple[DocumentId, ...]:
    """Return the documents from the walked roots that the walk no longer found, sorted.

    Only directories that were given count: a file given by name says nothing about its neighbours. What lies below a directory
    that could not be listed stays. `moved` gives for a root that is gone the walked root its files were found in.
    """
    roots = frozenset(walk.roots)
    found = {(file.root, file.own_id) for file in walk.files}
    gone = []
    for document_id, document in live.items():
        own_id = own_id_of(document_id, source=source)
        root = moved.get(document.root, document.root)
        if root not in roots or (root, own_id) in found or _is_unwalked(root, own_id, walk):
            continue
        gone.append(document_id)
    return tuple(sorted(gone))


def gone_records(live: Mapping[DocumentId, KnownDocument], *, source: SourceId, has_seen: Callable[[str], bool]) -> tuple[DocumentId, ...]:
    """Return the documents from corpora whose id was not seen in this run, sorted."""
    return tuple(
        sorted(
            document_id
            for document_id, document in live.items()
            if not document.root and not has_seen(own_id_of(document_id, source=source))
        )
    )


def own_id_of(document_id: DocumentId, *, source: SourceId) -> str:
    """Return a document's own id within its source."""
    return document_id.removeprefix(f"{source}:")


def _is_unwalked(root: str, own_id: str, walk: Walk) -> bool:
    return any(root == there and (not prefix or own_id.startswith(f"{prefix}/")) for there, prefix in walk.unwalked)
