"""A project of dbt on the Thrift server, as docs/ways-in.md sets it up, with the real dbt."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.needs import needs
from tests.spark.server_commands import PAGE, of_page, running

from penstock import Catalog
from penstock.spark.versions.facts import VIEWS

if TYPE_CHECKING:
    from penstock import Table

HERE = Path(__file__)
ROOT = HERE.parents[2]
TABLES = ("items", "latest", "by_day", "seen", "history")
DBT = ROOT / ".venv-dbt" / "bin" / "dbt"

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(400),
    needs(VIEWS),
    pytest.mark.skipif(not DBT.exists(), reason="dbt is not installed: make test-dbt installs it"),
]


def _blocks() -> list[str]:
    section = PAGE.split("## dbt\n")[1].split("\n## ")[0]
    return re.findall(r"```(?:yaml|jinja)\n(.*?)```", section, re.DOTALL)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return the models and snapshots of this folder, with the settings and macros of the page."""
    folder = tmp_path / "project"
    shutil.copytree(HERE.with_name("dbt_project"), folder)
    profile, settings, macros = _blocks()
    (folder / "profiles.yml").write_text(profile)
    (folder / "dbt_project.yml").write_text(settings)
    (folder / "macros").mkdir()
    (folder / "macros" / "penstock.sql").write_text(macros)
    return folder


def _dbt(project: Path, *words: str) -> None:
    done = subprocess.run(
        [str(DBT), *words, "--profiles-dir", str(project), "--no-use-colors"],
        cwd=project,
        env={**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false", "DO_NOT_TRACK": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]


def _rows(table: Table, *columns: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row[name] for name in columns) for row in table.to_arrow().to_pylist()), key=repr)


def test_a_project_is_built_and_built_again(project: Path, tmp_path: Path) -> None:
    catalog = Catalog(tmp_path / "w", {"penstock.durable": "false"})
    catalog.create_database("default")
    catalog.create_database("shop")
    orders = catalog.create_table("shop.orders", "id BIGINT, item STRING, dt STRING", partition_by=["dt"])
    orders.append([{"id": 1, "item": "pen", "dt": "d1"}, {"id": 2, "item": "ink", "dt": "d2"}])
    command, _ = of_page("dbt")
    with running(command, tmp_path, signal.SIGTERM) as port:
        profile = project / "profiles.yml"
        profile.write_text(profile.read_text().replace("10000", str(port)))
        _dbt(project, "build")
        assert _rows(catalog.load_table("marts.by_day"), "n", "dt") == [(1, "d1"), (1, "d2")]
        tables = {name: catalog.load_table(f"marts.{name}") for name in TABLES}
        orders.update({"item": "pencil"}, where="id = 1")
        orders.append([{"id": 3, "item": None, "dt": "d2"}])
        _dbt(project, "build")
        _dbt(project, "docs", "generate")
    # Replaced in one step, with its history.
    assert _rows(tables["items"], "id", "item", "dt") == [(1, "PENCIL", "d1"), (2, "INK", "d2"), (3, None, "d2")]
    assert tables["items"].snapshots().num_rows > 1
    assert _rows(tables["seen"], "n") == [(2,), (3,)]
    # The partition without new rows is that of the first run.
    assert _rows(tables["by_day"], "n", "dt") == [(1, "d1"), (2, "d2")]
    assert _rows(tables["latest"], "id", "item") == [(1, "PENCIL"), (2, "INK"), (3, None)]
    ended = [row[:2] for row in _rows(tables["history"], "id", "item", "dbt_valid_to") if row[2] is not None]
    assert (len(_rows(tables["history"], "id")), ended) == (4, [(1, "PEN")])
    assert catalog.list_views("marts") == ("named",)
    nodes = json.loads((project / "target" / "catalog.json").read_text())["nodes"]
    assert {key.rpartition(".")[2] for key in nodes} == {*tables, "named"}
    assert list(nodes["model.shop.items"]["columns"]) == ["id", "item", "dt"]
