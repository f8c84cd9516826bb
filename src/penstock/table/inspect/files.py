"""The system table of files, made from manifests by columns, some thousand entries at a time.

What the columns do not give for sure, such as statistics of nested types or of long decimals, is decoded
file by file.

Source:
    Paimon ``core:table/system/FilesTable.java``; design/0093.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.format.layout import format_of
from penstock.format.manifest.entry import FileSource
from penstock.format.text.partitions import value_text
from penstock.format.types.data_types import INTEGERS, AtomicType, TypeRoot
from penstock.table.read.files import sorted_codes
from penstock.table.read.live import load_live_files
from penstock.table.read.prune import decode_file_stats, held_fields
from penstock.table.read.prune_columns import StatsRows, read_null_counts
from penstock.table.ref import FileLocator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from penstock.datafile.types import ArrowAny
    from penstock.format.avro.columns import Array, Cursor
    from penstock.format.manifest.columns import GroupDetails, ManifestColumns
    from penstock.format.manifest.entry import ManifestEntry, StatsLayout
    from penstock.format.snapshot import Snapshot
    from penstock.format.types.data_types import DataField
    from penstock.table.read.files import FileColumns
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore

_TEXT: Final[pa.DataType] = pa.string()
_LONG: Final[pa.DataType] = pa.int64()
_INT: Final[pa.DataType] = pa.int32()
FILES: Final = pa.schema(
    {
        "partition": _TEXT,
        "bucket": _INT,
        "file_path": _TEXT,
        "file_format": _TEXT,
        "schema_id": _LONG,
        "level": _INT,
        "record_count": _LONG,
        "file_size_in_bytes": _LONG,
        "min_key": _TEXT,
        "max_key": _TEXT,
        "null_value_counts": _TEXT,
        "min_value_stats": _TEXT,
        "max_value_stats": _TEXT,
        "min_sequence_number": _LONG,
        "max_sequence_number": _LONG,
        "creation_time": pa.timestamp("ms"),
        "deleteRowCount": _LONG,
        "file_source": _TEXT,
    }
)
_MAX_TEXT_BYTES: Final = 1 << 31
_COLUMN_BYTES: Final = 256  # of a name and a bound that is shown for it; mostly a tenth of that


def load_files(
    ref: TableRef, store: MetadataStore, snapshot: Snapshot, limit: int | None, text: Callable[[bytes], str | None]
) -> pa.Table:
    """Return a row for each live file, partition by partition, in the order of the manifests.

    Args:
        limit: number of first rows; None for all.
        text: of a serialized partition.
    """
    files = load_live_files(store, snapshot)
    order = sorted_codes(files.partitions()[1])[0][:limit]
    rows = _FileRows(ref, store, text)
    # A column of texts is sorted as one array, which holds at most 2 GB.
    most = max(_MAX_TEXT_BYTES // (_COLUMN_BYTES * len(ref.schema.fields)), 1)
    parts = [rows.of_files(files, order[start : start + most]) for start in range(0, len(order), most)]
    return pa.concat_tables([FILES.empty_table(), *parts])


class _FileRows:
    """Makes rows of entries."""

    def __init__(self, ref: TableRef, store: MetadataStore, text: Callable[[bytes], str | None]) -> None:
        self._store = store
        self._text = text
        self._locator = FileLocator.of(ref)

    def of_files(self, files: FileColumns, order: Array) -> pa.Table:
        """Return the rows of some files, whose places among the files are ``order``."""
        rank = np.full(len(files), -1)
        rank[order] = np.arange(len(order))
        files, rank = files.where(rank >= 0), rank[rank >= 0]
        batches: list[pa.RecordBatch] = []
        ranks: list[Array] = []
        at = 0
        for part, numbers in files.by_part():
            for chosen, batch in self.of_part(part, numbers):
                batches.append(batch)
                ranks.append(rank[at + np.searchsorted(numbers, chosen)])
            at += len(numbers)
        places = np.concatenate(ranks)
        if (places[1:] > places[:-1]).all():
            return pa.Table.from_batches(batches)
        indices = _integers(np.argsort(places))
        # One after another, as these texts take more memory than all else.
        columns = pa.Table.from_batches(batches).columns
        del batches
        for number, column in enumerate(columns):
            columns[number] = column.take(indices)
        return pa.Table.from_arrays(columns, schema=FILES)

    def of_part(self, part: ManifestColumns, rows: Array) -> Iterator[tuple[Array, pa.RecordBatch]]:
        """Yield numbers of entries of a manifest, ascending, and their rows; each of ``rows`` once."""
        undecided = [rows]
        for group in part.details(rows):
            undecided = undecided if undecided[0] is not rows else []
            layouts = part.layout[group.rows]
            for code in np.unique(layouts).tolist():
                chosen = np.flatnonzero(layouts == code)
                numbers = group.rows[chosen]
                statistics = self._statistics(part.layouts[code], group.statistics.some(chosen))
                is_sure = statistics.is_good & ~part.is_external[numbers]
                batch = self._batch(part, group, chosen, statistics)
                yield numbers[is_sure], batch if is_sure.all() else batch.filter(_booleans(is_sure))
                undecided.append(numbers[~is_sure])
        for numbers in undecided:
            if len(numbers):
                yield numbers, self._batch_of(part.entries(numbers))

    def _batch(
        self, part: ManifestColumns, group: GroupDetails, chosen: Array, statistics: _Statistics
    ) -> pa.RecordBatch:
        rows, count = group.rows[chosen], len(chosen)
        partitions, partition_of = np.unique(part.partition[rows], return_inverse=True)
        buckets, bucket_of = np.unique(part.bucket[rows], return_inverse=True)
        pairs, pair_of = np.unique(partition_of * len(buckets) + bucket_of, return_inverse=True)
        data = [part.partitions[code] for code in partitions.tolist()]
        directories = [
            self._locator.directory(data[pair // len(buckets)], int(buckets[pair % len(buckets)]))
            for pair in pairs.tolist()
        ]
        names = pa.array(group.names[chosen].tolist(), _TEXT)
        details = {name: column[chosen] for name, column in group.columns.items()}

        def nullable(name: str) -> ArrowAny:
            if name not in details:
                return pa.nulls(count, pa.int64())
            values, known = details[name].tolist(), details[f"has_{name}"].tolist()
            return pa.array([value if is_known else None for value, is_known in zip(values, known, strict=True)], _LONG)

        columns: tuple[ArrowAny, ...] = (
            _chosen([self._text(each) for each in data], partition_of),
            part.bucket[rows],
            _joined([_chosen(directories, pair_of), "/", names], count),
            _formats(names),
            part.schema_id[rows],
            part.level[rows],
            part.row_count[rows],
            part.file_size[rows],
            pa.repeat("[]", count),
            pa.repeat("[]", count),
            *statistics.texts,
            details["min_sequence_number"],
            details["max_sequence_number"],
            nullable("creation_millis"),
            nullable("delete_row_count"),
            pa.array([source.name for source in FileSource], _TEXT).take(nullable("file_source")),
        )
        arrays = [
            (each if isinstance(each, pa.Array) else _integers(each)).cast(field.type)
            for field, each in zip(FILES, columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=FILES)

    def _statistics(self, layout: StatsLayout, cursor: Cursor) -> _Statistics:
        """Return the texts of the statistics of some files; those that were not read are not good."""
        count = len(cursor.positions)
        fields = self._store.load_schema(layout.schema_id).fields
        held = {field.name: field for field in held_fields(fields, layout.write_cols)}
        names = tuple(held) if layout.value_stats_cols is None else layout.value_stats_cols
        covered = [held[field.name] for field in fields if field.name in names and field.name in held]
        low, high = (StatsRows(cursor, len(names)) for _ in range(2))
        places = [names.index(field.name) for field in covered]
        nulls = read_null_counts(cursor, len(names), max(places, default=-1))
        texts: list[list[str | ArrowAny]] = [[], [], []]
        for field, place in zip(covered, places, strict=True):
            for parts, text in zip(
                texts,
                (
                    _integer_texts(*nulls[place], "None"),
                    *(_value_texts(field, *row.values(place, field.type)) for row in (low, high)),
                ),
                strict=True,
            ):
                parts += [", " if parts else "", f"{field.name}=", text]
        is_good = cursor.is_good & low.is_good & high.is_good
        return _Statistics([_joined(["{", *parts, "}"], count) for parts in texts], is_good)

    def _batch_of(self, entries: Sequence[ManifestEntry]) -> pa.RecordBatch:
        rows = list(map(self._row, entries))
        columns = [pa.array([row[place] for row in rows], field.type) for place, field in enumerate(FILES)]
        return pa.RecordBatch.from_arrays(columns, schema=FILES)

    def _row(self, entry: ManifestEntry) -> tuple[object, ...]:
        file = entry.file
        fields = self._store.load_schema(file.schema_id).fields
        stats = dict(decode_file_stats(file, fields))  # each column decoded once
        covered = [field for field in fields if field.name in stats]
        return (
            self._text(entry.partition),
            entry.bucket,
            self._locator.recorded_path(entry.partition, entry.bucket, file),
            format_of(file.file_name).value,
            file.schema_id,
            file.level,
            file.row_count,
            file.file_size,
            "[]",
            "[]",
            _map_text({field.name: str(stats[field.name].null_count) for field in covered}),
            _map_text({field.name: value_text(field, stats[field.name].min) for field in covered}),
            _map_text({field.name: value_text(field, stats[field.name].max) for field in covered}),
            file.min_sequence_number,
            file.max_sequence_number,
            file.creation_millis,
            file.delete_row_count,
            None if file.file_source is None else file.file_source.name,
        )


class _Statistics(NamedTuple):
    """Texts of null counts, minima and maxima of files, and for which files they are sure."""

    texts: Sequence[ArrowAny]
    is_good: Array


def _map_text(items: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{name}={text}" for name, text in items.items()) + "}"


def _chosen(values: Sequence[object], indices: Array) -> ArrowAny:
    return pa.array(values, _TEXT).take(_integers(indices))


def _joined(parts: Iterable[str | ArrowAny], count: int) -> ArrowAny:
    """Return texts one after another, for each file; an array of one value is that of all files."""
    merged: list[ArrowAny] = []
    for part in parts:
        text = part[0].as_py() if isinstance(part, pa.Array) and len(part) == 1 else part
        if isinstance(text, str) and merged and isinstance(merged[-1], str):
            merged[-1] += text
        else:
            merged.append(text)
    if len(merged) == 1:
        return pa.repeat(merged[0], count)
    return pc.binary_join_element_wise(*merged, "")


def _formats(names: ArrowAny) -> ArrowAny:
    """Return the formats of files, which the part of a name from its first full stop decides."""
    suffixes: ArrowAny = pc.replace_substring_regex(names, r"^[^.]*", "", max_replacements=1).dictionary_encode()
    return pa.array([format_of(each).value for each in suffixes.dictionary.to_pylist()], _TEXT).take(suffixes.indices)


def _value_texts(field: DataField, values: Array, present: Array) -> ArrowAny:
    data_type = field.type
    if not isinstance(data_type, AtomicType) or not present.any():
        return pa.array(["null"], _TEXT)
    if data_type.root in INTEGERS:
        return _integer_texts(values, present, "null")
    if values.dtype.kind == "S":
        texts = pa.array(values.tolist(), _TEXT)
    else:
        # By their bits, as there are two zeros.
        words = values.view(np.int64) if values.dtype == np.float64 else values
        distinct, indices = np.unique(words, return_inverse=True)
        texts = _chosen(
            [value_text(field, _internal(data_type, each)) for each in distinct.view(values.dtype).tolist()], indices
        )
    return _with_nulls(texts, present, "null")


def _internal(data_type: AtomicType, value: Any) -> object:  # noqa: ANN401 - depends on the type
    return Decimal(value).scaleb(-(data_type.scale or 0)) if data_type.root is TypeRoot.DECIMAL else value


def _integer_texts(values: Array, present: Array, missing: str) -> ArrowAny:
    if len(values) > 1 and present.all() and (values == values[0]).all():
        values, present = values[:1], present[:1]
    return _with_nulls(_integers(values).cast(_TEXT), present, missing)


def _with_nulls(texts: ArrowAny, present: Array, missing: str) -> ArrowAny:
    if present.all():
        return texts
    count = max(len(texts), len(present))
    texts = texts if len(texts) == count else pa.repeat(texts[0], count)
    return pc.if_else(_booleans(np.broadcast_to(present, count)), texts, missing)


# Not by ``pa.array``, which imports pandas where it has to infer a type.
def _integers(values: Array) -> ArrowAny:
    data = np.ascontiguousarray(values, np.int64)
    return pa.Array.from_buffers(pa.int64(), len(data), [None, pa.py_buffer(data.data)])


def _booleans(values: Array) -> ArrowAny:
    return pa.array(values.tolist(), pa.bool_())
