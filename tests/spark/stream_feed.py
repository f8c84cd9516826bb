"""A stream of numbered rows whose micro-batches a test decides: one file each."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock import Table

COLUMNS = "n BIGINT, k INT, s STRING"
DONE = {"availableNow": True}


@dataclass
class Feed:
    """Rows ``n, k, s`` with n counted up from 0 over all batches."""

    spark: SparkSession
    directory: Path
    batches: int = 0
    rows: int = 0

    def add(self, rows: int) -> None:
        """Make the rows of one more micro-batch."""
        lines = [json.dumps({"n": n, "k": n % 5, "s": f"row {n}"}) for n in range(self.rows, self.rows + rows)]
        path = self.directory / f"{self.batches:05}.json"
        aside = self.directory.parent / f"{path.name}.aside"
        aside.write_text("\n".join(lines))
        # The source orders files by their times, which else might be equal.
        os.utime(aside, (1_700_000_000 + self.batches,) * 2)
        aside.rename(path)
        self.batches += 1
        self.rows += rows

    def stream(self) -> DataFrame:
        """A new streaming DataFrame of all batches, those to come included."""
        return self.spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).json(str(self.directory))


def new_feed(spark: SparkSession, directory: Path, *batches: int) -> Feed:
    directory.mkdir()
    feed = Feed(spark, directory)
    for rows in batches:
        feed.add(rows)
    return feed


def numbers(table: Table) -> list[int]:
    """All numbers in the table, sorted."""
    return sorted(table.to_arrow(["n"])["n"].to_pylist())


def commits(table: Table) -> list[tuple[int, str, int]]:
    """Id, kind and rows added of each snapshot."""
    rows: list[dict[str, Any]] = table.snapshots().to_pylist()
    return [(row["snapshot_id"], row["commit_kind"], row["delta_record_count"]) for row in rows]


def forget_last_batch(checkpoint: Path) -> None:
    """Delete the last entry of Spark's commit log, so that it runs that batch again."""
    last = max(
        (path for path in (checkpoint / "commits").iterdir() if path.name.isdigit()), key=lambda path: int(path.name)
    )
    last.unlink()
    (last.parent / f".{last.name}.crc").unlink(missing_ok=True)


def data_files(table: Table) -> list[str]:
    """Names of all files of the table that could be data, live or not."""
    return sorted(path.name for path in Path(table.location).rglob("*.parquet"))


def live_files(table: Table) -> list[str]:
    return sorted(Path(path).name for path in table.files()["file_path"].to_pylist())
