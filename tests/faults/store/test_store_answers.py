"""Answers of a store that are wrong in themselves: cut off, with keys twice, and dated by a wrong clock."""

from __future__ import annotations

import re
import uuid
from contextlib import suppress
from datetime import datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.faults.store.faulty_proxy import Faults, FaultyProxy
from tests.support.garbage import stored_files

from penstock import Catalog, CommitConflictError, LeaseHeldError, StorageError
from penstock.io.resolve import resolve
from penstock.table.lease import LeaseKeeper, acquire

if TYPE_CHECKING:
    from collections.abc import Iterator
    from email.message import Message

    from tests.s3_server import S3Bucket

    from penstock import Table
    from penstock.io.file_io import FileIO

ROWS = pa.table({"id": [1, 2, 3]})
DATA = bytes(number % 251 for number in range(200_000))


class WrongProxy(FaultyProxy):
    """The proxy.

    Attributes:
        cut_off: part of paths; an answer to a read of such an object has half of its bytes, and states no other length.
        repeats: each listing has its first entries twice.
        unlisted: part of the names that are in no listing yet.
        skew: by how much the clock of the store is wrong.
        expired: the key whose requests are refused, because it has expired.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url, Faults(busy=0, lost=0, delay_seconds=0))
        self.cut_off: str | None = None
        self.repeats = False
        self.unlisted = b""
        self.skew = timedelta()
        self.expired = ""

    def refusal(self, _command: str, _path: str, headers: Message) -> bytes | None:
        is_expired = bool(self.expired) and f"Credential={self.expired}/" in headers.get("Authorization", "")
        return b"<Error><Code>ExpiredToken</Code></Error>" if is_expired else None

    def changed(self, path: str, headers: dict[str, str], data: bytes) -> tuple[dict[str, str], bytes]:
        is_listing = "list-type" in path
        if self.cut_off is not None and self.cut_off in path and not is_listing:
            headers = {key: value for key, value in headers.items() if key.lower() != "content-length"}
            data = data[: len(data) // 2]
        if self.repeats and is_listing:
            for name in (b"Contents", b"CommonPrefixes"):
                entries = re.findall(b"<%b>.*?</%b>" % (name, name), data, re.DOTALL)
                data = data.replace(entries[0], entries[0] * 2) if entries else data
                self.counts["repeated"] += bool(entries)
        if self.unlisted and is_listing:
            data = re.sub(
                rb"<Contents>(?:(?!</Contents>).)*%b.*?</Contents>" % self.unlisted, b"", data, flags=re.DOTALL
            )
        if self.skew:
            data = re.sub(rb"(?<=<LastModified>)[^<]*", lambda found: self._shifted(found[0]), data)
            headers = {
                key: format_datetime(parsedate_to_datetime(value) + self.skew, usegmt=True)
                if key.lower() in {"last-modified", "date"}
                else value
                for key, value in headers.items()
            }
        return headers, data

    def _shifted(self, stamp: bytes) -> bytes:
        return f"{datetime.fromisoformat(stamp.decode()) + self.skew:%Y-%m-%dT%H:%M:%S.000Z}".encode()


@pytest.fixture
def proxy(s3_bucket: S3Bucket) -> Iterator[WrongProxy]:
    with WrongProxy(s3_bucket.url) as proxy:
        yield proxy


@pytest.fixture
def catalog(s3_bucket: S3Bucket, proxy: WrongProxy) -> Catalog:
    catalog = Catalog(f"{s3_bucket.root}/{uuid.uuid4()}", {**s3_bucket.options, "s3.endpoint": proxy.url})
    catalog.create_database("d")
    return catalog


@pytest.fixture
def table(catalog: Catalog) -> Table:
    return catalog.create_table("d.t", "id BIGINT")


@pytest.fixture
def file_io(s3_bucket: S3Bucket, proxy: WrongProxy) -> FileIO:
    return resolve(s3_bucket.root, {**s3_bucket.options, "s3.endpoint": proxy.url})[0]


@pytest.mark.parametrize("size", [5_000, 200_000])
def test_the_end_of_an_object_that_was_cut_off_is_not_taken_for_all_of_it(
    size: int, s3_bucket: S3Bucket, proxy: WrongProxy, file_io: FileIO
) -> None:
    path = f"{s3_bucket.root}/{uuid.uuid4()}"
    file_io.write(path, DATA[:size])
    proxy.cut_off = path.rpartition("/")[2]
    with pytest.raises(StorageError, match="its answer has fewer bytes than it states; try again") as caught:
        file_io.open_input(path)
    assert caught.value.retryable


def test_a_part_of_an_object_that_was_cut_off_is_not_taken_for_all_of_it(
    s3_bucket: S3Bucket, proxy: WrongProxy, file_io: FileIO
) -> None:
    path = f"{s3_bucket.root}/{uuid.uuid4()}"
    file_io.write(path, DATA)
    with file_io.open_input(path) as whole:
        proxy.cut_off = path.rpartition("/")[2]
        with pytest.raises(StorageError, match="its answer has fewer bytes than it states"):
            whole.read(100)
        proxy.cut_off = None
        assert whole.read(100) == DATA[:100]


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_rows_are_not_read_from_a_file_that_was_cut_off(file_format: str, proxy: WrongProxy, catalog: Catalog) -> None:
    table = catalog.create_table("d.t", "id BIGINT", options={"file.format": file_format})
    table.append(ROWS)
    proxy.cut_off = "/bucket-0/"
    with pytest.raises(StorageError, match="its answer has fewer bytes than it states"):
        table.to_arrow()
    proxy.cut_off = None
    assert table.to_arrow()["id"].to_pylist() == [1, 2, 3]


def test_a_listing_with_entries_twice_is_read_as_if_each_were_there_once(
    proxy: WrongProxy, catalog: Catalog, table: Table
) -> None:
    proxy.repeats = True
    for _ in range(3):
        table.append(ROWS)
    table.compact(strategy="full")
    assert catalog.load_table("d.t").to_arrow().num_rows == 9
    assert (catalog.list_databases(), catalog.list_tables("d")) == (("d",), ("t",))
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert table.snapshots()["snapshot_id"].to_pylist() == [4]
    assert table.inspect.fsck().findings == ()
    assert proxy.counts["repeated"] > 0


def test_a_store_that_lists_new_snapshots_too_late_takes_no_commit_and_loses_none(
    proxy: WrongProxy, catalog: Catalog, table: Table
) -> None:
    table.append(ROWS)
    proxy.unlisted = b"/snapshot/snapshot-"
    hasty = table.with_options({"commit.timeout": "1 s", "commit.max-retries": "1"})
    for _ in range(2):
        with suppress(CommitConflictError):
            hasty.append(ROWS)
    proxy.unlisted = b""
    table.append(ROWS)
    read = catalog.load_table("d.t")
    assert read.to_arrow().num_rows == 3 * read.snapshots().num_rows
    assert read.inspect.fsck().findings == ()


@pytest.mark.parametrize("minutes", [10, -10])
def test_a_store_whose_clock_is_wrong_keeps_leases_and_files(minutes: int, proxy: WrongProxy, table: Table) -> None:
    proxy.skew = timedelta(minutes=minutes)
    table.append(ROWS)
    orphan = f"{table.location}/bucket-0/data-{uuid.uuid4()}-0.parquet"
    ref = table._handle.ref
    ref.file_io.write(orphan, b"of a writer that is at work")
    ref.file_io.write(f"{table.location}/bucket-0/other", b"of somebody else")
    assert table.remove_orphan_files(dry_run=True).orphans == ()
    with (
        LeaseKeeper(acquire(ref.file_io, ref.location, "consumer-a", ttl_ms=3_000)),
        pytest.raises(LeaseHeldError, match="'consumer-a' is in use"),
    ):
        acquire(ref.file_io, ref.location, "consumer-a", ttl_ms=3_000)
    acquire(ref.file_io, ref.location, "consumer-a", ttl_ms=3_000).release()
    assert table.to_arrow().num_rows == 3


def test_a_stream_whose_keys_expire_says_so_and_goes_on_with_new_ones(
    s3_bucket: S3Bucket, proxy: WrongProxy, catalog: Catalog
) -> None:
    options = {"bucket": "1", "bucket-key": "id"}
    source, target = (catalog.create_table(f"d.{name}", "id BIGINT", options=options) for name in ("s", "t"))
    for first in range(0, 30, 10):
        source.append(pa.table({"id": range(first, first + 10)}))
    place = {"scan.mode": "earliest", "consumer-id": "c"}
    for batch in source.follow(options=place, once=True):
        target.append(batch)
        break
    done = target.to_arrow().num_rows
    before = stored_files(target._handle.ref)
    proxy.expired = s3_bucket.options["s3.access-key"]
    with pytest.raises(StorageError, match=r"the keys have expired \(403 ExpiredToken\); get new ones"):
        target.append(ROWS)
    with pytest.raises(StorageError, match="the keys have expired"):
        list(source.follow(options=place, once=True))
    renewed = Catalog(catalog.warehouse, {**s3_bucket.options, "s3.endpoint": proxy.url, "s3.access-key": "new"})
    target, source = renewed.load_table("d.t"), renewed.load_table("d.s")
    assert stored_files(target._handle.ref) == before
    for batch in source.follow(options=place, once=True):
        target.append(batch)
    found = target.to_arrow()["id"].to_pylist()
    assert sorted(set(found)) == list(range(30))
    assert len(found) <= 30 + done  # what came before the place of the consumer was stored comes again


def test_new_keys_in_the_environment_are_used_after_the_old_ones_have_expired(
    s3_bucket: S3Bucket, proxy: WrongProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "old")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    file_io = resolve(s3_bucket.root, {"s3.endpoint": proxy.url})[0]
    path = f"{s3_bucket.root}/{uuid.uuid4()}"
    file_io.write(path, DATA)
    proxy.expired = "old"
    with pytest.raises(StorageError, match="the keys have expired"):
        file_io.read(path)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "new")
    assert file_io.read(path) == DATA
