"""Checkpoint of a streaming query, read and written through the Hadoop file system that Spark uses for it.

Source:
    Spark's checkpoint directory: ``metadata`` holds the query's id; ``offsets/<n>`` holds the offsets of batch n and is
    written before the batch runs.
"""

from __future__ import annotations

import re
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JJavaError

from penstock.errors import CheckpointError, FormatError, StorageError
from penstock.format.text.json import decode_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

_NO_CONNECTOR: Final = re.compile("ClassNotFoundException|No FileSystem for scheme")
_LOCAL: Final = frozenset({"org.apache.hadoop.fs.LocalFileSystem", "org.apache.hadoop.hive.ql.io.ProxyLocalFileSystem"})
_CURE: Final = (
    "Spark has no connector for this location on its class path: add the JAR (hadoop-aws for s3a://, hadoop-azure "
    "for abfss://), or keep the checkpoint on a file system that the next driver sees too"
)


class HadoopDirectory:
    """A directory of small files. Any thread of the driver may use it; every failure is a ``StorageError``.

    Files on a disk are read and written by this process, which runs on the driver's machine: through Hadoop each takes
    several calls of the JVM, and a process that sets permissions.

    Args:
        location: a path or URI as Spark takes it.
    """

    def __init__(self, spark: SparkSession, location: str) -> None:
        context: Any = spark.sparkContext
        session: Any = spark
        # Looked up once: each part of a package name is a call to the JVM.
        self._path = context._jvm.org.apache.hadoop.fs.Path  # noqa: SLF001 - Python has no other way to Hadoop
        with _as_storage_error("open", location):
            root = self._path(location)
            files = root.getFileSystem(session._jsparkSession.sessionState().newHadoopConf())  # noqa: SLF001
            whole = files.makeQualified(root)
            self.place: str = whole.toString()
            is_disk = str(files.getClass().getName()) in _LOCAL and self.place.startswith("file:")
            # A JVM that has another encoding gives other names to files.
            self._disk = Path(str(whole.toUri().getPath())) if is_disk and self.place.isascii() else None
        self._files = files

    def list(self, directory: str) -> Sequence[str]:
        """List the names in a subdirectory; empty if the subdirectory does not exist."""
        with _as_storage_error("list", f"{self.place}/{directory}"):
            if self._disk is not None:
                with suppress(FileNotFoundError):
                    return tuple(each.name for each in (self._disk / directory).iterdir())
                return ()
            path = self._path(f"{self.place}/{directory}")
            if not self._files.exists(path):
                return ()
            return tuple(status.getPath().getName() for status in self._files.listStatus(path))

    def read(self, name: str) -> bytes | None:
        """Read a file, given by its path below the directory; None if it does not exist."""
        with _as_storage_error("read", f"{self.place}/{name}"):
            if self._disk is not None:
                with suppress(FileNotFoundError):
                    return (self._disk / name).read_bytes()
                return None
            path = self._path(f"{self.place}/{name}")
            if not self._files.exists(path):
                return None
            stream = self._files.open(path)
            try:
                return bytes(stream.readAllBytes())
            finally:
                stream.close()

    def write(self, name: str, data: bytes) -> None:
        """Create or replace a file, given by its path below the directory."""
        with _as_storage_error("write", f"{self.place}/{name}"):
            if self._disk is not None:
                (self._disk / name).parent.mkdir(parents=True, exist_ok=True)
                (self._disk / name).write_bytes(data)
                return
            stream = self._files.create(self._path(f"{self.place}/{name}"), True)  # noqa: FBT003 - Java
            try:
                stream.write(data)
            finally:
                stream.close()

    def delete(self, name: str) -> None:
        """Delete a file, given by its path below the directory, if it exists."""
        with _as_storage_error("delete", f"{self.place}/{name}"):
            if self._disk is not None:
                (self._disk / name).unlink(missing_ok=True)
                return
            self._files.delete(self._path(f"{self.place}/{name}"), False)  # noqa: FBT003 - Java


class Checkpoint:
    """Spark's files in a checkpoint, and Penstock's."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self._directory = HadoopDirectory(spark, location)

    @property
    def place(self) -> str:
        """The checkpoint's location, with its scheme."""
        return self._directory.place

    @property
    def files(self) -> OwnFiles:
        """Penstock's directory in the checkpoint."""
        return OwnFiles(self._directory)

    def load_query_id(self) -> str | None:
        """Load the id of the query; None before its first start."""
        data = self._directory.read("metadata")
        if data is None:
            return None
        try:
            return decode_json(data, "query metadata", f"{self.place}/metadata").text("id")
        except FormatError:
            return None  # Spark reports the damage

    def has_batches(self) -> bool:
        """Whether a query has begun a batch."""
        return any(name.isdigit() for name in self._directory.list("offsets"))

    def load_offsets(self, batch_id: int) -> bytes:
        """Load the offsets file that Spark writes before it runs a batch, unchanged."""
        data = self._directory.read(f"offsets/{batch_id}")
        if data is None:
            raise CheckpointError(
                f"checkpoint {self.place} has no offsets/{batch_id}, which Spark writes before it runs a batch; "
                "restore the checkpoint, or start with a new one"
            )
        return data

    def load_newest_offsets(self) -> bytes | None:
        """Load the offsets file of the newest batch; None if there is no batch."""
        batches = [int(name) for name in self._directory.list("offsets") if name.isdigit()]
        return self.load_offsets(max(batches)) if batches else None

    def load_done_offsets(self) -> tuple[int, bytes] | None:
        """Load the id and the offsets of the newest batch; None if there is no batch, or if Spark must run it again."""
        begun, done = (
            max((int(name) for name in self._directory.list(log) if name.isdigit()), default=-1)
            for log in ("offsets", "commits")
        )
        return (done, self.load_offsets(done)) if begun == done >= 0 else None


class OwnFiles:
    """The directory ``penstock`` of a checkpoint."""

    def __init__(self, directory: HadoopDirectory) -> None:
        self._directory = directory

    @property
    def place(self) -> str:
        """The checkpoint's location."""
        return self._directory.place

    def list(self) -> Sequence[str]:
        """List the names of the files; empty if the directory does not exist."""
        return self._directory.list("penstock")

    def read(self, name: str) -> bytes | None:
        """Read a file; None if it does not exist."""
        return self._directory.read(f"penstock/{name}")

    def write(self, name: str, data: bytes) -> None:
        """Create or replace a file."""
        self._directory.write(f"penstock/{name}", data)

    def delete(self, name: str) -> None:
        """Delete a file, if it exists."""
        self._directory.delete(f"penstock/{name}")


@contextmanager
def _as_storage_error(verb: str, path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, Py4JJavaError) as error:
        cause = str(error if isinstance(error, OSError) else error.java_exception.toString())
        if _NO_CONNECTOR.search(cause):
            cause += "; " + _CURE
        raise StorageError(f"cannot {verb} {path} of the query's checkpoint: {cause}", True) from error  # noqa: FBT003 - positional, so that pickling works
