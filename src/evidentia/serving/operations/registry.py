"""Every operation there is, in one list: a new one stands here or nowhere."""

from __future__ import annotations

from typing import Final

from evidentia.serving.operations import (
    admin_endpoints,
    decision_endpoints,
    document_endpoints,
    evidence_endpoints,
    policy_endpoints,
    run_endpoints,
    source_endpoints,
    trial_endpoints,
    upkeep_endpoints,
    version_endpoints,
)

ENDPOINTS: Final = (
    *evidence_endpoints.ENDPOINTS,
    *document_endpoints.ENDPOINTS,
    *source_endpoints.ENDPOINTS,
    *policy_endpoints.ENDPOINTS,
    *run_endpoints.ENDPOINTS,
    *decision_endpoints.ENDPOINTS,
    *trial_endpoints.ENDPOINTS,
    *admin_endpoints.ENDPOINTS,
    *upkeep_endpoints.ENDPOINTS,
    *version_endpoints.ENDPOINTS,
)
