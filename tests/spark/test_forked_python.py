"""The Python that Spark's session of the tests starts: as the usual one, whether forked or not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest
from tests.spark.forked_python import forked_python

if TYPE_CHECKING:
    from collections.abc import Iterator

HOME = ["-m", "pyspark.find_spark_home"]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with forked_python(tmp_path_factory.mktemp("python")) as executable:
        yield executable


def run(python: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, *arguments],
        env={**os.environ, **environment},
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_modules_of_pyspark_run_with_the_environment_of_who_asks(python: str) -> None:
    asked = {key: value for key, value in os.environ.items() if key != "SPARK_HOME"}
    found = run(python, *HOME, **asked)
    assert (found.returncode, found.stdout.strip()) == (0, str(Path(pyspark.__file__).parent))
    assert run(python, *HOME, SPARK_HOME="/elsewhere").stdout.strip() == "/elsewhere"


def test_what_customizes_a_python_that_starts_does_so_in_a_fork(python: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os; print('first'); os.environ['SPARK_HOME'] = '/set'")
    found = run(python, *HOME, PYTHONPATH=str(tmp_path))
    assert found.stdout.split() == ["first", "/set"]


def test_a_module_that_fails_ends_with_its_code_and_says_why(python: str) -> None:
    found = run(python, "-m", "pyspark.none")
    assert found.returncode == 1
    assert "No module named pyspark.none" in found.stderr


def test_anything_else_is_run_by_the_usual_python(python: str) -> None:
    found = run(python, "-c", "import sys; print(sys.executable); sys.exit(7)")
    assert (found.returncode, found.stdout.strip()) == (7, sys.executable)


def test_without_its_server_it_is_the_usual_python(tmp_path: Path) -> None:
    with forked_python(tmp_path) as executable:
        pass
    assert run(executable, *HOME).stdout.strip() == str(Path(pyspark.__file__).parent)
