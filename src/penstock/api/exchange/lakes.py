"""Delta Lake and Iceberg tables: reading them with Spark, and their partition columns."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pyarrow.parquet as pq

from penstock.api.exchange.source import SourceFormat
from penstock.api.lazy import lazy_spark
from penstock.errors import NotFoundError, UnsupportedFeatureError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.io.file_io import FileIO

_PACKAGES: Final = {
    SourceFormat.DELTA: "io.delta:delta-spark_4.2_2.13 (and spark.sql.extensions as its documentation says)",
    SourceFormat.ICEBERG: "org.apache.iceberg:iceberg-spark-runtime for your version of Spark",
}


_WITHOUT_JAR: Final = (
    "DATA_SOURCE_NOT_FOUND",
    "ClassNotFoundException",
    "NoClassDefFoundError",
    "does not have the JAR",
)


def load_with_spark(spark: SparkSession | None, file_io: FileIO, source: str, name: SourceFormat) -> DataFrame:
    """Return the rows of a table of another format.

    Raises:
        NotFoundError: an Iceberg table has no metadata file.
        UnsupportedFeatureError: there is no session, or it cannot read the format.
    """
    package = _PACKAGES.get(name, f"the JAR that reads {name}")
    if spark is None:
        raise UnsupportedFeatureError(
            f"{source} is a table of {name}, which Spark reads: give a session that has {package}: "
            "convert(..., spark=spark), or penstock convert --spark local[2] --packages group:name:version"
        )
    try:
        if name is SourceFormat.ICEBERG:
            return lazy_spark.read_iceberg(spark, _newest_of_iceberg(file_io, f"{source}/metadata"))
        return spark.read.format(str(name)).load(source)
    except Exception as error:
        text = str(error)
        if any(sign in text for sign in _WITHOUT_JAR):
            raise UnsupportedFeatureError(
                f"{source} is a table of {name}, which this session of Spark cannot read: put {package} into "
                "spark.jars.packages before the session starts"
            ) from error
        raise


def partition_columns(file_io: FileIO, root: str, name: SourceFormat) -> tuple[str, ...]:
    """Return the columns by which a table is partitioned, without transforms such as ``days(t)``."""
    if name is SourceFormat.DELTA:
        return _of_delta(file_io, f"{root}/_delta_log")
    return _of_iceberg(file_io, f"{root}/metadata") if name is SourceFormat.ICEBERG else ()


def _of_delta(file_io: FileIO, log: str) -> tuple[str, ...]:
    paths = sorted((each.path for each in file_io.list(log) if not each.is_dir), reverse=True)
    for path in paths:
        if path.endswith(".json"):
            actions = (json.loads(line) for line in file_io.read(path).decode().splitlines() if line.strip())
            found = [each["metaData"] for each in actions if "metaData" in each]
        elif path.endswith(".parquet"):
            with file_io.open_input(path) as stream:
                rows = pq.read_table(stream, columns=["metaData"]).column("metaData").to_pylist()
            found = [each for each in rows if each is not None]
        else:
            continue
        if found:
            return tuple(found[-1].get("partitionColumns") or ())
    return ()


def _of_iceberg(file_io: FileIO, directory: str) -> tuple[str, ...]:
    metadata: dict[str, Any] = json.loads(file_io.read(_newest_of_iceberg(file_io, directory)))
    schemas = metadata.get("schemas") or [metadata["schema"]]
    names = {field["id"]: field["name"] for schema in schemas for field in schema["fields"]}
    specs = {each["spec-id"]: each for each in metadata.get("partition-specs", ())}
    fields = specs.get(metadata.get("default-spec-id"), {}).get("fields", ())
    return tuple(names[field["source-id"]] for field in fields if field["transform"] == "identity")


def _newest_of_iceberg(file_io: FileIO, directory: str) -> str:
    """Return the path of the newest metadata file."""
    found = [each for each in file_io.list(directory) if each.name.endswith(".metadata.json")]
    if not found:
        raise NotFoundError(
            f"{directory} has no metadata file of Iceberg (*.metadata.json); give the table's directory"
        )
    return max(found, key=lambda each: (each.modified_millis, each.name)).path
