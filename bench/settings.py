"""Settings of a benchmark run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
DATA: Final = ROOT / "bench" / "data"
RESULTS: Final = ROOT / "bench" / "results"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Sizes and repetitions.

    Attributes:
        rounds: timed rounds; in each, every contender runs once.
        warm_ups: rounds before them that do not count.
        rows: of the seven-column table.
        scale: of TPC-H, for lineitem.
        python_rows: of the seven-column table without Spark.
        live_files: sizes of the tables that are planned.
        scale_files: sizes of the tables whose growth is measured.
        snapshots: lengths of the histories that commits are added to.
        batch_rows: sizes of the micro-batches that are written.
        batches: number of timed micro-batches of each size, in the order of ``batch_rows``.
        slope_batches: micro-batches in a row into one table.
        offset_files: sizes of the tables whose latest offset is requested.
        small_files: of the table that is compacted, 1,000 rows each.
        history_batches: micro-batches in a row into one table that compacts and expires.
        beside_rows: sizes of the micro-batches that a stream with concurrent compaction writes.
        beside_batches: number of timed micro-batches of each size, in the order of ``beside_rows``; the largest come
            first.
        sort_rows: of the table that is sorted.
        sort_files: approximate number of its files.
        cores: of Spark's local master.
        driver_memory: of Spark, in Spark's notation.
        peers: on Spark, which are measured if their JARs are available.
    """

    rounds: int = 5
    warm_ups: int = 1
    rows: int = 8_000_000
    scale: float = 1.0
    python_rows: int = 2_000_000
    live_files: tuple[int, ...] = (10_000, 100_000)
    scale_files: tuple[int, ...] = (100_000, 1_000_000, 10_000_000)
    snapshots: tuple[int, ...] = (10, 1_000, 10_000)
    batch_rows: tuple[int, ...] = (1_000, 100_000)
    batches: tuple[int, ...] = (30, 17)
    slope_batches: int = 1_000
    offset_files: tuple[int, ...] = (10, 1_000, 100_000)
    small_files: int = 1_000
    history_batches: int = 10_000
    beside_rows: tuple[int, ...] = (60_000, 1_000)
    beside_batches: tuple[int, ...] = (12, 60)
    sort_rows: int = 3_000_000
    sort_files: int = 50
    cores: int = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    driver_memory: str = "4g"
    peers: tuple[str, ...] = ("delta", "iceberg", "paimon")


QUICK: Final = Settings(
    rounds=2,
    rows=100_000,
    scale=0.01,
    python_rows=50_000,
    live_files=(1_000, 5_000),
    scale_files=(1_000, 10_000),
    snapshots=(5, 50, 200),
    batches=(8, 3),
    slope_batches=40,
    offset_files=(10, 200, 2_000),
    small_files=100,
    history_batches=600,
    beside_rows=(30_000, 1_000),
    beside_batches=(4, 16),
    sort_rows=100_000,
    sort_files=16,
)
"""A smoke test of the benchmarks themselves; its times mean nothing."""

TOY: Final = Settings(
    rounds=1,
    warm_ups=0,
    rows=2_000,
    scale=0.001,
    python_rows=2_000,
    live_files=(50,),
    scale_files=(200,),
    snapshots=(2, 8),
    batch_rows=(10,),
    batches=(2,),
    slope_batches=10,
    offset_files=(10, 40),
    small_files=6,
    history_batches=40,
    beside_rows=(20, 10),
    beside_batches=(1, 8),
    sort_rows=2_000,
    sort_files=4,
)
"""What the tests run."""
