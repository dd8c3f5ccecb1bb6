"""Does a piece of evidence talk to whoever reads it as if it were to be obeyed? A flag for readers, never a reason to drop anything.

It weighs words of a few ideas (to ignore, orders, your, reply) that stand close together, in any of its languages and also behind
disguises: docs/hostile-text.md says how many of the known attacks it sees, how many it misses, and how often it is wrong about
ordinary text. `tools/fit_injection.py` fits the weights.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.text.disguises import folded, undisguised

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

INSTRUCTION_LIKE: Final = "instruction_like"
ACTIVE_MARKUP: Final = "active_markup"

_ACTIVE: Final = re.compile(
    r"<\s*script\b|\bjavascript\s*:|\bdata:text/html|\bvbscript\s*:|<[^>\n]{0,200}\bon[a-z]{3,20}\s*="
    r"|!\[[^\]\n]{0,200}\]\(\s*https?://[^)\s]{0,300}[?&][^)\s]{0,300}=",
    re.IGNORECASE,
)
_TURN: Final = re.compile(
    r"<\|[a-z ]{2,20}\|>|\[/?inst\]|<</?sys>>|</?(?:system|instructions?|information|important|tool calls?|function calls?|user request"
    r"|assistant|human)>|(?:#+|\[) ?(?:system|instructions?|new task)(?: prompt| message)?\]?(?= ?[:(\n])"
    r"|\b(?:begin|end|start)(?: of)?(?: the)? (?:system|new|user|context|document|input) ?(?:prompt|instructions?|message|text)?\b"
)
_ROLE: Final = re.compile(
    r"^[ \t>|\"'-]*(?:#+ ?)?\[?(?:system|assistant|human|user|developer|ai|admin)(?: (?:prompt|message|instructions?|note|override))?\]? ?:",
    re.MULTILINE,
)
_TOKEN: Final = re.compile(r"[^\W_]+|[.!?:;\n]")
_UNSPACED: Final = re.compile(r"[\u0e00-\u0eff\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff]")
_DIGITS: Final = (str.maketrans("013457", "oieast"), str.maketrans("013457", "oleast"))
_MARKS: Final = {"zturn": ("turn",), "zrole": ("role_name",)}
_LONG_WORD: Final = 16
"""From so many letters on a word is looked at for others in it: words written without spaces, and compounds."""
WINDOW: Final = 28
STEP: Final = 10
NEAR: Final = 8
ADJACENT: Final = 2
Ideas = tuple[str, ...]


class InjectionWeights(msgspec.Struct, frozen=True):
    """What each feature of a stretch of words adds to its score, in thousandths; a text whose best stretch has 0 or more is flagged."""

    bias: int
    weights: dict[str, int]


class Lexicon:
    """The ideas by their words."""

    def __init__(self, words: dict[str, dict[str, str]]) -> None:
        """Read the words of each idea in each language."""
        ideas: dict[str, list[str]] = {}
        for idea, languages in words.items():
            for word in " ".join(languages.values()).split():
                ideas.setdefault(folded(word).replace("_", " "), []).append(idea)
        self.ideas: dict[str, Ideas] = {word: tuple(dict.fromkeys(found)) for word, found in ideas.items() if " " not in word}
        self.ideas |= _MARKS
        phrases = sorted((word for word in ideas if " " in word), key=lambda word: (-len(word), word))
        self.phrases = re.compile(r"\b(?:" + "|".join(re.escape(phrase).replace(r"\ ", r"\s+") for phrase in phrases) + r")\b")
        self.phrase_ideas: dict[str, Ideas] = {phrase: tuple(dict.fromkeys(ideas[phrase])) for phrase in phrases}
        unspaced = sorted((word for word in self.ideas if _UNSPACED.match(word)), key=lambda word: (-len(word), word))
        self.unspaced = re.compile("|".join(map(re.escape, unspaced)))
        latin = sorted(
            (word for word in self.ideas if word.isascii() and len(word) > 3 and word not in _MARKS), key=lambda word: (-len(word), word)
        )
        self.within = re.compile("|".join([*latin, "all", "any", "the", "and", "you", "your", "new", "not", "say"]))


def instruction_marks(text: str) -> tuple[str, ...]:
    """Return the ideas by which a text seems to give its reader instructions; empty for most."""
    best, ideas = score(text)
    return ideas if best >= 0 else ()


def score(text: str) -> tuple[int, tuple[str, ...]]:
    """Return the score of the stretch that is most like an instruction, and its ideas."""
    model = shipped_weights()
    best, found = -1_000_000, ()
    for stretch in stretches(text):
        names = features(stretch)
        value = model.bias + sum(model.weights.get(name, 0) for name in names)
        if value > best:
            best, found = value, tuple(dict.fromkeys(idea for ideas in stretch for idea in ideas if idea != "|"))
    return best, found


def stretches(text: str) -> Iterator[Sequence[Ideas]]:
    """Yield the ideas of each stretch of words of a text that holds enough of them; stretches overlap."""
    plain = undisguised(text)
    tokens = ideas_of(plain)
    for start in range(0, max(1, len(tokens) - WINDOW + STEP), STEP):
        stretch = tokens[start : start + WINDOW]
        if sum(1 for ideas in stretch if ideas and ideas[0] != "|") >= 2:
            yield stretch


def features(stretch: Sequence[Ideas]) -> set[str]:
    """Return the names of what a stretch of words has: ideas, ideas that begin a sentence, and pairs of them that are close."""
    found: set[str] = set()
    places = [(place, ideas) for place, ideas in enumerate(stretch) if ideas]
    for index, (place, ideas) in enumerate(places):
        if ideas[0] == "|":
            continue
        found.update(ideas)
        if (index == 0 and place == 0) or (places[index - 1][0] == place - 1 and places[index - 1][1][0] == "|"):
            found.update("^" + idea for idea in ideas)
        for later, others in places[index + 1 :]:
            gap = later - place
            if gap > NEAR:
                break
            if others[0] == "|":
                continue
            for one in ideas:
                for other in others:
                    if one != other:
                        found.add(f"{one}~{other}" if one < other else f"{other}~{one}")
                    if gap <= ADJACENT:
                        found.add(f"{one}>{other}")
    return found


def ideas_of(plain: str) -> list[Ideas]:
    """Return the ideas of each word of a text without disguises; `|` is a boundary of sentences or lines, and no idea at all is empty."""
    lexicon = shipped_lexicon()
    plain = plain.replace("'", "")
    plain = _TURN.sub(" zturn ", plain)
    plain = _ROLE.sub(" zrole ", plain)
    plain = lexicon.phrases.sub(lambda found: "zz".join(found[0].split()), plain)
    tokens: list[Ideas] = []
    for word in _TOKEN.findall(plain):
        ideas = lexicon.ideas.get(word)
        if ideas is not None:
            tokens.append(ideas)
        elif not word[0].isalnum():
            tokens.append(("|",))
        elif "zz" in word and (phrase := word.replace("zz", " ")) in lexicon.phrase_ideas:
            tokens.append(lexicon.phrase_ideas[phrase])
        elif _UNSPACED.match(word):
            end = 0
            for found in lexicon.unspaced.finditer(word):
                tokens.extend([()] * ((found.start() - end) // 2))
                tokens.append(lexicon.ideas[found[0]])
                end = found.end()
            tokens.extend([()] * ((len(word) - end) // 2))
        elif len(word) >= _LONG_WORD:
            tokens.extend(lexicon.ideas.get(found, ()) for found in lexicon.within.findall(word))
        elif not word.isalpha() and not word.isdigit():
            tokens.append(next((lexicon.ideas[read] for table in _DIGITS if (read := word.translate(table)) in lexicon.ideas), ()))
        else:
            tokens.append(())
    return tokens


def hostile_flags(text: str) -> tuple[str, ...]:
    """Return the flags a fragment with this text carries."""
    marks = instruction_marks(text)
    is_hinted = "<" in text or "](" in text or (":" in text and any(word in text.lower() for word in ("script", "text/html")))
    is_active = is_hinted and _ACTIVE.search(text[:200_000]) is not None
    return ((INSTRUCTION_LIKE,) if marks else ()) + ((ACTIVE_MARKUP,) if is_active else ())


@cache
def shipped_lexicon() -> Lexicon:
    """Return the words of the package."""
    return Lexicon(msgspec.json.decode((files("evidentia.text") / "injection_words.json").read_bytes(), type=dict[str, dict[str, str]]))


@cache
def shipped_weights() -> InjectionWeights:
    """Return the weights of the package."""
    return msgspec.json.decode((files("evidentia.text") / "injection_weights.json").read_bytes(), type=InjectionWeights)
