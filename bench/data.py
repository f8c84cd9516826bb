"""The rows that are written and read, generated once and stored in bench/data."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.settings import DATA

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FILES: Final = 2
CHUNK_ROWS: Final = 500_000
FIRST_SECONDS: Final = 1_700_000_000
FIRST_MICROS: Final = FIRST_SECONDS * 1_000_000
NOTE_BYTES: Final = 20


def make_orders(rows: int) -> Path:
    """Return a folder of Parquet files with the seven-column table: ascending ids and times, the rest random."""

    def write(folder: Path) -> None:
        for number in range(FILES):
            first, last = rows * number // FILES, rows * (number + 1) // FILES
            with pq.ParquetWriter(
                folder / f"part-{number}.parquet", orders_chunk(0, 0).schema, compression="zstd"
            ) as out:
                for start in range(first, last, CHUNK_ROWS):
                    out.write_table(orders_chunk(start, min(start + CHUNK_ROWS, last)))

    return _kept(f"orders-{rows}", write)


def orders_chunk(start: int, stop: int) -> pa.Table:
    """Return rows ``start`` to ``stop`` of the seven-column table, deterministically."""
    count = stop - start
    random = np.random.default_rng(start)
    ids = np.arange(start, stop, dtype=np.int64)
    names = pa.array([f"category-{number}" for number in range(1000)])
    return pa.table(
        {
            "order_id": ids,
            "product_id": random.integers(0, 100_000, count),
            "price": random.random(count) * 1000,
            "sales": random.integers(0, 50, count),
            "order_time": pa.array(FIRST_MICROS + ids * 1000, pa.timestamp("us", tz="UTC")),
            "category": names.take(pa.array(random.integers(0, len(names), count))),
            "note": _hex_texts(random.bytes(NOTE_BYTES * count), count),
        }
    )


def read_orders(rows: int) -> pa.Table:
    """Return the seven-column table in memory."""
    return pq.read_table(make_orders(rows)).combine_chunks()


def make_lineitem(scale: float) -> Path:
    """Return a folder of Parquet files with TPC-H's lineitem.

    Raises:
        OSError: tpchgen-cli is not installed or failed.
    """

    def write(folder: Path) -> None:
        tool = Path(sys.executable).with_name("tpchgen-cli")
        command = [tool, "parquet", f"--scale-factor={scale:g}", "--tables=lineitem", f"--parts={FILES}"]
        done = subprocess.run([*command, f"--output-dir={folder}"], capture_output=True, text=True, check=False)
        if done.returncode:
            message = f"tpchgen-cli: {done.stderr.strip()}"
            raise OSError(message)
        for file in (folder / "lineitem").iterdir():
            file.rename(folder / file.name)
        (folder / "lineitem").rmdir()

    return _kept(f"lineitem-{scale:g}", write)


def make_batches(batches: int, rows: int, files: int = FILES) -> Path:
    """Return a folder with the seven-column table, split into micro-batches of the given rows and files each."""

    def write(folder: Path) -> None:
        for number in range(batches * files):
            first, last = rows * number // files, rows * (number + 1) // files
            pq.write_table(orders_chunk(first, last), folder / f"part-{number:06d}.parquet", compression="zstd")

    return _kept(f"batches-{batches}x{rows}-{files}", write)


def make_uneven_batches(sizes: Sequence[int], files: int) -> Path:
    """Return a folder with the seven-column table, split into micro-batches with individual numbers of rows and files.

    Spark's file source sorts files by modification time, so these are a second apart.
    """

    def write(folder: Path) -> None:
        last = 0
        parts = [rows * (part + 1) // files - rows * part // files for rows in sizes for part in range(files)]
        for number, rows in enumerate(parts):
            first, last = last, last + rows
            file = folder / f"part-{number:06d}.parquet"
            pq.write_table(orders_chunk(first, last), file, compression="zstd")
            os.utime(file, (FIRST_SECONDS + number, FIRST_SECONDS + number))

    runs = "-".join(f"{sizes.count(rows)}x{rows}" for rows in dict.fromkeys(sizes))
    return _kept(f"uneven-{runs}-{files}", write)


def count_rows(folder: Path) -> int:
    """Return the number of rows in a folder of Parquet files."""
    return sum(pq.read_metadata(file).num_rows for file in folder.glob("*.parquet"))


def _hex_texts(data: bytes, count: int) -> pa.StringArray:
    text = data.hex().encode()
    offsets = np.arange(count + 1, dtype=np.int32) * (2 * NOTE_BYTES)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(text))


def _kept(name: str, write: Callable[[Path], None]) -> Path:
    target = DATA / name
    if not target.is_dir():
        DATA.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=DATA))
        try:
            write(fresh)
            fresh.rename(target)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
    return target
