"""The description of the plane: a golden file, complete, and true of what a generator of requests makes of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from evidentia.serving.operations.api_errors import TOO_LARGE
from evidentia.serving.operations.registry import ENDPOINTS
from evidentia.serving.rest.rest_routes import openapi_document
from evidentia.wiring.embedded import create
from serving.rest_planes import GOOD, SEED_BODY, Served, recorded, serving, started
from soak import IS_SOAKED, cases

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).with_name("rest_openapi.json")
PAGE = ROOT / "docs" / "rest.md"
SERVING = ROOT / "src" / "evidentia" / "serving"
ROOMS = ("operations", "rest", "identity")
CHECKS: list[Any] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
DOCUMENT = json.loads(json.dumps(openapi_document(ENDPOINTS, version="golden")))
LARGE = 500
EXAMPLES = cases(6, of=40)
# Systematic coverage makes tens of thousands of requests, while tests are collected; the usual run does without.
CONFIG = SchemathesisConfig.from_dict({"phases": {"coverage": {"enabled": IS_SOAKED}}})


def _without_large_limits(part: Any) -> Any:
    """Return a description without the limits that take megabytes to break; those are broken by hand elsewhere."""
    if isinstance(part, list):
        return [_without_large_limits(each) for each in part]
    if not isinstance(part, dict):
        return part
    kept = {name: value for name, value in part.items() if not (name in {"maxItems", "maxLength"} and value > LARGE)}
    return {name: _without_large_limits(value) for name, value in kept.items()}


SCHEMA = schemathesis.openapi.from_dict(_without_large_limits(DOCUMENT), config=CONFIG)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    base = tmp_path_factory.mktemp("plane") / "base"
    create(base)
    with serving(base) as served:
        assert 201 == served.admin.post("/v1/policies", json=SEED_BODY).status_code
        recorded(served, started(served, run_id="0"), 1, GOOD)
        yield served


def test_the_description_is_the_golden_one() -> None:
    """When this fails and the change is meant, write `rest_openapi.json` anew from `openapi_document`."""
    assert json.loads(GOLDEN.read_text(encoding="utf-8")) == DOCUMENT


def test_every_endpoint_is_described_once_with_its_roles_and_refusals() -> None:
    described = {(path, method) for path, methods in DOCUMENT["paths"].items() for method in methods}
    fixed = {("/v1/health", "get"), ("/v1/openapi.json", "get")}
    operations = [methods[method] for methods in DOCUMENT["paths"].values() for method in methods]

    assert {(each.path, each.method.lower()) for each in ENDPOINTS} | fixed == described
    assert len({each["operationId"] for each in operations}) == len(operations)
    guarded = [each for each in operations if each.get("security") != []]
    assert all({"401", "403", "422"} <= set(each["responses"]) and "Roles: " in each["description"] for each in guarded)


def test_every_reference_in_the_description_leads_somewhere() -> None:
    text = json.dumps(DOCUMENT)
    named = {part.split('"')[0] for part in text.split('"#/components/schemas/')[1:]}

    assert named == set(DOCUMENT["components"]["schemas"]) & named
    assert "$defs" not in text


def test_every_route_and_code_is_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    routes = [f"| `{each.method} {each.path}` |" for each in ENDPOINTS]
    sources = "".join(path.read_text(encoding="utf-8") for room in ROOMS for path in sorted((SERVING / room).glob("*.py")))
    codes = set(re.findall(r'(?:ApiError\(\s*\w+,\s*|conflict\(\s*|unauthorized\(\s*)"(\w+)"', sources))

    assert [] == [route for route in routes if route not in page]
    assert len(codes) > 10
    assert [] == sorted(code for code in codes if f"`{code}`" not in page)


def test_the_plane_serves_this_description(shared: Served) -> None:
    served = shared.nobody.get("/v1/openapi.json").json()

    assert DOCUMENT == {**served, "info": {**served["info"], "version": "golden"}}


@pytest.mark.slow
@SCHEMA.parametrize()
@settings(max_examples=EXAMPLES, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck))
def test_generated_requests_meet_the_description_and_no_fault(shared: Served, case: Any) -> None:
    if case.operation.definition.raw["operationId"] == "revoke_token":
        case.path_parameters = {"id": "nobody"}
    response = case.call(base_url=shared.url, headers={"authorization": shared.admin.headers["authorization"]})

    # What is too large is refused before anybody looks at its shape.
    case.validate_response(response, checks=CHECKS if response.status_code == TOO_LARGE else [*CHECKS, negative_data_rejection])
