"""What the documents of random worlds say and what is asked of them: a bounded pool, so that each vector is made once.

Words are misspelt and abbreviations explained in a few lines only, which are often hidden from the one who asks; claims
contradict each other; several lines have more sentences than a small budget takes.
"""

from __future__ import annotations

from random import Random

WORDS = ("pier", "dock", "crane", "cargo", "tide", "beacon", "rope", "anchor")
ABSENT = ("zeppelin", "quasar")
MISSPELT = ("crame", "cargp", "becon", "anchr", "crante", "beacom")
RIVALS = ("crate", "carga", "bacon", "anchos")
"""Words as near to the misspelt ones as the right ones are: where they occur, it is less clear what was meant."""
EXPLAINING = (
    "The vessel traffic service (VTS) watches the tide.",
    "VTS: vessel traffic service",
    "A velvet tug service (VTS) pulls cargo.",
    "Ask for a port entry permit (PEP) at the dock.",
    "A pier extension plan (PEP) is drawn up.",
)
CLAIMING = (
    "The gate timeout is 30 seconds.",
    "The gate timeout is 60 seconds.",
    "The crane limit is 40 tonnes.",
    "The crane limit is 50 tonnes. Cargo waits at the dock.",
)
LONG = (
    "The pier opens at noon. Cargo waits at the dock until the tide turns. Nobody moves the anchor.",
    "Rope is cheap. A beacon burns all night, and the crane rests. The dock is closed. The tide comes back.",
    "Set `crane.limit = 40` and run `dock --open pier`. Then wait for the beacon.",
    (
        "Cargo lies at the dock until the crane has lifted it. The pier is closed while the tide is high. A rope keeps everybody away."
        " The beacon is lit an hour before. Whoever comes late waits at the anchor for the tide. The crane rests, and so does the dock."
    ),
)
SYNONYMS = "dock, quay\nrope => anchor, line\nharbour gate, gate\n"
COMPOUND = (
    "how deep is the pier and who tends the beacon",
    "compare the crane and the dock",
    "What does the crane lift? Who tends the beacon?",
    "Which is older, the pier or the dock?",
    "pier, crame and cargo",
)
ASKING = ("gate timeout", "what is the crane limit", "quay rope", "harbour gate timeout", "line at the quay")
ABBREVIATED = ("VTS tide", "who runs the vtss", "vessel traffic service", "PEP", "port entry permit at the dock", "velvet tug service")
LEANING = ("what about it?", "and the other one?", "how deep is it")


def _lines() -> tuple[str, ...]:
    rng = Random("lines")
    plain = [" ".join(rng.choices(WORDS, k=rng.randint(2, 9))) for _ in range(40)]
    odd = [" ".join(rng.sample((*rng.choices(WORDS, k=2), rng.choice((*MISSPELT[:2], *RIVALS))), k=3)) for _ in range(12)]
    return (*plain, *odd)


def _queries() -> tuple[tuple[str, ...], ...]:
    rng = Random("queries")
    plain = [" ".join(rng.choices(WORDS, k=rng.randint(1, 4))) for _ in range(40)]
    absent = [" ".join(rng.choices((*WORDS, *ABSENT), k=rng.randint(1, 4))) for _ in range(12)]
    misspelt = [" ".join((rng.choice(MISSPELT), *rng.choices(WORDS, k=rng.randint(0, 2)))) for _ in range(20)]
    quoted = [f'{rng.choice(WORDS)} {"+" * (number % 2)}"{" ".join(rng.choices(WORDS, k=2))}"' for number in range(12)]
    return (tuple(plain), tuple(plain), tuple(absent), tuple(misspelt), tuple(quoted), ASKING, ABBREVIATED, ABBREVIATED, COMPOUND)


LINES = _lines()
SPECIAL = (EXPLAINING, CLAIMING, LONG)
QUERIES = _queries()


def make_query(rng: Random) -> str:
    """Return a question of any kind."""
    return rng.choice(rng.choice(QUERIES))


def make_texts(rng: Random) -> list[str]:
    """Return the texts of a world; in half of the worlds two contradict each other, in half of them one explains a short form."""
    texts = [_text(rng) for _ in range(rng.randint(2, 5))]
    if rng.random() < 0.5:
        texts += 3 * rng.choice((CLAIMING[:2], CLAIMING[2:]))
    if rng.random() < 0.5:
        texts += 3 * rng.sample(EXPLAINING, 2)
    if rng.random() < 0.5:
        texts += 3 * rng.sample(LONG, 1)
    return texts


def spans_of(text: str) -> list[tuple[int, int]]:
    """Return where the lines of a text begin and end."""
    spans, start = [], 0
    for line in text.splitlines(keepends=True):
        spans.append((start, start + len(line)))
        start += len(line)
    return spans


def _text(rng: Random) -> str:
    """Return one to three lines."""
    return "\n".join(rng.choice(rng.choice(SPECIAL) if rng.random() < 0.5 else LINES) for _ in range(rng.randint(1, 3)))
