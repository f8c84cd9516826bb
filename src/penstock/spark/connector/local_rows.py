"""Scans whose rows are computed on the driver: aggregates from metadata, and system tables."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, ClassVar, Final

from pyspark.sql.pandas.types import from_arrow_schema

from penstock.spark.connector.proxy import PlainTable, Proxy, from_spark
from penstock.spark.versions.python_api import from_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from penstock.spark.connector.gateway import Bridge, JavaObject

_CONNECTOR: Final = "org.apache.spark.sql.connector."


class LocalRows(Proxy):
    """A scan of a few rows that needs no executor.

    Args:
        text: text that ``explain`` shows; it must be different for different rows.
        make_rows: returns an ``InternalRow[]``.
    """

    interfaces: ClassVar = (f"{_CONNECTOR}read.LocalScan",)

    def __init__(self, bridge: Bridge, text: str, schema: StructType, make_rows: Callable[[], JavaObject]) -> None:
        super().__init__(bridge, f"{text} {schema.json()}")
        self._text = text
        self._schema = schema
        self._make_rows = make_rows

    def readSchema(self) -> JavaObject:
        """Return the columns."""
        return self._bridge.schema(self._schema)

    def description(self) -> str:
        """Return the text that ``explain`` shows."""
        return self._text

    @from_spark
    def rows(self) -> JavaObject:
        """Return the rows."""
        return self._make_rows()


def arrow_rows(bridge: Bridge, rows: pa.Table, schema: StructType | None = None) -> JavaObject:
    """Return rows in memory as an ``InternalRow[]``.

    Args:
        schema: of the rows in Spark; None for what Spark derives from the Arrow types.
    """
    frame = from_arrow(bridge.python_session(bridge.session()), rows, schema)
    return frame._jdf.queryExecution().executedPlan().executeCollect()


class SystemTable(PlainTable):
    """A system table, such as ``penstock.db.t.snapshots`` or ``penstock.sys.tables``; one object per load.

    Args:
        name: full name of the system table, including the catalog.
        load: returns its rows for the options of a read.
    """

    interfaces: ClassVar = (f"{_CONNECTOR}catalog.SupportsRead",)
    capability: ClassVar = "BATCH_READ"

    def __init__(self, bridge: Bridge, name: str, load: Callable[[Mapping[str, str]], pa.Table]) -> None:
        self._load = load
        self._rows = load({})
        super().__init__(bridge, f"{name} {id(self)}", name, from_arrow_schema(self._rows.schema))

    @from_spark
    def newScanBuilder(self, options: JavaObject) -> JavaObject:
        """Return the scan builder."""
        read_options: dict[str, str] = json.loads(self._bridge.driver.options(options))
        rows = self._load(read_options) if read_options else self._rows
        text = f"{self._key} {read_options or ''}"
        scan = LocalRows(self._bridge, text, self._schema, lambda: arrow_rows(self._bridge, rows))
        return SystemScanBuilder(self._bridge, scan)


class SystemScanBuilder(Proxy):
    """Builds the scan of a system table, without push-down."""

    interfaces: ClassVar = (f"{_CONNECTOR}read.ScanBuilder",)

    def __init__(self, bridge: Bridge, scan: LocalRows) -> None:
        super().__init__(bridge, scan.toString())
        self._scan = scan

    @from_spark
    def build(self) -> JavaObject:
        """Return the scan."""
        return self._scan
