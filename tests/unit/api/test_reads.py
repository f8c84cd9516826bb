"""Rows for pandas, polars and DuckDB, and what notebooks show."""

from __future__ import annotations

import datetime as dt
import re
import sys
import uuid
from decimal import Decimal
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock import Catalog, InvalidFilterError, Table, UnsupportedFeatureError
from penstock.api import lazy

if TYPE_CHECKING:
    from collections.abc import Callable

COLUMNS = "k BIGINT, price DECIMAL(10, 2), at TIMESTAMP(3), tags ARRAY<STRING>, dt STRING"
ROWS = [
    {"k": 1, "price": Decimal("2.50"), "at": dt.datetime(2026, 1, 1, 10), "tags": ["a", "b"], "dt": "x"},  # noqa: DTZ001
    {"k": 2, "price": None, "at": None, "tags": [], "dt": "y"},
]


@pytest.fixture
def table() -> Table:
    catalog = Catalog(f"memory://{uuid.uuid4()}/w")
    catalog.create_database("d")
    table = catalog.create_table("d.t", COLUMNS, partition_by="dt")
    table.append(ROWS[:1])
    table.append(ROWS[1:])
    return table


def test_pandas_gets_the_rows(table: Table) -> None:
    frame = table.to_pandas(["k", "dt"], "dt = 'y'")
    assert isinstance(frame, pd.DataFrame)
    assert frame.to_dict("records") == [{"k": 2, "dt": "y"}]
    assert len(table.to_pandas(snapshot_id=1)) == 1


def test_polars_gets_the_rows(table: Table) -> None:
    frame = table.to_polars()
    assert frame.to_dicts() == ROWS
    assert frame.schema["price"] == pl.Decimal(10, 2)
    assert table.to_polars("k", limit=1).to_dicts() == [{"k": 1}]


def test_duckdb_queries_the_rows_more_than_once(table: Table) -> None:
    with duckdb.connect() as connection:
        relation = table.to_duckdb(filter="k > 0", connection=connection)
        assert relation.aggregate("count(*), max(k)").fetchall() == [(2, 2)]
        assert relation.filter("dt = 'x'").project("price").fetchall() == [(Decimal("2.50"),)]
    assert table.to_duckdb("k").fetchall() == [(1,), (2,)]


def test_other_libraries_accept_the_table(table: Table) -> None:
    assert pa.table(table) == table.to_arrow()
    assert pl.DataFrame(table).equals(table.to_polars())


@pytest.mark.parametrize(
    "expression",
    [
        pc.field("dt") == "x",
        pc.field("k").isin([2, 3]),
        ~pc.field("k").isin([2, 3]),
        pc.field("price").is_null() | (pc.field("k") < 1),
        (pc.field("price") > 2.4) & (pc.field("dt") <= "x"),
        pc.field("at") == dt.datetime(2026, 1, 1, 10),  # noqa: DTZ001
    ],
)
def test_an_arrow_expression_is_a_filter(table: Table, expression: pc.Expression) -> None:
    assert table.to_arrow(filter=expression) == table.to_arrow().filter(expression)
    assert sum(batch.num_rows for batch in table.follow(filter=expression, once=True)) == 1
    assert table.explain_values(expression)["files"] == 1


def test_an_arrow_expression_that_is_no_filter_is_refused(table: Table) -> None:
    for call in (table.to_arrow, table.to_batches, table.explain, table.follow):
        with pytest.raises(InvalidFilterError, match=r"table d\.t: .*greater\(k, price\): columns compare with values"):
            call(filter=pc.field("k") > pc.field("price"))
    with pytest.raises(InvalidFilterError, match="unknown column 'q'"):
        table.to_arrow(filter=pc.field("q") > 1)


def test_rows_of_every_kind_are_appended(table: Table) -> None:
    for rows in (
        table.to_pandas(),
        table.to_polars(),
        table.to_duckdb().to_arrow_table(),
        table.to_arrow().to_pylist(),
    ):
        before = table.to_arrow().num_rows
        table.append(rows)
        assert table.to_arrow().num_rows == before + 2


def test_a_library_that_is_missing_is_named(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    def find_none(name: str) -> None:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(lazy.importlib, "import_module", find_none)
    with pytest.raises(UnsupportedFeatureError, match="polars is not installed: pip install polars"):
        table.to_polars()


def test_a_notebook_shows_columns_and_state(table: Table) -> None:
    shown = table._repr_html_()
    assert "<td>price</td><td>DECIMAL(10, 2)</td>" in shown
    assert "<td>dt</td><td>STRING</td><td>partition</td>" in shown
    assert "Snapshot(id=2" in shown
    assert "ARRAY&lt;STRING&gt;" in shown
    assert re.search(r"; \d files, \d+\.\d KiB", shown)
    assert "the first " in shown


def test_a_notebook_shows_a_table_whose_rows_cannot_be_read(table: Table) -> None:
    (path,) = table.files().slice(0, 1)["file_path"].to_pylist()
    table._ref.file_io.delete(path)
    assert "its latest snapshot cannot be read" in table._repr_html_()


def test_results_plans_and_namespaces_are_shown_in_a_few_lines(table: Table) -> None:
    plan = table.explain()
    assert plan._repr_html_().startswith("<pre>snapshot ")  # type: ignore[attr-defined]
    assert repr(plan) == plan
    for result in (
        table.latest_snapshot(), table.delete("k = -1"), table.compact(), table.expire_snapshots(),
        table.inspect.fsck(), table.inspect.summary(), table.remove_orphan_files(dry_run=True),
        table.rollback_to(snapshot_id=1, dry_run=True), table.preview.truncate(),
        table.maintenance.compact_manifests(),
    ):  # fmt: skip
        name = type(result).__name__
        assert result._repr_html_().startswith(f"<strong>{name}</strong><table><tr><td>")  # type: ignore[union-attr]
        assert repr(result).startswith(f"{name}(")
    for namespace in (table.versions, table.inspect, table.maintenance, table.preview):
        assert repr(namespace).startswith(f"<{type(namespace).__name__} of {table.name}: ")


def test_a_result_of_many_files_is_short(table: Table) -> None:
    for number in range(30):
        table.append(table.to_arrow(limit=1).set_column(0, table.schema.field_names[0], [[number + 100]]))
    changed = table.delete(f"{table.schema.field_names[0]} >= 100")
    assert len(changed.files) >= 30
    assert len(repr(changed)) < 1_000
    assert f"... {len(changed.files)} in all" in repr(changed)
    assert f"... {len(changed.files)} in all" in changed._repr_html_()


def test_a_notebook_shows_tables_of_metadata_with_their_first_and_last_rows(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = table.snapshots()
    assert plain.schema.metadata is None or b"penstock.title" not in plain.schema.metadata
    formatters: dict[type, Callable[[pa.Table], str | None]] = {}
    formatter = SimpleNamespace(for_type=formatters.__setitem__)
    shell = SimpleNamespace(display_formatter=SimpleNamespace(formatters={"text/html": formatter}))
    library: Any = ModuleType("IPython")
    library.get_ipython = lambda: shell
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    monkeypatch.setitem(sys.modules, "IPython", library)
    for number in range(30):
        table.maintenance.reset_consumer(f"c{number:02}", 1)
    shown = {
        "history of d.t": table.inspect.history(), "snapshots of d.t": table.snapshots(),
        "files of d.t": table.files(), "lag of readers of d.t": table.inspect.lag(),
    }  # fmt: skip
    for title, rows in shown.items():
        html = formatters[pa.Table](rows)
        assert html is not None
        assert html.startswith(f"<strong>{title}</strong> {rows.num_rows} rows<table><tr><th>{rows.column_names[0]}")
    assert table.snapshots() == plain
    consumers = formatters[pa.Table](table.inspect.consumers())
    assert consumers is not None
    assert consumers.count("<tr>") == 22
    assert [name in consumers for name in ("c09", "c10", "c19", "c20")] == [True, False, False, True]
    assert formatters[pa.Table](pa.table({"a": [1]})) is None


def test_a_notebook_shows_the_databases_of_a_catalog() -> None:
    catalog = Catalog(f"memory://{uuid.uuid4()}/w")
    catalog.create_database("shop")
    assert "<td>shop</td>" in catalog._repr_html_()
