"""How do MCP clients ask? Over stdio and streamable HTTP, as the principal whose connection it is.

Needs the extra `mcp`.
"""
