"""The closed word lists of grounding: words without content, common words, negations, directions, number words and units.

English and small, written for this file. A word that is missing here costs a find, never a lie: it counts as a plain word.
"""

from __future__ import annotations

from typing import Final

from evidentia.text.tokens import Tokeniser

TOKENISER: Final = Tokeniser()
"""The tokeniser of claims and passages; what it remembers never changes what it returns."""

NUMBER_WORDS: Final = {
    "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9", "ten": "10",
    "eleven": "11", "twelve": "12", "twenty": "20", "thirty": "30", "forty": "40", "fifty": "50",
}  # fmt: skip
"""Numbers as a passage may spell them where a claim writes digits."""

UNITS: Final = {
    **dict.fromkeys(("%", "percent", "percentage", "pct"), "%"),
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), "min"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("day", "days"), "day"),
    **dict.fromkeys(("week", "weeks"), "week"),
    **dict.fromkeys(("month", "months"), "month"),
    **dict.fromkeys(("y", "yr", "yrs", "year", "years"), "year"),
    **dict.fromkeys(("ug", "mcg", "microgram", "micrograms"), "ug"),
    **dict.fromkeys(("mg", "milligram", "milligrams"), "mg"),
    **dict.fromkeys(("g", "gram", "grams"), "g"),
    **dict.fromkeys(("kg", "kilogram", "kilograms"), "kg"),
    **dict.fromkeys(("lb", "lbs", "pound", "pounds"), "lb"),
    **dict.fromkeys(("oz", "ounce", "ounces"), "oz"),
    **dict.fromkeys(("ton", "tons", "tonne", "tonnes"), "t"),
    **dict.fromkeys(("mm", "millimeter", "millimeters", "millimetre", "millimetres"), "mm"),
    **dict.fromkeys(("cm", "centimeter", "centimeters", "centimetre", "centimetres"), "cm"),
    **dict.fromkeys(("km", "kilometer", "kilometers", "kilometre", "kilometres"), "km"),
    **dict.fromkeys(("m", "meter", "meters", "metre", "metres"), "m"),
    **dict.fromkeys(("inch", "inches"), "in"),
    **dict.fromkeys(("ft", "foot", "feet"), "ft"),
    **dict.fromkeys(("mi", "mile", "miles"), "mi"),
    **dict.fromkeys(("ml", "milliliter", "milliliters", "millilitre", "millilitres"), "ml"),
    **dict.fromkeys(("l", "liter", "liters", "litre", "litres"), "l"),
    **dict.fromkeys(("kb", "kilobyte", "kilobytes"), "kb"),
    **dict.fromkeys(("mb", "megabyte", "megabytes"), "mb"),
    **dict.fromkeys(("gb", "gigabyte", "gigabytes"), "gb"),
    **dict.fromkeys(("tb", "terabyte", "terabytes"), "tb"),
    **dict.fromkeys(("hz", "khz", "mhz", "ghz"), "hz"),
    **dict.fromkeys(("hundred", "hundreds"), "hundred"),
    **dict.fromkeys(("thousand", "thousands"), "thousand"),
    **dict.fromkeys(("million", "millions", "mn"), "million"),
    **dict.fromkeys(("billion", "billions", "bn"), "billion"),
    **dict.fromkeys(("trillion", "trillions"), "trillion"),
    **dict.fromkeys(("dollar", "dollars", "usd"), "$"),
    **dict.fromkeys(("euro", "euros", "eur"), "\u20ac"),
}
"""Units by every spelling; two are the same when they map to the same name."""

MAGNITUDES: Final = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
"""Units that are part of the number, by how many zeros they stand for."""
CURRENCY_SIGNS: Final = {"$": "$", "\u20ac": "\u20ac", "\u00a3": "\u00a3", "\u00a5": "\u00a5"}

_LONG: Final = 6
_EMPTY: Final = (
    "a an the of and or in on to for with by at from as is are was were be been being it its this that these those he she they them his "
    "her their we our us you your i my me not no nor but if than then so such can could may might will would shall should must do does "
    "did done have has had having which who whom whose what when where why how there here also into onto about over under after before "
    "while because since until although though however therefore thus hence more most less least much many few several other another "
    "some any all each every both either neither between through during within without against among per via upon very too just only "
    "even still yet again once ever never often always sometimes usually generally typically mainly mostly etc one two up down out off "
    "own same further additionally moreover furthermore overall conclusion example instance including include includes included like "
    "well way ways"
)
_COMMON: Final = (
    "time year people use make help important know new good great number part work world life day different large small high low long "
    "find provide give get take call come become increase decrease reduce improve effect result cause show study system level process "
    "type form change need allow lead base specific certain various common possible ability able factor state group first second last "
    "name case country area place point problem thing issue require support play role set according refer consider potential significant "
    "significantly multiple keep ensure involve create develop development feature term due related associated available main major key "
    "general particular amount body human person man woman child information data research given known made used using found shown"
)
_DENIALS: Final = (
    "not no never neither nor cannot can't don't doesn't didn't isn't aren't wasn't weren't won't wouldn't couldn't shouldn't "
    "hasn't haven't hadn't"
)
_NEGATIONS: Final = _DENIALS + " none nobody nothing without lack fail unable absence absent ineffective unlikely insufficient"
_UP: Final = (
    "increase increment higher high more greater rise risen raise elevate elevated enhance improve gain up upregulate promote stimulate "
    "activate activation induce accelerate boost strengthen expand grow growth larger longer faster better best most positive positively "
    "extend augment exacerbate facilitate overexpression stronger superior maximise maximize multiply double triple surge climb "
    "encourage enable elicit"
)
_DOWN: Final = (
    "decrease lower low less fewer reduce reduction decline drop fall fell diminish impair inhibit inhibition suppress suppression block "
    "prevent prevention attenuate down downregulate slow slower weaken shrink smaller shorter worsen worst least negative negatively loss "
    "lose deficient deficiency deplete depletion limit ameliorate alleviate shorten abolish abrogate inferior minimise "
    "minimize halve weaker worse halt disrupt damage delay hinder"
)


def respell(term: str) -> str:
    """Return a long term without what British and American spelling differ in (tumour, haemoglobin, oestrogen)."""
    if len(term) < _LONG:
        return term
    return term.replace("our", "or").replace("ae", "e").replace("oe", "e")


def _stems(words: str) -> frozenset[str]:
    return frozenset(respell(term) for word in words.split() for term in TOKENISER.analyse(word).terms)


EMPTY: Final = _stems(_EMPTY)
"""Stems of words that say nothing by themselves."""
COMMON: Final = _stems(_COMMON)
"""Stems of words so frequent that finding one says little."""
NEGATIONS: Final = _stems(_NEGATIONS)
DENIALS: Final = _stems(_DENIALS)
"""Those of them that deny whatever follows."""
DIRECTIONS: Final = dict.fromkeys(sorted(_stems(_UP)), 1) | dict.fromkeys(sorted(_stems(_DOWN)), -1)
"""Stems that say more, up or better (1), or less, down or worse (-1)."""
