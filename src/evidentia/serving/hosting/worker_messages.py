"""What one process of a server is told when it starts and while it runs, and what it says back: JSON, one message a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from evidentia.contracts.decoding import decode_json
from evidentia.contracts.vocabulary import Vocabulary

if TYPE_CHECKING:
    import asyncio

_Message = TypeVar("_Message", bound=msgspec.Struct)


class Command(Vocabulary):
    """What to do next."""

    STOP = "stop"
    """Let requests under way finish, close what is open, and end."""
    RETIRE = "retire"
    """Take no more connections, but do what other processes ask, until the last run has ended or STOP comes."""
    KNOW = "know"
    """Take note of where the writing processes are."""


class Hosting(msgspec.Struct, frozen=True, kw_only=True):
    """How a server is hosted, the same for each of its processes; empty files are those of the settings."""

    base: str
    host: str = "127.0.0.1"
    hosts: tuple[str, ...] = ()
    certificate: str = ""
    private_key: str = ""
    client_certificates: str = ""
    is_durable: bool = False
    drain_s: float = 0
    workers: int = 1
    is_supervised: bool = False
    """Whether another process holds the sockets, and may start one beside this to take its place."""
    grpc_port: int | None = None


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """What a process is to be, as it is told when it starts."""

    hosting: Hosting
    listening: tuple[int, ...]
    """The numbers of the sockets that it has inherited."""
    writers: tuple[str, ...]
    """Where the writing processes are, the present one first."""
    own: str = ""
    """Where this process is asked, when it is the one that writes."""
    link_hash: str = ""
    """Of the code with which the first admin may come in, for the one that writes."""
    link_token: str = ""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What a process is told while it runs."""

    command: Command
    writers: tuple[str, ...] = ()


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a process says: that it answers."""

    is_ready: bool = True


def line_of(message: msgspec.Struct) -> bytes:
    """Return a message as a line."""
    return msgspec.json.encode(message) + b"\n"


async def next_message(reader: asyncio.StreamReader, kind: type[_Message]) -> _Message | None:
    """Return the next message; None when there will be none, since whoever sent them has gone."""
    try:
        line = await reader.readline()
    except ConnectionError:
        return None
    return decode_json(line, kind) if line.endswith(b"\n") else None
