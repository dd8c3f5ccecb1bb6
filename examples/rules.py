"""What binds the agent and what it is offered: profiles of the protocol, the policies that enforce them, and the tools."""

from __future__ import annotations

from typing import Any

PROFILES: dict[str, str | dict[str, Any]] = {
    "first_call": "first_call",
    # A profile of one's own: every source of the base is asked, and files beside it are left alone.
    "thorough": {
        "based_on": "thorough",
        "name": "thorough_without_files",
        "order": [["skill"], ["table", "text"]],
        "sections": {"filesystem_tools": "house rule"},
    },
}


def policies(profile: str | dict[str, Any]) -> list[dict[str, Any]]:
    """Return what is put in force: a profile of the protocol, and that every claim rests on evidence."""
    return [
        {"name": "Protocol", "category": "protocol", "rules": {"profile": profile, "action_on_violation": "block"}},
        {
            "name": "Grounded answers",
            "category": "grounding",
            # How many citations, and where, is the protocol's word.
            "rules": {"min_grounding_score": 0.5, "max_unsupported_claims": 0, "min_citations": 0, "action_on_violation": "block"},
        },
    ]


def tool(name: str, description: str, **parameters: str) -> dict[str, Any]:
    """Return a tool as a chat endpoint wants it; parameters are types by name, all needed but `top_k`."""
    properties = {parameter: {"type": kind} for parameter, kind in parameters.items()}
    needed = [parameter for parameter in parameters if parameter != "top_k"]
    schema = {"type": "object", "properties": properties, "required": needed}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


TOOLS = [
    tool("rag_retrieve", "Find passages of documents.", query="string", top_k="integer"),
    tool("table_rag_retrieve", "Find rows of spreadsheets.", query="string"),
    tool("Read", "Read a file.", file_path="string"),  # offered, so that it can be refused
]
