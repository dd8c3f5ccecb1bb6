"""Archives, such as office documents are, with a part of them changed."""

from __future__ import annotations

import io
import zipfile


def with_part(archive: bytes, name: str, content: bytes) -> bytes:
    """Return the archive with one part replaced or added."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            if entry.filename != name:
                new.writestr(entry.filename, old.read(entry))
        new.writestr(name, content)
    return stream.getvalue()
