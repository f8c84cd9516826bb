"""Run cases: create the tables, read them with every reader, and report differences."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from tests.deletion_vectors import delete_by_vectors
from tests.support.differential.case import (
    Add,
    Append,
    Compact,
    Delete,
    Drop,
    DropPartitions,
    First,
    FuzzLeaf,
    Index,
    Insert,
    Read,
    ReadOld,
    Reformat,
    Refuse,
    Remove,
    Rename,
    Update,
    Widen,
)
from tests.support.differential.history import History, Query
from tests.support.differential.insert import insert_differs
from tests.support.differential.kinds import arrow_of
from tests.support.differential.model import FuzzTable, first_places
from tests.support.differential.others import exclusion_of
from tests.support.differential.rows import plain_values, signless, texts_of_rows, texts_of_table
from tests.support.differential.spark_sql import (
    CATALOG,
    collect_together,
    count_rows,
    select_rows,
    to_literal,
)

from penstock.catalog.changes import AddColumn, DropColumn, RemoveOption, RenameColumn, SetOption, UpdateColumnType
from penstock.errors import TableStoreError
from penstock.table.read.batches import TableReader
from penstock.table.read.prune import ColumnStatsReader
from penstock.table.read.split import plan_splits
from penstock.table.read.top import Top, files_of_top

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tests.support.differential.case import Case, FuzzColumn, Row, Step
    from tests.support.differential.others import OtherReader

    from penstock import Catalog, Table

# By the ORC reader of Java, also in Spark where it can.
_WITH_ORC_OF_JAVA: Final = frozenset({"catalog", "to_spark", "to_spark().where", "java"})


# Of a change by SQL that Spark cannot make.
_REFUSED: Final = "through Spark's catalog does not work"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A difference between a reader and the model.

    Attributes:
        case: name of the case.
        entry_point: function or reader with the difference.
        what: the table and the filter.
    """

    case: str
    entry_point: str
    what: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.case}, {self.entry_point}: {self.what}\n  expected {self.expected}\n  found    {self.found}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Readers:
    """Readers besides ``to_arrow``.

    Attributes:
        spark: a session in which ``format("penstock")`` is registered; None to read without Spark.
        catalog: a session with the warehouse attached as ``penstock``; None to skip its SQL.
        tally: number of reads by reader, and of skipped reads by reason.
        inserted: pairs of types whose values have been inserted; they are the same in all cases, so once is enough.
    """

    spark: Any = None
    catalog: Any = None
    others: tuple[OtherReader, ...] = ()
    tally: Counter[str] = field(default_factory=Counter)
    inserted: set[int] = field(default_factory=set)


class _Asked(NamedTuple):
    """A DataFrame to compare.

    Attributes:
        frame: creates it.
    """

    entry_point: str
    query: Query
    frame: Callable[[], Any]


def _rows(asked: _Asked, part: pa.Table | None) -> pa.Table:
    """Return the rows from a shared job, or else from a separate job."""
    found: pa.Table = asked.frame().toArrow() if part is None else part
    return found


def _where(table: Table, spark: Any, condition: str, options: dict[str, str]) -> Any:
    return table.to_spark(spark, options=options).where(condition)


def _python_value(value: Any, column: FuzzColumn) -> Any:
    """Return a value as users give it."""
    return pa.scalar(value, arrow_of(column.sql)).as_py()


def _files_of_first(table: Table, name: str, order: First) -> pa.Table:
    """Return the first rows that the files have which statistics do not exclude."""
    query = table._handle.plan(None, None, {}, with_vectors=True)
    fields = [field for field in table.schema.fields if field.name == name]
    top = Top(column=name, descends=order.descends, nulls_first=order.nulls_first, rows=order.count)
    splits = files_of_top(plan_splits(query.ref, query.plan), ColumnStatsReader(table._store.load_schema, fields), top)
    reader = TableReader(query.ref, table._store, [name])
    found = pa.Table.from_batches([batch for split in splits for batch in reader.read_split(split)], reader.schema)
    return found.take(pa.array(first_places(plain_values(found[name]), order), pa.int64()))


def run_case(catalog: Catalog, case: Case, readers: Readers | None = None) -> list[Finding]:
    """Run one case in database ``fuzz``."""
    return list(_Run(catalog, case, readers or Readers()).findings())


class _Run:
    def __init__(self, catalog: Catalog, case: Case, readers: Readers) -> None:
        self._catalog = catalog
        self._case = case
        self._readers = readers
        self._name = f"fuzz.{case.name}"
        self._model = FuzzTable([case.file_format], list(case.columns), partition_by=case.partition_by)
        self._is_deleted = False
        self._history = History(has_vectors="deletion-vectors.enabled" in case.options)

    def findings(self) -> Iterator[Finding]:
        case = self._case
        columns = ", ".join(f"{column.quoted} {column.sql}" for column in case.columns)
        options = {"file.format": case.file_format, **case.options}
        table = self._catalog.create_table(self._name, columns, partition_by=case.partition_by, options=options)
        old = table
        for kind, steps in groupby(case.steps, lambda step: isinstance(step, Read | First)):
            if kind:
                yield from self._read(table, list(steps))
                continue
            for step in steps:
                match step:
                    case Refuse(row=row):
                        yield from self._refuse(table, row)
                    case ReadOld():
                        query = Query(self._model, None, {})
                        yield from self._compare_rows(
                            "to_arrow of an older handle", query, old.to_arrow, may_refuse=True
                        )
                    case Insert(pair=pair):
                        yield from self._insert(pair)
                    case Read() | First():
                        pass  # in their own group
                    case Delete(every=every):
                        self._delete(table, every)
                        table = self._catalog.load_table(self._name)
                    case Append() | Remove() | Update() | DropPartitions() | Compact():
                        self._change_rows(table, step)
                        self._history.note(table, self._model, step.rows if isinstance(step, Append) else None)
                    case _:
                        self._change(step)
                        old, table = table, self._catalog.load_table(self._name)

    def _change_rows(self, table: Table, step: Append | Remove | Update | DropPartitions | Compact) -> None:
        model = self._model
        match step:
            case Append(rows=rows, by_spark=by_spark):
                self._append(table, rows, by_spark=by_spark)
            case Remove(leaf=leaf, by_sql=by_sql):
                query = Query(model, leaf, {})
                change = f"DELETE FROM {CATALOG}.{self._name}" if by_sql else None  # noqa: S608 - our own names
                if self._changed(change, query, partial(table.delete, str(query.text))):
                    model.remove(leaf)
            case Update(column=key, value=value, leaf=leaf, text=text):
                query, column = Query(model, leaf, {}), model.column(key)
                literal = "" if text is None else to_literal(text, column.sql)
                change = f"UPDATE {CATALOG}.{self._name} SET {column.quoted} = {literal}" if literal else None  # noqa: S608
                values = {column.name: _python_value(value, column)}
                if self._changed(change, query, partial(table.update, values, str(query.text))):
                    model.update(key, value, leaf)
            case DropPartitions():
                self._drop(table, step)
                model.drop(step.values)
            case Compact():
                table.compact(options={"compaction.force-rewrite-all-files": "true"})

    def _drop(self, table: Table, step: DropPartitions) -> None:
        columns = [self._model.column(key) for key in step.values]
        # Spark takes no part of the partition columns.
        is_whole = len(step.texts) == len(self._model.partition_by)
        if is_whole and (spark := self._readers.catalog) is not None:
            literals = (to_literal(text, each.sql) for text, each in zip(step.texts, columns, strict=True))
            spec = ", ".join(f"{each.quoted} = {literal}" for each, literal in zip(columns, literals, strict=True))
            self._readers.tally["partitions dropped by SQL"] += 1
            spark.sql(f"ALTER TABLE {CATALOG}.{self._name} DROP IF EXISTS PARTITION ({spec})")
        else:
            table.drop_partitions({each.name: _python_value(step.values[each.key], each) for each in columns})

    def _changed(self, change: str | None, query: Query, by_table: Callable[[], object]) -> bool:
        """Change rows by Spark SQL, if there is a session and it makes the change, else by a method of the table.

        Returns:
            Whether rows are changed: filters of methods do not have all patterns.
        """
        if change is not None and self._changed_by_sql(change, query):
            return True
        if query.is_filter:
            by_table()
        return query.is_filter

    def _changed_by_sql(self, change: str, query: Query) -> bool:
        spark, condition = self._readers.catalog, query.condition
        if spark is None or condition is None:
            return False
        try:
            spark.sql(f"{change} WHERE {condition}")
        except Exception as error:
            if _REFUSED not in str(error):
                raise
            self._readers.tally["changes by SQL that are refused"] += 1
            return False
        self._readers.tally["changes by SQL"] += 1
        return True

    def _append(self, table: Table, rows: Iterable[Row], *, by_spark: bool = False) -> None:
        is_of_spark = not any(column.sql.startswith("TIME(") for column in self._model.columns)
        if by_spark and is_of_spark and (spark := self._readers.catalog) is not None:
            self._readers.tally["appends by Spark"] += 1
            spark.createDataFrame(self._arrow(rows)).writeTo(f"{CATALOG}.{self._name}").append()
        else:
            table.append(self._arrow(rows))
        self._model.rows += rows

    def _arrow(self, rows: Iterable[Row]) -> pa.Table:
        schema = self._model.arrow_schema
        columns = [column.key for column in self._model.columns]
        arrays = [
            pa.array([row.get(key) for row in rows], field.type) for key, field in zip(columns, schema, strict=True)
        ]
        return pa.table(arrays, schema=schema)

    def _refuse(self, table: Table, row: Row) -> Iterator[Finding]:
        """Append a row that must be refused; yield a finding if it is written."""
        try:
            self._append(table, [row])
        except TableStoreError:
            return
        yield self._finding("append", f"{self._model}: {row}", "refused", "written")

    def _change(self, step: Add | Drop | Rename | Widen | Reformat | Index) -> None:
        model = self._model
        match step:
            case Add(column=column):
                self._catalog.alter_table(self._name, AddColumn(column=column.name, type=column.sql))
                model.columns.append(column)
            case Drop(column=key):
                self._catalog.alter_table(self._name, DropColumn(column=model.column(key).name))
                model.columns.remove(model.column(key))
            case Rename(column=key, name=name):
                self._catalog.alter_table(self._name, RenameColumn(column=model.column(key).name, new_name=name))
                model.change(key, name=name)
            case Reformat(file_format=file_format):
                self._catalog.alter_table(self._name, SetOption(key="file.format", value=file_format))
                model.formats.append(file_format)
            case Index(is_on=is_on):
                model.is_indexed = True
                option, name = "file-index.bitmap.columns", model.column(0).name
                change = SetOption(key=option, value=name) if is_on else RemoveOption(key=option)
                size = SetOption(key="file-index.in-manifest-threshold", value="1 mb")
                self._catalog.alter_table(self._name, change, size).maintenance.rewrite_file_index()
            case Widen(column=key, sql=sql):
                self._catalog.alter_table(self._name, UpdateColumnType(column=model.column(key).name, type=sql))
                model.change(key, sql=sql)

    def _delete(self, table: Table, every: int) -> None:
        deleted: dict[str, list[int]] = {}
        gone: set[int] = set()
        for file in table.files().to_pylist():
            path, rows = file["file_path"], range(0, file["record_count"], every)
            ids: list[Any] = pq.ParquetFile(path).read([self._model.column(0).name])[0].to_pylist()
            deleted[path.rpartition("/")[2]] = list(rows)
            gone.update(ids[row] for row in rows)
        delete_by_vectors(table, deleted)
        self._model.rows = [row for row in self._model.rows if row[0] not in gone]
        self._history.note_vectors(self._model.rows)
        self._is_deleted = True

    def _first(self, table: Table, order: First) -> Iterator[Finding]:
        """Compare the first rows of an order, read from the files that can have them."""
        name, quoted = self._model.column(order.column).name, self._model.column(order.column).quoted
        ways = {"files of the first rows": lambda: _files_of_first(table, name, order)}
        if (spark := self._readers.catalog) is not None:
            text = f"SELECT {quoted} FROM {CATALOG}.{self._name} ORDER BY {quoted} {order.sql}"  # noqa: S608 - our own names
            ways["first rows by catalog"] = lambda: spark.sql(text).toArrow()
        for entry_point, read in ways.items():
            yield from self._compare(entry_point, f"{self._model} {order}", self._model.first(order), read)

    def _insert(self, pair: int) -> Iterator[Finding]:
        if self._readers.spark is not None and pair not in self._readers.inserted:
            self._readers.inserted.add(pair)
            wrong = insert_differs(self._catalog, pair, self._name, self._readers.spark)
            if wrong is not None:
                yield self._finding("INSERT", wrong, "the same values, or refused", "others")

    def _read(self, table: Table, steps: Sequence[Step]) -> Iterator[Finding]:
        queries = [
            query
            for step in steps
            if isinstance(step, Read) and (query := self._history.query(table, self._model, step))
        ]
        for order in (step for step in steps if isinstance(step, First)):
            yield from self._first(table, order)
        for query in queries:
            if query.is_filter:
                read = partial(table.to_arrow, filter=query.text, options=query.options)
                yield from self._compare_rows("to_arrow", query, read)
            for other in () if self._is_deleted else self._readers.others:
                yield from self._read_other(other, table, query)
        # Only rows of the same columns are read in one job.
        for _, alike in groupby(queries, lambda query: query.table.columns):
            asked = [each for query in alike for each in (*self._of_spark(table, query), *self._of_catalog(query))]
            if asked:
                yield from self._read_frames(asked)
        if self._readers.catalog is not None:
            yield from self._count([each for each in queries if not each.options and each.is_of_spark])

    def _read_frames(self, asked: Sequence[_Asked]) -> Iterator[Finding]:
        """Compare DataFrames; all in one job, and one after the other if that fails."""
        try:
            parts: list[pa.Table | None] = list(collect_together([each.frame() for each in asked]))
        except Exception:  # noqa: BLE001 - the reads one by one say which of them it was
            self._readers.tally["jobs of several reads that failed"] += 1
            parts = [None] * len(asked)
        for each, part in zip(asked, parts, strict=True):
            yield from self._compare_rows(each.entry_point, each.query, partial(_rows, each, part))

    def _of_catalog(self, query: Query) -> Iterator[_Asked]:
        spark = self._readers.catalog
        if spark is None:
            return
        if not query.is_of_spark:
            self._readers.tally["catalog not asked: a number that fits no DOUBLE"] += 1
            return
        yield _Asked("catalog", query, partial(select_rows, spark, self._name, query.condition, query.options))

    def _count(self, queries: Sequence[Query]) -> Iterator[Finding]:
        conditions = [query.condition for query in queries]
        expected = [len(query.table.expected(query.leaf)) for query in queries]
        try:
            found: object = count_rows(self._readers.catalog, self._name, conditions)
        except Exception as error:  # noqa: BLE001 - whatever an engine raises is a finding
            found = f"{type(error).__name__}: {str(error)[:300]}"
        if found != expected:
            yield self._finding("catalog count", f"{self._model} filters {conditions}", f"{expected}", f"{found}")

    def _read_other(self, other: OtherReader, table: Table, query: Query) -> Iterator[Finding]:
        leaf = query.leaf
        if leaf is not None and not isinstance(leaf, FuzzLeaf):
            self._readers.tally[f"{other.name} not asked: conditions that are joined"] += 1
            return
        excluded = exclusion_of(other.name, query.table, leaf, query.options)
        if excluded is not None:
            self._readers.tally[f"{other.name} not asked: {excluded.reason}"] += 1
            return
        condition = None if leaf is None else (query.table.column(leaf.column), leaf)
        read = partial(other.read, table.location, query.table.arrow_schema, condition, query.options)
        yield from self._compare_rows(other.name, query, read)

    def _of_spark(self, table: Table, query: Query) -> Iterator[_Asked]:
        spark, text, leaf = self._readers.spark, query.text, query.leaf
        if spark is None:
            return
        if query.is_filter:
            yield _Asked("to_spark", query, partial(table.to_spark, spark, filter=text, options=query.options))
            reader = spark.read.format("penstock").options(**query.options)
            if text is not None:
                reader = reader.option("filter", text)
            yield _Asked("format", query, partial(reader.load, table.location))
        # Only literals with the same meaning in Spark: numbers without an exponent or a point.
        is_float = isinstance(leaf, FuzzLeaf) and query.table.column(leaf.column).sql in {"FLOAT", "DOUBLE"}
        conditions = [query.condition]
        if isinstance(leaf, FuzzLeaf) and is_float and leaf.operator in {">", ">=", "="} and leaf.texts[0] in "015":
            conditions.append(text)
        for each in filter(None, conditions):
            frame = partial(_where, table, spark, each, query.options)
            yield _Asked("to_spark().where", query, frame)

    def _compare_rows(
        self, entry_point: str, query: Query, read: Callable[[], pa.Table | None], *, may_refuse: bool = False
    ) -> Iterator[Finding]:
        expected = query.table.expected(query.leaf)
        kind = f"{entry_point} {query.kind}"
        yield from self._compare(entry_point, f"{query}", expected, read, kind=kind, may_refuse=may_refuse)

    def _compare(
        self,
        entry_point: str,
        what: str,
        rows: Iterable[dict[str, Any]],
        read: Callable[[], pa.Table | None],
        *,
        kind: str | None = None,
        may_refuse: bool = False,
    ) -> Iterator[Finding]:
        """Compare rows with those of a reader.

        Args:
            kind: what is counted; None for the reader.
            may_refuse: whether an error of Penstock is right, too.
        """
        expected = texts_of_rows(rows)
        try:
            table = read()
            found = None if table is None else texts_of_table(table)
        except TableStoreError as error:
            if may_refuse:
                return
            found = [f"{type(error).__name__}: {str(error)[:300]}"]
        except Exception as error:  # noqa: BLE001 - whatever an engine raises is a finding
            found = [f"{type(error).__name__}: {str(error)[:300]}"]
        if found is None:
            return
        self._readers.tally[kind or entry_point] += 1
        if found != expected and self._loses_signs(entry_point) and signless(found) == signless(expected):
            self._readers.tally[
                "signs of zeros lost by the ORC reader of Java, for which 0.0 and -0.0 are one value"
            ] += 1
            return
        if found != expected:
            missing = [row for row in expected if row not in found]
            extra = [row for row in found if row not in expected]
            yield self._finding(
                entry_point, what, f"{len(expected)} rows, with {missing}", f"{len(found)}, with {extra}"
            )

    def _loses_signs(self, entry_point: str) -> bool:
        return "orc" in self._model.formats and entry_point in _WITH_ORC_OF_JAVA

    def _finding(self, entry_point: str, what: str, expected: str, found: str) -> Finding:
        return Finding(case=self._case.name, entry_point=entry_point, what=what, expected=expected, found=found)
