"""Who may see what, written a second time from the specification's sentence, in the plainest Python.

    allowed(d, c) = d.tenant = c.tenant AND d.classification <= c.clearance AND acl(d, c) AND every ABAC predicate over (caller, document)

It shares the messages with the real rule and no code. A rule is a pair: its text, and what that text means to a reader.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evidentia.contracts.access import Principal
    from evidentia.contracts.documents import PreparedDocument

LEVELS = ("public", "internal", "confidential", "restricted")
TIERS = ("ephemeral", "user", "derived", "curated", "canonical")
INSTANTS = {"2024-01-01": datetime(2024, 1, 1, tzinfo=UTC), "2025-03-01T12:00:00+02:00": datetime(2025, 3, 1, 10, tzinfo=UTC)}
"""The attributes that are dates, as a reader reads them; every other attribute is none."""

Attributes = Mapping[str, str]


class Rule(NamedTuple):
    """A rule of the settings and its meaning."""

    text: str
    holds: Callable[[Attributes, PreparedDocument], bool]


def may_see(caller: Principal, document: PreparedDocument, *, rules: Iterable[Rule], acl_scope: Sequence[str] | None = None) -> bool:
    """Tell whether a caller may see a document; the owner stands in every ACL and is bound by no rule."""
    access = document.access
    if access.tenant != caller.tenant:
        return False
    if LEVELS.index(access.classification) > LEVELS.index(caller.clearance):
        return False
    if access.acl and not any(_holds_entry(caller, entry, acl_scope) for entry in access.acl):
        return False
    return caller.is_owner or all(rule.holds(caller.attributes, document) for rule in rules)


def _holds_entry(caller: Principal, entry: str, acl_scope: Sequence[str] | None) -> bool:
    if acl_scope is not None and entry not in acl_scope:
        return False
    kind, _, name = entry.partition(":")
    held = {"user": (caller.principal_id,), "role": caller.roles, "group": caller.groups}.get(kind, ())
    return caller.is_owner or name in held


def _ceiling(attributes: Attributes, document: PreparedDocument) -> bool:
    ceiling = attributes.get("ceiling", "").lower()
    return ceiling in LEVELS and LEVELS.index(document.access.classification) <= LEVELS.index(ceiling)


def _since(attributes: Attributes, document: PreparedDocument) -> bool:
    since = INSTANTS.get(attributes.get("since", ""))
    return since is not None and document.metadata.updated_at is not None and document.metadata.updated_at >= since


def _since_or_open(attributes: Attributes, document: PreparedDocument) -> bool:
    if "since" in attributes and attributes["since"] not in INSTANTS:
        return False
    return _since(attributes, document) or "open" in document.metadata.tags


RULES = (
    Rule('authority_tier >= "derived"', lambda _, d: TIERS.index(d.metadata.authority_tier) >= 2),
    Rule('deprecation_status != "archived"', lambda _, d: d.metadata.deprecation_status != "archived"),
    Rule('source_id in ("wiki", "code", "mail")', lambda _, d: d.source_id in ("wiki", "code", "mail")),
    Rule('tags contains "$caller.team"', lambda c, d: "team" in c and c["team"] in d.metadata.tags),
    Rule(
        'extra.region = "$caller.region" OR classification = "public"',
        lambda c, d: ("region" in c and d.metadata.extra.get("region") == c["region"]) or d.access.classification == "public",
    ),
    Rule('NOT tags contains "$caller.banned"', lambda c, d: "banned" in c and c["banned"] not in d.metadata.tags),
    Rule(
        'extra.team in ("$caller.team", "shared")',
        lambda c, d: "team" in c and d.metadata.extra.get("team") in (c["team"], "shared"),
    ),
    Rule(
        'extra.team not in ("$caller.team", "closed")',
        lambda c, d: "team" in c and "team" in d.metadata.extra and d.metadata.extra["team"] not in (c["team"], "closed"),
    ),
    Rule('language != "$caller.language"', lambda c, d: "language" in c and d.metadata.language != c["language"]),
    Rule('updated_at >= "$caller.since"', _since),
    Rule('updated_at >= "$caller.since" OR tags contains "open"', _since_or_open),
    Rule('classification <= "$caller.ceiling"', _ceiling),
    Rule(
        'NOT (extra.region = "$caller.region" AND tags contains "draft")',
        lambda c, d: "region" in c and not (d.metadata.extra.get("region") == c["region"] and "draft" in d.metadata.tags),
    ),
    Rule(
        'NOT NOT extra.region = "$caller.region"',
        lambda c, d: "region" in c and d.metadata.extra.get("region") == c["region"],
    ),
    Rule(
        'NOT extra.region exists OR extra.region = "$caller.region"',
        lambda c, d: "region" not in d.metadata.extra or ("region" in c and d.metadata.extra["region"] == c["region"]),
    ),
    Rule(
        'author = "$caller.login" OR tags contains "open"',
        lambda c, d: ("login" in c and d.metadata.author == c["login"]) or "open" in d.metadata.tags,
    ),
    Rule('document_id contains "$caller.mark"', lambda c, d: "mark" in c and c["mark"] in d.document_id),
    Rule("TRUE", lambda _c, _d: True),
)
