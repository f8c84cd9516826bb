"""Azure Blob: the promises of ``FileIO``, and a table's life."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest
from tests.azure_server import CONTAINER, PROGRAM, AzureServer
from tests.unit.io.table_life import check_life_of_a_table

from penstock import Catalog
from penstock.io.resolve import resolve
from penstock.testing.suites import FileIOSuite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.io.file_io import FileIO

pytestmark = [
    pytest.mark.cloud,
    pytest.mark.slow,
    pytest.mark.skipif(not PROGRAM.exists(), reason="Azurite is not here: make test-cloud fetches it"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[AzureServer]:
    with AzureServer() as server:
        yield server


class TestAzureFileIO(FileIOSuite):
    has_directories = False

    @pytest.fixture
    def file_io(self, server: AzureServer) -> FileIO:
        return resolve(f"az://{CONTAINER}", server.options)[0]

    @pytest.fixture
    def root(self) -> str:
        return f"az://{CONTAINER}/{uuid.uuid4()}"


@pytest.mark.parametrize("scheme", [f"az://{CONTAINER}", f"abfss://{CONTAINER}@devstoreaccount1.dfs.core.windows.net"])
def test_a_table_lives_on_azure(server: AzureServer, scheme: str) -> None:
    check_life_of_a_table(Catalog(f"{scheme}/{uuid.uuid4()}", server.options))


def test_files_that_are_gone_do_not_stop_a_deletion(server: AzureServer) -> None:
    file_io, root = resolve(f"az://{CONTAINER}/{uuid.uuid4()}", server.options)
    for name in ("a", "c"):
        file_io.write(f"{root}/{name}", b"1")
    file_io.delete_many([f"{root}/{name}" for name in "abc"])
    assert file_io.list(root) == ()
