"""Unsupported procedures of Paimon, each with the reason and an alternative.

Source:
    Paimon 1.4 and its later development: the procedures of its Flink and its Spark modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_NO_KEYS: Final = "append tables have no changelog, and tables with primary keys are not supported"
_NO_FUNCTIONS: Final = "catalogs have no functions; register one with spark.udf"
_NO_SEARCH: Final = "there are no global indexes; those of data files are used where other engines wrote them"
_NO_EVOLUTION: Final = "tables with row tracking are read only"
_CONVERT: Final = "penstock convert copies Parquet, ORC, Delta Lake and Iceberg tables into a new table"

ELSEWHERE: Final[Mapping[str, str]] = {
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
    "materialize_deletion_vectors": "tables with deletion vectors are read only; Paimon's compaction rewrites them",
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
    "rewrite_file_index": "file indexes are not written; those that other engines wrote skip files",
    "vector_search": _NO_SEARCH,
}
"""Reasons by the names of procedures."""
