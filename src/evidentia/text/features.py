"""What a text is made of: code, commands, configuration, and how specific its words are. Integers from 0 to 255, no model.

Lines are sorted by how they look, fenced blocks by their language, spans in backticks by how they begin; each share is in
characters, indentation aside. Specificity weighs numbers, identifiers and names against words. The text alone is measured;
what its document is for comes in with `of_type`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.search import ContentFeatures
from evidentia.contracts.vocabulary import ContentType

if TYPE_CHECKING:
    from collections.abc import Sequence

FEATURE_COUNT: Final = 4
MAX_LINES: Final = 4096
"""Lines that are looked at in one text: a passage has far fewer, and a hostile text costs no more."""

_FULL: Final = 255
_DECLARED: Final = 128
_BYTES_PER_SPECIFIC: Final = 12
_NOTHING, _CODE, _COMMANDS, _CONFIGURATION = range(4)

_TOOLS: Final = (
    "apt|apt-get|aws|az|brew|cargo|chmod|chown|curl|dnf|docker|docker-compose|dotnet|gcloud|gem|git|gradle|helm|journalctl|jq|kubectl|"
    "mkdir|mvn|npm|npx|openssl|pg_dump|pip|pip3|pipx|podman|psql|pytest|redis-cli|rsync|scp|sqlite3|ssh|systemctl|terraform|uv|wget|"
    "yarn|yum"
)
_WORDS_TOO: Final = (
    "bash|cat|cd|cp|dig|echo|export|find|go|grep|java|kill|ln|ls|make|mount|mv|node|python|python3|rm|sed|service|sh|source|tail|tar|"
    "touch|unzip|vault"
)
# The name of a tool may open a sentence; the name that is also a word counts only with an option, a path, a pipe or the like.
_COMMAND: Final = re.compile(
    r"[$%] [\w./~-]|(?:PS )?[A-Z]:\\[^>]{0,80}+> \w|sudo \w"
    rf"|(?:{_TOOLS}) (?!(?:is|are|was|has|can|will|and|or|to|for|in|on|the|may|must|does|should)\b)[\w./~$-]"
    rf"|(?:{_WORDS_TOO}) (?:[./~$-]|\S{{1,40}}+ [./~$|>&-]|\S{{1,40}}[./=]\w)"
)
_SETTING: Final = re.compile(
    r"(?:- )?(?:[a-z_][\w./-]{0,60}+|[A-Z][A-Z0-9_]{1,60}+(?==)|\"[^\"]{1,60}+\"(?=\s?:)) ?[:=] ?"
    r"(?:$|[\"'\[{|>]|-?\d|(?:true|false|null|none|yes|no|on|off)\b,?$|[\w./:@${}*+-]{1,200}+,?$)"
    r"|\[{1,2}[\w.\"' :-]{1,60}+\]{1,2}$",
)
_STATEMENT: Final = re.compile(
    r"(?:(?:async|export|public|private|protected|static|final|abstract|default|pub) ){0,4}+"
    r"(?:(?:def|fn|func|function)\b ?[\w.]{0,60}+ ?[(<]|(?:class|interface|struct|enum|impl|trait) \w{1,60}+ ?[:({<]"
    r"|import [\w.{*'\"]{1,80}+(?:$|[ ;,]|$)(?!.{0,200}\.$)|from [\w.]{1,80}+ import |#include ?[<\"]|(?:using|package) [\w.]{1,80}+;?$"
    r"|(?:const|let|var) \w{1,60}+ ?[=:;]|return\b.{0,200}[;()\[\]]$|(?:if|for|while|elif|with|switch|catch|except)\b.{0,200}[:{]$"
    r"|(?:try|else|finally|do) ?[:{]$|(?:void|int|bool|float|double|char|string|String) \w{1,60}+ ?[(=;]"
    r"|(?:SELECT|INSERT INTO|UPDATE|DELETE FROM|CREATE|ALTER|DROP) .{0,200}\b(?:FROM|VALUES|SET|TABLE|INDEX|VIEW)\b)"
    r"|[\w.\[\]\"']{1,60}+ ?(?:[-+*/|&:]?=|=>|==) ?.{0,200}[(){}\[\]]|[\w.]{1,60}+\(.{0,200}\)[;:]?$|@\w[\w.]{0,60}+(?:\(|$)|//|/\*"
    r"|</?[a-z][\w-]{0,30}+(?:\s[^>]{0,200})?/?>"
)
_OPENING_WORDS: Final = frozenset(
    f"{_TOOLS}|{_WORDS_TOO}|sudo|PS|async|export|public|private|protected|static|final|abstract|default|pub|def|fn|func|function|class|"
    "interface|struct|enum|impl|trait|import|from|using|package|const|let|var|return|if|for|while|elif|with|switch|catch|except|try|else|"
    "finally|do|void|int|bool|float|double|char|string|String|SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP".split("|")
)
_ENDINGS: Final = (";", "{", "}", "},", "})", "];", ") =>")
_SPAN: Final = re.compile(r"`([^`]{1,200}+)`")
_FENCES: Final = ("```", "~~~")
_LANGUAGES: Final = dict.fromkeys(("bash", "sh", "shell", "zsh", "console", "powershell", "ps1", "cmd", "bat"), _COMMANDS) | dict.fromkeys(
    ("yaml", "yml", "json", "toml", "ini", "env", "dotenv", "properties", "hcl", "conf", "cfg", "xml"), _CONFIGURATION
)
_MARKED: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
_MARKS: Final = bytes(byte if byte in _MARKED else ord(" ") for byte in range(256))
_FIELDS: Final = {ContentType.CODE: "code", ContentType.SCHEMA: "code", ContentType.CONFIG: "configuration"}


def content_features(text: str, content_type: ContentType) -> ContentFeatures:
    """Return what a text is made of, given what its document is for."""
    code, commands, configuration, specificity = measure(text)
    measured = ContentFeatures(code=code, commands=commands, configuration=configuration, specificity=specificity)
    return of_type(measured, content_type)


def of_type(measured: ContentFeatures, content_type: ContentType) -> ContentFeatures:
    """Return features of a text together with what its document is for: what calls itself code is at least half code."""
    field = _FIELDS.get(content_type)
    if field is None or getattr(measured, field) >= _DECLARED:
        return measured
    return msgspec.structs.replace(measured, **{field: _DECLARED})


def measure(text: str) -> tuple[int, int, int, int]:
    """Return code, commands, configuration and specificity of a text by itself."""
    lines = [line.strip() for line in text.split("\n", MAX_LINES)[:MAX_LINES]] if "\n" in text else [text.strip()]
    has_fences = ("`" in text and "```" in text) or ("~" in text and "~~~" in text)  # one character is found far sooner than three
    lengths = _fenced_lengths(lines) if has_fences else _lengths(lines)
    specificity = _specificity(" ".join(lines))
    if not any(lengths):
        return 0, 0, 0, specificity
    whole = sum(map(len, lines))
    _, code, commands, configuration = [_FULL * length // whole for length in lengths]
    return code, commands, configuration, specificity


def _fenced_lengths(lines: Sequence[str]) -> list[int]:
    """Return the characters of each kind where some lines stand in fenced blocks, whose language decides before their look."""
    lengths, outside = [0] * FEATURE_COUNT, []
    language: int | None = None
    for line in lines:
        if line.startswith(_FENCES):
            named = line.strip("`~ ").lower()
            language = (_LANGUAGES.get(named, _CODE) if named else _NOTHING) if language is None else None
        elif language is None:
            outside.append(line)
        else:
            lengths[language or _kind_of(line) or _CODE] += len(line)
    return [inside + plain for inside, plain in zip(lengths, _lengths(outside), strict=True)]


def _lengths(lines: Sequence[str]) -> list[int]:
    lengths = [0] * FEATURE_COUNT
    for line in lines:
        first = line.partition(" ")[0]
        if first.isalpha() and first not in _OPENING_WORDS and "=" not in line and not line.endswith(_ENDINGS):
            kind = _NOTHING  # as almost every line of prose, told without a pattern
        else:
            kind = _kind_of(line)
        if kind:
            lengths[kind] += len(line)
        elif "`" in line:
            for span in _SPAN.findall(line):
                lengths[_COMMANDS if _COMMAND.match(span) else _CODE] += len(span)
    return lengths


def _kind_of(line: str) -> int:
    """Return what one line looks like."""
    if _COMMAND.match(line):
        return _COMMANDS
    if _SETTING.match(line):
        return _CONFIGURATION
    return _CODE if line.endswith(_ENDINGS) or _STATEMENT.match(line) else _NOTHING


def _specificity(text: str) -> int:
    """Return how often capitals, digits and underscores occur: 255 when there is a run of them per twelve bytes.

    A full stop takes one off: it ends a sentence, whose first capital says nothing, or divides a number into two runs.
    Letters beyond ASCII have no case here, so that names in other scripts are words.
    """
    encoded = text.encode("utf-8", "replace")
    specific = len(encoded.translate(_MARKS).split()) - encoded.count(b".") - 1
    return max(0, min(_FULL, _FULL * _BYTES_PER_SPECIFIC * specific // (len(encoded) or 1)))
