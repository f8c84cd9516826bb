from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest

import penstock
from penstock.api.arguments import to_columns
from penstock.catalog.changes import AddColumn, RenameColumn
from penstock.errors import AlreadyExistsError, InvalidOptionError, InvalidSchemaError, NotFoundError, OptionWarning
from penstock.format.types.data_types import STRING
from penstock.format.types.ddl import ColumnSpec
from penstock.io.memory import MemoryFileIO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def catalog() -> Iterator[penstock.Catalog]:
    catalog = penstock.Catalog("memory://api-catalog")
    catalog.create_database("db")
    yield catalog
    MemoryFileIO("api-catalog").discard()


def test_a_misspelled_key_of_a_catalog_is_named_at_the_users_line_and_its_secret_is_not_shown(tmp_path: Path) -> None:
    with pytest.warns(OptionWarning, match=r"'s3\.acces-key' is not known: did you mean 's3\.access-key'") as warned:
        catalog = penstock.Catalog(tmp_path, {"s3.acces-key": "TOPSECRET"})
    assert warned[0].filename == __file__
    assert "TOPSECRET" not in f"{catalog!r} {catalog._repr_html_()} {warned[0].message}"
    with pytest.warns(OptionWarning, match="did you mean 'table-default.bucket-key'"):
        penstock.Catalog(tmp_path, {"table-default.bucket-kye": "id"})
    penstock.Catalog(
        tmp_path, {"s3.endpoint": "http://localhost", "fs.oss.something": "x", "table-default.bucket": "-1"}
    )


def test_a_misspelled_warehouse_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    catalog = penstock.Catalog(tmp_path / "typo")
    assert catalog.list_databases() == ()
    assert caplog.messages == [f"there is no directory {tmp_path / 'typo'}: check its name; create_database creates it"]
    for call in (lambda: catalog.list_tables("shop"), lambda: catalog.load_table("shop.t")):
        with pytest.raises(NotFoundError, match=r"database shop does not exist: there is no directory .*typo; check"):
            call()
    caplog.clear()
    catalog.create_database("shop")
    assert catalog.list_databases() == ("shop",)
    catalog.drop_database("shop")
    assert (catalog.list_databases(), caplog.messages) == ((), [])


def test_databases_are_created_and_dropped(catalog: penstock.Catalog) -> None:
    assert catalog.warehouse == "memory://api-catalog"
    catalog.create_database("shop")
    catalog.create_database("shop", if_not_exists=True)
    with pytest.raises(AlreadyExistsError, match="shop"):
        catalog.create_database("shop")
    assert catalog.list_databases() == ("db", "shop")
    catalog.create_table("shop.t", "a INT")
    with pytest.raises(InvalidOptionError):
        catalog.drop_database("shop")
    catalog.drop_database("shop", cascade=True)
    assert catalog.list_databases() == ("db",)
    catalog.drop_database("shop", if_exists=True)
    with pytest.raises(NotFoundError):
        catalog.drop_database("shop")


def test_tables_are_made_listed_renamed_and_dropped(catalog: penstock.Catalog) -> None:
    made = catalog.create_table("db.t", "a BIGINT")
    assert (made.name, made.schema.id) == ("db.t", 0)
    assert catalog.list_tables("db") == ("t",)
    made.append(pa.table({"a": [1]}))
    catalog.rename_table("db.t", "db.u")
    assert catalog.load_table("db.u").to_arrow().to_pylist() == [{"a": 1}]
    with pytest.raises(NotFoundError):
        catalog.load_table("db.t")
    catalog.drop_table("db.u")
    catalog.drop_table("db.u", if_exists=True)
    with pytest.raises(NotFoundError):
        catalog.drop_table("db.u")
    assert catalog.list_tables("db") == ()


def test_names_without_a_database_are_those_of_default_which_is_created(tmp_path: Path) -> None:
    catalog = penstock.Catalog(tmp_path)
    with pytest.raises(NotFoundError, match=r"default does not exist .*; a name without a database is one of"):
        catalog.load_table("t")
    assert catalog.list_databases() == ()
    assert catalog.write("t", [{"id": 1}]).name == "default.t"
    assert catalog.create_table("u", "id INT").name == "default.u"
    assert catalog.load_table("t").name == catalog.load_table("default.t").name
    assert penstock.sql(None, catalog, "SELECT * FROM t").to_pylist() == [{"id": 1}]
    catalog.rename_table("u", "v")
    catalog.alter_table("v", AddColumn(column=("note",), type=STRING))
    catalog.drop_table("v")
    with pytest.raises(NotFoundError, match=r"default\.v does not exist .*did you mean default\.t"):
        catalog.load_table("v")
    assert catalog.list_tables("default") == ("t",)
    catalog.drop_database("default", cascade=True)
    catalog.create_view("w", "SELECT 1 AS one", "one INT")
    assert (catalog.list_databases(), catalog.list_views("default")) == (("default",), ("w",))
    with pytest.raises(NotFoundError, match="shop"):
        catalog.create_table("shop.t", "id INT")


def test_an_existing_table_is_returned_only_with_if_not_exists(catalog: penstock.Catalog) -> None:
    catalog.create_table("db.t", "a INT")
    with pytest.raises(AlreadyExistsError, match=r"db\.t"):
        catalog.create_table("db.t", "b INT")
    assert catalog.create_table("db.t", "b INT", if_not_exists=True).schema.field_names == ("a",)
    with pytest.raises(AlreadyExistsError, match=r"add the rows by load_table\('db\.t'\)\.append") as raised:
        catalog.write("db.t", [{"a": 1}])
    assert "if_not_exists" not in str(raised.value)


def test_every_clause_of_a_table_reaches_its_schema(catalog: penstock.Catalog) -> None:
    table = catalog.create_table(
        "db.orders",
        "k BIGINT, ts TIMESTAMP(3), dt STRING",
        partition_by=["dt"],
        options={"bucket": "4", "bucket-key": "k"},
        comment="all orders",
        watermark=("ts", "INTERVAL '5' SECOND"),
    )
    loaded = catalog.load_table("db.orders")
    assert loaded.schema == table.schema
    assert (loaded.schema.partition_keys, loaded.schema.comment) == (("dt",), "all orders")
    assert loaded.options["bucket"] == "4"
    assert "ts" in str(dict(loaded.schema.options))


def test_defaults_of_the_catalog_go_to_new_tables() -> None:
    catalog = penstock.Catalog("memory://api-defaults", {"table-default.file.format": "orc"})
    catalog.create_database("db")
    assert catalog.create_table("db.t", "a INT").options["file.format"] == "orc"
    MemoryFileIO("api-defaults").discard()


def test_columns_come_as_text_as_arrow_or_as_they_are(catalog: penstock.Catalog) -> None:
    text = catalog.create_table("db.a", "id BIGINT NOT NULL, name STRING COMMENT 'who'")
    arrow = catalog.create_table(
        "db.b", pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())])
    )
    assert [field.type for field in text.schema.fields] == [field.type for field in arrow.schema.fields]
    assert to_columns([ColumnSpec(name="name", type=STRING)]) == (ColumnSpec(name="name", type=STRING),)


@pytest.mark.parametrize("schema", [[], 7, ["id BIGINT"], None])
def test_an_object_that_is_not_a_schema_is_refused_with_examples(schema: object) -> None:
    with pytest.raises(InvalidSchemaError, match="give text such as 'id BIGINT, name STRING'"):
        to_columns(schema)  # type: ignore[arg-type]


def test_an_altered_table_has_all_the_changes_or_none(catalog: penstock.Catalog) -> None:
    catalog.create_table("db.t", "a INT")
    altered = catalog.alter_table("db.t", AddColumn(column="b", type="INT"), RenameColumn(column="a", new_name="c"))
    assert altered.schema.field_names == ("c", "b")
    with pytest.raises(NotFoundError):
        catalog.alter_table("db.t", AddColumn(column="d", type="INT"), RenameColumn(column="x", new_name="y"))
    assert catalog.load_table("db.t").schema.field_names == ("c", "b")


def test_options_of_a_use_win_and_unknown_ones_warn(catalog: penstock.Catalog) -> None:
    catalog.create_table("db.t", "a INT", options={"target-file-size": "1 mb"})
    table = catalog.load_table("db.t", {"target-file-size": "2 mb"})
    assert table.options["target-file-size"] == "2 mb"
    assert dict(table.schema.options)["target-file-size"] == "1 mb"
    with pytest.warns(OptionWarning, match="target-file-size"):
        catalog.load_table("db.t", {"target-fil-size": "2 mb"})


def test_a_table_is_found_by_its_location_too(catalog: penstock.Catalog) -> None:
    catalog.create_table("db.t", "a BIGINT").append(pa.table({"a": [1]}))
    location = "memory://api-catalog/db.db/t"
    assert penstock.Table.at(location).to_arrow().num_rows == 1
    assert catalog.load_table(location).location == location
    with pytest.raises(NotFoundError):
        penstock.Table.at("memory://api-catalog/db.db/none")


def test_importing_the_package_imports_no_pyspark_and_no_sqlglot() -> None:
    code = "import sys, penstock; print(sorted({'pyspark', 'sqlglot', 'py4j'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


_STAR: Final = """
import sys

class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Refusing())
from penstock import *
print(Catalog.__name__, sql.__name__, "last_progress" in globals(), "pyspark" in sys.modules)
"""


@pytest.mark.parametrize(("missing", "has_streams"), [({"pyspark", "sqlglot", "pandas"}, False), (set(), True)])
def test_all_names_are_imported_by_a_star_also_without_pyspark(missing: set[str], *, has_streams: bool) -> None:
    code = _STAR.format(missing=missing)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == (f"Catalog sql {has_streams} {has_streams}\n", "")


def test_views_are_made_listed_replaced_renamed_and_dropped(catalog: penstock.Catalog) -> None:
    made = catalog.create_view("db.v", "SELECT a FROM t", "b BIGINT COMMENT 'x'", comment="some rows")
    assert made == catalog.load_view("db.v")
    assert isinstance(made, penstock.View)
    assert (made.query, made.comment, [(each.name, each.description) for each in made.fields]) == (
        "SELECT a FROM t",
        "some rows",
        [("b", "x")],
    )
    assert catalog.list_views("db") == ("v",)
    assert catalog.list_tables("db") == ()
    with pytest.raises(AlreadyExistsError, match=r"view db\.v"):
        catalog.create_view("db.v", "SELECT 1", "one INT")
    assert catalog.create_view("db.v", "SELECT 1", "one INT", if_not_exists=True) == made
    other = catalog.create_view("db.v", "SELECT 1", pa.schema({"one": pa.int32()}), replace=True)
    assert catalog.load_view("db.v") == other != made
    catalog.create_view("db.w", "SELECT 2", "two INT", replace=True)
    with pytest.raises(AlreadyExistsError):
        catalog.rename_view("db.v", "db.w")
    catalog.rename_view("db.v", "db.x")
    assert catalog.list_views("db") == ("w", "x")
    catalog.drop_view("db.x")
    catalog.drop_view("db.x", if_exists=True)
    for missing in (catalog.load_view, catalog.drop_view):
        with pytest.raises(NotFoundError, match=r"view db\.x"):
            missing("db.x")
    with pytest.raises(NotFoundError, match="nowhere"):
        catalog.list_views("nowhere")


def test_a_view_that_cannot_be_is_refused(catalog: penstock.Catalog) -> None:
    catalog.create_table("db.t", "a BIGINT")
    cases: tuple[tuple[str, str, str, dict[str, Any], type[Exception], str], ...] = (
        ("db.t", "SELECT 1", "one INT", {"replace": True}, AlreadyExistsError, "there is a table"),
        ("db.t", "SELECT 1", "one INT", {"if_not_exists": True}, AlreadyExistsError, "there is a table"),
        ("db.v", "SELECT 1", "one INT", {"replace": True, "if_not_exists": True}, InvalidOptionError, "exclude"),
        ("db.v", " ", "one INT", {}, InvalidOptionError, "no text"),
        ("db.v", "SELECT 1", "one INT, ONE INT", {}, InvalidSchemaError, "'one' is duplicated"),
        ("nowhere.v", "SELECT 1", "one INT", {"replace": True}, NotFoundError, "nowhere"),
    )
    for name, query, schema, flags, kind, problem in cases:
        with pytest.raises(kind, match=problem):
            catalog.create_view(name, query, schema, **flags)
    assert catalog.list_views("db") == ()
