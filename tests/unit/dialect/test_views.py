"""Views that a catalog keeps, in ``penstock.sql`` without Spark."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from penstock.errors import AlreadyExistsError, InvalidSqlError, NotFoundError, UnsupportedFeatureError

if TYPE_CHECKING:
    from tests.unit.dialect.conftest import Sql


@pytest.fixture
def view(shop: Sql) -> Sql:
    shop.catalog.create_view("shop.v", "SELECT id, dt FROM orders", "n BIGINT, `of day` STRING COMMENT 'when'")
    return shop


def test_a_view_of_the_catalog_is_listed_read_shown_and_dropped(view: Sql) -> None:
    assert view.rows("SHOW VIEWS") == view.rows("SHOW VIEWS FROM shop LIKE 'v%'") == [{"view name": "v"}]
    assert [row["table name"] for row in view.rows("SHOW TABLES")] == ["orders", "v"]
    assert {"of day": "a", "number": 1} in view.rows("SELECT `of day`, n AS number FROM shop.v")
    described = [(row["name"], row["type"], row["comment"]) for row in view.rows("DESCRIBE v")]
    assert described == [("n", "BIGINT", None), ("of day", "STRING", "when")]
    text = view.rows("SHOW CREATE VIEW v")[0]["result"]
    assert text == "CREATE VIEW `shop`.`v` (`n`, `of day` COMMENT 'when') AS\nSELECT id, dt FROM orders"
    view("CREATE TEMPORARY VIEW w AS SELECT n FROM v; INSERT INTO orders (id) SELECT n FROM w")
    assert sorted(row["id"] for row in view.rows("SELECT id FROM orders")) == [1, 1, 2, 2]
    assert view.rows("SHOW VIEWS") == [{"view name": "v"}, {"view name": "w"}]
    view("DROP VIEW v")
    assert view.catalog.list_views("shop") == ()
    with pytest.raises(NotFoundError, match="SHOW VIEWS"):
        view("DROP VIEW v")
    view("DROP VIEW IF EXISTS v")


def test_names_are_of_one_thing(view: Sql) -> None:
    for text in ("CREATE VIEW v AS SELECT id FROM orders", "CREATE TABLE v (a INT)"):
        with pytest.raises(AlreadyExistsError, match=r"view shop\.v already exists in the catalog"):
            view(text)
    view("CREATE VIEW IF NOT EXISTS v AS SELECT id FROM orders")
    with pytest.raises(UnsupportedFeatureError, match=r"create_view\('shop\.v', …, replace=True\)"):
        view("CREATE OR REPLACE VIEW v AS SELECT id FROM orders")
    with pytest.raises(UnsupportedFeatureError, match="is a view"):
        view("INSERT INTO v VALUES (1, 'a')")
    with pytest.raises(InvalidSqlError, match=r"DROP VIEW shop\.v"):
        view("DROP TABLE v")
    with pytest.raises(NotFoundError, match="did you mean v1"):
        view("CREATE VIEW v1 AS SELECT id FROM orders; SELECT id FROM v12")
    view("CREATE TEMPORARY VIEW v AS SELECT dt FROM orders")
    assert [row["name"] for row in view.rows("DESCRIBE v")] == ["dt"]
    view("DROP TEMPORARY VIEW v")
    assert [row["name"] for row in view.rows("DESCRIBE v")] == ["n", "of day"]
    with pytest.raises(NotFoundError):
        view("DROP TEMPORARY VIEW v")


def test_views_of_the_session_are_replaced(shop: Sql) -> None:
    shop("CREATE OR REPLACE VIEW w AS SELECT id FROM orders; CREATE OR REPLACE VIEW w AS SELECT dt FROM orders")
    assert [row["name"] for row in shop.rows("DESCRIBE w")] == ["dt"]
    with pytest.raises(AlreadyExistsError, match=r"table shop\.orders already exists"):
        shop("CREATE OR REPLACE VIEW orders AS SELECT dt FROM orders")
    for text in ("CREATE OR REPLACE TABLE t (a INT)", "CREATE OR REPLACE VIEW IF NOT EXISTS w AS SELECT 1"):
        with pytest.raises(InvalidSqlError, match=r"OR REPLACE|only views"):
            shop(text)


def test_what_cannot_be_read_here_names_the_way_that_works(shop: Sql) -> None:
    for number, (query, problem) in enumerate(
        {
            "SELECT id FROM other.d.t": "catalog 'other'",
            "SELECT FROM WHERE": "line 1",
            "SELECT id FROM a.b.c.d": "at most 3 parts",
        }.items()
    ):
        shop.catalog.create_view(f"shop.v{number}", query, "id BIGINT")
        with pytest.raises((InvalidSqlError, UnsupportedFeatureError), match=problem) as caught:
            shop(f"SELECT id FROM v{number}")  # noqa: S608 - of a test
        assert f"spark.table('penstock.shop.v{number}')" in str(caught.value)
        assert shop.rows(f"SHOW CREATE VIEW v{number}")
        shop(f"DROP VIEW v{number}")


def test_names_of_catalogs_are_those_of_where_the_view_was_made(view: Sql) -> None:
    place = view.catalog._warehouse
    stored = view.catalog.load_view("shop.v")
    context = {"spark.view.stored-in": "lake", "spark.view.namespace": json.dumps(["default"])}
    elsewhere = {**context, "spark.view.catalog": "spark_catalog", "spark.view.query-columns": json.dumps(["dt", "id"])}
    text = "SELECT * FROM lake.shop.orders"
    fields = tuple(replace(field, name=name) for field, name in zip(stored.fields[::-1], ("d", "n"), strict=True))
    place.replace_view(
        "shop.v", replace(stored, fields=fields, dialects=(("spark", text),), options=tuple(elsewhere.items()))
    )
    assert {"d": "a", "n": 1} in view.rows("SELECT d, n FROM v")
    for other in ("SELECT * FROM shop.orders", "SELECT * FROM paimon.shop.orders"):
        place.replace_view("shop.v", replace(stored, dialects=(("spark", other),), options=tuple(elsewhere.items())))
        with pytest.raises(UnsupportedFeatureError, match=r"spark_catalog|paimon"):
            view("SELECT * FROM v")


def test_columns_that_the_query_lost_or_changed_are_named(view: Sql) -> None:
    view.catalog.create_view("shop.v", "SELECT * FROM orders", "a BIGINT, b STRING", replace=True)
    with pytest.raises(InvalidSqlError, match="other columns than when it was created: id, price, at, dt"):
        view("SELECT * FROM v")
    view.catalog.create_view("shop.v", "SELECT id FROM orders", "a INT", replace=True)
    with pytest.raises(UnsupportedFeatureError, match="column 'a' has another type"):
        view("SELECT * FROM v")
    view.catalog.create_view("shop.v", "SELECT * FROM v", "a INT", replace=True)
    with pytest.raises(InvalidSqlError, match="reads itself"):
        view("SELECT * FROM v")
