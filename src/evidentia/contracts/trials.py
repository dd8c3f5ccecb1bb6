"""What is asked of recorded runs before a policy is put in force. Nothing of it changes anything."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from evidentia.contracts.policies import PolicyBody

MAX_TRIAL_MINUTES: Final = 60 * 24 * 366
MAX_TRIAL_RECORDS: Final = 300_000
"""Read for one trial; a longer time than holds as many is refused."""


class ShadowTrial(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A policy to be tried over the runs that began in the last minutes."""

    policy: PolicyBody
    minutes: Annotated[int, msgspec.Meta(ge=1, le=MAX_TRIAL_MINUTES)] = 60 * 24 * 7
    is_whole: bool = False
    """Whether it is all there is; else other recorded policies stay in force beside it."""
