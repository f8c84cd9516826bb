"""Size estimates of a scan, for the planning of joins."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from penstock.spark.connector.proxy import Proxy

if TYPE_CHECKING:
    from penstock.spark.connector.gateway import Bridge, JavaObject


class ScanStatistics(Proxy):
    """Bytes and rows of the files of a scan, before filters on rows; None if they are not known."""

    interfaces: ClassVar = ("org.apache.spark.sql.connector.read.Statistics",)

    def __init__(self, bridge: Bridge, *, size_bytes: int | None, rows: int | None) -> None:
        super().__init__(bridge, f"{size_bytes} bytes, {rows} rows")
        self._size_bytes = size_bytes
        self._rows = rows

    def sizeInBytes(self) -> JavaObject:
        """Return the bytes on storage."""
        return self._bridge.optional_long(self._size_bytes)

    def numRows(self) -> JavaObject:
        """Return the rows of the files."""
        return self._bridge.optional_long(self._rows)

    def columnStats(self) -> JavaObject:
        """Return no column statistics."""
        return self._bridge.java_map({})
