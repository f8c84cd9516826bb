"""One Spark session for all Spark tests of a run."""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

# A hook: it folds the skips of all tests that miss the same thing into one line.
from tests.interop.conftest import pytest_runtest_makereport  # noqa: F401
from tests.quick_spark import CHECKPOINT_FILES, shorten_configuration
from tests.s3_server import S3Bucket, S3Server
from tests.spark.forked_python import forked_python
from tests.spark.kafka_broker import Kafka, running_kafka
from tests.spark.needs import skip_without
from tests.spark.py4j_names import keep_names
from tests.standalone_cluster import Network, StandaloneCluster

from penstock import Catalog, last_progress, register
from penstock.format.text.names import quoted
from penstock.predicate.tree import TRUE
from penstock.spark import exports
from penstock.spark.data_source.source import PenstockDataSource
from penstock.spark.read.filters import to_column
from penstock.spark.versions.facts import PYTHON_SOURCES, STREAM_READS_OF_FORMAT
from penstock.spark.write import native_sink, sink
from penstock.table.read.query import Query
from penstock.table.ref import TableRef

# Not UTC and with daylight saving: a time zone that leaks into stored values shows at once.
SESSION_ZONE = "America/Los_Angeles"
_CODE = "spark.sql.codegen.factoryMode"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Return a local session of two cores; its warehouse and scratch folders go away with the run."""
    folder = tmp_path_factory.mktemp("spark")
    keep_names()
    # A machine whose host name has no address would not start otherwise.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with forked_python(folder) as python:
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = python
        session = _session(folder)
        # For processes that tests start: of this environment, whatever `python3` is on the PATH.
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        yield session
        session.stop()


def _session(folder: Path) -> SparkSession:
    session = (
        SparkSession.builder.master("local[2]")
        .appName("penstock tests")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={folder}")
        .config("spark.local.dir", str(folder / "scratch"))
        .config("spark.sql.session.timeZone", SESSION_ZONE)
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", (folder / "warehouse").as_uri())
        .config("spark.sql.streaming.checkpointFileManagerClass", CHECKPOINT_FILES)
        # Compiling a query costs more than to interpret it for the few rows of a test.
        .config(_CODE, "NO_CODEGEN")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    shorten_configuration(session)
    return session


@pytest.fixture
def compiled(spark: SparkSession) -> Iterator[None]:
    """Have Spark compile queries, as it does by default; in the other tests it interprets them."""
    spark.conf.set(_CODE, "FALLBACK")
    yield
    spark.conf.set(_CODE, "NO_CODEGEN")


@pytest.fixture(autouse=True)
def stream_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How streams are read in this test: by ``read_stream``, or as users of ``format("penstock")`` do."""
    way: str = getattr(request, "param", "driver")
    if way == "format":
        request.getfixturevalue("format_streams")
        monkeypatch.setattr(exports, "read_stream", _stream_by_format)
    return way


def _stream_by_format(
    spark: SparkSession, ref: TableRef, columns: Sequence[str] | None = None, predicate: None = None
) -> DataFrame:
    assert predicate is None
    last_progress(spark)  # from now on, the session notes progress and ends bounded queries
    frame = spark.readStream.format("penstock").options(**dict(ref.dynamic_options)).load(ref.location)
    return frame if columns is None else frame.select(*[quoted(name) for name in columns])


@pytest.fixture(autouse=True)
def read_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How ``to_spark`` reads in this test: by the scan of the catalog, or through ``format("penstock")``."""
    way: str = getattr(request, "param", "catalog")
    if way == "format":
        skip_without(PYTHON_SOURCES)
        monkeypatch.setattr(exports, "batch_frame", _frame_by_format)
    return way


def _frame_by_format(
    spark: SparkSession, query: Query, _store: object, columns: Sequence[str] | None = None
) -> DataFrame:
    register(spark)
    frame = spark.read.format("penstock").options(**dict(query.ref.dynamic_options)).load(query.ref.location)
    if query.plan.predicate.root != TRUE:
        frame = frame.where(to_column(query.plan.predicate))
    return frame if columns is None else frame.select(*[quoted(name) for name in columns])


@pytest.fixture
def format_streams(spark: SparkSession) -> None:
    """Let ``format("penstock")`` read and write streams in this test, as it does in Spark Connect."""
    skip_without(STREAM_READS_OF_FORMAT)
    spark.dataSource.register(PenstockDataSource)


@pytest.fixture(scope="session")
def kafka(spark: SparkSession) -> Iterator[Kafka]:
    """Return a broker, started once; each test has topics of its own."""
    with running_kafka(spark) as broker:
        yield broker


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    """Return a standalone cluster of workers that share nothing: two, where the test says no other number."""
    if not Network.is_allowed():
        pytest.skip("network namespaces are not allowed here")
    with StandaloneCluster(tmp_path_factory.mktemp("standalone"), getattr(request, "param", 2)) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def store(cluster: StandaloneCluster) -> Iterator[S3Bucket]:
    """Return a bucket of a server that the workers reach through their networks."""
    with S3Server(cluster.host) as server:
        yield server.make_bucket()


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    """Return a catalog of its own for each test, with the database ``d``."""
    catalog = Catalog(str(tmp_path / "warehouse"))
    catalog.create_database("d")
    return catalog


@pytest.fixture
def native(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Whether Spark wrote, for each write."""
    taken: list[bool] = []
    original = native_sink.write_natively

    def spy(*arguments: Any) -> Any:
        messages = original(*arguments)
        taken.append(messages is not None)
        return messages

    monkeypatch.setattr(sink, "write_natively", spy)
    return taken
