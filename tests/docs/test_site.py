"""The documentation site builds without a warning: every page is in its navigation, every link and anchor exists."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Final

import pytest
from scripts import site_hooks
from scripts.api_page import load_package
from tests.docs.test_examples import ROOT

import penstock
from penstock.api.operations.declaration import method_name
from penstock.api.procedures import PROCEDURES

if TYPE_CHECKING:
    from pathlib import Path

_OWNERS: Final = (penstock.Catalog, penstock.Table, penstock.TableMaintenance, penstock.TableVersions)
_BUILD: Final = """import gc, sys
gc.disable()  # a third of the time
sys.modules.update(penstock=None, pyarrow=None, pyspark=None)  # which the environment of make site does not have
from mkdocs.__main__ import cli
cli()
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-c", _BUILD, "build", "--strict", "--site-dir", str(directory)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return directory


def test_the_site_builds_without_a_warning(site: Path) -> None:
    assert (site / "index.html").exists()


def test_the_api_page_of_the_site_has_every_exported_name(site: Path) -> None:
    anchors = set(re.findall(r'id="penstock\.(\w+)"', (site / "api.html").read_text("utf-8")))
    assert anchors >= {name for name in penstock.__all__ if not name.startswith("_")}
    text = (site / "api.html").read_text("utf-8")
    # In the table of methods before them.
    assert re.search(r'<a class="autorefs[^>]* href="#penstock.Table.append"', text)
    assert all(
        f'id="penstock.{name}"' in text for name in ("Table.compact", "Catalog.migrate", "TableVersions.rename_tag")
    )


def test_every_page_begins_with_a_sentence() -> None:
    for page in (ROOT / "docs").glob("*.md"):
        if page.name != "index.md":
            first = page.read_text("utf-8").split("\n", maxsplit=1)[1].strip().split("\n\n", maxsplit=1)[0]
            assert re.search(r"[.:?]$", first), f"{page.name} begins with {first!r}"


def test_the_front_page_has_figures_of_the_page_of_benchmarks() -> None:
    table = {
        cells[0].strip(): cells[1:]
        for line in (ROOT / "docs" / "benchmarks.md").read_text("utf-8").splitlines()
        if len(cells := [cell.strip() for cell in line.strip("|").split("|")]) == 5
    }
    parquet, delta = 0, 1
    text = " ".join((ROOT / "docs" / "index.md").read_text("utf-8").split())
    batches, one, scan = (
        table[work] for work in ("micro-batches of 1,000 rows", "select one partition of 100", "scan two columns")
    )
    assert f"**{batches[delta]} x** Delta Lake's speed in micro-batches" in text
    assert f"and {batches[parquet]} x that of Spark's own Parquet sink" in text
    assert f"**{one[parquet]} x** the speed of plain Parquet files" in text
    assert f"and {scan[parquet]} x that of a full scan" in text


def test_the_site_links_to_the_repository_that_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_REPOSITORY_URL", "https://example.com/penstock")
    config = SimpleNamespace(nav=[], repo_url=None)
    site_hooks.on_config(config)
    assert config.repo_url == "https://example.com/penstock"


def test_system_tables_have_the_documented_columns(tmp_path: Path) -> None:
    catalog = penstock.Catalog(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "a INT")
    table.append([{"a": 1}])
    text = (ROOT / "docs" / "system-tables.md").read_text("utf-8")
    sections = text.split("\n## ")[1:]
    names = {name for section in sections for name in section.split("\n", maxsplit=1)[0].split(" and ")}
    with pytest.raises(penstock.NotFoundError) as caught:
        table.inspect.system_table("none")
    assert names == set(str(caught.value).partition("there are ")[2].split(", "))
    for section in sections:
        if section.startswith("audit_log"):
            continue
        name = section.split("\n", maxsplit=1)[0]
        columns = re.findall(r"^\| `(\w+)` \| `(.+)` \|$", section, re.MULTILINE)
        assert columns == [(field.name, str(field.type)) for field in table.inspect.system_table(name).schema], name


def test_pages_with_a_diagram_load_its_script_from_the_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_hooks, "ROOT", tmp_path)
    deep = SimpleNamespace(file=SimpleNamespace(dest_uri="spec/format.html"))
    page = '<head></head><pre class="mermaid">'
    assert site_hooks.on_post_page(page, page=deep) == page  # not fetched
    (tmp_path / ".mermaid" / "1").mkdir(parents=True)
    (tmp_path / ".mermaid" / "1" / "mermaid.min.js").touch()
    assert '<script src="../assets/mermaid.min.js"></script></head>' in site_hooks.on_post_page(page, page=deep)
    assert site_hooks.on_post_page("<head></head>", page=deep) == "<head></head>"


def test_methods_of_operations_have_on_the_site_the_docstrings_of_python() -> None:
    package = load_package()
    methods = {(kind, method_name(each.operation)) for each in PROCEDURES.values() for kind in _OWNERS}
    compared = 0
    for kind, name in methods:
        if (method := vars(kind).get(name)) is not None:
            compared += 1
            site = package[kind.__module__.removeprefix("penstock.")][kind.__name__][name].docstring
            assert site.value == inspect.getdoc(method), f"{kind.__name__}.{name}"
    assert compared >= 20
