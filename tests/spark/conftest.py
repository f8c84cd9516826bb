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
from tests.quick_spark import CHECKPOINT_FILES
from tests.s3_server import S3Bucket, S3Server
from tests.spark.forked_python import forked_python
from tests.spark.kafka_broker import Kafka, running_kafka
from tests.spark.py4j_names import keep_names
from tests.standalone_cluster import Network, StandaloneCluster

from penstock import Catalog, register
from penstock.format.text.names import quoted
from penstock.predicate.tree import TRUE
from penstock.spark import entry
from penstock.spark.connector import gateway
from penstock.spark.read.filters import to_column
from penstock.spark.write import native_sink, sink
from penstock.table.read.query import Query

# Not UTC and with daylight saving: a time zone that leaks into stored values shows at once.
SESSION_ZONE = "America/Los_Angeles"
STREAM_MODULES = {
    "test_event_time",
    "test_golden_streams",
    "test_stream_alignment",
    "test_stream_end",
    "test_stream_silence",
    "test_stream_source",
    "test_stream_watermark",
}
IN_BOTH_WAYS = {
    "test_both_entry_points_give_the_same_rows_with_columns_and_filter",
    "test_limits_cut_and_progress_says_how_far_the_query_is_behind",
    "test_tasks_of_a_parallel_sink_see_each_bucket_whole_and_in_order",
}
# Their tests read through the scan of the catalog, and in long runs through the format too.
READ_MODULES = {
    "test_appends",
    "test_golden_tables",
    "test_incremental",
    "test_native_sink",
    "test_row_changes",
    "test_to_spark",
    "test_types",
}
# Those of them that always run in both ways.
READ_IN_BOTH_WAYS = {
    "test_days_that_the_julian_calendar_lacks_are_found",
    "test_narrower_types_are_widened",
    "test_values_of_all_types_come_back_from_spark_as_they_went_in",
}
_CODE = "spark.sql.codegen.factoryMode"
# About the plan of the scan, its snapshot or its metadata, which the format does not have.
CATALOG_ALONE = {
    "test_a_join_opens_the_files_of_the_partitions_that_the_other_side_has",
    "test_a_later_where_keeps_files_closed_too",
    "test_comments_of_columns_come_with_a_native_scan",
    "test_conditions_on_a_union_of_scans_do_not_reach_the_reader_of_orc",
    "test_dataframe_keeps_its_snapshot_while_others_commit",
    "test_each_way_to_name_a_snapshot_reads_it",
    "test_odd_partition_values_are_read_natively",
    "test_orc_dates_before_1582_are_read_right",
    "test_python_path_prunes_filters_and_picks_columns_as_well",
    "test_ranges_in_footers_that_leave_out_nan_lose_no_rows",
    "test_spark_is_given_only_the_files_that_may_have_rows",
    "test_table_without_rows_has_its_columns",
    "test_two_thousand_files_are_planned_without_listing_them",
}
# What a stream that Spark plans in a process of its own does not do.
DRIVER_ALONE = {
    "test_windows_of_a_bounded_stream_are_all_there_at_its_end",
    "test_windows_wait_for_the_end_of_every_source_and_a_restart_delivers_what_is_left",
    "test_windows_stay_open_where_no_bound_is_declared_and_then_another_bound_goes_on",
}


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
    return session


@pytest.fixture
def compiled(spark: SparkSession) -> Iterator[None]:
    """Have Spark compile queries, as it does by default; in the other tests it interprets them."""
    spark.conf.set(_CODE, "FALLBACK")
    yield
    spark.conf.set(_CODE, "NO_CODEGEN")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests in both ways of a stream, or of a read: planned by the driver's process, or by a process of Spark's."""
    # A module of the connector may have the name of one here.
    is_here = metafunc.definition.path.parent == Path(__file__).parent
    module = metafunc.module.__name__.rpartition(".")[2] if is_here else ""
    if module in READ_MODULES:
        marks = () if metafunc.function.__name__ in READ_IN_BOTH_WAYS else (pytest.mark.slow,)
        ways = ["catalog", pytest.param("format", marks=marks)]
        alone = metafunc.function.__name__ in CATALOG_ALONE
        metafunc.parametrize("read_way", ways[:1] if alone else ways, indirect=True)
    if module in STREAM_MODULES:
        marks = () if metafunc.function.__name__ in IN_BOTH_WAYS else (pytest.mark.slow,)
        ways = ["driver", pytest.param("python", marks=marks)]
        alone = metafunc.function.__name__ in DRIVER_ALONE
        metafunc.parametrize("stream_way", ways[:1] if alone else ways, indirect=True)


@pytest.fixture(autouse=True)
def stream_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How ``read_stream`` makes streams in this test."""
    way: str = getattr(request, "param", "driver")
    if way == "python":
        monkeypatch.setattr(gateway, "SUPPORTED", ())
    return way


@pytest.fixture(autouse=True)
def read_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How ``to_spark`` reads in this test: by the scan of the catalog, or through ``format("penstock")``."""
    way: str = getattr(request, "param", "catalog")
    if way == "format":
        monkeypatch.setattr(entry, "batch_frame", _frame_by_format)
    return way


def _frame_by_format(
    spark: SparkSession, query: Query, _store: object, columns: Sequence[str] | None = None
) -> DataFrame:
    register(spark)
    frame = spark.read.format("penstock").options(**dict(query.ref.dynamic_options)).load(query.ref.location)
    if query.plan.predicate.root != TRUE:
        frame = frame.where(to_column(query.plan.predicate))
    return frame if columns is None else frame.select(*[quoted(name) for name in columns])


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
