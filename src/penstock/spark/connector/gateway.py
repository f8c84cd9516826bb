"""All uses of private API of Spark, PySpark and Py4J in the connector.

The interfaces in ``org.apache.spark.sql.connector`` are public. Private are the way to add a catalog that is an object,
not a class on Spark's class path, to a session, and the readers that ``spark.read.parquet`` uses. If a version of Spark
changes private API, only this module changes. ``tests/spark/connector/test_gateway.py`` checks each use against the
versions in ``SUPPORTED``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyspark
from pyspark import SparkContext
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from pyspark.sql.udf import _wrap_function

from penstock.errors import UnsupportedFeatureError
from penstock.format.text.names import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql.datasource import DataSource

JavaObject: TypeAlias = Any
"""An object of the JVM, without a static type in Python."""

SUPPORTED: Final = ("4.2", "4.3")
"""Versions of Spark that this module works with."""

_QUERY_ID: Final = "sql.streaming.queryId"
_CONNECTOR: Final = "org.apache.spark.sql.connector."
_SQL: Final = "org.apache.spark.sql."

PRIVATE: Final = {
    "Attributes": f"{_SQL}catalyst.types.DataTypeUtils",
    "Dataset": f"{_SQL}classic.Dataset",
    "FileIndex": f"{_SQL}execution.streaming.runtime.MetadataLogFileIndex",
    "FilePartition": f"{_SQL}execution.datasources.FilePartition",
    "InternalRow": f"{_SQL}catalyst.InternalRow",
    "OrcScan": f"{_SQL}execution.datasources.v2.orc.OrcScan",
    "ParquetScan": f"{_SQL}execution.datasources.v2.parquet.ParquetScan",
    "PartitionedFile": f"{_SQL}execution.datasources.PartitionedFile",
    "PredicateUtils": f"{_SQL}internal.connector.PredicateUtils",
    "PythonBatchWriterFactory": f"{_SQL}execution.datasources.v2.python.PythonBatchWriterFactory",
    "PythonInputPartition": f"{_SQL}execution.datasources.v2.python.PythonInputPartition",
    "PythonPartitionReaderFactory": f"{_SQL}execution.datasources.v2.python.PythonPartitionReaderFactory",
    "SerializedOffset": f"{_SQL}execution.streaming.runtime.SerializedOffset",
    "SparkPath": "org.apache.spark.paths.SparkPath",
    "SparkSession": f"{_SQL}classic.SparkSession",
    "SpecificInternalRow": f"{_SQL}catalyst.expressions.SpecificInternalRow",
    "StreamingRelation": f"{_SQL}catalyst.streaming.StreamingRelationV2",
    "UserDefinedPythonDataSource": f"{_SQL}execution.datasources.v2.python.UserDefinedPythonDataSource",
    "V2Columns": f"{_SQL}connector.catalog.CatalogV2Util",
}
"""Private classes of Spark, by the names that this package uses for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bridge:
    """Access from Python to the JVM of a session.

    Attributes:
        gateway: Py4J's gateway; shared by all sessions of the process.
    """

    gateway: JavaObject

    @property
    def jvm(self) -> JavaObject:
        """View of the JVM's packages and classes."""
        return self.gateway.jvm

    def session(self) -> JavaObject:
        """Return the session of the running query: queries of cloned sessions call the same catalog."""
        return self.private("SparkSession").active()

    def python_session(self, session: JavaObject) -> SparkSession:
        """Return a session of the JVM as a PySpark session."""
        return SparkSession(SparkContext.getOrCreate(), session)

    def private(self, name: str) -> JavaObject:
        """Return one of the classes in ``PRIVATE``."""
        return getattr(self.jvm, PRIVATE[name])

    def connector(self, name: str) -> JavaObject:
        """Return a class of Spark's connector interfaces, such as ``catalog.Identifier``."""
        return getattr(self.jvm, _CONNECTOR + name)

    def array(self, element: JavaObject, items: Sequence[object]) -> JavaObject:
        """Return an array of the JVM."""
        made = self.gateway.new_array(element, len(items))
        for place, item in enumerate(items):
            made[place] = item
        return made

    def strings(self, items: Sequence[str]) -> JavaObject:
        """Return a ``String[]``."""
        return self.array(self.jvm.java.lang.String, items)

    def objects(self, items: Sequence[object]) -> JavaObject:
        """Return an ``Object[]``."""
        return self.array(self.jvm.java.lang.Object, items)

    def ints(self, items: Sequence[int]) -> JavaObject:
        """Return an ``int[]``."""
        return self.array(self.jvm.int, items)

    def java_set(self, items: Iterable[object]) -> JavaObject:
        """Return a ``java.util.Set``."""
        made = self.jvm.java.util.HashSet()
        for item in items:
            made.add(item)
        return made

    def java_map(self, items: Mapping[str, str]) -> JavaObject:
        """Return a ``java.util.Map``."""
        made = self.jvm.java.util.HashMap()
        for key, value in items.items():
            made.put(key, value)
        return made

    def scala_map(self, items: Mapping[str, str]) -> JavaObject:
        """Return an immutable Scala map."""
        return self.jvm.PythonUtils.toScalaMap(dict(items))

    def sequence(self, items: Sequence[object]) -> JavaObject:
        """Return an immutable Scala sequence."""
        return self.jvm.PythonUtils.toSeq(list(items))

    def nothing(self) -> JavaObject:
        """Return Scala's ``None``."""
        return self.jvm.scala.Option.empty()

    def schema(self, schema: StructType) -> JavaObject:
        """Convert a PySpark schema to a JVM schema."""
        return self.jvm.org.apache.spark.sql.types.DataType.fromJson(schema.json())

    def columns(self, schema: JavaObject) -> JavaObject:
        """Convert a JVM schema to the columns of a table."""
        return self.private("V2Columns").structTypeToV2Columns(schema, False)  # noqa: FBT003 - Java has no keywords

    def value_of(self, enum: str, name: str) -> JavaObject:
        """Return a constant of one of the connector's enumerations."""
        return self.jvm.java.lang.Enum.valueOf(self.java_class(_CONNECTOR + enum), name)

    def java_class(self, name: str) -> JavaObject:
        """Return a ``java.lang.Class``."""
        return self.jvm.java.lang.Class.forName(name, True, self._loader())  # noqa: FBT003 - see above

    def class_names(self, *names: str) -> tuple[str, ...]:
        """Return the full names of classes in ``PRIVATE``."""
        return tuple(PRIVATE[name] for name in names)

    def references(self, names: Iterable[str]) -> JavaObject:
        """Return columns as expressions."""
        expressions = self.connector("expressions.Expressions")
        return self.array(
            self.connector("expressions.NamedReference"), [expressions.column(quoted(name)) for name in names]
        )

    def identities(self, names: Iterable[str]) -> JavaObject:
        """Return columns as identity transforms of a partitioning."""
        expressions = self.connector("expressions.Expressions")
        return self.array(
            self.connector("expressions.Transform"), [expressions.identity(quoted(name)) for name in names]
        )

    def case_insensitive(self, options: Mapping[str, str]) -> JavaObject:
        """Return options as a case-insensitive map, which Spark's readers take."""
        return self.jvm.org.apache.spark.sql.util.CaseInsensitiveStringMap(self.java_map(options))

    def optional_long(self, number: int | None) -> JavaObject:
        """Return a ``java.util.OptionalLong``."""
        optional = self.jvm.java.util.OptionalLong
        return optional.empty() if number is None else optional.of(number)

    def stream_frame(self, session: SparkSession, name: str, table: object, schema: StructType) -> DataFrame:
        """Return a streaming DataFrame of a table that no catalog has.

        Args:
            name: of the table, in plans.
            table: implements ``SupportsRead``.
        """
        relation = self.private("StreamingRelation")
        given: JavaObject = session._jsparkSession
        nothing = self.nothing()
        attributes = self.private("Attributes").toAttributes(self.schema(schema))
        no_name = getattr(relation, "apply$default$9")()
        plan = relation(nothing, name, table, self.case_insensitive({}), attributes, nothing, nothing, nothing, no_name)
        return DataFrame(self.private("Dataset").ofRows(given, plan), session)

    def v1_filter(self, predicate: JavaObject) -> JavaObject | None:
        """Convert a predicate to a V1 filter, which Spark's readers take; None if there is no such filter."""
        found = self.private("PredicateUtils").toV1(predicate)
        return found.get() if found.isDefined() else None

    def running_stream(self) -> JavaObject | None:
        """Return the streaming query on whose thread Spark has called; None if it is not found."""
        query_id = SparkContext.getOrCreate().getLocalProperty(_QUERY_ID)
        if query_id is None:
            return None
        running = self.session().sharedState().activeStreamingQueries()
        return running.get(self.jvm.java.util.UUID.fromString(query_id))

    def source_offsets(self, query: JavaObject) -> tuple[str | None, ...]:
        """Return where each source of a streaming query is after its last micro-batch; None for the beginning."""
        reached = query.committedOffsets()
        sources = query.uniqueSources().keysIterator()
        found = []
        while sources.hasNext():
            offset = reached.get(sources.next())
            found.append(offset.get().json() if offset.isDefined() else None)
        return tuple(found)

    def set_stream_watermark(self, query: JavaObject, millis: int) -> None:
        """Set the watermark of a streaming query's next micro-batch."""
        query.watermarkTracker().setWatermark(millis)

    def _loader(self) -> JavaObject:
        return self.jvm.java.lang.Thread.currentThread().getContextClassLoader()


def open_bridge(spark: SparkSession) -> Bridge:
    """Return a bridge to the JVM of a session, and let the JVM call this process.

    Raises:
        UnsupportedFeatureError: a session of Spark Connect, or a version of Spark that is not in ``SUPPORTED``.
    """
    if not hasattr(spark, "_jsparkSession"):
        raise UnsupportedFeatureError(
            "attach needs the JVM of the session in this process, which Spark Connect does not have: read and write "
            'with format("penstock") there'
        )
    version = ".".join(pyspark.__version__.split(".")[:2])
    if version not in SUPPORTED:
        raise UnsupportedFeatureError(
            f"attach knows Spark {' and '.join(SUPPORTED)}, this is {pyspark.__version__}: use to_spark and "
            'format("penstock"), or one of these versions'
        )
    gateway: JavaObject = SparkContext._gateway
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call] # PySpark has no types for it
    # With this, Spark gets the exceptions that our errors are converted to, not a Py4J exception with a trace.
    gateway.callback_server_parameters.propagate_java_exceptions = True
    return Bridge(gateway=gateway)


def put_catalog(session: JavaObject, name: str, catalog: object) -> None:
    """Add a catalog to a session under a name, or replace the one that was added before.

    Spark loads catalogs by class name only, so this function puts the object into Spark's map of loaded catalogs.
    """
    manager = session.sessionState().catalogManager()
    _field(manager, "catalogs").put(name, catalog)


def session_of_batches(spark: SparkSession, query_id: str) -> JavaObject | None:
    """Return the session in which a streaming query runs its micro-batches; None if the query has ended."""
    query: JavaObject = spark._jsparkSession.streams().get(query_id)
    return None if query is None else query.streamingQuery().sparkSessionForStream()


def explain_to_new_sessions(spark: SparkSession, name: str, cure: str) -> None:
    """Make Spark's error for a missing catalog in a later session of the same process say what to call there.

    Spark shows the name of the class that it should load for the catalog, and that is the text.
    """
    shared: JavaObject = spark._jsparkSession.sharedState().conf()
    shared.set(f"spark.sql.catalog.{name}", f"none in this session: call {cure}")


def has_catalog(session: JavaObject, name: str) -> bool:
    """Whether a session has loaded a catalog of that name."""
    return bool(_field(session.sessionState().catalogManager(), "catalogs").contains(name))


def _field(owner: JavaObject, name: str) -> JavaObject:
    kind = owner.getClass()
    while kind is not None:
        for field in kind.getDeclaredFields():
            if field.getName().rpartition("$")[2] == name:
                field.setAccessible(True)
                return field.get(owner)
        kind = kind.getSuperclass()
    raise UnsupportedFeatureError(
        f"Spark {pyspark.__version__} stores its catalogs in another place, which attach does not support yet"
    )


def schema_of(schema: JavaObject) -> StructType:
    """Convert a JVM schema to a PySpark schema."""
    return StructType.fromJson(json.loads(schema.json()))


def wrapped_class(spark: SparkSession, source: type[DataSource]) -> JavaObject:
    """Return a Python data source class in its JVM form: pickled, with the Python executable that runs it."""
    return _wrap_function(spark.sparkContext, source)
