"""Run SQL queries over DataFrames, which have temporary names during analysis, and shape rows for ``INSERT``."""

from __future__ import annotations

import contextlib
import io
import re
import uuid
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from pyspark.errors import AnalysisException, IllegalArgumentException, ParseException
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql import types as spark_types

from penstock.datafile.types import has_leaf, is_char, map_parts
from penstock.errors import InvalidOptionError, InvalidSqlError, SchemaMismatchError, UnsupportedFeatureError
from penstock.format.text.names import quoted
from penstock.format.types.data_types import (
    MAX_LENGTH,
    ArrayType,
    AtomicType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    with_nullability,
)
from penstock.format.types.text import parse_sql_type
from penstock.spark.logical_plan import analyzed_plan
from penstock.spark.session import is_connect
from penstock.spark.sql.casts import cast_exactly
from penstock.spark.types import from_spark_schema, to_catalog_schema, to_spark_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from penstock.format.types.data_types import DataField, DataType
    from penstock.format.types.ddl import ColumnSpec

_PREFIX: Final = "penstock_"
_VIEW: Final = re.compile(_PREFIX + "[0-9a-f]{32}")
# Of the frames in a query, in PySpark's ``SQLStringFormatter`` of Connect.
_CONNECT_NAME: Final = "_pyspark_connect_temp_view_"
_TYPE: Final = "penstock.type"
_PLACE: Final = re.compile(r"\bline (?P<line>\d+),? pos (?P<column>\d+)")
# Parts of Spark's messages to remove: error names, positions in the generated text, the search path of functions.
_NOISE: Final = re.compile(
    r"^\[[\w.]+\] |\bSQLSTATE: \w+|;? ?\(?\bline \d+,? pos \d+\)?| on search path \[.*?\]", re.DOTALL
)
_ROUTINE: Final = re.compile(r"resolve routine `(?P<name>\w+)`")


class SqlText(Protocol):
    """A query text in which names of views are still to be inserted."""

    def text(self, names: Sequence[str]) -> str:
        """Return the query with these names of views."""

    def place(self, names: Sequence[str], offset: int) -> tuple[int, int]:
        """Return the line and the column of a character in the text that the user wrote."""


def query_frame(spark: SparkSession, frames: Sequence[DataFrame], query: SqlText) -> DataFrame:
    """Return the rows of a query.

    Args:
        frames: the tables that the query reads, one for each name in its text.
    """
    if is_connect(spark):
        return _query_connect(spark, frames, query)
    names = [f"{_PREFIX}{uuid.uuid4().hex}" for _ in frames]
    try:
        for name, frame in zip(names, frames, strict=True):
            frame.createTempView(name)
        # Spark analyses the query here, so the views are not needed when it runs.
        return spark.sql(query.text(names))
    except (AnalysisException, ParseException) as error:
        raise InvalidSqlError(_explained(str(error), query, names, spark)) from error
    finally:
        for name in names:
            spark.catalog.dropTempView(name)


def _query_connect(spark: SparkSession, frames: Sequence[DataFrame], query: SqlText) -> DataFrame:
    """Return the rows of a query. The server analyses it each time it runs, so the frames are parts of it."""
    keys = [f"{_PREFIX}{place}_{uuid.uuid4().hex}" for place in range(len(frames))]
    text = query.text(keys).replace("{", "{{").replace("}", "}}")
    for key in keys:
        text = text.replace(key, f"{{{key}}}")
    try:
        return spark.sql(text, **cast("dict[str, Any]", dict(zip(keys, frames, strict=True))))
    except (AnalysisException, ParseException) as error:
        # Positions are those in the text with PySpark's names, which have one length.
        names = [_CONNECT_NAME + "0" * 32 for _ in frames]
        said = re.sub(_CONNECT_NAME + "[0-9a-f]{32}", names[0] if names else "", str(error))
        raise InvalidSqlError(_explained(said, query, names, spark)) from error


def view_frame(frame: DataFrame, places: Sequence[int], fields: Sequence[DataField]) -> DataFrame:
    """Return the rows of a view.

    Args:
        frame: the rows of its query.
        places: which columns of the query the view has.
        fields: names and types of the view's columns; others of the query are cast, as Spark does in its own views.
    """
    unique = frame.toDF(*(f"{_PREFIX}{place}" for place in range(len(frame.columns))))
    columns = []
    for place, field in zip(places, fields, strict=True):
        kind, column = to_spark_type(field.type), F.col(f"{_PREFIX}{place}")
        is_same = unique.schema[place].dataType.simpleString() == kind.simpleString()
        columns.append((column if is_same else column.cast(kind)).alias(field.name))
    return unique.select(*columns)


def computed_frame(frame: DataFrame, columns: Sequence[tuple[str, str | None]]) -> DataFrame:
    """Return columns of a DataFrame and computed columns.

    Args:
        columns: names, in the order of the result, each with its expression; None for a column of the DataFrame.
    """
    return frame.select(*(F.col(quoted(name)) if text is None else F.expr(text).alias(name) for name, text in columns))


def padded_frame(frame: DataFrame, fields: Sequence[DataField]) -> DataFrame:
    """Return rows with padded values of CHAR, which Spark compares as those of its own tables by their declared types.

    Args:
        fields: of the table; columns of a past state that had other types stay.
    """
    known = {field.name: field for field in fields if has_leaf(field.type, is_char)}
    if known.keys().isdisjoint(frame.columns):
        return frame
    columns = []
    for column in frame.schema:
        name, found = quoted(column.name), F.col(quoted(column.name))
        field = known.get(column.name)
        if field is not None and to_spark_type(field.type).simpleString() == column.dataType.simpleString():
            metadata = {**column.metadata, **to_catalog_schema([field])[0].metadata}
            found = F.expr(_padded(name, field.type)).alias(column.name, metadata=metadata)
        columns.append(found)
    return frame.select(*columns)


def _padded(text: str, data_type: DataType) -> str:
    match data_type:
        case AtomicType(root=TypeRoot.CHAR, length=length):
            return f"rpad({text}, greatest({length or 1}, length({text})), ' ')"
        case ArrayType(element=element):
            return f"transform({text}, v -> {_padded('v', element)})"
        case MapType() | MultisetType():
            key, value = map_parts(data_type)
            keys = f"transform_keys({text}, (k, v) -> {_padded('k', key)})"
            return f"transform_values({keys}, (k, v) -> {_padded('v', value)})"
        case RowType(fields=fields):
            names = [quoted(each.name) for each in fields]
            inner = [
                f"{_padded(f'{text}.{name}', each.type)} AS {name}" for name, each in zip(names, fields, strict=True)
            ]
            return f"if({text} IS NULL, NULL, struct({', '.join(inner)}))"
        case _:
            return text


def explain_text(frame: DataFrame) -> str:
    """Return Spark's plan of a query as text; for a stream the logical plan, as physical plans differ per batch."""
    if frame.isStreaming and not is_connect(frame.sparkSession):
        plan = str(analyzed_plan(frame).toString()).strip()
        return "== Analyzed Logical Plan ==\n" + _VIEW.sub("table", plan)
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        frame.explain()
    return text.getvalue().strip()


def check_stream(frame: DataFrame) -> None:
    """Check that Spark can run a streaming query in append mode, where rows are final when they are delivered.

    A server of Spark Connect checks it when the query starts.
    """
    if is_connect(frame.sparkSession):
        return
    jvm: Any = frame.sparkSession._jvm  # noqa: SLF001 - Python checks this only when the query starts
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    try:
        checker.checkForStreaming(analyzed_plan(frame), jvm.org.apache.spark.sql.streaming.OutputMode.Append())
    except AnalysisException as error:
        said = " ".join(_NOISE.sub("", str(error).strip().partition(";\n")[0]).split())
        raise UnsupportedFeatureError(
            f"Spark cannot run this query as a stream: {said.rstrip('.')}; group by windows of a time that has a"
            " watermark (WATERMARK FOR in CREATE TABLE), or SET 'execution.runtime-mode' = 'batch'"
        ) from error


def typed_frame(frame: DataFrame, types: Mapping[str, str]) -> DataFrame:
    """Mark columns with the types that a table declares, such as ``TIMESTAMP(3)``, which Spark's types cannot express.

    Args:
        types: types as in DDL, by column.
    """
    marked = [
        F.col(quoted(field.name)).alias(field.name, metadata={**field.metadata, _TYPE: types[field.name]})
        if field.name in types
        else F.col(quoted(field.name))
        for field in frame.schema.fields
    ]
    return frame.select(*marked)


def typed_columns(frame: DataFrame) -> tuple[ColumnSpec, ...]:
    """Return the columns of a new table for such rows; columns marked by ``typed_frame`` have the marked types."""
    fields = frame.schema.fields
    return tuple(
        _as_declared(column, field) for column, field in zip(from_spark_schema(frame.schema), fields, strict=True)
    )


def _as_declared(column: ColumnSpec, field: spark_types.StructField) -> ColumnSpec:
    text = field.metadata.get(_TYPE)
    declared = None if text is None else parse_sql_type(text)
    # A union has the marks of its first child, even if its type is another because of the other children.
    if declared is None or to_spark_type(declared) != field.dataType:
        return column
    return replace(column, type=with_nullability(declared, nullable=field.nullable))


def set_conf(spark: SparkSession, key: str, value: str) -> None:
    """Set a key of the session."""
    try:
        spark.conf.set(key, value)
    except (AnalysisException, IllegalArgumentException) as error:
        said = " ".join(_NOISE.sub("", str(error).partition("\n")[0]).split()).rstrip(" .")
        raise InvalidOptionError(f"SET '{key}' = '{value}': {said}") from error


def insert_frame(
    frame: DataFrame,
    fields: Sequence[DataField],
    *,
    columns: Sequence[str],
    constants: Mapping[str, str | None],
    table: str,
) -> DataFrame:
    """Return rows with the columns of a table, matched by position, not by name, as in ``INSERT``.

    Args:
        columns: target columns, in the order of the frame's columns.
        constants: values of partition columns as text; None for NULL. All other columns become NULL.
    """
    if len(frame.columns) != len(columns):
        raise SchemaMismatchError(
            f"table {table}: the query has {len(frame.columns)} columns ({', '.join(frame.columns)}), and"
            f" {len(columns)} are to be written ({', '.join(columns)})"
        )
    places = [f"c{place}" for place in range(len(columns))]
    numbered = frame.toDF(*places)
    place_of = dict(zip(columns, places, strict=True))
    shaped = []
    for field in fields:
        wanted = to_spark_type(field.type)
        if field.name in place_of:
            place = place_of[field.name]
            value = cast_exactly(
                F.col(place), numbered.schema[place].dataType, wanted, where=f"table {table}, column '{field.name}'"
            )
            if isinstance(field.type, AtomicType) and isinstance(wanted, spark_types.StringType):
                value = _without_excess_blanks(value, field.type.length or 1)
        else:
            value = F.lit(constants.get(field.name)).cast(wanted)
        shaped.append(value.alias(field.name))
    return numbered.select(*shaped)


def _without_excess_blanks(value: Column, length: int) -> Column:
    """Cut blanks at the end that are too many for a text, as Spark's own tables do; longer texts are refused later."""
    if length == MAX_LENGTH:
        return value
    trimmed = F.rtrim(value)
    cut = F.rpad(trimmed, length, " ")
    return F.when((F.length(value) > length) & (F.length(trimmed) <= length), cut).otherwise(value)


def _explained(said: str, query: SqlText, names: Sequence[str], spark: SparkSession) -> str:
    """Return Spark's message without plans and our view names, with the position in the text that the user wrote."""
    where = ""
    if match := _PLACE.search(said):
        lines = query.text(names).split("\n")[: int(match["line"]) - 1]
        line, column = query.place(names, sum(len(line) + 1 for line in lines) + int(match["column"]))
        where = f"line {line}, column {column}: "
    said = _NOISE.sub("", said.partition("JVM stacktrace:")[0].strip().partition(";\n")[0].partition("== SQL")[0])
    for name in names:
        said = said.replace(f"`{name}`.", "").replace(name, "table")
    said = " ".join(said.split()).rstrip(" ;.")
    return f"{where}Spark cannot run the query: {said}{_near_function(said, spark)}"


def _near_function(said: str, spark: SparkSession) -> str:
    match = _ROUTINE.search(said)
    if match is None:
        return ""
    names = [str(row[0]) for row in spark.sql("SHOW FUNCTIONS").collect()]
    near = get_close_matches(match["name"].lower(), names, n=1)
    return f"; did you mean {near[0]}?" if near else ""
