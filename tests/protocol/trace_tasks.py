"""Correct traces of tasks that are not, or not only, about knowledge: code, mixed work, and a file that the user named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trace_generator import give, start, text_call
from trace_plans import Block, Call, Plan
from trace_questions import TEXT_TYPES

from evidentia.contracts.protocol import TaskKind

if TYPE_CHECKING:
    from random import Random

CODE_QUESTIONS = (
    "Fix the failing test in tests/test_{key}.py, please.",
    "Refactor the function load_{key} in src/{key}.py so that it takes a path.",
    "The build breaks in {key}.py with a TypeError. Debug it.",
)
CODE_REPLIES = (
    "Done. `load_{key}` in `src/{key}.py` takes a path now, and the tests pass.",
    "The bug was an unclosed file in `{key}.py`. I fixed it:\n\n```python\nwith open(path) as file:\n    rows = file.readlines()\n```",
)


def code_task(rng: Random, profile: str) -> Plan:
    """Work on code: file tools are fine, and nothing has to be cited."""
    from trace_domains import WORLDS

    world = rng.choice(WORLDS)
    plan = Plan(world=world, profile=profile, question=rng.choice(CODE_QUESTIONS).format(key=world.key), entities=(world.key,))
    plan.task = TaskKind.CODE
    plan.calls = [
        Call(name="Glob", extra={"pattern": f"**/*{world.key}*.py"}, result=f"src/{world.key}.py"),
        Call(name="Read", extra={"file_path": f"src/{world.key}.py"}, result=f"def load_{world.key}():\n    return open('x').readlines()"),
        Call(name="Bash", extra={"command": f"pytest tests/test_{world.key}.py"}, result="1 passed"),
    ][: rng.randint(1, 3)]
    plan.blocks = [Block(text=rng.choice(CODE_REPLIES).format(key=world.key))]
    return plan


def mixed_task(rng: Random, profile: str) -> Plan:
    """Knowledge from retrieval, code with code tools, each call in its portion."""
    plan, asked = start(rng, profile, rng.choice(TEXT_TYPES))
    key = plan.world.key
    plan.question = f"{asked.question} And please add a comment about it to the function load_{key} in src/{key}.py."
    plan.task = TaskKind.MIXED
    call = text_call(plan, asked.queries[0], rng)
    call.portion = TaskKind.KNOWLEDGE
    plan.calls.append(call)
    give(plan, asked, call, "text", rng)
    plan.calls.append(
        Call(
            name=rng.choice(["Read", "Edit"]), extra={"file_path": f"src/{key}.py"}, result=f"def load_{key}(): ...", portion=TaskKind.CODE
        )
    )
    plan.blocks = [block for block in plan.blocks if block.kind != "closing"]
    plan.blocks.append(Block(text=f"I also added the comment to `load_{key}` in `src/{key}.py`.", kind="code"))
    return plan


def explicit_file(rng: Random, profile: str) -> Plan:
    """The user asks for one local file, and that very file is read."""
    from trace_domains import WORLDS

    world = rng.choice(WORLDS)
    path = rng.choice([f"notes/{world.key}.txt", f"/srv/me/{world.key}-todo.md", f"docs/{world.key}.csv"])
    question = rng.choice(["Please read the file {} and tell me what it says.", "Open {} and show me its first lines."]).format(path)
    plan = Plan(world=world, profile=profile, question=question, entities=(path,))
    plan.task, plan.explicit_file = TaskKind.KNOWLEDGE, path if rng.random() < 0.7 else None
    plan.calls = [Call(name="Read", extra={"file_path": path}, result=f"Order new {world.many}.\nCall the supplier.")]
    plan.blocks = [Block(text=f"The file `{path}` says: order new {world.many}, and call the supplier.")]
    return plan
