"""Every golden table reads back as Java Paimon 1.4.2 read it: each snapshot, each tag, and where each row lies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest
from tests.interop.canonical import dumps, rows_of, sort_maps, sort_rows

from penstock.io.local import LocalFileIO
from penstock.table.read import TableReader, read_arrow
from penstock.table.ref import TableRef
from penstock.table.scan import plan_scan
from penstock.table.split import plan_splits
from penstock.table.store import MetadataStore, TableLocation
from penstock.table.travel import at_snapshot, resolve_snapshot

if TYPE_CHECKING:
    from penstock.spec.snapshot import Snapshot

DATA: Final = Path(__file__).parent / "data"
LOCATIONS: Final = {path.name: path for path in sorted(DATA.glob("warehouse/*.db/*"))}
STATES: Final = sorted(path for path in DATA.glob("expected/*.jsonl") if ".buckets" not in path.name)
BUCKETS: Final = sorted(DATA.glob("expected/*.buckets.jsonl"))


def open_table(name: str) -> tuple[MetadataStore, TableRef]:
    file_io, location = LocalFileIO(), str(LOCATIONS[name])
    store = MetadataStore(TableLocation(file_io=file_io, location=location, name=name))
    return store, TableRef(name=name, location=location, file_io=file_io, schema=store.load_latest_schema())


def read_state(store: MetadataStore, ref: TableRef, snapshot: Snapshot) -> pa.Table:
    then = at_snapshot(ref, store, snapshot)
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
        assert snapshot is not None
        if tag is None:
            assert (snapshot.commit_kind, snapshot.schema_id) == (state["commitKind"], state["schemaId"])
        table = read_state(store, ref, snapshot)
        assert sort_rows(rows_of(table)) == sort_rows(state["rows"]), f"{tag or snapshot.id}"


@pytest.mark.parametrize("path", BUCKETS, ids=lambda path: path.name.removesuffix(".buckets.jsonl"))
def test_every_row_lies_in_the_split_where_java_finds_it(path: Path) -> None:
    store, ref = open_table(path.name.removesuffix(".buckets.jsonl"))
    snapshot = store.load_latest_snapshot()
    assert snapshot is not None
    ref = at_snapshot(ref, store, snapshot)
    reader = TableReader(ref, store)
    found = []
    for split in plan_splits(ref, plan_scan(store, ref, snapshot)):
        place = {"_bucket": split.bucket, "_files": [file.file_name for file in split.files]}
        found += [{**row, **place} for batch in reader.read_split(split) for row in rows_of_batch(batch)]
    expected = [{key: value for key, value in row.items() if key != "_partition"} for row in lines(path)]
    assert sorted(map(line_of, found)) == sorted(map(line_of, expected))


def rows_of_batch(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    return rows_of(pa.Table.from_batches([batch]))


def line_of(row: dict[str, Any]) -> str:
    files = row.pop("_files")
    return dumps([sort_maps(row), files])
