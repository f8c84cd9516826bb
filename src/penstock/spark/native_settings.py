"""Settings of Spark and Hadoop under which Spark writes the Parquet files of tables.

What a file of a table holds must not depend on how a user has set up Spark. Each setting that decides about it is
therefore given by us: settings of the session in a clone of the session, so that no other thread sees them; settings of
Hadoop as options of the one write, where they win over the configuration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

WRITE_SETTINGS: Final = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.fieldId.write.enabled": "true",
    "spark.sql.parquet.output.committer.class": "org.apache.parquet.hadoop.ParquetOutputCommitter",
    "spark.sql.sources.commitProtocolClass": (
        "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"
    ),
    "spark.sql.sources.useV1SourceList": "parquet",
    # The command that writes is then the root of the physical plan, where its count of rows is found.
    "spark.sql.optimizer.plannedWrite.enabled": "false",
}
"""Of the session in which Spark writes Parquet files for a table."""

WRITE_OPTIONS: Final = {
    "mapreduce.output.basename": "part",
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "mapreduce.fileoutputcommitter.cleanup.skipped": "false",
    "mapreduce.fileoutputcommitter.cleanup-failures.ignored": "false",
    "mapreduce.fileoutputcommitter.task.cleanup.enabled": "false",
    # Defaults of parquet-java. Sizes are such that many sessions set them; the rest of ``parquet.*`` is for
    # ``unknown_parquet_keys``.
    "parquet.block.size": "134217728",
    "parquet.page.size": "1048576",
    "parquet.dictionary.page.size": "1048576",
    "parquet.enable.dictionary": "true",
    "parquet.writer.version": "PARQUET_1_0",
    "parquet.summary.metadata.level": "NONE",
}
"""Of such a write."""


def clone_session(session: Any, settings: Mapping[str, str]) -> Any:  # noqa: ANN401 - objects of the JVM
    """Return a copy of a session of the JVM with other settings; the session itself stays as it is."""
    clone = session.cloneSession()
    conf = clone.sessionState().conf()
    for key, value in settings.items():
        conf.setConfString(key, value)
    return clone


def unknown_parquet_keys(session: Any) -> tuple[str, ...]:  # noqa: ANN401 - see above
    """Return the settings of Parquet's writer in a session's Hadoop configuration that are not in ``WRITE_OPTIONS``.

    Examples are keys of encryption and Bloom filters of single columns, which a later setting cannot undo.
    """
    found = session.sessionState().newHadoopConf().getPropsWithPrefix("parquet.")
    return tuple(sorted({f"parquet.{key}" for key in found} - WRITE_OPTIONS.keys()))
