"""Every golden table reads back as Java Paimon 1.4.2 read it: each snapshot, each tag, and where each row lies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest
from tests.interop.canonical import NANOS, dumps, rows_of, sort_maps, sort_rows

from penstock.datafile.filter import filter_batch
from penstock.io.local import LocalFileIO
from penstock.predicate.bind import bind
from penstock.predicate.tree import TimestampLiteral, col
from penstock.table.location import TableLocation
from penstock.table.read.batches import TableReader, read_arrow
from penstock.table.read.scan import plan_scan
from penstock.table.read.split import plan_splits
from penstock.table.read.travel import at_snapshot, resolve_snapshot
from penstock.table.ref import TableRef
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from penstock.format.snapshot import Snapshot
    from penstock.predicate.tree import Predicate

DATA: Final = Path(__file__).parent / "data"
LOCATIONS: Final = {path.name: path for path in sorted(DATA.glob("warehouse/*.db/*"))}
STATES: Final = sorted(path for path in DATA.glob("expected/*.jsonl") if ".buckets" not in path.name)
MANY_FILTERS: Final = 60
BUCKETS: Final = sorted(DATA.glob("expected/*.buckets.jsonl"))

# Java 1.4.2 does not read these back as they were written, so here stands what is in the files. INT64 nanoseconds
# before 1970 lose their fraction of a second there; ORC timestamps of the year 1 move by two days between calendars.
_LOST_FRACTION: Final = {"c_ts9": {"1969-12-31T23:59:59.000000000": "1969-12-31T23:59:59.999999000"}}
JAVA_MISREADS: Final[dict[str, dict[str, dict[str, str]]]] = {
    "p14_types_parquet": _LOST_FRACTION,
    "p21_types_parquet": _LOST_FRACTION,
    "types_orc": {
        "c_ts0": {"0000-12-30T00:00:00.000000000": "0001-01-01T00:00:00.000000000"},
        "c_ts3": {"0000-12-30T00:00:00.001000000": "0001-01-01T00:00:00.001000000"},
        "c_ts6": {"0000-12-30T00:00:00.000001000": "0001-01-01T00:00:00.000001000"},
        "c_ltz3": {"0000-12-30T00:00:00.001000000Z": "0001-01-01T00:00:00.001000000Z"},
        "c_ltz6": {"0000-12-30T00:00:00.000001000Z": "0001-01-01T00:00:00.000001000Z"},
    },
}


def as_written(table: str, row: dict[str, Any]) -> dict[str, Any]:
    stored = JAVA_MISREADS.get(table, {})
    return {name: stored[name].get(value, value) if name in stored else value for name, value in row.items()}


def open_table(name: str) -> tuple[MetadataStore, TableRef]:
    file_io, location = LocalFileIO(), str(LOCATIONS[name])
    store = MetadataStore(TableLocation(file_io=file_io, location=location, name=name))
    return store, TableRef(name=name, location=location, file_io=file_io, schema=store.load_latest_schema())


def read_state(store: MetadataStore, ref: TableRef, snapshot: Snapshot | None) -> pa.Table:
    then = ref if snapshot is None else at_snapshot(ref, store, snapshot)
    return read_arrow(then, store, plan_scan(store, then, snapshot))


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def test_no_table_lacks_its_expected_rows() -> None:
    assert len(STATES) > 90
    assert {path.stem for path in STATES} <= LOCATIONS.keys()


@pytest.mark.parametrize("path", STATES, ids=lambda path: path.stem)
def test_every_snapshot_and_tag_reads_as_java_reads_it(path: Path) -> None:
    store, ref = open_table(path.stem)
    for state in lines(path):
        tag = state.get("tag")
        snapshot = resolve_snapshot(store, snapshot_id=state.get("snapshot"), tag=tag)
        assert (snapshot and snapshot.commit_kind) == state.get("commitKind") or tag is not None
        found = rows_of(read_state(store, ref, snapshot))
        expected = [as_written(path.stem, row) for row in state["rows"]]
        assert sort_rows(found) == sort_rows(expected), f"{tag or snapshot}"


@pytest.mark.parametrize("path", BUCKETS, ids=lambda path: path.name.partition(".")[0])
def test_every_row_lies_in_the_split_where_java_finds_it(path: Path) -> None:
    name = path.name.partition(".")[0]
    store, ref = open_table(name)
    snapshot = store.load_latest_snapshot()
    assert snapshot is not None
    ref = at_snapshot(ref, store, snapshot)
    reader = TableReader(ref, store)
    found = []
    for split in plan_splits(ref, plan_scan(store, ref, snapshot)):
        place = {"_bucket": split.bucket, "_files": [file.file_name for file in split.files]}
        found += [{**row, **place} for batch in reader.read_split(split) for row in rows_of_batch(batch)]
    expected = [
        {key: value for key, value in as_written(name, row).items() if key != "_partition"} for row in lines(path)
    ]
    assert sorted(map(line_of, found)) == sorted(map(line_of, expected))


def rows_of_batch(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    return rows_of(pa.Table.from_batches([batch]))


def line_of(row: dict[str, Any]) -> str:
    files = row.pop("_files")
    return dumps([sort_maps(row), files])


@pytest.mark.parametrize("path", STATES, ids=lambda path: path.stem)
def test_pruning_by_what_real_engines_stored_loses_no_row(path: Path) -> None:
    store, ref = open_table(path.stem)
    snapshot = store.load_latest_snapshot()
    if snapshot is None:
        return
    ref = at_snapshot(ref, store, snapshot)
    everything = read_state(store, ref, snapshot)
    first = [ref.schema.fields[0].name]
    for predicate in some_of(filters_of(everything)):
        bound = bind(predicate, ref.schema.fields, ref.name)
        kept = [filter_batch(batch, bound) for batch in everything.to_batches()]
        expected = pa.Table.from_batches(kept, everything.schema).select(first)
        found = read_arrow(ref, store, plan_scan(store, ref, snapshot, predicate), first)
        assert rows_of(found) == rows_of(expected), predicate


def some_of(filters: list[Predicate]) -> list[Predicate]:
    """Of the filters of a wide table every sixth one: five conditions a column, so that all conditions have turns."""
    return filters[::6] if len(filters) > MANY_FILTERS else filters


def filters_of(table: pa.Table) -> list[Predicate]:
    """Conditions on every plain column, with the value of the last row that has one."""
    found: list[Predicate] = []
    for field in table.schema:
        if pa.types.is_nested(field.type) or not table.num_rows:
            continue
        column = col(field.name)
        found += [column.is_null(), column.is_not_null()]
        values = table.column(field.name).drop_null()
        if len(values):
            value = literal_of(values[-1])
            found += [column == value, column < value, column >= value]
    return found


def literal_of(scalar: Any) -> Any:
    if pa.types.is_timestamp(scalar.type):
        return TimestampLiteral(nanos=scalar.value * NANOS[scalar.type.unit], has_zone=scalar.type.tz is not None)
    return scalar.as_py()
