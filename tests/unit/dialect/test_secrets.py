"""Secrets among the options are stored as given, and printed masked."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

import pytest

from penstock import Catalog, InvalidOptionError, TableStoreError
from penstock.catalog.warehouse import open_warehouse
from penstock.options.kafka import parse_kafka

if TYPE_CHECKING:
    from tests.unit.dialect.conftest import Sql

pytestmark = pytest.mark.filterwarnings("ignore::penstock.OptionWarning")  # options of storages that are not built in

SECRET = "S3cr3t"  # noqa: S105 - of nothing
KAFKA = {
    "connector": "kafka",
    "topic": "t",
    "properties.bootstrap.servers": "127.0.0.1:9",
    "properties.sasl.jaas.config": f'PlainLoginModule required username="u" password="{SECRET}";',
    "properties.ssl.keystore.password": SECRET,
    "scan.startup.mode": "earliest-offset",
    "format": "json",
}
WITH = ", ".join(f"'{key}' = '{value}'" for key, value in KAFKA.items())


@pytest.fixture
def table(sql: Sql) -> Sql:
    sql(
        "CREATE DATABASE d; USE d; CREATE TABLE t (a INT) WITH "
        f"('fs.oss.accessKeySecret' = '{SECRET}', 'fs.s3a.endpoint' = 'https://u:{SECRET}@host/x?sig={SECRET}', "
        "'target-file-size' = '1 mb')"
    )
    return sql


@pytest.mark.filterwarnings("ignore::penstock.OptionWarning")
@pytest.mark.parametrize(
    "statement",
    ["SHOW CREATE TABLE t", "SELECT * FROM t$options", "SELECT * FROM t$schemas", f"SET 'x.token' = '{SECRET}'; SET"],
)
def test_what_shows_options_masks_secrets(table: Sql, statement: str) -> None:
    shown = str(table.rows(statement))
    assert SECRET not in shown
    assert "******" in shown


def test_what_is_stored_stays_and_is_copied(table: Sql) -> None:
    table("CREATE TABLE u LIKE t; ALTER TABLE u SET ('fs.oss.accessKeyId' = 'A')")
    for name in ("t", "u"):
        stored = table.catalog.load_table(f"d.{name}")
        assert stored.options["fs.oss.accessKeySecret"] == SECRET
        assert stored.options["fs.s3a.endpoint"] == f"https://u:{SECRET}@host/x?sig={SECRET}"
        assert stored.options["target-file-size"] == "1 mb"
        assert SECRET not in repr(stored) + repr(stored.schema)
        assert "'target-file-size': '1 mb'" in repr(stored.schema)


@pytest.mark.parametrize(
    "statement",
    [
        f"CREATE TABLE k (a INT) WITH ('s3.secret-key' = '{SECRET}')",
        f"ALTER TABLE t SET ('fs.azure.account.key.a.blob.core.windows.net' = '{SECRET}')",
        f"ALTER TABLE t SET ('fs.s3a.session.token' = '{SECRET}')",
        f"ALTER TABLE t SET ('fs.azure.sas.fixed.token.a.dfs.core.windows.net' = '{SECRET}')",
    ],
)
def test_credentials_of_object_stores_are_never_stored_with_a_table(table: Sql, statement: str) -> None:
    with pytest.raises(InvalidOptionError, match=r"is a credential, .*: give it to the catalog") as caught:
        table(statement)
    assert SECRET not in str(caught.value)
    assert SECRET not in str(table.catalog.load_table("d.t").options.get("s3.secret-key"))


@pytest.mark.parametrize(
    "statement",
    [
        f"CREATE TABLE k (a INT) WITH ({WITH}, 'valu.format' = 'json')",
        f"CREATE TABLE k (a INT) WITH ({WITH}) garbage",
        f"CREATE TABLE missing.k WITH ({WITH}) LIKE t",
        f"SELECT * FROM t /*+ OPTIONS('properties.ssl.key.password' = '{SECRET}') */ WHERE",  # noqa: S608
        f"ALTER TABLE missing SET ('fs.secret' = '{SECRET}')",
        f"CREATE CATALOG y WITH ('type' = 'paimon', 'warehouse' = 's3://key:{SECRET}@a/b')",
    ],
)
def test_errors_and_their_notes_hold_none(table: Sql, statement: str) -> None:
    with pytest.raises(TableStoreError) as caught:
        table(statement)
    # The frames of a traceback show lines of code, no values.
    assert SECRET not in "".join(traceback.format_exception_only(caught.value))


def test_values_that_hold_options_do_not_show_them() -> None:
    warehouse = f"memory://{SECRET}@host/w"
    catalog = Catalog("memory://secrets/w", {"s3.secret-key": SECRET, "table-default.bucket": "1"})
    assert repr(catalog) == (
        "Catalog('memory://secrets/w', options={'s3.secret-key': '******', 'table-default.bucket': '1'})"
    )
    assert SECRET not in repr(Catalog(warehouse))
    assert SECRET not in repr(open_warehouse("memory://secrets/w", {"s3.secret-key": SECRET}))
    assert SECRET not in repr(parse_kafka(KAFKA, "t"))


def test_a_view_shows_its_hints_masked(table: Sql) -> None:
    table(f"CREATE TEMPORARY VIEW v AS SELECT * FROM t /*+ OPTIONS('x.password' = '{SECRET}') */")  # noqa: S608
    assert SECRET not in str(table.rows("SHOW CREATE VIEW v"))
