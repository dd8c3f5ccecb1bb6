"""The English words by which questions about tables are read: what counts, what compares, what orders, what says nothing.

Lists of words and nothing else; the rules are in the modules beside it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from evidentia.text import english

if TYPE_CHECKING:
    from collections.abc import Sequence


# ruff: noqa: SIM905 - lists of words read as words

COUNT, AVG, SUM, MAX, MIN = "count", "avg", "sum", "max", "min"
HIGH, LOW, TOP, EACH, ORDER = "high", "low", "top", "each", "order"
UP, DOWN, NOT, OR, AND, BETWEEN = "up", "down", "not", "or", "and", "between"
DISTINCT, RATIO, START, TRUTH, RATE = "distinct", "ratio", "start", "truth", "rate"
OVER, UNDER, LEAST, MOST, EQUAL = ">", "<", ">=", "<=", "="

_OPERATORS: Final[dict[str, str]] = {
    COUNT: "how many|number of|the number of|total number of|total count of|count of|count the number of|count",
    AVG: "average|mean|avg|on average",
    SUM: "total|sum of|sum|total sum of|combined|overall",
    MAX: "maximum|max",
    MIN: "minimum|min",
    HIGH: "highest|most|largest|greatest|biggest|best|most number of|maximum number of|highest number of|largest number of",
    LOW: "lowest|least|smallest|fewest|worst|least number of|lowest number of|fewest number of|smallest number of",
    TOP: "top|first",
    EACH: "each|every|per|for each|for every|in each|of each|by each|across different|across all|across|grouped by|broken down by|group by",
    ORDER: (
        "ordered by|sorted by|order by|sort by|in order of|ranked by|order the results by|sort the results by|order them by|sort them by|"
        "order results by|arranged by|order it by|order the result by|sort the result by|ordered|"
        "sorted|sort|sorted in order of|in the order of"
    ),
    UP: (
        "in ascending order|ascending|in increasing order|lowest first|smallest first|"
        "from lowest to highest|from the lowest to the highest|"
        "alphabetically|in alphabetical order|from smallest to largest|in ascending order of|"
        "in ascending order by|in alphabetical order of|"
        "from low to high|oldest first|earliest first|in ascending alphabetical order|"
        "in increasing order of|ascending order of|ascending order"
    ),
    DOWN: (
        "in descending order|descending|in decreasing order|highest first|largest first|"
        "from highest to lowest|from the highest to the lowest|"
        "in descending order of|in descending order by|from largest to smallest|from high to low|"
        "newest first|latest first|most recent first|"
        "in reverse alphabetical order|in decreasing order of|descending order of|descending order|"
        "starting from the highest|from best to worst"
    ),
    NOT: "not|without|except|excluding|other than|isn't|aren't|not in|don't|doesn't|except for|apart from|no|never|didn't|wasn't|weren't",
    OR: "or|either",
    AND: "and|both|as well as|along with|but|together with",
    BETWEEN: "between|from between",
    DISTINCT: "different|distinct|unique|all the different",
    RATIO: "ratio|proportion|percentage|percent|share|fraction",
    OVER: (
        "more than|greater than|over|above|higher than|larger than|exceeding|bigger than|longer than|"
        "older than|after|later than|>|exceeds|"
        "strictly more than|in excess of|heavier than|taller than|newer than|strictly greater than|exceed|beyond"
    ),
    UNDER: (
        "less than|fewer than|below|under|lower than|smaller than|shorter than|younger than|"
        "cheaper than|before|earlier than|<|lighter than|prior to"
    ),
    LEAST: (
        "at least|no less than|not less than|minimum of|since|>=|greater than or equal to|more than or equal to|starting from|from at least"
    ),
    MOST: "at most|no more than|not more than|maximum of|up to|until|<=|less than or equal to|not over|not exceeding|no later than",
    EQUAL: "equal to|exactly|equals|=|equal",
    START: (
        "starting with|start with|starts with|begin with|begins with|beginning with|start with the letter|starts with the letter|"
        "starting with the letter|begin with the letter|begins with the letter"
    ),
}
OPERATORS: Final = {tuple(phrase.split()): operator for operator, phrases in _OPERATORS.items() for phrase in phrases.split("|")}
"""Each phrase that is an operator, as words."""
MAX_OPERATOR_LENGTH: Final = max(len(words) for words in OPERATORS)
TIMELIKE: Final = frozenset(("after", "before", "since", "until", "later", "earlier", "prior"))

FUNCTIONS: Final = (COUNT, AVG, SUM, MAX, MIN)
COMPARISONS: Final = (OVER, UNDER, LEAST, MOST, EQUAL)

ADJECTIVES: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "cheapest": (LOW, ("price", "cost", "fare")),
    "least expensive": (LOW, ("price", "cost", "fare")),
    "most expensive": (HIGH, ("price", "cost", "fare")),
    "priciest": (HIGH, ("price", "cost")),
    "longest": (HIGH, ("length", "duration")),
    "shortest": (LOW, ("length", "duration", "height")),
    "tallest": (HIGH, ("height", "elevation", "altitude")),
    "heaviest": (HIGH, ("weight",)),
    "lightest": (LOW, ("weight",)),
    "oldest": (HIGH, ("age",)),
    "youngest": (LOW, ("age",)),
    "highest paid": (HIGH, ("salary", "wage", "pay")),
    "lowest paid": (LOW, ("salary", "wage", "pay")),
    "most populous": (HIGH, ("population",)),
    "most populated": (HIGH, ("population",)),
    "least populous": (LOW, ("population",)),
    "highest rated": (HIGH, ("rating",)),
    "best rated": (HIGH, ("rating",)),
    "lowest rated": (LOW, ("rating",)),
    "fastest": (HIGH, ("speed",)),
    "slowest": (LOW, ("speed",)),
    "deepest": (HIGH, ("depth",)),
    "widest": (HIGH, ("width",)),
    "most cited": (HIGH, ("citation",)),
}
"""Adjectives that name a measure without saying so: which end, and the words of columns that hold it."""

RECENCY: Final = {"newest": HIGH, "latest": HIGH, "most recent": HIGH, "earliest": LOW, "oldest": LOW, "first": LOW, "last": HIGH}
"""Adjectives of the one column of dates."""

OPENING: Final = frozenset(
    "what which who whom whose show list give find tell display return get provide name me us please is are was were do does did the a an "
    "can could you i we want need like would all any of's what's see let know out select retrieve identify calculate determine "
    "how much compute there print report fetch 's here".split()
)
"""Words before the first thing that is asked for."""

GLUE: Final = frozenset(
    "the a an of in on at for to from with by is are was were be been being do does did has have had having that who which whose whom what "
    "when there it its their his her they them we our us me i you your all any this these those as than then so also respectively "
    "located situated based belong belongs belonging associated related corresponding within into via "
    "received receive receives made given contained contain contains containing held appear appears exist exists existing "
    "offer offers offered offering serve serves served serving written write wrote writes published publish "
    "publishes posted post presented "
    "work works working worked live lives living lived called named titled labelled labeled "
    "database table sheet file data spreadsheet results result list show give find tell display return provide please name "
    "entries entry records record rows row "
    "much many currently recorded listed found given he she he/she him can could would "
    "include includes including included them where occurred occur occurs happened happen operate operates operated".split()
)
"""Words that relate things without naming any; a question made of these and of links is explained."""

CONTEXT_STARTS: Final = frozenset(
    "of in on at for to from with by that who which whose whom where has have had having within into via is are was were do does did "
    "located offer offers serve serves serving written received based "
    "posted published presented made work works".split()
)
"""Words after which a thing that is named is no longer one that is asked for."""

BEFORE_VALUE: Final = frozenset(
    "is are was were of the a an that with has have had named called titled being be equal name in at on value it its".split()
)
"""Words that may stand between a noun and the value or the number that it has."""

NO_LINK: Final = frozenset(
    "name title year month date text count type description homepage rating score time day note label status price".split()
)
"""Names of columns that many tables have and that tie none together."""

GENERIC: Final = frozenset(
    "name id code num number no nr count date text label title type key desc description is has flag amount value total the of ids "
    "names".split()
)
"""Parts of column names that questions leave out."""

ENTITY: Final = ("name", "title", "label", "fullname", "full_name")
"""Names of columns that say what a row is called, best first."""

PEOPLE: Final = frozenset(
    "employee employees staff worker workers person persons people personnel student students pupil author authors user users customer "
    "customers client clients instructor instructors teacher teachers player players member members manager managers singer singers "
    "actor actors director directors patient patients contact contacts attendee attendees owner owners passenger passengers".split()
)
"""Names of tables whose rows are people: what `who` asks for."""

SYNONYMS: Final[dict[str, tuple[str, ...]]] = {
    "cost": ("price", "fare"),
    "price": ("cost",),
    "salary": ("wage", "pay", "income", "earnings"),
    "earn": ("salary", "wage", "income"),
    "pay": ("salary", "wage"),
    "employee": ("staff", "worker", "personnel"),
    "staff": ("employee", "worker"),
    "worker": ("employee", "staff"),
    "people": ("person", "staff", "employee"),
    "department": ("dept", "division"),
    "dept": ("department",),
    "quantity": ("qty", "stock", "units"),
    "stock": ("quantity", "qty", "inventory"),
    "inventory": ("stock",),
    "item": ("product", "article"),
    "product": ("item", "article", "prod"),
    "customer": ("client", "buyer"),
    "client": ("customer",),
    "amount": ("amt", "sum"),
    "number": ("num", "no", "nr"),
    "phone": ("telephone", "tel"),
    "telephone": ("phone", "tel"),
    "mail": ("email", "e-mail"),
    "address": ("addr",),
    "country": ("nation",),
    "revenue": ("turnover",),
    "turnover": ("revenue",),
    "supplier": ("vendor",),
    "vendor": ("supplier",),
    "manager": ("mgr", "supervisor"),
    "birthday": ("birthdate", "dob"),
    "average": ("avg",),
    "payload": ("pay_load",),
    "cuisine": ("food_type", "cuisine_type"),
    "paper": ("publication",),
    "article": ("publication", "item"),
    "movie": ("film",),
    "film": ("movie",),
    "pupil": ("student",),
    "teacher": ("instructor", "professor"),
    "professor": ("instructor", "teacher"),
    "lecturer": ("instructor", "teacher"),
    "class": ("course",),
    "height": ("elevation", "altitude"),
    "elevation": ("altitude", "height"),
    "altitude": ("elevation", "height"),
    "size": ("area",),
}
"""Words of questions and the words of names that mean the same; few, and none that is often wrong."""

PERIODS: Final[dict[str, tuple[str, ...]]] = {
    "hour": ("hour", "hourly"),
    "day": ("day", "daily"),
    "night": ("night", "nightly"),
    "week": ("week", "weekly"),
    "month": ("month", "monthly"),
    "quarter": ("quarter", "quarterly"),
    "year": ("year", "yearly", "annual"),
}
"""What a measure is told by, and the words of names that say so: a month, and `monthly price`."""
BEFORE_PERIOD: Final = frozenset(("a", "an", "per", "each", "every"))

NUMBER_WORDS: Final = english.NUMBER_WORDS | {"hundred": 100, "thousand": 1000}
MULTIPLIERS: Final = {"hundred": 100, "thousand": 1_000, "k": 1_000, "million": 1_000_000, "m": 1_000_000, "billion": 1_000_000_000}
MONTHS: Final = english.MONTHS | english.SHORT_MONTHS
UNITS: Final[dict[str, str]] = {
    "$": "usd", "usd": "usd", "dollar": "usd", "dollars": "usd", "us$": "usd", "€": "eur", "eur": "eur", "euro": "eur", "euros": "eur",
    "£": "gbp", "gbp": "gbp", "pound": "gbp", "pounds": "gbp", "%": "%", "percent": "%", "kg": "kg", "kilogram": "kg", "kilograms": "kg",
    "kilo": "kg", "kilos": "kg", "g": "g", "grams": "g", "km": "km", "kilometers": "km", "kilometres": "km", "kilometer": "km", "m": "m",
    "meters": "m", "metres": "m", "mile": "mi", "miles": "mi", "mi": "mi", "mph": "mph", "minutes": "min", "minute": "min", "min": "min",
    "hours": "h", "hour": "h", "h": "h", "days": "d", "day": "d", "years": "y", "year": "y", "old": "y",
    "pieces": "pcs", "units": "pcs", "pcs": "pcs",
    "kw": "kw", "kwh": "kwh", "l": "l", "litres": "l", "liters": "l", "cm": "cm", "mm": "mm", "feet": "ft", "ft": "ft", "lbs": "lb",
    "stars": "stars", "points": "points", "yen": "jpy", "jpy": "jpy", "chf": "chf", "francs": "chf",
}  # fmt: skip
"""Words and signs after a number, and the unit that they are."""


# --- amounts ---
# Numbers, units and days as questions write them. Refuses what it cannot read whole: a half-read number is a wrong one.

_NUMBER: Final = re.compile(r"([$€£]?)(-?\d{1,3}(?:,\d{3})+(?:\.\d+)?|-?\d+(?:\.\d+)?)(%|k|m)?", re.ASCII)
_DAY: Final = re.compile(r"(\d{4})-(\d{2})(?:-(\d{2}))?", re.ASCII)
_ORDINAL: Final = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?", re.ASCII)
_MAX_NUMBER_LENGTH: Final = 18
_FIRST_YEAR, _LAST_YEAR = 1900, 2100
_DECEMBER: Final = 12
_LENGTHS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class Amount(NamedTuple):
    """A number with its unit, and how many words it took."""

    number: int | float
    unit: str
    length: int


class Days(NamedTuple):
    """A stretch of days: the first, and the first that no longer belongs to it, in ISO 8601; and how many words it took."""

    first: str
    end: str
    length: int


def read_amount(words: Sequence[str]) -> Amount | None:
    """Return the number that the words begin with."""
    if not words:
        return None
    found = _NUMBER.fullmatch(words[0])
    if found is None:
        number: int | float | None = NUMBER_WORDS.get(words[0])
        if number is None:
            return None
        return Amount(number, "", 1)
    sign, digits, suffix = found.groups()
    if len(digits) > _MAX_NUMBER_LENGTH:
        return None
    bare = digits.replace(",", "")
    number = float(bare) if "." in bare else int(bare)
    unit = UNITS.get(sign, "")
    if suffix == "%":
        unit = "%"
    elif suffix:
        number *= MULTIPLIERS[suffix]
    length = 1
    if length < len(words) and words[length] in MULTIPLIERS and len(words[length]) > 1:
        number *= MULTIPLIERS[words[length]]
        length += 1
    return Amount(number, unit, length)


def is_year(number: object) -> bool:
    """Tell whether a number may be a year."""
    return isinstance(number, int) and _FIRST_YEAR <= number <= _LAST_YEAR


def read_days(words: Sequence[str]) -> Days | None:
    """Return the days that the words begin with: an ISO day or month, `March 2021`, `5 March 2021`, `March 5, 2021`, a year."""
    if not words:
        return None
    if found := _DAY.fullmatch(words[0]):
        year, month, day = int(found[1]), int(found[2]), int(found[3] or 0)
        return _days(year, month, day, length=1)
    first, second, third = (*words[:3], "", "")[:3]
    if first in MONTHS and _year(second):
        return _days(_year(second), MONTHS[first], 0, length=2)
    if first in MONTHS and _ORDINAL.fullmatch(second) and _year(third):
        return _days(_year(third), MONTHS[first], _ordinal(second), length=3)
    if second in MONTHS and _ORDINAL.fullmatch(first) and _year(third):
        return _days(_year(third), MONTHS[second], _ordinal(first), length=3)
    return None


def year_days(year: int) -> Days:
    """Return the days of a year."""
    return Days(f"{year:04}-01-01", f"{year + 1:04}-01-01", 1)


def _days(year: int, month: int, day: int, *, length: int) -> Days | None:
    if not 1 <= month <= _DECEMBER or day > _LENGTHS[month - 1]:
        return None
    if day:
        # The day after, without a calendar: what is later than `2021-03-05` and all its hours sorts below the next text.
        return Days(f"{year:04}-{month:02}-{day:02}", f"{year:04}-{month:02}-{day:02}T99", length)
    after = (year + 1, 1) if month == _DECEMBER else (year, month + 1)
    return Days(f"{year:04}-{month:02}-01", f"{after[0]:04}-{after[1]:02}-01", length)


def _year(word: str) -> int:
    return int(word) if word.isascii() and word.isdigit() and is_year(int(word[:9])) else 0


def _ordinal(word: str) -> int:
    found = _ORDINAL.fullmatch(word)
    return int(found[1]) if found else 0
