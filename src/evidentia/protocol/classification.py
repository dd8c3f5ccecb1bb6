"""What kind of work a request is, what it is after, how much it needs to see, and whether it names a file to be read.

Rules over English words and nothing else. They were written on 93 questions and measured on 86 others, in
`tests/protocol/labelled_questions.yaml`; the figures per label are in docs/protocol.md. What no rule is sure of is a knowledge task and
an unclear question: both are the careful side.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from evidentia.contracts.protocol import Breadth, QuestionType, SkillTool, TaskKind, ToolRole
from evidentia.protocol.question_words import probe_of
from evidentia.text.english import FUNCTION_WORDS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from evidentia.protocol.questions import QuestionFacts


MAX_QUESTION_LENGTH: Final = 2_000
"""Characters of a question that are looked at."""

_CODE_SUFFIXES: Final = (
    "py|pyi|js|jsx|ts|tsx|java|go|rs|rb|php|cs|cpp|cc|hpp|kt|swift|scala|sh|sql|toml|gradle|vue|css|ipynb|c|h|lock|cfg|mk|proto|tf"
)
_CODE_FILE: Final = rf"(?<=\w)\.(?:{_CODE_SUFFIXES})\b|\b(?:dockerfile|makefile|jenkinsfile)\b|\bsrc/|\btests?/"
_PATH_OF_CODE: Final = re.compile(_CODE_FILE)
_STRONG_CODE: Final = re.compile(
    rf"{_CODE_FILE}|\b(?:refactor|debug)\w*|\b(?:code ?base|repository|repositories|repo|source code|"
    r"pull request|merge conflict|stack ?trace|"
    r"unit tests?|type hints?|linters?|pytest|compiler|type ?checker|segfault|traceback|async/await|null pointer)\b"
    r"|\b(?:does|do|in|our|this) (?:the )?code\b(?! of\b)|\b[a-z]\w*(?:error|exception)\b(?<!\berror)(?<!\bexception)"
    r"|`[^`]*[a-z_(][^`]*`|\b\w+\(\)|\bfailing tests?\b"
)
_CODE_VERB: Final = (
    r"\b(?:fix|implement|rename|convert|port|rewrite|repair|patch|migrate|write|add|update|change|run|remove|delete|create|generate|"
    r"optimi[sz]e|compile|build|extend|crash\w*|throws?)\b"
)
_CODE_NOUN: Final = (
    r"\b(?:functions?|class(?:es)?|methods?|variables?|modules?|endpoints?|scripts?|decorators?|parser|constants?|interface|bug|"
    r"unit|callbacks?|imports?|compile|loop|regex|migration|tests?)\b"
)
_WEAK_CODE: Final = re.compile(rf"{_CODE_VERB}.*{_CODE_NOUN}|{_CODE_NOUN}.*{_CODE_VERB}")
_KNOWLEDGE: Final = re.compile(
    r"\b(?:look(?:ing)? up|knowledge base|handbook|manual says|polic(?:y|ies)|according to|guidelines?|rules|pricing|summari[sz]e|"
    r"documents? says?|documentation says|find the current|regulations?|contract|catalogue|price list|standard requires)\b"
)

_EXPLICIT: Final = re.compile(
    r"\b(?:read|open|cat|view|display|print|show(?: me)?|load|look (?:at|into)|what(?:'s| is) in|what does|contents? of|inspect)\b"
    r"(?:\s+(?:me|the|my|this|our|local|whole|contents?|of|file|config(?:uration)?|document|in|at|from)){0,6}\s+"
    r"[\"'`]?((?:~|\.{1,2})?/?(?:[\w.-]+/)*[\w-]+(?:\.[\w-]+)*\.[a-z]\w{0,5}|(?:~|\.{1,2})?/(?:[\w.-]+/)*[\w.-]+)[\"'`]?",
    re.IGNORECASE,
)
_LOCAL_FILE: Final = re.compile(r"\b(?:local )?file\s+[\"'`]?((?:~|\.{1,2})?/?(?:[\w.-]+/)*[\w-]+\.[a-z]\w{0,5})[\"'`]?", re.IGNORECASE)

_YEAR: Final = r"(?:19|20)\d\d"
_NUMBER: Final = r"(?:\d+|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty)"
_SUPERLATIVE: Final = (
    r"(?:highest|lowest|largest|biggest|smallest|longest|shortest|oldest|youngest|fastest|slowest|cheapest|strongest|weakest|heaviest|"
    r"lightest|tallest|earliest|safest|newest|widest|deepest|richest|busiest|best|worst|fewest|most|least|greatest)"
)
_COMPARATIVE: Final = (
    r"(?:more|less|fewer|greater|higher|lower|better|worse|larger|bigger|smaller|longer|shorter|older|younger|faster|slower|cheaper|"
    r"stronger|weaker|heavier|lighter|taller|earlier|later|safer|newer|wider|deeper|easier|harder|sooner)"
)
_DATA: Final = re.compile(
    r"\b(?:how (?:much|many)|costs?|prices?|fees?|rates?|number|figures?|values?|list|show|total|revenue|sales|spend|use per|amounts?)\b"
)
_AND: Final = re.compile(r"\band\b")
_REASON: Final = re.compile(r"\b(?:why|explain\w*|reasons?|what (?:caused|led)|how (?:is|are|was|were|it|this|they))\b")
_PERSON: Final = r"(?:i|we|you|one|someone|employees|customers|users)"
_ACTOR: Final = r"(?:(?:an?|the|our|my|each|every|all) )?(?:[\w-]+ ){0,2}[\w-]+"
"""Who acts, in up to three words: a new supplier, the night shift."""

_TYPES: Final[tuple[tuple[QuestionType, re.Pattern[str]], ...]] = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        (QuestionType.EXPLANATION, r"^(?:please |can you |could you )*(?:why\b|explain\b|how come\b|what (?:caused|explains|led to)\b)"),
        (
            QuestionType.HISTORY,
            (
                rf"\b(?:timeline|chronolog\w+|histor(?:y|ical\w*)|over the years|over time|evolution|evolved?|milestones|previous|former|"
                rf"predecessors?|archive[sd]?)\b|\bsince {_YEAR}|\b(?:from|between) {_YEAR} (?:to|and|until|till) {_YEAR}|"
                r"\bchanged? (?:since|over|through)|\bdevelop(?:ed)? (?:since|over|from)"
            ),
        ),
        (
            QuestionType.COMPARISON,
            (
                rf"\bcompar\w+|\bversus\b|\bvs\b|\bdifferences?\b|\bdiffers?\b|\bdistinguish\w*|\bpros and cons\b|"
                rf"\b{_COMPARATIVE}\b.{{0,40}}?\bthan\b(?! (?:\d|{_NUMBER}\b))|\bwhich\b.*\b{_COMPARATIVE}\b.*\bor\b"
            ),
        ),
        (
            QuestionType.WORKFLOW,
            (
                rf"\bhow (?:do|can|could|should|would|must) {_PERSON}\b|\bhow to\b|\bsteps?\b|\bprocedures?\b|\bwalk me through\b|"
                rf"\bwhat (?:do|must|should|shall) {_PERSON} (?:have to |need to )?do\b|\bwhat (?:must|should|shall) {_ACTOR} do\b|"
                rf"\bwhat (?:do|does) {_ACTOR} (?:have|need) to do\b|\binstructions\b|\bworkflows?\b|\bprocess (?:for|of|to)\b"
            ),
        ),
        (QuestionType.TABLE, r"\btables?\b(?! of contents)|\btabul\w+|\bspreadsheets?\b|\bmatrix\b"),
        (
            QuestionType.EXTRACTION,
            r"\bextract\w*|\bpull\b.*\b(?:from|out)\b|\b(?:collect|gather)\b|\b(?:find|get) (?:every|all|each)\b.*\b(?:in|from)\b",
        ),
        (
            QuestionType.SUMMARY,
            (
                r"\bsummar\w+|\bsum up\b|\bkey (?:points|findings|messages)\b|\btakeaways?\b|\boverviews?\b|\boutline\b|\brecap\w*|"
                r"\bgist\b|"
                r"\bin brief\b|\bhighlights\b|\bdigest\b"
            ),
        ),
        (QuestionType.RANKING, rf"\btop (?:{_NUMBER}\b|-)|\brank\w*|\b(?<!at )(?<!at the ){_SUPERLATIVE}\b|\b{_NUMBER} {_SUPERLATIVE}\b"),
        (
            QuestionType.INVENTORY,
            (
                r"\b(?:in|out of|on) stock\b|\bstock\b|\binventor(?:y|ies)\b|\bon hand\b|\bavailab(?:le|ility)\b|"
                r"\b(?:is|are|have) (?:\w+ )?left\b|\bleft in\b"
            ),
        ),
        (
            QuestionType.PRICE,
            (
                r"\bpric(?:e|es|ed|ing)\b|\bcosts?\b|\bfees?\b|\bcharges?\b|\bpay\b|\bexpensive\b|\bdiscounts?\b|\btariffs?\b|"
                r"\bsurcharge\w*|"
                r"\bhow much (?:is|are|would|will|for)\b"
            ),
        ),
        (
            QuestionType.POLICY,
            (
                r"\bpolic(?:y|ies)\b|\b(?:am|are|is) (?:i|we|it|they|you|employees|staff|\w+) (?:\w+ )?"
                r"(?:allowed|permitted|entitled|forbidden)\b|"
                r"^(?:may|must|can) (?:i|we|employees|staff|customers)\b|^what (?:must|may|shall)\b|"
                r"\brules?\b|\bguidelines?\b|\bregulations?\b|\bcode of conduct\b|"
                r"^(?:do|does|must) .*\b(?:have|need) to\b|\bcompliance\b"
            ),
        ),
        (
            QuestionType.QUANTITY,
            r"\bhow many\b|\bnumber of\b|\bcount of\b|\bhead ?count\b|\bquantit(?:y|ies)\b|\btotals? (?!cost|price)\w+",
        ),
        (
            QuestionType.SPECIFICATION,
            (
                r"\bspecs?\b|\bspecifications?\b|\bdimensions?\b|\bweigh(?:t|s)?\b|\bheavy\b|\bcapacity\b|\bresolution\b|\bram\b|\bports?\b|"
                r"\bbattery life\b|\bprocessor\b|\bmade of\b|\btechnical data\b|\bfeatures\b|\bdata ?sheet\b|"
                r"\bhow (?:big|wide|tall|thick)\b"
            ),
        ),
        (
            QuestionType.DEFINITION,
            (
                r"\bdefined?\b|\bdefinitions? of\b|\bstands? for\b|\b(?:means|meant|meaning)\b|\bmean\b(?= by\b|\W*$)|"
                r"^what(?:'s| is| are) an? (?!\w+ (?:price|value|rate))"
            ),
        ),
        (
            QuestionType.CONCEPT,
            (
                r"\bhow (?:does|do|did) (?!i\b|we\b|you\b)|\bconcepts?\b|\bidea behind\b|\bprinciples?\b|\brole (?:does|do|of)\b|"
                r"\bin what way\b|"
                r"\bphilosophy\b|\btheory\b"
            ),
        ),
        (QuestionType.EXPLANATION, r"\bwhy\b|\bexplain\w*|\breasons?\b|\bcauses?\b|\bhow come\b|\bmotivat\w+"),
        (
            QuestionType.LIST,
            (
                r"\blists?\b|\benumerate\b|\broster\b|\b(?:catalogs?|catalogues?)\b(?=.{0,3}$)|"
                r"\b(?:every|all)\b|\bwho (?:works?|belongs?|are)\b|"
                r"\b(?:which|what) (?:\w+ )?(?!is\b|was\b|has\b|does\b)\w{2,}[^s\W]s (?:do|does|are|were|have|has|did|can|apply)\b|"
                r"\b(?:which|what) (?:countries|people|cities|companies|parties|entries|activities)\b"
            ),
        ),
        (
            QuestionType.NAME_LOOKUP,
            (
                r"\bwho(?:se|m|'s)?\b|\bnames? of\b|\bwhich (?:person|company|vendor|supplier|team|department|customer|partner|manager|"
                r"agency)\b|"
                r"\bcalled\b|\bnamed\b"
            ),
        ),
        (
            QuestionType.VALUE,
            (
                r"^(?:and |so )?(?:what(?:'s| is| was| are| were) (?:the|our|my|its|their)\b|when\b|where\b|(?:on |at |by |in |to )?"
                r"(?:what|which) \w+ )|\bhow (?:long|far|often|old|fast|high|large|late|early|soon|much)\b|\brates?\b|"
                r"\bdeadline\b|\bdates?\b"
            ),
        ),
    )
)
"""Each type with what shows it; the first that matches decides, so what is more telling stands earlier."""

_BREADTHS: Final = {
    **dict.fromkeys(
        (
            QuestionType.VALUE,
            QuestionType.PRICE,
            QuestionType.QUANTITY,
            QuestionType.INVENTORY,
            QuestionType.SPECIFICATION,
            QuestionType.NAME_LOOKUP,
            QuestionType.DEFINITION,
        ),
        Breadth.LOOKUP,
    ),
    **dict.fromkeys((QuestionType.LIST, QuestionType.TABLE, QuestionType.EXTRACTION, QuestionType.HISTORY), Breadth.BROAD),
    QuestionType.UNCLEAR: Breadth.UNSURE,
}
_EVERYTHING: Final = re.compile(
    r"\b(?:comprehensive\w*|everything|all|every|full|complete|entire|exhaustive|overview|across|catalog|catalogue|timeline|roster|archive)\b"
)
_NOT_EVERYTHING: Final = frozenset((QuestionType.RANKING, QuestionType.COMPARISON, QuestionType.POLICY, QuestionType.MIXED))
"""Types in which such a word says what is looked among, not how much is wanted."""


def classify_task(question: str) -> TaskKind:
    """Return what kind of work a request is; without any word that names a subject it is uncertain."""
    text = question[:MAX_QUESTION_LENGTH].casefold()
    if not any(map(str.isalpha, text)):
        return TaskKind.UNCERTAIN
    is_weak = _WEAK_CODE.search(text) is not None
    if not is_weak and (_STRONG_CODE.search(text) is None or explicit_file(question) is not None):
        return TaskKind.KNOWLEDGE
    return TaskKind.MIXED if _KNOWLEDGE.search(text) else TaskKind.CODE


def question_type(question: str) -> QuestionType:
    """Return what a question is after; `unclear` when nothing shows it."""
    text = " ".join(question[:MAX_QUESTION_LENGTH].casefold().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").split())
    if _is_mixed(text):
        return QuestionType.MIXED
    for kind, pattern in _TYPES:
        if pattern.search(text):
            return kind
    return QuestionType.UNCLEAR


def breadth(question: str, *, kind: QuestionType | None = None) -> Breadth:
    """Return how much a question needs to see; `kind` saves finding its type again."""
    found = question_type(question) if kind is None else kind
    usual = _BREADTHS.get(found, Breadth.MODERATE)
    if found in _NOT_EVERYTHING or usual is Breadth.BROAD:
        return usual
    return Breadth.BROAD if _EVERYTHING.search(question[:MAX_QUESTION_LENGTH].casefold()) else usual


def is_code_file(path: str) -> bool:
    """Tell whether a path is one of source code."""
    return _PATH_OF_CODE.search(path.casefold()) is not None


def explicit_file(question: str) -> str | None:
    """Return the path of a file that a request asks to be read as such; None when it names none."""
    text = question[:MAX_QUESTION_LENGTH]
    found = _EXPLICIT.search(text) or _LOCAL_FILE.search(text)
    return None if found is None else found[1].rstrip(".")


def _is_mixed(text: str) -> bool:
    """Tell whether data is asked for, and behind an `and` an explanation of it."""
    figures = _DATA.search(text)
    joint = figures and _AND.search(text, figures.end())
    return joint is not None and _REASON.search(text, joint.end()) is not None


# --- tools ---
# What a tool is to the protocol, what it was asked, and whether a skill's tool suits a question. Told from names and arguments alone.

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
