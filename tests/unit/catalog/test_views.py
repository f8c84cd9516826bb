"""Views of a directory: what is stored, and what may be done with names."""

import json
from pathlib import Path

import pytest

from penstock.catalog import tables, views
from penstock.catalog.new_schema import TableDefinition
from penstock.catalog.stored_view import View, view_fields
from penstock.catalog.warehouse import Warehouse, open_warehouse, without_views
from penstock.errors import (
    AlreadyExistsError,
    FormatError,
    InvalidOptionError,
    InvalidSchemaError,
    NotFoundError,
    StorageError,
    UnsupportedFeatureError,
)
from penstock.format.types.ddl import parse_columns

VIEW = View(
    fields=view_fields(parse_columns("id BIGINT COMMENT 'key', name STRING")),
    query="SELECT id, name FROM t",
    dialects=(("spark", "SELECT id, name FROM t"),),
    comment="people",
    options=(("owner-team", "x"),),
)


@pytest.fixture(params=["local", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path, warehouse: Warehouse) -> Warehouse:
    found = open_warehouse(str(tmp_path)) if request.param == "local" else warehouse
    tables.create_database(found, "shop")
    return found


def test_the_file_is_paimons_view_schema(tmp_path: Path) -> None:
    warehouse = open_warehouse(str(tmp_path))
    tables.create_database(warehouse, "shop")
    views.create_view(warehouse, "shop.people", VIEW)
    path = tmp_path / "shop.db" / ".views" / "people.json"
    # The names of Paimon's ViewSchema, and its fields as in a schema file.
    assert json.loads(path.read_text("utf-8")) == {
        "fields": [
            {"id": 0, "name": "id", "type": "BIGINT", "description": "key"},
            {"id": 1, "name": "name", "type": "STRING"},
        ],
        "query": "SELECT id, name FROM t",
        "dialects": {"spark": "SELECT id, name FROM t"},
        "comment": "people",
        "options": {"owner-team": "x"},
    }
    path.write_text("{", "utf-8")
    with pytest.raises(FormatError, match=r"view 'shop\.people'"):
        views.load_view(warehouse, "shop.people")


def test_views_are_made_replaced_renamed_and_dropped(place: Warehouse) -> None:
    views.create_view(place, "shop.people", VIEW)
    assert views.load_view(place, "shop.people") == VIEW
    with pytest.raises(AlreadyExistsError, match=r"shop\.people"):
        views.create_view(place, "shop.people", VIEW)
    other = View(fields=VIEW.fields[:1], query="SELECT id FROM t")
    views.replace_view(place, "shop.people", other)
    views.rename_view(place, "shop.people", "shop.schema")
    assert views.list_views(place, "shop") == ("schema",)
    assert views.load_view(place, "shop.schema") == other
    assert tables.list_tables(place, "shop") == ()
    views.drop_view(place, "shop.schema")
    for missing in (views.load_view, views.drop_view):
        with pytest.raises(NotFoundError, match=r"shop\.schema"):
            missing(place, "shop.schema")
    with pytest.raises(NotFoundError, match=r"shop\.schema"):
        views.replace_view(place, "shop.schema", VIEW)


def test_a_name_is_of_a_view_or_of_a_table(place: Warehouse) -> None:
    definition = TableDefinition(columns=parse_columns("id BIGINT"))
    views.create_view(place, "shop.v", VIEW)
    tables.create_table(place, "shop.t", definition)
    for taken in (
        lambda: tables.create_table(place, "shop.v", definition),
        lambda: tables.rename_table(place, "shop.t", "shop.v"),
        lambda: views.create_view(place, "shop.t", VIEW),
        lambda: views.rename_view(place, "shop.v", "shop.t"),
    ):
        with pytest.raises(AlreadyExistsError):
            taken()
    with pytest.raises(InvalidSchemaError, match="200 bytes"):
        views.create_view(place, f"shop.{'v' * 201}", VIEW)
    with pytest.raises(NotFoundError):
        views.create_view(place, "nowhere.v", VIEW)


def test_a_database_with_views_is_not_empty(place: Warehouse) -> None:
    views.create_view(place, "shop.v", VIEW)
    with pytest.raises(InvalidOptionError, match="it has v"):
        tables.drop_database(place, "shop")
    tables.drop_database(place, "shop", cascade=True)
    tables.create_database(place, "shop")
    assert views.list_views(place, "shop") == ()


DEEP = "[" * 100_000


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        (None, "nests values more than 300 levels"),
        ({"fields": {"a": 1}}, "no list"), ({"fields": [1]}, "damaged columns"), ({"query": 1}, "'query'"),
        ({"query": None}, "'query'"), ({"dialects": []}, "'dialects'"), ({"dialects": {"spark": []}}, "'dialects'"),
        ({"options": 1}, "'options'"), ({"comment": {}}, "'comment'"),
        ({"options": {"spark.view.namespace": "{"}}, "namespace"),
        ({"options": {"spark.view.namespace": "7"}}, "list"),
        ({"options": {"spark.view.namespace": DEEP}}, "names"),
        ({"options": {"spark.view.query-columns": "[1]"}}, "names"),
    ],
)  # fmt: skip
def test_a_damaged_view_file_is_one_error_that_names_the_view(
    tmp_path: Path, changed: dict[str, object] | None, text: str
) -> None:
    warehouse = open_warehouse(str(tmp_path))
    tables.create_database(warehouse, "shop")
    views.create_view(warehouse, "shop.v", VIEW)
    path = tmp_path / "shop.db" / ".views" / "v.json"
    path.write_text(DEEP if changed is None else json.dumps(json.loads(path.read_text("utf-8")) | changed), "utf-8")
    with pytest.raises(FormatError, match=f"view 'shop.v' .*{text}.*create the view again"):
        views.load_view(warehouse, "shop.v")


@pytest.mark.parametrize("linked", ["file", "directory"])
def test_view_files_that_are_links_are_not_followed(tmp_path: Path, linked: str) -> None:
    warehouse = open_warehouse(str(tmp_path / "w"))
    tables.create_database(warehouse, "shop")
    other = open_warehouse(str(tmp_path / "other"))
    tables.create_database(other, "shop")
    views.create_view(other, "shop.v", VIEW)
    inside, outside = (tmp_path / place / "shop.db" / ".views" for place in ("w", "other"))
    if linked == "file":
        inside.mkdir()
        (inside / "v.json").symlink_to(outside / "v.json")
    else:
        inside.symlink_to(outside)
    with pytest.raises(StorageError, match=rf"{inside}.* is a symbolic link"):
        views.load_view(warehouse, "shop.v")


def test_views_are_refused_where_the_user_does_not_trust_them(tmp_path: Path) -> None:
    warehouse = open_warehouse(str(tmp_path))
    tables.create_database(warehouse, "shop")
    views.create_view(warehouse, "shop.v", VIEW)
    untrusted = without_views(warehouse)
    for refused in (views.load_view, lambda place, name: views.create_or_replace_view(place, name, VIEW)):
        with pytest.raises(UnsupportedFeatureError, match=r"'penstock\.views' = 'false'"):
            refused(untrusted, "shop.v")
    with pytest.raises(NotFoundError):
        views.load_view(untrusted, "shop.w")
    assert views.list_views(untrusted, "shop") == ("v",)
