"""The registry of sources in an embedded base: every change is a commit, so old versions keep the sources they had."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.backends.embedded.database import open_for_reading, storage_errors
from evidentia.backends.embedded.source_history import decoded, stored_descriptors
from evidentia.contracts.documents import ChangeSet
from evidentia.contracts.errors import InvalidFieldError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from evidentia.backends.embedded.writer import EmbeddedWriter
    from evidentia.contracts.documents import CommitSummary
    from evidentia.contracts.ids import SourceId
    from evidentia.contracts.sources import SourceDescriptor

    Check = Callable[[SourceDescriptor | None, SourceDescriptor], None]


class EmbeddedRegistry:
    """Implements `SourceRegistry`. Thread safe; a change waits for the writer's lock.

    `check` is given the descriptor in force, if there is one, and the new one, while nobody else can write; what it raises
    refuses the change.
    """

    def __init__(self, directory: Path, *, open_writer: Callable[[], EmbeddedWriter], check: Check | None = None) -> None:
        self._directory = directory
        self._open_writer = open_writer
        self._check = check

    def descriptors(self) -> Mapping[SourceId, SourceDescriptor]:
        """Return every registered source, ordered by id."""
        with storage_errors(self._directory):
            database = open_for_reading(self._directory)
            try:
                database.execute("BEGIN")
                return decoded(stored_descriptors(database))
            finally:
                database.close()

    def register(self, descriptor: SourceDescriptor) -> CommitSummary:
        """Add a source or replace its descriptor; one whose documents are in the base stays the base's own."""
        writer = self._open_writer()
        try:
            if self._check is not None:
                self._check(writer.descriptors().get(descriptor.source_id), descriptor)
            if not descriptor.is_own and writer.live_documents(descriptor.source_id):
                raise InvalidFieldError(
                    "connection.kind",
                    f"source '{descriptor.source_id}' has documents in the base, so its kind stays 'own'; "
                    f"remove them first, or register '{descriptor.connection.kind}' under another name",
                )
            writer.register(descriptor)
            return writer.commit(ChangeSet())
        finally:
            writer.close()

    def remove(self, source_id: SourceId) -> CommitSummary:
        """Forget a source; one that has documents is refused."""
        writer = self._open_writer()
        try:
            writer.remove_source(source_id)
            return writer.commit(ChangeSet())
        finally:
            writer.close()
