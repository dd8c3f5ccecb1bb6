"""What can be said about policies before any run: kinds of findings, how grave they are, and the traces that prove them."""

from __future__ import annotations

import msgspec

from evidentia.contracts.policies import Policy
from evidentia.contracts.vocabulary import RankedVocabulary, Vocabulary
from evidentia.policy.analysis_witness import Witness


class FindingKind(Vocabulary):
    """What is the matter with one policy, or with several together."""

    CONTRADICTION = "contradiction"
    """Each policy lets something pass, and together they let nothing pass."""
    BLOCKS_EVERYTHING = "blocks_everything"
    REDUNDANT = "redundant"
    """Another policy, in the same or a wider scope, is always at least as strict and never later."""
    NEVER_DECIDES = "never_decides"
    """A rule that never decides, since a rule of another policy always does where it fires."""
    UNREACHABLE = "unreachable"
    """A rule that can never fire."""
    UNUSED = "unused"
    """A setting that another setting switches off."""
    ALWAYS_WARNS = "always_warns"
    SCOPE_NEVER_MATCHES = "scope_never_matches"
    ABSTENTION_WITHOUT_RESPONSE = "abstention_without_response"
    JUDGE_OUTAGE_PASSES = "judge_outage_passes"
    JUDGE_OUTAGE_BLOCKS = "judge_outage_blocks"
    JUDGE_CAN_BE_SKIPPED = "judge_can_be_skipped"


class Severity(RankedVocabulary):
    """How grave a finding is, least first."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One finding with executed traces; `proof` says why it holds beyond them."""

    kind: FindingKind
    severity: Severity
    policies: tuple[str, ...]
    """The names of the policies it is about, the one to change first."""
    rules: tuple[str, ...] = ()
    message: str
    proof: str
    witnesses: tuple[Witness, ...]
    assumes: str = ""
    """What must be true of the traffic for it to hold; empty where nothing must."""


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A policy under analysis with rules in the type of its category."""

    policy: Policy
    rules: object

    @property
    def name(self) -> str:
        """Return the name of the policy."""
        return self.policy.body.name
