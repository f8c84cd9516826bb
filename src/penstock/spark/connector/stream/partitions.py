"""Make input partitions of files in a given order."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.spark.connector.gateway import Bridge, JavaObject


class FilePartitions:
    """Makes ``FilePartition`` objects, which Spark's file readers read from the first file to the last."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self._file = bridge.private("PartitionedFile")
        self._partition = bridge.private("FilePartition")
        self._path = bridge.private("SparkPath")
        self._no_values = bridge.private("InternalRow").empty()
        self._no_hosts = bridge.strings(())
        self._no_metadata = bridge.scala_map({})

    def make(self, runs: Sequence[Sequence[tuple[str, int]]]) -> JavaObject:
        """Return an array of partitions, one for each run of files.

        Args:
            runs: URI and exact size in bytes of each file, in the order in which they are to be read.
        """
        made = [
            self._partition(place, self._bridge.array(self._file, [self._whole_file(uri, size) for uri, size in run]))
            for place, run in enumerate(runs)
        ]
        return self._bridge.array(self._bridge.connector("read.InputPartition"), made)

    def _whole_file(self, uri: str, size: int) -> JavaObject:
        path = self._path.fromUrlString(uri)
        return self._file(self._no_values, path, 0, size, self._no_hosts, 0, size, self._no_metadata)
