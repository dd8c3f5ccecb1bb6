"""How much a text is like a request to whoever answers from it, weighed over words of a few ideas (to ignore, orders, your, reply).

An idea has words in many languages (`injection_words.json`), so that what is learned from one language holds for the others;
`tools/fit_injection.py` fits the weights. It decides nothing about meaning: docs/hostile-text.md says what it misses.
"""

from __future__ import annotations

import codecs
import re
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

import msgspec

from evidentia.contracts.decoding import decode_json
from evidentia.text.unmasking import UNBROKEN, folded, words_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

_TURN: Final = re.compile(
    r"<\|[a-z ]{2,20}\|>|\[/?inst\]|<</?sys>>|</?(?:system|instructions?|information|important|tool calls?|function calls?|user request"
    r"|assistant|human)>|(?:#+|\[) ?(?:system|instructions?|new task)(?: prompt| message)?\]?(?= ?[:(\n])"
    r"|\b(?:begin|end|start)(?: of)?(?: the)? (?:system|new|user|context|document|input) ?(?:prompt|instructions?|message|text)?\b"
)
_TURN_SIGNS: Final = {
    "<": ("<|", "<<", "<system", "<instr", "<info", "<import", "</", "<tool", "<func", "<user", "<assis", "<human"),
    "[": ("[inst", "[/inst", "[system"),
    "#": ("# system", "#system", "# instr", "# new task"),
    "end ": ("end of ", "end system"),
    "begin ": ("begin new", "begin system"),
    "new system": ("",),
}
_ROLES: Final = frozenset(("system", "assistant", "human", "user", "developer", "ai", "admin"))
_TURN_WORDS: Final = frozenset(
    [
        *("system", "assistant", "human", "user", "developer", "ai", "admin", "inst", "sys", "instruction", "instructions"),
        *("information", "important", "tool", "function", "task", "prompt", "message", "context", "document", "input"),
    ]
)
_ROLE: Final = re.compile(
    r"^[ \t>|\"'-]*(?:#+ ?)?\[?(?:system|assistant|human|user|developer|ai|admin)"
    r"(?: (?:prompt|message|instructions?|note|override))?\]? ?:",
    re.MULTILINE,
)
_ELISION: Final = re.compile(r"'(?:(?=\w{3})|(?<=\b[cdjlmnst]'))")
_TOKEN: Final = re.compile(r"[^\W_]+|[:;\n]")
_SENTENCE_END: Final = re.compile(r"[.!?](?=[\s\"')]|$)|\n\s*(?:[-+#|]|\d+[.)])")
_UNSPACED: Final = re.compile(r"[\u0e00-\u0eff\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff]")
_SPACE: Final = r"\ "
_SPACES: Final = r"\s+"
_MARKS: Final = {"zturn": ("turn",), "zrole": ("role_name",)}
_SOFT: Final = ("|",)
_LONG_WORD: Final = 16
"""From so many letters on a word is looked at for others in it: words written without spaces, and compounds."""
_SHORT: Final = 3
_LITTLE: Final = ("all", "any", "the", "and", "you", "new", "not", "say", "with", "that", "have", "been")
_ROOTS: Final = ("ignor", "instruc", "prompt", "disregard", "forget", "overrid", "reveal", "rules", "unrestricted", "assistant")
WINDOW: Final = 20
STEP: Final = 7
NEAR: Final = 8
ADJACENT: Final = 2
Ideas = tuple[str, ...]
_CORE: Final = frozenset(
    (
        "ignore",
        "orders",
        "prompt",
        "rules",
        "your",
        "you",
        "model",
        "reply",
        "user",
        "turn",
        "role_name",
        "received",
        "verbatim",
        "only",
        "add",
    )
)
"""A stretch without one of these ideas is no instruction, and of a close pair one is among them."""


_STRONG: Final = frozenset(("ignore", "orders", "prompt", "model", "verbatim"))
_COMMON: Final = frozenset(("human", "humans", "entire", "language", "text", "full", "loud"))
_ADDRESSING: Final = _STRONG | {"you", "your", "user"}
_ORDER: Final = "(orders|rules|prompt)"
_GIVE: Final = "(reveal|say|transform|send|add|verbatim)"
_MAKE: Final = "(add|say|transform|reveal|persuade|send|do|tell|only)"
_FORMS: Final = {
    "override": (
        "(ignore|skip) 5 prior 3 (orders|rules|prompt|task|received|text)",
        f"(ignore|skip) 5 {_ORDER} 3 (prior|received)",
        f"prior 4 {_ORDER} 4 ignore",
        f"{_ORDER} 3 prior 4 ignore",
    ),
    "override_yours": (f"ignore 4 (your|system) 3 {_ORDER}", f"(your|system) 3 {_ORDER} 4 ignore", f"ignore 2 all 4 {_ORDER}"),
    "override_told": (
        "ignore 3 all 4 (received|prior)",
        "ignore 4 (you|your) 3 received",
        "all 4 received 4 ignore",
        "ignore 3 all 1 prior",
    ),
    "override_task": (
        "(ignore|skip|not) 3 user 3 (task|orders)",
        "(ignore|skip) 4 (task|orders) 4 following",
        "ignore 6 (now|only|following) 2 (say|do|bound)",
    ),
    "unbound": (
        f"not 4 (bound|follow) 4 {_ORDER}",
        f"{_ORDER} 4 not 3 (bound|ignore)",
        f"you 4 not 3 (bound|{_ORDER[1:]}",
        "you 4 (bound|mode) 3 (all|not)",
    ),
    "disclose": (
        f"{_GIVE} 4 (your|system|you) 2 {_ORDER}",
        f"{_GIVE} 5 (your|system) 1 (prompt|secret)",
        f"(your|system) 2 (prompt|orders) 4 {_GIVE}",
        f"{_GIVE} 4 prompt",
        f"{_GIVE} 6 {_ORDER} 4 (you|received|verbatim|bound)",
        f"{_GIVE} 4 (all|text|following) 2 prior",
    ),
    "secrets": (f"{_GIVE} 5 (user|your|all) 3 secret", f"secret 4 {_GIVE}", f"{_GIVE} 3 secret"),
    "reply": (
        f"^ 3 {_MAKE} 9 your 1 reply",
        f"(please|must) 3 {_MAKE} 9 your 1 reply",
        "your 1 reply 3 must 3 (add|transform|format|say|link)",
    ),
    "in_reply": (
        f"^ 1 your 1 reply 4 {_MAKE}",
        f"{_MAKE} 2 your 1 reply",
        f"your 2 reply 4 {_MAKE}",
        f"{_MAKE} 5 reply 4 (format|link|persuade|text)",
    ),
    "code": (
        "(add|do|must|work) 6 following 3 (work|snippet) 8 your 3 (work|reply)",
        "your 2 (work|reply) 6 (add|do|must) 5 following 3 (work|snippet)",
        "add 8 following 1 work 1 snippet",
        "following 1 work 1 snippet 7 (your|you) 2 (work|reply)",
    ),
    "role": (
        "you 2 now 5 (model|agent|role|mode|bound)",
        "you 1 not 3 (model|bound)",
        "(role|mode) 5 (model|agent|bound|mode)",
        "role 4 you",
        "you 4 role 6 (model|all|mode|rules)",
    ),
    "addressed": (
        "(important|text|orders|tell|task) 3 model",
        "when 2 you 2 (model|agent|reading)",
        "model 5 (must|not|please) 4 (say|do|add|ignore|reveal|send|tell|bound|reply)",
        "model 3 (reading|bound)",
        "^ 1 model 3 (say|do|add|ignore|reveal|send|tell|bound|reply|please)",
        "(reading|when) 6 model",
    ),
    "secrecy": (
        "not 3 (tell|reveal|say|hide|reply|add) 5 (user|orders)",
        "hide 5 (user|orders|text)",
        "not 3 (tell|reveal|say) 5 following 2 (text|orders|reply)",
        "user 4 (tell|not) 4 (tell|not)",
    ),
    "task": (
        "new 2 (orders|prompt|task|rules)",
        "your 2 (new|only|now) 2 (task|orders|prompt)",
        "your 2 task 2 now",
        "(orders|task) 3 (model|agent)",
    ),
    "errand": (
        "you 1 must 2 (now|only|must) 3 (send|do|say|bound)",
        "(send|do) 6 user 3 secret",
        "when 2 you 3 (reading|say|reply) 6 (send|do|bound|following)",
        "tell 2 user 4 (do|send|link|say)",
        "model 6 (send|do)",
    ),
    "only": ("^ 1 (say|reply) 3 only", "^ 1 only 2 (say|reply)", "(say|reply) 2 only 3 (format|text|all)", "only 3 (say|reply) 4 ^"),
    "turn": ("(turn|role_name) 8 (you|ignore|say|reveal|must|bound|do|your)",),
}
"""Orders of ideas: `ignore 5 prior` is an ignore, at most five other words, and a prior; `^` begins a sentence or a line."""


def _compiled(form: str) -> str:
    """Return a pattern over words written as `,` and the ideas of the word, each followed by a space."""
    pattern = ""
    for part in form.split(" "):
        if part.isdigit():
            pattern += rf"[^,]*(?:,[^,]*){{0,{part}}},[^,]*"
        elif part == "^":
            pattern += r"\^ "
        else:
            pattern += rf"(?<![a-z_])(?:{part.strip('()')}) "
    return pattern


_COMPILED: Final = {name: re.compile("|".join(map(_compiled, forms))) for name, forms in _FORMS.items()}
_NEEDED: Final = {
    name: [[frozenset(part.strip("()").split("|")) for part in form.split(" ") if not part.isdigit() and part != "^"] for form in forms]
    for name, forms in _FORMS.items()
}
"""Of every form the groups of ideas of which each has one in whatever it finds."""


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
        self.phrases = re.compile(rf"\b{_any_of(phrases)}\b")
        self.words_of_phrases: dict[str, list[set[str]]] = {}
        for needed in map(set, map(words_of, phrases)):
            self.words_of_phrases.setdefault(max(sorted(needed), key=len), []).append(needed)
        self.phrase_ideas: dict[str, Ideas] = {phrase: tuple(dict.fromkeys(ideas[phrase])) for phrase in phrases}
        unspaced = sorted((word for word in self.ideas if _UNSPACED.match(word)), key=lambda word: (-len(word), word))
        self.unspaced = re.compile(_any_of(unspaced))
        latin = [word for word in self.ideas if word.isascii() and len(word) > _SHORT and word not in _MARKS]
        self.core = {
            max(phrase.split(" "), key=len): next(idea for idea in found if idea in _CORE)
            for phrase, found in ideas.items()
            if not _CORE.isdisjoint(found)
        }
        self.strong = frozenset(word for word, idea in self.core.items() if idea in _STRONG)
        self.addressing = frozenset(word for word, idea in self.core.items() if idea in _ADDRESSING and word not in _COMMON)
        turning = [word for word in self.strong if word.isascii() and len(word) > 5]  # noqa: PLR2004 - shorter ones are words read otherwise
        self.rotated = frozenset(codecs.encode(word, "rot13") for word in turning) - self.ideas.keys()
        self.reversed = frozenset(word[::-1] for word in turning) - self.ideas.keys()
        self.odd = self.rotated | self.reversed
        self.vocabulary = self.odd | self.core.keys() | _TURN_WORDS | _ROLES
        latin.sort(key=lambda word: (-len(word), word))
        self.within = re.compile(_any_of([*latin, *_LITTLE]))


def _any_of(words: Sequence[str], letters: int = 4) -> str:
    """Return a pattern of the words in their order, with those that begin alike together: a search looks at few of them."""
    if letters == 0 or len(words) == 1:
        return f"(?:{'|'.join(re.escape(word).replace(_SPACE, _SPACES) for word in words)})"
    endings: dict[str, list[str]] = {}
    for word in words:
        endings.setdefault(word[:1], []).append(word[1:])
    return "(?:" + "|".join(re.escape(first).replace(_SPACE, _SPACES) + _any_of(rest, letters - 1) for first, rest in endings.items()) + ")"


def is_request(plain: str) -> bool:
    """Tell whether a text without disguises, in lower case, holds a sentence that weighs as much as a request to its reader."""
    model = shipped_weights()
    return any(_is_heavy(stretch, model) for stretch in stretches(plain))


def _is_heavy(stretch: Sequence[Ideas], model: InjectionWeights) -> bool:
    found = _pairs(stretch)
    score = model.bias + sum([model.weights.get(name, 0) for name in found])
    forms = _possible_forms(frozenset(idea for ideas in stretch for idea in ideas))
    if score + sum([max(0, model.weights.get(f"*{name}", 0)) for name in forms]) < 0:
        return False
    return score + sum([model.weights.get(name, 0) for name in _forms(stretch)]) >= 0


def is_likely(words: Collection[str]) -> bool:
    """Tell whether a text with these words, in lower case, may hold a request: most texts lack the ideas of which each request has some."""
    lexicon = shipped_lexicon()
    if lexicon.addressing.isdisjoint(words):
        return False
    found = lexicon.core.keys() & words
    return not lexicon.strong.isdisjoint(found) or len({lexicon.core[word] for word in found}) > 1


def has_turn(plain: str, words: Collection[str]) -> bool:
    """Tell whether a text has marks of a chat, such as the name of a role before a colon."""
    if _TURN_WORDS.isdisjoint(words) and "<|" not in plain:
        return False
    return _has_turn_sign(plain) or (":" in plain and not _ROLES.isdisjoint(words) and _ROLE.search(plain) is not None)


def _has_turn_sign(plain: str) -> bool:
    return any(sign in plain for first, signs in _TURN_SIGNS.items() if first in plain for sign in signs)


def turned(words: Collection[str], plain: str) -> str:
    """Return a text read backwards, by ROT13 or with spaces where words of a request stand in it so, and nothing otherwise.

    The words are those of the vocabulary and those of many letters.
    """
    lexicon = shipped_lexicon()
    if lexicon.odd.isdisjoint(words) and max(map(len, words), default=0) < UNBROKEN:
        return ""
    readings = [codecs.encode(plain, "rot13")] if not lexicon.rotated.isdisjoint(words) else []
    if not lexicon.reversed.isdisjoint(words):
        readings.append(plain[::-1])
    for word in sorted(word for word in words if len(word) >= UNBROKEN and word.isascii() and any(root in word for root in _ROOTS)):
        apart = lexicon.within.sub(lambda found: f" {found[0]} ", word).split()
        if sum(part in lexicon.ideas for part in apart) > 2:  # noqa: PLR2004 - a compound has two
            readings.append(" ".join(apart))
    return " . ".join(readings)


def stretches(plain: str) -> Iterator[Sequence[Ideas]]:
    """Yield the ideas of each sentence that may be a request; long sentences in stretches that overlap."""
    plain = _ELISION.sub(" ", plain).replace("'", "") if "'" in plain else plain
    if _has_turn_sign(plain):
        plain = _TURN.sub(" zturn ", plain)
    if ":" in plain:
        plain = _ROLE.sub(" zrole ", plain)
    is_spaced = plain.isascii() or not _UNSPACED.search(plain)
    for sentence in _SENTENCE_END.split(plain):
        words = words_of(sentence)
        if not is_likely(words) and "zturn" not in sentence and "zrole" not in sentence and (is_spaced or not _UNSPACED.search(sentence)):
            continue
        tokens = ideas_of(sentence, set(words))
        for start in range(0, max(1, len(tokens) - WINDOW + STEP), STEP):
            stretch = tokens[start : start + WINDOW]
            if sum(map(bool, stretch)) > 1 and any(not _CORE.isdisjoint(each) for each in stretch):
                yield stretch


def features(stretch: Sequence[Ideas]) -> set[str]:
    """Return the names of what a stretch of words has: ideas, ideas that begin a line, and pairs of them that are close."""
    return _pairs(stretch) | _forms(stretch)


def _pairs(stretch: Sequence[Ideas]) -> set[str]:
    found: set[str] = set()
    places = [(place, ideas) for place, ideas in enumerate(stretch) if ideas]
    before = -1
    for index, (place, ideas) in enumerate(places, 1):
        if ideas is _SOFT:
            before = place
            continue
        found.update(ideas)
        if before == place - 1:
            found.update(["^" + idea for idea in ideas])
        for later, others in places[index:]:
            gap = later - place
            if gap > NEAR:
                break
            found.update(_names(ideas, others, gap <= ADJACENT))
    return found


@lru_cache(maxsize=16384)
def _names(ideas: Ideas, others: Ideas, is_adjacent: bool) -> tuple[str, ...]:  # noqa: FBT001 - of the memo
    """Return the names of the pairs of the ideas of two words that are close."""
    pairs = [(one, other) for one in ideas for other in others if other != "|" and (one in _CORE or other in _CORE)]
    near = ["~".join(sorted(pair)) for pair in pairs if pair[0] != pair[1]]
    return (*near, *map(">".join, pairs)) if is_adjacent else tuple(near)


def _forms(stretch: Sequence[Ideas]) -> set[str]:
    line = ",^ " + "".join(["," + "".join([f"{idea} " for idea in ideas]) for ideas in stretch]).replace(",| ", ",^ ")
    possible = _possible_forms(frozenset(idea for ideas in stretch for idea in ideas))
    return {f"*{name}" for name in possible if _COMPILED[name].search(line)}


@lru_cache(maxsize=4096)
def _possible_forms(ideas: frozenset[str]) -> tuple[str, ...]:
    """Return the forms of which all ideas are there, in whatever order."""
    return tuple([name for name, forms in _NEEDED.items() if any(not any(map(ideas.isdisjoint, form)) for form in forms)])


def ideas_of(sentence: str, words: set[str]) -> list[Ideas]:
    """Return the ideas of each word of a sentence; `|` begins a line or a clause, and no idea at all is empty."""
    lexicon = shipped_lexicon()
    if any(needed.issubset(words) for word in lexicon.words_of_phrases.keys() & words for needed in lexicon.words_of_phrases[word]):
        sentence = lexicon.phrases.sub(lambda found: "zz".join(found[0].split()), sentence)
    tokens: list[Ideas] = []
    for word in _TOKEN.findall(sentence):
        ideas = lexicon.ideas.get(word)
        if ideas is not None:
            tokens.append(ideas)
        elif word in ":;\n":
            tokens.append(_SOFT)
        elif "zz" in word and (phrase := word.replace("zz", " ")) in lexicon.phrase_ideas:
            tokens.append(lexicon.phrase_ideas[phrase])
        elif not word.isascii() and _UNSPACED.match(word):
            end = 0
            for found in lexicon.unspaced.finditer(word):
                tokens.extend([()] * ((found.start() - end) // 2))
                tokens.append(lexicon.ideas[found[0]])
                end = found.end()
            tokens.extend([()] * ((len(word) - end) // 2))
        elif len(word) >= _LONG_WORD:
            tokens.extend(lexicon.ideas.get(found, ()) for found in lexicon.within.findall(word))
        else:
            tokens.append(())
    return tokens


@cache
def shipped_lexicon() -> Lexicon:
    """Return the words of the package."""
    return Lexicon(decode_json((files("evidentia.text") / "injection_words.json").read_bytes(), dict[str, dict[str, str]]))


@cache
def shipped_weights() -> InjectionWeights:
    """Return the weights of the package."""
    return decode_json((files("evidentia.text") / "injection_weights.json").read_bytes(), InjectionWeights)
