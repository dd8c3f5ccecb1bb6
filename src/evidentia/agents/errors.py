"""What can go wrong in an agent's hands: a policy stopped the call, or the call was not fit to be recorded."""

from __future__ import annotations

from evidentia.contracts.errors import EvidentiaError, InvalidRecordError, PolicyInvalidError, PolicyViolationError

__all__ = ["EvidentiaError", "InvalidRecordError", "PolicyInvalidError", "PolicyViolationError"]
