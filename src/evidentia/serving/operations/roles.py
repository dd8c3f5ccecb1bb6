"""Which roles an operation is for; of those that are named, one is enough."""

from __future__ import annotations

from typing import Final

from evidentia.contracts.control import Role

READERS: Final = tuple(Role)
"""Everybody with a token."""
AGENTS: Final = (Role.AGENT, Role.ADMIN)
AUDITORS: Final = (Role.AUDITOR, Role.ADMIN)
"""Who sees what others asked and did; their questions about receipts are answered as the owner of their tenant."""
WRITERS: Final = (Role.ADMIN,)
