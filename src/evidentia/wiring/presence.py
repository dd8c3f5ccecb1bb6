"""Whether there is a base in a directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidentia.backends.embedded.database import database_path
from evidentia.contracts.errors import BaseForbiddenError

if TYPE_CHECKING:
    from pathlib import Path


def has_base(directory: Path) -> bool:
    """Tell whether there is a base in this directory."""
    try:
        return database_path(directory).is_file()
    except PermissionError as error:
        raise BaseForbiddenError(str(directory)) from error
