"""Replies of generated traces: paragraphs, lists, tables and headings in several wordings, cited where they have to be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trace_plans import Block
from trace_questions import PAIRS, WHOLE

from evidentia.contracts.protocol import QuestionType

if TYPE_CHECKING:
    from random import Random

    from trace_plans import Fragment, Plan, Row, Table
    from trace_questions import Asked

LEADS = ("Here is what the documents say:", "This is what I found:", "Sure, the short version:", "Thanks for asking. In brief:")
CLOSINGS = ("Let me know if you need anything else.", "Shall I go into more detail?", "Hope that helps!")
SETTINGS = ("behind", "below", "free")
NOT_FOUND = (
    "I could not find any relevant information on {about} in the available sources.",
    "No relevant information was found about {about}.",
    "Sorry, nothing on {about} turned up in any of the sources I searched.",
    "I searched all the sources I have, but there is no information about {about} in them.",
    "Unfortunately, the search returned no relevant results for {about}, so I can't answer this.",
)
COUNTS = (
    "{total} rows match in total; {shown} are displayed and {omitted} are omitted.",
    "Showing {shown} of {total} entries, {omitted} were left out.",
    "Note: there are {total} matches altogether. I list {shown} of them; the other {omitted} are not shown.",
    "Total: {total}, displayed: {shown}, omitted: {omitted}.",
)


def not_found_block(plan: Plan, rng: Random) -> Block:
    """Return a reply that says that nothing was found."""
    return Block(text=rng.choice(NOT_FOUND).format(about=plan.entities[0]), kind="not_found")


def reply_from_text(plan: Plan, asked: Asked, rng: Random) -> None:
    """Write a reply that rests on fragments: a paragraph for each, one for all, or a list."""
    fragments = plan.fragments
    has_images = any(fragment.images for fragment in fragments)
    if len(fragments) <= 2 and not has_images and rng.random() < 0.3:
        blocks = [_together(fragments, rng)]
    elif len(fragments) >= 2 and not has_images and rng.random() < 0.4:
        blocks = [_listed(fragments, rng, is_numbered=asked.question_type is QuestionType.WORKFLOW)]
    else:
        blocks = [_paragraph(fragment, rng) for fragment in fragments]
    plan.blocks = _framed(blocks, rng, title=plan.entities[0])


def _paragraph(fragment: Fragment, rng: Random) -> Block:
    setting = rng.choice([*SETTINGS, "after"] if fragment.images else SETTINGS)
    return Block(
        text=say(fragment.text, fragment.filename, rng), citations=[fragment.citation()], images=list(fragment.images), setting=setting
    )


def _together(fragments: list[Fragment], rng: Random) -> Block:
    text = " ".join(fragment.text for fragment in fragments)
    return Block(text=text, citations=[fragment.citation() for fragment in fragments], setting=rng.choice(SETTINGS))


def _listed(fragments: list[Fragment], rng: Random, *, is_numbered: bool) -> Block:
    marks = [f"{number}." if is_numbered else "-" for number in range(1, len(fragments) + 1)]
    text = "\n".join(f"{mark} {fragment.text}" for mark, fragment in zip(marks, fragments, strict=True))
    cited = [fragments[0].citation(), fragments[-1].citation()] if rng.random() < 0.6 else [fragments[0].citation()]
    return Block(text=text, kind="list", citations=cited, setting=rng.choice(("below", "free")))


def say(sentence: str, filename: str, rng: Random) -> str:
    """Return a sentence of the evidence in the words of a reply."""
    words = sentence[0].lower() + sentence[1:]
    return rng.choice(
        [
            sentence,
            f"According to {filename}, {words}",
            f"The documentation says that {words}",
            f"In short: {words}",
            f"**{sentence.rstrip('.')}.**",
            f"{sentence} That is how {filename} puts it.",
        ]
    )


def reply_from_table(plan: Plan, asked: Asked, rng: Random) -> None:
    """Write a reply that rests on rows: a sentence, a list or a table, with the counts where the result was cut."""
    table = plan.table
    assert table is not None
    is_whole = asked.question_type in {*WHOLE, QuestionType.HISTORY} or table.omitted > 0
    plan.used = table.rows if is_whole else [row for row in table.rows if row.cells[0] in asked.entities]
    form = rng.choice(["table", "list"] if is_whole or asked.question_type in PAIRS else ["sentence", "list", "sentence"])
    blocks = [_rows_block(table, plan.used, form)]
    if table.omitted:
        counts = rng.choice(COUNTS).format(total=_number(table.total, rng), shown=len(table.rows), omitted=_number(table.omitted, rng))
        blocks.insert(rng.randrange(2), Block(text=counts, kind="counts"))
    plan.blocks = _framed(blocks, rng, title=plan.world.many.capitalize())


def _number(value: int, rng: Random) -> str:
    return f"{value:,}" if rng.random() < 0.3 else str(value)


def _rows_block(table: Table, rows: list[Row], form: str) -> Block:
    cited = table.citations(rows)
    if form == "table":
        lines = [table.header, ("---",) * len(table.header), *(row.cells for row in rows)]
        return Block(text="\n".join(f"| {' | '.join(line)} |" for line in lines), kind="table", citations=cited)
    told = [
        f"{row.cells[0]}: " + ", ".join(f"{head} {cell}" for head, cell in zip(table.header[1:], row.cells[1:], strict=True))
        for row in rows
    ]
    if form == "sentence":
        return Block(text=f"For {'; for '.join(told)}.", kind="tabular", citations=cited, setting="free")
    return Block(text="\n".join(f"- {line}" for line in told), kind="list", citations=cited, setting="free")


def _framed(blocks: list[Block], rng: Random, *, title: str) -> list[Block]:
    framed = list(blocks)
    if rng.random() < 0.3:
        framed.insert(0, Block(text=rng.choice(LEADS), kind="lead"))
    if rng.random() < 0.2:
        framed.insert(0, Block(text=f"## {title}", kind="heading"))
    if rng.random() < 0.15:
        framed.append(Block(text=rng.choice(CLOSINGS), kind="closing"))
    return framed
