"""Evidentia: which evidence may this agent use, where did it come from, and how do we know?

Public names are imported on first use, so that `import evidentia` stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evidentia.base.answers import EvidenceResponse
    from evidentia.base.async_base import AsyncBase, aconnect
    from evidentia.base.maintenance import restore
    from evidentia.base.sync_base import Base, connect
    from evidentia.contracts.access import AccessRule, Principal
    from evidentia.contracts.errors import EvidentiaError, InvalidFieldError, NotFoundError
    from evidentia.contracts.evidence import EvidenceFragment, EvidenceRequest, RankingWeights
    from evidentia.contracts.grounding import GroundingScore
    from evidentia.contracts.policies import PolicyAction, PolicyBody
    from evidentia.contracts.provenance import FragmentExport, VerifyReport
    from evidentia.contracts.sources import SourceDescriptor
    from evidentia.contracts.vocabulary import AuthorityTier, Classification
    from evidentia.grounding.score import ground, ground_answer

__version__ = "0.1.0"

__all__ = [
    "AccessRule",
    "AsyncBase",
    "AuthorityTier",
    "Base",
    "Classification",
    "EvidenceFragment",
    "EvidenceRequest",
    "EvidenceResponse",
    "EvidentiaError",
    "FragmentExport",
    "GroundingScore",
    "InvalidFieldError",
    "NotFoundError",
    "PolicyAction",
    "PolicyBody",
    "Principal",
    "RankingWeights",
    "SourceDescriptor",
    "VerifyReport",
    "aconnect",
    "connect",
    "ground",
    "ground_answer",
    "restore",
]

_HOMES = {
    "evidentia.base.answers": ("EvidenceResponse",),
    "evidentia.base.async_base": ("AsyncBase", "aconnect"),
    "evidentia.base.maintenance": ("restore",),
    "evidentia.base.sync_base": ("Base", "connect"),
    "evidentia.contracts.access": ("AccessRule", "Principal"),
    "evidentia.contracts.errors": ("EvidentiaError", "InvalidFieldError", "NotFoundError"),
    "evidentia.contracts.evidence": ("EvidenceFragment", "EvidenceRequest", "RankingWeights"),
    "evidentia.contracts.grounding": ("GroundingScore",),
    "evidentia.contracts.policies": ("PolicyAction", "PolicyBody"),
    "evidentia.contracts.provenance": ("FragmentExport", "VerifyReport"),
    "evidentia.contracts.sources": ("SourceDescriptor",),
    "evidentia.contracts.vocabulary": ("AuthorityTier", "Classification"),
    "evidentia.grounding.score": ("ground", "ground_answer"),
}
_EXPORTS = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for."""
    if name not in _EXPORTS:
        problem = f"module 'evidentia' has no attribute {name!r}"
        raise AttributeError(problem)
    return getattr(import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
