"""Pruning by a filter without opening data files: of manifests, partitions, buckets and files.

Each step prunes only what cannot contain a row that passes the filter; anything unknown is kept. The column statistics
of a data file's manifest entry are mapped to the read schema first.

Source:
    Paimon ``core:operation/AbstractFileStoreScan.java``, ``core:stats/SimpleStatsEvolution.java``,
    ``core:operation/BucketSelectConverter.java``; docs/spec/format.md section 7.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Final

import numpy as np

from penstock.errors import FormatError
from penstock.format.manifest.entry import StatsLayout
from penstock.format.manifest.stats import ColumnStats, decode_stats
from penstock.format.row.bucket import BucketFunction, bucket_of
from penstock.format.row.row import arity_of, row_decoder
from penstock.format.types.data_types import INTEGERS, AtomicType, TypeRoot, with_nullability
from penstock.options import BucketOptions
from penstock.predicate.evaluate import allowed_values, may_match, residual
from penstock.predicate.tree import FALSE, TRUE, BoundPredicate
from penstock.table.row_tracking import TRACKED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from penstock.format.avro.columns import Array
    from penstock.format.manifest.entry import DataFileMeta, ManifestEntry, ManifestFileMeta
    from penstock.format.schema import TableSchema
    from penstock.format.types.data_types import DataField, DataType
    from penstock.table.read.files import FileColumns
    from penstock.table.ref import TableRef

_TIMESTAMPS: Final = frozenset({TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ})


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsPlaces:
    """Positions of the columns' statistics in the manifest entries of files of one kind.

    Attributes:
        arity: number of columns that the entries cover.
        decode: decodes the bytes of a minimum or maximum row to the values of ``columns``.
        columns: name in the read schema, position in the row, and whether minimum and maximum can be trusted.
        types: of ``columns``, in the files.
        lacking: columns that the files do not have, so that all their values are null.
    """

    arity: int
    decode: Callable[[bytes], tuple[object, ...]]
    columns: tuple[tuple[str, int, bool], ...]
    types: tuple[DataType, ...]
    lacking: tuple[str, ...]

    @property
    def content(self) -> tuple[object, ...]:
        """All but the function: equal places have equal ones."""
        return self.arity, self.columns, self.types, self.lacking


class ColumnStatsReader:
    """Reads the statistics of some columns from manifest entries, for files of any schema of the table.

    Args:
        load_schema: loads a schema by id.
        fields: the columns, as in the read schema.
    """

    def __init__(self, load_schema: Callable[[int], TableSchema], fields: Sequence[DataField]) -> None:
        self._load_schema = load_schema
        self._fields = fields
        self._places: dict[StatsLayout, StatsPlaces] = {}

    def read(self, file: DataFileMeta) -> Mapping[str, ColumnStats]:
        """Return the known statistics by column name; columns without known statistics are left out.

        Statistics are only used to skip files, so invalid ones are treated as unknown.
        """
        is_orc = file.file_name.endswith(".orc")
        plan = self.places(StatsLayout(file.schema_id, file.value_stats_cols, file.write_cols, is_orc))
        found = {name: ColumnStats(null_count=file.row_count) for name in plan.lacking}
        stats = file.value_stats
        if not plan.columns or len(stats.null_counts) != plan.arity:
            return found
        try:
            low, high = plan.decode(stats.min_values), plan.decode(stats.max_values)
        except FormatError:
            return found
        for (name, place, is_trusted), least, greatest in zip(plan.columns, low, high, strict=True):
            nulls = stats.null_counts[place]
            found[name] = (
                ColumnStats(min=least, max=greatest, null_count=nulls) if is_trusted else ColumnStats(null_count=nulls)
            )
        return found

    def places(self, layout: StatsLayout) -> StatsPlaces:
        """Return where the statistics of files are."""
        places = self._places.get(layout)
        if places is None:
            places = self._places[layout] = self._find_places(layout)
        return places

    def _find_places(self, layout: StatsLayout) -> StatsPlaces:
        file_fields = self._load_schema(layout.schema_id).fields
        held = held_fields(file_fields, layout.write_cols)
        by_name = {field.name: field for field in held}
        by_id = {field.id: field for field in held}
        covered = tuple(by_name) if layout.value_stats_cols is None else layout.value_stats_cols
        columns = []
        for field in self._fields:
            stored = by_id.get(field.id)
            if stored is not None and stored.name in covered and is_comparable(stored.type, field.type):
                # ORC's timestamp statistics are whole milliseconds in the writer's zone.
                is_trusted = not (
                    layout.is_orc and isinstance(field.type, AtomicType) and field.type.root in _TIMESTAMPS
                )
                columns.append((field.name, covered.index(stored.name), is_trusted))
        known = all(name in by_name for name in covered)
        types = tuple(by_name[name].type for name in covered) if known else ()
        return StatsPlaces(
            arity=len(covered),
            decode=row_decoder(types, [place for _, place, _ in columns] if known else []),
            columns=tuple(columns) if known else (),
            types=tuple(types[place] for _, place, _ in columns) if known else (),
            lacking=tuple(field.name for field in self._fields if field.id not in by_id),
        )


def held_fields(file_fields: Sequence[DataField], write_cols: Sequence[str] | None) -> Sequence[DataField]:
    """Return the columns of a file.

    Args:
        file_fields: columns of the schema that it was written with.
        write_cols: of the file.
    """
    if write_cols is None:
        return file_fields
    return [field for field in (*file_fields, *TRACKED) if field.name in write_cols]


def decode_file_stats(file: DataFileMeta, file_fields: Sequence[DataField]) -> Mapping[str, ColumnStats]:
    """Decode the statistics of an entry, by column name of the file's schema; empty if they are invalid."""
    try:
        return decode_stats(file.value_stats, file.value_stats_cols, held_fields(file_fields, file.write_cols))
    except FormatError:
        return {}  # statistics are only used to skip files: a file without valid ones is read


def is_comparable(stored: DataType, wanted: DataType) -> bool:
    """Whether statistics of one type are valid for values cast to the other: equal types, or a lossless cast."""
    if is_same_but_nulls(stored, wanted):
        return True
    if not isinstance(stored, AtomicType) or not isinstance(wanted, AtomicType):
        return False
    if stored.root in INTEGERS and wanted.root in INTEGERS:
        return INTEGERS.index(stored.root) <= INTEGERS.index(wanted.root)
    is_text = stored.root is TypeRoot.VARCHAR and wanted.root is TypeRoot.VARCHAR
    return is_text and (stored.length or 1) <= (wanted.length or 1)


def is_same_but_nulls(left: DataType, right: DataType) -> bool:
    """Whether two types are equal except for nullability."""
    return with_nullability(left, nullable=True) == with_nullability(right, nullable=True)


NO_FILTER: Final = BoundPredicate(root=TRUE, fields=())
# With more combinations of bucket key values than this, nearly every bucket is hit anyway.
_MAX_KEYS: Final = 1024
# Equal values of these types may differ in bytes (two zeros, NaNs, padding), so they may be in different buckets.
_SEVERAL_SPELLINGS: Final = frozenset({TypeRoot.FLOAT, TypeRoot.DOUBLE, TypeRoot.CHAR})


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionPruneResult:
    """Result of pruning for one partition.

    Attributes:
        values: internal values, in ``partition_keys`` order.
        rest: the remaining filter for the partition's rows; FALSE if no row can pass.
    """

    values: tuple[object, ...]
    rest: BoundPredicate

    @property
    def is_excluded(self) -> bool:
        """Whether no row of the partition can pass."""
        return self.rest.root == FALSE


class PartitionPruner:
    """Prunes partitions, and manifests by their partition statistics."""

    def __init__(self, schema: TableSchema, predicate: BoundPredicate) -> None:
        self._names = schema.partition_keys
        self._predicate = predicate
        self._decode = row_decoder(tuple(field.type for field in schema.partition_fields))
        self._names_partition = any(name in schema.partition_keys for name in predicate.columns)

    def evaluate(self, partition: bytes) -> PartitionPruneResult:
        """Decode a serialized partition and evaluate the filter as far as its values allow."""
        values = self._decode(partition)
        known = dict(zip(self._names, values, strict=True))
        rest = residual(self._predicate, known) if self._predicate.root != TRUE else self._predicate
        return PartitionPruneResult(values=values, rest=rest)

    def may_hold(self, meta: ManifestFileMeta) -> bool:
        """Whether a manifest may name a file of a partition that is not pruned."""
        if not self._names_partition:
            return True
        stats = meta.partition_stats
        if arity_of(stats.min_values) != len(self._names) or arity_of(stats.max_values) != len(self._names):
            return True
        low, high = self._decode(stats.min_values), self._decode(stats.max_values)
        nulls = stats.null_counts if len(stats.null_counts) == len(self._names) else (None,) * len(self._names)
        by_name = {
            name: ColumnStats(min=low[place], max=high[place], null_count=nulls[place])
            for place, name in enumerate(self._names)
        }
        return may_match(self._predicate, by_name, meta.num_added_files + meta.num_deleted_files)


class BucketPruner:
    """Prunes buckets if the filter restricts every column of the bucket key to a few values."""

    def __init__(self, ref: TableRef, predicate: BoundPredicate, load_schema: Callable[[int], TableSchema]) -> None:
        options = ref.parsed(BucketOptions)
        self._load_schema = load_schema
        self._key = _key_fields(ref, options.bucket_key)
        self._function = _sure_function(ref)
        self._keys = _pinned_keys(predicate, self._key) if self._function is not None else None
        self._buckets: dict[int, frozenset[int]] = {}
        self._same_key: dict[int, bool] = {}

    @property
    def is_active(self) -> bool:
        """Whether this pruner can prune any bucket."""
        return self._keys is not None

    def keeps(self, entry: ManifestEntry) -> bool:
        """Whether the entry's bucket may contain one of the keys, by the bucket count that the entry records."""
        buckets = self.kept_buckets(entry.total_buckets, entry.file.schema_id)
        return buckets is None or entry.bucket in buckets

    def keeps_columns(self, files: FileColumns) -> Array:
        """Return the same as ``keeps`` for each file."""
        buckets, totals, schema_ids = map(files.column, ("bucket", "total_buckets", "schema_id"))
        kept = np.zeros(len(files), bool)
        for total, schema_id in set(zip(totals.tolist(), schema_ids.tolist(), strict=True)):
            chosen = (totals == total) & (schema_ids == schema_id)
            wanted = self.kept_buckets(total, schema_id)
            kept |= chosen if wanted is None else chosen & np.isin(buckets, np.array(sorted(wanted), np.int64))
        return kept

    def kept_buckets(self, total: int, schema_id: int) -> frozenset[int] | None:
        """Return the buckets to keep, of files with this bucket count and schema; None for all."""
        if self._keys is None or total <= 0 or not self.has_same_key(schema_id):
            return None
        return self.buckets(total)

    def may_hold(self, meta: ManifestFileMeta, totals: frozenset[int]) -> bool:
        """Whether a manifest may name a file of a bucket for which ``keeps`` is true.

        Args:
            totals: all bucket counts that the table has ever had; if -1 is among them, nothing is pruned. With
                files in the buckets of another key type, it has to be.
        """
        low, high = meta.min_bucket, meta.max_bucket
        if self._keys is None or low is None or high is None or any(total <= 0 for total in totals):
            return True
        return any(low <= bucket <= high for total in totals for bucket in self.buckets(total))

    def buckets(self, total: int) -> frozenset[int]:
        """Return the buckets, out of ``total``, that contain the keys."""
        found = self._buckets.get(total)
        if found is None:
            types = [field.type for field in self._key]
            function = self._function or BucketFunction.DEFAULT
            found = frozenset(bucket_of(key, types, total, function) for key in self._keys or ())
            self._buckets[total] = found
        return found

    def has_same_key(self, schema_id: int) -> bool:
        """Whether files of a schema were bucketed with the current key types: a widened key has another hash."""
        same = self._same_key.get(schema_id)
        if same is None:
            same = self._same_key[schema_id] = is_key_of(self._load_schema(schema_id), self._key)
        return same


def is_key_of(schema: TableSchema, key: Sequence[DataField]) -> bool:
    """Whether the columns of a bucket key have the same types in a schema: then equal values are in equal buckets."""
    types = {field.id: field.type for field in schema.fields}
    return all(field.id in types and is_same_but_nulls(types[field.id], field.type) for field in key)


class StatsPruner:
    """Prunes files by the statistics in their manifest entries."""

    def __init__(self, load_schema: Callable[[int], TableSchema]) -> None:
        self._load_schema = load_schema
        self._readers: dict[tuple[str, ...], ColumnStatsReader] = {}

    def keeps(self, file: DataFileMeta, predicate: BoundPredicate) -> bool:
        """Whether the file may contain a row that passes the filter.

        Args:
            predicate: the filter, bound to the read schema, without partition columns.
        """
        if file.row_count == 0:
            return False
        if not predicate.fields:
            return predicate.root != FALSE
        return may_match(predicate, self.reader(predicate).read(file), file.row_count)

    def reader(self, predicate: BoundPredicate) -> ColumnStatsReader:
        """Return a reader of the statistics that a filter needs."""
        reader = self._readers.get(predicate.columns)
        if reader is None:
            reader = self._readers[predicate.columns] = ColumnStatsReader(self._load_schema, predicate.fields)
        return reader


def _key_fields(ref: TableRef, names: Sequence[str]) -> tuple[DataField, ...]:
    by_name = {field.name: field for field in ref.schema.fields}
    return tuple(by_name[name] for name in names) if all(name in by_name for name in names) else ()


def _sure_function(ref: TableRef) -> BucketFunction | None:
    """Return the table's bucket function; None if Penstock does not implement it."""
    text = ref.options.get("bucket-function.type", BucketFunction.DEFAULT.value).strip().lower()
    return BucketFunction(text) if text in {BucketFunction.DEFAULT, BucketFunction.MOD} else None


def _pinned_keys(predicate: BoundPredicate, key: Sequence[DataField]) -> tuple[tuple[object, ...], ...] | None:
    """Return all bucket keys that can pass the filter; None if they are not restricted or too many."""
    if not key or not all(_is_sure_key(field.type) for field in key):
        return None
    allowed: list[frozenset[object]] = []
    for field in key:
        values = allowed_values(predicate.root, field.name)
        if values is None:
            return None
        allowed.append(values)
    return tuple(product(*allowed)) if prod(map(len, allowed)) <= _MAX_KEYS else None


def _is_sure_key(data_type: DataType) -> bool:
    """Whether equal values of the type are in the same bucket, by whatever engine they were written."""
    match data_type:
        case AtomicType(root=TypeRoot.DECIMAL, precision=precision):
            # pypaimon hashes values that do not fit a slot in another way: nulls up to 2.1, all values up to 1.4.
            return (precision or 10) <= 18
        case AtomicType(root=TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ, precision=precision):
            return precision is not None and precision <= 3
        case AtomicType(root=root):
            return root not in _SEVERAL_SPELLINGS
        case _:
            return False
