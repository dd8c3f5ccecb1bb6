"""Breaks in what an agent replies: tables, images, citations, supplements, the self-check."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from trace_breaks_calls import FIRST_ONLY, plain
from trace_generator import THOROUGH, bad_result, give, role_call, start, supplemented, text_call
from trace_plans import Block, Call, Plan
from trace_questions import TEXT_TYPES, WHOLE
from trace_replies import say
from trace_way import Way, ways

from evidentia.contracts.protocol import ProtocolRule, QuestionType

if TYPE_CHECKING:
    from random import Random

R = ProtocolRule


def cited(plan: Plan) -> list[Block]:
    """Return the blocks that carry a citation."""
    return [block for block in plan.blocks if block.citations]


def told_in_paragraphs(rng: Random, profile: str, *, images: tuple[int, ...] = (), least: int = 2) -> Plan:
    """Return a correct trace whose reply has a paragraph for each fragment; `images` says how many belong to each."""
    kinds = [QuestionType.WORKFLOW] if least > 2 else list(TEXT_TYPES)
    plan, asked = start(rng, profile, rng.choice(kinds))
    call = text_call(plan, asked.queries[0], rng)
    plan.calls.append(call)
    give(plan, asked, call, "text", rng)
    if images:
        from trace_plans import image, render_text

        for fragment, count in zip(plan.fragments, images, strict=False):
            fragment.images = [image(plan.world, rng) for _ in range(count)]
        call.result = render_text(plan.fragments)
    plan.blocks = [
        Block(
            text=say(fragment.text, fragment.filename, rng),
            citations=[fragment.citation()],
            images=list(fragment.images),
            setting=rng.choice(("below", "free") if fragment.images else ("behind", "below", "free")),
        )
        for fragment in plan.fragments
    ]
    return plan


def told_in_rows(rng: Random, profile: str, *, layout: str = "one", omitted: int = 0, kind: QuestionType | None = None) -> Plan:
    """Return a correct trace whose reply shows every row of a table."""
    plan, asked = start(rng, profile, kind or rng.choice([*WHOLE, QuestionType.HISTORY]))
    call = Call(name="table_rag_retrieve", query=asked.queries[0])
    plan.calls.append(call)
    give(plan, asked, call, "table", rng, layout=layout, omitted=omitted)
    if profile == THOROUGH and omitted:
        for role, query in zip(("text", "local"), asked.queries[1:3], strict=True):
            call = role_call(plan, role, query, rng)
            call.result = bad_result(plan, role, rng)
            plan.calls.append(call)
    return plan


def counts_missing(rng: Random, profile: str) -> Plan:
    plan = told_in_rows(rng, profile, omitted=rng.choice([9, 73, 1041]))
    plan.blocks = [block for block in plan.blocks if block.kind != "counts"]
    return plan


def counts_in_part(rng: Random, profile: str) -> Plan:
    plan = told_in_rows(rng, profile, omitted=rng.choice([9, 73, 1041]))
    assert plan.table is not None
    said = rng.choice(["There are {} matches in total.", "The list was cut, {} entries matched.", "Not everything is shown ({} found)."])
    for block in plan.blocks:
        if block.kind == "counts":
            block.text = said.format(plan.table.total)
    return plan


def counts_wrong(rng: Random, profile: str) -> Plan:
    plan = told_in_rows(rng, profile, omitted=rng.choice([19, 73]))
    assert plan.table is not None
    total, shown = plan.table.total + 11, len(plan.table.rows)
    for block in plan.blocks:
        if block.kind == "counts":
            block.text = f"{total} rows match in total; {shown} are displayed and {total - shown} are omitted."
    return plan


def another_name(rng: Random, profile: str) -> Plan:
    plan = told_in_rows(rng, profile)
    name = rng.choice(["figures-final.xlsx", "Sheet1.xlsx", "export.csv", "the price list"])
    for block in plan.blocks:
        block.citations = [re.sub(r'filename="[^"]*"', f'filename="{name}"', citation) for citation in block.citations]
    return plan


def src_column(rng: Random, profile: str) -> Plan:
    plan = told_in_rows(rng, profile)
    assert plan.table is not None
    lines = [("__src", *plan.table.header), ("---",) * (len(plan.table.header) + 1), *((row.code, *row.cells) for row in plan.used)]
    (block,) = cited(plan)
    block.kind, block.text = "table", "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return plan


def src_code(rng: Random, profile: str) -> Plan:
    plan = told_in_rows(rng, profile)
    (block,) = cited(plan)
    code = plan.used[0].code
    if block.kind == "table":
        plan.blocks.insert(0, Block(text=rng.choice([f"The first line stands at {code}.", f"(see {code})"]), kind="lead"))
    else:
        block.text = rng.choice([f"{block.text} ({code})", block.text.replace("- ", f"- [{code}] ", 1)])
    return plan


def rows_apart(rng: Random, profile: str) -> Plan:
    plan = told_in_rows(rng, profile)
    (block,) = cited(plan)
    table, rows = plan.table, plan.used
    assert table is not None
    place, half = (rows[0].file, rows[0].sheet), len(rows) // 2
    numbers = [row.row for row in rows]
    block.citations = [table.citation(place, numbers[:half]), table.citation(place, numbers[half:])]
    return plan


def table_cited_on_the_line(rng: Random, profile: str) -> Plan:
    plan, _, _ = plain(rng, profile, types=(QuestionType.VALUE, QuestionType.PRICE))
    (block,) = cited(plan)
    first, _, rest = block.text.partition(" ")
    block.text, block.citations = f"{first} {block.citations[0]} {rest}", []
    return plan


def sheet_uncited(rng: Random, profile: str) -> Plan:
    plan = told_in_rows(rng, profile, layout=rng.choice(["sheets", "files"]))
    (block,) = cited(plan)
    block.citations = block.citations[: len(block.citations) - 1]
    return plan


def image_left_out(rng: Random, profile: str) -> Plan:
    plan = told_in_paragraphs(rng, profile, images=rng.choice([(1,), (1, 1), (2,), (0, 1)]))
    block = rng.choice([block for block in plan.blocks if block.images])
    block.images.pop()
    return plan


def image_changed(rng: Random, profile: str) -> Plan:
    plan = told_in_paragraphs(rng, profile, images=(1, 0))
    plan.blocks[0].images = [re.sub(r"evidentia-image:\w{8}", f"evidentia-image:{rng.randrange(10**8):08}", plan.blocks[0].images[0])]
    return plan


def image_moved(rng: Random, profile: str) -> Plan:
    plan = told_in_paragraphs(rng, profile, images=rng.choice([(1, 0, 0), (1, 1, 0), (2, 0, 0)]), least=3)
    first, second = plan.blocks[0], plan.blocks[1]
    first.images, second.images = second.images, first.images
    return plan


def image_to_the_front(rng: Random, profile: str) -> Plan:
    plan = told_in_paragraphs(rng, profile, images=(0, 0, 1), least=3)
    last, first = plan.blocks[-1], plan.blocks[0]
    last.images, first.images = [], last.images
    return plan


def images_collected(rng: Random, profile: str) -> Plan:
    plan = told_in_paragraphs(rng, profile, images=rng.choice([(1, 1, 1), (2, 1, 0), (1, 1, 0)]), least=3)
    collected = [image for block in plan.blocks for image in block.images]
    for block in plan.blocks:
        block.images = []
    if rng.random() < 0.5:
        plan.blocks.append(Block(text="## Images", kind="heading"))
    plan.blocks.append(Block(text="\n".join(collected), kind="images"))
    return plan


def uncited(rng: Random, profile: str) -> Plan:
    plan, _, _ = plain(rng, profile)
    for block in plan.blocks:
        block.citations = []
    return plan


def one_uncited(rng: Random, profile: str) -> Plan:
    plan = told_in_paragraphs(rng, profile)
    plan.blocks[0].citations = []
    return plan


GARBLED: Final = (
    lambda text: re.sub(r"page=(\d+)", r'page="\1"', text),
    lambda text: text.replace(" />", ">"),
    lambda text: re.sub(r' filename="[^"]*"', "", text),
    lambda text: re.sub(r" page=\d+", "", text),
    lambda text: re.sub(r"page=(\d+)", r"page=p\1", text),
    lambda text: text.replace('file="', "file='", 1).replace('" filename', "' filename", 1),
    lambda text: text.replace(" />", ' url="https://example.org/x" />'),
    lambda text: text.replace("<CITATION", "<Citation"),
    lambda text: re.sub(r"page=(\d+)", r"page=\1 page=\1", text),
)


def garbled(rng: Random, profile: str) -> Plan:
    plan = told_in_paragraphs(rng, profile)
    change = rng.choice(GARBLED)
    plan.blocks[0].citations = [change(plan.blocks[0].citations[0])]
    return plan


def garbled_rows(rng: Random, profile: str) -> Plan:
    plan = told_in_rows(rng, profile)
    (block,) = cited(plan)
    text = block.citations[0]
    block.citations = [
        rng.choice(
            [
                re.sub(r"rows=\[(.*)\]", r'rows="\1"', text),
                re.sub(r"sheet=(\d)", r'sheet="\1"', text),
                re.sub(r" rows=\[.*\]", " rows=[]", text),
            ]
        )
    ]
    return plan


def unknown_file(rng: Random, profile: str) -> Plan:
    plan = told_in_paragraphs(rng, profile)
    block = plan.blocks[0]
    old = block.citations[0]
    block.citations = [
        rng.choice(
            [re.sub(r'file="[^"]*"', 'file="archive:unknown/ghost.pdf"', old, count=1), '<CITATION url="https://example.org/page" />']
        )
    ]
    return plan


def unknown_page(rng: Random, profile: str) -> Plan:
    plan = told_in_paragraphs(rng, profile)
    plan.blocks[0].citations = [re.sub(r"page=\d+", f"page={rng.randint(60, 900)}", plan.blocks[0].citations[0])]
    return plan


def unknown_row(rng: Random, profile: str) -> Plan:
    plan = told_in_rows(rng, profile)
    (block,) = cited(plan)
    text = block.citations[0]
    block.citations = [
        rng.choice([text.replace("rows=[", "rows=[1, "), re.sub(r"sheet=\d", "sheet=9", text), text.replace("]", ", 4711]")])
    ]
    return plan


def cited_before(rng: Random, profile: str) -> Plan:
    plan = told_in_paragraphs(rng, profile)
    block = plan.blocks[0]
    plan.blocks.insert(0, Block(text=block.citations.pop(), kind="citation"))
    return plan


def cited_within(rng: Random, profile: str) -> Plan:
    plan = told_in_paragraphs(rng, profile)
    block = rng.choice(plan.blocks)
    words = block.text.split(" ")
    words.insert(2, block.citations.pop())
    block.text = " ".join(words)
    return plan


def cited_later(rng: Random, profile: str) -> Plan:
    plan = told_in_paragraphs(rng, profile, least=3)
    plan.blocks[1].citations.insert(0, plan.blocks[0].citations.pop())
    return plan


def too_many(rng: Random, profile: str) -> Plan:
    plan = told_in_paragraphs(rng, profile, least=3)
    everything = [fragment.citation() for fragment in plan.fragments]
    if rng.random() < 0.5:
        plan.blocks[0].citations = everything
    else:
        plan.blocks = [Block(text=" ".join(fragment.text for fragment in plan.fragments), citations=everything)]
    return plan


def collected(rng: Random, profile: str) -> Plan:
    plan = told_in_paragraphs(rng, profile, least=3)
    everything = [block.citations.pop() for block in plan.blocks]
    head = rng.choice([[], [Block(text="## Sources", kind="heading")], [Block(text="Sources:", kind="lead")]])
    plan.blocks += [*head, Block(text="\n".join(everything), kind="citation")]
    return plan


def supplement_off(rng: Random, profile: str) -> Plan:
    plan = supplemented(rng, profile)
    plan.has_self_knowledge = rng.choice([None, False])
    return plan


def supplement_needless(rng: Random, profile: str) -> Plan:
    plan = told_in_paragraphs(rng, profile)
    plan.has_self_knowledge = True
    background = plan.world.background
    plan.blocks.append(Block(text=f"Supplement: {background[0].upper()}{background[1:]}", kind="supplement"))
    return plan


def supplement_within(rng: Random, profile: str) -> Plan:
    plan = supplemented(rng, profile)
    while plan.blocks[-2].kind != "paragraph":
        plan = supplemented(rng, profile)
    last = plan.blocks.pop()
    if not last.text.lower().startswith(("supplement", "general", "**")):
        last.text = f"Supplement: {last.text}"
    block = plan.blocks[-1]
    block.text = f"{block.text} {last.text}"
    return plan


FORBIDDEN: Final = (
    "It usually costs about {n} EUR, though that may vary.",
    "There may be a {p} percent discount for early orders.",
    "It was probably introduced in {y}.",
    "It may well rank first among comparable notions.",
    "Our internal policy probably demands a second signature for it.",
    "As of today it is possibly out of stock.",
    "The latest update may have changed it last week.",
    "It possibly reaches {n} units in a typical year.",
)


def supplement_scope(rng: Random, profile: str) -> Plan:
    plan = supplemented(rng, profile)
    extra = rng.choice(FORBIDDEN).format(n=rng.randint(40, 900), p=rng.randint(5, 30), y=rng.randint(1970, 2024))
    plan.blocks[-1].text = f"{plan.blocks[-1].text} {extra}"
    return plan


def supplement_cited(rng: Random, profile: str) -> Plan:
    plan = supplemented(rng, profile)
    plan.blocks[-1].citations = [plan.fragments[0].citation()]
    plan.blocks[-1].setting = rng.choice(["behind", "below", "free"])
    return plan


def certain(rng: Random, profile: str) -> Plan:
    plan = supplemented(rng, profile)
    topic = plan.world.beyond
    flat = rng.choice(
        [
            f"These days {topic} is a topic for every newcomer, and nearly all suppliers offer help with it.",
            f"{topic.capitalize()} has become the standard everywhere and always pays off.",
            f"Experts agree nowadays that {topic} is the most important thing to look at.",
        ]
    )
    mark = plan.blocks[-1].text.split(":")[0] + ":" if ":" in plan.blocks[-1].text else ""
    mark = mark + "**" if mark.startswith("**") else mark
    plan.blocks[-1].text = f"{mark} {flat}".strip()
    return plan


def unchecked(rng: Random, profile: str) -> Plan:
    plan, _, _ = plain(rng, profile)
    plan.is_self_checked = False
    return plan


REPLY_WAYS: Final[tuple[Way, ...]] = (
    *ways(R.TRUNCATION_COUNTS, "not said", counts_missing, also=(R.INSTRUCTIONS,)),
    *ways(R.TRUNCATION_COUNTS, "the total alone", counts_in_part, also=(R.INSTRUCTIONS,)),
    *ways(R.TRUNCATION_COUNTS, "another total", counts_wrong, also=(R.INSTRUCTIONS,)),
    *ways(R.FILE_NAMES, "another name", another_name, also=(R.CITATION_UNRESOLVED,)),
    *ways(R.SOURCE_CODES, "the column", src_column, also=(R.INSTRUCTIONS,)),
    *ways(R.SOURCE_CODES, "a code", src_code, also=(R.INSTRUCTIONS,)),
    *ways(R.INSTRUCTIONS, "rows of a sheet apart", rows_apart),
    *ways(R.INSTRUCTIONS, "a citation within the line", table_cited_on_the_line, instead=(R.CITATION_PLACEMENT,)),
    *ways(R.INSTRUCTIONS, "a sheet left out", sheet_uncited, instead=(R.CITATION_MISSING,)),
    *ways(R.IMAGE_IGNORED, "left out", image_left_out, profiles=FIRST_ONLY, also=(R.INSTRUCTIONS,)),
    *ways(R.IMAGE_IGNORED, "another picture", image_changed, profiles=FIRST_ONLY, also=(R.INSTRUCTIONS,)),
    *ways(R.IMAGE_MISPLACED, "to the next paragraph", image_moved, profiles=FIRST_ONLY, also=(R.INSTRUCTIONS,)),
    *ways(R.IMAGE_MISPLACED, "to the front", image_to_the_front, profiles=FIRST_ONLY, also=(R.INSTRUCTIONS,)),
    *ways(R.IMAGES_AT_END, "collected", images_collected, profiles=FIRST_ONLY, also=(R.IMAGE_MISPLACED, R.INSTRUCTIONS)),
    *ways(R.CITATION_MISSING, "none at all", uncited, also=(R.INSTRUCTIONS,)),
    *ways(R.CITATION_MISSING, "one paragraph without", one_uncited, instead=(R.CITATION_PLACEMENT,)),
    *ways(R.CITATION_GRAMMAR, "a document garbled", garbled, also=(R.CITATION_MISSING,)),
    *ways(R.CITATION_GRAMMAR, "rows garbled", garbled_rows, also=(R.CITATION_MISSING, R.INSTRUCTIONS)),
    *ways(R.CITATION_UNRESOLVED, "an unknown file", unknown_file),
    *ways(R.CITATION_UNRESOLVED, "an unknown page", unknown_page),
    *ways(R.CITATION_UNRESOLVED, "an unknown row", unknown_row),
    *ways(R.CITATION_PLACEMENT, "before the paragraph", cited_before, also=(R.CITATION_MISSING,)),
    *ways(R.CITATION_PLACEMENT, "within the sentence", cited_within, also=(R.CITATION_MISSING,)),
    *ways(R.CITATION_PLACEMENT, "a paragraph later", cited_later, instead=(R.CITATION_MISSING,)),
    *ways(R.CITATION_COUNT, "three", too_many),
    *ways(R.CITATIONS_AT_END, "collected", collected, also=(R.CITATION_MISSING, R.CITATION_PLACEMENT, R.CITATION_COUNT, R.INSTRUCTIONS)),
    *ways(R.SELF_KNOWLEDGE_OFF, "not enabled", supplement_off, profiles=FIRST_ONLY),
    *ways(R.SELF_KNOWLEDGE_NEEDLESS, "retrieval did", supplement_needless, profiles=FIRST_ONLY),
    *ways(R.SELF_KNOWLEDGE_MIXED, "in one paragraph", supplement_within, profiles=FIRST_ONLY, also=(R.SELF_KNOWLEDGE_CITED,)),
    *ways(R.SELF_KNOWLEDGE_SCOPE, "of a forbidden kind", supplement_scope, profiles=FIRST_ONLY),
    *ways(R.SELF_KNOWLEDGE_CITED, "with a citation", supplement_cited, profiles=FIRST_ONLY),
    *ways(R.UNCERTAINTY_UNSTATED, "said flatly", certain, profiles=FIRST_ONLY, also=(R.SELF_KNOWLEDGE_SCOPE,)),
    *ways(R.SELF_CHECK, "not asked for", unchecked, profiles=FIRST_ONLY),
)
