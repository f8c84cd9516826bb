"""What a change would remove, against what it does remove."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

from penstock import Catalog, InvalidOptionError, Table
from penstock.catalog.place import load_location
from penstock.table.actions.changes import overwrite_scope
from penstock.table.store import MetadataStore
from penstock.table.write.preview import Removal, preview_drop, preview_removal


@pytest.fixture
def table() -> Table:
    """Two files in ``a``, one in ``b``, one in the NULL partition."""
    catalog = Catalog(f"memory://{uuid.uuid4()}/warehouse")
    catalog.create_database("shop")
    table = catalog.create_table("shop.t", "id BIGINT, dt STRING", partition_by=["dt"])
    for ids, day in (([1, 2], "a"), ([3], "a"), ([4], "b"), ([5], None)):
        table.append(pa.table({"id": ids, "dt": pa.array([day] * len(ids), pa.string())}))
    return table


@pytest.mark.parametrize(
    ("partition", "days"),
    [({}, ["x"]), ({"dt": "a"}, ["a"]), ({"dt": None}, [None]), (None, ["a", "b"]), (None, ["new"]), (None, [])],
    ids=str,
)
def test_the_preview_of_an_overwrite_is_what_it_removes(
    table: Table, partition: dict[str, object] | None, days: list[str | None]
) -> None:
    ref = load_location(table.location)
    rows = pa.table({"id": pa.array(range(len(days)), pa.int64()), "dt": pa.array(days, pa.string())})
    batches = rows.cast(table.arrow_schema).to_batches()

    removal = preview_removal(ref, MetadataStore(ref), overwrite_scope(ref, partition), batches)
    before = table.files()
    table.overwrite(rows, partition=partition)

    kept = set(table.files().column("file_path").to_pylist())
    gone = [row for row in before.to_pylist() if row["file_path"] not in kept]
    assert removal == Removal(
        snapshot_id=4,
        partitions=len({row["partition"] for row in gone}),
        files=len(gone),
        rows=sum(row["record_count"] for row in gone),
        bytes=sum(row["file_size_in_bytes"] for row in gone),
    )


def test_the_preview_of_dropped_partitions_counts_each_file_once(table: Table) -> None:
    ref = load_location(table.location)
    removal = preview_drop(ref, MetadataStore(ref), [{"dt": "a"}, {"dt": "b"}, {"dt": "a"}])
    assert (removal.partitions, removal.files, removal.rows) == (2, 3, 4)


@pytest.mark.parametrize("specs", [[], [{}], [{"id": 1}]])
def test_partitions_to_drop_must_be_named(table: Table, specs: list[dict[str, object]]) -> None:
    ref = load_location(table.location)
    with pytest.raises(InvalidOptionError):
        preview_drop(ref, MetadataStore(ref), specs)


def test_nothing_goes_where_nothing_was_committed() -> None:
    catalog = Catalog(f"memory://{uuid.uuid4()}/warehouse")
    catalog.create_database("shop")
    ref = load_location(catalog.create_table("shop.t", "id INT").location)
    assert preview_removal(ref, MetadataStore(ref), overwrite_scope(ref, {})) == Removal(snapshot_id=None)
