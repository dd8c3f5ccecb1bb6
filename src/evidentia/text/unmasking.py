"""What a text says once its disguises are taken off: invisible characters, letters that merely look right, emphasis, encodings.

The result is for comparing words, never for showing: accents and the difference of upper and lower case are gone.
"""

from __future__ import annotations

import base64
import html
import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_LENGTH: Final = 200_000
MAX_DECODED: Final = 20_000
"""Characters of encoded runs that are looked at in one text."""
_LEAST_DECODED: Final = 8
_DOUBLES: Final = (
    (range(0xE0000, 0xE0080), 0),
    (range(0x1F1E6, 0x1F200), 97),
    (range(0x1F150, 0x1F16A), 97),
    (range(0x1F170, 0x1F18A), 97),
)
"""Doubles of ASCII: invisible tags, in which a whole sentence can be written, and letters in flags, circles and squares."""

_LOOKALIKES: Final = str.maketrans(
    {
        lookalike: letter
        for letter, lookalikes in {
            "A": "\u0391\u0410\u13aa\ua4ee", "B": "\u0392\u0412\u13f4\ua4d0", "C": "\u03f9\u0421\u13df\ua4da",
            "D": "\u13a0\ua4d3", "E": "\u0395\u0415\u13ac\ua4f0", "F": "\u03dc\ua4dd", "G": "\u050c\u13c0\ua4d6",
            "H": "\u0397\u041d\u13bb\ua4e7", "I": "\u0399\u0406\u04c0\ua4f2", "J": "\u037f\u0408\u13ab\ua4d9",
            "K": "\u039a\u041a\u13e6\ua4d7", "L": "\u13de\ua4e1", "M": "\u039c\u041c\u13b7\ua4df", "N": "\u039d\ua4e0",
            "O": "\u039f\u041e\u0555\ua4f3", "P": "\u03a1\u0420\u13e2\ua4d1", "Q": "\u051a", "R": "\u13a1\ua4e3",
            "S": "\u0405\u054f\u13da\ua4e2", "T": "\u03a4\u0422\u13a2\ua4d4", "U": "\u054d\ua4f4", "V": "\u0474\u13d9\ua4e6",
            "W": "\u051c\u13b3\ua4ea", "X": "\u03a7\u0425\ua4eb", "Y": "\u03a5\u04ae\ua4ec", "Z": "\u0396\u13c3\ua4dc",
            "a": "\u03b1\u0430", "b": "\u03b2\u044c\u0432\u13cf", "c": "\u03f2\u0441", "d": "\u0501\u0257", "e": "\u03b5\u0435\u04bd\u0454",
            "f": "\u03dd", "g": "\u050d\u0581", "h": "\u04bb\u0570\u043d", "i": "\u03b9\u0456", "j": "\u03f3\u0458", "k": "\u03ba\u043a",
            "l": "\u04cf\u0582", "m": "\u043c", "n": "\u03b7\u0578\u043f", "o": "\u03bf\u043e\u0585\u03c3", "p": "\u03c1\u0440",
            "q": "\u051b\u0566", "r": "\u0433", "s": "\u0455\u03c2", "t": "\u03c4\u0442", "u": "\u03c5\u057d\u03bc", "v": "\u03bd\u0475",
            "w": "\u051d\u03c9\u0448\u0561", "x": "\u03c7\u0445", "y": "\u03b3\u0443\u04af", "z": "\u03b6",
        }.items()
        for lookalike in lookalikes
    }
)  # fmt: skip
"""Letters of other scripts by the Latin letter that they look like."""
_NEVER_DECOMPOSED: Final[dict[str, str]] = dict(
    zip(
        "\u0142\u0141\u00f8\u00d8\u0111\u0110\u0131\u00df\u00e6\u0153\u0251\u0261\u0269\u212e\u0192\u017f\u01c3\u0138"
        "\u1d00\u0299\u1d04\u1d05\u1d07\ua730\u0493\u0262\u029c\u026a\u1d0a\u1d0b\u029f\u1d0d\u0274\u1d0f\u1d18\u01eb\u0280\ua731\u1d1b\u1d1c"
        "\u1d20\u1d21\u028f\u1d22\u2018\u2019\u201c\u201d\u3002\uff01",
        [*"lLoOdDi", "ss", "ae", "oe", *"agiefsikabcdeffghijklmnopqrstuvwyz''\"\".!"],
        strict=True,
    )
)
"""What Unicode does not decompose: barred letters, small capitals, quotation marks."""
_FOREIGN_LETTER: Final = re.compile(r"[^\x00-\x7f\W\d_]")
_FOREIGN: Final = re.compile(r"[^\x00-\x7f][^\x00-\x7f]*")
_EMPHASIS: Final = (("*", ""), ("`", ""), ("~", ""), ("_", " "), ("\u2028", "\n"), ("\u2029", "\n"))
_WITHIN_NAME: Final = re.compile(r"(?<=[^\W_])_+(?=[^\W_])")
_INLINE: Final = re.compile(r"</?(?:a|b|i|u|s|em|strong|span|font|mark|small|big|sup|sub|wbr|code|tt)(?: [^<>]{0,200})?/?>|<!--|-->|\u00ad")
_HYPHENATED: Final = re.compile(r"-(?<=[a-z]-)[ \t]*\n\s*(?=[a-z])")
_ESCAPED: Final = re.compile(r"\\u([0-9a-f]{4})|\\x([0-9a-f]{2})", re.IGNORECASE)
_PERCENT_RUN: Final = re.compile(r"(?:%[0-9a-fA-F]{2})+")
_PERCENT: Final = re.compile(r"%[2-7][0-9a-f].{0,8}%[2-7][0-9a-f]", re.IGNORECASE)
_SPACED: Final = re.compile(
    r"(?<![^\W_])[^\W\d_](?:([ \t\n.,\-_*|/+·•])[^\W\d_](?:\1[^\W\d_]){3,}|(?:[\n.,\-_*|/+·•]{1,2}[^\W\d_]){4,})(?![^\W_])"
)
_SPACED_SHORT: Final = re.compile(r"(?<![^\W_])[^\W\d_]([ \n.,\-_*|/+·•])[^\W\d_](?:\1[^\W\d_])*(?![^\W_])")
_OTHER_SCRIPT: Final = re.compile(r"[\u0370-\u058f\u13a0-\u13ff\ua4d0-\ua4ff]")
_MIXED: Final = re.compile(r"[A-Za-z][\u0370-\u058f\u13a0-\u13ff\ua4d0-\ua4ff]|[\u0370-\u058f\u13a0-\u13ff\ua4d0-\ua4ff][A-Za-z]")
_WORD: Final = re.compile(r"[^\W\d_]+")
_SIGNS_WITHIN: Final = re.compile(r"[@$!|](?:(?<=[a-z0-9].)(?=[a-z0-9])|(?<!\|)(?<![^\s(\"'].)(?=[a-z][a-z0-9@$!]{2}))")
_WITH_DIGITS: Final = re.compile(r"\b(?=[0-9]*[a-z])[a-z]*[013457][a-z0-9]+\b|\b[a-z]{2,}[013457]\b")
_DIGITS: Final = str.maketrans("013457", "oieast")
_EMPHASIS_WITHIN: Final = re.compile(r"[*`~<](?<=[a-zA-Z].)[*`~<]*[^>\n]{0,20}>?[a-zA-Z]")
_LEET_WORD: Final = re.compile(r"[013457@$!|](?<=[a-zA-Z].)[a-zA-Z]")
_SPACED_LETTERS: Final = re.compile(r"\b\w[\W_]\w[\W_]\w[\W_]\w\b")
_LONE_LETTERS: Final = re.compile(r"[\W_]\w[\W_]\w[\W_]\w")
_LEET: Final = {"@": "a", "$": "s", "!": "i", "|": "l"}
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/_-]{16,}\s{0,2})+(?:[A-Za-z0-9+/_-]{1,15}={0,2}(?!\S))?={0,2}")
_BASE32: Final = re.compile(r"[A-Z2-7]{24,}={0,6}")
_HEX: Final = re.compile(r"(?:(?:0x|\\x)?[0-9a-fA-F]{2}[ :,;-]{0,2}){12,}")
_BITS: Final = re.compile(r"(?:[01]{7,8}\s{0,2}){6,}")
_CODES: Final = re.compile(r"(?:\d{2,3}[ ,;]{1,2}){11,}\d{2,3}")
_HEX_GROUPS: Final = re.compile(r"(?<![A-Za-z0-9+/_])(?:[0-9a-fA-F]{2,8}[ :,;]{1,2}){8}")
_LEAST_RUN: Final = 16
UNBROKEN: Final = 20


def _kinds(**kinds: str) -> bytes:
    """Return a table for `translate` that writes each ASCII character as the letter of its kind, and what has none as a space."""
    return bytes([next((ord(kind) for kind, of in kinds.items() if re.match(f"[{of}]", chr(each), re.ASCII)), 32) for each in range(256)])


_ONLY_LETTERS: Final = bytes([each if chr(each).isalpha() and each < 128 else 32 for each in range(256)])  # noqa: PLR2004 - ASCII
_LETTERS: Final = _kinds(a="A-Za-z")
_NO_LETTERS: Final = _kinds(x="^A-Za-z")
_LETTERS_AND_LEET: Final = _kinds(a="A-Za-z", d="013457@$!|")
_RUNS: Final = _kinds(r="A-Za-z0-9+/_")
_LOWER: Final = b"abcdefghijklmnopqrstuvwxyz"
_IN_HEX_GROUPS: Final = _kinds(h="0-9A-Fa-f :,;")


def is_disguised(text: str) -> bool:
    """Tell whether a text of ASCII holds what could hide words from a reader of words."""
    raw = text.encode("ascii", "replace")
    return (
        ("%" in text and _PERCENT.search(text) is not None)
        or "&#" in text
        or "\\" in text
        or "-\n" in text
        or (("*" in text or "`" in text or "~" in text or "<" in text) and _EMPHASIS_WITHIN.search(text) is not None)
        or (b"ad" in (kinds := raw.translate(_LETTERS_AND_LEET)) and b"ada" in kinds)
        or b"x x x x x" in raw.translate(_NO_LETTERS)
        or _has_run(raw)
        or (
            _has_hex_groups(raw, text)
            and ("0110" in text or " 101" in text or text.count(" 6") > 3 or max(map(len, text.split())) >= _LEAST_RUN)  # noqa: PLR2004
        )
    )


def _has_run(raw: bytes) -> bool:
    """Tell whether a run of letters, digits and signs is long enough for an encoding, and no mere word."""
    runs = raw.translate(_RUNS) + b" "
    start = runs.find(b"r" * _LEAST_RUN)
    while start >= 0:
        end = runs.index(b" ", start)
        if raw[start + 1 : end].strip(_LOWER):
            return True
        start = runs.find(b"r" * _LEAST_RUN, end)
    return False


def _has_hex_groups(raw: bytes, text: str) -> bool:
    return b"h" * 24 in raw.translate(_IN_HEX_GROUPS) and _HEX_GROUPS.search(text) is not None


def has_long_word(text: str) -> bool:
    """Tell whether a text may hold a word of ASCII in which others stand without spaces."""
    return b"a" * UNBROKEN in text.encode("ascii", "replace").translate(_LETTERS)


def words_of(text: str) -> list[str]:
    """Return the runs of letters of a text, in no order."""
    if not text.isascii() and _FOREIGN_LETTER.search(text):
        parts = text.split()
        foreign = " ".join([part for part in parts if not part.isascii()])
        return words_of(" ".join([part for part in parts if part.isascii()])) + _WORD.findall(foreign)
    return text.encode("ascii", "replace").translate(_ONLY_LETTERS).decode().split()


def undisguised(text: str) -> str:
    """Return the text as its reader or a model would understand it, in lower case, and after it what is encoded in it."""
    text = text[:MAX_LENGTH]
    raw = text.encode("ascii", "replace")
    decoded = _decoded(text) if _has_run(raw) or _has_hex_groups(raw, text) else ""
    return f"{_plain(text)} . {_plain(decoded)}" if decoded else _plain(text)


def folded(text: str) -> str:
    """Return lower-case letters without accents or invisible characters; letters of other scripts stay."""
    return (text if text.isascii() else _FOREIGN.sub(_fold, text)).lower()


def _plain(text: str) -> str:
    if "&" in text:
        text = html.unescape(text)
    if "\\" in text:
        text = _ESCAPED.sub(lambda found: chr(int(found[1] or found[2], 16)), text).replace("\\n", "\n")
    if "%" in text and _PERCENT.search(text):
        text = _PERCENT_RUN.sub(lambda found: bytes.fromhex(found[0].replace("%", "")).decode("utf-8", "ignore"), text)
    if not text.isascii():
        text = _without_lookalikes(_FOREIGN.sub(_fold, text))
    text = text.lower()
    if "<" in text:
        text = _INLINE.sub("", text)
    if _has_lone_letters(text) and _SPACED_LETTERS.search(text) and _SPACED.search(text):
        text = _SPACED_SHORT.sub(lambda found: re.sub(r"[\W_]", "", found[0]) + " ", text)
    if "_" in text:
        text = _WITHIN_NAME.sub("", text)
    for sign, plain in _EMPHASIS:
        text = text.replace(sign, plain)
    if "-" in text:
        text = _HYPHENATED.sub("", text)
    is_leet = _LEET_WORD.search(text) is not None
    if "@" in text or "$" in text or "!" in text or "|" in text:
        text = _SIGNS_WITHIN.sub(lambda found: _LEET[found[0]], text)
    return _WITH_DIGITS.sub(lambda found: found[0].translate(_DIGITS), text) if is_leet else text


def _without_lookalikes(text: str) -> str:
    parts = text.split(" ") if _OTHER_SCRIPT.search(text) else []
    if any(not part.isascii() and _MIXED.search(part) for part in parts):
        return " ".join([part if part.isascii() else _WORD.sub(_as_latin, part) for part in parts])
    return text


def _has_lone_letters(text: str) -> bool:
    if not text.isascii() and _FOREIGN_LETTER.search(text):
        return _LONE_LETTERS.search(text) is not None
    return b"a a a a a" in text.encode("ascii", "replace").translate(_LETTERS).replace(b"  ", b" ")


def _as_latin(found: re.Match[str]) -> str:
    """Return a word in Latin letters where all of its letters look like some; words of another script stay."""
    word: str = found[0]
    latin = word.translate(_LOOKALIKES)
    return latin if latin.isascii() else word


def _fold(found: re.Match[str]) -> str:
    folded_run: str = _fold_run(found[0])
    return folded_run


@lru_cache(maxsize=4096)
def _fold_run(run: str) -> str:
    return "".join(_fold_letter(each) for each in unicodedata.normalize("NFKD", run))


def _fold_letter(letter: str) -> str:
    if letter <= "\x7f":
        return letter
    if letter in _NEVER_DECOMPOSED:
        return _NEVER_DECOMPOSED[letter]
    for doubles, first in _DOUBLES:
        if ord(letter) in doubles:
            return chr(first + ord(letter) - doubles.start)
    kind = unicodedata.category(letter)
    return "" if kind[0] == "M" or kind == "Cf" else " " if kind[0] == "Z" else letter


def _decoded(text: str) -> str:
    """Return what the encoded runs of a text say, as far as it is text."""
    raw = text.encode("ascii", "replace")
    found = [
        decoded
        for form, decode, sign, table, run in _DECODERS
        if sign in raw
        for encoded in _runs(form, text[:MAX_DECODED], raw[:MAX_DECODED].translate(table), run)
        for decoded in (_read(encoded, decode),)
        if decoded
    ]
    return " . ".join(found)[:MAX_DECODED]


def _runs(form: re.Pattern[str], text: str, kinds: bytes, run: bytes) -> Iterator[str]:
    """Yield what a form finds, looked for from where a run of the characters that it begins with is."""
    start = kinds.find(run)
    while start >= 0 and (found := form.search(text, start)):
        yield found[0]
        start = kinds.find(run, found.end())


def _read(run: str, decode: Callable[[str], bytes]) -> str:
    try:
        raw = decode(run)
    except (ValueError, OverflowError):
        return ""
    decoded = raw.decode("utf-8", "ignore")
    unread = len(raw) - len(decoded.encode())
    if 10 * unread > len(raw):
        return ""
    unread += sum(not (each.isprintable() or each.isspace()) for each in decoded)
    is_text = len(raw) >= _LEAST_DECODED and 10 * unread <= len(raw) and 2 * sum(map(str.isalpha, decoded)) >= len(decoded)
    return decoded if is_text else ""


def _of_base64(run: str) -> bytes:
    packed = re.sub(r"[\s=]", "", run).replace("-", "+").replace("_", "/")
    packed = packed[: len(packed) - (len(packed) % 4 == 1)]
    return base64.b64decode(packed + "=" * (-len(packed) % 4))


def _of_base32(run: str) -> bytes:
    packed = run.rstrip("=")
    return base64.b32decode(packed + "=" * (-len(packed) % 8))


def _of_hex(run: str) -> bytes:
    return bytes.fromhex(re.sub(r"0x|\\x|[^0-9a-fA-F]", "", run))


def _of_bits(run: str) -> bytes:
    bits = run.split()
    return bytes(int(each, 2) for each in (bits if len(bits) > 1 else [bits[0][at : at + 8] for at in range(0, len(bits[0]), 8)]))


def _of_codes(run: str) -> bytes:
    return bytes(int(each) for each in re.findall(r"\d+", run))


_DECODERS: Final = (
    (_BASE64, _of_base64, b"", _kinds(r="A-Za-z0-9+/_-"), b"r" * 16),
    (_BASE32, _of_base32, b"", _kinds(r="A-Z2-7"), b"r" * 24),
    (_HEX, _of_hex, b"6", _kinds(r=r"0-9A-Fa-fx\\ :,;-"), b"r" * 24),
    (_BITS, _of_bits, b"0110", None, b""),
    (_CODES, _of_codes, b"101", None, b""),
)
"""The form of an encoding, how it is read, a sign without which it holds no words, and the characters and length of its runs."""
