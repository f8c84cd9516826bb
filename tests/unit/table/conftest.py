"""Index manifests as the reference writes them."""

from __future__ import annotations

from io import BytesIO

import fastavro
import pytest

_SCHEMA = {
    "type": "record",
    "name": "record",
    "namespace": "org.apache.paimon.avro.generated",
    "fields": [
        {"name": "_VERSION", "type": "int"},
        {"name": "_KIND", "type": "int"},
        {"name": "_PARTITION", "type": "bytes"},
        {"name": "_BUCKET", "type": "int"},
        {"name": "_INDEX_TYPE", "type": "string"},
        {"name": "_FILE_NAME", "type": "string"},
        {"name": "_FILE_SIZE", "type": "long"},
        {"name": "_ROW_COUNT", "type": "long"},
    ],
}


def _encode(*index_types: str) -> bytes:
    records = [
        {
            "_VERSION": 1,
            "_KIND": 0,
            "_PARTITION": bytes(12),
            "_BUCKET": 0,
            "_INDEX_TYPE": index_type,
            "_FILE_NAME": "index-0",
            "_FILE_SIZE": 1,
            "_ROW_COUNT": 1,
        }
        for index_type in index_types
    ]
    output = BytesIO()
    fastavro.writer(output, _SCHEMA, records, codec="zstandard")
    return output.getvalue()


@pytest.fixture
def index_manifest() -> bytes:
    """An index manifest with deletion vectors."""
    return _encode("HASH", "DELETION_VECTORS")


@pytest.fixture
def empty_index_manifest() -> bytes:
    """An index manifest with other indexes only."""
    return _encode("HASH")
