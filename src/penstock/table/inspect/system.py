"""System tables: a table's metadata as rows, with the reference's column names.

Instants (``commit_time``, ``update_time``) are timestamps in UTC. Values that the format stores as a writer's wall
clock (``creation_time``, ``last_update_time``, ``create_time``) are timestamps without a zone.

A partition is ``dt=2026-01-01/hr=5`` in ``partitions``, as in the reference since 1.4, and in ``compaction``;
``files``, ``buckets`` and ``manifests`` show its values alone, as the reference does, unless labels are asked for.

``compaction`` is Penstock's own. ``audit_log`` and ``ro`` return the rows of the table itself: an append table has
insertions only, and its files need no merging, so ``ro`` is the table.

Source:
    Paimon ``core:table/system/*.java``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import pyarrow as pa

from penstock.clocks import to_wall_clock
from penstock.errors import NotFoundError, UnsupportedFeatureError, warn_damaged, warn_left_out
from penstock.format.row.row import arity_of, decode_row
from penstock.format.text.json import format_json
from penstock.format.text.partitions import value_text
from penstock.format.types.text import encode_field
from penstock.options import ReadOptions, check_reads
from penstock.printable import mask_options
from penstock.table.compact.debt import measure_debt
from penstock.table.inspect.files import FILES, load_files
from penstock.table.read.batches import read_arrow
from penstock.table.read.branch import load_branches
from penstock.table.read.files import FileColumns, by_code
from penstock.table.read.incremental import reads_changes
from penstock.table.read.live import load_live_files
from penstock.table.read.query import plan_query
from penstock.table.read.travel import POSITION_KEYS, resolve_read
from penstock.table.ref import FileLocator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from decimal import Decimal

    from penstock.format.snapshot import Snapshot
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore

    SystemTable: TypeAlias = Callable[[TableRef, MetadataStore, Snapshot | None], pa.Table]

AUDIT_LOG: Final = "audit_log"
ROW_TABLES: Final = (AUDIT_LOG, "ro")
ROW_KIND: Final = "rowkind"
"""Column of ``audit_log`` before those of the table."""
INSERTION: Final = "+I"
"""Its value for a row that was added."""


def load_row_table(name: str, ref: TableRef, store: MetadataStore, snapshot: Snapshot | None = None) -> pa.Table:
    """Read a system table of ``ROW_TABLES`` into memory.

    Args:
        snapshot: to read; None for the one that the options select, by default the latest.
    """
    if snapshot is not None:
        ref = replace(ref, dynamic_options=(*ref.dynamic_options, ("scan.snapshot-id", str(snapshot.id))))
    query = plan_query(ref, store)
    rows = read_arrow(query.ref, store, query.plan)
    return rows if name != AUDIT_LOG else with_row_kind(rows)


def with_row_kind(rows: pa.Table) -> pa.Table:
    """Return rows with the column ``rowkind`` before the others."""
    return rows.add_column(0, ROW_KIND, pa.repeat(pa.scalar(INSERTION), rows.num_rows))


_TEXT: Final[pa.DataType] = pa.string()
_LONG: Final[pa.DataType] = pa.int64()
_INT: Final[pa.DataType] = pa.int32()
_INSTANT: Final[pa.DataType] = pa.timestamp("ms", tz="UTC")
_WALL_CLOCK: Final[pa.DataType] = pa.timestamp("ms")

_SNAPSHOTS: Final = pa.schema(
    {
        "snapshot_id": _LONG,
        "schema_id": _LONG,
        "commit_user": _TEXT,
        "commit_identifier": _LONG,
        "commit_kind": _TEXT,
        "commit_time": _INSTANT,
        "base_manifest_list": _TEXT,
        "delta_manifest_list": _TEXT,
        "changelog_manifest_list": _TEXT,
        "total_record_count": _LONG,
        "delta_record_count": _LONG,
        "changelog_record_count": _LONG,
        "watermark": _LONG,
    }
)
_SCHEMAS: Final = pa.schema(
    {
        "schema_id": _LONG,
        "fields": _TEXT,
        "partition_keys": _TEXT,
        "primary_keys": _TEXT,
        "options": _TEXT,
        "comment": _TEXT,
        "update_time": _INSTANT,
    }
)
_OPTIONS: Final = pa.schema({"key": _TEXT, "value": _TEXT})
_COUNTS: Final = {
    "record_count": _LONG,
    "file_size_in_bytes": _LONG,
    "file_count": _LONG,
    "last_update_time": _WALL_CLOCK,
}
_PARTITIONS: Final = pa.schema({"partition": _TEXT, **_COUNTS})
_BUCKETS: Final = pa.schema({"partition": _TEXT, "bucket": _INT, **_COUNTS})
_MANIFESTS: Final = pa.schema(
    {
        "file_name": _TEXT,
        "file_size": _LONG,
        "num_added_files": _LONG,
        "num_deleted_files": _LONG,
        "schema_id": _LONG,
        "min_partition_stats": _TEXT,
        "max_partition_stats": _TEXT,
    }
)
_TAGS: Final = pa.schema(
    {
        "tag_name": _TEXT,
        "snapshot_id": _LONG,
        "schema_id": _LONG,
        "commit_time": _INSTANT,
        "record_count": _LONG,
        "create_time": _WALL_CLOCK,
        "time_retained": _TEXT,
    }
)
_BRANCHES: Final = pa.schema({"branch_name": _TEXT, "create_time": _WALL_CLOCK})
_COMPACTION: Final = pa.schema(
    {
        "partition": _TEXT,
        "file_count": _LONG,
        "small_file_count": _LONG,
        "small_file_bytes": _LONG,
        "waiting_file_count": _LONG,
        "waiting_bytes": _LONG,
        "bucket_count": _LONG,
        "max_bucket_file_count": _LONG,
        "last_compaction_snapshot_id": _LONG,
    }
)
_CONSUMERS: Final = pa.schema({"consumer_id": _TEXT, "next_snapshot_id": _LONG})


def load_system_table(
    name: str,
    ref: TableRef,
    store: MetadataStore,
    snapshot: Snapshot | None = None,
    *,
    limit: int | None = None,
    partition_labels: bool = False,
) -> pa.Table:
    """Load the system table of that name.

    Args:
        partition_labels: write partitions as ``partitions`` does in ``files``, ``buckets`` and ``manifests``, too.
        limit: number of newest snapshots, or of first rows of other tables; None for all.
        snapshot: for files, partitions, buckets, manifests and compaction; None for the one that the options select, by
            default the latest. The other system tables always show everything.
    """
    table = SYSTEM_TABLES.get(name)
    if name in ROW_TABLES:
        return load_row_table(name, ref, store, snapshot)
    if table is None:
        known = ", ".join((*SYSTEM_TABLES, *ROW_TABLES))
        raise NotFoundError(f"table {ref.name}: no system table '${name}'; there are {known}")
    described = _snapshot_of_use(name, ref, store) if snapshot is None else snapshot
    match name:
        case "snapshots":
            return _snapshots(ref, store, described, limit)
        case "files":  # the statistics of each cost time
            return _files(ref, store, described, limit, labels=partition_labels)
        case "buckets" | "manifests":
            load = _buckets if name == "buckets" else _manifests
            return load(ref, store, described, labels=partition_labels).slice(0, limit)
        case _:
            return table(ref, store, described).slice(0, limit)


def _snapshot_of_use(name: str, ref: TableRef, store: MetadataStore) -> Snapshot | None:
    positions = POSITION_KEYS if name in _SNAPSHOT_TABLES else POSITION_KEYS[1:]
    given = [key for key in positions if key in dict(ref.dynamic_options)]
    if not given:
        # The others can be read while the latest snapshot is damaged, and help to repair it.
        return store.load_latest_snapshot() if name in _SNAPSHOT_TABLES else None
    if name not in _SNAPSHOT_TABLES:
        raise UnsupportedFeatureError(f"table {ref.name}${name} shows all there is: leave '{given[0]}' out")
    check_reads(ref.options, ref.name)
    options = ref.parsed(ReadOptions)
    point = None if reads_changes(options, ref.name) else resolve_read(store, options)
    if point is None or point.created_from_millis is not None:
        raise UnsupportedFeatureError(
            f"table {ref.name}${name} shows one snapshot, which '{given[0]}' does not name: give scan.snapshot-id, "
            "scan.tag-name or scan.timestamp-millis"
        )
    return point.snapshot


def _snapshots(_ref: TableRef, store: MetadataStore, _snapshot: Snapshot | None, limit: int | None = None) -> pa.Table:
    damaged: list[int] = []
    ids = store.list_snapshot_ids()
    ids = ids if limit is None else ids[max(0, len(ids) - limit) :]
    rows = [
        (
            snapshot.id,
            snapshot.schema_id,
            snapshot.commit_user,
            snapshot.commit_identifier,
            snapshot.commit_kind.value,
            snapshot.time_millis,
            snapshot.base_manifest_list,
            snapshot.delta_manifest_list,
            snapshot.changelog_manifest_list,
            snapshot.total_record_count,
            snapshot.delta_record_count,
            snapshot.changelog_record_count,
            snapshot.watermark,
        )
        for snapshot in store.find_snapshots(ids, on_damaged=lambda each, _error: damaged.append(each))
    ]
    warn_damaged(store.name, damaged)
    return _table(rows, _SNAPSHOTS)


def _schemas(_ref: TableRef, store: MetadataStore, _snapshot: Snapshot | None) -> pa.Table:
    rows = [
        (
            schema.id,
            format_json([encode_field(field) for field in schema.fields]),
            format_json(schema.partition_keys),
            format_json(schema.primary_keys),
            format_json(mask_options(schema.options)),
            schema.comment,
            schema.time_millis,
        )
        for schema in store.find_schemas(partial(warn_left_out, store.name, "schema"))
    ]
    return _table(rows, _SCHEMAS)


def _options(ref: TableRef, _store: MetadataStore, _snapshot: Snapshot | None) -> pa.Table:
    return _table(list(mask_options(ref.schema.options).items()), _OPTIONS)


def _files(
    ref: TableRef, store: MetadataStore, snapshot: Snapshot | None, limit: int | None = None, *, labels: bool = False
) -> pa.Table:
    if snapshot is None:
        return FILES.empty_table()
    return load_files(ref, store, snapshot, limit, _partition_texts(ref, labels=labels))


def _partitions(ref: TableRef, store: MetadataStore, snapshot: Snapshot | None) -> pa.Table:
    locator = FileLocator.of(ref)
    rows = [
        (locator.partition_label(partition), *file_counts(files))
        for partition, files in live_partitions(store, snapshot)
    ]
    return _table(rows, _PARTITIONS)


def _buckets(ref: TableRef, store: MetadataStore, snapshot: Snapshot | None, *, labels: bool = False) -> pa.Table:
    text = _partition_texts(ref, labels=labels)
    rows = []
    for partition, files in live_partitions(store, snapshot):
        buckets, numbers = np.unique(files.column("bucket"), return_inverse=True)
        rows += [
            (text(partition), int(buckets[number]), *file_counts(part))
            for number, part in by_code(files, numbers, are_all_used=False)
        ]
    return _table(rows, _BUCKETS)


def live_partitions(store: MetadataStore, snapshot: Snapshot | None) -> Iterator[tuple[bytes, FileColumns]]:
    """Yield the serialized partitions of a snapshot, in order of first occurrence, and their live files."""
    if snapshot is not None:
        files = load_live_files(store, snapshot)
        data, codes = files.partitions()
        for code, part in by_code(files, codes, are_all_used=False):
            yield data[code], part


def file_counts(files: FileColumns) -> tuple[int, int, int, int | None]:
    """Return rows, bytes and number of files, and the latest creation time of one; None if none has one."""
    latest: int | None = int(files.column("created_millis").max(initial=0))
    if not latest:  # 0 in files without a creation time
        created = (entry.file.creation_millis for entry in files)
        latest = max((each for each in created if each is not None), default=None)
    return files.total("row_count"), files.total("file_size"), len(files), latest


def _manifests(ref: TableRef, store: MetadataStore, snapshot: Snapshot | None, *, labels: bool = False) -> pa.Table:
    text = _partition_texts(ref, labels=labels)
    metas = () if snapshot is None else store.load_manifests(snapshot)
    rows = [
        (
            meta.file_name,
            meta.file_size,
            meta.num_added_files,
            meta.num_deleted_files,
            meta.schema_id,
            text(meta.partition_stats.min_values),
            text(meta.partition_stats.max_values),
        )
        for meta in metas
    ]
    return _table(rows, _MANIFESTS)


def _branches(ref: TableRef, _store: MetadataStore, _snapshot: Snapshot | None) -> pa.Table:
    rows = [(each.name, to_wall_clock(each.created_millis)) for each in load_branches(ref)]
    return _table(rows, _BRANCHES)


def _tags(_ref: TableRef, store: MetadataStore, _snapshot: Snapshot | None) -> pa.Table:
    rows = [
        (
            name,
            tag.snapshot.id,
            tag.snapshot.schema_id,
            tag.snapshot.time_millis,
            tag.snapshot.total_record_count,
            None if tag.create_time is None else tag.create_time // 1_000_000,
            None if tag.retained_seconds is None else duration_text(tag.retained_seconds),
        )
        for name, tag in store.find_tags(partial(warn_left_out, store.name, "tag"))
    ]
    return _table(rows, _TAGS)


def _consumers(_ref: TableRef, store: MetadataStore, _snapshot: Snapshot | None) -> pa.Table:
    return _table(list(store.find_consumers(partial(warn_left_out, store.name, "consumer"))), _CONSUMERS)


def _compaction(ref: TableRef, store: MetadataStore, snapshot: Snapshot | None) -> pa.Table:
    locator = FileLocator.of(ref)
    rows = [
        (
            locator.partition_label(debt.data),
            debt.files,
            debt.small_files,
            debt.small_bytes,
            debt.waiting_files,
            debt.waiting_bytes,
            debt.buckets,
            debt.most_files,
            debt.last_compaction,
        )
        for debt in measure_debt(ref, store, snapshot)
    ]
    return _table(rows, _COMPACTION)


_SNAPSHOT_TABLES: Final = frozenset({"files", "partitions", "buckets", "manifests", "compaction"})

SYSTEM_TABLES: Final[Mapping[str, SystemTable]] = {
    "snapshots": _snapshots,
    "schemas": _schemas,
    "options": _options,
    "files": _files,
    "partitions": _partitions,
    "buckets": _buckets,
    "manifests": _manifests,
    "tags": _tags,
    "branches": _branches,
    "consumers": _consumers,
    "compaction": _compaction,
}


def duration_text(seconds: Decimal) -> str:
    """ISO 8601 text of a duration as Java prints it: ``PT36H``, ``PT1H0.5S``."""
    whole = int(seconds)
    hours, minutes, rest = whole // 3600, whole % 3600 // 60, seconds - whole // 60 * 60
    text = f"{rest:f}".rstrip("0").rstrip(".") if "." in f"{rest:f}" else f"{rest:f}"
    parts = [f"{hours}H" if hours else "", f"{minutes}M" if minutes else "", f"{text}S" if rest else ""]
    return "PT" + ("".join(parts) or "0S")


def _partition_texts(ref: TableRef, *, labels: bool) -> Callable[[bytes], str | None]:
    """Return a function from the bytes of a partition to its text; None for those of another number of keys."""
    fields = ref.schema.partition_fields
    label = FileLocator.of(ref).partition_label

    def text(row: bytes) -> str | None:
        if arity_of(row) != len(fields):
            return None
        if labels:
            return label(row)
        values = decode_row(row, [field.type for field in fields])
        return "{" + ", ".join(value_text(field, value) for field, value in zip(fields, values, strict=True)) + "}"

    return text


def _table(rows: Iterable[Sequence[object]], schema: pa.Schema) -> pa.Table:
    rows = list(rows)
    columns = [pa.array([row[place] for row in rows], field.type) for place, field in enumerate(schema)]
    return pa.Table.from_arrays(columns, schema=schema)
