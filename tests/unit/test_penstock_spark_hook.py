"""The module that Python imports at its start, without PySpark."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import penstock_spark_hook as hook

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {"PYTHONPATH": str(ROOT / "src")}


class Settings:
    def __init__(self, *lines: str) -> None:
        self.lines = lines

    def toDebugString(self) -> str:  # noqa: N802 - PySpark's name
        return "\n".join(self.lines)


def session_of(*settings: str) -> Any:
    return SimpleNamespace(sparkContext=SimpleNamespace(_conf=Settings(*settings)))


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    found: list[object] = []
    monkeypatch.setattr("penstock.serve", found.append)
    return found


def test_it_serves_the_first_session_of_an_application_whose_settings_name_a_catalog(served: list[object]) -> None:
    class Session:
        def __init__(self, context: object) -> None:
            self.sparkContext = context

    hook.extend(Session)
    context = session_of("spark.master=local", "spark.sql.catalog.lake=penstock.Catalog").sparkContext
    first = Session(context)
    Session(context)
    assert served == [first]


def test_only_the_module_of_sessions_is_extended_where_one_loader_has_several(tmp_path: Path) -> None:
    """Spark's scripts import PySpark from an archive, whose loader is one object."""
    with zipfile.ZipFile(tmp_path / "modules.zip", "w") as archive:
        archive.writestr("sessions.py", "class SparkSession: pass\n")
        archive.writestr("other.py", "VALUE = 1\n")
    script = f"""
import sys
sys.path.insert(0, {str(tmp_path / "modules.zip")!r})
import penstock_spark_hook as hook
hook._SESSIONS = "sessions"
import sessions, other
print(sessions.SparkSession.__init__.__name__, other.VALUE, hook.SessionFinder in sys.meta_path)
"""
    done = subprocess.run([sys.executable, "-c", script], env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.stdout == "begin_and_serve 1 False\n", done.stderr


def test_it_does_nothing_where_no_setting_names_a_catalog(served: list[object]) -> None:
    hook.serve_once(session_of("spark.sql.catalog.lake=org.other.Catalog", "spark.app.name=penstock.Catalog job"))
    assert served == []


def test_a_driver_starts_without_the_catalogs_and_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: object) -> None:
        raise ValueError("no Java")

    monkeypatch.setattr("penstock.serve", fail)
    hook.serve_once(session_of("spark.sql.catalog.lake=penstock.Catalog"))
    assert capsys.readouterr().err == "penstock: the catalogs of Spark's settings are missing: no Java\n"


LOADED = """
import sys
site = set(sys.modules)
import penstock_spark_hook
print(*sorted(set(sys.modules) - site))
print(any(each is penstock_spark_hook.SessionFinder for each in sys.meta_path))
from importlib.util import find_spec
find_spec("json.tool")
print("pyspark" in sys.modules)
"""


@pytest.mark.parametrize(("setting", "waits"), [("", "True"), ("off", "False")])
def test_it_imports_almost_nothing_and_can_be_turned_off(setting: str, waits: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED],
        env={**ENVIRONMENT, "PENSTOCK_SPARK_HOOK": setting},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded, is_waiting, has_pyspark = done.stdout.splitlines()
    assert set(loaded.split()) <= {"__future__", "penstock_spark_hook"}
    assert [is_waiting, has_pyspark] == [waits, "False"]


def test_the_wheel_has_it_where_python_reads_it() -> None:
    included = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert included["force-include"] == {
        f"src/{name}": name for name in ("penstock_spark_hook.pth", "penstock_spark_hook.py")
    }
    assert (ROOT / "src" / "penstock_spark_hook.pth").read_text("utf-8") == "import penstock_spark_hook\n"
