"""Tables of a REST catalog on the server of Paimon's own tests, shared with Java Paimon and pypaimon as its clients."""

import textwrap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.interop.engines import Engine

import penstock
from penstock.errors import AlreadyExistsError, InvalidOptionError, NotFoundError, StorageError, UnsupportedFeatureError

TOKEN = "a-token"  # noqa: S105 - of a server on loopback
NAME = "lake"
COLUMNS = "id BIGINT, name STRING, price DECIMAL(8, 2), dt STRING"

pytestmark = pytest.mark.jvm


@dataclass(frozen=True, kw_only=True)
class Server:
    """The server, and options to reach it."""

    java: Engine
    data: Path
    uri: str

    @property
    def options(self) -> dict[str, str]:
        return {"metastore": "rest", "uri": self.uri, "token.provider": "bear", "token": TOKEN}

    def catalog(self, **more: str) -> penstock.Catalog:
        return penstock.Catalog(NAME, self.options | more)

    def change(self, **what: Any) -> None:
        start(self.java, self.data, **what)

    def ask(self, engine: Engine, op: str, table: str, **request: Any) -> Any:
        database, _, name = table.partition(".")
        return engine.ask(op, f"{NAME}/{database}.db/{name}", catalog=self.options, **request)


def start(java: Engine, data: Path, **what: Any) -> str:
    return java.ask("rest_server", "w/d.db/t", data=str(data), name=NAME, token=TOKEN, **what)


@pytest.fixture(scope="module")
def server(java: Engine, tmp_path_factory: pytest.TempPathFactory) -> Server:
    data = tmp_path_factory.mktemp("rest")
    return Server(java=java, data=data, uri=start(java, data))


@pytest.fixture
def shop(server: Server) -> Iterator[penstock.Catalog]:
    catalog = server.catalog()
    catalog.create_database("shop")
    yield catalog
    for name in catalog.list_tables("shop"):  # this server forgets the database only
        if name != "secret":
            catalog.drop_table(f"shop.{name}")
    catalog.drop_database("shop", cascade=True)


def rows(*ids: int, dt: str = "a") -> pa.Table:
    names = [f"n{number}" if number % 3 else None for number in ids]
    price = pa.array([number * 10 for number in ids], pa.int64()).cast(pa.decimal128(38, 0)).cast(pa.decimal128(8, 2))
    return pa.table({"id": list(ids), "name": pa.array(names, pa.string()), "price": price, "dt": [dt] * len(ids)})


def ids_of(table: penstock.Table) -> list[int]:
    return sorted(table.to_arrow().column("id").to_pylist())


def test_rows_go_through_the_server_and_each_engine_reads_the_others(
    server: Server, shop: penstock.Catalog, pypaimon: Engine
) -> None:
    table = shop.create_table("shop.t", COLUMNS, partition_by=["dt"])
    table.append(rows(1, 2, 3))
    table.append(rows(4, dt="b/c"))
    ids = [1, 2, 3, 4]
    for engine in (server.java, pypaimon):
        found = server.ask(engine, "read", "shop.t")["rows"]
        assert sorted(row["id"] for row in found) == ids, engine.name
        ids.append(100 + len(ids))
        server.ask(engine, "write", "shop.t", rows=[found[0] | {"id": ids[-1]}])
    assert ids_of(shop.load_table("shop.t")) == ids
    assert shop.list_tables("shop") == ("t",)
    # The handle from before them commits after them.
    snapshot = table.append(rows(7))
    assert snapshot is not None
    assert snapshot.id == 5
    assert len(server.ask(server.java, "read", "shop.t")["rows"]) == 7


@pytest.mark.parametrize("kind", ["java", "pypaimon"])
def test_a_table_that_another_engine_made_is_appended_to(
    server: Server, shop: penstock.Catalog, request: pytest.FixtureRequest, kind: str
) -> None:
    engine: Engine = request.getfixturevalue(kind)
    fields = [["id", "BIGINT"], ["name", "STRING"]]
    options = {"bucket": "2", "bucket-key": "id"}
    server.ask(engine, "create", f"shop.{kind}", fields=fields, partition=[], table_options=options)
    table = shop.load_table(f"shop.{kind}")
    table.append(pa.table({"id": [1, 2, 3], "name": ["a", None, "c"]}))
    found = server.ask(engine, "read", f"shop.{kind}")["rows"]
    assert sorted((row["id"], row["name"]) for row in found) == [(1, "a"), (2, None), (3, "c")]


def test_concurrent_appends_are_decided_by_the_server(server: Server, shop: penstock.Catalog) -> None:
    shop.create_table("shop.race", COLUMNS)

    def append(writer: int) -> None:
        table = server.catalog().load_table("shop.race")
        for number in range(4):
            table.append(rows(10 * writer + number))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(append, range(4)))
    table = shop.load_table("shop.race")
    assert ids_of(table) == sorted(10 * writer + number for writer in range(4) for number in range(4))
    latest = table.latest_snapshot()
    assert latest is not None
    assert latest.id == 16
    assert len(server.ask(server.java, "read", "shop.race")["rows"]) == 16


def test_a_commit_whose_answer_is_lost_is_found_and_not_repeated(server: Server, shop: penstock.Catalog) -> None:
    table = shop.create_table("shop.lost", COLUMNS)
    server.change(lose=True)
    snapshot = table.append(rows(1))
    assert snapshot is not None
    assert snapshot.id == 1
    assert ids_of(shop.load_table("shop.lost")) == [1]
    table.append(rows(2))
    assert len(server.ask(server.java, "read", "shop.lost")["rows"]) == 2


def test_schemas_are_changed_by_the_server(server: Server, shop: penstock.Catalog, pypaimon: Engine) -> None:
    old = shop.create_table("shop.s", "id INT, name STRING, gone INT")
    old.append(pa.table({"id": pa.array([1], pa.int32()), "name": ["a"], "gone": pa.array([9], pa.int32())}))
    altered = shop.alter_table(
        "shop.s",
        penstock.AddColumn(column="n", type="INT", description="new", position=penstock.after("id")),
        penstock.RenameColumn(column="name", new_name="title"),
        penstock.DropColumn(column="gone"),
        penstock.UpdateColumnType(column="id", type="BIGINT"),
        penstock.UpdateColumnComment(column="title", comment="what it is"),
        penstock.SetOption(key="snapshot.num-retained.max", value="99"),
        penstock.UpdateComment(comment="a table"),
    )
    assert [field.name for field in altered.schema.fields] == ["id", "n", "title"]
    altered.append(pa.table({"id": [2], "n": pa.array([5], pa.int32()), "title": ["b"]}))
    expected = [{"id": 1, "n": None, "title": "a"}, {"id": 2, "n": 5, "title": "b"}]
    found = shop.load_table("shop.s")
    assert sorted(found.to_arrow().to_pylist(), key=lambda row: row["id"]) == expected
    assert found.options["snapshot.num-retained.max"] == "99"
    for engine in (server.java, pypaimon):
        assert sorted(server.ask(engine, "read", "shop.s")["rows"], key=lambda row: row["id"]) == expected
    with pytest.raises(NotFoundError, match="nope"):
        shop.alter_table("shop.s", penstock.DropColumn(column="nope"))


def test_names_are_the_servers(server: Server, shop: penstock.Catalog) -> None:
    for number in range(105):  # more than a page
        server.ask(server.java, "create", f"shop.t{number:03}", fields=[["id", "INT"]], partition=[], table_options={})
    assert shop.list_tables("shop") == tuple(f"t{number:03}" for number in range(105))
    shop.rename_table("shop.t000", "shop.first")
    shop.drop_table("shop.t001")
    shop.drop_table("shop.t001", if_exists=True)
    tables = shop.list_tables("shop")
    assert ("first" in tables, "t000" in tables, "t001" in tables) == (True, False, False)
    assert "shop" in shop.list_databases()
    for wrong, error, text in [
        (lambda: shop.create_table("shop.first", "id INT"), AlreadyExistsError, "shop.first"),
        (lambda: shop.rename_table("shop.first", "shop.t002"), AlreadyExistsError, "shop.t002"),
        (lambda: shop.create_database("shop"), AlreadyExistsError, "shop"),
        (lambda: shop.drop_database("shop"), InvalidOptionError, "not empty"),
        (lambda: shop.drop_table("shop.t001"), NotFoundError, "shop.t001"),
        (lambda: shop.load_table("shop.t001"), NotFoundError, "shop.t001"),
        (lambda: shop.list_tables("nowhere"), NotFoundError, "nowhere"),
        (lambda: shop.create_table("nowhere.t", "id INT"), NotFoundError, "nowhere"),
    ]:
        with pytest.raises(error, match=text):
            wrong()


def test_old_snapshots_tags_rollback_and_expiration(server: Server, shop: penstock.Catalog) -> None:
    table = shop.create_table("shop.v", COLUMNS)
    for number in range(5):
        table.append(rows(number))
    assert table.to_arrow(snapshot_id=2).num_rows == 2
    table.create_tag("two", snapshot_id=2)
    assert table.to_arrow(tag="two").num_rows == 2
    table.rollback_to(snapshot_id=4)
    assert ids_of(shop.load_table("shop.v")) == [0, 1, 2, 3]
    assert len(server.ask(server.java, "read", "shop.v")["rows"]) == 4
    after = table.append(rows(9))
    assert after is not None
    assert after.id == 5
    table.expire_snapshots(retain_max=1, retain_min=1, older_than=2**40 * 1000)
    assert ids_of(shop.load_table("shop.v")) == [0, 1, 2, 3, 9]
    assert len(server.ask(server.java, "read", "shop.v")["rows"]) == 5
    table = shop.load_table("shop.v")
    again = table.versions.rollback_to_as_latest(tag="two")
    assert again is not None
    assert again.id == 6
    assert sorted(row["id"] for row in server.ask(server.java, "read", "shop.v")["rows"]) == [0, 1]


def test_what_only_the_server_does_is_refused(shop: penstock.Catalog) -> None:
    table = shop.create_table("shop.r", COLUMNS)
    table.append(rows(1))
    with pytest.raises(UnsupportedFeatureError, match="branches"):
        table.versions.create_branch("b")
    with pytest.raises(UnsupportedFeatureError, match="location"):
        shop.load_table(table.location)
    with pytest.raises(UnsupportedFeatureError, match="location"):
        shop.create_table("/somewhere/t", "id INT")


def test_missing_permissions_are_reported(server: Server, shop: penstock.Catalog) -> None:
    table = shop.create_table("shop.secret", COLUMNS)
    with pytest.raises(StorageError, match=r"answered 401.*token"):
        server.catalog(token="another")  # noqa: S106 - likewise
    server.change(forbid="shop.secret")
    with pytest.raises(StorageError, match=r"table shop\.secret.*answered 403.*permission"):
        shop.load_table("shop.secret")
    with pytest.raises(StorageError, match=r"table shop\.secret.*answered 403"):
        table.append(rows(1))


def test_a_recreated_table_is_not_committed_to(shop: penstock.Catalog) -> None:
    table = shop.create_table("shop.again", COLUMNS)
    shop.drop_table("shop.again")
    shop.create_table("shop.again", COLUMNS)
    with pytest.raises((NotFoundError, StorageError), match=r"shop\.again"):
        table.append(rows(1))
    assert shop.load_table("shop.again").to_arrow().num_rows == 0


def test_the_example_of_the_page_runs(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "rest.md").read_text()
    example = page.split("<!-- run by", 1)[1].partition("-->")[2].split("\nThe options are", 1)[0]
    script = textwrap.dedent(example).replace("http://localhost:8080", server.uri)
    exec(compile(script, "docs/rest.md", "exec"), {})  # noqa: S102 - our own page
    assert "Water flows" in capsys.readouterr().out
    server.catalog().drop_database("news", cascade=True)
