"""What an agent says about its own work: choices, thoughts, retries, what it read, and scores and tags of the run as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evidentia.agents.checks import checked_count, checked_number, checked_text, plain
from evidentia.agents.errors import InvalidRecordError
from evidentia.agents.recording import Recorder
from evidentia.contracts.policies import PolicyAction
from evidentia.contracts.runs import Phase

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Teller(Recorder):
    """The part of a context that records what is told, not decided about."""

    def record_decision(
        self,
        name: str,
        *,
        options: Sequence[str] = (),
        chosen: str = "",
        reasoning: str = "",
        confidence: float | None = None,
        metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Record a choice that the agent made."""
        known = None if confidence is None else checked_number(confidence, "confidence")
        said = self._content(reasoning=reasoning or None)
        self._step(name, _filled(kind="decision", options=list(options), chosen=chosen, confidence=known, metadata=metadata, **said))

    def record_reasoning(self, step: str, *, thought: str = "", evidence: Sequence[str] = (), conclusion: str = "") -> None:
        """Record a thought; its words are kept when capturing, else their hash."""
        said = self._content(thought=thought or None, conclusion=conclusion or None)
        self._step(step, _filled(kind="reasoning", evidence=list(evidence), **said))

    def record_retry(
        self,
        attempt: int,
        *,
        reason: str = "",
        strategy: str = "retry",
        original_error: str = "",
        fallback_to: str = "",
        max_attempts: int | None = None,
    ) -> None:
        """Record that something is tried again, or something else instead."""
        self._step(
            "retry",
            _filled(
                kind="retry",
                attempt=checked_count(attempt, "attempt"),
                reason=reason,
                strategy=strategy,
                original_error=original_error,
                fallback_to=fallback_to,
                max_attempts=max_attempts,
            ),
        )

    def record_data_access(self, source: str, *, operation: str = "read", records: int = 0) -> None:
        """Record that a store was read or written."""
        self._step("data_access", _filled(source=source, operation=operation, records=checked_count(records, "records")))

    def record_policy_check(
        self,
        policy_name: str,
        action: str = "allow",
        *,
        category: str = "",
        reason: str = "",
        duration_ms: float = 0,
        phase: str = "pre_execution",
        priority: int = 100,
    ) -> None:
        """Record what a policy outside of this system decided; it stands in the log and stops nothing here."""
        try:
            known = Phase(phase)
            what = PolicyAction(action)
        except ValueError as error:
            raise InvalidRecordError("phase" if action in PolicyAction.words() else "action", str(error)) from error
        described = _filled(policy_name=policy_name, category=category, reason=reason, duration_ms=duration_ms, priority=priority)
        self._note("policy_check", {**described, "action": what.value, "phase": known.value})

    def record_score(self, name: str, value: float | str | bool, data_type: str = "", comment: str = "") -> None:  # noqa: FBT001 - a score may be yes or no
        """Record a score that somebody gave the run."""
        self._note("score", _filled(name=checked_text(name, "name"), value=value, data_type=data_type, comment=comment))

    def set_tag(self, key: str, value: object) -> None:
        """Put a tag on the run."""
        self._note("tag", {checked_text(key, "key"): plain(value)})

    def set_metadata(self, key: str, value: object) -> None:
        """Put a value on the run."""
        self._note("metadata", {checked_text(key, "key"): plain(value)})


def _filled(**described: object) -> dict[str, Any]:
    """Return what says something, as JSON can hold it."""
    return {name: plain(value) for name, value in described.items() if value not in (None, "", [], {}, ())}
