"""``CALL sys.…``: names and arguments."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from penstock import InvalidOptionError, InvalidSqlError, NotFoundError, UnsupportedFeatureError
from penstock.api.names import CatalogNames
from penstock.api.procedures import PROCEDURES, UNSUPPORTED, call

if TYPE_CHECKING:
    from tests.unit.dialect.conftest import Sql

PAGE: Final = Path(__file__).parents[3] / "docs" / "sql.md"


def test_arguments_may_be_casts_as_in_the_texts_of_paimon(shop: Sql) -> None:
    shop("CALL sys.create_tag('orders', 'one', CAST(1 AS BIGINT), cast(NULL as STRING))")
    assert shop.rows("SELECT tag_name, snapshot_id FROM orders$tags") == [{"tag_name": "one", "snapshot_id": 1}]
    with pytest.raises(InvalidSqlError, match="expected AS"):
        shop("CALL sys.create_tag('orders', 'two', CAST(1))")
    with pytest.raises(InvalidSqlError, match="found '\\+': expected AS"):
        shop("CALL sys.create_tag('orders', 'two', CAST(1 + 1 AS BIGINT))")


@pytest.mark.parametrize(
    ("statement", "error", "says"),
    [
        ("sys.compat('orders')", InvalidSqlError, "did you mean sys.compact?"),
        ("sys.remove_unexisting_file('orders')", InvalidSqlError, "did you mean sys.remove_unexisting_files?"),
        ("sys.no_such('orders', 2)", InvalidSqlError, "no procedure sys.no_such; there are compact,"),
        ("sys.migrate_table('hive', 'x', 'y', delete_origin => TRUE)", InvalidOptionError, "leaves the directory"),
        ("sys.rollback('orders', '1', snapshot => 1)", InvalidOptionError, "takes one of version, snapshot and tag"),
        ("sys.create_tag('orders', 'x', 1, snapshot => 1)", InvalidOptionError, "'snapshot_id' twice"),
        ("sys.compact()", InvalidOptionError, "needs the argument table"),
        ("sys.compact(tabel => 'orders')", InvalidOptionError, "did you mean table?"),
        ("sys.compact('orders', `table` => 'orders')", InvalidOptionError, "'table' twice"),
        ("sys.expire_tags('orders', '', 1)", InvalidOptionError, "at most 2 arguments: table, older_than"),
        ("sys.compact('orders', 'dt')", InvalidOptionError, "expects key=value for partitions, found 'dt'"),
        ("sys.create_tag('orders', 'x', 'first')", InvalidOptionError, "a whole number for snapshot_id"),
        ("sys.remove_orphan_files('orders', 'yesterday')", InvalidOptionError, "a time such as"),
        ("sys.remove_orphan_files('orders', '', 'perhaps')", InvalidOptionError, "TRUE or FALSE for dry_run"),
        ("sys.compact_database(mode => 'parallel')", InvalidOptionError, "'divided' or 'combined'"),
    ],
)
def test_wrong_calls_say_what_is_right(shop: Sql, statement: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says.replace("?", r"\?")):
        shop(f"CALL {statement}")


def test_every_procedure_begins_with_what_it_works_on() -> None:
    assert {each.parameters[0] for each in PROCEDURES.values()} == {"table", "including_databases", "connector"}


def test_the_page_lists_every_procedure_with_its_arguments() -> None:
    section = PAGE.read_text("utf-8").partition("## Procedures")[2].partition("\n##")[0]
    listed: dict[str, tuple[str, ...]] = {}
    for line in section.splitlines():
        if line.startswith("| `"):
            names, arguments, *_ = line.strip("| ").split(" | ")
            named = [text for text in re.findall("`([^`]+)`", arguments) if "*" not in text]
            listed |= dict.fromkeys(re.findall(r"`(\w+)`", names), tuple(", ".join(named).split(", ")))
    assert listed == {name: procedure.parameters for name, procedure in PROCEDURES.items()}


def test_names_that_paimon_has_on_spark_are_taken_too() -> None:
    section = PAGE.read_text("utf-8").partition("### Names of Paimon on Spark")[2].partition("\n### ")[0]
    listed: dict[str, dict[str, str]] = {}
    for line in section.splitlines():
        if line.startswith("| `"):
            names, theirs, ours = (re.findall("`([^`]+)`", cell) for cell in line.strip("| ").split(" | "))
            pairs = dict(zip(theirs[0].split(", "), ours[0].split(", "), strict=True))
            listed |= dict.fromkeys(names, pairs)
    aliases = {name: dict(procedure.aliases) for name, procedure in PROCEDURES.items() if procedure.aliases}
    assert aliases["remove_unexisting_manifests"] == {"tableId": "table"}  # Flink's name for it
    assert listed == aliases
    for name, names in aliases.items():
        assert set(names.values()) <= set(PROCEDURES[name].parameters), name


def test_every_other_procedure_of_paimon_is_refused_with_what_to_do(shop: Sql) -> None:
    section = PAGE.read_text("utf-8").partition("### Procedures that are not there")[2].partition("\n## ")[0]
    rows = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `")]
    assert sorted(re.findall(r"`(\w+)`", " ".join(rows))) == sorted(UNSUPPORTED)
    assert not set(UNSUPPORTED) & set(PROCEDURES)
    for name, reason in UNSUPPORTED.items():
        with pytest.raises(UnsupportedFeatureError) as caught:
            shop(f"CALL sys.{name}('orders')")
        assert str(caught.value) == f"there is no procedure sys.{name}: {reason}"


def test_a_procedure_of_another_catalog_works_on_its_tables(shop: Sql) -> None:
    shop("CREATE CATALOG o WITH ('type' = 'paimon', 'warehouse' = 'memory://another-catalog')")
    shop("CREATE DATABASE o.shop; CREATE TABLE o.shop.orders (id BIGINT); INSERT INTO o.shop.orders VALUES (1)")
    shop("INSERT INTO o.shop.orders VALUES (2); INSERT INTO orders VALUES (3, 1, NULL, 'c')")
    shop("CALL o.sys.rollback_to('shop.orders', 1)")
    assert [row["id"] for row in shop.rows("SELECT id FROM o.shop.orders")] == [1]
    assert len(shop.rows("SELECT id FROM paimon.shop.orders")) == 3
    shop("CALL o.sys.create_tag('paimon.shop.orders', 'both'); CALL paimon.sys.create_tag('orders', 'own')")
    assert [row["tag_name"] for row in shop.rows("SELECT tag_name FROM orders$tags")] == ["both", "own"]
    assert shop.rows("SHOW CURRENT CATALOG") == [{"current catalog name": "paimon"}]
    with pytest.raises(NotFoundError, match="no catalog 'p' in this session; there are"):
        shop("CALL p.sys.create_tag('shop.orders', 'x')")


def test_a_list_of_partitions_may_end_with_its_sign(shop: Sql) -> None:
    assert [row["partition"] for row in shop.rows("CALL sys.compact('orders', 'dt=a;dt=b;')")] == ["dt=a", "dt=b"]


def test_a_time_at_the_ends_of_the_calendar_is_a_time(shop: Sql) -> None:
    for time in ("0001-01-01", "9999-12-31 23:59:59"):
        assert shop.rows(f"CALL sys.expire_snapshots('orders', older_than => '{time}')")[0]["expired_snapshots"] == 0


@pytest.mark.parametrize("table", ["orders.lines", "lake.orders.lines", "`lake`.orders.lines", "lake.lines"])
def test_a_database_may_have_the_name_of_an_attached_catalog(sql: Sql, table: str) -> None:
    sql("CREATE DATABASE orders; CREATE TABLE orders.lines (id INT); INSERT INTO orders.lines VALUES (1)")
    sql("CREATE DATABASE lake; CREATE TABLE lake.lines (id INT); INSERT INTO lake.lines VALUES (1)")
    sql("CREATE TABLE `default`.lines (id INT); INSERT INTO `default`.lines VALUES (1)")
    call(CatalogNames({"lake": sql.catalog}, "lake"), None, "create_tag", [("table", table), ("tag", "x")])
    names = ("orders", "lake", "`default`")
    tagged = [name for name in names if sql.rows(f"SELECT * FROM {name}.lines$tags")]  # noqa: S608 - of this file
    assert tagged == ["lake" if table == "lake.lines" else "orders"]


def test_a_call_of_spark_does_not_advise_use_which_it_does_not_follow(sql: Sql) -> None:
    sql("CREATE DATABASE orders; CREATE TABLE orders.lines (id INT)")
    with pytest.raises(NotFoundError, match=r"write database\.lines: Spark hands its current database to no procedure"):
        call(CatalogNames({"lake": sql.catalog}, "lake"), None, "compact", [("table", "lines")])
