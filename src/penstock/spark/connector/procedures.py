"""``CALL penstock.sys.*``: procedures of a ``ProcedureSource`` as Spark procedures.

Source:
    ``ProcedureCatalog`` of Spark: arguments are bound to parameters while a statement is analysed, and the procedure
    runs then.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, ClassVar, Final

from pyspark.sql.pandas.types import from_arrow_schema

from penstock.errors import NotFoundError
from penstock.spark.connector.local_rows import LocalRows, arrow_rows
from penstock.spark.connector.proxy import Proxy, from_spark

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from penstock.spark.connector.gateway import Bridge, JavaObject

_PROCEDURES: Final = "org.apache.spark.sql.connector.catalog.procedures."
# Default value of a parameter, which means that the argument is not given.
_ABSENT: Final = "''"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcedureSource:
    """Procedures by name.

    Attributes:
        parameters: names of the parameters of each procedure, by position; all are optional strings.
        descriptions: what each does, in one paragraph.
        run: called with a session, a name and the given arguments; returns the result rows.
        unsupported: names of unsupported procedures, with the reason and the alternative.
    """

    parameters: Mapping[str, tuple[str, ...]]
    descriptions: Mapping[str, str]
    run: Callable[[SparkSession, str, Mapping[str, str]], pa.Table]
    unsupported: Mapping[str, str]

    def missing(self, path: str, name: str) -> NotFoundError:
        """Return the error for an unknown or unsupported procedure."""
        if name in self.unsupported:
            return NotFoundError(f"there is no procedure {path}: {self.unsupported[name]}")
        near = get_close_matches(name.lower(), self.parameters, n=1)
        there = ", ".join(f"sys.{each}" for each in self.parameters)
        hint = f"did you mean sys.{near[0]}?" if near else f"there are {there}"
        return NotFoundError(f"there is no procedure {path}; {hint}")


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
        """Return what it does, and its arguments."""
        arguments = ", ".join(self._source.parameters[self._name])
        return f"{self._source.descriptions[self._name]} Arguments: {arguments}"

    @from_spark
    def bind(self, types: JavaObject) -> JavaObject:
        """Return this procedure for all types of arguments."""
        return self

    @from_spark
    def parameters(self) -> JavaObject:
        """Return the parameters."""
        parameter = self._bridge.connector("catalog.procedures.ProcedureParameter")
        text = self._bridge.java("org.apache.spark.sql.types.DataType").fromJson('"string"')
        made = [
            getattr(parameter, "in")(name, text).defaultValue(_ABSENT).build()
            for name in self._source.parameters[self._name]
        ]
        return self._bridge.array(parameter, made)

    def isDeterministic(self) -> bool:
        """Return false: the procedure may change something."""
        return False

    @from_spark
    def call(self, row: JavaObject) -> JavaObject:
        """Run the procedure, and return its rows."""
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
        scans = self._bridge.java("java.util.ArrayList")()
        scans.add(scan.exposed())
        return scans.iterator()
