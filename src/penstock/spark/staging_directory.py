"""The directory in which Spark's own writer writes files of one job, whose rows the driver or other tasks read again.

It is in the directory of the table, where files can be moved into the table, if Spark's writer opens that storage: a
file system, or an object store for which Spark has Hadoop's connector. If all tasks run on the driver's machine, it is
in Spark's directory for temporary files there, unless the table is on a disk: an object store needs a request for each
file, and more than one if files are renamed (design/0031).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors.exceptions.captured import CapturedException

from penstock.errors import StorageError
from penstock.io.local import LocalFileIO
from penstock.spark.hadoop_options import why_not_by_spark
from penstock.spark.python_worker import is_on_this_machine
from penstock.table.commit.cleanup import staging_directory

if TYPE_CHECKING:
    from penstock.io.file_io import FileIO
    from penstock.table.ref import TableRef


def why_not_staged(ref: TableRef) -> str | None:
    """Return why Spark's tasks can write no files that the driver and other tasks read; None if they can."""
    if ref.file_io.is_local or is_on_this_machine(SparkContext.getOrCreate()):
        return None
    reason = why_not_by_spark(ref.file_io)
    return reason and f"{reason}, so Spark's tasks cannot write there"


@dataclass(frozen=True, slots=True, kw_only=True)
class StagingDirectory:
    """A directory of one job.

    Attributes:
        file_io: its storage.
        path: where it is there.
    """

    file_io: FileIO
    path: str

    @classmethod
    def of(cls, ref: TableRef, job_id: str) -> Self:
        """Return the directory for rows of a table, which is not created."""
        context = SparkContext.getOrCreate()
        if ref.file_io.is_local or not is_on_this_machine(context):
            return cls(file_io=ref.file_io, path=staging_directory(ref, job_id))
        return cls(file_io=LocalFileIO(), path=f"{context._temp_dir}/{job_id}")  # noqa: SLF001 - deleted with the session

    def create(self) -> None:
        """Make the directory on a disk: Hadoop would start a process to set its permissions. Elsewhere do nothing."""
        if self.file_io.is_local:
            try:
                Path(self.path).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StorageError(f"cannot create {self.path}: {error.strerror or error}") from error

    def uri(self, path: str) -> str:
        """Return the text by which Spark opens a path, which Hadoop uses unchanged: not percent-encoded."""
        return f"file://{path}" if self.file_io.is_local else unquote(self.file_io.to_uri(path))

    def delete(self, session: Any) -> None:  # noqa: ANN401 - of the JVM
        """Delete the directory; errors are ignored, as its files are not part of the table.

        Elsewhere than on a disk, Spark deletes it: Hadoop's connectors make objects that stand for directories.
        """
        if self.file_io.is_local:
            with suppress(StorageError):
                self.file_io.delete(self.path, recursive=True)
            return
        jvm: Any = SparkContext.getOrCreate()._jvm  # noqa: SLF001 - PySpark has no public name for it
        path = jvm.org.apache.hadoop.fs.Path(self.uri(self.path))
        with suppress(Py4JJavaError, CapturedException):
            path.getFileSystem(session.sessionState().newHadoopConf()).delete(path, True)  # noqa: FBT003 - of Java
