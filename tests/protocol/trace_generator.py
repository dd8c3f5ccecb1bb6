"""Correct traces of both profiles, written from the specification: every type of question, every kind of result, varied wording.

    correct(rng, "first_call")   one trace that breaks nothing
    cases(5000, seed=1)          half correct, half with one rule broken, in a fixed order

A seed decides everything. Where the specification leaves room, a correct trace keeps to what every reading of it allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final

from trace_domains import WORLDS
from trace_plans import NOTHING, Block, Call, Fragment, Plan, Row, Table, image, render_table, render_text
from trace_questions import PAIRS, TABLE_TYPES, TEXT_TYPES, WHOLE, Asked, ask
from trace_replies import not_found_block, reply_from_table, reply_from_text

from evidentia.contracts.protocol import AgentTrace, Breadth, ProtocolRule, QuestionType, SkillTool

if TYPE_CHECKING:
    from collections.abc import Callable

    from trace_domains import World

FIRST_CALL: Final = "first_call"
THOROUGH: Final = "thorough"
TOP_K: Final = {
    FIRST_CALL: {Breadth.LOOKUP: 50, Breadth.MODERATE: 50, Breadth.BROAD: 100, Breadth.UNSURE: 50},
    THOROUGH: {Breadth.LOOKUP: 30, Breadth.MODERATE: 50, Breadth.BROAD: 100, Breadth.UNSURE: 100},
}
OMITTED: Final = {FIRST_CALL: 50, THOROUGH: 100}
"""What a missing top_k stands for."""

UNCLEAR_WORDINGS: Final = (QuestionType.DEFINITION, QuestionType.MIXED, QuestionType.LIST)
"""Types whose wordings here can be read in two ways; they are always labelled."""


@dataclass(frozen=True)
class Case:
    """A trace and what has to be found in it: one of `expected` (nothing when empty), and at most `also` besides."""

    trace: AgentTrace
    expected: frozenset[ProtocolRule] = frozenset()
    also: frozenset[ProtocolRule] = frozenset()
    way: str = "correct"


def start(rng: Random, profile: str, question_type: QuestionType, *, world: World | None = None) -> tuple[Plan, Asked]:
    """Return an empty plan for a question."""
    world = world or rng.choice(WORLDS)
    asked = ask(world, question_type, rng)
    plan = Plan(world=world, profile=profile, question=asked.question, entities=asked.entities)
    plan.question_type, plan.breadth = asked.question_type, asked.breadth
    return plan, asked


def fragments_for(plan: Plan, asked: Asked, rng: Random, *, images: int = 0) -> list[Fragment]:
    """Return evidence in text that answers the question, a page for each sentence or two on one."""
    world = plan.world
    sentences = sentences_for(world, asked, rng)
    file = (
        f"{world.key}:{rng.choice(['guide', 'docs/manual', 'handbook', 'intern/notes'])}-{rng.randrange(100)}.{rng.choice(['pdf', 'docx'])}"
    )
    page = rng.randrange(12)
    found = [Fragment(file=file, page=page + number, text=sentence) for number, sentence in enumerate(sentences)]
    if rng.random() < 0.2:
        found[0].pages = (found[0].page, found[0].page + 20)
    for number in range(images):
        found[number % len(found)].images.append(image(world, rng))
    return found


def sentences_for(world: World, asked: Asked, rng: Random) -> list[str]:
    """Return what documents say about a question."""
    told = {
        QuestionType.CONCEPT: world.definition,
        QuestionType.DEFINITION: world.definition,
        QuestionType.WORKFLOW: world.steps,
        QuestionType.POLICY: world.rules,
        QuestionType.EXPLANATION: world.reasons,
    }
    if asked.question_type in told:
        return list(told[asked.question_type])
    if asked.question_type is QuestionType.HISTORY:
        (name,) = asked.entities
        values = [(year, rng.randint(world.count.least, world.count.most)) for year in range(2019, 2023)]
        return [f"In {year} the {world.count.name} of {name} stood at {value} {world.count.unit}." for year, value in values]
    one = asked.attribute
    kind = f"the {world.one} " if asked.question_type in WHOLE else ""
    sentences = [f"The {one.name} of {kind}{name} is {rng.randint(one.least, one.most)} {one.unit}." for name in asked.entities]
    if asked.question_type is QuestionType.TABLE:
        count = world.count
        sentences = [f"{told[:-1]}, its {count.name} {rng.randint(count.least, count.most)} {count.unit}." for told in sentences]
    if asked.question_type is QuestionType.MIXED:
        sentences.append(f"The {world.measure.name} of {asked.entities[0]} is explained by the way the {world.one} is used.")
    return sentences


def table_for(plan: Plan, asked: Asked, rng: Random, *, layout: str = "one", omitted: int = 0) -> Table:
    """Return rows that answer the question, on one sheet, on two, or in two files."""
    world = plan.world
    files = [f"{world.key}:{rng.choice(['figures', 'register', 'data/sheet'])}.{rng.choice(['xlsx', 'ods', 'csv'])}"]
    if layout == "files":
        files.append(f"{world.key}:archive/{rng.choice(['older', 'branch', 'second'])}.xlsx")
    header: tuple[str, ...]
    if asked.question_type is QuestionType.HISTORY:
        header = (world.one, "year", f"{world.count.name} ({world.count.unit})")
        cells: list[tuple[str, ...]] = [
            (asked.entities[0], str(year), str(rng.randint(world.count.least, world.count.most))) for year in range(2019, 2023)
        ]
    elif asked.question_type in TEXT_TYPES:
        header = ("term", "note")
        cells = [(world.term, sentence) for sentence in sentences_for(world, asked, rng)]
    else:
        figures = (world.money, world.count, world.measure)
        header = (world.one, *(f"{one.name} ({one.unit})" for one in figures))
        names = asked.entities if asked.question_type in WHOLE or rng.random() < 0.5 else world.names
        cells = [(name, *(str(rng.randint(one.least, one.most)) for one in figures)) for name in names]
    first = rng.randint(2, 30)
    rows: list[Row] = []
    for number, told in enumerate(cells):
        is_second = layout != "one" and number % 2 == 1
        place = (2, 1) if is_second and layout == "files" else (1, 2) if is_second else (1, 1)
        rows.append(Row(file=place[0], sheet=place[1], row=first + number, cells=told))
    if len(cells) == 1:
        files = files[:1]
    return Table(files=files, header=header, rows=rows, omitted=omitted)


def text_call(plan: Plan, query: str, rng: Random, *, is_retry: bool = False) -> Call:
    """Return a call of `rag_retrieve` with a top_k that the profile wants."""
    assert plan.breadth is not None
    wanted = 100 if is_retry and plan.profile == FIRST_CALL else TOP_K[plan.profile][plan.breadth]
    is_left_out = wanted == OMITTED[plan.profile] and rng.random() < 0.3
    return Call(name="rag_retrieve", query=query, top_k=None if is_left_out else wanted)


def role_call(plan: Plan, role: str, query: str, rng: Random, *, is_retry: bool = False) -> Call:
    """Return a call of one of the sources: text, table, local or the skill's tool."""
    if role == "text":
        return text_call(plan, query, rng, is_retry=is_retry)
    return Call(name={"table": "table_rag_retrieve", "local": "local_file_retrieve", "skill": "intranet_search"}[role], query=query)


def bad_result(plan: Plan, role: str, rng: Random, *, kind: str | None = None) -> str:
    """Return a result that is insufficient in both profiles."""
    kinds = ["empty", "error", "off_topic"] + (["no_spreadsheet"] if role == "table" else [])
    kind = kind or rng.choice(kinds)
    if kind == "empty":
        return rng.choice(["", "RAG_KNOWLEDGE BEGIN\nRAG_KNOWLEDGE END"]) if role in {"text", "local"} else ""
    other = far_world(plan, rng)
    if kind == "error":
        card = f"Error: no rows matched\n- sheet 'Main' of {other.key}.xlsx: {other.one} (text), {other.count.name} (number); 12 rows"
        return rng.choice([NOTHING, "Error: the search timed out", *([card] if role == "table" else [])])
    if kind == "no_spreadsheet":
        return rng.choice(["no excel files found", f"no excel files found\n{NOTHING}"])
    asked = ask(other, QuestionType.VALUE if role == "table" else QuestionType.DEFINITION, rng)
    away = Plan(world=other, profile=plan.profile, question=asked.question)
    return render_table(table_for(away, asked, rng)) if role == "table" else render_text(fragments_for(away, asked, rng))


def far_world(plan: Plan, rng: Random) -> World:
    """Return a world that shares no word with the question."""
    words = {word.strip("?.,:").lower() for word in plan.question.split()}
    words = {word for word in words if len(word) > 3}

    def shares(world: World) -> bool:
        figures = " ".join(f"{one.name} {one.other} {one.unit}" for one in (world.money, world.count, world.measure))
        told = f"{world.one} {world.many} {world.other} {figures} {world.term} {' '.join(world.definition)} {' '.join(world.names)}"
        return any(word.rstrip("s") in told.lower() for word in words)

    return rng.choice([world for world in WORLDS if world is not plan.world and not shares(world)])


def give(plan: Plan, asked: Asked, call: Call, role: str, rng: Random, *, images: int = 0, layout: str = "one", omitted: int = 0) -> None:
    """Let a call return what answers the question, and write the reply from it."""
    if role == "table":
        plan.table = table_for(plan, asked, rng, layout=layout, omitted=omitted)
        call.result = render_table(plan.table)
        reply_from_table(plan, asked, rng)
        return
    plan.fragments = fragments_for(plan, asked, rng, images=images)
    call.result = render_text(plan.fragments)
    reply_from_text(plan, asked, rng)


def with_skill(plan: Plan, rng: Random, *, is_suitable: bool) -> None:
    """Register a skill's tool that suits the question, or one that does not."""
    if is_suitable:
        topics = (*plan.entities, plan.world.one, plan.world.many, plan.world.term)
        plan.skills.append(SkillTool(name="intranet_search", description=f"Finds pages about {plan.world.many}.", topics=topics))
        return
    other = far_world(plan, rng)
    plan.skills.append(
        SkillTool(name=f"{other.key}_search", description=f"Knows {other.many} only.", topics=(other.one, other.many, other.term))
    )


def chain(profile: str, question_type: QuestionType, *, has_skill: bool) -> list[str]:
    """Return the sources in the order in which a failing search asks them."""
    pair = ["text", "table"] if question_type in TEXT_TYPES else ["table", "text"]
    if profile == FIRST_CALL:
        return ["skill", "skill", pair[0]] if has_skill else [pair[0], *pair]
    return [*(["skill"] if has_skill else []), *pair, "local"]


def text_answer(rng: Random, profile: str) -> Plan:
    """One call of `rag_retrieve` that does."""
    plan, asked = start(rng, profile, rng.choice(TEXT_TYPES))
    call = text_call(plan, asked.queries[0], rng)
    plan.calls.append(call)
    give(plan, asked, call, "text", rng, images=rng.choice([0, 0, 0, 1, 2, 4]))
    return plan


def table_answer(rng: Random, profile: str) -> Plan:
    """One call of `table_rag_retrieve` that does; where the profile calls a cut result insufficient, the other sources follow."""
    plan, asked = start(rng, profile, rng.choice(TABLE_TYPES))
    is_cut = asked.question_type in {*WHOLE, QuestionType.HISTORY} and rng.random() < 0.5
    call = Call(name="table_rag_retrieve", query=asked.queries[0])
    plan.calls.append(call)
    layout = rng.choice(["one", "one", "sheets", "files"])
    give(plan, asked, call, "table", rng, layout=layout, omitted=rng.choice([3, 41, 1250]) if is_cut else 0)
    if profile == THOROUGH and (is_cut or asked.question_type is QuestionType.MIXED):
        for role, query in zip(("text", "local"), asked.queries[1:3], strict=True):
            call = role_call(plan, role, query, rng)
            call.result = bad_result(plan, role, rng)
            plan.calls.append(call)
    return plan


def skill_answer(rng: Random, profile: str) -> Plan:
    """A skill's tool that suits is asked first and does, or one that does not suit is left alone."""
    is_suitable = rng.random() < 0.6
    plan, asked = start(rng, profile, rng.choice(TEXT_TYPES if is_suitable else (*TEXT_TYPES, QuestionType.VALUE, QuestionType.PRICE)))
    with_skill(plan, rng, is_suitable=is_suitable)
    role = "skill" if is_suitable else chain(profile, asked.question_type, has_skill=False)[0]
    call = role_call(plan, role, asked.queries[0], rng)
    plan.calls.append(call)
    give(plan, asked, call, role, rng)
    if is_suitable and rng.random() < 0.5:
        url = f"https://intranet.example/{plan.world.key}/{rng.randrange(900)}"
        call.result = f"{plan.world.term.title()}\n{url}\n" + "\n".join(fragment.text for fragment in plan.fragments)
        for block in plan.blocks:
            block.citations = [f'<CITATION url="{url}" />'] if block.citations else []
    return plan


def searched(rng: Random, profile: str) -> Plan:
    """Some results are insufficient, and the search goes on as the profile says until one does."""
    plan, asked = start(rng, profile, rng.choice((*TEXT_TYPES, *TABLE_TYPES)))
    if asked.question_type is QuestionType.MIXED:
        plan, asked = start(rng, profile, QuestionType.VALUE)
    has_skill = rng.random() < 0.25
    if has_skill:
        with_skill(plan, rng, is_suitable=True)
    roles = chain(profile, asked.question_type, has_skill=has_skill)
    good = rng.randrange(1, len(roles))
    for number, role in enumerate(roles[: good + 1]):
        call = role_call(plan, role, asked.queries[min(number, len(asked.queries) - 1)], rng, is_retry=number > 0)
        plan.calls.append(call)
        if number == good:
            give(plan, asked, call, role, rng)
        else:
            call.result, call.is_good = bad_result(plan, role, rng), False
    if len(roles) > len(asked.queries):
        plan.calls[-1].query = f"{plan.entities[0]} {plan.world.other}"
    return plan


def narrow(rng: Random, profile: str) -> Plan:
    """`thorough` alone: the first result misses the entity or tells half of a comparison, so the other source is asked."""
    is_half = rng.random() < 0.5
    plan, asked = start(rng, profile, QuestionType.COMPARISON if is_half else QuestionType.VALUE)
    first = Call(name="table_rag_retrieve", query=asked.queries[0], is_good=False)
    table = table_for(plan, asked, rng)
    kept = [row for row in table.rows if (row.cells[0] == asked.entities[0]) == is_half]
    if not is_half and not kept:
        others = [name for name in plan.world.names if name not in asked.entities]
        kept = [Row(file=1, sheet=1, row=9 + number, cells=(name, "11", "12", "13")) for number, name in enumerate(others)]
    table.rows = kept
    first.result = render_table(table)
    second = text_call(plan, asked.queries[1], rng)
    plan.calls += [first, second]
    give(plan, asked, second, "text", rng)
    return plan


def not_found(rng: Random, profile: str) -> Plan:
    """Everything that may be asked was asked, and nothing was there."""
    plan, asked = start(rng, profile, rng.choice((*TEXT_TYPES, QuestionType.VALUE, QuestionType.PRICE, QuestionType.QUANTITY)))
    has_skill = rng.random() < 0.25
    if has_skill:
        with_skill(plan, rng, is_suitable=True)
    for number, role in enumerate(chain(profile, asked.question_type, has_skill=has_skill)):
        query = asked.queries[number] if number < len(asked.queries) else f"{plan.entities[0]} {plan.world.other}"
        call = role_call(plan, role, query, rng, is_retry=number > 0)
        call.result, call.is_good = bad_result(plan, role, rng), False
        plan.calls.append(call)
    plan.blocks = [not_found_block(plan, rng)]
    return plan


def fallen_back(rng: Random, profile: str) -> Plan:
    """There is no spreadsheet, and the tool itself went on to the text: one call, and it does."""
    kinds = (QuestionType.VALUE, QuestionType.PRICE, QuestionType.QUANTITY, QuestionType.SPECIFICATION, QuestionType.UNCLEAR)
    plan, asked = start(rng, profile, rng.choice((*kinds, *PAIRS)))
    plan.fragments = fragments_for(plan, asked, rng)
    call = Call(name="table_rag_retrieve", query=asked.queries[0])
    call.result = f"no excel files found\n{render_text(plan.fragments)}"
    plan.calls.append(call)
    reply_from_text(plan, asked, rng)
    return plan


def supplemented(rng: Random, profile: str) -> Plan:
    """The question asks for something besides that retrieval left open; a supplement adds common background on it."""
    world = rng.choice(WORLDS)
    plan, asked = start(rng, profile, rng.choice(TEXT_TYPES), world=world)
    plan.question = f"{asked.question.rstrip('?.')}, and what is {world.beyond}?"
    plan.entities = (*asked.entities, world.beyond)
    plan.has_self_knowledge = True
    call = text_call(plan, f"{asked.queries[0]} {world.beyond}", rng)
    plan.calls.append(call)
    give(plan, asked, call, "text", rng)
    plan.blocks = [block for block in plan.blocks if block.kind != "closing"]
    mark = rng.choice(["Supplement:", "General knowledge:", "**Supplement:**", "**General knowledge:**"])
    text = world.background[0].upper() + world.background[1:]
    if rng.random() < 0.25:
        plan.blocks += [Block(text=f"## {mark.strip('*:')}", kind="heading"), Block(text=text, kind="supplement")]
    else:
        plan.blocks.append(Block(text=f"{mark} {text}", kind="supplement"))
    return plan


@dataclass(frozen=True)
class Scenario:
    """A way to write a correct trace, the profiles it belongs to, and how often it is taken."""

    write: Callable[[Random, str], Plan]
    profiles: tuple[str, ...] = (FIRST_CALL, THOROUGH)
    share: int = 3


def scenarios() -> tuple[Scenario, ...]:
    """Return every scenario; those of tasks beside knowledge stand in their own module."""
    from trace_tasks import code_task, explicit_file, mixed_task

    return (
        Scenario(text_answer, share=6),
        Scenario(table_answer, share=7),
        Scenario(skill_answer),
        Scenario(searched, share=6),
        Scenario(narrow, (THOROUGH,)),
        Scenario(not_found),
        Scenario(fallen_back),
        Scenario(supplemented, (FIRST_CALL,)),
        Scenario(code_task, (FIRST_CALL,), share=1),
        Scenario(mixed_task, (FIRST_CALL,), share=2),
        Scenario(explicit_file, (FIRST_CALL,), share=1),
    )


def dress(plan: Plan, rng: Random) -> Plan:
    """Add what may stand in any trace: spans without overlap, a raw query that works, labels left out."""
    if rng.random() < 0.4:
        at = rng.random() * 100
        for _ in plan.calls:
            took = 0.1 + rng.random()
            plan.spans.append((at, at + took))
            at += took + rng.choice([0.0, 0.5])
    if len(plan.calls) == 1 and plan.question_type is not None and plan.calls[0].query and rng.random() < 0.06:
        plan.calls[0].query, plan.raw_query_works = plan.question, True
    if plan.question_type not in UNCLEAR_WORDINGS and plan.task is None and rng.random() < 0.2:
        plan.question_type = None
    if plan.profile == FIRST_CALL and plan.task is None and rng.random() < 0.2:
        plan.breadth = None
    return plan


def correct(rng: Random, profile: str) -> Plan:
    """Return a plan that breaks nothing."""
    suitable = [scenario for scenario in scenarios() if profile in scenario.profiles]
    (scenario,) = rng.choices(suitable, weights=[scenario.share for scenario in suitable])
    return dress(scenario.write(rng, profile), rng)


def cases(count: int, *, seed: int = 1) -> list[Case]:
    """Return cases, half of them correct; the breaks go round all ways of breaking in both profiles."""
    from trace_breaks import WAYS, break_one

    made: list[Case] = []
    for number in range(count):
        rng = Random(f"{seed}/{number}")
        if number % 2:
            way = WAYS[(number // 2) % len(WAYS)]
            made.append(break_one(way, rng, name=f"{seed}/{number} {way.rule.value} {way.name}"))
        else:
            plan = correct(rng, (FIRST_CALL, THOROUGH)[number // 2 % 2])
            made.append(Case(trace=plan.trace(f"{seed}/{number}")))
    return made
