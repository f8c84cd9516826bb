"""Tables written by the real engines, read through the catalog: what their writers put there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from tests.interop.canonical import rows_of, sort_rows
from tests.spark.golden import LOCATIONS, STATES, expected_in_spark, padded, states_of
from tests.spark.needs import skip_if_refused

import penstock
from penstock.spark.versions.facts import PYTHON_SCANS
from penstock.spark.versions.python_api import to_arrow
from penstock.table.read.travel import at_snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

# One for each reader, and for each reason against Spark's own; the others are slow.
ALWAYS: Final = {
    "append_empty": "nothing was committed yet",
    "bucket8_stream": "parquet reader of Spark",
    "evolve": "values of older types converted",  # a ROW got a field
    "evolve_types": "Python workers for",
    "part_string_int": "parquet reader of Spark",
    "per_level_format": "orc and parquet readers of Spark, and Python workers for 2 of 6 files",
    "types_avro": "Spark does not read Avro files here",
    "types_orc": "does not read",
    "types_parquet": "does not read",
}


@pytest.fixture(scope="module")
def warehouse(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Attach a warehouse that has the golden tables under their names."""
    root = tmp_path_factory.mktemp("golden")
    (root / "g.db").mkdir()
    for name, location in LOCATIONS.items():
        (root / "g.db" / name).symlink_to(location)
    penstock.attach(spark, root, "golden")


def _plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def _rows(frame: DataFrame) -> list[dict[str, Any]]:
    return sort_rows(rows_of(to_arrow(frame)))


@pytest.mark.usefixtures("warehouse")
@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=() if path.stem in ALWAYS else pytest.mark.slow) for path in STATES],
    ids=lambda path: path.stem,
)
def test_the_catalog_has_the_rows_that_their_writer_put_there(spark: SparkSession, path: Path) -> None:
    name = f"golden.g.{path.stem}"
    table = penstock.Table.at(str(LOCATIONS[path.stem]))
    states = states_of(path)
    latest = [state for state in states if "tag" not in state][-1:]
    expected = latest[0]["rows"] if latest else rows_of(table.to_arrow())
    frame = spark.table(name)
    assert frame.columns == list(table.schema.field_names)
    with skip_if_refused(PYTHON_SCANS):
        rows = _rows(frame)
    assert rows == expected_in_spark(padded(expected, table.schema.fields), table.schema.fields)
    assert ALWAYS.get(path.stem, "") in _plan(frame)
    assert spark.sql(f"SELECT count(*) FROM {name}").collect() == [(len(expected),)]
    for state in [state for state in states if state.get("tag", state.get("snapshot")) is not None][:1]:
        point = state.get("tag", state.get("snapshot"))
        snapshot = table._store.load_snapshot(state["snapshot"]) if state.get("snapshot") is not None else None
        fields = at_snapshot(table._ref, table._store, snapshot).schema.fields if snapshot else table.schema.fields
        found = spark.sql(f"SELECT * FROM {name} VERSION AS OF '{point}'")
        with skip_if_refused(PYTHON_SCANS):
            rows = _rows(found)
        assert rows == expected_in_spark(padded(state["rows"], fields), fields), point
