"""docs/reference/schemas: JSON Schema of the messages that cross a border, with the words of the source in them."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from evidentia.contracts import access, documents, evidence, predicates, provenance, reports, settings
from evidentia.contracts import sources as source_messages
from evidentia.contracts.annotations import Annotation
from reference import sources

DIALECT = "https://json-schema.org/draft/2020-12/schema"

SCHEMAS: tuple[type[msgspec.Struct], ...] = (
    access.AccessRule,
    access.Principal,
    Annotation,
    documents.DocumentMetadata,
    evidence.CoverageReport,
    evidence.EvidenceFragment,
    evidence.EvidenceRequest,
    evidence.EvidenceResponse,
    provenance.FragmentExport,
    provenance.ProvenanceRecord,
    provenance.VerifyReport,
    reports.IngestReport,
    settings.Settings,
    source_messages.SourceDescriptor,
    source_messages.SourcePolicy,
)

Schema = dict[str, Any]  # Any: JSON Schema is free-form JSON


def schema_files() -> dict[str, str]:
    """Return the text of every schema under its file name."""
    files = {schema_name(cls): _schema(cls, title=cls.__name__) for cls in SCHEMAS}
    files["predicate.json"] = _schema(predicates.Predicate, title="Predicate")
    return dict(sorted(files.items()))


def schema_name(cls: type) -> str:
    """Return the name of a message's file, in lower case with underscores."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower() + ".json"


def _schema(shape: object, *, title: str) -> str:
    schema: Schema = {"$schema": DIALECT, "title": title, **msgspec.json.schema(shape)}
    messages = {cls.__name__: cls for cls in _structs(shape)}
    for name, definition in schema["$defs"].items():
        if name in messages:
            _describe(definition, messages[name])
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _describe(definition: Schema, cls: type) -> None:
    """Put what stands under the fields in the source into the definition of a message."""
    for field, words in sources.field_words(cls).items():
        definition["properties"][field]["description"] = " ".join(words.split())
    if "description" in definition:
        definition["description"] = " ".join(definition["description"].split())


def _structs(shape: object) -> set[type]:
    """Return every message that a type is made of."""
    found: set[type] = set()
    pending = [msgspec.inspect.type_info(shape)]
    while pending:
        each = pending.pop()
        if isinstance(each, msgspec.inspect.StructType):
            if each.cls in found:
                continue
            found.add(each.cls)
            pending += [field.type for field in each.fields]
        for name in ("types", "item_types"):
            pending += getattr(each, name, ())
        pending += [inner for name in ("item_type", "key_type", "value_type") if (inner := getattr(each, name, None)) is not None]
    return found
