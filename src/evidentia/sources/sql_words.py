"""What a statement over tables may be made of: functions by name, parts of a query by type.

What is not here is refused. Functions that read files, reach the network, load code, ask the clock, draw lots or make long values
out of short ones are left out on purpose.
"""

from __future__ import annotations

from typing import Final


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
