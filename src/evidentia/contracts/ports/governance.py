"""What governs agents' runs: policies, decisions, and the texts that citations name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from evidentia.contracts.judging import NO_TEXTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from evidentia.contracts.access import Principal
    from evidentia.contracts.decisions import LogEntry, LogHead, LogRecord, PolicyDecision, Verdict
    from evidentia.contracts.policies import Policy, PolicyBody, PolicyChange, PolicyId, StoredPolicy
    from evidentia.contracts.runs import AnyCall, RunEnded, RunFacts, RunId


class SourceTexts(Protocol):
    """Finds the text that a citation names."""

    def text_of(self, citation: str, *, principal: Principal) -> str | None:
        """Return the text; None when it is not at hand, or not for this principal: the two are not told apart."""
        ...


class PolicyStore(Protocol):
    """Keeps policies, every version they had, and who changed them."""

    def live(self, *, tenant: str) -> Sequence[StoredPolicy]:
        """Return the policies that were not removed, enabled or not, by priority and then name."""
        ...

    def find(self, name: str, *, tenant: str, version: int | None = None) -> StoredPolicy:
        """Return a policy by its id or name, the newest version by default, or raise NotFoundError."""
        ...

    def put(
        self, body: PolicyBody, *, tenant: str, by: str, policy_id: PolicyId | None = None, expected: int | None = None
    ) -> StoredPolicy:
        """Store a checked body as a new policy or as the next version of one; `expected` is the version that it replaces.

        Raises PolicyConflictError when another version is in force, or when a new policy's name is taken.
        """
        ...

    def remove(self, policy_id: PolicyId, *, tenant: str, by: str, expected: int | None = None) -> StoredPolicy:
        """Take a policy out of force; its versions stay readable."""
        ...

    def changes(self, *, tenant: str, after: int = 0, limit: int = 100) -> Sequence[PolicyChange]:
        """Return who changed what, oldest first."""
        ...


class DecisionAppender(Protocol):
    """Takes what runs recorded and what was decided, and seals it record by record. Thread safe."""

    def append(self, entries: Sequence[LogEntry]) -> None:
        """Take entries in order; in durable mode they are on disk when this returns, or it raises BaseStateError."""
        ...

    def append_now(self, entries: Sequence[LogEntry]) -> Sequence[LogRecord] | None:
        """Take entries, write all that was taken, and return their records; None where they are taken and cannot be written yet."""
        ...

    def flush(self) -> None:
        """Wait until everything taken so far is written."""
        ...


class DecisionLog(DecisionAppender, Protocol):
    """Keeps what it takes, and gives it back. Appending never blocks on reading."""

    def records(self, *, run_id: RunId | None = None, after: int = 0) -> Iterator[LogRecord]:
        """Yield records in order, of every process that wrote, those of this one included; each log's records come together."""
        ...

    def head(self) -> LogHead:
        """Return where this process's own log stands."""
        ...

    def close(self) -> None:
        """Write what is left and let go of the file."""
        ...


class GovernedRun(Protocol):
    """Decides about one run, call by call, and writes down what it decided. Thread safe."""

    @property
    def facts(self) -> RunFacts:
        """Return who runs."""
        ...

    def record(self, call: AnyCall, *, text: str = "", texts: Mapping[str, str] = NO_TEXTS) -> Sequence[Verdict]:
        """Decide about a call; empty when everything passed.

        For a judge to read: `text` is what a model or the agent said, `texts` what sources say, by the names they are cited by.
        """
        ...

    def finish(self, end: RunEnded, *, text: str = "") -> Sequence[Verdict]:
        """Decide about the whole run and close it; `text` is its final output."""
        ...

    def decisions(self) -> Sequence[PolicyDecision]:
        """Return what was decided so far, in order."""
        ...


class Governor(Protocol):
    """Starts runs under the policies in force."""

    def start(self, facts: RunFacts, *, policies: Sequence[PolicyBody] = (), is_enforced: bool = True) -> GovernedRun:
        """Pin the policies in scope, those of the store and those given, and decide about the beginning."""
        ...


class AnswerLog(Protocol):
    """Writes down what policies said of an answer."""

    def write(
        self, facts: RunFacts, policies: Sequence[Policy], calls: Sequence[tuple[AnyCall, tuple[Verdict, ...], int]], *, is_enforced: bool
    ) -> Iterator[PolicyDecision]:
        """Write a whole run at once: who asked, each call with its verdicts and count, the end last; what was decided can be read."""
        ...
