"""No object of Penstock shows a secret where it is printed, also one under a misspelled key."""

from __future__ import annotations

import gc
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import pytest

import penstock
from penstock import Catalog, SetOption, Table, TableStoreError
from penstock.io.resolve import resolve
from penstock.options.kafka import parse_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECRET: Final = "S3cr3t!x"  # noqa: S105 - of nothing
STORES: Final = {
    "s3": {"s3.access-key": SECRET, "s3.secret-key": SECRET, "s3.endpoint": "http://localhost:1"},
    "misspelled s3": {"s3.acces-key": SECRET, "s3.secrt-key": SECRET, "s3.endpoint": f"http://u:{SECRET}@localhost:1"},
}
OPTIONS: Final = {
    "fs.oss.accessKeySecret": SECRET,
    "fs.oss.acessKeySecret": SECRET,
    "properties.sasl.jaas.config": f'x required password="{SECRET}";',
    "my.pasword": SECRET,
    "tokn": SECRET,
    "fs.s3a.endpoint": f"https://u:{SECRET}@host/x?sig={SECRET}",
}
KAFKA: Final = {
    "connector": "kafka",
    "topic": "t",
    "properties.bootstrap.servers": "127.0.0.1:9",
    "properties.ssl.keystore.password": SECRET,
    "properties.ssl.keystore.pasword": SECRET,
    "scan.startup.mode": "earliest-offset",
    "format": "json",
}

pytestmark = pytest.mark.filterwarnings("ignore::penstock.OptionWarning")


def shown(value: object) -> str:
    html = getattr(type(value), "_repr_html_", None)
    try:
        return f"{value!r} {value} {'' if html is None else html(value)}"
    except TableStoreError as error:  # a catalog in a notebook lists its databases, and this store does not answer
        return f"{value!r} {value} {error} {error!r}"


def leaks() -> list[str]:
    """Classes of Penstock with a living object that shows the secret."""
    found = set()
    for each in gc.get_objects():
        kind = type(each)
        if str(kind.__module__).partition(".")[0] == "penstock" and SECRET in shown(each):
            found.add(f"{kind.__module__}.{kind.__qualname__}")
    return sorted(found)


@pytest.fixture(autouse=True)
def _new_objects_only() -> Iterator[None]:
    """Leave what other tests have made out of the search."""
    gc.freeze()
    yield
    gc.unfreeze()


def use(table: Table, catalog: Catalog) -> list[object]:
    """Do what a day brings, and return what users hold then."""
    held: list[object] = [table.append([{"a": 1}]), table.with_options(OPTIONS), table.schema, table.options]
    changes = [SetOption(key=key, value=value) for key, value in OPTIONS.items()]
    held += [changes, catalog.alter_table("d.t", *changes), table.inspect, table.maintenance, table.versions]
    held += [table.explain(), table.delete("a = 5"), table.compact(), table.preview, table.inspect.history()]
    hint = f"OPTIONS('my.pasword' = '{SECRET}')"
    held += [catalog.create_view("d.v", f"SELECT a FROM d.t /*+ {hint} */", "a INT")]  # noqa: S608 - a view
    return held


def test_no_object_shows_a_secret(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    catalog = Catalog(tmp_path, OPTIONS)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "a INT", options=OPTIONS)
    held: list[object] = [catalog, table, catalog.load_table("d.t"), *use(table, catalog)]
    for options in STORES.values():
        with suppress(TableStoreError):
            held.append(Catalog("s3://bucket/warehouse", options))
        with suppress(TableStoreError):
            held.append(resolve("s3://bucket/warehouse", options))
    held.append(parse_kafka({**KAFKA}, "d.k"))
    statements = ("SELECT * FROM d.t$options", "SHOW CREATE TABLE d.t", "SHOW CREATE VIEW d.v")
    held.extend(penstock.sql(None, catalog, statement) for statement in statements)
    assert "******" in repr(held)
    assert leaks() == []
    assert SECRET not in caplog.text
