"""Keys that all rows of a Spark partition share, so that joins and aggregates by them need no exchange.

The keys are the partition columns, and the bucket of a bucket key of one column. Spark joins two scans without an
exchange if their keys are the same functions of the columns of the join.

Source:
    ``SupportsReportPartitioning`` and ``HasPartitionKey`` of Spark; ``KeyedPartitioning.supportsExpressions``, by which
    a function of a key has one column.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

from penstock.format.text.names import quoted
from penstock.format.types.data_types import INTEGERS, AtomicType, TypeRoot
from penstock.options import BucketOptions
from penstock.spark.types import has_nanoseconds
from penstock.table.read.prune import is_key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from penstock.format.schema import TableSchema
    from penstock.format.types.data_types import DataType
    from penstock.table.read.split import DataSplit
    from penstock.table.ref import TableRef

# Spark takes 0.0 and -0.0, and two CHAR that differ in blanks at the end, as equal; they may be in different buckets.
_HASHED: Final = frozenset(
    {TypeRoot.BOOLEAN, *INTEGERS, TypeRoot.DECIMAL, TypeRoot.VARCHAR, TypeRoot.VARBINARY}
    | {TypeRoot.DATE, TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ}
)
CELLS: Final = {
    TypeRoot.BOOLEAN: "boolean",
    TypeRoot.TINYINT: "byte",
    TypeRoot.SMALLINT: "short",
    TypeRoot.INT: "int",
    TypeRoot.BIGINT: "long",
    TypeRoot.DATE: "int",
    TypeRoot.VARCHAR: "text",
}
"""Types of which values of partitions are sent to Spark, with Java's type of them in its rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionKey:
    """One key: a partition column or a bucket.

    Attributes:
        column: whose value the key is, or is computed from.
        cell: Java's type of the key.
        place: of the partition column; None for a bucket.
        buckets: number of buckets.
        function: names the function that computes the bucket; equal names are equal functions.
    """

    column: str
    cell: str
    place: int | None = None
    buckets: int = 0
    function: str = ""

    def value(self, split: DataSplit) -> object:
        """Return the key of all rows of a split."""
        return split.bucket if self.place is None else split.values[self.place]


def partition_keys_of(ref: TableRef, *, has_functions: bool = True) -> tuple[PartitionKey, ...]:
    """Return the keys of a table.

    Args:
        has_functions: whether Spark finds functions, which it does in a catalog.
    """
    keys = [
        PartitionKey(column=field.name, cell=CELLS[field.type.root], place=place)
        for place, field in enumerate(ref.schema.partition_fields)
        if isinstance(field.type, AtomicType) and field.type.root in CELLS
    ]
    options = ref.parsed(BucketOptions)
    if has_functions and options.bucket > 0 and len(options.bucket_key) == 1:
        (name,) = options.bucket_key
        (data_type,) = (field.type for field in ref.schema.fields if field.name == name)
        if (text := _hashed_type(data_type)) is not None:
            function = f"penstock_bucket_{options.bucket_function}_{options.bucket}_{text}"
            keys.append(PartitionKey(column=name, cell="int", buckets=options.bucket, function=function))
    return tuple(keys)


def _hashed_type(data_type: DataType) -> str | None:
    """Return a text that is equal for types whose equal values have equal hashes; None if there are no such types."""
    if not isinstance(data_type, AtomicType) or data_type.root not in _HASHED:
        return None
    if has_nanoseconds(data_type):
        return None  # values that Spark reads as equal may differ in nanoseconds
    parts = (data_type.root, data_type.precision, data_type.scale)
    return "_".join(str(part).lower() for part in parts if part is not None)


def read_keys(keys: Sequence[PartitionKey], columns: Collection[str]) -> tuple[PartitionKey, ...]:
    """Return the keys of columns that a scan reads; Spark does not know others."""
    return tuple(key for key in keys if key.column in columns)


def transforms_text(keys: Sequence[PartitionKey]) -> str | None:
    """Return keys as text for ``Driver.proxy``: a line for each, with the function behind a tab; None without keys."""
    lines = (f"{quoted(key.column)}\t{key.function}" if key.function else quoted(key.column) for key in keys)
    return "\n".join(lines) or None


def keyed_files(
    ref: TableRef,
    load_schema: Callable[[int], TableSchema],
    keys: Sequence[PartitionKey],
    splits: Sequence[DataSplit],
    listed: Callable[[Sequence[DataSplit]], str],
) -> str | None:
    """Return the files of splits as text for ``Driver.keyed``.

    Args:
        load_schema: loads a schema by id.
        listed: returns the files of splits as text for ``Driver.packed``.

    Returns:
        None without keys, or if files are in the buckets of another number, from before the table was rescaled, or of
        another type of the key.
    """
    buckets = {key.buckets for key in keys} - {0}
    if not keys or any(buckets != {split.total_buckets} for split in splits if buckets):
        return None
    hashed = {key.column for key in keys if key.buckets}
    fields = [field for field in ref.schema.fields if field.name in hashed]
    schema_ids = set().union(*(split.schema_ids for split in splits)) - {ref.schema.id} if hashed else set()
    if not all(is_key_of(load_schema(each), fields) for each in schema_ids):
        return None
    runs: dict[str, list[str]] = {}
    for values, grouped in groupby(splits, key=lambda split: [key.value(split) for key in keys]):
        # Spark does not compare lists, and JSON tells 1 from true.
        runs.setdefault(json.dumps(values), []).append(listed(tuple(grouped)))
    return "\n\n".join("\n".join((key, *files)) for key, files in runs.items())
