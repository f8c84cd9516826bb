"""Everything private of Spark, PySpark and Py4J that the connector touches.

Spark promises the interfaces in ``org.apache.spark.sql.connector``; it does not promise how a catalog that is an
object, not a class on Spark's class path, gets into a session, nor the readers behind ``spark.read.parquet``. A version
of Spark that changes one of these changes this module alone. ``tests/spark/connector/test_gateway.py`` holds each of
them to the versions in ``SUPPORTED``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyspark
from pyspark import SparkContext
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType
from pyspark.sql.udf import _wrap_function

from penstock.errors import UnsupportedFeatureError
from penstock.spark.names import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql.datasource import DataSource

JavaObject: TypeAlias = Any
"""An object of the JVM; Python knows nothing of its class."""

SUPPORTED: Final = ("4.2", "4.3")
"""Versions of Spark whose classes this module knows."""

_CONNECTOR: Final = "org.apache.spark.sql.connector."
_SQL: Final = "org.apache.spark.sql."

PRIVATE: Final = {
    "FileIndex": f"{_SQL}execution.streaming.runtime.MetadataLogFileIndex",
    "OrcScan": f"{_SQL}execution.datasources.v2.orc.OrcScan",
    "ParquetScan": f"{_SQL}execution.datasources.v2.parquet.ParquetScan",
    "PredicateUtils": f"{_SQL}internal.connector.PredicateUtils",
    "PythonInputPartition": f"{_SQL}execution.datasources.v2.python.PythonInputPartition",
    "PythonPartitionReaderFactory": f"{_SQL}execution.datasources.v2.python.PythonPartitionReaderFactory",
    "SparkSession": f"{_SQL}classic.SparkSession",
    "SpecificInternalRow": f"{_SQL}catalyst.expressions.SpecificInternalRow",
    "UserDefinedPythonDataSource": f"{_SQL}execution.datasources.v2.python.UserDefinedPythonDataSource",
    "V2Columns": f"{_SQL}connector.catalog.CatalogV2Util",
}
"""Classes of Spark that are not promised to stay, by the names that this package gives them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bridge:
    """The way from Python to the JVM of a session.

    Attributes:
        gateway: Py4J's; shared by all sessions of the process.
    """

    gateway: JavaObject

    @property
    def jvm(self) -> JavaObject:
        """Packages and classes."""
        return self.gateway.jvm

    def session(self) -> JavaObject:
        """Return the session that the query at work belongs to: queries of cloned sessions call the same catalog."""
        return self.private("SparkSession").active()

    def python_session(self, session: JavaObject) -> SparkSession:
        """Return a session of the JVM as PySpark's."""
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
        """Return an immutable map of Scala's."""
        return self.jvm.PythonUtils.toScalaMap(dict(items))

    def sequence(self, items: Sequence[object]) -> JavaObject:
        """Return an immutable sequence of Scala's."""
        return self.jvm.PythonUtils.toSeq(list(items))

    def nothing(self) -> JavaObject:
        """Return Scala's ``None``."""
        return self.jvm.scala.Option.empty()

    def schema(self, schema: StructType) -> JavaObject:
        """Return a schema as the JVM's."""
        return self.jvm.org.apache.spark.sql.types.DataType.fromJson(schema.json())

    def columns(self, schema: JavaObject) -> JavaObject:
        """Return the columns of a table with a schema of the JVM."""
        return self.private("V2Columns").structTypeToV2Columns(schema, False)  # noqa: FBT003 - Java has no keywords

    def value_of(self, enum: str, name: str) -> JavaObject:
        """Return a constant of one of the connector's enumerations."""
        found = self.jvm.java.lang.Class.forName(_CONNECTOR + enum, True, self._loader())  # noqa: FBT003 - see above
        return self.jvm.java.lang.Enum.valueOf(found, name)

    def references(self, names: Iterable[str]) -> JavaObject:
        """Return columns as expressions."""
        expressions = self.connector("expressions.Expressions")
        return self.array(
            self.connector("expressions.NamedReference"), [expressions.column(quoted(name)) for name in names]
        )

    def identities(self, names: Iterable[str]) -> JavaObject:
        """Return columns as the transforms of a partitioning."""
        expressions = self.connector("expressions.Expressions")
        return self.array(
            self.connector("expressions.Transform"), [expressions.identity(quoted(name)) for name in names]
        )

    def case_insensitive(self, options: Mapping[str, str]) -> JavaObject:
        """Return options as readers take them."""
        return self.jvm.org.apache.spark.sql.util.CaseInsensitiveStringMap(self.java_map(options))

    def optional_long(self, number: int | None) -> JavaObject:
        """Return a ``java.util.OptionalLong``."""
        optional = self.jvm.java.util.OptionalLong
        return optional.empty() if number is None else optional.of(number)

    def v1_filter(self, predicate: JavaObject) -> JavaObject | None:
        """Return a predicate in the form that Spark's readers take; None where it has none."""
        found = self.private("PredicateUtils").toV1(predicate)
        return found.get() if found.isDefined() else None

    def _loader(self) -> JavaObject:
        return self.jvm.java.lang.Thread.currentThread().getContextClassLoader()


def open_bridge(spark: SparkSession) -> Bridge:
    """Make the JVM of a session able to call this process.

    Raises:
        UnsupportedFeatureError: a session of Spark Connect, or a version of Spark whose insides are not known.
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
    # Our errors then reach Spark as the exceptions that they are made into, not as one of Py4J's with a trace.
    gateway.callback_server_parameters.propagate_java_exceptions = True
    return Bridge(gateway=gateway)


def put_catalog(session: JavaObject, name: str, catalog: object) -> None:
    """Make a catalog known to a session under a name, in the place of one that we put there before.

    Spark loads catalogs by the names of their classes only, so this one goes where Spark keeps those that it loaded.
    """
    manager = session.sessionState().catalogManager()
    _field(manager, "catalogs").put(name, catalog)


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
        f"Spark {pyspark.__version__} keeps its catalogs elsewhere: attach does not know it yet"
    )


def schema_of(schema: JavaObject) -> StructType:
    """Return a schema of the JVM as PySpark's."""
    return StructType.fromJson(json.loads(schema.json()))


def wrapped_class(spark: SparkSession, source: type[DataSource]) -> JavaObject:
    """Return a class of a Python data source as the JVM holds it: pickled, with the Python that is to run it."""
    return _wrap_function(spark.sparkContext, source)
