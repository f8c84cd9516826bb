"""Our own side of the comparison, in the words that the engines use: locations and canonical rows."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.interop.canonical import rows_of, sort_rows, table_of
from tests.interop.engines import Row

import penstock
from penstock.catalog.changes import SchemaChange
from penstock.datafile.types import to_arrow_schema
from penstock.format.snapshot import CommitKind
from penstock.predicate.parse import parse_filter
from penstock.table.actions.changes import open_committer
from penstock.table.commit.committer import new_commit_user
from penstock.table.commit.delta import CommitRequest
from penstock.table.read.batches import TableReader
from penstock.table.read.split import DataSplit
from penstock.table.store import MetadataStore
from penstock.table.stream.limits import NO_LIMITS, ReadLimits
from penstock.table.stream.offset import UNRESOLVED, decode_offset, encode_offset
from penstock.table.stream.scanner import StreamScanner
from penstock.table.write.writer import write_arrow


def catalog_of(location: Path) -> penstock.Catalog:
    """Return the catalog that the table at ``location`` is in."""
    return penstock.Catalog(location.parent.parent.as_uri())


def name_of(location: Path) -> str:
    """Return ``db.table``."""
    return f"{location.parent.stem}.{location.name}"


def create(
    location: Path, columns: str, *, partition_by: Sequence[str] = (), options: Mapping[str, str] | None = None
) -> Path:
    """Create the table and its database, and return the location."""
    catalog = catalog_of(location)
    catalog.create_database(location.parent.stem, if_not_exists=True)
    catalog.create_table(name_of(location), columns, partition_by=list(partition_by), options=dict(options or {}))
    return location


def load(location: Path) -> penstock.Table:
    """Return the table with what is on disk now."""
    return catalog_of(location).load_table(name_of(location))


def append(location: Path, rows: Sequence[Row], options: Mapping[str, str] | None = None) -> None:
    """Append canonical rows in one commit, with options of this use."""
    table = load(location).with_options(options or {})
    table.append(table_of(list(rows), table.arrow_schema))


def overwrite(location: Path, rows: Sequence[Row], partition: Mapping[str, Any]) -> None:
    """Replace a partition, or everything for ``{}``, in one commit."""
    table = load(location)
    table.overwrite(table_of(list(rows), table.arrow_schema), partition=dict(partition))


def alter(location: Path, changes: Sequence[SchemaChange]) -> None:
    """Change the schema."""
    if changes:
        catalog_of(location).alter_table(name_of(location), *changes)


def read(location: Path, **how: Any) -> list[Row]:
    """Return the canonical rows in canonical order; ``how`` goes to ``to_arrow``."""
    return sort_rows(rows_of(load(location).to_arrow(**how)))


def append_until(location: Path, rows: Sequence[Row], watermark: int | None) -> None:
    """Append canonical rows in one commit with a watermark in ms, as a stream does; without rows an empty one."""
    table = load(location)
    ref = table._ref
    committer = open_committer(ref)
    messages = write_arrow(ref, table_of(list(rows), table.arrow_schema)) if rows else ()
    committer.commit(
        CommitRequest(
            commit_user=new_commit_user(),
            kind=CommitKind.APPEND,
            messages=messages,
            watermark=watermark,
            commit_empty=True,
        )
    )


class Stream:
    """Our stream read, asked and answering as the engines' ``follow``."""

    def __init__(self, location: Path, options: Mapping[str, str] | None = None, filter: str | None = None) -> None:
        self.ref = load(location)._ref.with_options(dict(options or {}))
        self.store = MetadataStore(self.ref)
        predicate = None if filter is None else parse_filter(filter)
        self.follower = StreamScanner(self.ref, self.store, predicate=predicate)
        self.reader = TableReader(self.ref, self.store)
        self.offset = UNRESOLVED

    def follow(self, limits: ReadLimits = NO_LIMITS) -> dict[str, Any]:
        """Return what comes until there is nothing more for now, a plan a snapshot.

        Args:
            limits: of the micro-batches, of which one may give a part of a plan only.
        """
        plans: dict[int, dict[str, Any]] = {}
        while True:
            end = self.follower.advance(self.offset, limits)
            # As a task does after a restart: by what the checkpoint keeps, with nothing in memory.
            start, self.offset = self.offset, decode_offset(encode_offset(end))
            for task in self.follower.plan_range(start, self.offset):
                for split in task.splits:
                    plan = plans.setdefault(split.snapshot_id, self._plan(split.snapshot_id))
                    plan["splits"].append(self._split(split))
            if start == self.offset:
                return {"plans": [plans[each] for each in sorted(plans)], "ended": self.offset.ended}

    def _plan(self, snapshot_id: int) -> dict[str, Any]:
        return {"watermark": self.store.load_snapshot(snapshot_id).watermark, "splits": []}

    def _split(self, split: DataSplit) -> dict[str, Any]:
        batches = list(self.reader.read_split(split))
        partition = pa.table(
            {
                field.name: pa.array([value], field.type)
                for field, value in zip(to_arrow_schema(self.ref.schema.partition_fields), split.values, strict=True)
            }
        )
        return {
            "snapshot": split.snapshot_id,
            "partition": rows_of(partition)[0] if partition.num_columns else {},
            "bucket": split.bucket,
            "rows": rows_of(pa.Table.from_batches(batches, schema=self.reader.schema)),
        }
