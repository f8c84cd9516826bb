"""A warehouse on an object store: what is done to a table there, end to end, on a server that speaks S3."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.s3_server import SECRET_KEY, counted
from tests.support.counted_requests import counted_requests

from penstock import (
    AlreadyExistsError,
    Catalog,
    CommitConflictError,
    NotFoundError,
    Table,
    UnsupportedFeatureError,
)
from penstock.io.object_store.client import client_of

if TYPE_CHECKING:
    from tests.s3_server import S3Bucket

RACERS = 4


@pytest.fixture
def catalog(s3_bucket: S3Bucket) -> Catalog:
    catalog = Catalog(f"{s3_bucket.root}/{uuid.uuid4()}", s3_bucket.options)
    catalog.create_database("db")
    return catalog


@pytest.fixture
def table(catalog: Catalog) -> Table:
    return catalog.create_table(
        "db.t", "id BIGINT, day STRING", partition_by="day", options={"bucket": "2", "bucket-key": "id"}
    )


def rows(first: int, count: int = 100) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table({"id": pa.array(numbers, pa.int64()), "day": [f"d{number % 2}" for number in numbers]})


def ids(table: Table, **query: object) -> list[int]:
    found: list[int] = table.to_arrow(**query)["id"].to_pylist()  # type: ignore[arg-type] # of tests
    return sorted(found)


def keys(bucket: S3Bucket, location: str) -> dict[str, bytes]:
    """What lies below a location."""
    prefix = location.removeprefix(f"{bucket.root}/")
    client = client_of(bucket.file_io.settings)
    names = client.call(
        lambda library, store: [meta["path"] for chunk in library.list(store, prefix) for meta in chunk]
    )
    return {name: bucket.file_io.read(f"{bucket.root}/{name}") for name in names}


def test_a_table_lives_on_a_store(catalog: Catalog, table: Table, s3_bucket: S3Bucket) -> None:
    for number in range(4):
        table.append(rows(number * 100))
    assert ids(table) == list(range(400))
    assert ids(table, filter="day = 'd1' AND id < 10") == [1, 3, 5, 7, 9]
    table.create_tag("four")
    assert table.compact().snapshots
    table.append(rows(400))
    assert ids(table, tag="four") == list(range(400))
    table.rollback_to(tag="four")
    assert ids(catalog.load_table("db.t")) == list(range(400))
    table.append(rows(400, 10))
    table.versions.delete_tag("four")
    expired = table.expire_snapshots(retain_max=1, retain_min=1, older_than=0)
    assert len(expired.snapshot_ids) >= 4
    assert table.remove_orphan_files().orphans == ()
    assert table.inspect.fsck().findings == ()
    assert ids(Catalog(catalog.warehouse, s3_bucket.options).load_table("db.t")) == list(range(410))
    stored = b"".join(keys(s3_bucket, table.location).values())
    assert SECRET_KEY.encode() not in stored
    assert SECRET_KEY not in repr(table)
    assert SECRET_KEY not in repr(table._ref)


def test_a_location_names_a_table_with_the_options_of_the_catalog(catalog: Catalog, table: Table) -> None:
    table.append(rows(0))
    assert ids(catalog.load_table(table.location)) == list(range(100))


def test_a_dropped_table_leaves_nothing_and_its_name_is_free(
    catalog: Catalog, table: Table, s3_bucket: S3Bucket
) -> None:
    table.append(rows(0))
    catalog.drop_table("db.t")
    assert keys(s3_bucket, table.location) == {}
    assert catalog.list_tables("db") == ()
    with pytest.raises(NotFoundError):
        catalog.drop_table("db.t")
    with pytest.raises(NotFoundError):
        table.append(rows(0))
    catalog.create_table("db.t", "id BIGINT")


def test_a_drop_that_was_stopped_is_no_table_and_is_finished_by_the_next(catalog: Catalog, table: Table) -> None:
    table.append(rows(0))
    for name in ("schema", "snapshot", "manifest"):  # in this order
        assert table._ref.file_io.delete(f"{table.location}/{name}", recursive=True)
    assert catalog.list_tables("db") == ()
    with pytest.raises(AlreadyExistsError, match="drop_table removes it"):
        catalog.create_table("db.t", "id BIGINT")
    catalog.drop_table("db.t")
    catalog.create_table("db.t", "id BIGINT")


def test_a_database_is_dropped_with_its_tables(catalog: Catalog, table: Table, s3_bucket: S3Bucket) -> None:
    table.append(rows(0))
    catalog.drop_database("db", cascade=True)
    assert catalog.list_databases() == ()
    assert keys(s3_bucket, f"{catalog.warehouse}/db.db") == {}


def test_a_table_is_not_renamed(catalog: Catalog, table: Table) -> None:
    table.append(rows(0))
    with pytest.raises(UnsupportedFeatureError, match=r"cannot rename .*: object stores cannot rename directories"):
        catalog.rename_table("db.t", "db.u")
    assert ids(table) == list(range(100))


def test_a_consumer_continues_at_its_position(table: Table) -> None:
    table.append(rows(0))
    options = {"consumer-id": "nightly"}
    first = [number for batch in table.follow(options=options, once=True) for number in batch["id"].to_pylist()]
    table.append(rows(100))
    second = [number for batch in table.follow(options=options, once=True) for number in batch["id"].to_pylist()]
    assert (sorted(first), sorted(second)) == (list(range(100)), list(range(100, 200)))
    assert table.inspect.consumers()["consumer_id"].to_pylist() == ["nightly"]


def test_concurrent_writers_lose_no_rows_to_a_compactor(catalog: Catalog, table: Table) -> None:
    def write(number: int) -> None:
        own = catalog.load_table("db.t")
        for turn in range(3):
            own.append(rows(number * 1000 + turn * 100))

    def compact() -> None:
        for _ in range(3):
            with suppress(CommitConflictError):
                catalog.load_table("db.t").compact()

    with ThreadPoolExecutor(5) as pool:
        tasks = [pool.submit(compact), *(pool.submit(write, number) for number in range(4))]
        for task in tasks:
            task.result()
    expected = [n * 1000 + m for n in range(4) for m in range(300)]
    assert ids(table) == expected
    assert table.inspect.fsck().findings == ()


def test_many_files_are_deleted_with_few_requests(table: Table, s3_bucket: S3Bucket) -> None:
    for number in range(12):
        table.append(rows(number * 100, 4))
    table.compact()
    earlier = [row["snapshot_id"] for row in table.snapshots().to_pylist()][:-1]
    with counted(s3_bucket) as calls:
        expired = table.expire_snapshots(retain_max=1, retain_min=1, older_than=0)
    assert list(expired.snapshot_ids) == earlier
    assert expired.data_files >= 24
    assert calls.count("delete") < 20  # 12 snapshots one after another, all files of each kind at once
    assert len(calls) < 60
    assert table.inspect.fsck().findings == ()


def test_independent_requests_are_sent_in_parallel(table: Table, s3_bucket: S3Bucket, catalog: Catalog) -> None:
    for number in range(12):
        table.append(rows(number * 100, 4))
    fresh = catalog.load_table("db.t")
    for read in (fresh.snapshots, fresh.to_arrow):
        with counted_requests(s3_bucket.file_io) as counts:
            assert read().num_rows >= 12
        assert counts.total >= 12
        assert counts.serial < 0.7 * counts.total


def test_of_writers_that_make_one_view_on_a_store_one_succeeds(catalog: Catalog) -> None:
    """By put-if-absent; of those that replace it the last stays, and a reader always finds one whole definition."""
    start = Barrier(RACERS)

    def make(number: int) -> str | None:
        start.wait()
        query = f"VALUES ({number})"
        with suppress(AlreadyExistsError):
            return catalog.create_view(f"db.v{number // RACERS}", query, "n INT").query
        return None

    def put(number: int) -> str:
        start.wait()
        query = f"VALUES ({number})"
        catalog.create_view("db.replaced", query, "n INT", comment="x" * 10_000 * (number + 1), replace=True)
        found = catalog.load_view("db.replaced")
        assert found.comment == "x" * 10_000 * (int(found.query[8:-1]) + 1)
        return query

    with ThreadPoolExecutor(RACERS) as pool:
        for turn in range(5):
            winners = [each for each in pool.map(make, range(turn * RACERS, (turn + 1) * RACERS)) if each is not None]
            assert winners == [catalog.load_view(f"db.v{turn}").query]
        made = list(pool.map(put, range(RACERS)))
    assert catalog.load_view("db.replaced").query in made
    assert catalog.list_views("db") == ("replaced", "v0", "v1", "v2", "v3", "v4")
    assert catalog.list_tables("db") == ()
    catalog.rename_view("db.v0", "db.w")
    catalog.drop_view("db.v1")
    assert catalog.list_views("db") == ("replaced", "v2", "v3", "v4", "w")
    catalog.drop_database("db", cascade=True)
    assert catalog.list_databases() == ()
