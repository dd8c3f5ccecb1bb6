"""What a tool is to the protocol, and what its arguments say."""

from __future__ import annotations

from typing import Any

import pytest

from evidentia.contracts.protocol import TaskKind, ToolRole
from evidentia.protocol.classification import label_of, query_of, reads_file, role_of, serves_knowledge, top_k_of


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("rag_retrieve", ToolRole.TEXT),
        ("mcp__evidentia__rag_retrieve", ToolRole.TEXT),
        ("evidentia.table_rag_retrieve", ToolRole.TABLE),
        ("Table-RAG-Retrieve", ToolRole.TABLE),
        ("local_file_retrieve", ToolRole.LOCAL),
        ("Glob", ToolRole.FILESYSTEM),
        ("LS", ToolRole.FILESYSTEM),
        ("bash", ToolRole.FILESYSTEM),
        ("mcp__filesystem__read_file", ToolRole.FILESYSTEM),
        ("Peek", ToolRole.FILESYSTEM),
        ("web_search", ToolRole.OTHER),
        ("crm_lookup", ToolRole.SKILL),
        ("mcp__crm__crm_lookup", ToolRole.SKILL),
        ("", ToolRole.OTHER),
    ],
)
def test_role_is_told_by_name_whatever_its_prefix_and_case(name: str, role: ToolRole) -> None:
    assert role == role_of(name, skills=("crm_lookup",), forbidden=("peek",))


@pytest.mark.parametrize(
    ("arguments", "top_k"),
    [({}, None), ({"top_k": 50}, 50), ({"top_k": "50"}, 50), ({"top_k": 50.0}, 50)]
    + [({"top_k": value}, 0) for value in ("many", True, -5, 0, 2.5, [50], float("nan"), 10**400)],
)
def test_top_k_that_no_tool_takes_is_no_number(arguments: dict[str, Any], top_k: int | None) -> None:
    assert top_k == top_k_of(arguments)


def test_query_is_found_by_name_or_as_the_only_text() -> None:
    assert "a" == query_of({"query": "a", "text": "b"})
    assert "a" == query_of({"needle": "a", "top_k": 5})
    assert query_of({"from": "a", "to": "b"}) is None


def test_shell_is_named_with_its_command() -> None:
    assert "Bash (cat)" == label_of("Bash", {"command": "sudo /bin/cat x | head"})
    assert "Bash" == label_of("Bash", {})
    assert "rag_retrieve" == label_of("rag_retrieve", {"command": "cat"})


@pytest.mark.parametrize(
    ("arguments", "reads"),
    [
        ({"file_path": "notes/todo.md"}, True),
        ({"file_path": "./notes/todo.md"}, True),
        ({"path": "/srv/notes/todo.md"}, True),
        ({"command": "cat notes/todo.md"}, True),
        ({"command": "head -n 5 notes/todo.md"}, True),
        ({"file_path": "notes/todo.md.bak"}, False),
        ({"file_path": "other/notes2/todo.md"}, False),
        ({"command": "cat notes/todo.md /etc/passwd"}, False),
        ({"command": "cat notes/todo.md; rm x"}, False),
        ({"command": "cat notes/todo.md | grep x"}, False),
        ({"pattern": "**/*.md"}, False),
        ({}, False),
    ],
)
def test_only_the_very_file_counts_as_the_one_that_was_asked_for(arguments: dict[str, Any], reads: object) -> None:
    assert reads == reads_file("notes/todo.md", arguments)


def test_documents_belong_to_the_knowledge_portion_and_sources_always_do() -> None:
    def serves(task: TaskKind, role: ToolRole, path: str) -> bool:
        return serves_knowledge(task, role, {"file_path": path})

    assert serves(TaskKind.MIXED, ToolRole.FILESYSTEM, "docs/policy.pdf")
    assert not serves(TaskKind.MIXED, ToolRole.FILESYSTEM, "src/app.py")
    assert serves(TaskKind.MIXED, ToolRole.TEXT, "src/app.py")
    assert serves(TaskKind.KNOWLEDGE, ToolRole.FILESYSTEM, "src/app.py")
    assert not serves(TaskKind.CODE, ToolRole.FILESYSTEM, "docs/policy.pdf")
