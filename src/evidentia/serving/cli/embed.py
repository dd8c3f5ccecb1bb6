"""`evidentia embed`: give every chunk that lacks one its vector."""

import typer

from evidentia.serving.cli.invocation import BaseOption, JsonOption, QuietOption, invocation


def embed(
    context: typer.Context,
    *,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Embed every chunk that has no vector yet.

    An interrupted run can be resumed, and searches go on meanwhile.
    """
    from evidentia.base.sync_base import connect
    from evidentia.serving.cli.output import put_facts, put_json
    from evidentia.serving.cli.progress import EmbedBar

    call = invocation(context, base=base, quiet=quiet, json=json)
    with connect(call.base) as opened, EmbedBar(is_wanted=not call.is_quiet) as bar:
        report = opened.embed(on_progress=bar.update)
    if call.is_json:
        put_json(report)
        return
    put_facts(
        [
            ("encoder", report.identity.name if report.identity else "none"),
            ("embedded", report.embedded),
            ("reused", report.reused),
            ("remaining", report.remaining),
            ("evidence_state", report.evidence_state),
        ]
    )
