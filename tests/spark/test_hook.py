"""Drivers that name a catalog in their settings, and do not import Penstock."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.quick_spark import quick_environment, quick_settings
from tests.standalone_cluster import SPARK_HOME

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

SOURCES = Path(__file__).parents[2] / "src"
JOB = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE DATABASE IF NOT EXISTS lake.d")
spark.sql("CREATE TABLE IF NOT EXISTS lake.d.t (n BIGINT)")
spark.sql("INSERT INTO lake.d.t VALUES (1), (2)")
print("rows", spark.newSession().sql("SELECT count(*) FROM lake.d.t").first()[0])
"""
SHELL = 'spark.sql("INSERT INTO lake.d.t VALUES (3)"); print("rows", spark.table("lake.d.t").count())\n'


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return an environment whose Python reads the .pth file, as an environment with the wheel does."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "penstock_spark_hook.pth").write_bytes((SOURCES / "penstock_spark_hook.pth").read_bytes())
    (site / "sitecustomize.py").write_text(f"import site\nsite.addsitedir({str(site)!r})\n")
    return {
        **os.environ,
        **quick_environment(),
        "PYTHONPATH": f"{site}{os.pathsep}{SOURCES}",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def run(program: str, *arguments: str, folder: Path, environment: dict[str, str], typed: str = "") -> tuple[str, str]:
    """Run a program of Spark with a catalog in its settings; return its output and the end of its errors."""
    settings = {
        **quick_settings(),
        "spark.sql.catalog.lake": "penstock.Catalog",
        "spark.sql.catalog.lake.warehouse": str(folder / "w"),
        "spark.sql.catalog.lake.penstock.durable": "false",
    }
    kept = {key: value for key, value in environment.items() if key != "PYSPARK_SUBMIT_ARGS"}
    done = subprocess.run(
        [
            str(SPARK_HOME / "bin" / program),
            *("--master", "local[2]"),
            *(part for key, value in settings.items() for part in ("--conf", f"{key}={value}")),
            *arguments,
        ],
        cwd=folder,
        env={**kept, "SPARK_HOME": str(SPARK_HOME)},
        input=typed,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout, done.stderr[-3000:]


def test_jobs_and_the_shell_have_the_catalogs_of_their_settings(tmp_path: Path, environment: dict[str, str]) -> None:
    job = tmp_path / "job.py"
    job.write_text(JOB)
    output, errors = run("spark-submit", str(job), folder=tmp_path, environment=environment)
    assert "rows 2" in output, errors
    # Without a terminal, Python runs what makes the session of the shell only if it is told to be interactive.
    interactive = {**environment, "PYSPARK_DRIVER_PYTHON_OPTS": "-i"}
    output, errors = run("pyspark", folder=tmp_path, environment=interactive, typed=SHELL)
    assert "rows 3" in output, errors


def test_a_job_without_the_hook_does_not_have_them(tmp_path: Path, environment: dict[str, str]) -> None:
    job = tmp_path / "job.py"
    job.write_text(JOB)
    turned_off = {**environment, "PENSTOCK_SPARK_HOOK": "off"}
    output, errors = run("spark-submit", str(job), folder=tmp_path, environment=turned_off)
    assert "rows" not in output
    assert "penstock.Catalog" in output + errors
