"""Names in SQL never lead outside of the warehouse, whichever statement takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import penstock
from penstock import Catalog, InvalidSchemaError, InvalidSqlError, TableStoreError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.dialect.conftest import Sql

# Each takes the name of a table for {t}.
TABLE_STATEMENTS = (
    "CREATE TABLE {t} (a INT)",
    "CREATE TABLE IF NOT EXISTS {t} (a INT)",
    "CREATE TABLE {t} AS SELECT * FROM good",
    "CREATE TABLE {t} LIKE good",
    "CREATE TABLE copy LIKE {t}",
    "CREATE TABLE copy AS SELECT * FROM {t}",
    "CREATE TEMPORARY VIEW {t} AS SELECT * FROM good",
    "CREATE TEMPORARY VIEW v AS SELECT * FROM {t}",
    "DROP TABLE {t}",
    "DROP TABLE IF EXISTS {t}",
    "ALTER TABLE {t} SET ('bucket' = '-1')",
    "ALTER TABLE IF EXISTS {t} SET ('bucket' = '-1')",
    "ALTER TABLE {t} RENAME TO moved",
    "ALTER TABLE good RENAME TO {t}",
    "ALTER TABLE {t} DROP WATERMARK",
    "ALTER TABLE {t} DROP PARTITION (a = 1)",
    "TRUNCATE TABLE {t}",
    "DESCRIBE {t}",
    "SHOW CREATE TABLE {t}",
    "SHOW CREATE VIEW {t}",
    "SHOW COLUMNS FROM {t}",
    "SHOW PARTITIONS {t}",
    "SELECT * FROM {t}",
    "SELECT a FROM {t} /*+ OPTIONS('scan.snapshot-id' = '1') */ WHERE a = 1",
    "EXPLAIN SELECT * FROM {t}",
    "INSERT INTO {t} VALUES (1)",
    "INSERT OVERWRITE {t} SELECT * FROM good",
    "INSERT INTO good SELECT * FROM {t}",
    "CALL sys.compact('{t}')",
    "CALL sys.create_tag('{t}', 'x')",
    "CALL sys.rollback_to(`table` => '{t}', snapshot_id => 1)",
    "CALL sys.expire_snapshots('{t}')",
    "CALL sys.remove_orphan_files('{t}')",
    "CALL sys.reset_consumer('{t}', 'c', 1)",
)
DATABASE_STATEMENTS = (
    "CREATE DATABASE {d}",
    "CREATE DATABASE IF NOT EXISTS {d}",
    "USE {d}",
    "DROP DATABASE {d} CASCADE",
    "DROP DATABASE IF EXISTS {d}",
    "SHOW TABLES FROM {d}",
    "CALL sys.remove_orphan_files('{d}.*')",
)


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sql:
    """SQL in a warehouse beside another one; the current directory is a third place."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for warehouse, database in (("own", "default"), ("other", "d")):
        catalog = Catalog(str(tmp_path / warehouse))
        catalog.create_database(database)
        catalog.create_table(f"{database}.good", "a INT").append(pa.table({"a": pa.array([1], pa.int32())}))

    class Local:
        catalog = Catalog(str(tmp_path / "own"))

        def __call__(self, text: str) -> object:
            return penstock.sql(None, self.catalog, text)

    return Local()  # type: ignore[return-value]


def tree(root: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in root.rglob("*")}


@pytest.mark.parametrize("statement", TABLE_STATEMENTS)
def test_no_statement_takes_a_table_name_with_a_slash(local: Sql, tmp_path: Path, statement: str) -> None:
    before = tree(tmp_path)
    for name in (f"`{tmp_path}/other/d`.`db/good`", "`../../other/d.db`.good", "`a/b`", "default.`../../x`"):
        with pytest.raises(InvalidSchemaError, match="cannot be in a name"):
            local(statement.format(t=name))
    assert tree(tmp_path) == before


@pytest.mark.parametrize("statement", DATABASE_STATEMENTS)
def test_no_statement_takes_a_database_name_with_a_slash(local: Sql, tmp_path: Path, statement: str) -> None:
    before = tree(tmp_path)
    for name in (f"`{tmp_path}/other/d`", "`../other/d`", "paimon.`../x`"):
        with pytest.raises(TableStoreError):
            local(statement.format(d=name))
    assert tree(tmp_path) == before


@pytest.mark.parametrize("part", ["`..`", "`.`", "`a\\b`", "`a\x00b`", "`a\nb`", "`a\x1b[31mb`", "`a\u202eb`", "` `"])
def test_what_ends_a_path_or_a_line_is_in_no_name(sql: Sql, part: str) -> None:
    for statement in ("CREATE TABLE {} (a INT)", "CREATE DATABASE {}", "SELECT * FROM default.{}"):
        with pytest.raises((InvalidSchemaError, InvalidSqlError)):
            sql(statement.format(part))
    assert sql.rows("SHOW TABLES") == []


def test_a_lone_surrogate_is_in_no_name(sql: Sql) -> None:
    with pytest.raises(InvalidSchemaError, match=r"'\\ud800' cannot be in a name"):
        sql("CREATE TABLE `a\ud800` (a INT)")


def test_a_name_is_no_longer_than_a_directory_name(sql: Sql) -> None:
    sql(f"CREATE TABLE `{'ü' * 126}` (a INT)")
    with pytest.raises(InvalidSchemaError, match="at most 252 bytes"):
        sql(f"CREATE TABLE `{'ü' * 127}` (a INT)")


def test_a_name_with_dots_and_back_quotes_is_one_name_in_every_statement(sql: Sql) -> None:
    sql("CREATE TABLE `a.b``c` (a INT); INSERT INTO `a.b``c` VALUES (1); CALL sys.create_tag('default.`a.b``c`', 'x')")
    assert sql.rows("SHOW TABLES") == [{"table name": "a.b`c"}]
    assert sql.rows("SELECT * FROM default.`a.b``c`") == [{"a": 1}]
    sql("ALTER TABLE `a.b``c` RENAME TO `d.e`")
    assert sql.catalog.load_table("default.`d.e`").to_arrow().num_rows == 1
    assert [each.table for each in sql.catalog.compact_database()] == ["default.`d.e`"]
    sql("DROP TABLE `d.e`")
    assert sql.rows("SHOW TABLES") == []


@pytest.mark.parametrize("call", ["CALL sys.rollback_to('a.b.c.d', 1)", "CALL sys.create_tag('a.b.c.d', 'x')"])
def test_a_name_of_four_parts_is_refused_in_a_call(sql: Sql, call: str) -> None:
    with pytest.raises(InvalidSqlError, match=r"'a\.b\.c\.d': a name has at most 3 parts"):
        sql(call)


def test_a_table_is_not_renamed_into_another_catalog(sql: Sql) -> None:
    sql("CREATE CATALOG other WITH ('type' = 'paimon', 'warehouse' = 'memory://other/w'); CREATE TABLE t (a INT)")
    with pytest.raises(InvalidSqlError, match="stays in its catalog, which is paimon"):
        sql("ALTER TABLE t RENAME TO other.default.u")
    sql("ALTER TABLE t RENAME TO paimon.default.u")
    assert sql.rows("SHOW TABLES") == [{"table name": "u"}]
