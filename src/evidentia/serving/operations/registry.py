"""Every operation there is, in one list: a new one stands here or nowhere."""

from __future__ import annotations

from typing import Final

from evidentia.serving.operations import (
    admin_endpoints,
    document_endpoints,
    evidence_endpoints,
    policy_endpoints,
    run_endpoints,
    source_endpoints,
)

ENDPOINTS: Final = (
    *evidence_endpoints.ENDPOINTS,
    *document_endpoints.ENDPOINTS,
    *source_endpoints.ENDPOINTS,
    *policy_endpoints.ENDPOINTS,
    *run_endpoints.ENDPOINTS,
    *run_endpoints.DECISION_ENDPOINTS,
    *policy_endpoints.TRIAL_ENDPOINTS,
    *admin_endpoints.ENDPOINTS,
    *admin_endpoints.UPKEEP_ENDPOINTS,
    *admin_endpoints.VERSION_ENDPOINTS,
)
