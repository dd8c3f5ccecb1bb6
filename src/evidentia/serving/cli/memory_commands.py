"""`evidentia memory`: what agents write down for themselves, and find again in later requests."""

import sys
from typing import TYPE_CHECKING, Annotated

from evidentia.contracts.errors import InvalidFieldError, NotFoundError
from evidentia.serving.cli.cli_errors import UsageError
from evidentia.serving.cli.invocation import CommandResult, Invocation, arg, command, command_group, opt
from evidentia.serving.cli.output import counted, put, put_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.base.sync_base import Base
    from evidentia.contracts.sources import Note

group = command_group("Manage agent memory (notes).")

OfAgentOption = Annotated[str | None, opt("--agent", "A", "Filter by agent.")]
OfSessionOption = Annotated[str | None, opt("--session", "S", "Filter by session.")]
STDIN = "-"
MAX_BYTES = 1 << 20
"""More than this of stdin is not read; no note is that long."""


@command(group, "add", has_caller=True)
def add(
    call: Invocation,
    *,
    text: Annotated[str, arg("TEXT", "The note; - reads it from stdin.")],
    agent: Annotated[str, opt("--agent", "A", "The agent that owns the note.", has_default=False)] = "",
    session: Annotated[str, opt("--session", "S", "The session of the note; default: all sessions of the agent.", has_default=False)] = "",
    title: Annotated[str, opt("--title", "T", "A title.", has_default=False)] = "",
    ttl: Annotated[str | None, opt("--ttl", "SPAN", "Time to live: 90s, 15m, 1h, 7d.")] = None,
    authority: Annotated[str, opt("--authority", "TIER", "Authority tier: ephemeral or user.")] = "ephemeral",
) -> CommandResult[object]:
    """Store a note.

    Only its author finds it, as the same agent in the same session.
    """
    from evidentia.serving.cli.durations import seconds_of

    ttl_s = None if ttl is None else seconds_of(ttl, field="ttl_s")
    content = _stdin() if text == STDIN else text
    with call.open_base() as base:
        note = base.remember(content, title=title, agent=agent, session=session, authority=authority, ttl_s=ttl_s)
    return CommandResult(note, f"remembered {note.note_id}")


@command(group, "list", has_caller=True)
def list_notes(base: "Base", *, agent: OfAgentOption = None, session: OfSessionOption = None) -> "CommandResult[list[Note]]":
    """List your notes that have not expired, ordered by when they were written."""
    return CommandResult(_of(base.notes(agent=agent), session=session), _put)


@command(group, "forget", has_caller=True)
def forget(
    call: Invocation,
    *,
    note_id: Annotated[list[str] | None, arg("ID...", "The notes; `memory list` prints the ids.")] = None,
    agent: OfAgentOption = None,
    session: OfSessionOption = None,
) -> CommandResult[object]:
    """Delete your notes by id, agent, session, or agent and session."""
    if bool(note_id) == (agent is not None or session is not None):
        raise UsageError(
            "forget takes either the ids of notes, or --agent and --session", hint="`evidentia memory list` prints notes with their ids"
        )
    with call.open_base() as base:
        notes = _of(base.notes(agent=agent), session=session)
        forgotten = base.forget(_existing(notes, note_id) if note_id else [each.note_id for each in notes])
    return CommandResult({"forgotten": forgotten}, f"forgot {counted(forgotten, 'note')}")


def _stdin() -> str:
    content = sys.stdin.buffer.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise InvalidFieldError("text", f"stdin holds more than {MAX_BYTES} bytes")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise InvalidFieldError("text", "stdin is not UTF-8") from error


def _of(notes: "Sequence[Note]", *, session: str | None) -> "list[Note]":
    """Return the notes of just this session, in the order in which they were written; the store counts those of every session in."""
    wanted = (each for each in notes if session is None or each.session == session)
    return sorted(wanted, key=lambda each: (each.written_at, each.note_id))


def _existing(notes: "Sequence[Note]", ids: "Sequence[str]") -> "Sequence[str]":
    known = {each.note_id for each in notes}
    for note_id in ids:
        if note_id not in known:
            raise NotFoundError("note", note_id)
    return ids


def _put(notes: "Sequence[Note]") -> None:
    from evidentia.serving.cli.snippets import shortened

    if not notes:
        put("no notes")
        return
    put_table(
        ("id", "written", "agent", "session", "authority", "expires", "note"),
        [
            (
                each.note_id,
                f"{each.written_at:%Y-%m-%d %H:%M}",
                each.agent_name or "-",
                each.session or "-",
                each.authority_tier.value,
                "-" if each.expires_at is None else f"{each.expires_at:%Y-%m-%d %H:%M}",
                shortened(f"{each.title}: {each.text}" if each.title else each.text),
            )
            for each in notes
        ],
    )
