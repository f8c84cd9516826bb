"""Numbered rows: who made each row, for which partition and bucket, and which one it is there."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.format.row.bucket import BucketFunction
from penstock.format.types.data_types import BIGINT
from penstock.table.write.bucket_keys import assign_buckets

if TYPE_CHECKING:
    from pathlib import Path

    import penstock

BUCKETS: Final = 8
# Rows that Spark hands over at once.
BATCH_ROWS: Final = 2_000
# As text 10 and 100 come before 9.
PARTITIONS: Final = (9, 10, 100)
COLUMNS: Final = "p INT, b INT, producer INT, n BIGINT, k BIGINT"
SCHEMA: Final = pa.schema(
    [("p", pa.int32()), ("b", pa.int32()), ("producer", pa.int32()), ("n", pa.int64()), ("k", pa.int64())]
)
_KEYS: Final = 4_096
# Files of a feed get times apart, by which Spark puts them in order; it compares milliseconds.
_FEED_START_NS: Final = 1_700_000_000 * 10**9
_FEED_STEP_NS: Final = 10**9


@cache
def _keys_by_bucket() -> tuple[np.ndarray, ...]:
    keys = np.arange(_KEYS, dtype=np.int64)
    buckets = assign_buckets([pa.array(keys)], [BIGINT], BUCKETS, BucketFunction.DEFAULT)
    return tuple(keys[buckets == bucket] for bucket in range(BUCKETS))


class Producer:
    """Makes rows whose number ``n`` counts from 0 for each partition and bucket, without gaps.

    Args:
        number: no other producer of the table has it.
    """

    def __init__(self, number: int, seed: int = 0) -> None:
        self._number = number
        self._chance = np.random.default_rng([seed, number])
        self._next = np.zeros((len(PARTITIONS), BUCKETS), np.int64)

    def rows(self, count: int, partitions: tuple[int, ...] = PARTITIONS) -> pa.Table:
        """Make the next rows, spread over partitions and buckets by chance; the numbers of each ascend."""
        places = np.array([PARTITIONS.index(each) for each in partitions])
        p = places[self._chance.integers(0, len(places), count)]
        b = self._chance.integers(0, BUCKETS, count)
        lanes = p * BUCKETS + b
        order = np.argsort(lanes, kind="stable")
        sizes = np.bincount(lanes, minlength=self._next.size)
        starts = np.cumsum(sizes) - sizes
        n = np.empty(count, np.int64)
        n[order] = np.arange(count) - np.repeat(starts, sizes) + np.repeat(self._next.ravel(), sizes)
        self._next += sizes.reshape(self._next.shape)
        k = np.empty(count, np.int64)
        for bucket, keys in enumerate(_keys_by_bucket()):
            mine = b == bucket
            k[mine] = self._chance.choice(keys, int(mine.sum()))
        columns = [np.array(PARTITIONS, np.int32)[p], b.astype(np.int32), np.full(count, self._number, np.int32), n, k]
        return pa.table([pa.array(column) for column in columns], schema=SCHEMA)


class FileFeed:
    """A directory of Parquet files that Spark's file stream reads in the order in which they were put there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._count = 0
        self._rows: list[pa.Table] = []

    def put(self, rows: pa.Table) -> None:
        """Add a file."""
        hidden = self.folder / f"_{self._count}"
        pq.write_table(rows, hidden)
        time_ns = _FEED_START_NS + self._count * _FEED_STEP_NS
        os.utime(hidden, ns=(time_ns, time_ns))
        hidden.rename(self.folder / f"{self._count}.parquet")
        self._count += 1
        self._rows.append(rows)

    def rows(self) -> pa.Table:
        """Return everything that was put, in order."""
        return pa.concat_tables(self._rows)


def make_queue(catalog: penstock.Catalog, name: str, options: dict[str, str] | None = None) -> penstock.Table:
    """Create a queue for numbered rows."""
    queue = {"bucket": str(BUCKETS), "bucket-key": "k"}
    return catalog.create_table(name, COLUMNS, partition_by=["p"], options={**queue, **(options or {})})
