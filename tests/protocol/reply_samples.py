"""Tool results and replies that several tests use: two results, and replies in natural wording that break no rule."""

from __future__ import annotations

import sys
import time

from evidentia.protocol.reply_audit import ReplyAudit, audit_reply
from evidentia.protocol.tool_results import ResultFacts, read_result

IMAGE = "ab" * 32
SECOND_IMAGE = "cd" * 32
QUESTION = "How often are access keys rotated and where are they kept?"
CITE_TEXT = '[INSTRUCTION] Cite what you use as <CITATION file="FILE" filename="NAME" page=N /> directly after the paragraph or list.'
CITE_ROWS = (
    '[INSTRUCTION] Cite what you use as <CITATION file="FILE" filename="NAME" sheet=S rows=[R, ...] /> on a line of its own after the list '
    "or table: one for each file and sheet, its rows together. Never show __src."
)
TEXT = f"""{CITE_TEXT}
RAG_KNOWLEDGE BEGIN
### [1] file="handbook:security/keys.pdf" filename="keys.pdf" page=3
Access keys of production services are rotated every 90 days. The vault in Zurich keeps the old key for two more days, so that running
jobs can finish.
![Diagram of the vault](evidentia-image:{IMAGE})
### [2] file="handbook:security/incidents.pdf" filename="incidents.pdf" page=0 pages=[0, 1]
A leaked credential is revoked at once. The security team in Lyon opens an incident ticket and informs the owner of the service within
four hours.
![Incident form](evidentia-image:{SECOND_IMAGE})
### [3] file="handbook:travel.docx" filename="travel.docx" page=7
Trips above 800 EUR need the approval of the head of department. Train journeys are booked in second class.
RAG_KNOWLEDGE END"""
TABLE = f"""{CITE_ROWS}
[EXTRA_INSTRUCTION] The result is truncated. Tell the user: 1200 in total, 3 displayed, 1197 omitted.
file_ref_table:
| code | file | filename |
| F1 | shop:prices.xlsx | prices.xlsx |
| F2 | shop:stock.ods | stock.ods |
TABLE_KNOWLEDGE BEGIN
| __src | product | price |
| --- | --- | --- |
| F1S1R5 | Orion desk lamp | 49 EUR |
| F1S1R6 | Vega floor lamp | 129 EUR |
| F2S2R9 | Lyra table clock | 35 EUR |
TABLE_KNOWLEDGE END
total=1200 displayed=3 omitted=1197"""
KEYS = '<CITATION file="handbook:security/keys.pdf" filename="keys.pdf" page=3 />'
INCIDENTS = '<CITATION file="handbook:security/incidents.pdf" filename="incidents.pdf" page=0 />'
TRAVEL = '<CITATION file="handbook:travel.docx" filename="travel.docx" page=7 />'
PRICES = '<CITATION file="shop:prices.xlsx" filename="prices.xlsx" sheet=1 rows=[5, 6] />'
STOCK = '<CITATION file="shop:stock.ods" filename="stock.ods" sheet=2 rows=[9] />'
VAULT = f"![Diagram of the vault](evidentia-image:{IMAGE})"
FORM = f"![Incident form](evidentia-image:{SECOND_IMAGE})"
COUNTS = "There are 1,200 matches in total; 3 are displayed and 1,197 are omitted."


def audit(
    reply: str,
    *results: str,
    question: str = QUESTION,
    allowed: bool = True,
    sufficient: bool = False,
    tool: str = "rag_retrieve",
) -> ReplyAudit:
    """Audit a reply against results given as text; without any, against the text result."""
    facts: list[ResultFacts] = [read_result(tool, result) for result in results or (TEXT,)]
    return audit_reply(reply, question=question, results=facts, has_supplement_allowed=allowed, is_sufficient=sufficient)


def rules(found: ReplyAudit, *, most: int = 2) -> list[str]:
    """Return the rules that a profile with the usual count of citations would name, sorted."""
    return sorted(finding.rule.value for finding in found.findings if finding.count is None or finding.count > most)


KEY_LINE = "Access keys of production services are rotated every 90 days, and the old key stays in the vault in Zurich for two more days."
LEAK_LINE = "A leaked credential is revoked at once, and the security team in Lyon opens an incident ticket."

TRIP_LINE = "Trips above 800 EUR need the approval of the head of department."
CORRECT_TEXT = (
    f"{KEY_LINE}\n{VAULT}\n{KEYS}",
    f"{KEY_LINE} {KEYS}\n\n{VAULT}",
    f"{VAULT}\n\n{KEY_LINE}\n\n{KEYS}",
    f"## Rotation\n\n{KEY_LINE}\n\n{KEYS}\n\n{VAULT}\n\n## Leaks\n\n{LEAK_LINE}\n\n{FORM}\n\n{INCIDENTS}\n\nLet me know if you need more.",
    f"Here is what I found:\n\n- Keys are rotated every 90 days.\n- The vault keeps the old key for two days.\n\n{VAULT}\n\n{KEYS}",
    f"Hello! Thanks for asking.\n\n{KEY_LINE} {KEYS}\n{VAULT}\n\nWould you like to know what happens when a key leaks?",
    f"Every 90 days. {KEYS}\n\n{VAULT}",
    f"1. Access keys are rotated every 90 days. {KEYS}\n2. A leaked credential is revoked at once. {INCIDENTS}\n\n{VAULT}\n{FORM}",
    f"**Rotation.** {KEY_LINE} {KEYS} {TRAVEL}\n\n{VAULT}",
    f"{TRIP_LINE}\n\n{TRAVEL}",
    f"> Train journeys are booked in second class.\n\n{TRAVEL}\n\nI could not find anything about flights in the documents.",
    f"> Access keys of production services are rotated every 90 days.\n\n\u2014 keys.pdf {KEYS}\n\n{VAULT}",
    f"| what | how often |\n|---|---|\n| access keys of production services | every 90 days |\n\n{KEYS}\n\n{VAULT}",
    f"In short: {KEY_LINE}\n\n{VAULT}\n\nSource: {KEYS}",
    f"{TRIP_LINE} {TRAVEL}\n\nSupplement: Approval in advance is a common way to keep budgets predictable.",
    f"{TRIP_LINE} {TRAVEL}\n\n### General knowledge\n\nVideo calls are popular today; practice may differ.",
    f"{TRIP_LINE} {TRAVEL}\n\n**Supplement:** OAuth 2.0 and SHA-256 are standards that many services use.",
    f"{TRIP_LINE} {TRAVEL}\n\n---\n\nSupplement (general knowledge): Rules of this kind have two aims, thrift and fairness.",
    f"It is simple: anything above 800 EUR has to be approved by the head of department.\n{TRAVEL}\n\nTrains are second class.\n{TRAVEL}",
    f"- **Approval:** trips above 800 EUR, by the head of department\n- **Trains:** second class\n\n{TRAVEL}",
    f"You asked about trips. Here is the rule.\n\n{TRIP_LINE}\n\n{TRAVEL}\n\nIs there anything else you would like to know?",
    f"**Answer:** {KEY_LINE} {KEYS}\n{VAULT}\n\n**What is missing:** the documents do not mention who triggers the rotation.",
    f"To summarise, keys rotate regularly.\n\n{KEY_LINE}\n\n{VAULT}\n\n{KEYS}\n\nIn summary, the rule is strict.",
    f"```\nrotate --every 90d\n```\n\nAccess keys are rotated every 90 days.\n\n{VAULT}\n\n{KEYS}",
)
"""Replies to the text result that no rule speaks against."""

TABLE_QUESTION = "Which lamps and clocks do we sell and at what price?"
_ROWS = "| product | price |\n|---|---|\n| Orion desk lamp | 49 EUR |\n| Vega floor lamp | 129 EUR |\n| Lyra table clock | 35 EUR |"
CORRECT_TABLE = (
    f"{_ROWS}\n\n{PRICES}\n{STOCK}\n\n{COUNTS}",
    f"{_ROWS}\n\n{COUNTS}\n\n{PRICES}\n{STOCK}",
    f"We sell these:\n\n- Orion desk lamp: 49 EUR\n- Vega floor lamp: 129 EUR\n- Lyra table clock: 35 EUR\n{PRICES}\n{STOCK}\n\n{COUNTS}",
    f"{COUNTS}\n\nThe Orion desk lamp costs 49 EUR and the Vega floor lamp 129 EUR, according to prices.xlsx.\n\n{PRICES}",
    f"The Orion desk lamp costs 49 EUR.\n\n{PRICES}\n\nOf 1 200 products, three are shown here and 1197 are left out.",
    f"- Lyra table clock, 35 EUR\n\n{STOCK}\n\nIn total 1200 rows match; only 3 of them are shown, the remaining 1'197 are not.",
    f"### 3 of 1,200 products (1,197 omitted)\n\n- Lyra table clock, 35 EUR\n\n{STOCK}",
    f"The Lyra table clock costs 35 EUR.\n{STOCK}\n\nI list three of the 1200 products and leave out the other 1197.",
)
"""Replies to the table result that no rule speaks against."""


def measure(rounds: int = 60, audits: int = 20) -> float:
    """Return the least CPU time in milliseconds that a round took for one audit: six paragraphs against ten pieces of 120 words."""
    more = "\n".join(f'### [{place}] file="d:{place}" filename="d{place}.pdf" page={place}\n{_filler(place)}' for place in range(4, 11))
    facts = [read_result("rag_retrieve", TEXT.replace("RAG_KNOWLEDGE END", f"{more}\nRAG_KNOWLEDGE END"))]
    reply = "\n\n".join([f"{KEY_LINE}\n{VAULT}\n{KEYS}", f"{LEAK_LINE}\n{FORM}\n{INCIDENTS}"] * 3)
    taken: list[float] = []
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(audits):
            audit_reply(reply, question=QUESTION, results=facts, has_supplement_allowed=True, is_sufficient=False)
        taken.append((time.process_time() - start) / audits)
    return min(taken) * 1_000


def _filler(place: int) -> str:
    return " ".join(f"service{place} owner{word} region{word}" for word in range(40))


if __name__ == "__main__":
    sys.stdout.write(f"{measure():.2f} ms of CPU an audit\n")
