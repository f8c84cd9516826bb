"""Register a warehouse as a catalog of a Spark session, with the procedures of ``penstock.sql``."""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from penstock.api.arguments import FLAG, LOCATION, TEXT, accepts, check_spark, instance_of
from penstock.api.catalog import Catalog
from penstock.api.lazy import lazy_spark
from penstock.catalog.names import is_location, split_name
from penstock.dialect.parse.statements import Argument, Call
from penstock.dialect.run.procedures.registry import PROCEDURES, call
from penstock.dialect.run.procedures.unsupported import ELSEWHERE
from penstock.dialect.state import SqlState
from penstock.format.text.names import quoted

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

# Arguments that name a table of the warehouse.
_TABLES: Final = frozenset({"table", "target_table"})
_PARTS_WITH_CATALOG: Final = 3


@accepts(warehouse=LOCATION | instance_of(Catalog), name=TEXT, views=FLAG)
def attach(
    spark: SparkSession, warehouse: str | os.PathLike[str] | Catalog, name: str = "penstock", *, views: bool = True
) -> Catalog:
    """Add a warehouse to a Spark session as a catalog: ``spark.sql("SELECT * FROM penstock.db.table")``.

    A session from ``spark.newSession()`` has its own catalogs: attach to it too.

    Args:
        warehouse: path or URI of the directory; or a catalog, with its options.
        name: of the catalog in statements.
        views: whether its views can be read; a view runs SQL of whoever wrote it in this session. False for a
            warehouse or a server that others than you and people whom you trust can write to; the same as the option
            ``penstock.views`` = ``false`` of the catalog.

    Returns:
        The catalog.

    Raises:
        UnsupportedFeatureError: a Spark Connect session, or an unsupported version of Spark.
        InvalidOptionError: not a session, an invalid location, or an empty name.
    """
    catalog = warehouse if isinstance(warehouse, Catalog) else Catalog(warehouse)
    if not views:
        catalog = copy(catalog)
        catalog._warehouse = catalog._warehouse.without_views()  # noqa: SLF001 - see below
    parameters = {each: (*procedure.parameters, *procedure.aliases) for each, procedure in PROCEDURES.items()}
    check_spark(spark, catalog.warehouse)
    place = catalog._warehouse  # noqa: SLF001 - the handle has no public way to get its warehouse
    run = partial(_run, catalog, name)
    procedures = lazy_spark.ProcedureSource(parameters=parameters, run=run, elsewhere=ELSEWHERE)
    lazy_spark.attach(spark, place, name, procedures)
    return catalog


def _without_catalog(table: str, catalog: str) -> str:
    """Return a table's name without the catalog before it; a database may have the catalog's name."""
    if is_location(table) or len(split_name(table)) < _PARTS_WITH_CATALOG:
        return table
    prefix = next((each for each in (f"{catalog}.", f"{quoted(catalog)}.") if table.startswith(each)), "")
    return table.removeprefix(prefix)


def _run(catalog: Catalog, name: str, spark: SparkSession, procedure: str, arguments: Mapping[str, str]) -> pa.Table:
    """Run a procedure; table names in its arguments may begin with the catalog of the statement."""
    given = tuple(
        Argument(name=key, value=_without_catalog(value, name) if key in _TABLES else value)
        for key, value in arguments.items()
    )
    state = SqlState()
    with state.attached(catalog, spark):
        value = call(state, Call(procedure=procedure, arguments=given)).value
    return value if isinstance(value, pa.Table) else pa.table({"result": ["success"]})
