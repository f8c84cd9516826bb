"""What a file states of itself is checked before anything is built on it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock import Catalog, Table
from penstock.catalog.changes import AddColumn
from penstock.errors import FormatError
from penstock.format.types.data_types import BIGINT

LAST = 2**63 - 1


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = Catalog(str(tmp_path))
    catalog.create_database("d")
    return catalog.create_table("d.t", "id BIGINT, v STRING", options={"commit.max-retries": "1"})


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": [str(number) for number in ids]})


def edit(table: Table, name: str, **values: object) -> None:
    path = Path(table.location, name)
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def reload(table: Table) -> Table:
    return Catalog(str(Path(table.location).parents[1])).load_table("d.t")


def names(table: Table, directory: str) -> set[str]:
    return {path.name for path in Path(table.location, directory).iterdir()}


@pytest.mark.parametrize("stated", [-5, 0, 1, 77, LAST])
def test_a_snapshot_with_the_id_of_another_is_refused_and_nothing_follows_it(table: Table, stated: int) -> None:
    for number in (1, 2, 3):
        table.append(rows(number))
    edit(table, "snapshot/snapshot-3", id=stated)
    before = names(table, "snapshot")
    for use in (lambda: reload(table).append(rows(4)), lambda: reload(table).to_arrow()):
        with pytest.raises(FormatError, match=r"snapshot-3' (has the id|claims to be snapshot)"):
            use()
    assert names(table, "snapshot") == before


def test_a_snapshot_after_which_no_other_can_come_is_refused(table: Table) -> None:
    table.append(rows(1))
    snapshots = Path(table.location, "snapshot")
    (snapshots / f"snapshot-{LAST}").write_bytes((snapshots / "snapshot-1").read_bytes())
    edit(table, f"snapshot/snapshot-{LAST}", id=LAST)
    (snapshots / "LATEST").unlink()
    with pytest.raises(FormatError, match=f"has the id {LAST}, which no snapshot can have"):
        reload(table).append(rows(2))


def test_a_tag_with_an_id_that_is_none_is_refused(table: Table) -> None:
    table.append(rows(1))
    table.create_tag("a")
    edit(table, "tag/tag-a", id=-5)
    with pytest.raises(FormatError, match="has the id -5"):
        reload(table).rollback_to(tag="a")
    assert "snapshot-1" in names(table, "snapshot")


@pytest.mark.parametrize(("key", "value"), [("totalRecordCount", LAST), ("id", LAST - 1)])
def test_a_commit_does_not_write_what_its_own_reader_refuses(table: Table, key: str, value: int) -> None:
    table.append(rows(1))
    edit(table, "snapshot/snapshot-1", **{key: value})
    if key == "id":
        Path(table.location, "snapshot/snapshot-1").rename(Path(table.location, f"snapshot/snapshot-{value}"))
    before = names(table, "snapshot"), names(table, "manifest")
    with pytest.raises(FormatError, match=f"would have {key} = {value + 1}"):
        reload(table).append(rows(2))
    assert (names(table, "snapshot"), names(table, "manifest")) == before


def edit_fields(table: Table, change: Callable[[dict[str, Any]], None], **values: object) -> None:
    path = Path(table.location, "schema/schema-0")
    schema = json.loads(path.read_text())
    change(schema)
    path.write_text(json.dumps({**schema, **values}))


@pytest.mark.parametrize("highest", [-1, 0])
def test_a_highest_field_id_below_one_in_use_is_refused(table: Table, highest: int) -> None:
    edit(table, "schema/schema-0", highestFieldId=highest)
    with pytest.raises(FormatError, match=f"highestFieldId {highest}, but the column"):
        reload(table)


@pytest.mark.parametrize("field_id", [2**31, 2**63 - 1, -7])
def test_a_field_id_that_is_none_is_refused(table: Table, field_id: int) -> None:
    edit_fields(table, lambda schema: schema["fields"][0].update(id=field_id), highestFieldId=field_id)
    with pytest.raises(FormatError, match=f"the id {field_id}, which no column can have"):
        reload(table)


def test_two_columns_of_one_id_are_refused(table: Table) -> None:
    edit_fields(table, lambda schema: schema["fields"][1].update(id=0))
    with pytest.raises(FormatError, match="gives the id 0 of the column 'id' to another"):
        reload(table)


def test_nested_ids_above_the_highest_are_stepped_over(table: Table) -> None:
    nested = {"type": "ROW", "fields": [{"id": 7, "name": "a", "type": "INT"}]}
    edit_fields(table, lambda schema: schema["fields"][1].update(type=nested))
    catalog = Catalog(str(Path(table.location).parents[1]))
    catalog.alter_table("d.t", AddColumn(column="n", type=BIGINT))
    assert [field.id for field in catalog.load_table("d.t").schema.fields] == [0, 1, 8]


@pytest.mark.parametrize(
    ("file_format", "there"), [("parquet", 0), *((name, n) for name in ("parquet", "orc", "avro") for n in (1, 5))]
)
def test_a_data_file_has_as_many_rows_as_its_manifest_says(table: Table, file_format: str, there: int) -> None:
    by_format = table.with_options({"file.format": file_format})
    by_format.append(rows(*range(there)))
    by_format.append(rows(7, 8, 9))
    files = sorted(Path(table.location, "bucket-0").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    if there == 0:
        pq.write_table(rows(), files[-1])
    else:
        files[-1].write_bytes(files[0].read_bytes())
    said = f"has {'more' if there > 3 else there} rows, while its manifest says 3"
    for read in (
        lambda: reload(table).to_arrow(),
        lambda: reload(table).to_arrow(columns=["v"]),
        lambda: reload(table).to_arrow(filter="id >= 0"),
        lambda: list(reload(table).to_batches()),
    ):
        with pytest.raises(FormatError, match=said):
            read()
