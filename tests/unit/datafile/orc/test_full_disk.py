"""ORC files on a disk that is full: an error, where the library that pyarrow writes them with would end the process."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from penstock.datafile.orc.writer import OrcFileWriter
from penstock.errors import StorageError
from penstock.format.types.data_types import BIGINT, DataField
from penstock.io.local import LocalFileIO
from penstock.options import FormatOptions

if TYPE_CHECKING:
    from pathlib import Path

ROWS = pa.RecordBatch.from_pydict({"k": np.random.default_rng(1).integers(0, 1 << 62, 100_000)})


class FullDisk(LocalFileIO):
    """Has space for so many writes."""

    writes = 0

    def open_output(self, path: str) -> Any:
        return _Output(super().open_output(path), self.writes)


class _Output:
    def __init__(self, inner: pa.NativeFile, writes: int) -> None:
        self._inner = inner
        self._left = writes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def write(self, data: bytes) -> int:
        self._left -= 1
        if self._left < 0:
            self._inner.write(data[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._inner.write(data)


def open_writer(tmp_path: Path, writes: int) -> OrcFileWriter:
    return OrcFileWriter(
        type("Disk", (FullDisk,), {"writes": writes})(),
        str(tmp_path / "x.orc"),
        [DataField(id=0, name="k", type=BIGINT)],
        FormatOptions.parse({"orc.stripe.size": "64 kb"}, table="t"),
    )


def test_a_full_disk_is_an_error_at_each_write(tmp_path: Path) -> None:
    failures = 0
    for writes in range(100):
        writer = open_writer(tmp_path, writes)
        failure = write(writer)
        if failure is None:
            break
        failures += 1
        assert isinstance(failure.__cause__, OSError)
        assert failure.__cause__.errno == errno.ENOSPC
        assert "free space" in str(failure)
        writer.abort()
        assert list(tmp_path.iterdir()) == []
    assert failures > 5


def write(writer: OrcFileWriter) -> StorageError | None:
    try:
        writer.write(ROWS)
        writer.close()
    except StorageError as error:
        return error
    return None


def test_a_file_that_is_dropped_is_not_written_to_its_end(tmp_path: Path) -> None:
    writer = open_writer(tmp_path, 1_000)
    writer.write(ROWS)
    writer.abort()
    assert list(tmp_path.iterdir()) == []
    writer.abort()
