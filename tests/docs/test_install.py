"""What docs/install.md says: its packages are those of pyproject.toml, and its settings make Spark quiet."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING, Final

import pytest
from tests.docs.test_examples import ROOT, examples_of

if TYPE_CHECKING:
    from pathlib import Path

PAGE: Final = (ROOT / "docs" / "install.md").read_text("utf-8")
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
STREAM: Final = """
import penstock
catalog = penstock.attach(spark, "warehouse")
spark.sql("CREATE DATABASE penstock.shop")
spark.sql("CREATE TABLE penstock.shop.numbers (id BIGINT)")
spark.sql("INSERT INTO penstock.shop.numbers SELECT id FROM range(1000)")
numbers = catalog.load_table("shop.numbers")
copy = catalog.create_table("shop.copy", "id BIGINT")
query = copy.write_stream(numbers.read_stream(spark), checkpoint="checkpoint", trigger={"availableNow": True})
query.awaitTermination()
print(copy.to_arrow().num_rows)
spark.stop()
"""


def _rows(heading: str) -> list[list[str]]:
    section = PAGE.partition(heading)[2].partition("\n\n#")[0]
    return [
        [cell.strip(" `") for cell in line.strip("|").split("|")]
        for line in re.findall(r"^\|.*\|$", section, re.MULTILINE)
    ][2:]


def _name(requirement: str) -> str:
    return re.match(r"[\w-]+", requirement)[0]


def test_every_dependency_has_a_reason_and_every_extra_a_row() -> None:
    extras = PROJECT["optional-dependencies"]
    listed = [*PROJECT["dependencies"], *(each for extra in extras.values() for each in extra)]
    needed = {_name(each) for each in listed} - {"penstock"}
    rows = _rows("## What is installed")
    assert {row[0] for row in rows} == needed
    assert {row[0] for row in rows if not row[1]} == {_name(each) for each in PROJECT["dependencies"]}
    assert all(row[2] and row[4] for row in rows)
    assert {row[0] for row in _rows("the command.")} == extras.keys()


def test_the_dates_of_releases_are_those_of_the_lock_file() -> None:
    dates: dict[str, str] = {}
    for package in tomllib.loads((ROOT / "uv.lock").read_text("utf-8"))["package"]:
        files = [*package.get("wheels", ()), package.get("sdist", {})]
        released = max(file.get("upload-time", "") for file in files)[:10]
        dates[package["name"]] = max(released, dates.get(package["name"], ""))
    assert {row[0]: row[5] for row in _rows("## What is installed")}.items() <= dates.items()


@pytest.mark.spark
@pytest.mark.cluster
def test_the_settings_leave_no_warning_of_spark(tmp_path: Path) -> None:
    (settings,) = examples_of()["docs/install.md"]["python"]
    script = settings.replace("spark.stop()\n", STREAM)
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "1000\n"
    assert "[Stage" not in done.stderr
    assert [line for line in done.stderr.splitlines() if "WARN" in line and "incubator" not in line] == [
        'Setting default log level to "WARN".'
    ]
