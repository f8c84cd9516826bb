"""What a commit gives the rows of tables with row tracking, and what their files have."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock
from penstock.errors import FormatError, InvalidOptionError, InvalidSchemaError
from penstock.table.compact.write import TableWrite
from penstock.table.read.scan import plan_scan
from penstock.table.store import MetadataStore
from penstock.table.write.writer import write_arrow

if TYPE_CHECKING:
    from penstock import Table
    from penstock.format.manifest.entry import DataFileMeta

_NUMBERS = itertools.count()
TRACKED = {"row-tracking.enabled": "true", "write-only": "true"}


def new_table(columns: str = "k INT, p INT", **more: Any) -> Table:
    catalog = penstock.Catalog(f"memory://tracking-{next(_NUMBERS)}/w")
    catalog.create_database("d")
    return catalog.create_table("d.t", columns, **{"options": TRACKED} | more)


def files(table: Table) -> list[DataFileMeta]:
    """Return the live files, in the order of their row ids."""
    store = MetadataStore(table._ref)
    plan = plan_scan(store, table._ref, store.load_latest_snapshot())
    found = [entry.file for part in plan.partitions for entry in part.entries]
    return sorted(found, key=lambda file: (file.first_row_id is None, file.first_row_id))


def tracking(table: Table, **how: Any) -> list[tuple[int, int, int]]:
    """Return the key, the id and the sequence number of each row, by key."""
    rows = table.to_arrow(["k", "_ROW_ID", "_SEQUENCE_NUMBER"], **how).to_pylist()
    return sorted(tuple(row.values()) for row in rows)


def keyed(*keys: int, p: int = 0) -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int32()), "p": pa.array([p] * len(keys), pa.int32())})


def test_a_commit_gives_rows_ids_in_their_order_and_its_snapshot_as_number() -> None:
    table = new_table(partition_by=["p"])
    table.append(pa.concat_tables([keyed(1, 2, 3), keyed(4, p=1)]))
    table.append(keyed(5))
    assert tracking(table) == [(1, 0, 1), (2, 1, 1), (3, 2, 1), (4, 3, 1), (5, 4, 2)]
    first, second, third = files(table)
    assert [(file.first_row_id, file.min_sequence_number, file.max_sequence_number) for file in files(table)] == [
        (0, 1, 1),
        (3, 1, 1),
        (4, 2, 2),
    ]
    assert {file.write_cols for file in (first, second, third)} == {None}
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    assert snapshot.next_row_id == 5
    assert table.to_arrow().column_names == ["k", "p"]
    assert tracking(table, snapshot_id=1, filter="k > 2") == [(3, 2, 1), (4, 3, 1)]
    assert table.to_arrow(["_SEQUENCE_NUMBER"], limit=1).to_pylist() == [{"_SEQUENCE_NUMBER": 1}]


def test_an_overwrite_gives_new_ids_and_never_those_of_rows_that_are_gone() -> None:
    table = new_table()
    table.append(keyed(1, 2))
    table.overwrite(keyed(1, 2))
    assert tracking(table) == [(1, 2, 2), (2, 3, 2)]
    table.truncate()
    table.append(keyed(1))
    assert tracking(table) == [(1, 4, 4)]


def test_files_of_rows_that_were_moved_have_their_ids_and_numbers() -> None:
    table = new_table()
    table.append(keyed(1, 2))
    table.append(keyed(3))
    table.compact(options={"compaction.min.file-num": "2"})
    (file,) = files(table)
    assert (file.first_row_id, file.min_sequence_number, file.max_sequence_number) == (None, 1, 2)
    assert file.write_cols == ("k", "p", "_ROW_ID", "_SEQUENCE_NUMBER")
    assert file.value_stats_cols == ("k", "p")
    (path,) = table.files()["file_path"].to_pylist()
    stored = pq.read_table(pa.BufferReader(table._ref.file_io.read(path)))
    assert stored.select([0, 2, 3]).sort_by("k").to_pydict() == {
        "k": [1, 2, 3],
        "_ROW_ID": [0, 1, 2],
        "_SEQUENCE_NUMBER": [1, 1, 2],
    }
    table.update({"p": 5}, "k = 2")
    (file,) = files(table)
    assert (file.min_sequence_number, file.max_sequence_number) == (1, 4)
    (path,) = table.files()["file_path"].to_pylist()
    stored = pq.read_table(pa.BufferReader(table._ref.file_io.read(path)))
    assert stored.sort_by("k")["_SEQUENCE_NUMBER"].to_pylist() == [1, None, 2]
    assert tracking(table) == [(1, 0, 1), (2, 1, 4), (3, 2, 2)]
    assert table.to_arrow(["k"], filter="p = 5").to_pylist() == [{"k": 2}]
    table.update({"p": 6}, "k > 0")
    (file,) = files(table)
    assert (file.min_sequence_number, file.max_sequence_number) == (5, 5)
    assert not table.inspect.fsck().findings


def test_rows_that_are_merged_before_their_commit_get_ids_by_it() -> None:
    table = new_table(options={**TRACKED, "precommit-compact": "true"})
    ref = table._ref
    messages = (*write_arrow(ref, keyed(1, 2)), *write_arrow(ref, keyed(3)))
    assert TableWrite(ref=ref).commit(messages) is not None
    (file,) = files(table)
    assert (file.first_row_id, file.write_cols) == (0, None)
    assert tracking(table) == [(1, 0, 1), (2, 1, 1), (3, 2, 1)]


def test_columns_keep_their_meaning_when_the_table_is_altered() -> None:
    table = new_table()
    catalog = penstock.Catalog(table.location.rsplit("/", 2)[0])
    table.append(keyed(1, 2))
    table = catalog.alter_table("d.t", penstock.AddColumn(column="n", type="INT"))
    table.compact(options={"compaction.force-rewrite-all-files": "true"})
    table = catalog.alter_table("d.t", penstock.AddColumn(column="m", type="INT"))
    table.append([{"k": 3, "p": 0, "n": 1, "m": 2}])
    assert tracking(table) == [(1, 0, 1), (2, 1, 1), (3, 2, 3)]
    assert table.delete("k = 2").rows_deleted == 1
    assert tracking(table) == [(1, 0, 1), (3, 2, 3)]


def test_an_older_handle_appends_rows_with_ids() -> None:
    table = new_table(options={"write-only": "true"})
    catalog = penstock.Catalog(table.location.rsplit("/", 2)[0])
    catalog.alter_table("d.t", penstock.SetOption(key="row-tracking.enabled", value="true"))
    table.append(keyed(1, 2))
    assert tracking(catalog.load_table("d.t")) == [(1, 0, 1), (2, 1, 1)]


def test_what_cannot_be_tracked_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match="'bucket' = '-1' only"):
        new_table(options={**TRACKED, "bucket": "2", "bucket-key": "k"})
    with pytest.raises(InvalidSchemaError, match="'_ROW_ID' is reserved"):
        new_table("k INT, `_ROW_ID` BIGINT")
    table = new_table(options={"write-only": "true"})
    table.append(keyed(1))
    with pytest.raises(InvalidOptionError, match="cannot be given for one use"):
        table.with_options({"row-tracking.enabled": "true"})


def test_rows_without_an_id_are_an_error() -> None:
    table = new_table(options={"write-only": "true"})
    table.append(keyed(1))
    path = f"{table.location}/schema/schema-0"
    text = (
        table._ref.file_io.read(path)
        .decode()
        .replace('"options" : {', '"options" : { "row-tracking.enabled" : "true",', 1)
    )
    table._ref.file_io.write(path, text.encode())
    table = penstock.Table.at(table.location)
    with pytest.raises(FormatError, match=r"table .* has rows without an id, .* copy the rows"):
        tracking(table)
