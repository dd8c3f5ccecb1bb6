"""The retrieval tools an agent is given: text, tables, and local files where that is allowed."""

from evidentia.agents.tools.results import ToolResult
from evidentia.agents.tools.toolbox import Toolbox

__all__ = ["ToolResult", "Toolbox"]
