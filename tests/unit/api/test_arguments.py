"""What people give first: numbers as options, one name for a list, rows and filters of other libraries."""

import datetime as dt
import itertools
import re
import runpy
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from penstock import Catalog, Table
from penstock.catalog.changes import AddColumn, SetOption
from penstock.errors import (
    InvalidFilterError,
    InvalidOptionError,
    InvalidSchemaError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)

NUMBERS = itertools.count()


@pytest.fixture
def catalog() -> Catalog:
    made = Catalog(f"memory://given-{next(NUMBERS)}")
    made.create_database("d")
    return made


@pytest.fixture
def table(catalog: Catalog) -> Table:
    return catalog.create_table("d.t", "id INT, dt STRING", partition_by="dt")


def anything(value: Any) -> Any:
    """What a type checker would not let through."""
    return value


def test_options_may_be_numbers_and_truth_values(catalog: Catalog) -> None:
    options = {"bucket": 4, "bucket-key": "id", "write-only": True}
    table = catalog.create_table("d.q", "id INT", options=options)
    assert table.options == {"bucket": "4", "bucket-key": "id", "write-only": "true"}
    assert table.with_options({"scan.snapshot-id": 3}).options["scan.snapshot-id"] == "3"
    assert catalog.alter_table("d.q", SetOption(key="bucket", value=anything(8))).options["bucket"] == "8"
    with pytest.raises(InvalidOptionError, match="option 'bucket': expected a string, a number or a boolean"):
        table.with_options(anything({"bucket": [4]}))
    with pytest.raises(InvalidOptionError, match="expected a mapping such as"):
        table.with_options(anything("bucket=4"))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("target-file-size", "big"),
        ("scan.snapshot-id", "x"),
        ("file.format", "csv"),
        ("consumer.expiration-time", "soon"),
    ],
)
def test_a_handle_with_a_value_that_is_none_for_its_key_is_refused_at_once(
    catalog: Catalog, key: str, value: str
) -> None:
    table = catalog.create_table("d.q", "id INT")
    with pytest.raises(InvalidOptionError, match=f"option '{key}' = '{value}': expected"):
        table.with_options({key: value})


def test_keys_in_options_that_are_no_mapping_are_not_shown(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="expected a mapping") as caught:
        Catalog(tmp_path, anything((("s3.secret-key", "SECRET"),)))
    assert "SECRET" not in str(caught.value)


def test_a_place_may_be_a_path(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    catalog.create_database("d")
    catalog.create_table("d.t", "id INT")
    assert Table.at(tmp_path / "d.db" / "t").schema.field_names == ("id",)


def test_a_single_name_is_a_list_of_one_name(catalog: Catalog, table: Table) -> None:
    assert table.schema.partition_keys == ("dt",)
    table.append([{"id": 1, "dt": "a"}, {"id": 2, "dt": "b"}])
    assert table.to_arrow("id").column_names == ["id"]
    assert sorted(table.to_batches("id").read_all()["id"].to_pylist()) == [1, 2]
    table.drop_partitions("dt=a")
    assert table.to_arrow("id")["id"].to_pylist() == [2]
    table.overwrite([{"id": 3, "dt": "b"}], partition="dt=b")
    assert table.to_arrow("id")["id"].to_pylist() == [3]
    with pytest.raises(InvalidOptionError, match=r"partition 'a': expected \{'dt': '2026-01-01'\} or 'dt=2026-01-01'"):
        table.drop_partitions("a")
    timed = catalog.create_table("d.w", "at TIMESTAMP(3)", watermark="at")
    assert timed.options["schema.watermark.0.rowtime"] == "at"


@pytest.mark.parametrize("given", [lambda row: row, 5, [("id", "=", 1)]])
def test_a_filter_of_another_type_is_refused_with_an_example(table: Table, given: object) -> None:
    with pytest.raises(InvalidFilterError, match=r"expected text such as .*, penstock\.col.*, or pyarrow"):
        table.to_arrow(filter=anything(given))
    with pytest.raises(InvalidFilterError, match="expected text such as"):
        table.follow(filter=anything(given))


def test_a_schema_change_as_text_is_refused_and_the_error_names_penstock_sql(catalog: Catalog, table: Table) -> None:
    with pytest.raises(InvalidSchemaError, match=r"table d\.t: cannot apply a str: .*AddColumn.*penstock\.sql"):
        catalog.alter_table("d.t", anything("ADD note STRING"))
    assert table.schema.id == 0


def test_the_change_that_the_message_shows_is_one(catalog: Catalog, table: Table) -> None:
    with pytest.raises(InvalidSchemaError) as caught:
        catalog.alter_table("d.t", anything("ADD note STRING"))
    (shown,) = re.findall(r"penstock\.(AddColumn\(.*?'STRING'\))", str(caught.value))
    change = eval(shown, {"AddColumn": AddColumn})  # noqa: S307 - of our own message
    assert catalog.alter_table("d.t", change).schema.field_names == (*table.schema.field_names, "note")


def test_a_users_script_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # make check-pyright checks its types.
    monkeypatch.setattr(tempfile, "mkdtemp", lambda: str(tmp_path))
    script = runpy.run_path(str(Path(__file__).parents[2] / "typed" / "user_script.py"))
    assert script["main"]() == 12.5


@pytest.mark.parametrize("limit", [-1, "5", 1.5])
def test_a_limit_is_a_number_of_rows(table: Table, limit: Any) -> None:
    for read in (table.to_arrow, table.to_batches, table.follow):
        with pytest.raises(
            InvalidOptionError, match=r"table d\.t: .*limit.*: expected a (number of rows|whole number)"
        ):
            read(limit=limit)


def test_an_argument_that_is_not_a_session_is_refused_with_the_alternative(table: Table) -> None:
    for call in (table.to_spark, table.read_stream):
        with pytest.raises(InvalidOptionError, match=r"expected a SparkSession, not None: .*to_arrow"):
            call(anything(None))
    with pytest.raises(InvalidOptionError, match=r"trigger '10 seconds': expected one of \{'processingTime'"):
        table.write_stream(anything(None), checkpoint="c", trigger=anything("10 seconds"))


def test_a_session_of_spark_connect_merges_no_files(table: Table) -> None:
    session = anything(type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})())
    said = r"table d.t: this does not work with Spark Connect; use compact\(\) without spark"
    with pytest.raises(UnsupportedFeatureError, match=said):
        table.compact(spark=session)


def test_names_of_other_libraries_raise_an_error_with_the_name_used_here(catalog: Catalog) -> None:
    for name in ("table", "get_table", "open_table", "load"):
        with pytest.raises(AttributeError, match=rf"'Catalog' has no attribute '{name}': say load_table\('database"):
            getattr(catalog, name)
    with pytest.raises(AttributeError, match=r"'Catalog' has no attribute 'nothing'$"):
        _ = anything(catalog).nothing
    assert not hasattr(catalog, "_repr_svg_")
    with pytest.raises(InvalidOptionError, match=r"Catalog\.load_table\('database\.table'\) opens a table by its name"):
        Table(anything("warehouse/d.db/t"))


class Exporting:
    """As polars: nothing but Arrow's C interface."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._rows.__arrow_c_stream__(requested_schema)


def test_rows_of_other_libraries_are_taken(table: Table) -> None:
    table.append(pd.DataFrame({"dt": ["a"], "id": pd.array([1], dtype="int32")}, index=[7]))
    table.append(Exporting(pa.table({"id": pa.array([2], pa.int32()), "dt": pa.array(["a"], pa.string_view())})))
    table.append([{"id": 3, "dt": "a"}, {"dt": "a", "id": None}])
    table.append([])
    assert table.to_arrow("id")["id"].to_pylist() == [1, 2, 3, None]


@pytest.mark.parametrize("write", ["append", "overwrite"])
def test_a_dict_that_lacks_a_key_of_the_others_is_refused(table: Table, write: str) -> None:
    """NULL would hide a misspelled key, and would be no DEFAULT."""
    rows = [{"id": 3, "dt": "a"}, {"dt": "a"}]
    message = r"row 1 \(counted from 0\) lacks the key 'id', which other rows have; give None for NULL"
    with pytest.raises(SchemaMismatchError, match=message):
        getattr(table, write)(rows)
    assert table.latest_snapshot() is None


def test_dicts_become_values_of_the_columns(catalog: Catalog) -> None:
    table = catalog.create_table("d.k", "d DATE, price DECIMAL(5, 2), n BIGINT NOT NULL")
    table.append([{"d": dt.date(2026, 1, 1), "price": 2, "n": 1}])
    assert table.to_arrow().to_pylist()[0]["d"] == dt.date(2026, 1, 1)
    for rows, text in (
        ([{"d": "x", "price": 1, "n": 1}], r"row 0 \(counted from 0\): column 'd' takes a date, .* not 'x'"),
        ([{"d": None, "price": 1, "n": None}], "column 'n' is NOT NULL"),
        (
            [{"d": None, "price": 1, "n": 1, "more": object()}],
            "column 'more', which the table does not have, .* object",
        ),
        ([{"n": 1}], "column 'd' is missing"),
    ):
        with pytest.raises(SchemaMismatchError, match=text):
            table.append(rows)
    with pytest.raises(SchemaMismatchError, match=r"cannot take rows from a int: .*a list of dicts"):
        table.append(anything(5))
