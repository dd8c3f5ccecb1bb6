"""`evidentia policy prompt`: a profile of the protocol as the text of a system prompt or a hook."""

from typing import Annotated

import typer

from evidentia.serving.cli.invocation import BaseOption, JsonOption, QuietOption, invocation

ProfileOption = Annotated[str, typer.Option("--profile", metavar="PROFILE", help="first_call, thorough, or a file with one of your own.")]
SkillOption = Annotated[
    list[str] | None,
    typer.Option("--skill", metavar="NAME", help="A retrieval tool of a skill; may be given several times.", show_default=False),
]


def prompt(
    context: typer.Context,
    *,
    profile: ProfileOption = "first_call",
    skill: SkillOption = None,
    base: BaseOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Render a protocol profile as a system prompt; sessions enforce the same data. No base is needed."""
    from evidentia.policy.protocol_prompt import render
    from evidentia.serving.cli.cli_errors import require_text
    from evidentia.serving.cli.output import put, put_json
    from evidentia.serving.cli.policy_lint_files import read_profile

    call = invocation(context, base=base, quiet=quiet, json=json)
    require_text(profile=profile, **{f"skill[{place}]": name for place, name in enumerate(skill or ())})
    chosen = read_profile(profile)
    text = render(chosen, skills=skill or ())
    if call.is_json:
        put_json({"profile": chosen.name, "text": text})
    else:
        for line in text.splitlines():
            put(line)
