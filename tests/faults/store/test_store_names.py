"""Names that are unusual for a store: of partitions, tables, branches and buckets, and how a location is written."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import boto3
import pyarrow as pa
import pytest
from tests.azure_server import PROGRAM, AzureServer
from tests.cloud_servers import VersityServer

from penstock import Catalog, LeaseHeldError, StorageError
from penstock.table.lease import LeaseKeeper, acquire

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.s3_server import S3Bucket

ROWS = pa.table({"id": [1, 2, 3]})
VALUES = (
    *(
        "a b+c%2F",
        "ü/ß",
        "..",
        ".",
        "a//b",
        "日本",
        "a=b",
        "#?&",
        "a\\b",
        " lead",
        "trail ",
        "a%20b",
        "~*'\"",
        "new\nline",
    ),
    *("tab\t", "😀", "%", "+", "a:b", "{x}", "a|b<c>", "\x7f", "^`", "e\u0301", "é", "/", "a_$folder$"),
)
NAMES = (
    "a b",
    "a%2Fb",
    "a+b",
    "a=b",
    "日本",
    "a#b?c",
    "a@b",
    "a'b",
    "😀",
    "a&b;c",
    "~",
    "a:b",
    'a*|"<>',
    "%",
    "e\u0301",
    "é",
)
SERVERS = ["moto", *(pytest.param(name, marks=[pytest.mark.cloud, pytest.mark.slow]) for name in ("versity", "azure"))]


@pytest.fixture(scope="module")
def versity() -> Iterator[VersityServer]:
    if not VersityServer.PROGRAM.exists():
        pytest.skip("versitygw is not here: make test-cloud fetches it")
    with VersityServer() as server:
        yield server


@pytest.fixture(scope="module")
def azure() -> Iterator[AzureServer]:
    if not PROGRAM.exists():
        pytest.skip("Azurite is not here: make test-cloud fetches it")
    with AzureServer() as server:
        yield server


@pytest.fixture(params=SERVERS)
def catalog(request: pytest.FixtureRequest) -> Catalog:
    folder = uuid.uuid4()
    if request.param == "azure":
        return Catalog(f"az://lake/{folder}", request.getfixturevalue("azure").options)
    name = "s3_bucket" if request.param == "moto" else "versity"
    server = request.getfixturevalue(name)
    bucket: S3Bucket = server if request.param == "moto" else server.bucket
    return Catalog(f"{bucket.root}/{folder}", bucket.options)


def test_values_of_partitions_may_have_any_characters(catalog: Catalog) -> None:
    catalog.create_database("d")
    table = catalog.create_table("d.t", "id BIGINT, p STRING", partition_by=["p"])
    rows = pa.table({"id": range(len(VALUES)), "p": VALUES})
    table.append(rows)
    table.append(rows)
    table.compact(strategy="full")
    read = catalog.load_table("d.t").to_arrow()
    assert sorted(zip(*read.to_pydict().values(), strict=True)) == sorted(2 * [*enumerate(VALUES)])
    assert table.remove_orphan_files(older_than=0, dry_run=True, allow_recent=True).orphans == ()
    assert table.inspect.fsck().findings == ()
    for value in VALUES:
        table.drop_partitions({"p": value})
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert not any("/p=" in path for path in paths_below(catalog, table.location))


@pytest.mark.parametrize("name", NAMES)
def test_databases_tables_and_branches_may_have_any_names(name: str, catalog: Catalog) -> None:
    catalog.create_database(name)
    table = catalog.create_table(f"{name}.{name}", "id BIGINT")
    table.append(ROWS)
    table.create_tag("a")
    table.versions.create_branch("b", tag="a")
    assert catalog.load_table(f"{name}.{name}").with_options({"branch": "b"}).to_arrow().num_rows == 3
    assert name in catalog.list_databases()
    assert catalog.list_tables(name) == (name,)
    catalog.drop_table(f"{name}.{name}")
    catalog.drop_database(name)
    assert name not in catalog.list_databases()


def test_a_name_that_no_store_takes_is_refused_before_anything_is_stored(catalog: Catalog) -> None:
    catalog.create_database("d")
    table = catalog.create_table("d.t", "id BIGINT, p STRING", partition_by=["p"])
    before = paths_below(catalog, table.location)
    with pytest.raises(
        StorageError, match=r"has at most 1024 bytes, and this one has .*; shorten the values of the part"
    ):
        table.append(pa.table({"id": [1], "p": ["v" * 1100]}))
    assert paths_below(catalog, table.location) == before
    with pytest.raises(StorageError, match="shorten the values of the partition columns, or the names in the location"):
        Catalog(f"{catalog.warehouse}/{'w' * 1100}", dict(catalog._warehouse.options)).create_database("d")


def test_slashes_and_the_two_schemes_of_s3_name_the_same_table(s3_bucket: S3Bucket) -> None:
    folder = uuid.uuid4()
    catalog = Catalog(f"{s3_bucket.root}//{folder}///", s3_bucket.options)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "id BIGINT")
    assert table.location == f"{s3_bucket.root}/{folder}/d.db/t"
    table.append(ROWS)
    other = Catalog(f"s3a://{s3_bucket.name}/{folder}/", s3_bucket.options).load_table("d.t")
    other.append(ROWS)
    table.append(ROWS)
    assert table.to_arrow().num_rows == other.to_arrow().num_rows == 9
    assert other.remove_orphan_files(older_than=0, dry_run=True, allow_recent=True).orphans == ()
    refs = table._handle.ref, other._handle.ref
    with (
        LeaseKeeper(acquire(refs[0].file_io, refs[0].location, "consumer-a", ttl_ms=3_000)),
        pytest.raises(LeaseHeldError, match="'consumer-a' is in use"),
    ):
        acquire(refs[1].file_io, refs[1].location, "consumer-a", ttl_ms=3_000)


@pytest.mark.parametrize("has_versions", [False, True])
def test_a_bucket_may_have_dots_in_its_name_and_keep_versions(has_versions: bool, s3_bucket: S3Bucket) -> None:  # noqa: FBT001
    name = f"a.{uuid.uuid4()}.z"
    keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret"}
    client = boto3.client("s3", endpoint_url=s3_bucket.url, region_name="us-east-1", **keys)
    client.create_bucket(Bucket=name)
    if has_versions:
        client.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    catalog = Catalog(f"s3://{name}/warehouse", s3_bucket.options)
    catalog.create_database("d")
    for _ in range(2):  # in the place of a table that was dropped
        table = catalog.create_table("d.t", "id BIGINT")
        for _ in range(5):
            table.append(ROWS)
        table.compact(strategy="full")
        table.rollback_to(snapshot_id=3)
        table.append(ROWS)
        table.expire_snapshots(retain_max=1, retain_min=1)
        assert table.to_arrow().num_rows == 12
        assert table.snapshots()["snapshot_id"].to_pylist() == [4]
        assert table.inspect.fsck().findings == ()
        catalog.drop_table("d.t")
    assert catalog.list_tables("d") == ()


def paths_below(catalog: Catalog, location: str) -> list[str]:
    file_io = catalog.load_table(location)._handle.ref.file_io
    found, folders = [], [location]
    while folders:
        for status in file_io.list(folders.pop()):
            (folders if status.is_dir else found).append(status.path)
    return sorted(found)
