"""The loop of a reader process: a job, an answer, the next job, until the pipe closes.

Refuses to outlive its caller or its limits: the memory is capped, and an alarm ends a job the caller no longer waits for.
"""

from __future__ import annotations

import os
import signal
from typing import IO

from evidentia.contracts.errors import DocumentUnreadableError
from evidentia.ingest.readers.registry import read_document
from evidentia.ingest.reasons import SkipReason
from evidentia.ingest.wire import ReadFailure, ReadJob, ReadSuccess, decode_job, encode, read_frame, write_frame

GRACE_S = 5
"""The caller kills a slow reader itself; the alarm is for a caller that died."""


def serve(*, memory_mb: int) -> None:
    """Answer jobs from standard input on what was standard output; anything a parser prints goes nowhere."""
    _cap_memory(memory_mb)
    jobs = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    while (frame := read_frame(jobs)) is not None:
        if not _answer(answers, decode_job(frame)):
            return


def _answer(answers: IO[bytes], job: ReadJob) -> bool:
    """Answer one job; False when the process should end because it ran out of memory."""
    _set_alarm(job.timeout_s + GRACE_S)
    try:
        answer: ReadSuccess | ReadFailure = ReadSuccess.of(read_document(job.content, name=job.name, limits=job.limits))
    except DocumentUnreadableError as error:
        answer = ReadFailure(reason=str(error.reason), problem=error.problem, is_last=error.reason == SkipReason.READER_CRASHED)
    _set_alarm(0)
    write_frame(answers, encode(answer))
    return not (isinstance(answer, ReadFailure) and answer.is_last)


def _set_alarm(seconds: int) -> None:
    if hasattr(signal, "alarm"):
        signal.alarm(seconds)


def _cap_memory(memory_mb: int) -> None:
    try:
        import resource
    except ImportError:
        return
    limit = memory_mb * 1024 * 1024
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
