"""Tables written by the real engines, read by Spark: natively where its own readers get every value right."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from pyspark.sql.pandas.types import to_arrow_schema
from tests.interop.canonical import rows_of, sort_rows
from tests.spark.golden import LOCATIONS, STATES, expected_in_spark, states_of
from tests.spark.plans import BY_SPARK, plan_of
from tests.spark.ways import READ_FORMAT_IF_SLOW

from penstock import Table
from penstock.spark.data_source.source import PenstockDataSource
from penstock.spark.types import nullable, to_spark_schema
from penstock.table.read.travel import at_snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = READ_FORMAT_IF_SLOW

NATIVE: Final = frozenset({"native"})
PYTHON: Final = frozenset({"python"})
# A scan of its own, a part of one, or one of the scans of a union.
SIGNS: Final = {
    BY_SPARK: "native",
    "readers of Spark": "native",
    "Location: MetadataLogFileIndex": "native",
    "MapInArrow": "python",
    "Python workers for": "python",
}
# Tables that Spark's own readers cannot read alone, and what in them is the reason. All the others they do.
NOT_NATIVE: Final = {
    "append_empty": frozenset(),  # no rows: no files to scan
    "f_watermark_expr": frozenset(),
    "bk_time": PYTHON,  # TIME
    "evolve_types": NATIVE | PYTHON,  # casts that are more than widening
    "per_level_format": NATIVE | PYTHON,  # a bucket in Avro, one in Parquet, one in ORC
    # Avro; ORC with CHAR and timestamps; Parquet with TIME and INT96
    **dict.fromkeys(("types_avro", "types_orc", "types_parquet", "v13_types_parquet", "v20_types_parquet"), PYTHON),
    **dict.fromkeys(("f_types_avro", "f_types_orc", "f_types_parquet"), PYTHON),
    **dict.fromkeys(("p14_types_parquet", "p21_types_parquet", "p21_types_orc", "p21_orc_pre1970"), PYTHON),
}
every_table = pytest.mark.parametrize("path", STATES, ids=lambda path: path.stem)


def some_always(paths: list[Path]) -> list[Any]:
    """All tables, most of them in long runs only: a job each, while ``tests/golden`` reads them all without Spark.

    What Spark does not read alone is always read, and of the others every sixth.
    """
    native = [path for path in paths if path.stem not in NOT_NATIVE]
    long = {path for path in native if path not in native[::6]}
    return [pytest.param(path, marks=pytest.mark.slow if path in long else ()) for path in paths]


def paths_taken(frame: DataFrame) -> set[str]:
    plan = plan_of(frame)
    return {path for sign, path in SIGNS.items() if sign in plan}


def rows_in(frame: DataFrame) -> list[dict[str, Any]]:
    return sort_rows(rows_of(frame.toArrow()))


@pytest.mark.parametrize("path", some_always(STATES), ids=lambda path: path.stem)
def test_latest_snapshot_has_the_rows_its_writer_put_there(spark: SparkSession, path: Path, read_way: str) -> None:
    table = Table.at(str(LOCATIONS[path.stem]))
    frame = table.to_spark(spark)
    states = [state for state in states_of(path) if "tag" not in state]
    # Java cannot read one of the tables: what we read of it without Spark is checked elsewhere.
    expected = states[-1]["rows"] if states else rows_of(table.to_arrow())
    assert rows_in(frame) == expected_in_spark(expected, table.schema.fields)
    assert frame.columns == list(table.schema.field_names)
    assert read_way == "format" or paths_taken(frame) == NOT_NATIVE.get(path.stem, NATIVE)


def test_expected_paths_name_tables_that_are_there() -> None:
    assert NOT_NATIVE.keys() <= LOCATIONS.keys()


def with_earlier_states() -> list[Path]:
    return [path for path in STATES if len(states_of(path)) > 1]


@pytest.mark.parametrize("path", some_always(with_earlier_states()), ids=lambda path: path.stem)
def test_earlier_snapshots_and_tags_have_the_rows_they_were_left_with(spark: SparkSession, path: Path) -> None:
    table = Table.at(str(LOCATIONS[path.stem]))
    frames, expected = [], []
    for state in earlier(states_of(path)):
        frame = table.to_spark(spark, snapshot_id=state.get("snapshot"), tag=state.get("tag"))
        snapshot = table._store.load_snapshot(state["snapshot"]) if "snapshot" in state else None
        fields = at_snapshot(table._ref, table._store, snapshot).schema.fields if snapshot else table.schema.fields
        number = len(expected)
        # A column of its own for each state lets one job read them all, whatever their schemas.
        frames.append(frame.select(F.struct("*").alias(f"s{number}")))
        expected.append(expected_in_spark(state["rows"], fields))
    found = reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), frames).toArrow()
    for number, rows in enumerate(expected):
        structs = found.column(f"s{number}").combine_chunks().drop_null()
        assert sort_rows(rows_of(pa.Table.from_struct_array(structs))) == rows, earlier(states_of(path))[number]


def earlier(states: list[dict[str, Any]], limit: int = 5) -> list[dict[str, Any]]:
    """Return all tags, and of the snapshots before the latest the first, the last and some between."""
    snapshots = [state for state in states if "tag" not in state][:-1]
    tags = [state for state in states if "tag" in state]
    if len(snapshots) > limit:
        snapshots = [snapshots[number * (len(snapshots) - 1) // (limit - 1)] for number in range(limit)]
    return snapshots + tags


@every_table
def test_data_source_reads_the_same_rows(path: Path) -> None:
    # Its own Python, without a session: what Spark adds to it is the next test's.
    location = str(LOCATIONS[path.stem])
    fields = Table.at(location).schema.fields
    reader = PenstockDataSource({"path": location}).reader(to_spark_schema(fields))
    batches = [batch for partition in reader.partitions() for batch in reader.read(partition)]
    schema = to_arrow_schema(nullable(to_spark_schema(fields)), timezone="UTC")
    states = [state for state in states_of(path) if "tag" not in state]
    expected = states[-1]["rows"] if states else rows_of(Table.at(location).to_arrow())
    assert sort_rows(rows_of(pa.Table.from_batches(batches, schema))) == expected_in_spark(expected, fields)


@pytest.mark.parametrize(
    "name",
    [
        "append_empty",
        "bucket8_stream",
        "evolve",
        "evolve_types",
        "part_bucket",
        "part_string_int",
        "per_level_format",
        "types_avro",
        "types_multiset",
        "types_orc",
        "types_parquet",
    ],
)
def test_data_source_gives_spark_the_same_rows(spark: SparkSession, name: str) -> None:
    location = str(LOCATIONS[name])
    frame = spark.read.format("penstock").load(location)
    states = [state for state in states_of(STATES[0].with_name(f"{name}.jsonl")) if "tag" not in state]
    expected = states[-1]["rows"] if states else []
    assert rows_in(frame) == expected_in_spark(expected, Table.at(location).schema.fields)
