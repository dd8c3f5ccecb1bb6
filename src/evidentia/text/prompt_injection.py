"""Does a piece of evidence talk to whoever reads it as if it were to be obeyed? A flag for readers, never a reason to drop anything.

It looks for forms of words and weighs words of requests, also behind disguises; it knows nothing of meaning:
docs/hostile-text.md says how many of the known attacks it sees, how many it misses,
and how often it is wrong about ordinary text.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from evidentia.text.injection_model import has_turn, is_likely, is_request, shipped_lexicon, turned
from evidentia.text.unmasking import MAX_LENGTH, UNBROKEN, has_long_word, is_disguised, undisguised, words_of

INSTRUCTION_LIKE: Final = "instruction_like"
ACTIVE_MARKUP: Final = "active_markup"
REQUEST: Final = "request"
"""The mark of what no form finds and the weighed words do."""

_MODEL: Final = r"(?:ai|a\.i\.|llm|language model|assistant|chat ?bot|bot|agent|gpt(?:[-\d.o]*)|claud[e]|gemini|copilo[t]|model)"
_ORDERS: Final = (
    r"(?:instructions?|prompts?|rules?|guidelines?|directions?|directives?|orders|commands?|constraints|safeguards|filters|training"
    r"|context|task)"
)
_FORMS: Final = {
    "override": (
        rf"\b(?:ignores?|disregards?|forget|overrides?|overrules?|bypass|discard|skip|stop following|do not follow|don't follow|set"
        rf" aside)\b"
        rf"(?: (?:all|any|every|the|your|my|of|these|those|other|and|previous|prior|above|earlier|preceding|foregoing|existing|original"
        rf"|system|initial|former|current|given|everything|content|safety|you were|that|came|before|told|what)){{1,8}},? ?(?:{_ORDERS}"
        rf"|above|before this|you were told)\b"
    ),
    "addressed": (
        rf"\b(?:to|for|dear|attention|hey|hello|note to|message to|notice to|reminder to)[:,]? (?:the |any |all |every |whichever"
        rf" )*{_MODEL}"
        rf"(?:s|es)?(?: (?:reading|processing|summari[sz]ing|that|who|which|agent|assistant|model|system)|[:,!])"
        rf"|\bif you(?:'re| are) (?:an? |the )?(?:{_MODEL}\b|automated|processing|reading this|summari[sz]ing)"
        rf"|\bas an? {_MODEL},? you (?:must|should|will|are|have|need)\b"
        rf"|\b(?:this is|an?) (?:an )?(?:important|urgent|special) message (?:from|to) (?:me|you|the (?:user|developer|system|admin))"
        rf"|\byou are now an?\b|\b(?:the|every|any) (?:assistant|chat ?bot|llm|ai)s?(?: agent)? (?:should|must|shall|has to|is to)\b"
        rf"|\byou are (?:now|no longer|actually)\b[^.\n]{{0,40}}\b(?:{_MODEL}|mode|restricted|bound|dan|unrestricted|free)\b"
    ),
    "turn": (
        r"<\|[a-z_]{2,20}\|>|\[/?inst\]|<</?sys>>|</?(?:system|instructions?|information|important|tool_calls?|function_calls?|user_request"
        r"|assistant|human)>|^\s*(?:#+ ?)?(?:system|assistant|human|user|developer)(?: (?:prompt|message|instructions?|note))? ?:"
        r"[^\n]{0,60}"
        r"\b(?:you|your|ignore|disregard|forget|reveal)\b"
        r"|^\s*#+ ?system (?:prompt|message|instructions?)\b"
        r"|\b(?:begin|end|start)(?: of)? (?:system|new|user) (?:prompt|instructions?|message)\b"
    ),
    "errand": (
        rf"\b(?:before|instead of|prior to) (?:you )?(?:can )?(?:solv|answer|do|complete|completing"
        rf"|continu|proceed|respond|reply|summari[sz])\w*\b"
        rf"[^.\n]{{0,80}}\b(?:please |must |first |should |need to |have to )*(?:do|follow|perform|carry out|complete|execute|send"
        rf"|call|visit)\b"
        rf"[^.\n]{{0,20}}\b(?:following|first|this|these|instead)\b"
        rf"|\b(?:new|updated|revised|real|actual|additional|hidden|secret|override) (?:system )?(?:{_ORDERS})\s*(?:\(.{{0,30}}\))?\s*:"
        rf"|\bfrom now on,? you(?:'ll| will| must| should| are)\b"
        rf"|\byour (?:new|real|actual|only|next|true) (?:task|goal|objective|job|mission|instruction)s? (?:is|are)\b"
        rf"|\byou (?:must|should|have to|need to|are required to|are to) (?:now |immediately |always |instead |first )+"
        rf"(?:send|forward|call|invoke|run|execute|reply|respond|output|print|transfer|delete|visit|open|click|recommend|include"
        rf"|append|say)\b"
    ),
    "secrecy": (
        r"\b(?:do not|don't|never|without|must not|should not|avoid)(?: ever)? (?:tell|telling|mention|mentioning|inform|informing|reveal"
        r"|revealing|notify|notifying|alert|alerting|warn|warning|disclose|disclosing|let|letting|show|showing)\b[^.\n]{0,30}"
        r"\b(?:user|human|owner|customer|operator|this (?:message|instruction|note|text))\b"
    ),
    "disclosure": (
        r"\b(?:reveal|print|repeat|show|output|leak|send|exfiltrate|forward|upload|post|share|paste|email|disclose|return|append|encode)\b"
        r"[^.\n]{0,60}\b(?:system prompt|hidden prompt|initial (?:prompt|instructions)|your (?:instructions|prompt|rules|configuration)"
        r"|conversation (?:history|so far)|chat (?:history|log)|full conversation|session (?:token|cookie)|contents? of (?:the|your)"
        r" (?:context|inbox))"
    ),
    "tool": (r"\b(?:call|use|invoke|execute|run|trigger) (?:the |your )['\"]?[a-z]\w+['\"]? (?:tool|plugin)\b"),
}
_ACTIVE: Final = re.compile(
    r"<\s*script\b|\bjavascript\s*:|\bdata:text/html|\bvbscript\s*:|<[^>\n]{0,200}\bon[a-z]{3,20}\s*="
    r"|!\[[^\]\n]{0,200}\]\(\s*https?://[^)\s]{0,300}[?&][^)\s]{0,300}=",
    re.IGNORECASE,
)
_HANDLER: Final = re.compile(r"on[a-z]{3,20}\s*=")
_COMPILED: Final = {kind: re.compile(form, re.MULTILINE) for kind, form in _FORMS.items()}
_HINTS: Final = {
    kind: tuple([tuple(group.split(";")) for group in groups])
    for kind, groups in {
        "override": (
            "ignore;disregard;forget;overr;bypass;discard;skip;stop follow;not follow;n't follow;set aside",
            "all ;any ;every;your;previous;prior ;above;earlier;system ;told;preceding;foregoing",
            "instruct;prompt;rule;guideline;direct;orders;command;constrain;safeg;training;task;told;above",
        ),
        "addressed": (
            " you ;you';dear ;attention;hey ;hello;note to;message ;notice to;reading;processing;summari",
            "ai ;ai,;llm;language model;assistant;bot;agent;gpt;claud;gemini;copilo;message;you are;if you",
        ),
        "turn": (
            "<|;inst];sys>;<s;</s;<i;</i;<t;</t;<f;</f;<u;</u;<a;</a;<h;</h;system;assistant;human:;user;developer;begin;end of;start of",
            ">;];:;prompt;instruction;message",
            "<;[;system;assistant;human:;user:;developer;new ;user ",
        ),
        "errand": (
            " you;your ;answering;responding;replying;proceeding;summari;instructions;task:;prompt:",
            "following; first;instead; this;these;:;task;goal;objective;mission;must;should;have to;need to",
            (
                "before;instead of;prior to;new ;updated;revised;real ;actual;additional;hidden;secret;override;your ;you must;"
                "you should;you have;you need;you are"
            ),
        ),
        "secrecy": (
            "not ;n't ;never ;without ;avoid ",
            "tell;mention;inform;reveal;notif;alert;warn;disclos; let; show",
            "user;the human;owner;customer;operator;anyone;anybody;this message;this instr;this note;this text; them ",
        ),
        "disclosure": (
            (
                "system prompt;hidden prompt;initial prompt;initial instr;your instr;your prompt;your rules;your config;conversation;"
                "chat ;session ;context;inbox"
            ),
            "reveal;print;repeat;show;output;leak;send;exfil;forward;upload;post;share;paste;email;disclose;return;append;encode",
        ),
        "tool": (
            "call ;use ;invoke;execute;run ;trigger",
            " tool; function; plugin; api; command;_",
        ),
    }.items()
}
"""Of every group one stands in whatever the form finds; most texts lack one, and cost no more than the look."""
_WORDS: Final = {
    "override": "ignore ignores disregard disregards forget override overrides overrule overrules bypass discard skip aside rule rules"
    " direction directions guideline guidelines directive directives instruction instructions prompt prompts orders command commands"
    " constraints safeguards"
    " filters",
    "addressed": "ai ais llm llms language assistant assistants chatbot bot bots agent agents gpt"
    " claud\x65 gemini copilo\x74 model models message you",
    "turn": "prompt instruction instructions message note",
    "errand": "you your solve solving answer answering do doing complete completing continue continuing proceed proceeding"
    " respond responding reply"
    " replying summarise summarising summarize summarizing instruction instructions prompt prompts rule rules guideline guidelines"
    " direction"
    " directions directive directives orders command commands constraints safeguards filters training context task",
    "secrecy": "user human owner customer operator anyone anybody them message instruction note text",
    "disclosure": "prompt your instructions conversation chat session context inbox",
    "tool": "tool plugin",
}
"""Of these words one stands in whatever the form of that name finds; of a turn also a sign, or a role before a colon."""
_ROLES: Final = frozenset(("system", "assistant", "human", "user", "developer"))
_KINDS_OF: Final = {
    word: tuple([kind for kind, words in _WORDS.items() if word in words.split()]) for words in _WORDS.values() for word in words.split()
}
_TELLING: Final = frozenset(_KINDS_OF)
_NO_SPACES: Final = re.compile(r"[\u0e00-\u0eff\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7ff]")


def instruction_marks(text: str) -> tuple[str, ...]:
    """Return what kinds of address to its reader a text holds, by name; empty for most."""
    text = text[:MAX_LENGTH]
    plain = undisguised(text) if not text.isascii() or is_disguised(text) else text.lower()
    words = _telling_words(plain)
    if not words and "<" not in plain and "]" not in plain and plain.isascii():
        return ()
    if hidden := turned(words, plain):
        plain = f"{plain} . {hidden}"
        words |= _telling_words(hidden)
    kinds = _likely(plain, words)
    flat = f" {plain if plain.isprintable() and '  ' not in plain else ' '.join(plain.split())} " if kinds else ""
    marks = tuple(
        [kind for kind in _COMPILED if kind in kinds and _is_hinted(kind, flat) and _finds(kind, plain if kind == "turn" else flat)]
    )
    is_weighed = is_likely(words) or has_turn(plain, words) or (not plain.isascii() and _NO_SPACES.search(plain) is not None)
    return (*marks, REQUEST) if is_weighed and is_request(plain) else marks


def hostile_flags(text: str) -> tuple[str, ...]:
    """Return the flags a fragment with this text carries."""
    marks = instruction_marks(text)
    return ((INSTRUCTION_LIKE,) if marks else ()) + ((ACTIVE_MARKUP,) if _is_active(text) else ())


def _is_active(text: str) -> bool:
    if "<" not in text and "](" not in text and ":" not in text:
        return False
    lowered = text.lower()
    is_script = "script" in lowered or "text/html" in lowered
    if not ((":" in text and is_script) or "<" in text or "](" in text):
        return False
    is_hinted = is_script or not text.isascii() or ("=" in text and ("![" in text or _HANDLER.search(lowered) is not None))
    return is_hinted and _ACTIVE.search(text[:MAX_LENGTH]) is not None


def _telling_words(plain: str) -> set[str]:
    """Return the words of a text that could count, and those of many letters, which may hold others."""
    words = words_of(plain)
    found = _vocabulary().intersection(words)
    return found.union([word for word in words if len(word) >= UNBROKEN]) if has_long_word(plain) else found


@cache
def _vocabulary() -> set[str]:
    return {*_TELLING, *shipped_lexicon().vocabulary}


def _likely(plain: str, words: set[str]) -> set[str]:
    """Return the kinds of which a word or a sign stands in the text; the look costs a tenth of what the forms cost."""
    kinds = {kind for word in _TELLING.intersection(words) for kind in _KINDS_OF[word]}
    if "<" in plain or "]" in plain or any(f"{role}:" in plain or f"{role} :" in plain for role in _ROLES.intersection(words)):
        kinds.add("turn")
    return kinds


def _finds(kind: str, text: str) -> bool:
    return _COMPILED[kind].search(text) is not None


def _is_hinted(kind: str, lowered: str) -> bool:
    return all(any(hint in lowered for hint in group) for group in _HINTS[kind])
