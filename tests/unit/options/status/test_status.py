"""The table of features: what each operation does with a table that another engine made with the feature."""

from __future__ import annotations

import io
import itertools
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.feature_tables import CASES, COLUMNS, OPERATIONS, option_of, outcomes

from penstock import AddColumn, Catalog, Table
from penstock.errors import UnsupportedFeatureError
from penstock.format.layout import TableLayout
from penstock.format.schema import encode_schema
from penstock.format.snapshot import encode_snapshot
from penstock.options import KNOWN_KEYS
from penstock.options.status.documented import FIELD_SUFFIXES
from penstock.options.status.features import FEATURES, STORED_PREFIXES, Feature, Operation

if TYPE_CHECKING:
    from pathlib import Path

NUMBERS = itertools.count()


def catalog_with(options: dict[str, str], created: dict[str, str] | None = None) -> Catalog:
    """Return a catalog with a table ``d.t`` of three rows, to which another engine has given options.

    Args:
        created: options that the table had from the start.
    """
    catalog = Catalog(f"memory://features-{next(NUMBERS)}")
    catalog.create_database("d")
    table = catalog.create_table("d.t", COLUMNS, options=created)
    for key in (1, 2, 3):
        table.append([{"a": key, "m": [("k", key)]}])
    ref = table._ref
    stored = replace(ref.schema, options=tuple((dict(ref.schema.options) | options).items()))
    ref.file_io.write(ref.layout.schema_path(0), encode_schema(stored))
    return catalog


@pytest.mark.filterwarnings("ignore::penstock.OptionWarning")
@pytest.mark.parametrize(("feature", "key"), CASES, ids=[key for _, key in CASES])
def test_each_operation_does_what_the_table_of_features_states(feature: Feature, key: str) -> None:
    option = option_of(key)
    catalog = catalog_with(option, created=option if key == "row-tracking.enabled" else None)
    for operation, text in outcomes(lambda: catalog.load_table("d.t")).items():
        if operation in feature.refused:
            assert re.match(rf"table d\.t: .*'{re.escape(*option)}' ", text), operation
            assert feature.reason in text
        else:
            assert text == "", operation


def test_every_feature_says_what_to_do_or_why_it_is_harmless() -> None:
    assert len({feature.name for feature in FEATURES}) == len(FEATURES)
    for feature in FEATURES:
        assert not feature.refused & feature.found
        assert feature.reason
    assert set(OPERATIONS) == set(Operation)


@pytest.mark.parametrize(
    "key",
    ["data-file.layout", "fields.a.map.other-layout", "bucket.tree", "manifest.version", "variant.next", "storage"],
)
def test_writes_refuse_keys_of_newer_versions_that_may_change_what_is_stored(key: str) -> None:
    table = catalog_with({key: "v"}).load_table("d.t")
    assert table.to_arrow().num_rows == 3
    for operation in (Operation.APPEND, Operation.CHANGE, Operation.REWRITE):
        with pytest.raises(UnsupportedFeatureError, match=rf"table d\.t: .*option '{key}' = 'v' is not known .*remove"):
            OPERATIONS[operation](table)


@pytest.mark.parametrize("key", ["owner.team", "delta.feature", "lookup.next", "scan.next", "sink.next"])
def test_other_unknown_keys_do_not_stop_writes(key: str) -> None:
    table = catalog_with({key: "v"}).load_table("d.t")
    OPERATIONS[Operation.APPEND](table)
    assert table.to_arrow().num_rows == 4


def test_a_new_table_does_not_get_a_key_that_would_stop_its_writes() -> None:
    catalog = Catalog(f"memory://features-{next(NUMBERS)}")
    catalog.create_database("d")
    with (
        pytest.warns(match="'file.fromat' is not known"),
        pytest.raises(UnsupportedFeatureError, match=r"'file\.fromat' .*did you mean 'file\.format'\?"),
    ):
        catalog.create_table("d.t", "a INT", options={"file.fromat": "orc"})


def test_known_keys_are_no_reason_to_refuse() -> None:
    """Only keys that Paimon does not have today are unknown, and some known key explains each prefix."""
    known = KNOWN_KEYS | {f"fields.a{suffix}" for suffix in FIELD_SUFFIXES} | {"metadata.iceberg.storage"}
    unused = {prefix for prefix in STORED_PREFIXES if not any(key.startswith(prefix) for key in known)}
    assert unused == {"encrypt", "map.", "statistics", "storage"}


SHREDDED = pa.struct(
    {
        "metadata": pa.binary(),
        "value": pa.binary(),
        "typed_value": pa.struct({"age": pa.struct({"value": pa.binary(), "typed_value": pa.int64()})}),
    }
)
SHARED = pa.struct({"__field_mapping": pa.list_(pa.int32()), "__col_0": pa.int32()})


@pytest.mark.parametrize(
    ("column", "stored", "words"),
    [
        ("v VARIANT", SHREDDED, "fields of a VARIANT"),
        ("v ARRAY<VARIANT>", pa.list_(SHREDDED), "fields of a VARIANT"),
        ("v ROW<x VARIANT>", pa.struct({"x": SHREDDED}), "fields of a VARIANT"),
        ("v MAP<STRING, VARIANT>", pa.map_(pa.string(), SHREDDED), "fields of a VARIANT"),
        ("v MAP<STRING, INT>", SHARED, "values of a MAP"),
        ("v ROW<x MAP<STRING, INT>>", pa.struct({"x": SHARED}), "values of a MAP"),
    ],
)
def test_a_file_with_values_in_columns_of_their_own_is_never_read_without_them(
    column: str, stored: pa.DataType, words: str, tmp_path: Path
) -> None:
    catalog = Catalog(str(tmp_path))
    catalog.create_database("d")
    table = catalog.create_table("d.t", f"a INT, {column}")
    table.append([{"a": 1, "v": None}, {"a": 4, "v": None}])
    (row,) = table.files().to_pylist()
    pq.write_table(pa.table({"a": pa.array([1, 4], pa.int32()), "v": pa.nulls(2, stored)}), row["file_path"])
    table.append([{"a": 2, "v": None}])
    match = (
        rf"table d\.t.*{re.escape(row['file_path'])}: column 'v': the file keeps {words} .*which Penstock does not read"
    )
    for act in (
        table.to_arrow,
        lambda: list(table.follow(once=True)),
        lambda: table.delete("a = 1"),
        lambda: table.update({"a": 3}, where="a = 1"),
        table.compact,
    ):
        with pytest.raises(UnsupportedFeatureError, match=match):
            act()
    if "VARIANT" in column:
        with pytest.raises(UnsupportedFeatureError, match=words):
            table.to_dataset()
    assert table.to_arrow(["a"]).num_rows == 3
    assert table.latest_snapshot().id == 2


def test_a_snapshot_with_keys_of_a_newer_release_is_read_and_not_continued() -> None:
    table = catalog_with({}).load_table("d.t")
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    path = TableLayout(table.location).snapshot_path(snapshot.id)
    table._ref.file_io.write(path, encode_snapshot(replace(snapshot, extra=(("logOffsets", "{ }"), ("none", "null")))))
    table.append([{"a": 4, "m": []}])
    newest = replace(snapshot, id=snapshot.id + 1, extra=(("columnMap", '"x"'),))
    table._ref.file_io.write(TableLayout(table.location).snapshot_path(newest.id), encode_snapshot(newest))
    for act in (OPERATIONS[Operation.APPEND], OPERATIONS[Operation.CHANGE], OPERATIONS[Operation.REWRITE]):
        with pytest.raises(
            UnsupportedFeatureError, match=r"table d\.t: snapshot 4 has keys of a newer .*\(columnMap\)"
        ):
            act(Table(table._ref))
    assert Table(table._ref).to_arrow().num_rows == 3


def test_a_schema_with_keys_of_a_newer_release_is_read_and_neither_written_nor_altered() -> None:
    catalog = catalog_with({})
    table = catalog.load_table("d.t")
    path = TableLayout(table.location).schema_path(0)
    values = json.loads(table._ref.file_io.read(path))
    values["fields"][0]["codec"] = "x"
    table._ref.file_io.write(path, json.dumps(values).encode())
    assert catalog.load_table("d.t").to_arrow().num_rows == 3
    with pytest.raises(UnsupportedFeatureError, match=r"cannot write it: schema 0 has keys of a newer .*'a\.codec'"):
        catalog.load_table("d.t").append([{"a": 4, "m": []}])
    with pytest.raises(UnsupportedFeatureError, match=r"cannot alter it: schema 0 has keys of a newer .*'a\.codec'"):
        catalog.alter_table("d.t", AddColumn(column="b", type="INT"))


@pytest.mark.parametrize(
    "option", [{"manifest.merge-min-count": "2"}, {"manifest.full-compaction-threshold-size": "1"}]
)
def test_manifests_with_fields_of_a_newer_release_are_not_merged(option: dict[str, str]) -> None:
    table = catalog_with({}).load_table("d.t")
    file_io = table._ref.file_io
    for each in file_io.list(f"{table.location}/manifest"):
        if "manifest-list" in each.path:
            continue
        data = io.BytesIO(file_io.read(each.path))
        reader = fastavro.reader(data)
        records, schema = list(reader), reader.writer_schema
        next(field for field in schema["fields"] if field["name"] == "_FILE")["type"]["fields"].append(
            {"name": "_NEXT", "type": ["null", "long"], "default": None}
        )
        output = io.BytesIO()
        fastavro.writer(output, schema, [record | {"_FILE": record["_FILE"] | {"_NEXT": 7}} for record in records])
        file_io.write(each.path, output.getvalue())
    names = set(table.inspect.manifests().column("file_name").to_pylist())
    changed = table.with_options(option)
    changed.append([{"a": 4, "m": []}])
    changed.append([{"a": 5, "m": []}])
    changed.delete("a = 1")
    assert sorted(Table(table._ref).to_arrow(["a"]).column("a").to_pylist()) == [2, 3, 4, 5]
    assert names <= set(Table(table._ref).inspect.manifests().column("file_name").to_pylist())
