"""Answers of a name node that get lost, by a client that needs none."""

from __future__ import annotations

import pytest

from penstock.errors import InvalidOptionError, StorageError
from penstock.io import hdfs
from penstock.io.hdfs import HdfsFileIO
from penstock.io.resolve import resolve


class LostClient:
    """A client that writes, and whose name node is gone from the rename on."""

    class Output:
        def __enter__(self) -> LostClient.Output:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def write(self, _data: bytes) -> None:
            pass

    def create(self, _path: str, _options: object) -> Output:
        return self.Output()

    def rename(self, _old: str, _new: str, *, overwrite: bool) -> None:
        raise ConnectionError(f"lost, overwrite={overwrite}")

    def get_file_info(self, _path: str) -> None:
        raise ConnectionError("lost")

    def delete(self, _path: str, *, recursive: bool) -> None:
        raise ConnectionError(f"lost, recursive={recursive}")


def test_a_commit_whose_name_node_is_lost_is_an_error_of_the_storage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hdfs, "_client_of", lambda *_: LostClient())
    file_io = HdfsFileIO(authority="host:8020")
    with pytest.raises(StorageError, match=r"cannot create hdfs://host:8020/t/snapshot/snapshot-1: lost") as error:
        file_io.put_if_absent("hdfs://host:8020/t/snapshot/snapshot-1", b"ours")
    assert error.value.retryable


@pytest.mark.parametrize("path", ["a/../b", "./a", "a/.."])
def test_a_location_that_leads_elsewhere_is_none(path: str) -> None:
    with pytest.raises(InvalidOptionError, match=r"has a '\.' or '\.\.' in it"):
        resolve(f"hdfs://host:8020/{path}")
