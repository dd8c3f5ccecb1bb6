"""An MCP server for tests: `python mcp_sample_server.py` speaks over its standard streams, `... http PORT` over HTTP."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import EmbeddedResource, ImageContent, TextContent, TextResourceContents

server = MCPServer("sample")
DOCUMENTS = [
    {"content": "The crane is 40 m tall.", "id": "d-1", "score": 0.9, "url": "https://yard/crane"},
    {"content": "The crane was built in 1911.", "id": "d-2", "score": 0.5, "metadata": {"source": "https://yard/history"}},
    {"content": "Nobody knows who built it.", "id": "d-3", "score": 0.1},
]


@server.tool()
def search(query: str, limit: int = 10) -> list[dict[str, Any]]:
    """Return documents."""
    return DOCUMENTS[:limit] if "crane" in query else []


@server.tool()
def wrapped(query: str) -> dict[str, Any]:
    """Return documents in a mapping."""
    return {"documents": DOCUMENTS[:2], "asked": query}


@server.tool(structured_output=False)
def texts(question: str, collection: str = "all") -> list[TextContent]:
    """Return texts."""
    return [TextContent(type="text", text=f"first of {collection}"), TextContent(type="text", text=f"answer to {question}")]


@server.tool(structured_output=False)
def json_text(query: str) -> str:
    """Return JSON in a text."""
    return f'{{"results": [{{"text": "about {query}", "id": "j-1"}}]}}'


@server.tool(structured_output=False)
def mixed(query: str) -> list[Any]:
    """Return a resource and an image."""
    resource = TextResourceContents(uri="file:///yard/crane.md", text=f"about {query}", mime_type="text/markdown")
    return [EmbeddedResource(type="resource", resource=resource), ImageContent(type="image", data="AAAA", mime_type="image/png")]


@server.tool()
def failing(query: str) -> list[str]:
    """Fail."""
    raise ValueError(f"secret {query}")


@server.tool()
def crash(query: str, marker: str) -> list[str]:
    """End the process the first time, answer the second time."""
    if not os.path.exists(marker):  # noqa: PTH110
        open(marker, "w").close()  # noqa: PTH123
        os._exit(3)
    return [query, str(os.getpid())]


@server.tool()
def whoami(query: str) -> list[str]:
    """Tell the process, and what of its environment it sees."""
    return [
        f"pid {os.getpid()}",
        f"key {os.environ.get('EVIDENTIA_TEST_MCP_KEY')}",
        f"other {os.environ.get('EVIDENTIA_TEST_OTHER')}",
        query,
    ]


@server.tool()
async def slow(query: str) -> list[str]:
    """Take for ever."""
    await asyncio.sleep(3600)
    return [query]


@server.tool()
async def change(query: str, ctx: Context[Any]) -> list[str]:
    """Tell of a change."""
    await ctx.notify_resources_changed()
    return [query]


@server.tool()
async def legacy_change(query: str, ctx: Context[Any]) -> list[str]:
    """Tell of a change in the way of older versions."""
    await ctx.session.send_resource_list_changed()
    return [query]


if __name__ == "__main__":
    print("noise that nobody should see", file=sys.stderr)  # noqa: T201
    if sys.argv[1:2] == ["http"]:
        server.run("streamable-http", port=int(sys.argv[2]), host="127.0.0.1")
    else:
        server.run("stdio")
