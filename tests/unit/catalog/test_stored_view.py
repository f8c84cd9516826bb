"""Views of a directory: what is stored, and what may be done with names."""

import json
from pathlib import Path

import pytest

from penstock.catalog.directory import DirectoryBackend
from penstock.catalog.new_schema import TableDefinition
from penstock.catalog.stored_view import View, view_fields
from penstock.catalog.warehouse import open_warehouse
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
def place(request: pytest.FixtureRequest, tmp_path: Path, warehouse: DirectoryBackend) -> DirectoryBackend:
    found = open_warehouse(str(tmp_path)) if request.param == "local" else warehouse
    found.create_database("shop")
    return found


def test_the_file_is_paimons_view_schema(tmp_path: Path) -> None:
    warehouse = open_warehouse(str(tmp_path))
    warehouse.create_database("shop")
    warehouse.create_view("shop.people", VIEW)
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
        warehouse.load_view("shop.people")


def test_views_are_made_replaced_renamed_and_dropped(place: DirectoryBackend) -> None:
    place.create_view("shop.people", VIEW)
    assert place.load_view("shop.people") == VIEW
    with pytest.raises(AlreadyExistsError, match=r"shop\.people"):
        place.create_view("shop.people", VIEW)
    other = View(fields=VIEW.fields[:1], query="SELECT id FROM t")
    place.replace_view("shop.people", other)
    place.rename_view("shop.people", "shop.schema")
    assert place.list_views("shop") == ("schema",)
    assert place.load_view("shop.schema") == other
    assert place.list_tables("shop") == ()
    place.drop_view("shop.schema")
    for missing in (place.load_view, place.drop_view):
        with pytest.raises(NotFoundError, match=r"shop\.schema"):
            missing("shop.schema")
    with pytest.raises(NotFoundError, match=r"shop\.schema"):
        place.replace_view("shop.schema", VIEW)


def test_a_name_is_of_a_view_or_of_a_table(place: DirectoryBackend) -> None:
    definition = TableDefinition(columns=parse_columns("id BIGINT"))
    place.create_view("shop.v", VIEW)
    place.create_table("shop.t", definition)
    for taken in (
        lambda: place.create_table("shop.v", definition),
        lambda: place.rename_table("shop.t", "shop.v"),
        lambda: place.create_view("shop.t", VIEW),
        lambda: place.rename_view("shop.v", "shop.t"),
    ):
        with pytest.raises(AlreadyExistsError):
            taken()
    with pytest.raises(InvalidSchemaError, match="200 bytes"):
        place.create_view(f"shop.{'v' * 201}", VIEW)
    with pytest.raises(NotFoundError):
        place.create_view("nowhere.v", VIEW)


def test_a_database_with_views_is_not_empty(place: DirectoryBackend) -> None:
    place.create_view("shop.v", VIEW)
    with pytest.raises(InvalidOptionError, match="it has v"):
        place.drop_database("shop")
    place.drop_database("shop", cascade=True)
    place.create_database("shop")
    assert place.list_views("shop") == ()


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
    warehouse.create_database("shop")
    warehouse.create_view("shop.v", VIEW)
    path = tmp_path / "shop.db" / ".views" / "v.json"
    path.write_text(DEEP if changed is None else json.dumps(json.loads(path.read_text("utf-8")) | changed), "utf-8")
    with pytest.raises(FormatError, match=f"view 'shop.v' .*{text}.*create the view again"):
        warehouse.load_view("shop.v")


@pytest.mark.parametrize("linked", ["file", "directory"])
def test_view_files_that_are_links_are_not_followed(tmp_path: Path, linked: str) -> None:
    warehouse = open_warehouse(str(tmp_path / "w"))
    warehouse.create_database("shop")
    other = open_warehouse(str(tmp_path / "other"))
    other.create_database("shop")
    other.create_view("shop.v", VIEW)
    inside, outside = (tmp_path / place / "shop.db" / ".views" for place in ("w", "other"))
    if linked == "file":
        inside.mkdir()
        (inside / "v.json").symlink_to(outside / "v.json")
    else:
        inside.symlink_to(outside)
    with pytest.raises(StorageError, match=rf"{inside}.* is a symbolic link"):
        warehouse.load_view("shop.v")


def test_views_are_refused_where_the_user_does_not_trust_them(tmp_path: Path) -> None:
    warehouse = open_warehouse(str(tmp_path))
    warehouse.create_database("shop")
    warehouse.create_view("shop.v", VIEW)
    untrusted = warehouse.without_views()
    for refused in (untrusted.load_view, lambda name: untrusted.create_or_replace_view(name, VIEW)):
        with pytest.raises(UnsupportedFeatureError, match=r"'penstock\.views' = 'false'"):
            refused("shop.v")
    with pytest.raises(NotFoundError):
        untrusted.load_view("shop.w")
    assert untrusted.list_views("shop") == ("v",)
