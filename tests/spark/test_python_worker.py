"""Which Python runs the tasks, decided before the first of them fails."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.errors import UnsupportedFeatureError
from penstock.spark.python_worker import ensure_python_worker


class Conf:
    def __init__(self, values: dict[str, str]) -> None:
        self._values = values

    def get(self, key: str) -> str | None:
        return self._values.get(key)


def session(python: str, master: str = "local[2]", **conf: str) -> Any:
    """Return as much of a session as is asked for the Python of its tasks."""
    values = {key.replace("__", "."): value for key, value in conf.items()}
    context = SimpleNamespace(master=master, pythonExec=python, getConf=lambda: Conf(values))
    return SimpleNamespace(sparkContext=context)


@pytest.fixture
def bare_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return an executable that cannot import penstock; nobody has chosen a Python by the environment."""
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    path = tmp_path / "python3"
    path.write_text("#!/bin/sh\nexit 1\n")
    path.chmod(0o755)
    return str(path)


def test_driver_runs_the_tasks_where_nobody_chose_a_python(bare_python: str) -> None:
    for missing in (bare_python, str(Path(bare_python).with_name("nowhere"))):
        spark = session(missing)
        ensure_python_worker(spark)
        assert spark.sparkContext.pythonExec == sys.executable


def test_chosen_python_that_cannot_run_tasks_is_refused_with_the_cure(
    bare_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"'{bare_python}', which cannot import penstock and pyarrow: set PYSPARK_PYTHON .* to {sys.executable}"
    with pytest.raises(UnsupportedFeatureError, match=text) as raised:
        ensure_python_worker(session(bare_python, spark__pyspark__python=bare_python))
    assert "\n" not in str(raised.value)
    monkeypatch.setenv("PYSPARK_PYTHON", bare_python)
    spark = session(bare_python)
    with pytest.raises(UnsupportedFeatureError, match=text):
        ensure_python_worker(spark)
    assert spark.sparkContext.pythonExec == bare_python


def test_python_that_can_import_penstock_stays(bare_python: str) -> None:
    Path(bare_python).write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    spark = session(bare_python)
    ensure_python_worker(spark)
    assert spark.sparkContext.pythonExec == bare_python


def test_drivers_own_python_is_not_even_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("started")

    monkeypatch.setattr("penstock.spark.python_worker.subprocess.run", refuse)
    link = shutil.which(sys.executable)
    assert link is not None
    spark = session(link)
    ensure_python_worker(spark)
    assert spark.sparkContext.pythonExec == link


@pytest.mark.parametrize("master", ["yarn", "spark://somewhere:7077", "k8s://somewhere"])
def test_cluster_is_left_alone(bare_python: str, master: str) -> None:
    spark = session(bare_python, master=master)
    ensure_python_worker(spark)
    assert spark.sparkContext.pythonExec == bare_python
