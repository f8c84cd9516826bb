"""Servers that speak S3 besides the one of all tests: one keeps the promise of conditional puts, one does not."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from tests.cloud_servers import ProxyServer, VersityServer
from tests.unit.io.table_life import check_life_of_a_table

import penstock
from penstock.testing.suites import FileIOSuite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.io.file_io import FileIO

pytestmark = [pytest.mark.cloud, pytest.mark.slow]
NAMES, THREADS = 100, 8


@pytest.fixture(scope="module")
def versity() -> Iterator[VersityServer]:
    if not VersityServer.PROGRAM.exists():
        pytest.skip("versitygw is not here: make test-cloud fetches it")
    with VersityServer() as server:
        yield server


@pytest.fixture(scope="module")
def proxy() -> Iterator[ProxyServer]:
    if not ProxyServer.JARS.exists():
        pytest.skip("s3proxy is not here: make test-cloud fetches it")
    with ProxyServer() as server:
        yield server


class TestVersityFileIO(FileIOSuite):
    has_directories = False

    @pytest.fixture
    def file_io(self, versity: VersityServer) -> FileIO:
        return versity.bucket.file_io

    @pytest.fixture
    def root(self, versity: VersityServer) -> str:
        return f"{versity.bucket.root}/{uuid.uuid4()}"


def test_each_name_has_one_winner_at_versitygw(versity: VersityServer) -> None:
    file_io, root = versity.bucket.file_io, f"{versity.bucket.root}/race-{uuid.uuid4()}"

    def put(number: int) -> bool:
        return file_io.put_if_absent(f"{root}/{number // THREADS}", f"{number} {uuid.uuid4()}".encode())

    with ThreadPoolExecutor(THREADS) as pool:
        won = list(pool.map(put, range(NAMES * THREADS)))
    assert [sum(won[name * THREADS : (name + 1) * THREADS]) for name in range(NAMES)] == [1] * NAMES


def test_a_table_lives_at_versitygw(versity: VersityServer) -> None:
    check_life_of_a_table(penstock.Catalog(f"{versity.bucket.root}/tables", versity.bucket.options))


def test_a_server_that_ignores_the_condition_is_refused_and_gets_nothing(proxy: ProxyServer) -> None:
    catalog = penstock.Catalog(f"{proxy.bucket.root}/tables", proxy.bucket.options)
    catalog.create_database("db")
    with pytest.raises(penstock.UnsupportedFeatureError, match=r"cannot hold tables: [2-8] conditional puts"):
        catalog.create_table("db.t", "id BIGINT")
    assert catalog.list_tables("db") == ()
