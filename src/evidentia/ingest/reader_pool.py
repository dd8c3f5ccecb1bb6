"""PDF, Office and HTML files are read in processes of their own, so that one that hangs or swallows memory costs only itself.

Refuses to share anything with a reader process: bytes go in, text or a reason comes out. The processes are started directly
and not through `multiprocessing`, which would run the caller's script again in each of them when it has no main guard.
"""

from __future__ import annotations

import contextlib
import math
import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, TYPE_CHECKING, Self

from evidentia.contracts.errors import DocumentUnreadableError
from evidentia.ingest.reader_process import ReadFailure, ReadJob, decode_answer, encode, read_frame, write_frame
from evidentia.ingest.readers.limits import ReadLimits
from evidentia.ingest.readers.registry import read_document
from evidentia.ingest.reasons import SkipReason

if TYPE_CHECKING:
    from collections.abc import Callable

    from evidentia.contracts.layout import ExtractedText
    from evidentia.contracts.ports import Clock
    from evidentia.contracts.settings import IngestSettings

_PROGRAM = "import sys; sys.path[:] = sys.argv[2:]; from evidentia.ingest.reader_process import serve; serve(memory_mb=int(sys.argv[1]))"


_NS_PER_S = 1_000_000_000


class ReadingTime:
    """How long one run may read, from when this is made; without a bound, as long as it takes."""

    def __init__(self, clock: Clock | None = None, *, max_s: int | None = None, is_stopped: Callable[[], bool] = lambda: False) -> None:
        self._clock = clock
        self._is_stopped = is_stopped
        self._max_s = max_s
        self._began_ns = 0 if clock is None else clock.elapsed_ns()

    def left_s(self) -> float:
        """Return how many seconds are left; none or less when the time is over."""
        if self._clock is None or self._max_s is None:
            return math.inf
        if self._is_stopped():
            return 0.0
        return self._max_s - (self._clock.elapsed_ns() - self._began_ns) / _NS_PER_S

    def check(self) -> None:
        """Raise DocumentUnreadableError when the time is over."""
        if self.left_s() <= 0:
            problem = f"was not read: the {self._max_s} s of its call were over; send fewer at a time, or raise limits.ingest_s"
            raise DocumentUnreadableError(SkipReason.CALL_TIMEOUT, problem)


UNTIMED = ReadingTime()


class ReaderPool:
    """Reads files in up to `settings.readers` processes, started when the first file comes; 0 reads in the calling process.

    `submit` returns a future; asking the futures in order of submission gives results in that order. No file is read longer than
    `time` lets it.
    """

    def __init__(self, settings: IngestSettings, *, time: ReadingTime = UNTIMED) -> None:
        self._settings = settings
        self._time = time
        self._limits = ReadLimits.of(settings)
        self._threads = ThreadPoolExecutor(settings.readers, thread_name_prefix="evidentia-reader") if settings.readers else None
        self._mine = threading.local()
        self._all: list[_ReaderProcess] = []

    def __enter__(self) -> Self:
        """Return the pool; no process is started yet."""
        return self

    def __exit__(self, *_failure: object) -> None:
        """End every process; what was not yet read is given up."""
        if self._threads is None:
            return
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._stop_processes()
        self._threads.shutdown(wait=True)
        self._stop_processes()

    def submit(self, content: bytes, *, name: str) -> Future[ExtractedText]:
        """Have a file read; the future gives its text or raises DocumentUnreadableError."""
        if self._threads is not None:
            return self._threads.submit(self._read, content, name)
        future: Future[ExtractedText] = Future()
        try:
            future.set_result(read_document(content, name=name, limits=self._limits))
        except DocumentUnreadableError as error:
            future.set_exception(error)
        return future

    def _read(self, content: bytes, name: str) -> ExtractedText:
        self._time.check()
        process: _ReaderProcess | None = getattr(self._mine, "process", None)
        if process is None or not process.is_alive:
            process = self._mine.process = _ReaderProcess(self._settings)
            self._all.append(process)
        timeout_s = min(self._settings.reader_timeout_s, self._time.left_s())
        job = ReadJob(name=name, content=content, limits=self._limits, timeout_s=max(1, math.ceil(timeout_s)))
        return process.read(job, timeout_s=timeout_s, time=self._time)

    def _stop_processes(self) -> None:
        for process in self._all:
            process.stop()


class _ReaderProcess:
    """One process and the pipes to it; a process that failed once is never asked again."""

    def __init__(self, settings: IngestSettings) -> None:
        path = [entry for entry in sys.path if entry]
        self._process = subprocess.Popen(  # noqa: S603  # our own interpreter and module, no shell; -P keeps the working directory's files out
            [sys.executable, "-P", "-c", _PROGRAM, str(settings.reader_memory_mb), *path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.is_alive = True

    def read(self, job: ReadJob, *, timeout_s: float, time: ReadingTime) -> ExtractedText:
        """Return the text of one file, or raise DocumentUnreadableError; a silent process is killed when its time is over."""
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            self._process.kill()

        alarm = threading.Timer(max(0.0, timeout_s), expire)
        alarm.daemon = True
        alarm.start()
        try:
            answer = self._exchange(encode(job))
        finally:
            alarm.cancel()
        if answer is None or expired.is_set():
            self.stop()
        if answer is not None:
            return self._accepted(answer)
        if expired.is_set():
            time.check()
            problem = f"could not be read within {job.timeout_s} s; simplify it, or raise ingest.reader_timeout_s"
            raise DocumentUnreadableError(SkipReason.READER_TIMEOUT, problem)
        problem = "made its reader crash or run out of memory; save it again, simplify it, or raise ingest.reader_memory_mb"
        raise DocumentUnreadableError(SkipReason.READER_CRASHED, problem)

    def stop(self) -> None:
        """End the process; whatever it was doing is lost."""
        self.is_alive = False
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError, ValueError):
                    pipe.close()

    def _exchange(self, frame: bytes) -> bytes | None:
        """Return the answer to one job, or None when the process is gone before it gave one."""
        try:
            write_frame(_opened(self._process.stdin), frame)
            return read_frame(_opened(self._process.stdout))
        except (OSError, ValueError):
            return None

    def _accepted(self, answer: bytes) -> ExtractedText:
        decoded = decode_answer(answer)
        if not isinstance(decoded, ReadFailure):
            return decoded
        if decoded.is_last:
            self.stop()
        raise DocumentUnreadableError(decoded.reason, decoded.problem)


def _opened(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise ValueError("the reader process has no pipe")
    return pipe
