"""Memory that runs out: one error, which names the table."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from penstock import Catalog
from penstock.datafile.parquet import writer as parquet_writer
from penstock.errors import NotFoundError, OutOfMemoryError, StorageError
from penstock.io.failures import enough_memory, to_storage_error

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("error", [MemoryError(), pa.ArrowMemoryError("malloc of size 9 failed")])
def test_memory_that_runs_out_is_an_error_of_ours(error: MemoryError) -> None:
    text = r"table d\.t: memory ran out.*; give the process more"
    with pytest.raises(OutOfMemoryError, match=text) as caught, enough_memory("d.t"):
        raise error
    assert caught.value.__cause__ is error
    assert isinstance(caught.value, MemoryError)
    assert isinstance(pickle.loads(pickle.dumps(caught.value)), OutOfMemoryError)


def test_a_thread_that_is_refused_is_one_too() -> None:
    with pytest.raises(OutOfMemoryError, match=r"table d\.t: the system refused a thread"), enough_memory("d.t"):
        raise RuntimeError("can't start new thread")


@pytest.mark.parametrize("error", [RuntimeError("other"), NotFoundError("x"), ValueError("y")])
def test_other_errors_pass(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, enough_memory("d.t"):
        raise error
    assert caught.value is error


@pytest.mark.parametrize("error", [MemoryError(), OSError(12, "Cannot allocate memory")])
def test_so_it_is_where_storage_is_asked(error: MemoryError | OSError) -> None:
    failure = to_storage_error("read", "/x", error)
    assert isinstance(failure, OutOfMemoryError)
    assert isinstance(failure, StorageError)
    assert failure.retryable


def test_an_append_that_does_not_fit_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = Catalog(str(tmp_path))
    catalog.create_database("d")
    table = catalog.create_table("d.t", "k BIGINT", options={"write-only": "true"})
    table.append([{"k": 1}])
    files = {path for path in tmp_path.rglob("*") if path.is_file()}

    def flush(*_: object, **__: object) -> None:
        raise pa.ArrowMemoryError("malloc of size 9 failed")

    with monkeypatch.context() as patch:
        patch.setattr(parquet_writer.ParquetFileWriter, "_flush", flush)
        with pytest.raises(OutOfMemoryError, match=r"table d\.t"):
            table.append([{"k": 2}])
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == files
    table.append([{"k": 2}])
    assert table.to_arrow().num_rows == 2
