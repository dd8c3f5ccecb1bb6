"""Currencies, percent signs and units of measure, as people write them in headers, cells and number formats.

Refuses to guess: a word that is no known unit is a word.
"""

from __future__ import annotations

import re

PERCENT = "%"
_CURRENCIES = (
    "EUR USD GBP CHF JPY CNY INR RUB BRL CAD AUD NZD SEK NOK DKK PLN CZK HUF RON BGN TRY"
    " ZAR MXN KRW SGD HKD THB IDR MYR PHP ILS AED SAR"  # codespell:ignore
    " UAH TWD VND ARS CLP COP EGP NGN KES ISK"
)
_MEASURES = (
    "kg g mg µg t lb lbs oz km m cm mm µm nm mi ft yd inch m² m³ m2 m3 km² km2 cm² cm³ ha l L ml mL cl dl hl gal h hr hrs min s sec ms"
    " µs ns d kWh MWh GWh TWh Wh W kW MW GW V kV mV A mA Ω Hz kHz MHz GHz J kJ MJ kcal cal N kN Pa kPa MPa bar mbar psi °C °F K"
    " B kB KB MB GB TB PB KiB MiB GiB TiB bit kbit Mbit Gbit Mbps Gbps bps px pt dB mol km/h m/s mph rpm"
    " ppm ppb pcs pc Stk Stück Std FTE PT"
)
_SYMBOLS = {"€": "EUR", "£": "GBP", "₹": "INR", "₽": "RUB", "₩": "KRW", "₺": "TRY", "₴": "UAH", "zł": "PLN", "kr": "kr", "US$": "USD"}
_PLAIN_SYMBOLS = ("$", "¥", PERCENT, "‰", "R$", "Fr.")
_KNOWN = {word: word for word in (*_CURRENCIES.split(), *_MEASURES.split(), *_PLAIN_SYMBOLS)} | _SYMBOLS
_LOWERED = {word.lower(): word for word in _CURRENCIES.split()} | {"euro": "EUR", "euros": "EUR", "percent": PERCENT, "prozent": PERCENT}
_MULTIPLES = "mio\\.?|mrd\\.?|tsd\\.?|thousands?|millions?|billions?|mn|bn|k|t|tausend|millionen|milliarden|1000|1,000|1\\.000"
_MULTIPLE = re.compile(rf"({_MULTIPLES})\s*(?:of\s+)?(\S{{1,6}})", re.IGNORECASE)
_BRACKETED = re.compile(r"\s*[(\[]\s*(?:in\s+)?([^()\[\]]{1,20}?)\s*[)\]]\s*")
_AT_END = re.compile(r"^(.*\S)\s*(?:[(\[]\s*(?:in\s+)?([^()\[\]]{1,20}?)\s*[)\]]|,?\s+in\s+(\S{1,12}(?:\s\S{1,6})?))\s*$", re.DOTALL)
_SHARE_AT_END = re.compile(r"^(.*\S)\s*(%)$", re.DOTALL)
_FORMAT_QUOTED = re.compile(r'"([^"]{1,12})"|\[\$([^\]\-]{1,8})(?:-[0-9A-Fa-f]*)?\]|\\(.)')
_FORMAT_SYMBOL = re.compile(r"[€£$¥₹₽₩]")
MAX_UNIT_LENGTH = 20


def known_unit(text: str) -> str:
    """Return the unit `text` is, written in one way, or an empty string."""
    word = text.strip()
    if not word or len(word) > MAX_UNIT_LENGTH:
        return ""
    found = _KNOWN.get(word) or _LOWERED.get(word.lower())
    if found:
        return found
    match = _MULTIPLE.fullmatch(word)
    currency = _currency(match.group(2)) if match else ""
    return f"{match.group(1)} {currency}" if match and currency else ""


def unit_alone(text: str) -> str:
    """Return the unit that a cell of a header holds and nothing else, in brackets or bare."""
    match = _BRACKETED.fullmatch(text)
    return known_unit(match.group(1) if match else text)


def split_unit(name: str) -> tuple[str, str]:
    """Return a name of a column without its unit, and the unit; the name as it is when it has none."""
    match = _AT_END.match(name[:300])
    if match:
        unit = known_unit(match.group(2) or match.group(3))
        return (match.group(1), unit) if unit else (name, "")
    match = _SHARE_AT_END.match(name[:300])
    return (match.group(1), PERCENT) if match else (name, "")


def unit_of_format(code: str) -> str:
    """Return the unit a number format of a spreadsheet shows: a currency, a percent sign or a quoted unit."""
    positive = code.split(";", 1)[0]
    for quoted, currency, escaped in _FORMAT_QUOTED.findall(positive):
        unit = known_unit(quoted or currency or escaped)
        if unit:
            return unit
    bare = _FORMAT_QUOTED.sub("", positive)
    if PERCENT in bare:
        return PERCENT
    match = _FORMAT_SYMBOL.search(bare)
    return known_unit(match.group()) if match else ""


def _currency(word: str) -> str:
    unit = _KNOWN.get(word) or _LOWERED.get(word.lower(), "")
    return unit if unit in _CURRENCIES.split() or unit in _PLAIN_SYMBOLS else ""
