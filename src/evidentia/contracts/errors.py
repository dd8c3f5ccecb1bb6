"""Every exception a user can meet, with a stable code and a hint.

    EvidentiaError
    ├── InputError                  the caller's words are off (exit code 2, HTTP 400)
    │   ├── InvalidFieldError           a field's value is not acceptable
    │   │   ├── InvalidRecordError          what an agent wants to record cannot be compared
    │   │   ├── RequestTooCostlyError       answering the request could hold more memory than is allowed; nothing was done
    │   │   └── BelowFloorError             the governance floor does not allow what the field asks for (HTTP 403)
    │   ├── FilterSyntaxError           a filter's text does not parse; names the column
    │   ├── UnknownSettingError         evidentia.toml names a setting that does not exist
    │   ├── DocumentUnreadableError     a file cannot become a document
    │   ├── DuplicateDocumentError      two roots or records give one document id
    │   ├── NotAllowedError             the caller is not the owner of the base
    │   ├── NotFoundError               a document, chunk, version or receipt the caller may see is not there
    │   ├── BackupRefusedError          a backup cannot be taken or restored there, or is none
    │   ├── StatementRefusedError       a statement over tables is not one that may run
    │   ├── PolicyInvalidError          a policy's body cannot be put in force; names every field (HTTP 422)
    │   ├── PolicyConflictError         somebody else changed the policy meanwhile (HTTP 409)
    │   └── MissingExtraError           an optional dependency is not installed
    ├── BaseStateError              the base cannot be used as it is (exit code 3, HTTP 503)
    │   ├── BaseMissingError            there is no base at this path
    │   ├── BaseDamagedError            stored bytes are not what they were
    │   ├── BackupDamagedError          the bytes of a backup are not what they were
    │   ├── BaseVersionError            the base was written by a newer Evidentia
    │   ├── BaseBusyError               another process is writing
    │   ├── BaseFullError               no room left to write
    │   ├── BaseReadOnlyError           the base's directory does not allow writing
    │   ├── BaseForbiddenError          the base's directory does not allow reading
    │   ├── VersionCollectedError       gc removed that version
    │   └── SearchTimedOutError         the base was not searched in time, and the caller wanted no answer without it
    ├── ServiceError                a service or model that the settings name does not do its part (exit code 3, HTTP 502)
    │   ├── ServiceUnavailableError     it gave no answer
    │   │   ├── RunForgottenError           a control plane does not know the run any more
    │   │   └── TlsFaultError               no encrypted connection could be made: a certificate is wrong, or one is missing
    │   ├── ServiceReplyError           it refused, or its answer cannot be right
    │   └── ModelDamagedError           a model's file is not what its manifest says
    └── PolicyViolationError        a policy stopped the call; carries the whole decision (exit code 1, HTTP 403)

A source that gives no answer is not here: that is a result (`CoverageReport`), not an exception.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.contracts.decisions import PolicyDecision


class EvidentiaError(Exception):
    """The root of every error raised on purpose."""

    code: ClassVar[str] = "evidentia_error"
    hint: ClassVar[str] = "see the message"
    exit_code: ClassVar[int] = 2


class InputError(EvidentiaError):
    """The caller's words are off; nothing was changed."""

    code = "input_error"
    hint = "correct the input and try again"


class InvalidFieldError(InputError):
    """A field's value is not acceptable."""

    code = "invalid_field"
    hint = "correct the field that the message names"

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"field '{field}': {problem}")
        self.field = field


class InvalidRecordError(InvalidFieldError, ValueError):
    """A call cannot be recorded as it is; nothing was recorded, and nothing passed."""

    code = "invalid_record"
    hint = "correct the field that the message names; the run goes on"


class RequestTooCostlyError(InvalidFieldError):
    """Answering the request could hold more memory than is allowed; nothing was done for it."""

    code = "request_too_costly"
    hint = "lower the field that the message names, or raise the limit that it names"

    def __init__(self, field: str, *, cost_mb: int, share_mb: int, limit: str, advice: str) -> None:
        super().__init__(field, f"it takes {share_mb} of the {cost_mb} MB that the request may hold, more than {limit}; {advice}")
        self.cost_mb = cost_mb


class BelowFloorError(InvalidFieldError):
    """The governance floor of the base does not allow what a field asks for; the attempt was recorded."""

    code = "below_floor"
    hint = "leave the field out, or have whoever runs the base change the floor, or the agents of the token"


class FilterSyntaxError(InputError):
    """A filter's text does not parse."""

    code = "filter_syntax"
    hint = 'write comparisons such as language = "en" AND (tags contains "ops" OR NOT author exists)'

    def __init__(self, problem: str, *, text: str, column: int) -> None:
        super().__init__(f"filter, column {column}: {problem}")
        self.text = text
        self.column = column


class UnknownSettingError(InputError):
    """The settings file names a setting that does not exist."""

    code = "unknown_setting"
    hint = "`evidentia init` in a new directory writes every setting with its default"

    def __init__(self, name: str, *, file: str) -> None:
        super().__init__(f"'{file}' names the setting '{name}', which does not exist")


class DocumentUnreadableError(InputError):
    """A file cannot become a document; `reason` is stable, `problem` is for people."""

    code = "document_unreadable"
    hint = "the other files were ingested; correct this one and ingest it again"

    def __init__(self, reason: str, problem: str) -> None:
        super().__init__(problem)
        self.reason = reason
        self.problem = problem


class DuplicateDocumentError(InputError):
    """Two roots or records give one document id."""

    code = "duplicate_document"
    hint = "give one of them another --source, or a different id"

    def __init__(self, document_id: str, *, first: str, second: str) -> None:
        super().__init__(f"document id '{document_id}' comes from both '{first}' and '{second}'")


class NotAllowedError(InputError):
    """The caller is not the owner of the base, which this needs."""

    code = "not_allowed"
    hint = "connect without a principal to act as the owner of a local base"

    def __init__(self, act: str) -> None:
        super().__init__(f"only the owner of the base may {act}")


class NotFoundError(InputError):
    """What was asked for is not there, or the caller may not see it: the two are not told apart."""

    code = "not_found"
    hint = "check the id, and that you may see it"

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"no {kind} '{name}'")


class BackupRefusedError(InputError):
    """A backup cannot be taken or restored there, or what was named is none; nothing was written."""

    code = "backup_refused"
    hint = "name a new directory or a new .tar file outside the base for a backup, and a new or empty directory to restore to"


class StatementRefusedError(InputError):
    """A statement over tables is not a single read of the tables it was given, or costs more than it may; nothing was run to its end."""

    code = "statement_refused"
    hint = "ask for one SELECT over the tables that were named, without functions that reach outside them"

    def __init__(self, problem: str) -> None:
        super().__init__(f"the statement is refused: {problem}")
        self.problem = problem


class MissingExtraError(InputError):
    """An optional dependency is not installed."""

    code = "missing_extra"
    hint = "install the extra that the message names"

    def __init__(self, extra: str, *, needed_for: str) -> None:
        super().__init__(f"{needed_for} needs the extra '{extra}': pip install 'evidentia[{extra}]'")


class BaseStateError(EvidentiaError):
    """The base cannot be used as it is; the last committed version is intact unless the message says otherwise."""

    code = "base_state"
    hint = "run `evidentia doctor`"
    exit_code = 3


class BaseMissingError(BaseStateError):
    """There is no base at this path."""

    code = "base_missing"
    hint = "run `evidentia init`, or pass --base or EVIDENTIA_BASE"

    def __init__(self, path: str) -> None:
        super().__init__(f"there is no base at '{path}'")


class BaseDamagedError(BaseStateError):
    """Stored bytes are not what they were."""

    code = "base_damaged"
    hint = "run `evidentia verify` to see the first broken link, then restore from a backup"

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}")
        self.where = where
        self.problem = problem


class BackupDamagedError(BaseStateError):
    """The bytes of a backup are not what they were; nothing was restored."""

    code = "backup_damaged"
    hint = "fetch the backup again from where it is kept, or restore an older one"

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"backup, {where}: {problem}")
        self.where = where
        self.problem = problem


class BaseVersionError(BaseStateError):
    """The base was written by a newer Evidentia."""

    code = "base_version"
    hint = "upgrade evidentia"

    def __init__(self, found: int, *, known: int) -> None:
        super().__init__(f"the base has schema {found}, and this Evidentia knows schemas up to {known}")


class BaseBusyError(BaseStateError):
    """Another process is writing."""

    code = "base_busy"
    hint = "wait for the other writer, or raise storage.writer_wait_ms"

    def __init__(self, path: str, *, waited_ms: int) -> None:
        super().__init__(f"another writer holds '{path}' (waited {waited_ms} ms)")


class BaseFullError(BaseStateError):
    """No room left to write."""

    code = "base_full"
    hint = "free some space (`evidentia gc` drops old versions) and run the command again"

    def __init__(self, path: str) -> None:
        super().__init__(f"no room left to write in '{path}'; the last committed version is intact")


class BaseReadOnlyError(BaseStateError):
    """The base's directory does not allow writing."""

    code = "base_read_only"
    hint = "check the directory's permissions"

    def __init__(self, path: str) -> None:
        super().__init__(f"'{path}' cannot be written; the last committed version is intact")


class BaseForbiddenError(BaseStateError):
    """The base's directory does not allow reading."""

    code = "base_forbidden"
    hint = "check the directory's permissions"

    def __init__(self, path: str) -> None:
        super().__init__(f"'{path}' cannot be read")


class VersionCollectedError(BaseStateError):
    """Garbage collection removed that version."""

    code = "version_collected"
    hint = "raise storage.keep_versions before the next gc"

    def __init__(self, version: str) -> None:
        super().__init__(f"version '{version}' was removed by gc")


class SearchTimedOutError(BaseStateError):
    """The base was not searched to the end within the deadline, and the request asked to be refused then."""

    code = "search_timed_out"
    hint = "ask again, raise latency_deadline_ms, or set on_timeout to 'wait' or 'degrade'"

    def __init__(self, deadline_ms: int) -> None:
        super().__init__(f"the base was not searched to the end within the deadline of {deadline_ms} ms")


class ServiceError(EvidentiaError):
    """A service or model that the settings name does not do its part; nothing was changed."""

    code = "service_error"
    hint = "check the endpoint that the settings name"
    exit_code = 3


class ServiceUnavailableError(ServiceError):
    """A service gave no answer, however often it was asked."""

    code = "service_unavailable"
    hint = "check that it runs, then run the command again"


class RunForgottenError(ServiceUnavailableError):
    """A control plane does not know a run: it was started again since the run began there."""

    code = "run_forgotten"
    hint = "begin the run again"


class TlsFaultError(ServiceUnavailableError):
    """No encrypted connection could be made: a certificate is not trusted, has expired, is for another name, or is missing."""

    code = "tls_fault"
    hint = "`outbound.authorities` or SSL_CERT_FILE says who is trusted, `outbound.certificate` what is shown"


class ServiceReplyError(ServiceError):
    """A service refused a request or gave a reply that cannot be right."""

    code = "service_reply"
    hint = "check the address, the model, the key and the dimension in the settings"


class ModelDamagedError(ServiceError):
    """A model's file is not what its manifest says."""

    code = "model_damaged"
    hint = "install evidentia again, or copy the model's folder again"

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}")


class FieldProblem(NamedTuple):
    """What is wrong with one field of a policy, and the nearest name or word that would be right."""

    path: str
    problem: str
    suggestion: str = ""

    def __str__(self) -> str:
        """Return the problem in one line."""
        return f"field '{self.path}': {self.problem}" + (f"; did you mean '{self.suggestion}'?" if self.suggestion else "")


class PolicyInvalidError(InputError):
    """A policy's body cannot be put in force; nothing was changed."""

    code = "policy_invalid"
    hint = "correct the fields that the message names; `evidentia policy show NAME` prints every rule of a policy"

    def __init__(self, problems: Sequence[FieldProblem]) -> None:
        super().__init__("; ".join(str(problem) for problem in problems))
        self.problems = tuple(problems)


class PolicyConflictError(InputError):
    """Somebody else changed the policy meanwhile, or its name is taken."""

    code = "policy_conflict"
    hint = "read the policy again, and change the version that is in force"

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"policy '{name}': {problem}")
        self.name = name


class PolicyViolationError(EvidentiaError):
    """A policy stopped the call that caused it; the message is the reason."""

    code = "policy_violation"
    hint = "read the decision: its rule, metadata and evaluations say what was violated"
    exit_code = 1

    def __init__(self, reason: str, decision: PolicyDecision, decisions: Sequence[PolicyDecision] = ()) -> None:
        super().__init__(reason)
        self.decision = decision
        """The one that gives the reason."""
        self.decisions = tuple(decisions) or (decision,)
        """Every decision that stopped the call, of all categories, the one that gives the reason first."""

    @property
    def abstention_response(self) -> str | None:
        """Return what a policy wants said instead of an answer; None when none does."""
        return next((each.abstention_response for each in self.decisions if each.abstention_response is not None), None)
