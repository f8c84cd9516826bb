"""Streams of object stores: what they ask for, and what they leave when they are given up."""

from __future__ import annotations

import gc
import os
import threading
import uuid
from typing import TYPE_CHECKING

import pytest
from tests.s3_server import counted
from tests.support.counted_requests import memory_store

from penstock.errors import StorageError
from penstock.io.object_store.client import _CLIENTS, client_of
from penstock.io.resolve import resolve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.s3_server import S3Bucket

    from penstock.io.object_store.file_io import ObjectFileIO

MANY = 20_000_000


@pytest.fixture
def file_io(s3_bucket: S3Bucket) -> ObjectFileIO:
    return s3_bucket.file_io


@pytest.fixture
def root(s3_bucket: S3Bucket) -> str:
    return f"{s3_bucket.root}/{uuid.uuid4()}"


@pytest.fixture
def requests(s3_bucket: S3Bucket) -> Iterator[list[str]]:
    with counted(s3_bucket) as calls:
        yield calls


def test_a_large_object_is_uploaded_in_parts(file_io: ObjectFileIO, root: str, requests: list[str]) -> None:
    piece = os.urandom(1_000_000)
    with file_io.open_output(f"{root}/large") as output:
        for _ in range(MANY // len(piece)):
            output.write(piece)
        assert not file_io.exists(f"{root}/large")
        assert output.tell() == MANY
        assert len(output._buffer) < 8 << 20
    assert requests.count("put") == 1
    assert file_io.list(root)[0].size == MANY
    with file_io.open_input(f"{root}/large") as stream:
        stream.seek(8_000_000 - 10)
        assert stream.read(1_000_010) == piece[-10:] + piece


def test_a_small_object_is_one_request_to_write_and_one_to_read(
    file_io: ObjectFileIO, root: str, requests: list[str]
) -> None:
    with file_io.open_output(f"{root}/small") as output:
        output.write(b"0123456789")
    assert requests == ["put"]
    with file_io.open_input(f"{root}/small") as stream:
        assert stream.read(4) == b"0123"
        assert stream.read() == b"456789"
        assert stream.size() == 10
    assert requests == ["put", "get"]


def test_an_empty_object_is_read(file_io: ObjectFileIO, root: str) -> None:
    file_io.write(f"{root}/empty", b"")
    with file_io.open_input(f"{root}/empty") as stream:
        assert stream.read() == b""


@pytest.mark.parametrize("size", [10, MANY])
def test_what_is_given_up_leaves_nothing(file_io: ObjectFileIO, root: str, size: int) -> None:
    def fail() -> None:
        with file_io.open_output(f"{root}/given-up") as output:
            output.write(bytes(size))
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    dropped = file_io.open_output(f"{root}/dropped")
    dropped.write(bytes(size))
    del dropped
    gc.collect()
    assert not file_io.exists(root)
    assert not [thread for thread in threading.enumerate() if thread.name == "penstock-upload"]


def test_a_failed_upload_is_reported_and_waits_for_nothing(s3_bucket: S3Bucket) -> None:
    file_io, root = resolve("s3://no-such-bucket/t", s3_bucket.options)
    output = file_io.open_output(f"{root}/large")
    with pytest.raises(StorageError, match="there is no bucket 'no-such-bucket'"):
        output.write(bytes(100_000_000))
    assert output.closed
    small = file_io.open_output(f"{root}/small")
    small.write(b"1")
    with pytest.raises(StorageError, match="there is no bucket 'no-such-bucket'"):
        small.close()


def test_a_listing_leaves_out_what_other_engines_and_the_probe_leave(file_io: ObjectFileIO, root: str) -> None:
    client = client_of(file_io.settings)
    directory = root.removeprefix(f"{file_io.settings.address.root}/")
    for key in (f"{directory}/a_$folder$", f"{directory}/.penstock-probe-1-1", f"{directory}/a/b"):
        client.call(lambda library, store, key=key: library.put(store, key, b"", use_multipart=False))
    assert [(status.name, status.is_dir) for status in file_io.list(root)] == [("a", True)]


def test_a_bucket_is_listed_as_a_whole() -> None:
    store = memory_store(f"whole-{uuid.uuid4()}")
    root = store.settings.address.root
    for name in ("a", "b/c"):
        store.write(f"{root}/{name}", b"1")
    found = store.list_tree(root)
    assert [status.name for status in found.list(root)] == ["a", "b"]
    assert [status.name for status in found.list(f"{root}/b")] == ["c"]


def test_a_forked_process_goes_on(file_io: ObjectFileIO, root: str) -> None:
    file_io.write(f"{root}/file", b"parent")
    unfinished = file_io.open_output(f"{root}/unfinished")
    unfinished.write(bytes(MANY))
    process_id = os.fork()
    if process_id == 0:  # no test may go on here
        is_right = False
        try:
            unfinished.abort()
            is_right = file_io.read(f"{root}/file") == b"parent" and file_io.put_if_absent(f"{root}/child", b"child")
            # Dropped, the parent's client would wait for locks that its threads may have held.
            is_right = is_right and any(_CLIENTS.inherited)
        finally:
            os._exit(0 if is_right else 1)
    _, status = os.waitpid(process_id, 0)
    unfinished.abort()
    assert os.waitstatus_to_exitcode(status) == 0
    assert file_io.read(f"{root}/child") == b"child"
