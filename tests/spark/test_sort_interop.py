"""The reference reads tables that we sorted on Spark, writes on, and its streams pass over what was only sorted."""

from collections import Counter
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession
from tests.interop import ours
from tests.interop.canonical import sort_rows
from tests.interop.conftest import java, location, pypaimon
from tests.interop.engines import Engine, JavaPaimon, Row

__all__ = ["java", "location", "pypaimon"]

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("strategy", ["order", "zorder", "hilbert"])
def test_every_engine_reads_what_we_sorted_and_goes_on(
    spark: SparkSession, java: JavaPaimon, pypaimon: Engine, location: Path, strategy: str
) -> None:
    ours.create(location, "k INT, n INT, p STRING", partition_by=["p"], options={"bucket": "-1"})
    rows: list[Row] = [{"k": n * 37 % 60, "n": n, "p": "xy"[n % 2]} for n in range(60)]
    for turn in range(4):
        (ours, java)[turn % 2].append(location, rows[turn * 15 : turn * 15 + 15])
    follower = "before"
    assert java.follow(location, follower, {"scan.mode": "latest-full"})["plans"]
    result = ours.load(location).compact(spark, order_strategy=strategy, order_by=["k", "n"])
    assert [snapshot.commit_kind for snapshot in result.snapshots] == ["OVERWRITE"]
    assert ours.load(location).files().num_rows == 2
    for engine in (java, pypaimon):
        assert engine.read(location) == sort_rows(rows)
        assert engine.read(location, snapshot=4) == sort_rows(rows)
    assert not [split for plan in java.follow(location, follower)["plans"] for split in plan["splits"]]
    more: list[Row] = [{"k": n, "n": n, "p": "x"} for n in range(100, 110)]
    java.append(location, more)
    java.ask("compact", location)
    for reader in (ours, java, pypaimon):
        assert reader.read(location) == sort_rows([*rows, *more])


BUCKETS: Final = {"bucket": "2", "bucket-key": "n", "bucket-append-ordered": "false", "write-only": "true"}


@pytest.mark.parametrize("feature", ["none", "deletion-vectors.enabled", "row-tracking.enabled", "buckets"])
def test_java_and_we_cluster_one_table_in_turn(
    spark: SparkSession, java: JavaPaimon, pypaimon: Engine, location: Path, feature: str
) -> None:
    options = {"clustering.incremental": "true", "clustering.columns": "k", "num-sorted-run.compaction-trigger": "2"}
    options |= {} if feature == "none" else BUCKETS if feature == "buckets" else {feature: "true"}
    ours.create(location, "k INT, n INT, p STRING", partition_by=["p"], options=options)
    rows: list[Row] = []
    seen, kinds = set(), []
    for turn in range(6):
        count = 40 if turn else 2_000 if feature == "buckets" else 400
        new: list[Row] = [{"k": n * 37 % 61, "n": turn * 1_000 + n, "p": "xy"[n % 2]} for n in range(count)]
        rows += new
        ours.append(location, new[: count // 2])
        java.append(location, new[count // 2 :])
        ours.load(location).delete(f"n = {turn * 1_000 + 7}")
        rows = [row for row in rows if row["n"] != turn * 1_000 + 7]
        follower = f"before {turn}"
        assert java.follow(location, follower, {"scan.mode": "latest-full"})["plans"]
        strategy = "full" if turn > 3 else "minor"
        dry = ours.load(location).compact(strategy=strategy, dry_run=True)
        planned = {row.partition: row.files_in for row in dry.partitions if row.files_in}
        before = ours.load(location).files()
        if turn % 2 and feature == "buckets":
            java.ask("compact", location, full=strategy == "full")
        elif turn % 2:
            picked = java.ask("cluster", location, full=strategy == "full")
            assert {f"p={each['partition']['p']}": len(each["files"]) for each in picked} == planned
        else:
            result = ours.load(location).compact(spark, strategy=strategy)
            assert {row.partition: row.files_in for row in result.partitions if row.files_in} == planned
        after = ours.load(location).files()
        kept = set(after["file_path"].to_pylist())
        gone = (f"p={row['partition'][1:-1]}" for row in before.to_pylist() if row["file_path"] not in kept)
        # Java takes the new files of a bucket in the order of a hash set.
        if feature != "buckets" or turn % 2 == 0 or strategy == "full":
            assert Counter(gone) == planned
        kinds.append(ours.load(location).snapshots()["commit_kind"].to_pylist()[-1])
        seen |= set(after["level"].to_pylist())
        for reader in (ours, java, pypaimon):
            assert reader.read(location) == sort_rows(rows)
        assert not [split for plan in java.follow(location, follower)["plans"] for split in plan["splits"]]
        assert not ours.load(location).inspect.fsck().findings
    assert seen - {1} == {0, 2}
    assert feature == "buckets" or 1 in seen
    assert kinds[-2:] == ["COMPACT", "COMPACT"]
    assert kinds.count("COMPACT") >= (3 if feature == "buckets" else 4)
