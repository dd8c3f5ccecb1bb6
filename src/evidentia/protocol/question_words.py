"""Stop words of questions, groups of synonyms, and word probes that find a word in a text by its stem.

The lists are English words that say how something is asked and not what about, and small groups of words that stand for one another.

Lists and nothing else. The groups are category terms for queries: one word of a group explains another. What they do is measured in
docs/protocol.md; a file of synonyms adds what a corpus calls things.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from evidentia.text.english import MONTHS, SHORT_MONTHS, WEEKDAYS
from evidentia.text.tokens import Tokeniser

# ruff: noqa: SIM905 - lists of words read as words
CALENDAR: Final = frozenset({*MONTHS, *SHORT_MONTHS, "sept", *WEEKDAYS})
ATTRIBUTES: Final = frozenset(
    "price prices pricing cost costs fee fees charge charges discount discounts tariff rate rates interest amount amounts salary "
    "wage budget revenue sales turnover profit margin tax vat size weight length width height depth dimension dimensions capacity "
    "resolution voltage power speed temperature frequency range colour color material warranty guarantee deadline date dates "
    "duration age address phone email owner author name names title version status location stock inventory availability quantity "
    "number numbers count total headcount share percentage ratio score rating ranking rank rows population area volume distance "
    "specs spec specification specifications features ports storage memory ram battery term terms conditions requirements limit "
    "limits maximum minimum average median value values figure figures hours opening contact manager head chief leader responsible "
    "member members".split()
)
GENERIC: Final = (
    ATTRIBUTES
    | CALENDAR
    | frozenset(
        "noted recorded mentioned stated sheet sheets spreadsheet spreadsheets workbook "
        "list lists table tables tabular tabulate show shows give gives find finds tell get gets got getting return look looking "
        "need needs want wants wanted say says said know known make makes made work works use uses used using apply applies take "
        "takes come comes go goes run runs put pull extract collect gather summarise summarize summary sum overview outline recap "
        "compare compared comparison difference differences differ versus distinguish distinguishes define definition mean means "
        "meaning meant explain explains explained reason reasons cause causes caused why policy policies rule rules guideline "
        "guidelines regulation regulations allowed permitted procedure procedures process step steps workflow instruction "
        "instructions history historical timeline chronology change changed changes develop developed evolution previous former "
        "past year years month months week weeks day days quarter quarters today yesterday tomorrow last next current currently "
        "latest recent recently now new old first second third highest lowest largest biggest smallest longest shortest oldest "
        "cheapest best worst fewest most least top rank great good kind kinds type types sort sorts way ways part parts thing "
        "things information info detail details data question answer please key point points main full complete comprehensive whole "
        "entire everything all every each different various other same several available left hold happen happened exactly much "
        "many number per end start begin between since until during document documents report file files page concept idea "
        "principle role enumerate roster catalogue catalog archive called stand stands pay expensive possible able big long large "
        "small high low often far early late soon about according regarding related relevant overviews category aliases alias "
        "synonym record records entry entries source sources reference references result results set include includes including "
        "contains content contents checklist guide manual documentation analysis level levels describe described description lookup "
        "search query".split()
    )
)
"""Words that name no subject of their own: a query may add or leave them out, and evidence is not about them."""

COMMON: Final = frozenset(
    "access account action activity administration agreement application approach approval approved area arrangement assessment "
    "assignment authority basis benefit business calculation case centre center certificate checklist claim clause committee "
    "communication company compliance condition confirmation contact contract control coverage criteria customer damage decision "
    "delivery department desk development directive disclosure distribution duration effect eligibility employee employees employer "
    "employment entitlement equipment event evidence example exception expiry external facility facilities factor feature finance "
    "financial form formula framework frequency function general group guidance handling impact implementation incident increase "
    "industry initiative instructions insurance internal investigation issue item job legal level licence license limit local "
    "maintenance management manager measure measures method model network notice objective obligation office officer official "
    "operating operation operational operations option options order organisation organization origin owner ownership partner "
    "payment people performance period permission personal plan planning position practice private problem product production "
    "program programme project proof provider provision public purpose qualification quality rate recommendation recommendations "
    "registration replacement request requirement requirements resource resources responsibility restriction review right rights "
    "risk risks route safety schedule scheme scope section security service services signs site situation solution staff standard "
    "standards status storage strategy structure submission supervisor supply support system systems target task tasks team "
    "technical template test time times tool trend unit usage user users validity vehicle vendor work worker workers working "
    "workplace zone".split()
)
"""Words of any office, which make no topic of their own."""

_GROUPS: Final = (
    "price cost fee charge tariff rate pricing expense amount pay expensive",
    "discount rebate reduction voucher",
    "refund reimbursement repayment compensation chargeback money return",
    "cancel cancellation cancelled termination terminate withdrawal revoke",
    "employee staff personnel worker workforce headcount people colleague team member",
    "hire recruit recruitment onboarding onboard registration register vacancy job position opening applicant",
    "salary wage pay compensation remuneration payroll bonus",
    "leave holiday vacation absence pto annual",
    "sick illness sickness medical health",
    "travel trip journey booking flight hotel accommodation itinerary business",
    "expense reimbursement claim receipt spending",
    "customer client account buyer subscriber user",
    "supplier vendor provider contractor partner manufacturer",
    "purchase buy order procurement acquisition procure",
    "invoice bill billing payment statement",
    "contract agreement deal terms clause",
    "product item article model device unit sku",
    "plan tier subscription package edition licence license",
    "laptop computer notebook workstation hardware equipment device pc",
    "phone mobile smartphone telephone cell",
    "software application program app tool system",
    "password credential login passphrase sign authentication account access",
    "vpn network remote connection tunnel proxy",
    "key secret token certificate signing encryption cryptographic credential",
    "rotate rotation renew renewal replace replacement refresh",
    "backup restore recovery snapshot archive",
    "outage downtime incident failure disruption interruption unavailability breakdown",
    "error fault bug defect failure problem issue malfunction",
    "security protection safety privacy confidentiality",
    "data information record dataset",
    "gdpr privacy protection regulation compliance",
    "delivery shipping shipment ship freight dispatch transport logistics",
    "warehouse depot storage stock inventory store",
    "stock inventory availability quantity supply",
    "office site branch location premises building",
    "country nation state region territory market",
    "revenue sales turnover income earnings profit",
    "growth increase rise gain development trend",
    "decrease decline drop fall reduction loss",
    "complaint feedback review satisfaction survey rating",
    "meeting session minutes agenda board",
    "report audit review assessment findings",
    "project programme program initiative",
    "launch release rollout introduction start",
    "stop end cancel terminate discontinue close closure shut",
    "ceo executive chief director president head leader manager management leadership",
    "committee board panel council group",
    "training course module lesson education curriculum",
    "exam test assessment result grade",
    "gift present hospitality donation benefit",
    "remote home telework abroad hybrid",
    "dog pet animal",
    "request apply application order ask submit form approval",
    "rule regulation guideline policy requirement standard",
    "step procedure process workflow instruction guide howto manual",
    "reason cause explanation background rationale why",
    "history timeline chronology evolution past development archive previous former",
    "list catalogue overview roster directory register index enumeration",
    "specification spec feature dimension technical datasheet characteristic",
    "warranty guarantee coverage",
    "battery power energy charge runtime",
    "temperature heat thermal cold operating",
    "energy electricity consumption use usage",
    "difference comparison compare versus contrast",
    "deadline date due closing",
    "deploy deployment release rollout install installation",
    "configure configuration setup setting install",
    "log logging retention audit trail",
    "merge merger acquisition takeover combine",
    "dispute conflict litigation disagreement claim",
    "recall withdraw withdrawal defect",
    "vaccine vaccination immunisation immunization",
    "screen display monitor resolution",
    "lock secure block",
    "badge pass card identification id",
    "grant funding subsidy application award",
    "name title designation alias called formerly rename rebrand",
)

GROUPS: Final = tuple(tuple(group.split()) for group in _GROUPS)


# --- word probes ---
# Does a text speak of a word? Found by its stem, in one pass over the text and without cutting it into words.
#
# A probe looks for the part that a word and its stem share, and compares stems only where that part begins a word. Names with digits are
# found in any of their spellings (`HT-40`, `HT40`, `HT 40`), short forms by what they stand for.

MAX_OCCURRENCES: Final = 64
"""Places at which one word is looked at; a hostile text costs no more."""
MAX_SHORT_LENGTH: Final = 6

_tokeniser: Final = Tokeniser("english")
_PARTS: Final = re.compile(r"[^\W\d_]+|\d+")


@lru_cache(maxsize=1 << 16)
def stem_of(word: str) -> str:
    """Return the stem of a word in lower case."""
    terms = _tokeniser.analyse(word).terms
    return terms[0] if terms else word


class WordProbe(NamedTuple):
    """One word to be found."""

    stem: str
    start: str
    """What every word of this stem begins with."""
    spellings: tuple[str, ...] = ()
    """For what has a digit or a sign inside: it is found as one of these, whole."""
    short: str = ""
    """A short form in small letters, for what it stands for."""

    def occurs(self, text: str) -> bool:
        """Tell whether a text, in lower case, has the word."""
        if self.spellings:
            return any(_stands_alone(text, spelling) for spelling in self.spellings)
        if _has_stem(text, self.start, self.stem):
            return True
        return bool(self.short) and _spelt_out(self.short).search(text) is not None


@lru_cache(maxsize=1 << 14)
def probe_of(word: str) -> WordProbe:
    """Return the probe of a word as it is written."""
    lowered = word.casefold()
    if not lowered.isalpha():
        return WordProbe(stem=lowered, start=lowered, spellings=_spellings(lowered))
    stem = stem_of(lowered)
    shared = next((place for place, letter in enumerate(stem) if letter != lowered[place : place + 1]), len(stem))
    if shared == len(stem) and stem.endswith("i"):
        shared -= 1  # the stem of `ferry` and of `ferries` is `ferri`: what they share ends before it
    is_short = word.isupper() and 1 < len(word) <= MAX_SHORT_LENGTH
    return WordProbe(stem=stem, start=lowered[:shared] or lowered, short=lowered if is_short else "")


def relatives(stem: str) -> tuple[WordProbe, ...]:
    """Return the other words of the groups that a stem stands in."""
    return _related().get(stem, ())


def words_near(stem: str) -> tuple[str, ...]:
    """Return the same as words, in the order of the groups."""
    return _near().get(stem, ())


@lru_cache(maxsize=1)
def _near() -> dict[str, tuple[str, ...]]:
    near: dict[str, dict[str, None]] = {}
    for group in GROUPS:
        for word in group:
            near.setdefault(stem_of(word), {}).update(dict.fromkeys(other for other in group if stem_of(other) != stem_of(word)))
    return {stem: tuple(words) for stem, words in near.items()}


@lru_cache(maxsize=1)
def _related() -> dict[str, tuple[WordProbe, ...]]:
    related: dict[str, dict[WordProbe, None]] = {}
    for group in GROUPS:
        probes = [probe_of(word) for word in group]
        for probe in probes:
            related.setdefault(probe.stem, {}).update(dict.fromkeys(other for other in probes if other.stem != probe.stem))
    return {stem: tuple(found) for stem, found in related.items()}


def _has_stem(text: str, start: str, stem: str) -> bool:
    place = text.find(start)
    for _ in range(MAX_OCCURRENCES):
        if place < 0:
            return False
        end = place + len(start)
        if not place or not text[place - 1].isalnum():
            while end < len(text) and text[end].isalnum():
                end += 1
            word = text[place:end]
            if word == stem or stem_of(word) == stem:
                return True
        place = text.find(start, end)
    return False


def _stands_alone(text: str, spelling: str) -> bool:
    place = text.find(spelling)
    for _ in range(MAX_OCCURRENCES):
        if place < 0:
            return False
        end = place + len(spelling)
        if (not place or not text[place - 1].isalnum()) and (end == len(text) or not text[end].isalnum()):
            return True
        place = text.find(spelling, place + 1)
    return False


def _spellings(word: str) -> tuple[str, ...]:
    """Return a name with digits or signs as people write it: as it is, closed up, apart, and with a hyphen."""
    parts = _PARTS.findall(word)
    return tuple(dict.fromkeys((word, "".join(parts), " ".join(parts), "-".join(parts)))) if parts else (word,)


@lru_cache(maxsize=1 << 10)
def _spelt_out(short: str) -> re.Pattern[str]:
    return re.compile(r"(?<!\w)" + r"\w{0,30}+[ -](?:of |and |for |the )?+".join(map(re.escape, short)) + r"\w")
