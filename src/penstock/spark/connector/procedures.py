"""``CALL penstock.sys.*``: procedures that somebody else has, as Spark's.

Source:
    ``ProcedureCatalog`` of Spark: arguments are bound to parameters while a statement is analysed, and the procedure
    runs then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from pyspark.sql.pandas.types import from_arrow_schema

from penstock.spark.connector.local_rows import LocalRows, arrow_rows
from penstock.spark.connector.proxy import Proxy, from_spark

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from penstock.spark.connector.gateway import Bridge, JavaObject

_PROCEDURES: Final = "org.apache.spark.sql.connector.catalog.procedures."
# What counts as not given.
_ABSENT: Final = "''"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcedureSource:
    """Procedures by their names.

    Attributes:
        parameters: of each procedure, in the order of their places; every one is a text and may be left out.
        run: takes a session, a name and the arguments that were given; returns the rows of the result.
    """

    parameters: Mapping[str, tuple[str, ...]]
    run: Callable[[SparkSession, str, Mapping[str, str]], pa.Table]


def _refuse(_: SparkSession, name: str, arguments: Mapping[str, str]) -> pa.Table:
    raise AssertionError(f"{name} is not among the procedures: {arguments}")


NO_PROCEDURES: Final = ProcedureSource(parameters={}, run=_refuse)
"""Of a catalog whose owner has none."""


class SparkProcedure(Proxy):
    """One procedure."""

    interfaces: ClassVar = (f"{_PROCEDURES}UnboundProcedure", f"{_PROCEDURES}BoundProcedure")

    def __init__(self, bridge: Bridge, source: ProcedureSource, name: str) -> None:
        super().__init__(bridge, name)
        self._source = source
        self._name = name

    def name(self) -> str:
        """Return the name."""
        return self._name

    def description(self) -> str:
        """Say what the procedure is."""
        return f"sys.{self._name}: {', '.join(self._source.parameters[self._name])}"

    def bind(self, types: JavaObject) -> JavaObject:
        """Return the procedure for arguments of some types: there is one for all of them."""
        return self

    @from_spark
    def parameters(self) -> JavaObject:
        """Return what may be given."""
        parameter = self._bridge.connector("catalog.procedures.ProcedureParameter")
        text = self._bridge.jvm.org.apache.spark.sql.types.DataType.fromJson('"string"')
        made = [
            getattr(parameter, "in")(name, text).defaultValue(_ABSENT).build()
            for name in self._source.parameters[self._name]
        ]
        return self._bridge.array(parameter, made)

    def isDeterministic(self) -> bool:
        """Say that it does something."""
        return False

    @from_spark
    def call(self, row: JavaObject) -> JavaObject:
        """Run, and return the rows."""
        names = self._source.parameters[self._name]
        values = {
            name: str(row.getUTF8String(place).toString())
            for place, name in enumerate(names)
            if not row.isNullAt(place)
        }
        session = self._bridge.python_session(self._bridge.session())
        found = self._source.run(session, self._name, {name: value for name, value in values.items() if value})
        scan = LocalRows(
            self._bridge,
            f"result of sys.{self._name} {id(found)}",
            from_arrow_schema(found.schema),
            lambda: arrow_rows(self._bridge, found),
        )
        scans = self._bridge.jvm.java.util.ArrayList()
        scans.add(scan)
        return scans.iterator()
