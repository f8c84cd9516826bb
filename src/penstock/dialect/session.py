"""Run scripts statement by statement."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from penstock.api.catalog import Catalog
from penstock.api.lazy import is_spark_object
from penstock.dialect.parse import statements
from penstock.dialect.parse.parser import parse_script
from penstock.dialect.parse.reader import TOO_DEEP
from penstock.dialect.run import ddl as run_ddl
from penstock.dialect.run import row_changes as run_row_changes
from penstock.dialect.run import rows as run_rows
from penstock.dialect.run import show
from penstock.dialect.run import views as run_views
from penstock.dialect.run.alter import ALTERATIONS, alter
from penstock.dialect.state import SqlState
from penstock.errors import InvalidOptionError, TableStoreError
from penstock.printable import mask_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import SparkSession

    from penstock.dialect.outcome import Outcome, Value
    from penstock.dialect.parse.statements import Statement

_SHOWN: Final = 60


def run_script(state: SqlState, script: str) -> Iterator[Outcome]:
    """Parse a whole script, and return an iterator that runs one statement at each step.

    Args:
        state: must stay attached to a catalog until the iterator is used up.

    Raises:
        InvalidSqlError: a statement has a syntax error; no statement of the script was run.
        TableStoreError: a statement failed; the effects of the statements before it remain. A note on the error names
            the statement.
    """
    parsed = parse_script(script)
    return (_run(state, statement) for statement in parsed)


_RUNNERS: Final[Mapping[type, Callable[[SqlState, Any], Outcome]]] = {
    statements.CreateTable: run_ddl.create_table,
    statements.CreateDatabase: run_ddl.create_database,
    statements.CreateCatalog: run_ddl.create_catalog,
    statements.UseCatalog: run_ddl.use_catalog,
    statements.UseDatabase: run_ddl.use_database,
    statements.DropTable: run_ddl.drop_table,
    statements.DropDatabase: run_ddl.drop_database,
    statements.DropCatalog: run_ddl.drop_catalog,
    **dict.fromkeys(ALTERATIONS, alter),
    statements.CreateTableAs: run_ddl.create_table_as,
    statements.CreateTableLike: run_ddl.create_table_like,
    statements.CreateView: run_views.create_view,
    statements.DropView: run_views.drop_view,
    statements.ShowCreateView: run_views.show_create_view,
    statements.Truncate: run_ddl.truncate,
    statements.ShowNames: show.show_names,
    statements.ShowCreateTable: show.show_create_table,
    statements.ShowPartitions: show.show_partitions,
    statements.Describe: show.describe,
    statements.SetSetting: show.set_setting,
    statements.ResetSetting: show.reset_setting,
    statements.Call: show.call_procedure,
    statements.Explain: show.explain,
    statements.Insert: run_rows.insert,
    statements.DeleteRows: run_row_changes.delete_rows,
    statements.UpdateRows: run_row_changes.update_rows,
    statements.MergeRows: run_row_changes.merge_rows,
    statements.Select: run_rows.select,
}

# A state has no reference to its catalog between two scripts, so its entry is removed with the catalog.
_STATES: Final[WeakKeyDictionary[Catalog, SqlState]] = WeakKeyDictionary()


def run_text(spark: SparkSession | None, catalog: Catalog | str | os.PathLike[str], text: str) -> Value:
    """Run a script in the state that belongs to a catalog, as ``penstock.sql`` describes it."""
    handle = _checked(spark, catalog, text)
    state = _STATES.setdefault(handle, SqlState())
    value: Value = None
    with state.attached(handle, spark):
        for outcome in run_script(state, text):
            value = outcome.value
    return value


def _checked(spark: object, catalog: object, text: object) -> Catalog:
    """Return the catalog of a call. Raises ``InvalidOptionError`` for arguments of other types."""
    found = Catalog(catalog) if isinstance(catalog, str | os.PathLike) else catalog
    is_session = spark is None or is_spark_object(spark)
    if not isinstance(found, Catalog) or not is_session or not isinstance(text, str):
        given = ", ".join("None" if each is None else f"a {type(each).__name__}" for each in (spark, catalog, text))
        raise InvalidOptionError(
            f"penstock.sql(spark, catalog, text): expected a SparkSession or None, a Catalog or the location of a "
            f"warehouse, and text; found {given}"
        )
    return found


def _run(state: SqlState, statement: Statement) -> Outcome:
    state.forget_statement_caches()
    try:
        return _RUNNERS[type(statement.action)](state, statement.action)
    except TableStoreError as error:
        source = statement.source
        words = " ".join(mask_text(source.text).split())
        shown = words if len(words) <= _SHOWN else f"{words[:_SHOWN]}…"
        error.add_note(f"in the statement at line {source.line}, column {source.column}: {shown}")
        raise
    except RecursionError:
        # Deeply nested views, or the expression of a computed column.
        raise statement.source.error(0, TOO_DEEP) from None
