"""JSON-RPC 2.0 over a table of methods: bytes in, bytes out, by https://www.jsonrpc.org/specification.

It knows nothing of HTTP or of evidence. Parameters and results stay as bytes, so that whoever knows their types reads them once.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from evidentia.contracts.control import Fault
from evidentia.contracts.decoding import decode_json
from evidentia.serving.operations import api_errors

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from evidentia.serving.operations.api_errors import ApiError


MAX_IN_BATCH: Final = 100
MAX_AT_ONCE: Final = 8
MAX_BATCH_BYTES: Final = 16 << 20
"""Once the answers of a batch have more than this, calls that are left are refused."""
"""Calls of one batch that are answered at the same time."""
_NULL: Final = msgspec.Raw(b"null")
_WHAT_IDS_BEGIN_WITH: Final = (*b'"-0123456789', *b"n")
_NO_JSON: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class RpcMethod(NamedTuple):
    """Something that can be called with one JSON object of parameters, and answers with JSON."""

    answer: Callable[[bytes], Awaitable[bytes]]
    """Raises `RpcFailure` for a call that is answered with an error."""
    order: tuple[str, ...] = ()
    """What parameters by position are called; empty where they are only taken by name."""
    is_writing: bool = False
    """Whether it waits for the calls before it in a batch, and those after it wait for it."""


class _Call(msgspec.Struct):
    """A request as it came; what is wrong with it is found member by member."""

    jsonrpc: msgspec.Raw = _NULL
    method: msgspec.Raw = _NULL
    params: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


async def dispatch(raw: bytes, methods: Mapping[str, RpcMethod]) -> bytes | None:
    """Answer a call or a batch of calls; None when nobody waits for an answer, because there were only notifications."""
    is_batch = raw.lstrip()[:1] == b"["
    try:
        raw.decode()  # strings that nobody reads have to be UTF-8 too
        given = _members(raw) if is_batch else [decode_json(raw, msgspec.Raw)]
    except _NO_JSON:
        return refused(failure(PARSE_ERROR, "malformed_json", "this is not JSON", hint="send one JSON object or array in UTF-8"))
    if not is_batch:
        return await _answered(bytes(given[0]), methods)
    if not 1 <= len(given) <= MAX_IN_BATCH:
        problem = f"a batch holds between 1 and {MAX_IN_BATCH} calls"
        return refused(failure(INVALID_REQUEST, "invalid_batch", problem, hint="send several batches, or a call by itself"))
    answers = await _answered_all([bytes(each) for each in given], methods)
    told = [answer for answer in answers if answer is not None]
    return b"[" + b",".join(told) + b"]" if told else None


def refused(failed: RpcFailure, reply_to: msgspec.Raw = _NULL) -> bytes:
    """Return the response of a call that failed; null is the id of one whose id is not known."""
    return msgspec.json.encode({"jsonrpc": "2.0", "error": failed.content(), "id": reply_to})


_Batch: Final = msgspec.defstruct(
    "_Batch",
    [(f"call_{place}", msgspec.Raw | msgspec.UnsetType, msgspec.UNSET) for place in range(MAX_IN_BATCH + 1)],
    array_like=True,
)
"""A batch as a row of places, one more than it may have calls: what comes after them is passed over, and takes no memory."""


def _members(raw: bytes) -> list[msgspec.Raw]:
    """Return the calls of a batch, or one more than are allowed of it."""
    return [each for each in msgspec.structs.astuple(decode_json(raw, _Batch)) if each is not msgspec.UNSET]


async def _answered_all(calls: Sequence[bytes], methods: Mapping[str, RpcMethod]) -> list[bytes | None]:
    """Answer in order: reads next to each other at the same time, and a write by itself."""
    answers: list[bytes | None] = []
    together: list[bytes] = []
    gate = asyncio.Semaphore(MAX_AT_ONCE)

    held = 0

    async def answered(call: bytes) -> bytes | None:
        nonlocal held
        async with gate:
            answer = await _answered(call, methods, is_full=held > MAX_BATCH_BYTES)
            held += len(answer or b"")
            return answer

    for call in calls:
        if _is_writing(call, methods):
            answers += await asyncio.gather(*map(answered, together))
            answers.append(await answered(call))
            together = []
        else:
            together.append(call)
    return answers + await asyncio.gather(*map(answered, together))


def _is_writing(raw: bytes, methods: Mapping[str, RpcMethod]) -> bool:
    try:
        method = methods.get(_name(_read(raw)))
    except RpcFailure:
        return False
    return method is not None and method.is_writing


async def _answered(raw: bytes, methods: Mapping[str, RpcMethod], *, is_full: bool = False) -> bytes | None:
    """Answer one call; None for a notification, whatever became of it. Where the answers of a batch are full, the rest is refused."""
    reply_to = _NULL
    is_notification = False
    try:
        call = _read(raw)
        reply_to = _id_of(call)
        name = _name(call)
        is_notification = call.id is msgspec.UNSET
        if is_full:
            problem = f"the answers of this batch have more than {MAX_BATCH_BYTES} bytes; this call was not made"
            raise failure(INVALID_REQUEST, "batch_too_large", problem, hint="send the calls that are left in another batch")
        if name not in methods:
            problem = f"there is no method '{name[:100]}'"
            raise failure(METHOD_NOT_FOUND, "method_not_found", problem, hint="`rpc.discover` lists the methods")
        result = await methods[name].answer(_named(call, methods[name]))
    except RpcFailure as failed:
        return None if is_notification else refused(failed, reply_to)
    return None if is_notification else msgspec.json.encode({"jsonrpc": "2.0", "result": msgspec.Raw(result), "id": reply_to})


def _read(raw: bytes) -> _Call:
    try:
        call = decode_json(raw, _Call)
    except _NO_JSON:
        raise _invalid("a call is a JSON object") from None
    if bytes(call.jsonrpc) != b'"2.0"':
        raise _invalid('the member "jsonrpc" has to be "2.0"')
    return call


def _id_of(call: _Call) -> msgspec.Raw:
    if call.id is msgspec.UNSET:
        return _NULL
    if bytes(call.id)[0] not in _WHAT_IDS_BEGIN_WITH:
        raise _invalid('the member "id" has to be a string, a number or null')
    return call.id


def _name(call: _Call) -> str:
    if bytes(call.method)[:1] != b'"':
        raise _invalid('the member "method" has to be a string')
    if call.params is not msgspec.UNSET and bytes(call.params)[:1] not in {b"{", b"["}:
        raise _invalid('the member "params" has to be an object or an array')
    try:
        return decode_json(call.method, str)
    except _NO_JSON:
        raise _invalid('the member "method" has to be a string') from None


def _named(call: _Call, method: RpcMethod) -> bytes:
    """Return the parameters as one object."""
    params = b"{}" if call.params is msgspec.UNSET else bytes(call.params)
    if params[:1] == b"{":
        return params
    if not method.order:
        if params[1:-1].strip():
            hint = "send an object: a name for every parameter"
            raise failure(INVALID_PARAMS, "positional_params", "this method takes parameters by name only", hint=hint)
        return b"{}"
    values = decode_json(params, list[msgspec.Raw])
    if len(values) > len(method.order):
        problem = f"there are {len(values)} parameters, and this method takes {len(method.order)}"
        raise failure(INVALID_PARAMS, "positional_params", problem, hint=f"in order, they are {', '.join(method.order)}")
    return msgspec.json.encode(dict(zip(method.order, values, strict=False)))


def _invalid(problem: str) -> RpcFailure:
    return failure(INVALID_REQUEST, "invalid_request", problem, hint='send {"jsonrpc": "2.0", "method": NAME, "params": {...}, "id": ID}')


# --- codes ---
# The numbers of JSON-RPC errors: those of the specification, and one for every other way in which the plane says no.
#
# What an error is about stands in its `data`, which is the `Fault` that REST sends: a stable code, a hint, and every field that is wrong.

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
UNAUTHORIZED: Final = -32001
FORBIDDEN: Final = -32003
NOT_FOUND: Final = -32004
CONFLICT: Final = -32009
CHANGED: Final = -32012
TOO_LARGE: Final = -32013
WRONG_TYPE: Final = -32015
TOO_MANY: Final = -32029
BAD_GATEWAY: Final = -32052
UNAVAILABLE: Final = -32053

MEANINGS: Final[Mapping[int, str]] = {
    PARSE_ERROR: "Parse error",
    INVALID_REQUEST: "Invalid Request",
    METHOD_NOT_FOUND: "Method not found",
    INVALID_PARAMS: "Invalid params",
    INTERNAL_ERROR: "Internal error",
    UNAUTHORIZED: "Unauthorized",
    FORBIDDEN: "Forbidden",
    NOT_FOUND: "Not found",
    CONFLICT: "Conflict",
    CHANGED: "Another version is in force",
    TOO_LARGE: "Too large",
    WRONG_TYPE: "Not JSON by its header",
    TOO_MANY: "Too many requests",
    BAD_GATEWAY: "Something the base depends on gave no answer",
    UNAVAILABLE: "The base cannot be used now",
}
"""What each number means; errors of the protocol itself carry it as their `message`."""

CODE_OF: Final[Mapping[int, int]] = {
    api_errors.MALFORMED: INVALID_PARAMS,
    api_errors.UNAUTHORIZED: UNAUTHORIZED,
    api_errors.FORBIDDEN: FORBIDDEN,
    api_errors.NOT_FOUND: NOT_FOUND,
    api_errors.CONFLICT: CONFLICT,
    api_errors.CHANGED: CHANGED,
    api_errors.TOO_LARGE: TOO_LARGE,
    api_errors.WRONG_TYPE: WRONG_TYPE,
    api_errors.UNPROCESSABLE: INVALID_PARAMS,
    api_errors.TOO_MANY: TOO_MANY,
    api_errors.INTERNAL: INTERNAL_ERROR,
    api_errors.BAD_GATEWAY: BAD_GATEWAY,
    api_errors.UNAVAILABLE: UNAVAILABLE,
}
"""From the HTTP status of a refusal."""


class RpcFailure(Exception):  # noqa: N818 - it carries an error of the protocol, and is none of the program
    """A call that is answered with an error."""

    def __init__(self, code: int, fault: Fault, *, message: str = "", retry_after_s: int | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.fault = fault
        self.message = message or MEANINGS[code]
        self.retry_after_s = retry_after_s

    def content(self) -> dict[str, object]:
        """Return the member `error` of the response; its data say when to come back, where REST has a header for it."""
        waiting = {} if self.retry_after_s is None else {"retry_after_s": self.retry_after_s}
        return {"code": self.code, "message": self.message, "data": {**msgspec.to_builtins(self.fault), **waiting}}


def failure(code: int, reason: str, message: str, *, hint: str) -> RpcFailure:
    """Return the failure for something that is wrong with a call itself."""
    return RpcFailure(code, Fault(code=reason, message=message, hint=hint))


def failure_of(refusal: ApiError) -> RpcFailure:
    """Return the failure that says what a refusal says."""
    code = CODE_OF.get(refusal.status, INTERNAL_ERROR)
    waiting = refusal.headers.get("retry-after")
    return RpcFailure(code, refusal.fault, message=refusal.fault.message, retry_after_s=None if waiting is None else int(waiting))
