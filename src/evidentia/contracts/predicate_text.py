"""The text form of a filter, for people: `parse` reads it, `render` writes it, and each undoes the other.

    filter = conjunction, { OR, conjunction }
    conjunction = operand, { AND, operand }
    operand = NOT, operand | "(", filter, ")" | TRUE | FALSE | condition
    condition = field, ( relation, value | [ NOT ], IN, "(", [ value, { ",", value } ], ")" | CONTAINS, value | [ NOT ], EXISTS )
    relation = "=" | "!=" | "<" | "<=" | ">" | ">="

It knows nothing of fields and their kinds: `predicates.check_fields` does. Whatever the text, the only error is FilterSyntaxError.
"""

from __future__ import annotations

import json
import re
from typing import Final, NamedTuple, NoReturn, get_args

from evidentia.contracts.canonical import SAFE_INTEGER
from evidentia.contracts.errors import FilterSyntaxError, InvalidFieldError
from evidentia.contracts.predicate_values import Number, Value, is_fraction
from evidentia.contracts.predicates import (
    MAX_DEPTH,
    MAX_NODES,
    MAX_VALUES,
    And,
    Atom,
    Compare,
    Contains,
    Exists,
    In,
    Not,
    NotIn,
    Operator,
    Or,
    Predicate,
    check_limits,
)

MAX_TEXT_CHARS: Final = 1_000_000
"""Enough for every tree within the limits of `predicates`, with every character escaped."""

KEYWORDS: Final = frozenset({"and", "or", "not", "in", "contains", "exists", "true", "false"})


def parse(text: str) -> Predicate:
    """Return the tree of a filter's text; raises only FilterSyntaxError, which names the 1-based column in code points."""
    if len(text) > MAX_TEXT_CHARS:
        raise FilterSyntaxError(f"a filter has at most {MAX_TEXT_CHARS} characters", text=text, column=MAX_TEXT_CHARS + 1)
    predicate = _Parser(text).read_all()
    try:
        check_limits(predicate)
    except InvalidFieldError as error:
        raise FilterSyntaxError(str(error), text=text, column=1) from error
    return predicate


def render(predicate: Predicate) -> str:
    """Return the text of a tree; reading it back gives the same tree, with every And and Or of one clause replaced by that clause."""
    check_limits(predicate)
    return _render(predicate, is_operand=False)


_RELATIONS: Final[dict[str, Operator]] = {relation: relation for relation in get_args(Operator)}
_BARE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*")
_INTEGER = re.compile(r"-?[0-9]{1,32}")
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<end>\Z)
      | (?P<sign><=|>=|!=|[=<>(),])
      | (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<quoted>`(?:[^`]|``)+`)
      | (?P<number>-?[0-9][A-Za-z0-9_.:+-]*)
      | (?P<word>[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*)
      | (?P<other>.)
    )""",
    re.VERBOSE | re.DOTALL,
)


class _Token(NamedTuple):
    kind: str
    text: str
    column: int

    @property
    def keyword(self) -> str:
        """The keyword or sign this is, in lower case; empty for anything else."""
        word = self.text.lower()
        return word if self.kind == "sign" or (self.kind == "word" and word in KEYWORDS) else ""

    @property
    def shown(self) -> str:
        """What a message calls it: short, and safe to print."""
        found = self.text[:40].encode("utf-8", "backslashreplace").decode()
        return f"'{found}'" if found else "the end"


class _Parser:
    """Reads one text from left to right, one token ahead; depth is counted, so the stack cannot run out."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._depth = 0
        self._conditions = 0
        self._offset = 0
        self._token = self._scan()

    def read_all(self) -> Predicate:
        predicate = self._filter()
        if self._token.kind != "end":
            self._fail("AND, OR or the end")
        return predicate

    def _filter(self) -> Predicate:
        clauses = [self._conjunction()]
        while self._accept("or"):
            clauses.append(self._conjunction())
        return clauses[0] if len(clauses) == 1 else Or(tuple(clauses))

    def _conjunction(self) -> Predicate:
        clauses = [self._operand()]
        while self._accept("and"):
            clauses.append(self._operand())
        return clauses[0] if len(clauses) == 1 else And(tuple(clauses))

    def _operand(self) -> Predicate:
        start = self._token
        if self._accept("not"):
            self._descend(start)
            inner: Predicate = Not(self._operand())
            self._depth -= 1
            return inner
        if self._accept("("):
            self._descend(start)
            inner = self._filter()
            self._expect(")", "AND, OR or ')'")
            self._depth -= 1
            return inner
        self._conditions += 1
        if self._conditions > MAX_NODES:
            self._refuse(f"a filter has at most {MAX_NODES} parts", at=start)
        if self._accept("true"):
            return And(())
        return Or(()) if self._accept("false") else self._condition()

    def _condition(self) -> Predicate:
        field = self._field()
        relation = self._token.keyword
        if relation in _RELATIONS:
            self._advance()
            return Compare(field, _RELATIONS[relation], self._value())
        if self._accept("contains"):
            return Contains(field, self._value())
        if self._accept("in"):
            return In(field, self._values())
        if self._accept("exists"):
            return Exists(field)
        self._expect("not", "an operator (= != < <= > >= in, not in, contains, exists)")
        if self._accept("exists"):
            return Not(Exists(field))
        self._expect("in", "'in' or 'exists'")
        return NotIn(field, self._values())

    def _field(self) -> str:
        token = self._token
        if token.kind == "quoted":
            self._advance()
            return token.text[1:-1].replace("``", "`")
        if token.kind != "word" or token.keyword:
            self._fail("a field, NOT or '('", hint="a name that is a keyword or holds other signs stands in backticks")
        self._advance()
        return token.text

    def _values(self) -> tuple[Value, ...]:
        self._expect("(", "'('")
        values: list[Value] = []
        while not self._accept(")"):
            if values:
                self._expect(",", "',' or ')'")
            if len(values) == MAX_VALUES:
                self._refuse(f"a filter has at most {MAX_VALUES} values", at=self._token)
            values.append(self._value())
        return tuple(values)

    def _value(self) -> Value:
        token = self._token
        if token.kind == "string":
            value: Value = self._unescape(token)
        elif token.kind == "number":
            value = self._number(token)
        elif token.keyword in ("true", "false"):
            value = token.keyword == "true"
        else:
            self._fail("a value", hint="text stands in double quotes")
        self._advance()
        return value

    def _number(self, token: _Token) -> Value:
        if is_fraction(token.text):
            return Number(token.text)
        if _INTEGER.fullmatch(token.text) is None:
            self._fail("a number", hint="dates, versions and other text stand in double quotes")
        if abs(int(token.text)) > SAFE_INTEGER:
            self._refuse(f"an integer lies between -{SAFE_INTEGER} and {SAFE_INTEGER}", at=token)
        return int(token.text)

    def _unescape(self, token: _Token) -> str:
        try:
            value = str(json.loads(token.text, strict=False))
            value.encode()
        except json.JSONDecodeError as error:
            column = token.column + error.pos
            raise FilterSyntaxError("expected one of the escapes of JSON after '\\'", text=self._text, column=column) from error
        except UnicodeEncodeError:
            self._refuse("the text in quotes holds an unpaired surrogate", at=token)
        return value

    def _scan(self) -> _Token:
        found = _TOKEN.match(self._text, self._offset)
        if found is None or found.lastgroup is None:  # `other` takes any character, so there is always a token
            return _Token("end", "", len(self._text) + 1)
        self._offset = found.end()
        return _Token(found.lastgroup, found[found.lastgroup], found.start(found.lastgroup) + 1)

    def _advance(self) -> None:
        self._token = self._scan()

    def _accept(self, keyword: str) -> bool:
        if self._token.keyword != keyword:
            return False
        self._advance()
        return True

    def _expect(self, keyword: str, expected: str) -> None:
        if not self._accept(keyword):
            self._fail(expected)

    def _descend(self, start: _Token) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._refuse(f"a filter is nested at most {MAX_DEPTH} deep", at=start)

    def _fail(self, expected: str, *, hint: str = "") -> NoReturn:
        token = self._token
        if token.kind == "other" and token.text in '"`':
            expected, hint = f"a closing {token.text}", ""
        self._refuse(f"expected {expected}, found {token.shown}" + (f"; {hint}" if hint and token.kind != "end" else ""), at=token)

    def _refuse(self, problem: str, *, at: _Token) -> NoReturn:
        raise FilterSyntaxError(problem, text=self._text, column=at.column)


def _render(predicate: Predicate, *, is_operand: bool) -> str:
    match predicate:
        case And((clause,)) | Or((clause,)):
            return _render(clause, is_operand=is_operand)
        case And(clauses) | Or(clauses):
            return _render_joint(clauses, is_and=isinstance(predicate, And), is_operand=is_operand)
        case Not(clause):
            return f"NOT {_render(clause, is_operand=True)}"
        case _:
            return f"{_render_name(predicate.field)} {_render_condition(predicate)}"


def _render_joint(clauses: tuple[Predicate, ...], *, is_and: bool, is_operand: bool) -> str:
    if not clauses:
        return "TRUE" if is_and else "FALSE"
    joined = (" AND " if is_and else " OR ").join(_render(clause, is_operand=True) for clause in clauses)
    return f"({joined})" if is_operand else joined


def _render_condition(atom: Atom) -> str:
    match atom:
        case Compare(operator=operator, value=value):
            return f"{operator} {_render_value(value)}"
        case In(values=values):
            return f"in ({', '.join(map(_render_value, values))})"
        case NotIn(values=values):
            return f"not in ({', '.join(map(_render_value, values))})"
        case Contains(value=value):
            return f"contains {_render_value(value)}"
        case Exists():
            return "exists"


def _render_name(field: str) -> str:
    if _BARE_NAME.fullmatch(field) and field.lower() not in KEYWORDS:
        return field
    doubled = field.replace("`", "``")
    return f"`{doubled}`"


def _render_value(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Number):
        return value.number
    return json.dumps(value, ensure_ascii=False)
