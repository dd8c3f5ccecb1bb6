"""A web server on a thread of the test's own process, up when it is given and gone when it is given back."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

    import uvicorn


@contextmanager
def running(server: uvicorn.Server, listening: socket.socket, *, is_up: Callable[[], bool] = lambda: True) -> Iterator[str]:
    """Give the address at which a server answers; `is_up` tells whether what comes with it does too."""
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        while not (server.started and is_up()):
            time.sleep(0.005)
            assert thread.is_alive()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
