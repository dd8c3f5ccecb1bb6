"""A control plane behind HTTP as a governor: it decides and keeps the log, and this side numbers what it sends.

Nothing is decided here. A plane that is out of reach is a ServiceUnavailableError at the call that met it; who goes on then, and by
which policies, is for the caller to say.
"""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeVar, get_args
from urllib.parse import quote

import msgspec

from evidentia.contracts.control import (
    CallsReply,
    CallsRequest,
    DecisionPage,
    EndReply,
    EndRequest,
    FaultReply,
    NumberedCall,
    PolicyPage,
    StartReply,
    StartRequest,
)
from evidentia.contracts.decoding import decode_json
from evidentia.contracts.errors import (
    FieldProblem,
    InvalidFieldError,
    PolicyInvalidError,
    RunForgottenError,
    ServiceReplyError,
    ServiceUnavailableError,
)
from evidentia.contracts.judging import NO_TEXTS
from evidentia.contracts.ports import GovernedRun, Governor
from evidentia.contracts.runs import AnyCall, GroundingEntry, RecordableCall, RunEnded, RunFacts
from evidentia.foundation.lru import SharedLruCache
from evidentia.foundation.outbound_http import (
    BUSY,
    SERVER_FAULT,
    BlockingHttpClient,
    Bounds,
    Failure,
    HttpClient,
    Request,
    bearer,
    check_address,
    is_sendable_key,
    require_confidential,
)
from evidentia.policy.evaluator import PolicySet
from evidentia.policy.handlers import check_call, check_ranges

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from evidentia.contracts.decisions import PolicyDecision, Verdict
    from evidentia.contracts.errors import EvidentiaError
    from evidentia.contracts.policies import PolicyBody, StoredPolicy


# --- exchanges with a control plane ---

Message = TypeVar("Message")

CONNECT_S: Final = 3.0
READ_S: Final = 60.0
"""A judge may take its time before a call is answered."""
MAX_REPLY_BYTES: Final = 1 << 26
_NOT_FOUND: Final = 404
_UNPROCESSABLE: Final = 422
_ATTEMPTS: Final = 2


class PlaneWire:
    """The connections to one plane. Thread safe; they stay open between requests until `close`."""

    def __init__(self, address: str, *, token: str, read_s: float = READ_S, max_reply_bytes: int = MAX_REPLY_BYTES) -> None:
        checked = check_address(
            address,
            field="url",
            unfit="it is no address of a control plane; write something like 'https://host:8321'",
            telling="it holds a name, a key or a query; pass the token by itself",
        )
        if token:
            require_confidential(
                checked, field="url", problem="a token is not sent in the clear; write the address of the plane with https"
            )
            if not is_sendable_key(token):
                raise InvalidFieldError("token", "it holds characters that no token has")
        self.host = checked.host
        self._headers = {"accept": "application/json", **(bearer(token) if token else {})}
        self._timeout_ms = round(read_s * 1000)
        self._max_reply_bytes = max_reply_bytes
        self._client = BlockingHttpClient(HttpClient(checked, connect_s=CONNECT_S))

    def post(self, path: str, body: object, kind: type[Message], *, is_repeatable: bool = True) -> Message:
        """Send a message and return the answer."""
        return self._ask("POST", path, kind, content=msgspec.json.encode(body), is_repeatable=is_repeatable)

    def get(self, path: str, kind: type[Message], *, query: Mapping[str, str] | None = None) -> Message:
        """Return what is at a path."""
        return self._ask("GET", path, kind, query=query)

    def close(self) -> None:
        """Close the connections; whoever asks afterwards opens new ones."""
        self._client.close()

    def _ask(
        self,
        method: str,
        path: str,
        kind: type[Message],
        *,
        content: bytes | None = None,
        query: Mapping[str, str] | None = None,
        is_repeatable: bool = True,
    ) -> Message:
        """Return the answer.

        Raises:
            ServiceUnavailableError: There was no answer, the plane is busy or broken, or what was asked about is gone.
            ServiceReplyError: The plane refuses whoever asks, or answers with something else.
            InputError: What was sent is wrong, as the plane says.
        """
        headers = self._headers if content is None else {**self._headers, "content-type": "application/json"}
        bounds = Bounds(self._timeout_ms, self._max_reply_bytes, attempts=_ATTEMPTS if is_repeatable else 1)
        reply = self._client.exchange(Request(method, path, headers, content, query), bounds)
        if isinstance(reply, Failure):
            raise reply.error()
        if not reply.is_ok:
            raise self._refusal(reply.status, reply.body)
        try:
            return decode_json(reply.body, kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            # The reason alone: a message of the decoder quotes what was sent.
            raise ServiceReplyError(f"'{self.host}' replies with something that is no answer ({type(error).__name__})") from None

    def _refusal(self, status: int, reply: bytes) -> EvidentiaError:
        if status == BUSY or status >= SERVER_FAULT:
            return ServiceUnavailableError(f"'{self.host}' answers with the HTTP status {status}")
        try:
            fault = decode_json(reply, FaultReply).error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return ServiceReplyError(f"'{self.host}' answers with the HTTP status {status}; check the address and the token")
        if status == _UNPROCESSABLE and fault.code == PolicyInvalidError.code:
            return PolicyInvalidError([FieldProblem(each.path, each.problem, each.suggestion) for each in fault.problems])
        if status == _UNPROCESSABLE and fault.problems:
            return InvalidFieldError(fault.problems[0].path, fault.problems[0].problem)
        if status == _NOT_FOUND or fault.code == "run_ended":
            kind = RunForgottenError if status == _NOT_FOUND else ServiceUnavailableError
            return kind(f"'{self.host}' does not know this any more: {fault.message}")
        return ServiceReplyError(f"'{self.host}' refuses ({fault.code}): {fault.message}")


# --- the governor and its runs ---

_PAGE: Final = "500"
_RECORDABLE: Final = get_args(RecordableCall)
_MAX_STOPS: Final = 64


class RemoteGovernor(Governor):
    """Implements `Governor`. Thread safe; the tenant is that of the token."""

    def __init__(self, url: str, *, token: str, read_s: float = READ_S) -> None:
        self._wire = PlaneWire(url, token=token, read_s=read_s)

    def start(self, facts: RunFacts, *, policies: Sequence[PolicyBody] = (), is_enforced: bool = True) -> RemoteRun:
        """Begin a run at the plane; a request that got lost on the way is sent once more, and begins one run."""
        request = StartRequest(facts=facts, policies=tuple(policies), is_enforced=is_enforced)
        reply = self._wire.post("/v1/runs", request, StartReply, is_repeatable=bool(facts.run_id))
        return RemoteRun(self._wire, msgspec.structs.replace(facts, run_id=reply.run_id), reply)

    def live(self, *, tenant: str) -> Sequence[StoredPolicy]:
        """Return the policies in force at the plane, by priority and then name: those of the token's tenant, whichever is named."""
        del tenant
        return tuple(self._policies())

    def close(self) -> None:
        """Close the connections."""
        self._wire.close()

    def _policies(self) -> Iterator[StoredPolicy]:
        query = {"limit": _PAGE}
        while True:
            page = self._wire.get("/v1/policies", PolicyPage, query=query)
            yield from page.policies
            if page.next_cursor is None:
                return
            query = {"limit": _PAGE, "cursor": page.next_cursor}


class RemoteRun(GovernedRun):
    """Implements `GovernedRun`. Thread safe: calls are numbered and sent one after the other."""

    def __init__(self, wire: PlaneWire, facts: RunFacts, reply: StartReply) -> None:
        self._wire = wire
        self._facts = facts
        self._reply = reply
        self._path = f"/v1/runs/{quote(facts.run_id, safe='')}"
        self._lock = threading.Lock()
        self._seq = 0
        self._stops: SharedLruCache[int, tuple[Verdict, PolicyDecision]] = SharedLruCache(_MAX_STOPS)

    @property
    def facts(self) -> RunFacts:
        """Return who runs."""
        return self._facts

    @cached_property
    def policies(self) -> PolicySet:
        """Return the policies that the plane holds the run to, ready to decide with."""
        return PolicySet.of(self._reply.policies)

    def record(self, call: AnyCall, *, text: str = "", texts: Mapping[str, str] = NO_TEXTS) -> Sequence[Verdict]:
        """Have the plane decide about a call; empty when everything passed. Texts of sources are sent where a policy asks a judge."""
        check_call(call)
        check_ranges(call)
        if isinstance(call, GroundingEntry) and call.judgements:
            call = msgspec.structs.replace(call, judgements={})  # the plane asks its own judge
        if not isinstance(call, _RECORDABLE):
            raise InvalidFieldError("call", f"a plane records beginning and end by itself, not as a {type(call).__name__}")
        with self._lock:
            sent = dict(texts) if texts and self.policies.asks_judge else {}
            numbered = NumberedCall(seq=self._seq + 1, call=call, text=text, texts=sent)
            reply = self._wire.post(f"{self._path}/calls", CallsRequest(calls=(numbered,)), CallsReply)
            result = next((each for each in reply.results if each.seq == numbered.seq), None)
            if result is None:
                raise ServiceUnavailableError("the plane did not say what it decided")
            self._seq = numbered.seq
            self._note(result.verdicts, result.decisions)
        return result.verdicts

    def finish(self, end: RunEnded, *, text: str = "") -> Sequence[Verdict]:
        """Have the plane decide about the whole run, and close it."""
        request = EndRequest(status=end.status, error_type=end.error_type, result_hash=end.result_hash, text=text)
        with self._lock:
            reply = self._wire.post(f"{self._path}/end", request, EndReply)
            self._note(reply.verdicts, reply.decisions)
        return reply.verdicts

    def decisions(self) -> Sequence[PolicyDecision]:
        """Return what was decided so far, in order, as the plane's log has it."""
        query = {"limit": _PAGE}
        found: list[PolicyDecision] = []
        while True:
            page = self._wire.get(f"{self._path}/decisions", DecisionPage, query=query)
            found += page.decisions
            if page.next_cursor is None:
                return found
            query = {"limit": _PAGE, "cursor": page.next_cursor}

    def decision_of(self, verdict: Verdict) -> PolicyDecision | None:
        """Return the decision as it stands in the plane's log, for a verdict of this run that stops; None for any other."""
        noted = self._stops.get(id(verdict))
        return None if noted is None else noted[1]

    def flush(self) -> None:
        """Return at once: what was answered is in the plane's hands."""

    def _note(self, verdicts: Sequence[Verdict], decisions: Sequence[PolicyDecision]) -> None:
        stopping = [verdict for verdict in verdicts if verdict.stops]
        for verdict, decision in zip(stopping, decisions, strict=False):
            self._stops.put(id(verdict), (verdict, decision))
