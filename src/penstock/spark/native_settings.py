"""Settings of Spark and Hadoop under which Spark writes and reads the data files of tables.

What a file of a table holds, and which rows a scan finds, must not depend on how a user has set up Spark. Each setting
that decides about it is therefore given by us: settings of the session in a clone of the session, so that no other
thread sees them; settings of Hadoop as options of the one write or scan, where they win over the configuration.
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

SCAN_SETTINGS: Final = {
    # A scan's files are named by a log that Spark finds in a directory; without it the scan is empty.
    "spark.sql.streaming.fileStreamSink.ignoreMetadata": "false",
    "spark.sql.streaming.fileSink.log.compactInterval": "10",
    # Version 1 of both formats: version 2 answers aggregates from footers, which do not count NaN.
    "spark.sql.sources.useV1SourceList": "avro,csv,json,kafka,orc,parquet,text",
    # Hive's reader of ORC returns null for columns that are not wanted in the file's order.
    "spark.sql.orc.impl": "native",
}
"""Of the session in which a scan of data files is resolved; the values are Spark's defaults."""

SCAN_OPTIONS: Final = {
    "recursiveFileLookup": "true",
    # A file that is gone or damaged is an error: its rows would be missing.
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    # A scan names the columns that it needs, so places of columns in the file are no use.
    "orc.force.positional.evolution": "false",
}
"""Of such a scan."""

_FILE_MANAGER: Final = "spark.sql.streaming.checkpointFileManagerClass"


def clone_session(session: Any, settings: Mapping[str, str]) -> Any:  # noqa: ANN401 - objects of the JVM
    """Return a copy of a session of the JVM with other settings; the session itself stays as it is."""
    clone = session.cloneSession()
    conf = clone.sessionState().conf()
    for key, value in settings.items():
        conf.setConfString(key, value)
    return clone


def scan_session(session: Any) -> Any:  # noqa: ANN401 - see above
    """Return the session of the JVM in which to resolve a scan: the given one, or a clone with ``SCAN_SETTINGS``.

    A clone keeps its settings when those of the session change, so it is made only where it is needed.
    """
    conf = session.sessionState().conf()
    changed = {key: value for key, value in SCAN_SETTINGS.items() if conf.getConfString(key, value) != value}
    if not changed and not conf.contains(_FILE_MANAGER):
        return session
    clone = clone_session(session, changed)
    # A file manager for the store of a query's checkpoints may not know local files, where the log is.
    clone.sessionState().conf().unsetConf(_FILE_MANAGER)
    return clone


def unknown_parquet_keys(session: Any) -> tuple[str, ...]:  # noqa: ANN401 - see above
    """Return the settings of Parquet's writer in a session's Hadoop configuration that are not in ``WRITE_OPTIONS``.

    Examples are keys of encryption and Bloom filters of single columns, which a later setting cannot undo.
    """
    found = session.sessionState().newHadoopConf().getPropsWithPrefix("parquet.")
    return tuple(sorted({f"parquet.{key}" for key in found} - WRITE_OPTIONS.keys()))
