"""An object in a process of its own, asked over pipes: whatever it does to its interpreter, this one goes on.

The process is started directly and not through `multiprocessing`, which would run the caller's script again in it when that has no
main guard. Both sides are our own code, so they speak in pickles. One call is made at a time.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from contextlib import suppress
from functools import partial
from operator import methodcaller
from typing import IO, TYPE_CHECKING, Any, Final

from evidentia.contracts.errors import ServiceUnavailableError
from evidentia.foundation.offload import outbound_left_ms

if TYPE_CHECKING:
    from collections.abc import Callable

HUNG_S: Final = 10.0
"""A call that has no answer by then has none: the process is ended, and another one begun."""
START_S: Final = 60.0
"""The same for making the object."""
_PROGRAM: Final = "import sys; sys.path[:] = sys.argv[1:]; from evidentia.foundation.object_process import serve; serve()"


class ObjectProcess:
    """Makes an object in another process and calls its methods there. Thread safe; the process is started when it is needed.

    `make` is called there, and travels as a pickle. What a call raises is raised here, if it can travel.
    """

    def __init__(self, make: Callable[[], object], *, hung_s: float = HUNG_S) -> None:
        self._make = make
        self._hung_s = hung_s
        self._lock = threading.Lock()
        """Held for a call: requests and answers go through one pair of pipes, in turn."""
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closed = False

    def open(self) -> None:
        """Start the process and have the object made."""
        with self._lock:
            self._running()

    def call(self, method: str, *given: object, **named: object) -> Any:  # noqa: ANN401 (whatever the method returns)
        """Return what a method returns there, or raise ServiceUnavailableError where the process is busy, gone or hangs.

        Whoever waits for an earlier call waits no longer than the context's `outbound_deadline`.
        """
        left_ms = outbound_left_ms()
        if not self._lock.acquire(timeout=self._hung_s if left_ms is None else left_ms / 1000):
            raise ServiceUnavailableError("the model's process is still at an earlier call")
        try:
            if self._process is None and left_ms is not None:  # making the object takes longer than anybody waits
                self._begin_again()
                raise ServiceUnavailableError("the model's process is being started")
            return self._ask(self._running(), (method, given, named), hung_s=self._hung_s)
        finally:
            self._lock.release()

    def close(self) -> None:
        """End the process, whatever it is at; there will be no other."""
        self._is_closed = True
        process = self._process
        if process is not None:
            process.kill()  # whoever waits for it lets go of the lock
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            _end(process)

    def _begin_again(self) -> None:
        threading.Thread(target=self._open_quietly, name="evidentia-model-process", daemon=True).start()

    def _open_quietly(self) -> None:
        with suppress(Exception):  # the next call says what is wrong
            self.open()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._is_closed:
            raise ServiceUnavailableError("the model's process was closed")
        if self._process is None:
            path = [entry for entry in sys.path if entry]
            self._process = subprocess.Popen(  # noqa: S603  # our own interpreter and module, no shell; -P keeps the working directory out
                [sys.executable, "-P", "-c", _PROGRAM, *path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            self._ask(self._process, self._make, hung_s=START_S)
        return self._process

    def _ask(self, process: subprocess.Popen[bytes], message: object, *, hung_s: float) -> Any:  # noqa: ANN401 (whatever it answers)
        alarm = threading.Timer(hung_s, process.kill)
        alarm.daemon = True
        alarm.start()
        try:
            _send(_opened(process.stdin), message)
            is_answer, answer = pickle.load(_opened(process.stdout))  # noqa: S301 (our own process)
        except (OSError, EOFError, ValueError, pickle.UnpicklingError) as error:
            self._drop()
            raise ServiceUnavailableError("the model's process ended, or gave no answer") from error
        finally:
            alarm.cancel()
        if not is_answer:
            raise answer
        return answer


def serve() -> None:
    """Make the object that standard input names, and answer calls on what was standard output until the caller is gone."""
    calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    made: object = None
    with suppress(EOFError):
        made = _answer(answers, pickle.load(calls))  # noqa: S301 (from our caller)
        while True:
            method, given, named = pickle.load(calls)  # noqa: S301 (likewise)
            _answer(answers, partial(methodcaller(method, *given, **named), made), is_told=True)


def _answer(answers: IO[bytes], work: Callable[[], object], *, is_told: bool = False) -> object:
    """Do a piece of work and tell the caller of it; what was made stays here."""
    done: object = None
    try:
        done = work()
        message: tuple[bool, object] = (True, done if is_told else None)
        pickle.dumps(message)
    except BaseException as error:  # noqa: BLE001 (it is raised where the caller is)
        message = (False, error)
        try:
            pickle.loads(pickle.dumps(message))  # noqa: S301 (an exception may refuse to travel)
        except Exception:  # noqa: BLE001 (whatever an exception does then)
            message = (False, RuntimeError(type(error).__name__))
    _send(answers, message)
    return done


def _send(stream: IO[bytes], message: object) -> None:
    pickle.dump(message, stream)
    stream.flush()


def _opened(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise ValueError("the process has no pipe")
    return pipe


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError, ValueError):
                pipe.close()
