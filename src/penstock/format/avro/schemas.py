"""The Avro schemas of manifests and manifest lists, identical to those of Java 1.4.2.

Record names, field order and the order in unions matter: newer readers copy whole blocks between files of equal layout.

Source:
    Paimon ``core:manifest/ManifestEntrySerializer.java``, ``core:io/DataFileMetaSerializer.java``,
    ``core:manifest/ManifestFileMetaSerializer.java``, ``format:avro/AvroSchemaConverter.java``; docs/spec/format.md
    sections 4 and 5.
"""

from __future__ import annotations

import json
from typing import Final, TypeAlias

AvroType: TypeAlias = str | dict[str, "AvroType"] | list["AvroType"] | None
"""A schema, or a part of one, as parsed JSON."""

_NULL_COUNTS: Final[AvroType] = {"type": "array", "items": ["null", "long"]}
_STRINGS: Final[AvroType] = {"type": "array", "items": "string"}
_MILLIS: Final[AvroType] = {"type": "long", "logicalType": "timestamp-millis"}


def _field(name: str, avro_type: AvroType) -> AvroType:
    return {"name": name, "type": avro_type}


def _nullable(name: str, avro_type: AvroType) -> AvroType:
    # Null is the first branch: Java treats branch 0 as null, whatever its name.
    return {"name": name, "type": ["null", avro_type], "default": None}


def _stats(name: str, record_name: str) -> AvroType:
    fields: AvroType = [
        _field("_MIN_VALUES", "bytes"),
        _field("_MAX_VALUES", "bytes"),
        _nullable("_NULL_COUNTS", _NULL_COUNTS),
    ]
    return _field(name, {"type": "record", "name": record_name, "fields": fields})


def _root(fields: list[AvroType]) -> str:
    root = {"type": "record", "name": "record", "namespace": "org.apache.paimon.avro.generated", "fields": fields}
    return json.dumps(root, separators=(",", ":"))


_FILE_FIELDS: Final[list[AvroType]] = [
    _field("_FILE_NAME", "string"),
    _field("_FILE_SIZE", "long"),
    _field("_ROW_COUNT", "long"),
    _field("_MIN_KEY", "bytes"),
    _field("_MAX_KEY", "bytes"),
    _stats("_KEY_STATS", "record__FILE__KEY_STATS"),
    _stats("_VALUE_STATS", "record__FILE__VALUE_STATS"),
    _field("_MIN_SEQUENCE_NUMBER", "long"),
    _field("_MAX_SEQUENCE_NUMBER", "long"),
    _field("_SCHEMA_ID", "long"),
    _field("_LEVEL", "int"),
    _field("_EXTRA_FILES", _STRINGS),
    _nullable("_CREATION_TIME", _MILLIS),
    _nullable("_DELETE_ROW_COUNT", "long"),
    _nullable("_EMBEDDED_FILE_INDEX", "bytes"),
    _nullable("_FILE_SOURCE", "int"),
    _nullable("_VALUE_STATS_COLS", _STRINGS),
    _nullable("_EXTERNAL_PATH", "string"),
    _nullable("_FIRST_ROW_ID", "long"),
    _nullable("_WRITE_COLS", _STRINGS),
]

MANIFEST_SCHEMA: Final = _root(
    [
        _field("_VERSION", "int"),
        _field("_KIND", "int"),
        _field("_PARTITION", "bytes"),
        _field("_BUCKET", "int"),
        _field("_TOTAL_BUCKETS", "int"),
        _field("_FILE", {"type": "record", "name": "record__FILE", "fields": _FILE_FIELDS}),
    ]
)

MANIFEST_LIST_SCHEMA: Final = _root(
    [
        _field("_VERSION", "int"),
        _field("_FILE_NAME", "string"),
        _field("_FILE_SIZE", "long"),
        _field("_NUM_ADDED_FILES", "long"),
        _field("_NUM_DELETED_FILES", "long"),
        _stats("_PARTITION_STATS", "record__PARTITION_STATS"),
        _field("_SCHEMA_ID", "long"),
        _nullable("_MIN_BUCKET", "int"),
        _nullable("_MAX_BUCKET", "int"),
        _nullable("_MIN_LEVEL", "int"),
        _nullable("_MAX_LEVEL", "int"),
        _nullable("_MIN_ROW_ID", "long"),
        _nullable("_MAX_ROW_ID", "long"),
    ]
)
