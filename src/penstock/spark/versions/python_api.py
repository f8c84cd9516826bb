"""Functions and classes of PySpark that differ between versions, as the newest one has them."""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas import functions
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import BinaryType, StructField, StructType, TimestampType

from penstock.spark.versions.facts import HAS_CLASSIC

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import FrameType

    from pyspark.sql import DataFrame, SparkSession, datasource, merge, types
    from pyspark.sql.streaming import datasource as streaming_datasource
    from pyspark.sql.types import StringType

    from penstock.datafile.types import ArrowAny

__all__ = [
    "arrow_schema",
    "classic",
    "datasource",
    "from_arrow",
    "has_other_collation",
    "is_evolving_merge",
    "maven_package",
    "report_of",
    "streaming_datasource",
    "to_arrow",
    "types",
    "with_binary_column",
]

# Newer versions need the zone of instants, which older ones write as UTC.
_ZONE: Final = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}


class Absent:
    """Stands for a class that PySpark does not have: classes may inherit it, and no object of Spark's is one."""

    def __init__(self, *_: object) -> None:
        pass


class _Module:
    """A module of PySpark, in which a subclass of ``Absent`` stands for each name that it does not have."""

    def __init__(self, name: str) -> None:
        try:
            self._module: object = importlib.import_module(name)
        except ModuleNotFoundError:
            self._module = None

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the module has
        # Each time another class: one cannot inherit a class twice.
        return getattr(self._module, name, None) or type(name, (Absent,), {})


if not TYPE_CHECKING:
    datasource = _Module("pyspark.sql.datasource")
    merge = _Module("pyspark.sql.merge")
    streaming_datasource = _Module("pyspark.sql.streaming.datasource")
    types = _Module("pyspark.sql.types")


def classic(jvm: Any) -> Any:  # noqa: ANN401 - packages of the JVM
    """Return the package of the sessions and DataFrames that run in this JVM."""
    sql = jvm.org.apache.spark.sql
    return sql.classic if HAS_CLASSIC else sql


def maven_package(spark: SparkSession, name: str) -> str:
    """Return the coordinates of a package of Spark for the version that runs, such as ``spark-sql-kafka-0-10``."""
    jvm: Any = spark._jvm  # noqa: SLF001 - Python has no way to ask for the version of Scala
    scala = ".".join(jvm.scala.util.Properties.versionNumberString().split(".")[:2])
    return f"org.apache.spark:{name}_{scala}:{spark.version}"


def report_of(progress: Any) -> Mapping[str, Any]:  # noqa: ANN401 - of PySpark, by version
    """Return the report of a query that a listener gets, with the keys of ``query.lastProgress``."""
    # Spark 3.5 passes an object; the JSON leaves out numbers that are not finite.
    return progress if isinstance(progress, dict) else json.loads(progress.json)


def is_evolving_merge() -> bool:
    """Whether a thread of this process is in ``mergeInto(...).withSchemaEvolution().merge()``."""
    # Py4J calls Python from the JVM in a thread of its own, so the caller may be any.
    for innermost in sys._current_frames().values():  # noqa: SLF001 - public in all but its name
        frame: FrameType | None = innermost
        while frame is not None:
            writer = frame.f_locals.get("self") if frame.f_code.co_name == "merge" else None
            if isinstance(writer, merge.MergeIntoWriter) and writer._jwriter.schemaEvolutionEnabled():  # noqa: SLF001
                return True
            frame = frame.f_back
    return False


def has_other_collation(text: StringType) -> bool:
    """Whether texts of a type are compared by other than their bytes."""
    return hasattr(text, "isUTF8BinaryCollation") and not text.isUTF8BinaryCollation()


def to_arrow(frame: DataFrame) -> pa.Table:
    """Return the rows of a DataFrame, in the memory of this process."""
    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    wanted = arrow_schema(frame.schema)
    batches = frame._collect_as_arrow()  # type: ignore[operator] # noqa: SLF001 - what toPandas uses
    # Instants come in the zone of the session.
    return pa.Table.from_batches(batches).cast(wanted) if batches else wanted.empty_table()


def from_arrow(spark: SparkSession, rows: pa.Table, schema: StructType | None = None) -> DataFrame:
    """Return rows in memory as a DataFrame.

    Args:
        schema: of the rows in Spark; None for what Spark derives from the Arrow types.
    """
    if HAS_CLASSIC:
        return spark.createDataFrame(rows, schema)
    wanted = schema or from_arrow_schema(rows.schema)
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    columns = []
    for column, spark_field in zip(rows.columns, wanted.fields, strict=True):
        is_instant = isinstance(spark_field.dataType, TimestampType) and column.type.tz is None
        values = pc.assume_timezone(column, zone, ambiguous="earliest", nonexistent="latest") if is_instant else column
        columns.append(values.to_pylist(maps_as_pydicts="strict"))
    return spark.createDataFrame(list(zip(*columns, strict=True)), wanted, verifySchema=False)


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema that Spark derives from its own; instants are in UTC."""
    return to_arrow_schema(schema, **_ZONE)  # type: ignore[arg-type] # of two parameters, one takes text


def with_binary_column(
    frame: DataFrame, name: str, function: Callable[..., ArrowAny], columns: Sequence[str]
) -> DataFrame:
    """Return a frame with a column that a function computes from Arrow arrays of other columns.

    Without ``arrow_udf``, all columns pass through Python: ``pandas_udf`` would turn integers with NULL into floats.
    """
    if hasattr(functions, "arrow_udf"):
        # PySpark's types know plain functions only.
        return frame.withColumn(name, functions.arrow_udf(function, "binary")(*columns))  # type: ignore[call-overload]

    def add(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.append_column(name, function(*(batch.column(column) for column in columns)))

    return frame.mapInArrow(add, StructType([*frame.schema, StructField(name, BinaryType())]))
