"""Tables that are metadata only, put into memory by hand: what readers of metadata are tested on."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from penstock.format.layout import TableLayout
from penstock.format.manifest.entry import DataFileMeta, FileKind, ManifestEntry, ManifestFileMeta
from penstock.format.manifest.files import encode_manifest, encode_manifest_list
from penstock.format.manifest.stats import DEFAULT_STATS_MODE, ColumnStats, build_stats, partition_stats
from penstock.format.row.row import encode_row
from penstock.format.schema import TableSchema, encode_schema, highest_field_id
from penstock.format.snapshot import CommitKind, Snapshot, encode_hint, encode_snapshot
from penstock.format.tag import Tag, encode_tag
from penstock.format.types.data_types import BIGINT, STRING, DataField
from penstock.io.memory import MemoryFileIO
from penstock.table.ref import TableRef
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_STORES = itertools.count()
FIELDS = (
    DataField(id=0, name="id", type=BIGINT),
    DataField(id=1, name="name", type=STRING),
    DataField(id=2, name="dt", type=STRING),
)


@dataclass(kw_only=True)
class MemoryTable:
    """A table of the database ``shop``, in a store of its own where none is named; ``commit`` adds snapshots."""

    store_name: str = ""
    table: str = "orders"
    fields: tuple[DataField, ...] = FIELDS
    partition_keys: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        name = self.store_name or f"tables-{next(_STORES)}"
        self.file_io = MemoryFileIO(name)
        self.location = f"memory://{name}/shop.db/{self.table}"
        self.schema = TableSchema(
            id=0,
            fields=self.fields,
            highest_field_id=len(self.fields) - 1,
            partition_keys=self.partition_keys,
            options=tuple(self.options.items()),
        )
        self.put_schema(self.schema)
        self.snapshots: list[Snapshot] = []
        self._base: list[ManifestFileMeta] = []
        self._names = itertools.count()

    @property
    def ref(self) -> TableRef:
        return TableRef(name=f"shop.{self.table}", location=self.location, file_io=self.file_io, schema=self.schema)

    @property
    def store(self) -> MetadataStore:
        return MetadataStore(self.ref, sleep=lambda _: None)

    def put_schema(self, schema: TableSchema) -> None:
        """Write a schema file and take it as the table's; ids of added columns are given out."""
        highest = max(schema.highest_field_id, highest_field_id(schema.fields))
        schema = self.schema = replace(schema, highest_field_id=highest)
        self.file_io.write(TableLayout(self.location).schema_path(schema.id), encode_schema(schema))

    def file(self, name: str, stats: Mapping[str, ColumnStats] | None = None, **values: object) -> DataFileMeta:
        """A file of ten rows, statistics of the columns named."""
        columns = [(stats or {}).get(each.name) for each in self.schema.fields]
        modes = [DEFAULT_STATS_MODE] * len(columns)
        value_stats, covered = build_stats(self.schema.fields, columns, modes, dense=True)
        meta = DataFileMeta(
            file_name=f"{name}.parquet",
            file_size=1000,
            row_count=10,
            min_sequence_number=0,
            max_sequence_number=9,
            schema_id=self.schema.id,
            value_stats=value_stats,
            value_stats_cols=covered,
        )
        return replace(meta, **values)  # type: ignore[arg-type]

    def entry(
        self,
        file: DataFileMeta,
        partition: Sequence[object] = (),
        *,
        bucket: int = 0,
        total_buckets: int = -1,
        kind: FileKind = FileKind.ADD,
    ) -> ManifestEntry:
        """One change, of a partition given by its internal values."""
        types = [each.type for each in self.schema.partition_fields]
        return ManifestEntry(
            kind=kind,
            partition=encode_row(partition, types),
            bucket=bucket,
            total_buckets=total_buckets,
            file=file,
        )

    def commit(self, *entries: ManifestEntry, **values: object) -> Snapshot:
        """Write a manifest of these entries, its lists, the snapshot and the hint."""
        delta = [self._put_manifest(entries)] if entries else []
        number = len(self.snapshots) + 1
        snapshot = Snapshot(
            id=number,
            schema_id=self.schema.id,
            base_manifest_list=self._put_list(self._base),
            delta_manifest_list=self._put_list(delta),
            commit_user="tester",
            commit_identifier=number,
            commit_kind=CommitKind.APPEND,
            time_millis=1000 * number,
            total_record_count=None,
            delta_record_count=None,
        )
        snapshot = replace(snapshot, **values)  # type: ignore[arg-type]
        self._base += delta
        self.snapshots.append(snapshot)
        self.put_snapshot(snapshot)
        self.file_io.write(TableLayout(self.location).latest_hint_path, encode_hint(snapshot.id))
        return snapshot

    def put_snapshot(self, snapshot: Snapshot) -> None:
        """Write a snapshot file, and nothing else."""
        self.file_io.write(TableLayout(self.location).snapshot_path(snapshot.id), encode_snapshot(snapshot))

    def put_tag(self, name: str, snapshot: Snapshot) -> None:
        """Write a tag without a retention."""
        self.file_io.write(TableLayout(self.location).tag_path(name), encode_tag(Tag(snapshot=snapshot)))

    def expire(self, snapshot_id: int) -> None:
        """Delete one snapshot file."""
        self.file_io.delete(TableLayout(self.location).snapshot_path(snapshot_id))

    def _put_manifest(self, entries: Sequence[ManifestEntry]) -> ManifestFileMeta:
        name = f"manifest-{next(self._names)}"
        data = encode_manifest(entries)
        self.file_io.write(TableLayout(self.location).manifest_path(name), data)
        buckets = [entry.bucket for entry in entries]
        added = sum(entry.kind is FileKind.ADD for entry in entries)
        types = [each.type for each in self.schema.partition_fields]
        return ManifestFileMeta(
            file_name=name,
            file_size=len(data),
            num_added_files=added,
            num_deleted_files=len(entries) - added,
            partition_stats=partition_stats([entry.partition for entry in entries], types),
            schema_id=self.schema.id,
            min_bucket=min(buckets),
            max_bucket=max(buckets),
        )

    def _put_list(self, metas: Sequence[ManifestFileMeta]) -> str:
        name = f"manifest-list-{next(self._names)}"
        self.file_io.write(TableLayout(self.location).manifest_path(name), encode_manifest_list(metas))
        return name
