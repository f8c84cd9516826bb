"""Objects by which other engines mark directories: their names end with a slash."""

from __future__ import annotations

import datetime as dt
import urllib.request
import uuid
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from penstock import AlreadyExistsError, Catalog, StorageError

if TYPE_CHECKING:
    from tests.s3_server import S3Bucket


@pytest.fixture
def root() -> str:
    return str(uuid.uuid4())


@pytest.fixture
def catalog(s3_bucket: S3Bucket, root: str) -> Catalog:
    """A warehouse whose directories are marked."""
    mark(s3_bucket, root, f"{root}/db.db")
    return Catalog(f"{s3_bucket.root}/{root}", s3_bucket.options)


def mark(bucket: S3Bucket, *directories: str) -> None:
    for directory in directories:
        url = f"{bucket.url}/{bucket.name}/{directory}/"
        urllib.request.urlopen(urllib.request.Request(url, b"", method="PUT"), timeout=30).close()  # noqa: S310 - loopback


def test_a_table_lives_and_is_made_again_between_markers(catalog: Catalog, s3_bucket: S3Bucket, root: str) -> None:
    table = catalog.create_table("db.t", "id BIGINT, dt STRING", partition_by=["dt"])
    table.append(pa.table({"id": [1], "dt": ["a"]}))
    names = ("", "/schema", "/snapshot", "/dt=a", "/dt=a/bucket-0")
    mark(s3_bucket, *(f"{root}/db.db/t{name}" for name in names))
    table.append(pa.table({"id": [2], "dt": ["a"]}))
    assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 2]
    assert table.remove_orphan_files().orphans == ()
    assert table.inspect.fsck().findings == ()
    catalog.drop_table("db.t")
    assert catalog.list_tables("db") == ()
    assert catalog.create_table("db.t", "id BIGINT").to_arrow().num_rows == 0


def test_a_staging_directory_of_spark_is_an_orphan_until_its_files_are_deleted(
    catalog: Catalog, s3_bucket: S3Bucket, root: str
) -> None:
    table = catalog.create_table("db.t", "id BIGINT")
    table.append(pa.table({"id": [1]}))
    staging = f"{root}/db.db/t/.penstock-job"
    mark(s3_bucket, staging, f"{staging}/_temporary/0", f"{root}/db.db/t/.penstock-other")
    s3_bucket.file_io.write(f"{s3_bucket.root}/{staging}/_temporary/0/part-0.parquet", b"1")
    for expected in ([f"{s3_bucket.root}/{staging}"], []):
        found = table.remove_orphan_files(older_than=dt.datetime.now(dt.UTC), allow_recent=True).orphans
        assert [each.path for each in found if "/.clock." not in each.path] == expected
    catalog.drop_table("db.t")
    assert catalog.create_table("db.t", "id BIGINT").to_arrow().num_rows == 0


def test_files_of_something_else_are_not_taken_for_markers(catalog: Catalog, s3_bucket: S3Bucket, root: str) -> None:
    s3_bucket.file_io.write(f"{s3_bucket.root}/{root}/db.db/t/dt=a/bucket-0/data", b"1")
    with pytest.raises(AlreadyExistsError, match="holds dt=a but no schema"):
        catalog.create_table("db.t", "id BIGINT")


def test_a_database_whose_marker_stays_is_reported(catalog: Catalog) -> None:
    catalog.create_table("db.t", "id BIGINT")
    with pytest.raises(StorageError, match=r"db\.db/ to mark the directory, which Penstock cannot delete"):
        catalog.drop_database("db", cascade=True)
    assert catalog.list_tables("db") == ()
