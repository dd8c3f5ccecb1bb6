"""A question as it was sent, read strictly: an unknown or wrong field is named, as a local base names it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from evidentia.contracts.errors import InvalidFieldError
from evidentia.contracts.evidence import DecomposedQuery, EvidenceRequest
from evidentia.engine.checking import request_from
from evidentia.serving.operations.api_errors import shape_refusal

if TYPE_CHECKING:
    from collections.abc import Mapping


def read_request(given: Mapping[str, Any]) -> EvidenceRequest:  # Any: whatever was sent; that is what is checked
    """Return the request in an object whose `query` is a text, or a text with the parts it was split into.

    Raises:
        InvalidFieldError: A field is unknown, missing or cannot be right; it is named.
    """
    if "query" not in given:
        raise InvalidFieldError("query", "it is missing")
    fields = {name: value for name, value in given.items() if name != "query"}
    query = given["query"]
    if isinstance(query, str):
        return request_from(query, fields)
    try:
        decomposed = msgspec.convert(query, DecomposedQuery)
    except msgspec.ValidationError as error:
        told = shape_refusal(error, names=DecomposedQuery.__struct_fields__, within="query").fault.problems[0]
        raise InvalidFieldError(told.path or "query", told.problem) from error
    return msgspec.structs.replace(request_from(decomposed.text, fields), query=decomposed)
