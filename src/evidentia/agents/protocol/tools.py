"""What a tool is to the protocol, what it was asked, and whether a skill's tool suits a question. Told from names and arguments alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from evidentia.agents.protocol.probes import probe_of
from evidentia.agents.protocol.tasks import is_code_file
from evidentia.contracts.protocol import TaskKind, ToolRole
from evidentia.query.english import FUNCTION_WORDS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from evidentia.agents.protocol.questions import QuestionFacts
    from evidentia.contracts.protocol import SkillTool

_ROLES: Final = {
    "rag_retrieve": ToolRole.TEXT,
    "table_rag_retrieve": ToolRole.TABLE,
    "local_file_retrieve": ToolRole.LOCAL,
}
TOOL_OF_ROLE: Final = {role: name for name, role in _ROLES.items()}
# ruff: noqa: SIM905 - a list of words reads as words
_FILESYSTEM: Final = frozenset(
    "glob read ls bash grep cat head tail find shell sh zsh terminal edit write multiedit notebookread notebookedit read_file readfile "
    "list_dir list_directory listdir list_files open_file view view_file read_text_file search_files execute_command run_command "
    "run_shell exec file_search grep_search rg ripgrep tree ls_r directory_tree less more sed awk powershell cmd str_replace_editor "
    "get_file_contents file_read filesystem".split()
)
_QUERY_NAMES: Final = ("query", "question", "q", "search_query", "keywords", "text", "search", "input", "prompt")
_PATH_NAMES: Final = ("file_path", "path", "filename", "file", "notebook_path", "pattern", "command", "cmd", "target_file", "directory")
_DOCUMENT: Final = re.compile(r"\.(?:pdf|docx?|xlsx?|pptx?|odt|ods|csv|tsv|md|txt|html?|parquet|rtf)\b", re.IGNORECASE)
_COMMAND_WORD: Final = re.compile(r"(?:^|[|;&]\s*)(?:sudo\s+)?([\w./-]+)")
_WORD: Final = re.compile(r"[^\W\d_]{3,}")
_LARGEST_TOP_K: Final = 2**31


def bare_name(name: str) -> str:
    """Return a tool's name without the prefix of a server (`mcp__evidentia__rag_retrieve`, `evidentia.rag_retrieve`), in small letters."""
    plain = name.strip()
    for separator in ("__", ".", "/", ":"):
        plain = plain.rpartition(separator)[2] or plain
    return plain.casefold().replace("-", "_").replace(" ", "_")


def role_of(name: str, *, skills: Collection[str] = (), forbidden: Collection[str] = ()) -> ToolRole:
    """Return what a tool is; a registered skill's tool is one whatever it is called, and `forbidden` names further file-system tools."""
    bare = bare_name(name)
    if name in skills or any(bare == bare_name(skill) for skill in skills):
        return ToolRole.SKILL
    known = _ROLES.get(bare)
    if known is not None:
        return known
    is_filesystem = bare in _FILESYSTEM or any(bare == bare_name(other) for other in forbidden)
    return ToolRole.FILESYSTEM if is_filesystem else ToolRole.OTHER


def query_of(arguments: Mapping[str, Any]) -> str | None:  # Any: whatever the tool takes
    """Return the query among a tool's arguments, by its name or as the only text."""
    for name in _QUERY_NAMES:
        if isinstance(value := arguments.get(name), str):
            return value
    texts = [value for value in arguments.values() if isinstance(value, str)]
    return texts[0] if len(texts) == 1 else None


def top_k_of(arguments: Mapping[str, Any]) -> int | None:  # Any: whatever the tool takes
    """Return how many results were asked for; None where it was left out, 0 where it is no number that any tool takes."""
    value = arguments.get("top_k")
    if value is None:
        return None
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value.strip()[:10])
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < _LARGEST_TOP_K else 0


def label_of(name: str, arguments: Mapping[str, Any]) -> str:  # Any: whatever the tool takes
    """Return a tool's name, of a shell with the first command that it is given: `Bash (cat)`."""
    command = arguments.get("command", arguments.get("cmd"))
    if role_of(name) is not ToolRole.FILESYSTEM or not isinstance(command, str):
        return name
    found = _COMMAND_WORD.search(command[:200])
    return name if found is None else f"{name} ({found[1].rpartition('/')[2][:40]})"


def reads_file(path: str, arguments: Mapping[str, Any]) -> bool:  # Any: whatever the tool takes
    """Tell whether a call reads one file and nothing else: the argument is its path, or a command's only path."""
    wanted = path.strip().removeprefix("./")
    for name in _PATH_NAMES:
        value = arguments.get(name)
        if not isinstance(value, str):
            continue
        if name in {"command", "cmd"}:
            words = [word.strip("'\"") for word in value.split()[1:] if not word.startswith("-") and not word.isdecimal()]
            is_simple = not set(value) & set("|;&><`$\n")
            return is_simple and bool(words) and all(_is_path(word, wanted) for word in words)
        return _is_path(value, wanted)
    return False


def serves_knowledge(task: TaskKind, role: ToolRole, arguments: Mapping[str, Any]) -> bool:  # Any: whatever the tool takes
    """Tell whether a call serves the knowledge portion of a task; in a mixed one a file-system tool does when it is after documents."""
    if task is TaskKind.CODE:
        return False
    if task is not TaskKind.MIXED or role.retrieves:
        return True
    said = " ".join(value for name in _PATH_NAMES if isinstance(value := arguments.get(name), str))
    return bool(_DOCUMENT.search(said)) and not is_code_file(said)


def suits(skill: SkillTool, facts: QuestionFacts) -> bool:
    """Tell whether a skill's tool is good for a question: a topic of it is named, or a word of its description; without either always."""
    lowered = facts.text.casefold() + "\n" + " ".join(facts.subject).casefold()
    if skill.topics:
        return any(all(probe_of(word).occurs(lowered) for word in topic.split()) for topic in skill.topics if topic.strip())
    words = [
        word for word in _WORD.findall(skill.description) if word.casefold() not in FUNCTION_WORDS and word.casefold() not in _TOOL_WORDS
    ]
    return not words or any(probe_of(word).occurs(lowered) for word in words)


_TOOL_WORDS: Final = frozenset(
    "search searches searching find finds look looks lookup lookups retrieve retrieves retrieval tool tools skill question questions "
    "answer answers information knowledge query queries return returns use used using when about data get gets provides provide "
    "access all any user users agent call first relevant results result list".split()
)


def _is_path(given: str, wanted: str) -> bool:
    plain = given.strip().removeprefix("./")
    return plain == wanted or (plain.startswith(("/", "~")) and plain.endswith("/" + wanted.lstrip("/~")))
