"""The one guard of statements: a single read of the tables it was given, made of parts that are known to be harmless.

It reads the statement and runs nothing. Whoever runs it has a second wall in the database itself, for the case that a statement
means something else there than it does to the parser here.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.errors import StatementRefusedError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from sqlglot import exp
    from sqlglot.tokenizer_core import Token


MAX_STATEMENT_LENGTH: Final = 20_000
MAX_PARTS: Final = 2_000
DEEPEST: Final = 60

_CLOCKS: Final = {"current_date": "'%Y-%m-%d'", "current_time": "'%H:%M:%S'", "current_timestamp": "'%Y-%m-%d %H:%M:%S'"}
_COSTLY: Final = frozenset({"match", "regexp", "rlike", "similar"})
"""Comparisons whose cost a pattern decides, or that are none of SQLite's own."""
_OPENERS: Final = "(["
_CLOSERS: Final = ")]"


class CheckedStatement(msgspec.Struct, frozen=True, kw_only=True):
    """A statement that may run, and the tables that it reads."""

    statement: str
    tables: tuple[str, ...]
    """In lower case, each once, by name."""
    own: tuple[str, ...] = ()
    """The names that the statement gives to queries of its own, likewise."""


def check_statement(statement: str, *, tables: Collection[str], as_of: datetime | None = None) -> CheckedStatement:
    """Return the statement when it is one SELECT over some of the tables, or raise StatementRefusedError with what is wrong.

    1. its length and depth  2. its words  3. that it parses as one query  4. its parts  5. the tables it names
    6. the present moment, where it asks for it, becomes `as_of`; without one it is refused
    """
    _check_size(statement)
    tokens = _tokens(statement)
    _check_words(tokens)
    parts = _parts(_parsed(statement))
    _check_parts(parts)
    read = _check_tables(parts, {name.lower() for name in tables})
    timed = _with_moment(statement, tokens, as_of)
    return CheckedStatement(statement=timed.strip().rstrip(";").rstrip(), tables=read, own=tuple(sorted(set(_own_names(parts)))))


def _check_size(statement: str) -> None:
    if len(statement) > MAX_STATEMENT_LENGTH:
        raise StatementRefusedError(f"it has {len(statement)} characters, and {MAX_STATEMENT_LENGTH} are the most")
    if any(not (character.isprintable() or character in "\n\r\t") for character in statement):
        raise StatementRefusedError("it holds characters that cannot be printed")
    depth = deepest = 0
    for character in statement:
        depth += (character in _OPENERS) - (character in _CLOSERS)
        deepest = max(deepest, depth)
    if deepest > DEEPEST:
        raise StatementRefusedError(f"it is nested {deepest} deep, and {DEEPEST} is the most")


def _tokens(statement: str) -> Sequence[Token]:
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        return sqlglot.tokenize(statement, dialect="sqlite")
    except (SqlglotError, RecursionError, ValueError) as error:
        raise StatementRefusedError("it does not read as SQL") from error


def _check_words(tokens: Sequence[Token]) -> None:
    """Refuse several statements and every function that is not on the list; a quoted name calls a function too."""
    from sqlglot.tokenizer_core import TokenType

    if not tokens:
        raise StatementRefusedError("it is empty")
    for place, token in enumerate(tokens):
        if token.token_type is TokenType.SEMICOLON and place < len(tokens) - 1:
            raise StatementRefusedError("there is more than one statement")
        if token.text.lower() in _COSTLY and token.token_type not in {TokenType.STRING, TokenType.IDENTIFIER}:
            raise StatementRefusedError(f"'{token.text.lower()}' may not be used; compare with LIKE")
        is_called = place + 1 < len(tokens) and tokens[place + 1].token_type is TokenType.L_PAREN
        if is_called and token.token_type is not TokenType.STRING:
            _check_call(tokens, place)


def _check_call(tokens: Sequence[Token], place: int) -> None:
    from sqlglot.tokenizer_core import TokenType

    token = tokens[place]
    word = token.text.lower()
    if not _is_name(word) and token.token_type is not TokenType.IDENTIFIER:
        return
    is_known = word in FUNCTIONS or (word in WORDS_BEFORE_PARENTHESES and token.token_type is not TokenType.IDENTIFIER)
    if is_known or _names_a_query(tokens, place):
        return
    raise StatementRefusedError(f"the function '{word[:60]}' is not one that may be called")


def _is_name(word: str) -> bool:
    return bool(word) and (word[0].isalpha() or word[0] == "_")


def _names_a_query(tokens: Sequence[Token], place: int) -> bool:
    """Tell whether a name before a parenthesis is that of a common table expression with its columns: `WITH name (a, b) AS`."""
    before = tokens[place - 1].text.lower() if place else ""
    if before not in {"with", "recursive", ","}:
        return False
    depth = 0
    for follower in range(place + 1, len(tokens)):
        depth += (tokens[follower].text == "(") - (tokens[follower].text == ")")
        if depth == 0:
            return follower + 1 < len(tokens) and tokens[follower + 1].text.lower() == "as"
    return False


def _with_moment(statement: str, tokens: Sequence[Token], as_of: datetime | None) -> str:
    """Return the statement with the moment written where it asks for the present one; the clock of the machine decides nothing."""
    pieces, end = [], 0
    for token, literal in _moments(tokens):
        if as_of is None:
            raise StatementRefusedError("it asks for the present moment; name the date instead")
        pieces += [statement[end : token.start], as_of.astimezone(UTC).strftime(literal)]
        end = token.end + 1
    return "".join(pieces) + statement[end:]


def _moments(tokens: Sequence[Token]) -> Iterator[tuple[Token, str]]:
    """Yield every word that asks for the present moment, with how the moment is written in its place.

    The text `now` does so only as an argument of a function of time; one of these that is given nothing asks for it too, and is refused.
    """
    from sqlglot.tokenizer_core import TokenType

    callers: list[str] = []
    for place, token in enumerate(tokens):
        word = token.text.lower()
        if token.token_type is TokenType.L_PAREN:
            callers.append(tokens[place - 1].text.lower() if place else "")
            if callers[-1] in MOMENTS and tokens[place + 1].token_type is TokenType.R_PAREN:
                raise StatementRefusedError(f"'{callers[-1]}()' asks for the present moment; name the date instead")
        elif token.token_type is TokenType.R_PAREN and callers:
            callers.pop()
        elif token.token_type is TokenType.STRING:
            if callers and callers[-1] in MOMENTS and word.strip() == "now":
                yield token, _CLOCKS["current_timestamp"]
        elif word in _CLOCKS and token.token_type is not TokenType.IDENTIFIER:
            yield token, _CLOCKS[word]


def _parsed(statement: str) -> exp.Expr:
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        found = sqlglot.parse(statement, dialect="sqlite")
    except (SqlglotError, RecursionError, ValueError) as error:
        raise StatementRefusedError("it does not read as SQL") from error
    queries = [each for each in found if each is not None]
    if len(queries) != 1:
        raise StatementRefusedError(f"there are {len(queries)} statements, and one may run")
    if not isinstance(queries[0], exp.Select | exp.SetOperation | exp.Subquery):
        raise StatementRefusedError(f"it is not a query but '{queries[0].key}'; only SELECT may run")
    return queries[0]


def _parts(query: exp.Expr) -> list[exp.Expr]:
    parts = []
    for part in query.walk():
        parts.append(part)
        if len(parts) > MAX_PARTS:
            raise StatementRefusedError(f"it has more than {MAX_PARTS} parts")
    return parts


def _check_parts(parts: Sequence[exp.Expr]) -> None:
    from sqlglot import exp

    for part in parts:
        if isinstance(part, exp.Func):  # judged by the word that called it
            continue
        if type(part).__name__ not in PARTS:
            raise StatementRefusedError(f"'{part.key}' is not a part of a query that may run")
        if isinstance(part, exp.Select) and part.args.get("into"):
            raise StatementRefusedError("a query may not write what it finds")
        if isinstance(part, exp.Column) and (part.args.get("db") or part.args.get("catalog")):
            raise StatementRefusedError(f"'{part.name[:60]}' is named with a database")


def _check_tables(parts: Sequence[exp.Expr], allowed: Collection[str]) -> tuple[str, ...]:
    """Return the tables that are read; a name counts as that of a subquery only where a WITH of this statement gives it."""
    own = set(_own_names(parts))
    read: set[str] = set()
    for name in _named_tables(parts):
        if name in allowed:
            read.add(name)
        elif name not in own:
            raise StatementRefusedError(f"there is no table '{name[:60]}' that it may read")
    if own & set(allowed):
        raise StatementRefusedError("a subquery has the name of a table; give it another")
    if not read:
        raise StatementRefusedError("it reads none of the tables")
    return tuple(sorted(read))


def _own_names(parts: Sequence[exp.Expr]) -> Iterator[str]:
    from sqlglot import exp

    return (part.alias.lower() for part in parts if isinstance(part, exp.CTE))


def _named_tables(parts: Sequence[exp.Expr]) -> Iterator[str]:
    from sqlglot import exp

    for part in parts:
        if not isinstance(part, exp.Table):
            continue
        if not isinstance(part.this, exp.Identifier):
            raise StatementRefusedError("a function stands in the place of a table")
        if part.args.get("db") or part.args.get("catalog"):
            raise StatementRefusedError(f"'{part.name[:60]}' is named with a database")
        yield part.name.lower()


# --- sql words ---
# What a statement over tables may be made of: functions by name, parts of a query by type.
#
# What is not here is refused. Functions that read files, reach the network, load code, ask the clock, draw lots or make long values out
# of short ones are left out on purpose.


def _words(words: str) -> frozenset[str]:
    return frozenset(words.split())


FUNCTIONS: Final = _words(
    "abs acos asin atan atan2 avg ceil ceiling char coalesce concat concat_ws cos count cume_dist date datetime degrees dense_rank"
    " exp first_value floor format_number group_concat hex ifnull iif instr julianday lag last_value lead length like ln log log10"
    " log2 lower ltrim max min mod nth_value ntile nullif percent_rank pi pow power quote radians rank replace round row_number rtrim"
    " sign sin sqrt strftime string_agg substr substring sum tan time timediff total trim trunc typeof unicode unixepoch upper"
)
"""Those of SQLite that compute from their arguments alone, and cost no more than their arguments are long."""
MOMENTS: Final = _words("date datetime julianday strftime time timediff unixepoch")
WORDS_BEFORE_PARENTHESES: Final = _words(
    "all and any as between by case cast distinct else except exists filter from full group having in inner intersect is join left"
    " limit materialized not nulls offset on or order outer over partition right select some then union using values when where with"
    " within cross range rows groups exclude escape collate end"
)
"""Words of the language that a parenthesis may follow without a function being called."""
PARTS: Final = _words(
    "Add Alias All And Any Anonymous Avg Between Boolean BitwiseAnd BitwiseOr Bracket CTE Case Cast Coalesce Collate Column Count"
    " DPipe DataType DataTypeParam Distinct Div EQ Escape Except Exists Filter From GT GTE Glob Group Having Identifier If In"
    " Intersect Is Join LT LTE Like Limit Literal Lower Max Min Mod Mul NEQ Neg Not Null NullSafeEQ NullSafeNEQ Offset Or Order"
    " Ordered Paren Parameter Placeholder Select Star Sub Subquery Sum Table TableAlias Tuple Union Upper Var Where Window"
    " WindowSpec With"
)
"""Parts of a parsed query; every function is judged by its name instead."""
