"""Settings of Spark and Hadoop for writing and reading the data files of tables with Spark.

The content of a file, and the rows that a scan finds, must not depend on the user's configuration of Spark. So we set
every setting that matters: session settings in a clone of the session, so that no other thread sees them; Hadoop
settings as options of the single write or scan, which override the configuration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from penstock.format.layout import FileFormat
from penstock.spark.versions.facts import MEASURES_BATCHES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.io.file_io import FileIO

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
    # Makes the write command the root of the physical plan, from which its row count metric is read.
    "spark.sql.optimizer.plannedWrite.enabled": "false",
}
"""Settings of the session in which Spark writes Parquet files for a table."""

WRITE_OPTIONS: Final = {
    # Hadoop's usual one writes checksums to files of their own, which are not moved into a table, and starts a process
    # for the permissions of each file.
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "fs.file.impl.disable.cache": "true",
    "mapreduce.output.basename": "part",
    # Else the driver would take the committer of the scheme of an object store, and the tasks another one.
    "mapreduce.outputcommitter.factory.class": "org.apache.hadoop.mapreduce.lib.output.FileOutputCommitterFactory",
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "mapreduce.fileoutputcommitter.cleanup.skipped": "false",
    "mapreduce.fileoutputcommitter.cleanup-failures.ignored": "false",
    "mapreduce.fileoutputcommitter.task.cleanup.enabled": "false",
    # Defaults of parquet-java, for keys that many sessions set; ``unknown_parquet_keys`` finds the other ``parquet.*``.
    "parquet.block.size": "134217728",
    "parquet.page.size": "1048576",
    "parquet.dictionary.page.size": "1048576",
    "parquet.enable.dictionary": "true",
    "parquet.writer.version": "PARQUET_1_0",
    "parquet.summary.metadata.level": "NONE",
}
"""Options of such a write."""

SCAN_SETTINGS: Final = {
    # Spark reads the files of a scan from a log in a directory; without the log the scan is empty.
    "spark.sql.streaming.fileStreamSink.ignoreMetadata": "false",
    "spark.sql.streaming.fileSink.log.compactInterval": "10",
    # V1 for all formats: V2 computes aggregates from footers, which omit NaN.
    "spark.sql.sources.useV1SourceList": "avro,csv,json,kafka,orc,parquet,text",
    # Hive's ORC reader returns null for columns that are read in another order than the file's.
    "spark.sql.orc.impl": "native",
}
"""Settings of the session in which a scan of data files is resolved; the values are Spark's defaults."""

ORC_SCAN_SETTINGS: Final = {
    # A condition of the user goes to Spark's ORC reader unchecked, which fails on an IN with a NULL, and does not find
    # days that the Julian calendar lacks.
    "spark.sql.orc.filterPushdown": "false",
}
"""More of them for a scan of ORC files."""

_SCAN_OPTIONS: Final = {
    "recursiveFileLookup": "true",
    # A missing or damaged file must be an error; otherwise its rows would be missing silently.
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    # A scan reads columns by name, not by their position in the file.
    "orc.force.positional.evolution": "false",
}
_IN_PIECES: Final = {
    # Java's collector G1 allocates buffers of half a region or more apart, and begins to mark the heap for them; the
    # smallest regions have 1 MB. A vectored read allocates such a buffer for each row group (design/0023).
    "parquet.read.allocation.size": "262144",
    "parquet.hadoop.vectored.io.enabled": "false",
}

_BATCH_BYTES: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
_BATCH_ROWS: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
# Rows of up to 64 KiB stay within the 64 MiB of Spark's default limit. Our writer takes batches of 1,000 and of 10,000
# rows in the same time, since it collects rows before it encodes them.
_MAX_BATCH_ROWS: Final = 1_000
_NO_LIMIT: Final = str(2**31 - 1)

# Keys that ``parquet_options`` sets for each table, so that the configuration has no effect.
_KEYS_OF_A_TABLE: Final = frozenset({"parquet.compression", "parquet.compression.codec.zstd.level"})
# Keys that no writer reads.
_KEYS_OF_READERS: Final = (
    "parquet.decrypt.",
    "parquet.filter.",
    "parquet.hadoop.vectored.io.",
    "parquet.metadata.read.",
    "parquet.page.verify-checksum.",
    "parquet.private.read.",
    "parquet.read.",
    "parquet.split.files",
    "parquet.strict.typing",
    "parquet.task.side.metadata",
)
_FILE_MANAGER: Final = "spark.sql.streaming.checkpointFileManagerClass"


def clone_session(session: Any, settings: Mapping[str, str]) -> Any:  # noqa: ANN401 - objects of the JVM
    """Return a clone of a JVM session with other settings; the session itself does not change."""
    clone = session.cloneSession()
    conf = clone.sessionState().conf()
    for key, value in settings.items():
        conf.setConfString(key, value)
    return clone


def batch_settings(session: Any) -> dict[str, str]:  # noqa: ANN401 - see above
    """Return the settings with which a session hands rows to Python workers in batches limited by rows, not by bytes.

    Where Spark limits the bytes of a batch, as it does by default, it adds up the sizes of all columns before each row,
    which takes as long as the conversion of the row to Arrow (design/0007).

    Returns:
        Nothing to change if this version of Spark has no such limit, or if the user has set one.

    Source:
        ``BatchedPythonArrowInput.writeSizedBatch`` of Spark.
    """
    conf = session.sessionState().conf()
    if not MEASURES_BATCHES or conf.contains(_BATCH_BYTES):
        return {}
    rows = int(conf.arrowMaxRecordsPerBatch())
    # Not positive: no limit.
    limit = min(rows, _MAX_BATCH_ROWS) if rows > 0 else _MAX_BATCH_ROWS
    return {_BATCH_BYTES: _NO_LIMIT, _BATCH_ROWS: str(limit)}


def scan_session(session: Any, file_format: FileFormat) -> Any:  # noqa: ANN401 - see above
    """Return the JVM session in which to resolve a scan: the given one, or a clone with other settings.

    A clone does not follow later changes of the session's settings, so it is made only if needed.
    """
    conf = session.sessionState().conf()
    changed = {key: value for key, value in SCAN_SETTINGS.items() if conf.getConfString(key, value) != value}
    if file_format is FileFormat.ORC:
        changed |= ORC_SCAN_SETTINGS
    if not changed and not conf.contains(_FILE_MANAGER):
        return session
    clone = clone_session(session, changed)
    # The file manager for checkpoints may not support local files, where the log is.
    clone.sessionState().conf().unsetConf(_FILE_MANAGER)
    return clone


def scan_options(file_io: FileIO) -> dict[str, str]:
    """Return the options of a scan of data files; vectored reads are for storage that answers several requests at once.

    Source:
        ``ParquetFileReader.ConsecutivePartList.readAll`` and ``readVectored`` of parquet-java.
    """
    return _SCAN_OPTIONS if file_io.is_slow else _SCAN_OPTIONS | _IN_PIECES


def unknown_parquet_keys(session: Any) -> tuple[str, ...]:  # noqa: ANN401 - see above
    """Return the Parquet settings in a session's Hadoop configuration that the options of a write do not override.

    Examples are encryption keys and Bloom filters of single columns, which write options cannot unset.
    """
    # As text: Python would take a call, and at the end an error, to iterate over the keys.
    keys = session.sessionState().newHadoopConf().getPropsWithPrefix("parquet.").keySet().toString()
    found = {f"parquet.{key}" for key in keys[1:-1].split(", ") if key}
    unknown = found - WRITE_OPTIONS.keys() - _KEYS_OF_A_TABLE
    return tuple(sorted(key for key in unknown if not key.startswith(_KEYS_OF_READERS)))
