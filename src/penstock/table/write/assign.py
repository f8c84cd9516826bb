"""Assignment of rows to groups: the partition and bucket of each row of a batch.

Source:
    Paimon ``core:table/sink/RowPartitionKeyExtractor.java``, ``FixedBucketRowKeyExtractor.java``;
    docs/spec/commit.md 2.1.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from penstock.format.row.row import encode_row
from penstock.format.types.data_types import AtomicType, DataType, TypeRoot
from penstock.table.write.bucket_keys import assign_buckets, check_bucket_key_type

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    import numpy.typing as npt

    from penstock.datafile.types import ArrowAny
    from penstock.format.row.bucket import BucketFunction
    from penstock.format.schema import TableSchema

Ids: TypeAlias = "npt.NDArray[np.int32]"
Codes: TypeAlias = "npt.NDArray[np.int64]"

# Up to 16 Mi entries (64 MB), an array maps (partition, bucket) to group; above that, a dictionary does.
_MAX_TABLE: Final = 1 << 24
_NANOS_PER_UNIT: Final = {"ms": 1_000_000, "us": 1_000, "ns": 1}


class Group(NamedTuple):
    """The partition and bucket that rows belong to.

    Attributes:
        partition: serialized BinaryRow (arity prefix included) of the partition values.
        bucket: 0 in unaware tables.
    """

    partition: bytes
    bucket: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketRule:
    """How a table assigns rows to buckets.

    Attributes:
        key: names of the bucket key's columns in the option's order; empty in unaware tables.
        num_buckets: -1 in unaware tables.
    """

    key: tuple[str, ...]
    num_buckets: int
    function: BucketFunction


class Assigner:
    """Assigns a group number to every row of a table; numbers are dense, in the order in which groups first appear.

    An assigner keeps the groups of earlier batches, so one task uses one assigner. Not thread-safe.

    Attributes:
        groups: the groups by number; grows with each batch.
    """

    def __init__(self, schema: TableSchema, rule: BucketRule) -> None:
        names = schema.field_names
        self.groups: list[Group] = []
        self._rule = rule
        self._partition_fields = [(names.index(field.name), field.type) for field in schema.partition_fields]
        self._key_places = [names.index(name) for name in rule.key]
        self._key_types = [check_bucket_key_type(name, schema.fields[names.index(name)].type) for name in rule.key]
        self._stride = max(rule.num_buckets, 1)
        self._partitions: list[bytes] = []
        self._number_by_values: dict[tuple[Hashable, ...], int] = {}
        self._number_by_bytes: dict[bytes, int] = {}
        self._group_table: Ids = np.full(self._stride if self._stride <= _MAX_TABLE else 0, -1, dtype=np.int32)
        self._group_by_code: dict[int, int] = {}

    def assign(self, batch: pa.RecordBatch) -> int | Ids:
        """Return the group number of every row, or one number when all rows belong to the same group.

        Args:
            batch: canonical, with all columns of the schema, at least one row.
        """
        partitions = self._number_partitions(batch)
        if len(self._key_places) == 0 or self._stride == 1:
            buckets: int | Ids = 0
        else:
            columns = [batch.column(place) for place in self._key_places]
            buckets = assign_buckets(columns, self._key_types, self._stride, self._rule.function)
        if isinstance(partitions, int) and isinstance(buckets, int):
            code = partitions * self._stride + buckets
            return int(self._to_groups(np.array([code], dtype=np.int64))[0])
        codes: Codes = np.asarray(partitions, dtype=np.int64) * self._stride + buckets
        return self._to_groups(codes)

    def _to_groups(self, codes: Codes) -> Ids:
        """Turn codes (partition number * buckets + bucket) into group numbers."""
        size = len(self._partitions) * self._stride
        if size > _MAX_TABLE:
            distinct, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
            for place in np.argsort(first):
                self._add_group(int(distinct[place]))
            numbers = [self._group_by_code[code] for code in distinct.tolist()]
            return np.array(numbers, dtype=np.int32)[inverse]
        if size > len(self._group_table):
            larger = np.full(max(size, 2 * len(self._group_table)), -1, dtype=np.int32)
            larger[: len(self._group_table)] = self._group_table
            self._group_table = larger
        groups = self._group_table[codes]
        unknown = codes[groups < 0]
        if len(unknown) == 0:
            return groups
        distinct, first = np.unique(unknown, return_index=True)
        for code in distinct[np.argsort(first)].tolist():
            self._group_table[code] = self._add_group(code)
        return self._group_table[codes]

    def _add_group(self, code: int) -> int:
        number = self._group_by_code.setdefault(code, len(self.groups))
        if number == len(self.groups):
            partition, bucket = divmod(code, self._stride)
            self.groups.append(Group(self._partitions[partition], bucket))
        return number

    def _number_partitions(self, batch: pa.RecordBatch) -> int | Codes:
        """Return the number of each row's partition."""
        columns = [_encode_column(batch.column(place), kind) for place, kind in self._partition_fields]
        if all(len(column.keys) == 1 for column in columns):
            return self._number_of(tuple(column.keys[0] for column in columns))
        codes = columns[0].codes
        rows_of_codes = [(key,) for key in columns[0].keys]
        for column in columns[1:]:
            # At most as many distinct rows as rows in the batch, so the product stays far below 2^63.
            width = len(column.keys)
            distinct, codes = _compress(codes * width + column.codes, len(rows_of_codes) * width)
            pairs = (divmod(code, width) for code in distinct.tolist())
            rows_of_codes = [(*rows_of_codes[left], column.keys[right]) for left, right in pairs]
        numbers = np.array([self._number_of(values) for values in rows_of_codes], dtype=np.int64)
        return numbers[codes]

    def _number_of(self, keys: tuple[Hashable, ...]) -> int:
        number = self._number_by_values.get(keys)
        if number is not None:
            return number
        types = [kind for _, kind in self._partition_fields]
        values = [_value_of(key, kind) for key, kind in zip(keys, types, strict=True)]
        partition = encode_row(values, types)
        number = self._number_by_bytes.setdefault(partition, len(self._partitions))
        if number == len(self._partitions):
            self._partitions.append(partition)
        self._number_by_values[keys] = number
        return number


class _EncodedColumn(NamedTuple):
    """A dictionary-encoded column: ``keys[codes[i]]`` is the value of row i."""

    codes: Codes
    keys: list[Hashable]


def _compress(codes: Codes, limit: int) -> tuple[Codes, Codes]:
    """Return the distinct codes, ascending, and the index of each code among them; codes are below ``limit``."""
    if limit > 4 * len(codes) + 1024:
        distinct, inverse = np.unique(codes, return_inverse=True)
        return distinct, inverse.astype(np.int64, copy=False)
    # Counting all possible codes is many times faster than sorting.
    distinct = np.flatnonzero(np.bincount(codes, minlength=limit))
    places = np.empty(limit, dtype=np.int64)
    places[distinct] = np.arange(len(distinct))
    return distinct, places[codes]


def _encode_column(column: ArrowAny, kind: DataType) -> _EncodedColumn:
    encoded = _as_hashable(column, kind).dictionary_encode(null_encoding="encode")
    values: list[Hashable]
    keys = encoded.dictionary
    if pa.types.is_timestamp(column.type):
        # Python's datetime cannot hold nanoseconds, nor years beyond its range.
        keys = keys.cast(pa.int64())
        factor = _NANOS_PER_UNIT[column.type.unit]
        values = [None if key is None else key * factor for key in keys.to_pylist()]
    elif pa.types.is_date(column.type) or pa.types.is_time(column.type):
        values = keys.cast(pa.int32()).to_pylist()
    else:
        values = keys.to_pylist()
    return _EncodedColumn(encoded.indices.to_numpy().astype(np.int64), values)


def _as_hashable(column: ArrowAny, kind: DataType) -> ArrowAny:
    """View floats as integers of their bits: -0.0 and 0.0 are two partitions, and NaN equals itself."""
    view = _FLOAT_VIEWS.get(kind.root) if isinstance(kind, AtomicType) else None
    return column if view is None else column.view(view.arrow_type)


def _value_of(key: Hashable, kind: DataType) -> object:
    view = _FLOAT_VIEWS.get(kind.root) if isinstance(kind, AtomicType) else None
    return key if view is None or key is None else view.to_float(key)


class _FloatView(NamedTuple):
    arrow_type: ArrowAny
    to_float: Callable[[Hashable], float]


def _unpack_float(bits: Hashable) -> float:
    return float(struct.unpack("<f", struct.pack("<i", bits))[0])


def _unpack_double(bits: Hashable) -> float:
    return float(struct.unpack("<d", struct.pack("<q", bits))[0])


_FLOAT_VIEWS: Final = {
    TypeRoot.FLOAT: _FloatView(pa.int32(), _unpack_float),
    TypeRoot.DOUBLE: _FloatView(pa.int64(), _unpack_double),
}
