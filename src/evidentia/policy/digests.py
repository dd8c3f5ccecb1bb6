"""The digest that stands for a set of policies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from evidentia.contracts.canonical import sha256_hex

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evidentia.contracts.ids import Sha256
    from evidentia.contracts.policies import Policy


def set_digest(policies: Iterable[Policy]) -> Sha256:
    """Return the digest of policies in their order: of each its id, its version and its own digest."""
    return sha256_hex(msgspec.json.encode([(each.policy_id, each.version, each.digest) for each in policies]))
