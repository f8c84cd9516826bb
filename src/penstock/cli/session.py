"""The values of the global options, and the tables found with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.api.catalog import Catalog
from penstock.catalog.names import is_location
from penstock.catalog.warehouse import open_warehouse
from penstock.cli.output_format import OutputFormat
from penstock.errors import InvalidOptionError

__all__ = ["OutputFormat", "Session"]

if TYPE_CHECKING:
    from penstock.api.table import Table
    from penstock.catalog.backend import Backend
    from penstock.catalog.place import TablePlace


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The global options of one call.

    Attributes:
        warehouse: None when none was given; a table named by its path needs none.
        quiet: no progress and no success messages.
        debug: errors with their traceback.
    """

    warehouse: str | None = None
    format: OutputFormat = OutputFormat.TABLE
    quiet: bool = False
    debug: bool = False

    def catalog(self, name: str | None = None) -> Catalog:
        """Return the catalog to look up a name in."""
        return Catalog(self._warehouse_for(name))

    def table(self, name: str, *, skip_damaged_schemas: bool = False) -> Table:
        """Load a table by ``database.table`` or by its path."""
        return self.catalog(name).load_table(name, skip_damaged_schemas=skip_damaged_schemas)

    def place(self, name: str) -> TablePlace:
        """Return the location of a table, which need not exist."""
        return open_warehouse(self._warehouse_for(name)).place_of(name)

    def open_warehouse(self) -> Backend:
        """Return the warehouse itself."""
        return open_warehouse(self._warehouse_for(None))

    def _warehouse_for(self, name: str | None) -> str:
        if self.warehouse:
            return self.warehouse
        if name is not None and is_location(name):
            return name  # a path is the table's location: the warehouse is not read
        raise InvalidOptionError(
            "no warehouse is given: give --warehouse PATH, set PENSTOCK_WAREHOUSE, or name a table by its path"
        )
