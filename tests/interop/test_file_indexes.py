"""Indexes of all kinds, in manifests and beside the files: of Java Paimon, by which no row is lost, and ours."""

import random
from pathlib import Path
from typing import Final

import pytest
from tests.interop import ours
from tests.interop.engines import Engine, JavaPaimon
from tests.interop.test_streams import in_order
from tests.interop.values import SCALARS, Case
from tests.unit.table.actions.test_file_indexes import mixed_queue

import penstock
from penstock.table.read.live import load_live_entries
from penstock.table.store import MetadataStore

FILES: Final = 8
BYTES: Final = ("BINARY", "VARBINARY", "BYTES")
TEXTS_AND_NUMBERS: Final = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "CHAR", "VARCHAR", "STRING")
TYPES: Final = {
    "bloom-filter": (*TEXTS_AND_NUMBERS, *BYTES, "DATE", "TIME"),
    "bitmap": (*TEXTS_AND_NUMBERS, "BOOLEAN", "DATE", "TIME"),
    "range-bitmap": (
        *TEXTS_AND_NUMBERS,
        "BOOLEAN",
        "DATE",
        "TIME",
        "DECIMAL(5",
        "DECIMAL(9",
        "DECIMAL(18",
        "TIMESTAMP",
    ),
}
# Equal values of these may differ in bytes, or have another form, so nothing is concluded.
NOT_USED: Final = ("FLOAT", "DOUBLE", "CHAR", "DECIMAL")

pytestmark = pytest.mark.jvm


def cases(kind: str) -> list[Case]:
    """Types that the index knows; Python has no timestamps of nine digits to ask for."""
    return [each for each in SCALARS if each.sql.startswith(TYPES[kind]) and "(9)" not in each.sql]


@pytest.mark.parametrize("threshold", ["1 mb", "1 b"])
@pytest.mark.parametrize(
    ("kind", "more"), [("bloom-filter", {}), ("bitmap", {}), ("bitmap", {"version": "1"}), ("range-bitmap", {})]
)
def test_points_find_the_rows_that_a_read_without_indexes_finds(
    java: Engine, location: Path, kind: str, more: dict[str, str], threshold: str
) -> None:
    source = random.Random(kind)  # noqa: S311 - not for secrets
    columns = {f"c{number}": case for number, case in enumerate(cases(kind))}
    options = {
        f"file-index.{kind}.columns": ",".join(columns),
        "file-index.in-manifest-threshold": threshold,
        "metadata.stats-mode": "none",
        **({f"file-index.{kind}.{name}.items": "64" for name in columns} if kind == "bloom-filter" else {}),
        **{f"file-index.{kind}.{name}.{key}": value for name in columns for key, value in more.items()},
    }
    java.create(location, [("id", "INT"), *((name, case.json_type) for name, case in columns.items())], options=options)
    for number in range(FILES):
        chosen = {name: source.sample([*case.values, None], 2) for name, case in columns.items()}
        java.append(
            location, [{"id": 2 * number + i, **{name: two[i] for name, two in chosen.items()}} for i in (0, 1)]
        )
    assert len([*location.rglob("*.index")]) == (FILES if threshold == "1 b" else 0)
    table = ours.load(location)
    rows = table.with_options({"file-index.read.enabled": "false"}).to_arrow()
    ids = rows.column("id").to_pylist()
    assert rows.num_rows == 2 * FILES
    skipped = dict.fromkeys(columns, 0)
    for name in columns:
        for value in {*rows.column(name).unique().to_pylist()}:
            where = penstock.col(name).is_null() if value is None else penstock.col(name) == value
            expected = [
                row_id for row_id, each in zip(ids, rows.column(name).to_pylist(), strict=True) if each == value
            ]
            found = table.to_arrow(["id"], filter=where)
            assert sorted(found.column("id").to_pylist()) == sorted(expected), (name, value)
            skipped[name] += FILES - table.explain_values(where)["files"]
    without = {name for name, case in columns.items() if case.sql.startswith(NOT_USED)}
    assert {name for name, files in skipped.items() if not files} == without


LONGS: Final = Case(sql="BIGINT", json_type="BIGINT", values=tuple(range(-40 * 2**33, 40 * 2**33, 2**33 - 7)))
NULLS: Final = Case(sql="INT", json_type="INT", values=())
TEXTS: Final = Case(sql="STRING", json_type="STRING", values=tuple("text é" * (n % 7) + str(n) for n in range(90)))


def index_bytes(location: Path) -> list[bytes]:
    """Return the index of each file in the order of the manifest, from there or from beside the file."""
    table = ours.load(location)
    store = MetadataStore(table._ref)
    files = [entry.file for entry in load_live_entries(store, store.load_latest_snapshot()).values()]
    paths = {path.name: path for path in location.rglob("*.index")}
    return [file.embedded_file_index or paths[file.extra_files[0]].read_bytes() for file in files]


ROWS: Final = 300


@pytest.mark.parametrize("threshold", ["10 mb", "1 b"])
@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("bloom-filter", {"items": "40", "fpp": "0.02"}),
        ("bitmap", {"version": "1"}),
        ("bitmap", {}),
        ("bitmap", {"index-block-size": "100b"}),
        ("range-bitmap", {}),
        ("range-bitmap", {"chunk-size": "20b"}),
        ("range-bitmap", {"chunk-size": "0b"}),
    ],
)
def test_our_indexes_have_the_bytes_of_javas(
    java: Engine, location: Path, kind: str, more: dict[str, str], threshold: str
) -> None:
    source = random.Random(f"{kind}{more}")  # noqa: S311 - not for secrets
    types = {
        **{f"c{number}": case for number, case in enumerate(cases(kind))},
        "many": LONGS,
        "texts": TEXTS,
        "nulls": NULLS,
    }
    options = {
        f"file-index.{kind}.columns": ",".join(types),
        "file-index.in-manifest-threshold": threshold,
        **{f"file-index.{kind}.{name}.{key}": value for name in types for key, value in more.items()},
    }
    java.create(location, [(name, case.json_type) for name, case in types.items()], options=options)
    rows = [{name: source.choice([*case.values, None]) for name, case in types.items()} for _ in range(ROWS)]
    java.append(location, rows)
    ours.append(location, rows)
    theirs, mine = index_bytes(location)
    assert mine == theirs
    for name in ("many", "texts"):
        column = [row[name] for row in rows]
        for value in {*source.sample(types[name].values, 5)} - {None}:
            found = java.read(location, columns=[name], filter=[[name, "=", value]])
            assert len([row for row in found if row[name] == value]) == 2 * column.count(value)


def test_java_reads_files_that_got_indexes_later_(java: Engine, location: Path) -> None:
    """Its files have no index, and then ours."""
    java.create(location, [("id", "INT"), ("v", "STRING")])
    rows = [{"id": number, "v": f"v{number % 3}"} for number in range(30)]
    for number in range(3):
        java.append(location, rows[10 * number : 10 * number + 10])
    table = ours.load(location)
    options = {"file-index.bitmap.columns": "v", "file-index.bloom-filter.columns": "id"}
    table = ours.catalog_of(location).alter_table(
        ours.name_of(location), *(penstock.SetOption(key=key, value=value) for key, value in options.items())
    )
    assert table.maintenance.rewrite_file_index().files == 3
    found = java.read(location, filter=[["v", "=", "v1"]])
    found = [row for row in found if row["v"] == "v1"]
    assert sorted(found, key=lambda row: int(row["id"])) == [row for row in rows if row["v"] == "v1"]
    assert java.read(location, filter=[["id", "=", 1000]]) == []
    name, ids = ours.name_of(location), sorted(str(row["id"]) for row in rows)
    for _ in range(2):  # in the manifests, where files get back what they had
        for changes in (
            [penstock.RemoveOption(key=key) for key in options],
            [penstock.SetOption(key=key, value=value) for key, value in options.items()],
        ):
            table = ours.catalog_of(location).alter_table(
                name, penstock.SetOption(key="file-index.in-manifest-threshold", value="9 mb"), *changes
            )
            assert table.maintenance.rewrite_file_index().files == 3
            assert sorted(str(row["id"]) for row in java.read(location)) == ids


def test_java_reads_a_queue_in_order_of_which_a_file_has_an_index_of_no_column(
    java: JavaPaimon, location: Path
) -> None:
    catalog = ours.catalog_of(location)
    catalog.create_database(location.parent.stem, if_not_exists=True)
    table = mixed_queue(catalog, ours.name_of(location))
    assert table.maintenance.rewrite_file_index().files == 2
    [plan] = in_order(java.follow(location, "full", {"scan.mode": "latest-full"}))
    [rows] = plan.values()
    assert [row["k"] for row in rows] == list(range(20))
    assert [row["k"] for row in java.read(location, filter=[["x", "=", 3]])] == [3]
    assert sorted(row["k"] for row in java.read(location, filter=[["x", "is null"]])) == list(range(10, 20))


def test_java_expires_the_snapshots_in_which_files_got_other_indexes(java: Engine, location: Path) -> None:
    """It deletes the files of which the last entry in a snapshot deletes them."""
    java.create(location, [("id", "INT"), ("p", "STRING")], partition=["p"])
    rows = [{"id": number, "p": f"p{number % 3}"} for number in range(30)]
    for number in range(3):
        java.append(location, rows[10 * number : 10 * number + 10])
    for size in ("9 mb", "1 b"):
        table = ours.catalog_of(location).alter_table(
            ours.name_of(location),
            penstock.SetOption(key="file-index.bitmap.columns", value="id"),
            penstock.SetOption(key="file-index.in-manifest-threshold", value=size),
        )
        assert table.maintenance.rewrite_file_index().files == 9
    java.ask("expire", location, retain=1)
    assert table.snapshots().num_rows == 1
    assert len(java.read(location)) == len(rows)
    assert sorted(table.to_arrow()["id"].to_pylist()) == [row["id"] for row in rows]
    assert not table.inspect.fsck().findings
