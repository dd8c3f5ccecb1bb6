"""What runs are called in the log: the log is everybody's, so the tenant is part of the name.

A client's own name holds no `~`, so nobody can begin a run in the place of another tenant's. Processes that write to the log without
the plane name their runs as they like; those are found by that name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from evidentia.contracts.control import NAME_PATTERN
from evidentia.contracts.errors import NotFoundError
from evidentia.contracts.runs import RunId
from evidentia.governance.log_marks import tenants_of
from evidentia.serving.operations.api_errors import bad_field

if TYPE_CHECKING:
    from evidentia.governance.kept_logs import KeptLogs

MARK: Final = "~"


def new_run(name: str, *, tenant: str) -> RunId:
    """Return what a run that begins is called in the log; a name that is none is refused."""
    if not re.fullmatch(NAME_PATTERN, name):
        raise bad_field("facts.run_id", "use at most 128 letters, digits and . _ : -, beginning with a letter or digit")
    return logged_run(name, tenant=tenant)


def logged_run(name: str, *, tenant: str) -> RunId:
    """Return what a run of the plane is called in the log, by that name or by the client's own; one of another tenant is not there."""
    owner, mark, _ = name.partition(MARK)
    if mark and owner != tenant:
        raise NotFoundError("run", name)
    return RunId(name if mark else f"{tenant}{MARK}{name}")


def find_run(log: KeptLogs, name: str, *, tenant: str) -> RunId:
    """Return what a run is called in the log, of the plane or of a process beside it; only one that is wholly the tenant's is there."""
    candidates = (logged_run(name, tenant=tenant), RunId(name))
    owners = tenants_of(log, candidates)
    found = next((candidate for candidate in candidates if owners.get(candidate) == {tenant}), None)
    if found is None:
        raise NotFoundError("run", name)
    return found
