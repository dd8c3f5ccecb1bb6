"""Breaks in what an agent calls: tools, order, queries, breadth, retries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trace_generator import (
    FIRST_CALL,
    THOROUGH,
    TOP_K,
    bad_result,
    chain,
    far_world,
    fragments_for,
    give,
    role_call,
    start,
    table_for,
    text_call,
    with_skill,
)
from trace_plans import Block, Call, Plan, render_table, render_text
from trace_questions import TEXT_TYPES, Asked
from trace_replies import not_found_block, reply_from_table, reply_from_text
from trace_tasks import explicit_file, mixed_task
from trace_way import Way, ways

from evidentia.contracts.protocol import Breadth, ProtocolRule, QuestionType, TaskKind

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

PLAIN: Final = (QuestionType.VALUE, QuestionType.PRICE, QuestionType.QUANTITY, QuestionType.SPECIFICATION)
"""Types that both profiles send to the tables."""
FIRST_ONLY: Final = (FIRST_CALL,)
THOROUGH_ONLY: Final = (THOROUGH,)
R = ProtocolRule


def plain(rng: Random, profile: str, *, types: tuple[QuestionType, ...] = (*PLAIN, *TEXT_TYPES)) -> tuple[Plan, Asked, str]:
    """Return a correct trace of one call."""
    plan, asked = start(rng, profile, rng.choice(types))
    role = chain(profile, asked.question_type, has_skill=False)[0]
    call = role_call(plan, role, asked.queries[0], rng)
    plan.calls.append(call)
    give(plan, asked, call, role, rng)
    return plan, asked, role


def failing(
    rng: Random, profile: str, roles: Sequence[str], *, types: tuple[QuestionType, ...] = PLAIN, kind: str | None = None
) -> tuple[Plan, Asked]:
    """Return a trace whose calls all came back with nothing of use, without a reply."""
    plan, asked = start(rng, profile, rng.choice(types))
    for number, role in enumerate(roles):
        query = asked.queries[number] if number < len(asked.queries) else f"{plan.entities[0]} {plan.world.other}"
        call = role_call(plan, role, query, rng, is_retry=number > 0)
        call.result, call.is_good = bad_result(plan, role, rng, kind=kind), False
        plan.calls.append(call)
    return plan, asked


def succeed(plan: Plan, asked: Asked, rng: Random) -> Plan:
    """Let the last call of a trace do after all."""
    role = {"rag_retrieve": "text", "table_rag_retrieve": "table", "local_file_retrieve": "local"}.get(plan.calls[-1].name, "skill")
    give(plan, asked, plan.calls[-1], role, rng)
    return plan


def foreign_tool(rng: Random, profile: str) -> Plan:
    plan, asked, _ = plain(rng, profile)
    name = rng.choice(["web_search", "sql_query", "browser_open", "memory_lookup", "wikipedia", "calculator"])
    plan.calls.insert(rng.randrange(2), Call(name=name, query=asked.queries[0], result="..."))
    return plan


def local_in_first_call(rng: Random, profile: str) -> Plan:
    plan, asked = failing(rng, profile, ["table", "table", "text"], types=PLAIN)
    plan.calls[-1] = Call(name="local_file_retrieve", query=plan.calls[-1].query)
    return succeed(plan, asked, rng)


def filesystem_first(rng: Random, profile: str) -> Plan:
    plan, _, _ = plain(rng, profile)
    word = plan.world.key
    probe = rng.choice(
        [
            Call(name="Glob", extra={"pattern": f"**/*{word}*"}, result=f"{word}.pdf"),
            Call(name="Read", extra={"file_path": f"docs/{word}.md"}, result="..."),
            Call(name="LS", extra={"path": "docs"}, result=f"{word}.md"),
            Call(name="Bash", extra={"command": f"grep -ri '{word}' ."}, result="..."),
            Call(
                name="bash",
                extra={"command": rng.choice(["ls -la docs", "cat notes.txt", "head -5 a.csv", "find . -name '*.pdf'", "tail -3 x"])},
            ),
            Call(name="Grep", extra={"pattern": word, "path": "."}, result="..."),
        ]
    )
    plan.calls.insert(0, probe)
    return plan


def filesystem_after_nothing(rng: Random, profile: str) -> Plan:
    plan, _ = failing(rng, profile, ["table", "table", "text"])
    plan.calls.append(Call(name=rng.choice(["Grep", "Glob"]), extra={"pattern": plan.entities[0]}, result="nothing"))
    plan.blocks = [not_found_block(plan, rng)]
    return plan


def other_file(rng: Random, profile: str) -> Plan:
    plan = explicit_file(rng, profile)
    plan.calls.append(Call(name="Read", extra={"file_path": "/etc/hosts" if rng.random() < 0.5 else "notes/private.md"}, result="secret"))
    return plan


def code_for_knowledge(rng: Random, profile: str) -> Plan:
    plan = mixed_task(rng, profile)
    name = rng.choice(["Grep", "Read", "Bash"])
    extra = {
        "Grep": {"pattern": plan.world.term},
        "Read": {"file_path": f"docs/{plan.world.key}.md"},
        "Bash": {"command": "cat docs/manual.md"},
    }
    plan.calls.insert(0, Call(name=name, extra=extra[name], result=plan.world.definition[0], portion=TaskKind.KNOWLEDGE))
    return plan


def skill_skipped(rng: Random, profile: str) -> Plan:
    plan, _, _ = plain(rng, profile)
    with_skill(plan, rng, is_suitable=True)
    return plan


def overlapping(rng: Random, profile: str) -> Plan:
    roles = ["table", "table"] if profile == FIRST_CALL else ["table", "text"]
    plan, asked = failing(rng, profile, roles)
    succeed(plan, asked, rng)
    plan.spans = rng.choice([[(1.0, 3.0), (2.0, 4.0)], [(0.0, 9.5), (0.0, 1.5)], [(5.0, 5.8), (5.7, 6.0)]])
    return plan


def no_retrieval(rng: Random, profile: str) -> Plan:
    plan, _, _ = plain(rng, profile)
    plan.calls = []
    for block in plan.blocks:
        block.citations = []
    return plan


def local_at_once(rng: Random, profile: str) -> Plan:
    plan, asked = start(rng, profile, rng.choice((*PLAIN, *TEXT_TYPES)))
    plan.calls.append(role_call(plan, "local", asked.queries[0], rng))
    return succeed(plan, asked, rng)


def local_before_other(rng: Random, profile: str) -> Plan:
    plan, asked = failing(rng, profile, [rng.choice(["table"]), "local"])
    return succeed(plan, asked, rng)


def text_for_figures(rng: Random, profile: str) -> Plan:
    plan, asked = start(
        rng, profile, rng.choice((*PLAIN, QuestionType.RANKING, QuestionType.COMPARISON, QuestionType.LIST, QuestionType.NAME_LOOKUP))
    )
    call = text_call(plan, asked.queries[0], rng)
    plan.calls.append(call)
    give(plan, asked, call, "text", rng)
    return plan


def table_for_text(rng: Random, profile: str) -> Plan:
    plan, asked = start(rng, profile, rng.choice(TEXT_TYPES))
    plan.fragments = fragments_for(plan, asked, rng)
    call = Call(name="table_rag_retrieve", query=asked.queries[0], result=f"no excel files found\n{render_text(plan.fragments)}")
    plan.calls.append(call)
    reply_from_text(plan, asked, rng)
    return plan


def raw(rng: Random, profile: str) -> Plan:
    plan, _, _ = plain(rng, profile)
    question = plan.question
    plan.calls[0].query = rng.choice([question, question.lower(), f"  {question} ", question.upper()])
    plan.raw_query_works = False
    return plan


def entity_lost(rng: Random, profile: str) -> Plan:
    plan, asked, _ = plain(rng, profile)
    if asked.question_type in TEXT_TYPES:
        plan.calls[0].query = {
            QuestionType.CONCEPT: "concept idea explanation",
            QuestionType.DEFINITION: "definition meaning",
            QuestionType.WORKFLOW: "procedure steps",
            QuestionType.POLICY: "rules policy",
            QuestionType.EXPLANATION: "explanation reasons",
        }[asked.question_type]
    else:
        plan.calls[0].query = f"{asked.attribute.name} {asked.attribute.other}"
    return plan


def other_topic(rng: Random, profile: str) -> Plan:
    plan, asked, _ = plain(rng, profile)
    other = far_world(plan, rng)
    topics = [f"{other.names[0]} {other.names[2]} {other.term}", f"{other.many} {other.names[1]} {other.beyond} {other.term}"]
    topic = f"{rng.choice(topics)} {other.other} football league winners"
    plan.calls[0].query = f"{asked.queries[0]} {topic}"
    return plan


def top_k_on_table(rng: Random, profile: str) -> Plan:
    plan, _, _ = plain(rng, profile, types=PLAIN)
    plan.calls[0].top_k = rng.choice([10, 30, 50, 100])
    return plan


def wrong_top_k(rng: Random, profile: str) -> Plan:
    plan, asked = start(rng, profile, rng.choice(TEXT_TYPES))
    assert plan.breadth is not None
    plan.calls.append(text_call(plan, asked.queries[0], rng))
    wanted = TOP_K[profile][plan.breadth]
    plan.calls[0].top_k = rng.choice([value for value in (5, 10, 20, 100, 200) if value != wanted])
    give(plan, asked, plan.calls[0], "text", rng)
    return plan


def narrow_top_k(rng: Random, profile: str) -> Plan:
    plan, asked = start(rng, profile, QuestionType.EXPLANATION)
    plan.question = f"Give me a comprehensive overview of everything that is written on {plan.world.term} across all our documents."
    plan.breadth = Breadth.BROAD
    plan.calls.append(Call(name="rag_retrieve", query=asked.queries[0], top_k=rng.choice([30, 50])))
    give(plan, asked, plan.calls[0], "text", rng)
    return plan


def retry_not_wider(rng: Random, profile: str) -> Plan:
    plan, asked = failing(rng, profile, ["text", "text"], types=TEXT_TYPES)
    plan.calls[1].top_k = 50
    return succeed(plan, asked, rng)


def needless(rng: Random, profile: str) -> Plan:
    plan, asked, role = plain(rng, profile)
    again = role_call(plan, role, asked.queries[1], rng, is_retry=True)
    again.result = plan.calls[0].result
    plan.calls.append(again)
    return plan


def needless_after_part(rng: Random, profile: str) -> Plan:
    plan, asked = start(rng, profile, QuestionType.COMPARISON)
    table = table_for(plan, asked, rng)
    table.rows = [row for row in table.rows if row.cells[0] == asked.entities[0]]
    plan.calls = [Call(name="table_rag_retrieve", query=query, result=render_table(table)) for query in asked.queries[:2]]
    plan.table = table
    reply_from_table(plan, asked, rng)
    return plan


def stopped_at_half(rng: Random, profile: str) -> Plan:
    plan = needless_after_part(rng, profile)
    plan.calls = plan.calls[:1]
    return plan


def stopped_at_cut(rng: Random, profile: str) -> Plan:
    plan, asked = start(rng, profile, QuestionType.LIST)
    plan.calls = [Call(name="table_rag_retrieve", query=asked.queries[0])]
    give(plan, asked, plan.calls[0], "table", rng, omitted=rng.choice([7, 90]))
    return plan


def answered_off_topic(rng: Random, profile: str) -> Plan:
    plan, _ = failing(rng, profile, ["table"], types=PLAIN, kind="empty")
    other = far_world(plan, rng)
    away, asked, _ = plain(rng, profile)
    while away.world is not other:
        away, asked, _ = plain(rng, profile)
    fragments = fragments_for(away, asked, rng)
    plan.calls[0].result = f"no excel files found\n{render_text(fragments)}"
    plan.fragments = fragments
    plan.blocks = [Block(text=fragments[0].text, citations=[fragments[0].citation()])]
    return plan


def one_too_many(rng: Random, profile: str) -> Plan:
    plan, asked = failing(rng, profile, ["table", "table", "text", "text"])
    if rng.random() < 0.5:
        return succeed(plan, asked, rng)
    plan.blocks = [not_found_block(plan, rng)]
    return plan


def switched_at_once(rng: Random, profile: str) -> Plan:
    roles, types = rng.choice([(["table", "text"], PLAIN), (["text", "table"], TEXT_TYPES)])
    plan, asked = failing(rng, profile, roles, types=types, kind=rng.choice(["empty", "error", "off_topic"]))
    return succeed(plan, asked, rng)


def same_source_again(rng: Random, profile: str) -> Plan:
    plan, asked = failing(rng, profile, ["table", "table"])
    return succeed(plan, asked, rng)


def repeated(rng: Random, profile: str) -> Plan:
    plan, asked = failing(rng, profile, ["table", "table", "text"])
    query = plan.calls[0].query
    plan.calls[1].query = rng.choice([query, query.upper(), f" {query.replace(' ', '  ')}"])
    return succeed(plan, asked, rng)


def gave_up(rng: Random, profile: str) -> Plan:
    roles, types = rng.choice([(["table"], PLAIN), (["text"], TEXT_TYPES)])
    plan, _ = failing(rng, profile, roles, types=types)
    plan.blocks = [not_found_block(plan, rng)]
    return plan


def gave_up_before_local(rng: Random, profile: str) -> Plan:
    plan, _ = failing(rng, profile, ["table", "text"])
    plan.blocks = [not_found_block(plan, rng)]
    return plan


CALL_WAYS: Final[tuple[Way, ...]] = (
    *ways(R.ALLOWED_TOOLS, "a tool of no skill", foreign_tool, profiles=FIRST_ONLY),
    *ways(
        R.ALLOWED_TOOLS,
        "the local search",
        local_in_first_call,
        profiles=FIRST_ONLY,
        instead=(R.FILESYSTEM_TOOLS,),
        also=(R.STOPPED_EARLY,),
    ),
    *ways(R.FILESYSTEM_TOOLS, "probed first", filesystem_first, profiles=FIRST_ONLY),
    *ways(R.FILESYSTEM_TOOLS, "after nothing was found", filesystem_after_nothing, profiles=FIRST_ONLY),
    *ways(R.FILESYSTEM_TOOLS, "another file than the one asked for", other_file, profiles=FIRST_ONLY),
    *ways(R.CODE_PORTION, "a code tool looked it up", code_for_knowledge, profiles=FIRST_ONLY, also=(R.FILESYSTEM_TOOLS,)),
    *ways(R.SKILL_FIRST, "skipped", skill_skipped),
    *ways(R.SEQUENTIAL, "two at a time", overlapping),
    *ways(R.ANSWER_BEFORE_RETRIEVAL, "from memory", no_retrieval),
    *ways(R.SOURCE_ORDER, "local files at once", local_at_once, profiles=THOROUGH_ONLY),
    *ways(R.SOURCE_ORDER, "local files before the text", local_before_other, profiles=THOROUGH_ONLY, instead=(R.RETRY_ORDER,)),
    *ways(R.TOOL_CHOICE, "text for figures", text_for_figures),
    *ways(R.TOOL_CHOICE, "tables for an explanation", table_for_text),
    *ways(R.RAW_QUERY, "as it was asked", raw),
    *ways(R.LOST_ENTITY, "only the attribute", entity_lost),
    *ways(R.FOREIGN_TOPIC, "another world", other_topic),
    *ways(R.TOP_K_TOOL, "on a table", top_k_on_table),
    *ways(R.TOP_K_VALUE, "another value", wrong_top_k),
    *ways(R.TOP_K_VALUE, "too narrow", narrow_top_k),
    *ways(R.TOP_K_VALUE, "a retry no wider", retry_not_wider, profiles=FIRST_ONLY),
    *ways(R.NEEDLESS_CALL, "to be thorough", needless, profiles=FIRST_ONLY),
    *ways(R.NEEDLESS_CALL, "after a partial result", needless_after_part, profiles=FIRST_ONLY),
    *ways(R.STOPPED_EARLY, "half a comparison", stopped_at_half, profiles=THOROUGH_ONLY),
    *ways(R.STOPPED_EARLY, "a cut list", stopped_at_cut, profiles=THOROUGH_ONLY),
    *ways(R.STOPPED_EARLY, "answered beside the question", answered_off_topic),
    *ways(R.CALL_CAP, "four calls", one_too_many, profiles=FIRST_ONLY),
    *ways(R.RETRY_ORDER, "switched at once", switched_at_once, profiles=FIRST_ONLY),
    *ways(R.RETRY_ORDER, "the same source again", same_source_again, profiles=THOROUGH_ONLY, also=(R.SOURCE_ORDER,)),
    *ways(R.REPEATED_QUERY, "word by word", repeated, also=(R.RETRY_ORDER,)),
    *ways(R.EARLY_NOT_FOUND, "after one call", gave_up, also=(R.STOPPED_EARLY,)),
    *ways(R.EARLY_NOT_FOUND, "before the local files", gave_up_before_local, profiles=THOROUGH_ONLY, also=(R.STOPPED_EARLY,)),
)
