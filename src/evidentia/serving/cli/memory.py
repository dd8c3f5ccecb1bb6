"""`evidentia memory`: what agents write down for themselves, and find again in later requests."""

from typing import TYPE_CHECKING, Annotated

import typer

from evidentia.serving.cli.invocation import AsOption, BaseOption, JsonOption, QuietOption, invocation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evidentia.contracts.sources import Note

group = typer.Typer(rich_markup_mode=None, help="Manage agent memory (notes).", no_args_is_help=False)

TextArgument = Annotated[str, typer.Argument(metavar="TEXT", help="The note; - reads it from stdin.")]
AgentOption = Annotated[str, typer.Option("--agent", metavar="A", help="The agent that owns the note.", show_default=False)]
SessionOption = Annotated[
    str, typer.Option("--session", metavar="S", help="The session of the note; default: all sessions of the agent.", show_default=False)
]
TitleOption = Annotated[str, typer.Option("--title", metavar="T", help="A title.", show_default=False)]
TtlOption = Annotated[str | None, typer.Option("--ttl", metavar="SPAN", help="Time to live: 90s, 15m, 1h, 7d.", show_default=False)]
AuthorityOption = Annotated[str, typer.Option("--authority", metavar="TIER", help="Authority tier: ephemeral or user.")]
OfAgentOption = Annotated[str | None, typer.Option("--agent", metavar="A", help="Filter by agent.", show_default=False)]
OfSessionOption = Annotated[str | None, typer.Option("--session", metavar="S", help="Filter by session.", show_default=False)]
NotesArgument = Annotated[
    list[str] | None, typer.Argument(metavar="ID...", help="The notes; `memory list` prints the ids.", show_default=False)
]

STDIN = "-"
MAX_BYTES = 1 << 20
"""More than this of stdin is not read; no note is that long."""


@group.command("add")
def add(
    context: typer.Context,
    *,
    text: TextArgument,
    agent: AgentOption = "",
    session: SessionOption = "",
    title: TitleOption = "",
    ttl: TtlOption = None,
    authority: AuthorityOption = "ephemeral",
    caller: AsOption = None,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Store a note.

    Only its author finds it, as the same agent in the same session.
    """
    from evidentia.serving.cli.asking import asking
    from evidentia.serving.cli.cli_errors import require_text
    from evidentia.serving.cli.durations import seconds_of
    from evidentia.serving.cli.output import put, put_json

    call = invocation(context, base=base, quiet=quiet, json=json)
    ttl_s = None if ttl is None else seconds_of(ttl, field="ttl_s")
    content = _stdin() if text == STDIN else text
    require_text(text=content, agent=agent, session=session, title=title)
    with asking(call, caller) as opened:
        note = opened.remember(content, title=title, agent=agent, session=session, authority=authority, ttl_s=ttl_s)
    if call.is_json:
        put_json(note)
    else:
        put(f"remembered {note.note_id}")


@group.command("list")
def list_notes(
    context: typer.Context,
    *,
    agent: OfAgentOption = None,
    session: OfSessionOption = None,
    caller: AsOption = None,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """List your notes that have not expired, ordered by when they were written."""
    from evidentia.serving.cli.asking import asking
    from evidentia.serving.cli.cli_errors import require_text
    from evidentia.serving.cli.output import put_json

    call = invocation(context, base=base, quiet=quiet, json=json)
    require_text(agent=agent, session=session)
    with asking(call, caller) as opened:
        notes = _of(opened.notes(agent=agent), session=session)
    if call.is_json:
        put_json(notes)
    else:
        _put(notes)


@group.command("forget")
def forget(
    context: typer.Context,
    *,
    ids: NotesArgument = None,
    agent: OfAgentOption = None,
    session: OfSessionOption = None,
    caller: AsOption = None,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Delete your notes by id, agent, session, or agent and session."""
    from evidentia.serving.cli.asking import asking
    from evidentia.serving.cli.cli_errors import UsageError, require_text
    from evidentia.serving.cli.output import put, put_json

    call = invocation(context, base=base, quiet=quiet, json=json)
    require_text(note_id=ids, agent=agent, session=session)
    if bool(ids) == (agent is not None or session is not None):
        raise UsageError(
            "forget takes either the ids of notes, or --agent and --session", hint="`evidentia memory list` prints notes with their ids"
        )
    with asking(call, caller) as opened:
        notes = _of(opened.notes(agent=agent), session=session)
        forgotten = opened.forget(_existing(notes, ids) if ids else [each.note_id for each in notes])
    if call.is_json:
        put_json({"forgotten": forgotten})
    else:
        put(f"forgot {forgotten} {'note' if forgotten == 1 else 'notes'}")


def _stdin() -> str:
    import sys

    from evidentia.contracts.errors import InvalidFieldError

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
    from evidentia.contracts.errors import NotFoundError

    known = {each.note_id for each in notes}
    for note_id in ids:
        if note_id not in known:
            raise NotFoundError("note", note_id)
    return ids


def _put(notes: "Sequence[Note]") -> None:
    from evidentia.serving.cli.output import put, put_table
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
