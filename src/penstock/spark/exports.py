"""What the packages above use of this one; ``penstock.api.lazy`` imports it on first use."""

from penstock.spark.compact.job import SparkMerger
from penstock.spark.compact.sort import sort_compact
from penstock.spark.connect import append_rows, overwrite_rows, read_pinned
from penstock.spark.connect import read_stream as read_format_stream
from penstock.spark.connect import write_stream as write_format_stream
from penstock.spark.connector.attach import attach, serve
from penstock.spark.connector.catalog_class import CatalogSource
from penstock.spark.connector.frame import batch_frame
from penstock.spark.connector.procedures import ProcedureSource
from penstock.spark.connector.stream.frame import read_stream
from penstock.spark.hadoop_options import hadoop_store_options
from penstock.spark.iceberg import read_iceberg
from penstock.spark.kafka.frame import read_kafka
from penstock.spark.python_worker import ensure_python_worker
from penstock.spark.servers import (
    CONNECT,
    THRIFT,
    Server,
    asks_who_clients_are,
    is_running,
    run_prompt,
    submit,
    submitted_session,
    use_this_python,
)
from penstock.spark.session import cancellable_jobs, open_session
from penstock.spark.ship import register, ship
from penstock.spark.sql.frames import (
    check_stream,
    computed_frame,
    explain_text,
    insert_frame,
    padded_frame,
    query_frame,
    set_conf,
    typed_columns,
    typed_frame,
    view_frame,
)
from penstock.spark.sql.windows import cumulate_frame, event_time_frame
from penstock.spark.sql_connectors.files import read_files
from penstock.spark.sql_connectors.generated import read_generated
from penstock.spark.sql_connectors.sinks import ConnectorSink, QueryStart, start_connector, write_connector
from penstock.spark.stream.micro_batches import StreamWrite
from penstock.spark.stream.sink import write_stream
from penstock.spark.types import from_spark_schema, nullable, to_spark_schema
from penstock.spark.versions.facts import PYTHON_SOURCES
from penstock.spark.versions.python_api import from_arrow, to_arrow
from penstock.spark.write.sink import write_dataframe

__all__ = [
    "CONNECT",
    "PYTHON_SOURCES",
    "THRIFT",
    "CatalogSource",
    "ConnectorSink",
    "ProcedureSource",
    "QueryStart",
    "Server",
    "SparkMerger",
    "StreamWrite",
    "append_rows",
    "asks_who_clients_are",
    "attach",
    "batch_frame",
    "cancellable_jobs",
    "check_stream",
    "computed_frame",
    "cumulate_frame",
    "ensure_python_worker",
    "event_time_frame",
    "explain_text",
    "from_arrow",
    "from_spark_schema",
    "hadoop_store_options",
    "insert_frame",
    "is_running",
    "nullable",
    "open_session",
    "overwrite_rows",
    "padded_frame",
    "query_frame",
    "read_files",
    "read_format_stream",
    "read_generated",
    "read_iceberg",
    "read_kafka",
    "read_pinned",
    "read_stream",
    "register",
    "run_prompt",
    "serve",
    "set_conf",
    "ship",
    "sort_compact",
    "start_connector",
    "submit",
    "submitted_session",
    "to_arrow",
    "to_spark_schema",
    "typed_columns",
    "typed_frame",
    "use_this_python",
    "view_frame",
    "write_connector",
    "write_dataframe",
    "write_format_stream",
    "write_stream",
]
