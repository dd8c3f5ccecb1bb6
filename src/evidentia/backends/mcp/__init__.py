"""On what does it run? A tool of an MCP server.

Needs the extra `mcp`.
"""
