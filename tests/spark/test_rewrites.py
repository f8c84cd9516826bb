"""Rewrites that run on Spark change only what they are meant to change, and no row may break a rule because of them."""

from __future__ import annotations

import itertools
import shutil
from typing import TYPE_CHECKING

import pytest
from tests.rewrites import REWRITES, SPARK_REWRITES, World

import penstock
from penstock.io.local import LocalFileIO

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

_NAMES = itertools.count()


def test_a_rewrite_on_spark_changes_only_what_it_is_meant_to_change(spark: SparkSession, tmp_path: Path) -> None:
    _run(spark, tmp_path, seed=1, steps=3)


def test_a_rewrite_on_spark_leaves_rows_that_vectors_delete_out(spark: SparkSession, tmp_path: Path) -> None:
    _run(spark, tmp_path, seed=2, steps=3, deletes=True)


def test_a_rewrite_on_spark_keeps_the_ids_of_rows(spark: SparkSession, tmp_path: Path) -> None:
    _run(spark, tmp_path, seed=3, steps=3, tracked=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 125))
@pytest.mark.parametrize("deletes", [False, True])
def test_hundreds_of_rewrites_on_spark(spark: SparkSession, tmp_path: Path, seed: int, *, deletes: bool) -> None:
    _run(spark, tmp_path, seed, steps=8, deletes=deletes, tracked=seed % 3 == 0)


def _run(
    spark: SparkSession, folder: Path, seed: int, steps: int, *, deletes: bool = False, tracked: bool = False
) -> None:
    def catalog(name: str) -> penstock.Catalog:
        return penstock.Catalog(folder / name)

    def copy(source: str, target: str) -> None:
        shutil.copytree(folder / source, folder / target)

    world = World(seed, catalog, copy, LocalFileIO, buckets=(-1,), deletes=deletes, tracked=tracked)
    world.spark, world.spark_name = spark, f"rewrites{next(_NAMES)}"
    penstock.attach(spark, folder / world.name, name=world.spark_name)
    for step in range(steps):
        world.step(SPARK_REWRITES if step % 4 else REWRITES)
