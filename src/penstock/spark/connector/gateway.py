"""All uses of private API of Spark, PySpark and Py4J in the connector.

The interfaces in ``org.apache.spark.sql.connector`` are public. The class that Spark loads as a catalog is defined by
private API, and so are the readers of ``spark.read.parquet``. If a version of Spark changes private API, only this
module, the Java files and ``penstock.spark.versions`` change. ``tests/spark/connector/test_gateway.py`` checks each use
against the version that is installed.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias
from uuid import uuid4

from py4j.java_collections import JavaArray
from py4j.java_gateway import JavaClass, JavaMember
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from pyspark.sql.udf import _wrap_function

from penstock.errors import UnsupportedFeatureError
from penstock.format.text.names import quoted
from penstock.spark.connector.jvm.driver import compile_class, compile_driver
from penstock.spark.versions.facts import PYTHON_CLASSES, check_version, class_here

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql.datasource import DataSource

JavaObject: TypeAlias = Any
"""An object of the JVM, without a static type in Python."""

_CONNECTOR: Final = "org.apache.spark.sql.connector."
_SQL: Final = "org.apache.spark.sql."

PRIVATE: Final = {
    "Attributes": f"{_SQL}catalyst.types.DataTypeUtils",
    "Compiler": "org.codehaus.janino.SimpleCompiler",
    "Dataset": f"{_SQL}classic.Dataset",
    "InternalRow": f"{_SQL}catalyst.InternalRow",
    "OrcScan": f"{_SQL}execution.datasources.v2.orc.OrcScan",
    "ParquetFileFormat": f"{_SQL}execution.datasources.parquet.ParquetFileFormat",
    "ParquetScan": f"{_SQL}execution.datasources.v2.parquet.ParquetScan",
    "ParquetTable": f"{_SQL}execution.datasources.v2.parquet.ParquetTable",
    "PythonBatchWriterFactory": f"{PYTHON_CLASSES}PythonBatchWriterFactory",
    "PythonInputPartition": f"{PYTHON_CLASSES}PythonInputPartition",
    "PythonPartitionReaderFactory": f"{PYTHON_CLASSES}PythonPartitionReaderFactory",
    "PythonStreamingWriterFactory": f"{PYTHON_CLASSES}PythonStreamingWriterFactory",
    "Relation": f"{_SQL}execution.datasources.v2.DataSourceV2Relation",
    "SerializedOffset": f"{_SQL}execution.streaming.runtime.SerializedOffset",
    "SparkSession": f"{_SQL}classic.SparkSession",
    "StreamingRelation": f"{_SQL}catalyst.streaming.StreamingRelationV2",
    "TreePattern": f"{_SQL}catalyst.trees.TreePattern",
    "UserDefinedPythonDataSource": f"{PYTHON_CLASSES}UserDefinedPythonDataSource",
    "WriteInfo": f"{_SQL}connector.write.LogicalWriteInfoImpl",
    "V2Columns": f"{_SQL}connector.catalog.CatalogV2Util",
}
"""Private classes of Spark, by the names that this package uses for them."""


_MAX_SCHEMAS: Final = 500
_MAX_CHARACTERS: Final = 100_000  # that Py4J passes on in less time than a file takes
_MAX_SESSIONS: Final = 64
_ONE_AT_A_TIME: Final = threading.RLock()
"""Several queries may start at once, each on a thread of its own."""


class CachedJavaClass(JavaClass):  # type: ignore[misc] # Py4J has no types
    """A JVM class that looks up each of its static methods once; Py4J looks them up at each use."""

    def __getattr__(self, name: str) -> JavaObject:
        """Return a static member."""
        found = super().__getattr__(name)
        if isinstance(found, JavaMember):
            setattr(self, name, found)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Bridge:
    """Access from Python to the JVM of a session.

    Each call to the JVM is a round trip over a socket, so classes and values that never change are cached.

    Attributes:
        gateway: Py4J's gateway; shared by all sessions of the process.
    """

    gateway: JavaObject
    _cached: dict[Hashable, JavaObject] = field(default_factory=dict, repr=False, compare=False)
    _schemas: dict[str, JavaObject] = field(default_factory=dict, repr=False, compare=False)

    @property
    def jvm(self) -> JavaObject:
        """View of the JVM's packages and classes; ``java`` caches those that are used often."""
        return self.gateway.jvm

    def cached(self, key: Hashable, make: Callable[[], JavaObject]) -> JavaObject:
        """Return an immutable JVM object, created at the first use of its key."""
        found = self._cached.get(key)
        if found is None:
            found = self._cached[key] = make()
        return found

    def cached_once(self, key: Hashable, make: Callable[[], JavaObject]) -> JavaObject:
        """Do the same for what must not be created twice."""
        found = self._cached.get(key)
        if found is not None:
            return found
        with _ONE_AT_A_TIME:
            return self.cached(key, make)

    def java(self, name: str) -> JavaObject:
        """Return a class by its full name; a member class has ``$`` in it."""
        return self.cached(name, lambda: CachedJavaClass(name, self.gateway._gateway_client))

    def session(self) -> JavaObject:
        """Return the session of the running query: queries of cloned sessions call the same catalog."""
        return self.private("SparkSession").active()

    def python_session(self, session: JavaObject) -> SparkSession:
        """Return a JVM session as a PySpark session."""
        return SparkSession(SparkContext.getOrCreate(), session)

    @property
    def driver(self) -> JavaObject:
        """The object of ``Driver.java``."""
        # Py4J caches methods by class name: a second class of this name would be called with the methods of the first
        # one.
        return self.cached_once(
            "driver", lambda: compile_driver(self.private("Compiler"), self._loader(), self._java_gateway())
        )

    @contextmanager
    def long_text(self, text: str) -> Iterator[str]:
        """Yield a text for ``FileList`` of ``Driver.java``: if it is long, a tab and the path of a file with it.

        Py4J takes 15 ns a character. PySpark itself passes rows to the JVM in files of this directory, which the JVM
        has made, unless Spark is to encrypt what it writes to disks.
        """
        context = SparkContext.getOrCreate()
        if len(text) <= _MAX_CHARACTERS or context._encryption_enabled:
            yield text
            return
        path = Path(context._temp_dir, f"penstock-{uuid4()}")
        passed = f"\t{path}"
        try:
            path.write_bytes(text.encode())
        except OSError:  # a full disk, for example
            passed = text
        try:
            yield passed
        finally:
            path.unlink(missing_ok=True)

    def define_catalog(self, interfaces: Sequence[str], maker: JavaObject) -> str:
        """Define the class that Spark loads as a catalog, and return its name; see ``CatalogClass.java``."""
        return str(self._catalog_class.define(self.java_list(interfaces), maker))

    def reload_catalog(self, session: JavaObject, name: str, kind: str) -> bool:
        """Have a session ask Python for a catalog at the next use of it.

        Returns:
            False if the session has loaded a catalog of another class under that name.
        """
        return bool(self._catalog_class.reload(session, name, kind))

    @property
    def _catalog_class(self) -> JavaObject:
        return self.cached_once(
            "CatalogClass", lambda: compile_class(self.private("Compiler")(), self._loader(), "CatalogClass")
        )

    @property
    def micro_batch_files(self) -> JavaObject:
        """The object of ``MicroBatchFiles.java``."""
        return self.cached_once(
            "MicroBatchFiles", lambda: compile_class(self.private("Compiler")(), self._loader(), "MicroBatchFiles")
        )

    @property
    def server_metadata(self) -> JavaObject:
        """The object of ``ServerMetadata.java``."""
        return self.cached_once(
            "ServerMetadata", lambda: compile_class(self.private("Compiler")(), self._loader(), "ServerMetadata")
        )

    def executor_class(self, name: str) -> tuple[JavaObject, JavaObject]:
        """Return an object of a class that executors load, and the bytecode of its classes."""

        def make() -> tuple[JavaObject, JavaObject]:
            compiler = self.private("Compiler")()
            return compile_class(compiler, self._loader(), name), compiler.getBytecodes()

        made: tuple[JavaObject, JavaObject] = self.cached_once(name, make)
        return made

    @property
    def file_readers(self) -> JavaObject:
        """The object of ``FileReaders.java``."""
        return self.executor_class("FileReaders")[0]

    @property
    def change_writers(self) -> JavaObject:
        """The object of ``ChangeWriters.java``."""
        return self.executor_class("ChangeWriters")[0]

    @property
    def variant_fields(self) -> JavaObject:
        """The object of ``VariantFields.java``."""
        return self.cached_once(
            "VariantFields", lambda: compile_class(self.private("Compiler")(), self._loader(), "VariantFields")
        )

    @property
    def stream_pruning(self) -> JavaObject:
        """The object of ``StreamPruning.java``."""

        def make() -> JavaObject:
            made = compile_class(self.private("Compiler")(), self.driver.getClass().getClassLoader(), "StreamPruning")
            made.setDriver(self.driver)
            return made

        return self.cached_once("StreamPruning", make)

    def names(self, items: frozenset[str]) -> JavaObject:
        """Return an immutable ``java.util.Set``."""
        return self.cached(("names", items), lambda: self.java_set(sorted(items)))

    def identifier_parts(self, ident: JavaObject) -> list[str]:
        """Return the parts of an ``Identifier``: its namespace, then its name."""
        parts: list[str] = json.loads(self.driver.name(ident))
        return parts

    def private(self, name: str) -> JavaObject:
        """Return one of the classes in ``PRIVATE``."""
        return self.java(class_here(PRIVATE[name]))

    def made(self, name: str, *arguments: object) -> JavaObject:
        """Return a new object of one of the classes in ``PRIVATE``.

        Args:
            arguments: those of the newest Spark. Older versions, and builds of vendors, take fewer at the end; a
                ``partial`` makes one whose class these do not have.
        """
        taken = arguments[: self._parameter_count(name, "")]
        return self.private(name)(*(each() if isinstance(each, partial) else each for each in taken))

    def _parameter_count(self, name: str, method: str) -> int:
        """Return how many parameters a method of a class in ``PRIVATE`` has; without a name, the constructor."""
        key = ("parameters", name, method)
        kind = self.java_class(class_here(PRIVATE[name]))
        return int(self.cached(key, lambda: self.driver.parameterCount(kind, method)))

    def connector(self, name: str) -> JavaObject:
        """Return a class of Spark's connector interfaces, such as ``catalog.Identifier``."""
        return self.java(_CONNECTOR + name)

    def array(self, element: JavaObject, items: Sequence[object]) -> JavaObject:
        """Return an array of the JVM."""
        if not items:
            return self.cached(("array", element._fqn), lambda: self.gateway.new_array(element, 0))
        made = self.gateway.new_array(element, len(items))
        for place, item in enumerate(items):
            made[place] = item
        return made

    def booleans(self, items: Sequence[bool]) -> JavaObject:
        """Return a ``boolean[]``."""
        made = self.gateway.new_array(self.gateway.jvm.boolean, len(items))
        for place, item in enumerate(items):
            made[place] = item
        return made

    def strings(self, items: Sequence[str]) -> JavaObject:
        """Return a ``String[]``."""
        return self.array(self.java("java.lang.String"), items)

    def no_items(self, element: str) -> JavaObject:
        """Return an empty array of one of the connector's classes."""
        return self.array(self.connector(element), ())

    def values_of(self, enum: str, names: Sequence[str]) -> JavaObject:
        """Return a set of constants of one of the connector's enumerations."""
        return self.cached((enum, *names), lambda: self.java_set([self.value_of(enum, name) for name in names]))

    def java_set(self, items: Iterable[object]) -> JavaObject:
        """Return a ``java.util.Set``."""
        made = self.java("java.util.HashSet")()
        for item in items:
            made.add(item)
        return made

    def java_list(self, items: Iterable[object]) -> JavaObject:
        """Return a ``java.util.List``."""
        made = self.java("java.util.ArrayList")()
        for item in items:
            made.add(item)
        return made

    def java_map(self, items: Mapping[str, str]) -> JavaObject:
        """Return a ``java.util.Map``."""
        made = self.java("java.util.HashMap")()
        for key, value in items.items():
            made.put(key, value)
        return made

    def scala_map(self, items: Mapping[str, str]) -> JavaObject:
        """Return an immutable Scala map."""
        return self._utilities.toScalaMap(dict(items))

    def sequence(self, items: Sequence[object]) -> JavaObject:
        """Return an immutable Scala sequence."""
        if not items:
            return self.cached("sequence", lambda: self._utilities.toSeq([]))
        return self._utilities.toSeq(list(items))

    def scala_none(self) -> JavaObject:
        """Return Scala's ``None``."""
        return self.cached("nothing", lambda: self.java("scala.Option").empty())

    def schema(self, schema: StructType) -> JavaObject:
        """Convert a PySpark schema to a JVM schema."""
        text = schema.json()
        found = self._schemas.get(text)
        if found is None:
            if len(self._schemas) >= _MAX_SCHEMAS:
                self._schemas.clear()
            found = self._schemas[text] = self.java(f"{_SQL}types.DataType").fromJson(text)
        return found

    def struct_type(self, columns: JavaObject) -> JavaObject:
        """Return a JVM schema; an array of a table's columns is converted to one."""
        if isinstance(columns, JavaArray):
            return self.private("V2Columns").v2ColumnsToStructType(columns)
        return columns

    def columns(self, schema: JavaObject) -> JavaObject:
        """Convert a JVM schema to the columns of a table."""
        arguments = (schema, False)  # whether columns keep their ids
        count = self._parameter_count("V2Columns", "structTypeToV2Columns")
        return self.private("V2Columns").structTypeToV2Columns(*arguments[:count])

    def value_of(self, enum: str, name: str) -> JavaObject:
        """Return a constant of one of the connector's enumerations."""
        return self.cached(
            ("enum", enum, name), lambda: self.java("java.lang.Enum").valueOf(self.java_class(_CONNECTOR + enum), name)
        )

    def java_class(self, name: str) -> JavaObject:
        """Return a ``java.lang.Class``."""
        return self.cached(
            ("class", name),
            lambda: self.java("java.lang.Class").forName(name, True, self._loader()),  # noqa: FBT003
        )

    def class_names(self, *names: str) -> tuple[str, ...]:
        """Return the full names of classes in ``PRIVATE``."""
        return tuple(class_here(PRIVATE[name]) for name in names)

    def references(self, names: Iterable[str]) -> JavaObject:
        """Return columns as expressions."""
        return self.driver.references(json.dumps(list(map(quoted, names))))

    def clustered(self, names: Sequence[str]) -> JavaObject:
        """Return a distribution of rows that is clustered by columns; without columns, any distribution."""
        distributions, expressions = (
            self.connector("distributions.Distributions"),
            self.connector("expressions.Expressions"),
        )
        if not names:
            return distributions.unspecified()
        columns = [expressions.column(quoted(name)) for name in names]
        return distributions.clustered(self.array(self.connector("expressions.Expression"), columns))

    def ascending(self, names: Iterable[str]) -> JavaObject:
        """Return columns as an ascending sort order."""
        expressions = self.connector("expressions.Expressions")
        upwards = self.value_of("expressions.SortDirection", "ASCENDING")
        orders = [expressions.sort(expressions.column(quoted(name)), upwards) for name in names]
        return self.array(self.connector("expressions.SortOrder"), orders)

    def identities(self, names: Iterable[str]) -> JavaObject:
        """Return columns as identity transforms of a partitioning."""
        expressions = self.connector("expressions.Expressions")
        return self.array(
            self.connector("expressions.Transform"), [expressions.identity(quoted(name)) for name in names]
        )

    def case_insensitive(self, options: Mapping[str, str]) -> JavaObject:
        """Return options as a case-insensitive map, which Spark's readers take."""
        return self.java(f"{_SQL}util.CaseInsensitiveStringMap")(self.java_map(options))

    def frame(self, session: SparkSession, plan: JavaObject) -> DataFrame:
        """Return the DataFrame of an analyzed plan."""
        java_session: JavaObject = session._jsparkSession
        return DataFrame(self.private("Dataset").ofRows(java_session, plan), session)

    def is_current(self, frame: DataFrame) -> bool:
        """Whether a query depends on the time, the user or the session, as ``current_date()`` does."""
        current = self.private("TreePattern").CURRENT_LIKE()
        return bool(frame._jdf.queryExecution().analyzed().containsPattern(current))

    def query_schema(self, name: Sequence[str]) -> JavaObject | None:
        """Return the columns that the query of a view has now; None if Spark cannot resolve it.

        Spark's own queries check in addition that the columns are those that the view declares.
        """
        state = self.session().sessionState()
        text = f"TABLE {'.'.join(map(quoted, name))}"
        try:
            return state.analyzer().execute(state.sqlParser().parsePlan(text)).schema()
        except (Py4JJavaError, CapturedException):
            return None

    def batch_frame(self, session: SparkSession, table: JavaObject) -> DataFrame:
        """Return a DataFrame of a table outside of any catalog.

        Args:
            table: implements ``SupportsRead``.
        """
        nothing = self.scala_none()
        return self.frame(session, self.private("Relation").create(table, nothing, nothing))

    def stream_frame(self, session: SparkSession, name: str, table: object, schema: StructType) -> DataFrame:
        """Return a streaming DataFrame of a table outside of any catalog.

        Args:
            name: of the table, in plans.
            table: implements ``SupportsRead``.
        """
        relation = self.private("StreamingRelation")
        nothing = self.scala_none()
        attributes = self.private("Attributes").toAttributes(self.schema(schema))
        arguments = (nothing, name, table, self.case_insensitive({}), attributes, nothing, nothing, nothing)
        added = range(len(arguments), self._parameter_count("StreamingRelation", ""))
        defaults = [getattr(relation, f"apply$default${place + 1}")() for place in added]
        return self.frame(session, relation(*arguments, *defaults))

    @property
    def _utilities(self) -> JavaObject:
        return self.java("org.apache.spark.api.python.PythonUtils")

    def local_property(self, key: str) -> str | None:
        """Return a property of the thread on which Spark made the call."""
        return SparkContext.getOrCreate().getLocalProperty(key)

    def running_stream(self) -> JavaObject | None:
        """Return the streaming query on whose thread Spark made the call; None if it is not found."""
        return self.driver.runningStream(self.session())

    def source_offsets(self, query: JavaObject) -> tuple[str | None, ...]:
        """Return the offset of each source of a streaming query after its last micro-batch; None for the beginning."""
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
        return self.java("java.lang.Thread").currentThread().getContextClassLoader()

    def _java_gateway(self) -> JavaObject:
        return self.gateway.java_gateway_server.getGateway()


def is_supported(spark: SparkSession) -> bool:
    """Whether there is a bridge to the JVM of a session."""
    return hasattr(spark, "_jsparkSession")


def open_bridge(spark: SparkSession) -> Bridge:
    """Return a bridge to the JVM of a session, and enable calls from the JVM to this process."""
    if not hasattr(spark, "_jsparkSession"):
        raise UnsupportedFeatureError(
            "attach needs the JVM of the session in this process, which Spark Connect does not have: read and write "
            'with format("penstock") there'
        )
    check_version()
    gateway: JavaObject = SparkContext._gateway
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call] # PySpark has no types for it
    # With this, Spark gets the exceptions to which our errors are converted, not a Py4J exception with a trace.
    gateway.callback_server_parameters.propagate_java_exceptions = True
    with _ONE_AT_A_TIME:
        return _bridge_of(gateway)


@lru_cache(maxsize=1)
def _bridge_of(gateway: JavaObject) -> Bridge:
    # A process has one gateway, and the caches of a bridge serve all sessions.
    return Bridge(gateway=gateway)


def schema_of(schema: JavaObject) -> StructType:
    """Convert a JVM schema to a PySpark schema."""
    return StructType.fromJson(json.loads(schema.json()))


def wrapped_class(spark: SparkSession, source: type[DataSource]) -> JavaObject:
    """Return a Python data source class in its JVM form: pickled, with the Python executable that runs it."""
    return _wrap_function(spark.sparkContext, source)


class SessionReference:
    """A session, for objects that live as long as it.

    A session of the JVM keeps its catalogs, and these keep their objects in Python. If those kept the session in turn,
    none of them would ever be collected, and a server would grow with each session. So Python keeps only the sessions
    that were used last.
    """

    _used: ClassVar[OrderedDict[SessionReference, SparkSession]] = OrderedDict()

    def __init__(self, bridge: Bridge, session: SparkSession) -> None:
        self._bridge = bridge
        self._weak: JavaObject = bridge.java("java.lang.ref.WeakReference")(session._jsparkSession)
        self._use(session)

    def get(self) -> SparkSession:
        """Return the session; if only a clone of it is there, which runs the query, the clone."""
        with _ONE_AT_A_TIME:
            found = self._used.get(self)
        if found is None:
            found = self._bridge.python_session(self._weak.get() or self._bridge.session())
        self._use(found)
        return found

    def _use(self, session: SparkSession) -> None:
        with _ONE_AT_A_TIME:
            self._used[self] = session
            self._used.move_to_end(self)
            if len(self._used) > _MAX_SESSIONS:
                self._used.popitem(last=False)
