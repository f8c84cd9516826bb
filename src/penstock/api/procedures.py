"""All procedures by name, for ``CALL`` in ``penstock.sql`` and in a catalog that is attached to Spark.

Source:
    Paimon's Flink procedures: names, arguments and their order; docs/spec/compaction.md section 7.1. Those that are not
    supported are of Paimon 1.4 and its later development, in its Flink and its Spark modules.
"""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, cast

from penstock.api import migrate
from penstock.api.operations import branches, compaction, consumers, partitions, rollback, snapshots, tags
from penstock.api.operations.procedure import Arguments
from penstock.catalog.names import split_name
from penstock.errors import InvalidSqlError, TableStoreError, UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from penstock.api.names import CatalogNames
    from penstock.api.operations.procedure import Procedure

_MODULES: Final = (compaction, tags, rollback, branches, snapshots, partitions, consumers, migrate)
PROCEDURES: Final[Mapping[str, Procedure]] = {each.name: each for module in _MODULES for each in module.PROCEDURES}
"""All procedures, by name."""

_NO_KEYS: Final = "append tables have no changelog, and tables with primary keys are not supported"
_NO_FUNCTIONS: Final = "catalogs have no functions; register one with spark.udf"
_NO_SEARCH: Final = "there are no global indexes; those of data files are used where other engines wrote them"
_NO_EVOLUTION: Final = "data evolution is not supported"
_CONVERT: Final = "penstock convert copies Parquet, ORC, Delta Lake and Iceberg tables into a new table"

UNSUPPORTED: Final[Mapping[str, str]] = {
    "alter_function": _NO_FUNCTIONS,
    "alter_view_dialect": "a view has one text; write CREATE OR REPLACE VIEW",
    "clone": f"CREATE TABLE ... AS SELECT copies a table of Paimon; {_CONVERT}",
    "compact_chain_table": _NO_KEYS,
    "copy_files": "CREATE TABLE ... AS SELECT copies the rows; or copy the directory of the table while nobody writes",
    "create_function": _NO_FUNCTIONS,
    "create_global_index": _NO_SEARCH,
    "data_evolution_merge_into": _NO_EVOLUTION,
    "drop_function": _NO_FUNCTIONS,
    "drop_global_index": _NO_SEARCH,
    "drop_partition": "write ALTER TABLE ... DROP PARTITION (...)",
    "expire_changelogs": _NO_KEYS,
    "full_text_search": _NO_SEARCH,
    "materialize_deletion_vectors": "CALL sys.compact with options => 'compaction.delete-ratio-threshold=0' rewrites "
    "files with deleted rows",
    "merge_branch": "sys.fast_forward gives the main branch what a branch has; INSERT INTO ... SELECT adds its rows",
    "merge_into": "write MERGE INTO ... USING ... ON ..., here or in Spark SQL",
    "migrate_file": "sys.migrate_table and sys.migrate_database adopt directories of files",
    "migrate_iceberg_table": _CONVERT,
    "purge_files": "write TRUNCATE TABLE, then CALL sys.expire_snapshots with retain_max => 1 and retain_min => 1",
    "query_service": _NO_KEYS,
    "reassign_row_id": _NO_EVOLUTION,
    "refresh_object_table": "object tables are not supported",
    "repair": "there is no metastore to repair: a warehouse lists its directories, and Table.at opens one table's",
    "repair_earliest_snapshot": "missing snapshots are skipped; fsck lists what is missing",
    "vector_search": _NO_SEARCH,
}
"""Reasons by the names of procedures."""


def call(
    names: CatalogNames[Any], spark: SparkSession | None, name: str, given: Iterable[tuple[str | None, object]]
) -> pa.Table:
    """Run a procedure, and return its rows.

    Args:
        names: with the catalog of the statement as the current one.
        given: names and values of arguments; the name of a positional argument is None.

    Raises:
        InvalidSqlError: there is no such procedure.
        UnsupportedFeatureError: Paimon has this procedure, but Penstock does not have the feature.
        InvalidOptionError: the procedure does not accept these arguments.
        TableStoreError: as the operation.
    """
    procedure = PROCEDURES.get(name)
    if procedure is None:
        raise _unknown(name)
    arguments = Arguments(name, procedure.positions, procedure.parameters, procedure.aliases, given)
    tables = _tables(procedure, names, arguments)
    rows: list[tuple[object, ...]] = []
    for each in procedure.operations(arguments):
        operation: Any = replace(cast("Any", each), spark=spark) if hasattr(each, "spark") else each
        if procedure.has_table:
            targets = tables
        elif hasattr(operation, "name"):
            catalog, new_name = names.catalog_of(split_name(operation.name))
            targets, operation = [catalog], replace(operation, name=new_name)
        else:
            targets = [names.catalog(names.catalog_name)]
        for target in targets:
            rows += procedure.run(target._target, operation)  # noqa: SLF001 - of this package
    return procedure.result(rows)


def _tables(procedure: Procedure, names: CatalogNames[Any], arguments: Arguments) -> list[Any]:
    """Return the tables of a call; none if the procedure works on a warehouse."""
    options = procedure.table_options(arguments)
    if not procedure.has_table:
        return []
    path = split_name(arguments.needed("table"))
    if path[-1] != "*" or not procedure.takes_database:
        return [names.load(path, options, skip_damaged_schemas=procedure.skips_damaged_schemas)]
    catalog, database = names.full_database(path[:-1])
    tables = names.catalog(catalog).list_tables(database)
    return [names.load((catalog, database, table), options) for table in tables]


def _unknown(name: str) -> TableStoreError:
    if name in UNSUPPORTED:
        return UnsupportedFeatureError(f"there is no procedure sys.{name}: {UNSUPPORTED[name]}")
    near = get_close_matches(name, PROCEDURES, n=1)
    hint = f"did you mean sys.{near[0]}?" if near else f"there are {', '.join(PROCEDURES)}"
    return InvalidSqlError(f"there is no procedure sys.{name}; {hint}")
