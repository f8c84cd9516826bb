"""HDFS: the promises of ``FileIO``, races, and a table's life, on a name node and a data node of this machine."""

from __future__ import annotations

import multiprocessing
import os
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.cloud_servers import HdfsServer
from tests.unit.io.table_life import check_life_of_a_table

import penstock
from penstock.io.resolve import resolve
from penstock.testing.suites import FileIOSuite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.io.file_io import FileIO

pytestmark = [
    pytest.mark.cloud,
    pytest.mark.slow,
    pytest.mark.skipif(not HdfsServer.JARS.exists(), reason="HDFS is not here: make test-cloud fetches it"),
]
NAMES, THREADS = 50, 8


@pytest.fixture(scope="module")
def server() -> Iterator[HdfsServer]:
    with HdfsServer() as server:
        yield server


class TestHdfsFileIO(FileIOSuite):
    # HDFS refuses a colon; Penstock, as Paimon, writes it as %3A in the names of partitions.
    odd_names = tuple(name for name in FileIOSuite.odd_names if ":" not in name)

    @pytest.fixture
    def file_io(self, server: HdfsServer) -> FileIO:
        return resolve(server.root)[0]

    @pytest.fixture
    def root(self, server: HdfsServer) -> str:
        return f"{server.root}/{uuid.uuid4()}"


def test_each_name_has_one_winner(server: HdfsServer) -> None:
    file_io, root = resolve(f"{server.root}/race-{uuid.uuid4()}")

    def put(number: int) -> bool:
        return file_io.put_if_absent(f"{root}/{number // THREADS}", f"{number} {uuid.uuid4()}".encode())

    with ThreadPoolExecutor(THREADS) as pool:
        won = list(pool.map(put, range(NAMES * THREADS)))
    assert [sum(won[name * THREADS : (name + 1) * THREADS]) for name in range(NAMES)] == [1] * NAMES
    assert [status.name for status in file_io.list(root)] == sorted(str(name) for name in range(NAMES))


def test_a_forked_process_reads_with_a_connection_of_its_own(server: HdfsServer) -> None:
    file_io, root = resolve(f"{server.root}/fork-{uuid.uuid4()}")
    file_io.write(f"{root}/file", b"content")
    child = multiprocessing.get_context("fork").Process(target=_read_and_leave, args=(file_io, f"{root}/file"))
    child.start()
    child.join(60)
    assert child.exitcode == 7


def _read_and_leave(file_io: FileIO, path: str) -> None:
    os._exit(7 if file_io.read(path) == b"content" else 1)


def test_a_table_lives_on_hdfs(server: HdfsServer) -> None:
    check_life_of_a_table(penstock.Catalog(f"{server.root}/{uuid.uuid4()}/warehouse"))


def test_a_table_is_renamed_on_hdfs(server: HdfsServer) -> None:
    catalog = penstock.Catalog(f"{server.root}/{uuid.uuid4()}/warehouse")
    catalog.create_database("db")
    catalog.create_table("db.t", "id BIGINT").append(pa.table({"id": range(400)}))
    catalog.rename_table("db.t", "db.u")
    assert catalog.load_table("db.u").to_arrow(filter="id >= 390").num_rows == 10
    assert catalog.load_table("db.u").inspect.fsck().findings == ()


def test_a_name_node_that_is_not_there_is_one_clear_error() -> None:
    with pytest.raises(penstock.StorageError, match=r"hdfs://127\.0\.0\.1:1/warehouse"):
        penstock.Catalog("hdfs://127.0.0.1:1/warehouse").create_database("db")
