"""Tables that Delta Lake and Iceberg wrote, with their own JARs, are converted with every row."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bench.iceberg_catalog import compile_catalog
from bench.jars import fetch_peer
from tests.interop.conftest import IS_REQUIRED, EngineMissing
from tests.quick_spark import quick_environment

pytestmark = [pytest.mark.spark, pytest.mark.slow]
ROOT = Path(__file__).parents[2]
COLUMNS = (
    "`id` BIGINT, `price` DECIMAL(12, 2), `name` STRING, `is_new` BOOLEAN, `at` TIMESTAMP(6) WITH LOCAL TIME ZONE,"
    " `dt` DATE"
)


def jars() -> list[Path]:
    """Return the JARs of both, or skip."""
    try:
        iceberg = fetch_peer("iceberg")
        return [*fetch_peer("delta"), *iceberg, compile_catalog(iceberg)]
    except OSError as error:
        if IS_REQUIRED:
            pytest.fail(f"PENSTOCK_REQUIRE_INTEROP=1, but {error}", pytrace=False)
        raise EngineMissing(str(error)) from error


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("lakes")
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.lakes_script", folder, ",".join(map(str, jars()))],
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
        cwd=ROOT,
        env={**os.environ, **quick_environment(), "PYSPARK_PYTHON": sys.executable},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize(
    ("name", "partition_by"), [("delta", ["dt"]), ("plain", ["dt"]), ("by_day", []), ("chosen", ["dt"])]
)
def test_a_table_has_the_rows_of_the_one_it_was_converted_from(
    converted: dict[str, dict[str, Any]], name: str, partition_by: list[str]
) -> None:
    found = converted[name]
    assert (found["rows"], found["missing"], found["extra"]) == (270, 0, 0)
    assert found["partition_by"] == partition_by
    assert found["snapshots"] == 1
    assert found["columns"] == COLUMNS
