"""Kills a durable writer of decisions with SIGKILL at random moments and checks what is left; run by test_decision_log_kill.py.

Prints one JSON line: how many kills, how many decisions were acknowledged, how many lines were torn.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

from evidentia.backends.embedded.logs.decision_log import EmbeddedDecisionLog
from evidentia.contracts.decisions import LogEntry
from evidentia.contracts.ids import Sha256
from evidentia.contracts.runs import RunId, StepCall
from evidentia.governance.log_maintenance import verify
from evidentia.wiring.system import SystemClock, SystemEntropy

THREADS = 3
RECORD_BYTES = 8


def main(work: Path, *, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    acknowledged: set[int] = set()
    torn = 0
    for number in range(kills):
        acknowledged |= _kill_one(work, first=number * 1_000_000, delay_s=chance.uniform(0.01, 0.08))
        log = EmbeddedDecisionLog(work, clock=SystemClock(), entropy=SystemEntropy())
        report = verify(log)
        found = [int(record.entry.call.name) for record in log.records() if isinstance(record.entry.call, StepCall)]
        assert report.ok, report.faults
        assert len(found) == len(set(found))
        assert acknowledged <= set(found), sorted(acknowledged - set(found))[:5]
        torn = len(report.faults)
    print(json.dumps({"kills": kills, "acknowledged": len(acknowledged), "torn": torn}))  # noqa: T201


def _kill_one(work: Path, *, first: int, delay_s: float) -> set[int]:
    """Fork a writer whose threads tell through a pipe what was acknowledged, kill it, and return what they told."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        _write(work, first, writing)
    os.close(writing)
    told = bytearray()
    while len(told) < RECORD_BYTES:
        told += os.read(reading, 65_536)
    time.sleep(delay_s)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while more := os.read(reading, 65_536):
        told += more
    os.close(reading)
    whole = len(told) - len(told) % RECORD_BYTES
    return {int.from_bytes(told[start : start + RECORD_BYTES], "big") for start in range(0, whole, RECORD_BYTES)}


def _write(work: Path, first: int, pipe: int) -> None:
    log = EmbeddedDecisionLog(work, clock=SystemClock(), entropy=SystemEntropy(), is_durable=True, max_bytes=20_000)

    def append(thread: int) -> None:
        number = first + thread
        while True:
            log.append([LogEntry(at_us=1, run_id=RunId("r"), policies=Sha256("d" * 64), call=StepCall(name=str(number)))])
            os.write(pipe, number.to_bytes(RECORD_BYTES, "big"))
            number += THREADS

    for thread in range(THREADS):
        threading.Thread(target=append, args=(thread,), daemon=True).start()
    threading.Event().wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]), kills=int(sys.argv[2]), seed=int(sys.argv[3]))
