"""Which Python runs the tasks, decided before the first of them fails."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.errors import UnsupportedFeatureError
from penstock.spark import python_worker
from penstock.spark import ship as shipping
from penstock.spark.executor_probe import ExecutorPython, look, python_kind
from penstock.spark.python_worker import begin_to_ensure, ensure_python_worker


class Conf:
    def __init__(self, values: dict[str, str]) -> None:
        self._values = values

    def get(self, key: str) -> str | None:
        return self._values.get(key)


def session(python: str, master: str = "local[2]", application: str = "app-1", **conf: str) -> Any:
    """Return as much of a session as is asked for the Python of its tasks."""
    values = {key.replace("__", "."): value for key, value in conf.items()}
    context = SimpleNamespace(master=master, pythonExec=python, applicationId=application, getConf=lambda: Conf(values))
    return SimpleNamespace(sparkContext=context)


@pytest.fixture
def bare_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return an executable that cannot import penstock; nobody has chosen a Python by the environment."""
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    path = tmp_path / "python3"
    path.write_text("#!/bin/sh\nexit 1\n")
    path.chmod(0o755)
    return str(path)


def test_the_drivers_python_runs_the_tasks_if_none_is_configured(bare_python: str) -> None:
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
def test_executors_of_a_cluster_are_asked_once_for_each_application(
    bare_python: str, master: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def ask(context: Any) -> ExecutorPython:
        asked.append(context.applicationId)
        return ExecutorPython([("python on machine 'a'", python_kind(), ())])

    monkeypatch.setattr(python_worker, "ask_executors", ask)
    monkeypatch.setattr(python_worker, "_READY", set())
    spark = session(bare_python, master=master)
    for _ in range(2):
        ensure_python_worker(spark)
    ensure_python_worker(session(bare_python, master=master, application="app-2"))
    assert asked == ["app-1", "app-2"]
    assert spark.sparkContext.pythonExec == bare_python


def test_executors_are_asked_ahead_by_a_thread_whose_answer_serves_who_needs_it(
    bare_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    begun, answered = threading.Event(), threading.Event()

    def ask(_: Any) -> ExecutorPython:
        asked.append(threading.current_thread().name)
        begun.set()
        assert answered.wait(30)
        return ExecutorPython([("python on machine 'a'", python_kind(), ())])

    monkeypatch.setattr(python_worker, "ask_executors", ask)
    monkeypatch.setattr(python_worker, "_READY", set())
    spark = session(bare_python, master="yarn")
    begin_to_ensure(spark)
    assert begun.wait(30)
    threading.Timer(0.1, answered.set).start()
    ensure_python_worker(spark)
    begin_to_ensure(spark)
    assert asked == ["penstock executors"]


def test_question_ahead_that_fails_is_asked_again_by_who_needs_the_answer(
    bare_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking = ExecutorPython([("python on machine 'a'", python_kind(), ("penstock",))])
    asked: list[str] = []

    def ask(_: Any) -> ExecutorPython:
        asked.append(threading.current_thread().name)
        return lacking

    monkeypatch.setattr(python_worker, "ask_executors", ask)
    monkeypatch.setattr(python_worker, "_READY", set())
    spark = session(bare_python, master="yarn")
    begin_to_ensure(spark)
    with pytest.raises(UnsupportedFeatureError, match="cannot import penstock"):
        ensure_python_worker(spark)
    assert "MainThread" in asked


def test_executors_that_lack_a_module_are_named_with_the_line_that_sends_it(
    bare_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [
        ("/usr/bin/python3 on machine 'a'", python_kind(), ()),
        ("/usr/bin/python3 on machine 'b'", python_kind(), ("obstore", "penstock")),
        ("/usr/bin/python3 on machine 'c'", python_kind(), ("pyarrow",)),
    ]
    monkeypatch.setattr(python_worker, "ask_executors", lambda _: ExecutorPython(answers))
    monkeypatch.setattr(python_worker, "_READY", set())
    with pytest.raises(UnsupportedFeatureError) as raised:
        ensure_python_worker(session(bare_python, master="yarn"))
    assert str(raised.value) == (
        "the executors cannot import penstock, pyarrow, obstore (their Python: /usr/bin/python3 on machine 'b'): call "
        "penstock.ship(spark) first, which sends what is missing from here, or install penstock on each machine"
    )


def test_this_python_has_all_that_tasks_import() -> None:
    ((place, kind, missing),) = look(("penstock", "pyarrow", "backports.zstd", "no.such", "nosuch"), ("no.such",), [])
    assert place.startswith(sys.executable)
    assert kind == python_kind()
    assert missing == ("no.such", "nosuch")


def test_importing_what_spark_needs_imports_no_pandas() -> None:
    code = "import sys, penstock.spark.exports; print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"


def test_the_check_of_a_streams_columns_imports_no_pandas(tmp_path: Path) -> None:
    code = (
        "import sys; from penstock import Catalog; from penstock.spark.stream.sink import check_fits\n"
        "from pyspark.sql.types import LongType, StructType\n"
        "catalog = Catalog(sys.argv[1]); catalog.create_database('d')\n"
        "table = catalog.create_table('d.t', 'id BIGINT')\n"
        "check_fits(StructType().add('id', LongType()), table._handle.ref); print('pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"


def test_executors_of_another_kind_get_nothing(bare_python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [
        ("python on machine 'a'", python_kind(), ("penstock",)),
        ("python on machine 'b'", "cpython-311 on linux-riscv64", ()),
        ("python on machine 'c'", "cpython-311 on linux-riscv64", ()),
        ("python on machine 'd'", "cpython-312 on linux-x86_64", ()),
    ]
    monkeypatch.setattr(shipping, "ask_executors", lambda *_: ExecutorPython(answers))
    with pytest.raises(UnsupportedFeatureError) as raised:
        shipping.ship(session(bare_python, master="yarn"))
    assert str(raised.value) == (
        f"packages of this Python, {python_kind()}, cannot be sent to executors with cpython-311 on linux-riscv64 "
        "(python on machine 'b'), cpython-312 on linux-x86_64 (python on machine 'd'): install penstock on "
        "the machines of each kind, with the same version of Python everywhere, and set PYSPARK_PYTHON to its path"
    )


def test_archive_has_the_packages_and_no_tests_of_theirs(tmp_path: Path) -> None:
    path = tmp_path / "sent.zip"
    shipping.write_archive(path, ("penstock", "fastavro"))
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "sent")
    assert {name.partition("/")[0] for name in names if ".dist-info" not in name} == {
        "fastavro",
        "penstock",
        "pyspark_penstock",
    }
    assert [name for name in names if "__pycache__" in name or "/tests/" in name] == []
    there = subprocess.run(
        [sys.executable, "-c", "import penstock, fastavro; print(penstock.__file__, fastavro.__file__)"],
        check=True,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(tmp_path / "sent")},
    )
    assert there.stdout.count(str(tmp_path)) == 2
