"""Options that ``read_stream`` passes to the source in addition to the options of the table.

Spark passes only strings. The source is created from them in another process, at every start of the query.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from penstock.options.object_store import store_options
from penstock.table.store import MetadataStore
from penstock.table.stream.align.membership import check_alignment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.table.ref import TableRef

STREAM_ID_OPTION: Final = "penstock.reader"
"""Option with the id by which the driver finds the query's progress."""

_NAME_OPTION: Final = "penstock.table"
_SCHEMA_OPTION: Final = "penstock.schema-id"
_PARALLELISM_OPTION: Final = "penstock.parallelism"
# In plans and logs, Spark masks values whose key contains "secret" (spark.redaction.regex).
_STORAGE_OPTION: Final = "penstock.storage-secret"

HANDED_OVER: Final = frozenset({STREAM_ID_OPTION, _NAME_OPTION, _SCHEMA_OPTION, _PARALLELISM_OPTION, _STORAGE_OPTION})
"""Keys that are not options of the table."""


def encode_reader_options(ref: TableRef, *, stream_id: str, parallelism: int) -> dict[str, str]:
    """Return the options from which ``decode_reader_options`` restores the same table.

    Args:
        stream_id: id by which the driver finds the query's progress.
        parallelism: number of tasks that the session runs at the same time.
    """
    check_alignment(ref, MetadataStore(ref))
    storage = ref.file_io.storage_options()
    return {
        **dict(ref.dynamic_options),
        **({_STORAGE_OPTION: json.dumps(storage)} if storage else {}),
        "path": ref.location,
        STREAM_ID_OPTION: stream_id,
        _NAME_OPTION: ref.name,
        _SCHEMA_OPTION: str(ref.schema.id),
        _PARALLELISM_OPTION: str(parallelism),
    }


def decode_storage_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the storage options: those that ``read_stream`` passed, overridden by those that the user gave."""
    return {**json.loads(options.get(_STORAGE_OPTION) or "{}"), **store_options(options)}


def decode_reader_options(ref: TableRef, options: Mapping[str, str]) -> TableRef:
    """Return the table with the name and the columns that ``read_stream`` passed, if any.

    Args:
        ref: the table as it is now, with its options.
    """
    name = options.get(_NAME_OPTION, ref.name)
    schema_id = int(options.get(_SCHEMA_OPTION, ref.schema.id))
    if schema_id == ref.schema.id:
        return replace(ref, name=name)
    schema = MetadataStore(ref).load_schema(schema_id)
    return replace(ref, name=name, schema=replace(schema, options=ref.schema.options))


def parallelism_of(options: Mapping[str, str]) -> int:
    """Return how many tasks run at the same time; if unknown, the number of cores of the driver's machine."""
    return int(options.get(_PARALLELISM_OPTION) or os.cpu_count() or 1)
