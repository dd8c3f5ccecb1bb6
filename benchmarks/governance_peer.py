"""What one document costs in the published client of the field; run by governance.py with an interpreter that has it.

python benchmarks/governance_peer.py URL DOCUMENTS
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import sys
import time
from importlib.metadata import version

NAME = "waxell-observe"


def main() -> None:
    """Record documents against a plane that allows everything, and print what each took."""
    url, documents = sys.argv[1], int(sys.argv[2])
    os.environ |= {"WAXELL_API_URL": url, "WAXELL_API_KEY": "none", "WAXELL_OTEL_ENDPOINT": ""}
    logging.disable(logging.CRITICAL)
    client = importlib.import_module("waxell_observe")
    wall: list[int] = []
    cpu_before, began = time.process_time_ns(), time.perf_counter_ns()
    with client.WaxellContext(agent_name="rag-agent", enforce_policy=True) as ctx:
        for _ in range(documents):
            start = time.perf_counter_ns()
            ctx.record_retrieval_result(relevance_score=0.92, source="manual.pdf", collection="knowledge_base", age_days=14)
            wall.append(time.perf_counter_ns() - start)
    cpu, total = time.process_time_ns() - cpu_before, time.perf_counter_ns() - began
    print(json.dumps({"client": f"{NAME} {version(NAME)}", "wall_ns": wall, "cpu_ns": cpu, "total_ns": total}))
    sys.stdout.flush()
    os._exit(0)  # its background threads would keep the process


if __name__ == "__main__":
    main()
