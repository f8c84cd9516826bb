"""Changes of existing rows: DELETE, UPDATE and MERGE."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

from penstock.api.arguments import (
    FLAG,
    MAPPING,
    NAMES,
    TEXT_MAPPING,
    Filter,
    Names,
    accepts,
    to_names,
    to_predicate,
)
from penstock.api.handle import TableMethods
from penstock.api.lazy import is_spark_object, lazy_spark
from penstock.api.rows import Rows, arrow_rows, as_table
from penstock.catalog.checks.features import check_writable
from penstock.errors import InvalidFilterError, InvalidOptionError
from penstock.table.actions.changes import open_committer
from penstock.table.assumptions import at_latest_schema
from penstock.table.dml.by_filter import DeleteRows, UpdateRows
from penstock.table.dml.merge import MatchedClause, MergeClauses, MergeInsert, MergeRows
from penstock.table.dml.run import run_change
from penstock.table.dml.values import NewValues
from penstock.table.read.travel import POSITION_KEYS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from penstock.predicate.tree import Predicate
    from penstock.table.commit.committer import TableCommitter
    from penstock.table.dml.change import ChangeResult
    from penstock.table.ref import TableRef

T = TypeVar("T")
Clauses: TypeAlias = "T | Sequence[T]"


class RowChanges(TableMethods):
    """DELETE, UPDATE and MERGE, by copy-on-write or by deletion vectors."""

    @accepts(dry_run=FLAG)
    def delete(self, where: Filter, *, dry_run: bool = False) -> ChangeResult:
        """Delete the rows for which a condition is true, in one commit.

        Files that contain such rows are replaced by files without them, in the same bucket and at the same position in
        its order; all other files stay. In a table with ``deletion-vectors.enabled`` they get deletion vectors instead,
        and only files without remaining rows are removed. Rows that others append concurrently are either deleted too,
        if the condition is true for them, or appended after the deletion.

        Args:
            where: such as ``"dt = '2026-01-01' AND price > 10"``, ``penstock.col("price") > 10``, or an expression of
                ``pyarrow.compute``: ``pc.field("price") > 10``.
            dry_run: only return what would change.

        Returns:
            The snapshot, of kind OVERWRITE, and the files with deleted rows; no snapshot if no row matched.

        Raises:
            InvalidFilterError: the condition does not match the table.
            CommitConflictError: others committed at every attempt; nothing was changed.
            CommitUnknownError: the storage did not answer whether the commit succeeded.
            UnsupportedFeatureError: the table is read-only for Penstock.
        """
        change = DeleteRows(predicate=self._condition(where))
        with self._handle.progress("deleting from", "read"):
            return run_change(self._change_committer(), lambda _: change, dry_run=dry_run)

    @accepts(set=MAPPING, dry_run=FLAG)
    def update(self, set: Mapping[str, object], where: Filter, *, dry_run: bool = False) -> ChangeResult:
        """Set columns of the rows for which a condition is true, in one commit.

        Rows keep their position in their bucket; a row whose partition or bucket key changes is appended to its new
        bucket. In a table with ``deletion-vectors.enabled`` all updated rows are appended.

        Args:
            set: column to value: a constant, or a ``pyarrow.compute`` expression over the row before the change, such
                as ``{"price": pc.field("price") * 2}``.
            where: as for ``delete``.
            dry_run: only return what would change.

        Raises:
            NotFoundError: no such column.
            SchemaMismatchError: a column cannot hold a value; nothing was changed.
            TableStoreError: as ``delete``.
        """
        condition = self._condition(where)

        def new_change(ref: TableRef) -> UpdateRows:
            return UpdateRows(predicate=condition, values=NewValues(ref, set))

        with self._handle.progress("updating", "read"):
            return run_change(self._change_committer(), new_change, dry_run=dry_run)

    @accepts(on=TEXT_MAPPING | NAMES, dry_run=FLAG)
    def merge(
        self,
        source: Rows,
        on: Mapping[str, str] | Names,
        *,
        matched: Clauses[MatchedClause] = (),
        not_matched: Clauses[MergeInsert] = (),
        not_matched_by_source: Clauses[MatchedClause] = (),
        dry_run: bool = False,
    ) -> ChangeResult:
        """Update, delete and insert rows by matching keys with the rows of a source, in one commit.

        Files without a row to change stay; updated rows keep their position in their bucket, or are appended in a table
        with ``deletion-vectors.enabled``; new rows are appended. If several clauses apply to a row, the first whose
        condition is true takes effect.

        Args:
            source: as for ``append``; it is held in memory, even if it is a Spark DataFrame.
            on: the columns by which rows match, in table and source, or ``{"id": "source_id"}`` if the names differ.
                NULL matches nothing.
            matched: clauses for rows with a match in the source: ``MergeUpdate()`` or ``MergeDelete()``, or several.
            not_matched: clauses for source rows without a match in the table: ``MergeInsert()``.
            not_matched_by_source: clauses for rows without a match in the source; all files are read then.
            dry_run: only return what would change.

        Raises:
            InvalidOptionError: a row matches several rows of the source; nothing was changed.
            NotFoundError, SchemaMismatchError: columns do not match.
            TableStoreError: as ``delete``.
        """
        committer = self._change_committer()
        if is_spark_object(source):
            rows = lazy_spark.to_arrow(cast("DataFrame", source))
        else:
            rows = as_table(arrow_rows(source, committer.ref))
        keys = dict(on) if isinstance(on, Mapping) else {name: name for name in to_names(on) or ()}
        clauses = MergeClauses(
            matched=_several(matched),
            not_matched=_several(not_matched),
            not_matched_by_source=_several(not_matched_by_source),
        )
        with self._handle.progress("merging into", "read"):
            return run_change(committer, lambda ref: MergeRows(ref, rows, keys, clauses), dry_run=dry_run)

    def _change_committer(self) -> TableCommitter:
        handle = self._handle.ref
        check_writable(handle)
        position = next(
            (key for key in POSITION_KEYS[1:] if key in handle.options.keys() - handle.schema.option_map), None
        )
        if position is not None:
            raise InvalidOptionError(
                f"table {handle.name}: rows of the latest snapshot are changed, not those that '{position}' selects: "
                "change them by a handle without time travel"
            )
        ref = at_latest_schema(self._handle.ref, self._handle.checked_store)
        return open_committer(ref, self._handle.store)

    def _condition(self, where: Filter) -> Predicate:
        condition = to_predicate(where, self._handle.name)
        if condition is None:
            raise InvalidFilterError(f"table {self._handle.name}: say which rows; truncate removes all of them")
        return condition


def _several(clauses: Clauses[T]) -> tuple[T, ...]:
    return tuple(clauses) if isinstance(clauses, list | tuple) else (cast("T", clauses),)
