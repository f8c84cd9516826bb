"""Random histories of a table with one rewrite after another: what a rewrite is not meant to change must stay equal.

Before each rewrite the table is copied. What others do meanwhile is also done to the copy, and the cells of the copy,
with the effect that the operation is meant to have, are compared with those of the table.
"""

from __future__ import annotations

import datetime as dt
import itertools
import random
import threading
import warnings
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from tests.deletion_vectors import delete_keys

import penstock
from penstock import (
    CommitConflictError,
    InvalidOptionError,
    MergeInsert,
    MergeUpdate,
    SchemaMismatchError,
    TableStoreError,
)
from penstock.catalog.changes import (
    AddColumn,
    DropColumn,
    RenameColumn,
    UpdateColumnDefault,
    UpdateColumnNullability,
    UpdateColumnType,
)
from penstock.format.types.data_types import RowType, with_nullability
from penstock.format.types.text import format_sql_type
from penstock.table.actions.changes import commit_append, open_committer
from penstock.table.write.writer import TableWriter, write_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock import Catalog, Table
    from penstock.catalog.changes import SchemaChange
    from penstock.format.types.data_types import DataField, DataType

Row = dict[str, Any]

FIXED: Final = ("k", "u", "p")
"""Columns that are never altered: the key, the column that operations set, the partition."""
_CHANGES: Final = ("add", "add", "drop", "rename", "type", "not null", "not null", "default", "default", "nested")
_ADDED: Final = AddColumn(column=("w",), type="INT")
FOREIGN: Final = {"some-engine.key": "1", "file-index.bloom-filter.columns": "k", "clustering.columns": "k"}
_FIRST_OF_OTHERS: Final = 1_000_000
_FIRST_INSERTED: Final = 2_000_000

_TEXT = "abcdefghijk"
_NOON = dt.datetime(2020, 1, 1, 12)  # noqa: DTZ001 - a wall clock
# SQL type to values that fit, a default, and types that the column may get later.
TYPES: Final[dict[str, tuple[Callable[[random.Random], Any], str | None, tuple[str, ...]]]] = {
    "INT": (lambda r: r.randrange(-99, 99), "7", ("BIGINT", "DOUBLE", "STRING")),
    "BIGINT": (lambda r: r.randrange(-99, 99), "7", ("DECIMAL(30, 2)", "STRING")),
    "STRING": (lambda r: r.choice(("", "x", "longer text", "ü")), "none", ()),
    "VARCHAR(8)": (lambda r: _TEXT[: r.randrange(9)], "none", ("VARCHAR(20)", "STRING")),
    "CHAR(4)": (lambda r: _TEXT[: r.randrange(5)], "none", ("CHAR(9)", "STRING")),
    "VARBINARY(3)": (lambda r: bytes(r.randrange(4)), None, ("VARBINARY(9)", "BYTES")),
    "DECIMAL(6, 2)": (lambda r: Decimal(r.randrange(-999, 999)) / 100, "1.50", ("DECIMAL(9, 2)", "STRING")),
    "FLOAT": (lambda r: r.choice((0.5, -2.25, float("nan"))), "1.5", ("DOUBLE",)),
    "BOOLEAN": (lambda r: r.random() < 0.5, "true", ("STRING",)),
    "DATE": (lambda r: dt.date(2020, 1, 1 + r.randrange(28)), "2000-01-02", ("STRING",)),
    "TIMESTAMP(3)": (lambda r: _NOON + dt.timedelta(milliseconds=r.randrange(999)), "2000-01-02 03:04:05", ()),
    "TIMESTAMP(6)": (lambda r: _NOON + dt.timedelta(microseconds=r.randrange(999)), None, ()),
    "ROW<a INT, b STRING>": (lambda r: {"a": r.choice((None, 1)), "b": r.choice((None, "y"))}, None, ()),
    "ARRAY<INT>": (lambda r: [r.choice((None, 1, 2)) for _ in range(r.randrange(3))], None, ()),
    "MAP<STRING, INT>": (lambda r: {x: r.choice((None, 1)) for x in "ab"[: r.randrange(3)]}, None, ()),
}
_LATER: Final[dict[str, Callable[[random.Random], Any]]] = {
    **{name: make for name, (make, _, _) in TYPES.items()},
    "DOUBLE": lambda r: r.randrange(99) + 0.5,
    "DECIMAL(30, 2)": lambda r: Decimal(r.randrange(99)),
    "DECIMAL(9, 2)": lambda r: Decimal(r.randrange(99)),
    "VARCHAR(20)": lambda r: _TEXT[: r.randrange(12)],
    "CHAR(9)": lambda r: _TEXT[: r.randrange(10)],
    "VARBINARY(9)": lambda r: bytes(r.randrange(10)),
    "BYTES": lambda r: bytes(r.randrange(10)),
}


@dataclass(frozen=True)
class Rewrite:
    """An operation under test.

    Attributes:
        run: called with the table, its world, and the keys (first, last) of the rows that it is meant to change.
        effect: changes the rows in place as the operation is meant to do.
        needs: whether it can be done to the table.
        checks_whole_rows: whether rows to change may be refused because another of their columns breaks a rule.
        is_alone: whether it would take back what others do meanwhile.
    """

    name: str
    run: Callable[[Table, World, tuple[int, int]], object]
    effect: Callable[[list[Row], tuple[int, int]], None] = lambda _rows, _keys: None
    needs: Callable[[World], bool] = lambda _world: True
    checks_whole_rows: bool = False
    is_alone: bool = False

    def changes(self, key: int, keys: tuple[int, int]) -> bool:
        """Whether it is meant to change the row with a key."""
        rows: list[Row] = [{"k": key, "u": None, "p": None}]
        self.effect(rows, keys)
        return rows != [{"k": key, "u": None, "p": None}]


class World:
    """A table and the random choices of its history.

    Args:
        catalog: for a name; each name is another warehouse.
        copy: copies a warehouse to another name.
        storage: class whose calls are counted, to let others act in the middle of an operation.
        buckets: numbers of buckets to choose from.
        deletes: whether other engines delete rows by deletion vectors.
        tracked: whether the table tracks its rows; then it has no buckets.
    """

    def __init__(  # noqa: PLR0913 - choices, by name
        self,
        seed: int,
        catalog: Callable[[str], Catalog],
        copy: Callable[[str, str], None],
        storage: type,
        *,
        buckets: tuple[int, ...] = (-1, -1, 1, 2),
        deletes: bool = False,
        tracked: bool = False,
    ) -> None:
        self.seed, self.random = seed, random.Random(seed)  # noqa: S311 - not for secrets
        self._catalog, self._copy, self._storage = catalog, copy, storage
        self._copies = itertools.count()
        self.name = f"rewrites-{seed}"
        self.catalog = catalog(self.name)
        self.catalog.create_database("d")
        self.next_key = 0
        self.next_other = _FIRST_OF_OTHERS
        self.next_inserted = _FIRST_INSERTED
        self.column_numbers: Iterator[int] = itertools.count()
        self.refused = 0
        self.spark: Any = None
        self.spark_name = ""
        self.log: list[str] = []
        self.deletes, self.tracked = deletes, tracked
        r = self.random
        self.bucket = -1 if tracked else r.choice(buckets)
        options = {
            "bucket": str(self.bucket),
            "file.format": r.choice(("parquet", "parquet", "orc", "avro")),
            "alter-column-null-to-not-null.disabled": "false",
            "write-only": "true",
            **({"bucket-key": "k"} if self.bucket > 0 else {}),
            **(FOREIGN if r.random() < 0.3 else {}),
            **({"deletion-vectors.enabled": "true"} if deletes else {}),
            **({"row-tracking.enabled": "true"} if tracked else {}),
        }
        columns = "k BIGINT, u INT, p STRING"
        chosen = r.sample(sorted(TYPES), r.randrange(1, 5))
        for name in chosen:
            columns += f", c{next(self.column_numbers)} {name}"
        parts = ["p"] if r.random() < 0.4 else []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", penstock.OptionWarning)
            self.table = self.catalog.create_table("d.t", columns, partition_by=parts, options=options)
        self.log.append(f"create {columns} {parts} {options}")

    def step(self, rewrites: tuple[Rewrite, ...]) -> None:
        """Append and alter a little, then rewrite once and compare."""
        for _ in range(self.random.randrange(1, 4)):
            self._append(self.fresh(), self.random, self._own_keys())
            if self.random.random() < 0.6:
                self._alter(self.catalog, self.random)
        if self.deletes and self.random.random() < 0.7:
            self._delete(self.catalog, self.random)
        self._rewrite(self.random.choice([each for each in rewrites if each.needs(self)]))

    def fresh(self) -> Table:
        """Return the table with its latest schema."""
        return self.catalog.load_table("d.t")

    def _own_keys(self) -> list[int]:
        keys = [self.next_key + number for number in range(self.random.randrange(1, 5))]
        self.next_key += len(keys)
        return keys

    def _append(self, table: Table, r: random.Random, keys: list[int]) -> None:
        """Append rows without checks and defaults, as other engines do, of values that may be longer than declared."""
        rows = [{"k": key, "u": r.choice((None, 0, 1)), "p": r.choice("ab")} for key in keys]
        for column in table.schema.fields:
            if column.name in FIXED:
                continue
            text = sql_type(column.type)
            for row in rows:
                is_null = column.type.nullable and r.random() < 0.4
                row[column.name] = None if is_null else value_of(text, r)
        batch = pa.RecordBatch.from_pylist(rows, schema=table.arrow_schema)
        with TableWriter(table._ref) as writer:
            writer.write(batch)
            commit_append(open_committer(table._ref), writer.prepare_commit())
        self.log.append(f"append {rows}")

    def _delete(self, catalog: Catalog, r: random.Random) -> None:
        """Delete rows by deletion vectors, as Paimon does."""
        keys = {r.randrange(max(self.next_key, 1)) for _ in range(r.randrange(1, 4))}
        delete_keys(catalog.load_table("d.t"), "k", keys)
        self.log.append(f"delete by vectors {keys}")

    def _alter(self, catalog: Catalog, r: random.Random) -> None:
        columns = [each for each in catalog.load_table("d.t").schema.fields if each.name not in FIXED]
        changes = self._change(r.choice(_CHANGES), r.choice(columns), r) if columns else [_ADDED]
        with suppress(TableStoreError):  # not every change is possible
            catalog.alter_table("d.t", *changes)
            self.log.append(f"alter {changes}")

    def _change(self, kind: str, column: DataField, r: random.Random) -> list[SchemaChange]:  # noqa: PLR0911 - a table
        path, new = (column.name,), r.choice(("w", f"c{next(self.column_numbers)}"))
        _, default, wider = TYPES.get(sql_type(column.type), (None, None, ()))
        match kind:
            case "drop":
                return [DropColumn(column=path)]
            case "rename":
                return [RenameColumn(column=path, new_name=new)]
            case "type":
                text = r.choice(wider or ("INT",))
                return [UpdateColumnDefault(column=path, default=None), UpdateColumnType(column=path, type=text)]
            case "not null":
                inner = isinstance(column.type, RowType) and r.random() < 0.5
                return [UpdateColumnNullability(column=(*path, "a") if inner else path, nullable=r.random() < 0.2)]
            case "default":
                return [UpdateColumnDefault(column=path, default=default)]
            case _:
                if kind == "nested":
                    return [AddColumn(column=(*path, new), type="INT")]
                text = r.choice(sorted(TYPES))
                default = TYPES[text][1] if r.random() < 0.7 else None
                return [AddColumn(column=(new,), type=text), UpdateColumnDefault(column=(new,), default=default)]

    def _others(self, catalog: Catalog, seed: int) -> list[Callable[[], None]]:
        """Return what others do, equal for equal seeds: alter the table, and later append with what they loaded."""
        r = random.Random(seed)  # noqa: S311 - not for secrets
        loaded: list[Table] = []

        def alter() -> None:
            for _ in range(r.randrange(3)):
                self._alter(catalog, r)
            loaded.append(catalog.load_table("d.t"))

        def append() -> None:
            self._append(loaded[0], r, [self.next_other, self.next_other + 1])

        def delete() -> None:
            self._delete(catalog, r)

        return [alter, append, delete] if self.deletes else [alter, append]

    def _rewrite(self, rewrite: Rewrite) -> None:
        r = self.random
        has_others, seed = r.random() < 0.6 and not rewrite.is_alone, r.randrange(1 << 30)
        # Both at once, at one of the first calls: after the table was loaded, and before its files are planned.
        calls = [r.randrange(1, 12)] * 2 if r.random() < 0.5 else sorted(r.randrange(1, 40) for _ in range(2))
        calls += [max(calls[1], r.randrange(1, 40))] if self.deletes else []
        first = r.randrange(max(self.next_key, 1))
        keys = (first, first + r.randrange(4))
        table = self.fresh() if r.random() < 0.7 else self.table  # an older handle
        wanted, column_numbers = self._without_rewrite(seed if has_others else None)
        tracking = self._tracking()
        self.log.append(f"{rewrite.name} {keys} of schema {table._ref.schema.id}, others at {calls}: {has_others}")
        pending = self._others(self.catalog, seed) if has_others else []
        inserted, is_done = self.next_inserted, True
        try:
            with _interrupted(self._storage, calls, pending) as failures:
                rewrite.run(table, self, keys)
        except (CommitConflictError, SchemaMismatchError) as error:
            if not (has_others or (rewrite.checks_whole_rows and self._breaks_a_rule(wanted, keys))):
                raise AssertionError(self._text("refused", error)) from error
            self.refused, is_done = self.refused + 1, False
        except Exception as error:
            raise AssertionError(self._text("failed", error)) from error
        if failures:  # their rows had the number of buckets that rescaling has changed
            wanted = [row for row in wanted if row["k"] not in {self.next_other, self.next_other + 1}]
        self.column_numbers = column_numbers
        self.next_other += 2
        if is_done:
            rewrite.effect(wanted, keys)
        elif rewrite.name == "rescale":
            self.fresh().maintenance.rescale()  # what is left
        found = self._comparable(self.fresh().to_arrow().to_pylist(), inserted)
        wanted = self._comparable(wanted, inserted)
        if texts(found) != texts(wanted):
            lost = [text for text in texts(wanted) if text not in texts(found)]
            more = [text for text in texts(found) if text not in texts(wanted)]
            raise AssertionError(self._text("differs", f"wanted {lost[:4]}\nfound {more[:4]}"))
        self._compare_tracking(tracking, lambda key: is_done and rewrite.changes(key, keys))
        if r.random() < 0.3:
            self.table = self.fresh()

    def _tracking(self) -> dict[int, tuple[int, int]]:
        """Return the id and the sequence number of each row, by its key."""
        if not self.tracked:
            return {}
        rows = self.fresh().to_arrow(["k", "_ROW_ID", "_SEQUENCE_NUMBER"])
        numbers = list(zip(*(rows[name].to_pylist() for name in rows.column_names), strict=True))
        snapshot = self.fresh().latest_snapshot()
        assert snapshot is not None
        ids = [row_id for _, row_id, _ in numbers]
        assert len(set(ids)) == len(ids), self._text("two rows have one id", sorted(ids))
        assert max(ids, default=-1) < (snapshot.next_row_id or 0), self._text("ids are given twice", snapshot)
        assert all(0 < number <= snapshot.id for _, _, number in numbers), self._text("no snapshot", numbers)
        return {key: (row_id, number) for key, row_id, number in numbers}

    def _compare_tracking(self, before: dict[int, tuple[int, int]], is_changed: Callable[[int], bool]) -> None:
        after = self._tracking()
        for key in before.keys() & after.keys():
            (row_id, number), (now_id, now_number) = before[key], after[key]
            text = self._text("tracking", f"{key}: {before[key]} became {after[key]}")
            assert row_id == now_id, text
            assert now_number > number if is_changed(key) else now_number == number, text

    def _breaks_a_rule(self, rows: list[Row], keys: tuple[int, int]) -> bool:
        """Whether a row to change has a value that a new row must not have."""
        changed = pa.Table.from_pylist([row for row in rows if _hit(row, keys)], self.fresh().arrow_schema)
        try:
            write_arrow(self.fresh()._ref, changed)
        except SchemaMismatchError:
            return True
        return False

    def _comparable(self, rows: list[Row], inserted: int) -> list[Row]:
        """Return the rows that existed before; CHAR without blanks at the end, if ORC drops them or Spark adds them."""
        table = self.fresh()
        if table.options["file.format"] == "orc" or self.spark is not None:
            for field in table.schema.fields:
                if sql_type(field.type).startswith("CHAR"):
                    for row in rows:
                        row[field.name] = row[field.name] and row[field.name].rstrip(" ")
        return [row for row in rows if row["k"] < inserted]

    def _without_rewrite(self, seed: int | None) -> tuple[list[Row], Iterator[int]]:
        """Return the rows as they are after the actions of others alone, and the next numbers of columns."""
        name = f"{self.name}-{next(self._copies)}"
        self._copy(self.name, name)
        copied = self._catalog(name)
        after, log = next(self.column_numbers), self.log
        self.column_numbers, self.log = itertools.count(after), []
        for action in [] if seed is None else self._others(copied, seed):
            action()
        self.column_numbers, self.log = itertools.count(after), log
        return copied.load_table("d.t").to_arrow().to_pylist(), itertools.count(after + 50)

    def _text(self, what: str, detail: object) -> str:
        history = "\n".join(self.log[-12:])
        return f"seed {self.seed}: {what}: {type(detail).__name__} {detail}\n{history}"


@contextmanager
def _interrupted(storage: type, calls: list[int], pending: list[Callable[[], None]]) -> Iterator[list[TableStoreError]]:
    """Do what others do right before the chosen storage calls of the block, or at its end; yield their errors."""
    names = ("read", "list", "put_if_absent", "open_input", "open_output", "write")
    real = {name: getattr(storage, name) for name in names}
    count = itertools.count(1)
    failures: list[TableStoreError] = []
    acting = threading.Lock()

    def act(number: int) -> None:
        if not acting.acquire(blocking=False):
            return  # of another thread
        try:
            while pending and number >= calls[-len(pending)]:
                try:
                    pending.pop(0)()
                except InvalidOptionError as error:
                    failures.append(error)
        finally:
            acting.release()

    def counted(name: str) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **named: Any) -> Any:
            if pending and not acting.locked():
                act(next(count))
            return real[name](*arguments, **named)

        return wrapped

    for name in names:
        setattr(storage, name, counted(name))
    try:
        yield failures
    finally:
        for name in names:
            setattr(storage, name, real[name])
        act(calls[-1])


def sql_type(data_type: DataType) -> str:
    """Return the nullable type as SQL."""
    return format_sql_type(with_nullability(data_type, nullable=True))


def value_of(text: str, r: random.Random) -> Any:
    """Return a value; strings may be longer than the type says."""
    if text.startswith("ROW"):  # it may have got more fields
        return r.choice(({"a": None if "a INT," in text else 2, "b": "z"}, {"a": 1, "b": None}))
    if text in {"VARCHAR(8)", "CHAR(4)", "VARCHAR(20)"} and r.random() < 0.2:
        return _TEXT * 3
    return _LATER[text](r)


def texts(rows: list[Row]) -> list[str]:
    """Return the rows in a comparable form."""
    return sorted(repr(row) for row in rows)


def _hit(row: Row, keys: tuple[int, int]) -> bool:
    return bool(keys[0] <= row["k"] <= keys[1])


def remove_rows(rows: list[Row], keys: tuple[int, int]) -> None:
    rows[:] = [row for row in rows if not _hit(row, keys)]


def set_column(column: str, value: Any) -> Callable[[list[Row], tuple[int, int]], None]:
    def effect(rows: list[Row], keys: tuple[int, int]) -> None:
        for row in rows:
            if _hit(row, keys):
                row[column] = value

    return effect


def condition(keys: tuple[int, int]) -> str:
    """Return the condition for the rows that an operation is meant to change."""
    return f"k >= {keys[0]} AND k <= {keys[1]}"


def can_insert(world: World) -> bool:
    """Whether a row may have NULL in all altered columns."""
    return all(each.type.nullable for each in world.fresh().schema.fields)


def _merge(table: Table, world: World, keys: tuple[int, int]) -> object:
    new = [world.next_inserted, world.next_inserted + 1] if can_insert(world) else []
    world.next_inserted += 2
    rows = [{"k": key, "u": 8, "p": "a"} for key in (*range(keys[0], keys[1] + 1), *new)]
    schema = pa.schema([table.arrow_schema.field(name) for name in FIXED])
    known = set(table.to_arrow(["k"])["k"].to_pylist())
    source = pa.Table.from_pylist([row for row in rows if row["k"] in known or row["k"] in new], schema=schema)
    # Not those that others have deleted.
    inserts = MergeInsert(where=pc.field("source.k") >= _FIRST_INSERTED)
    return table.merge(source, ["k"], matched=MergeUpdate(set={"u": 8}), not_matched=inserts)


def _compact(options: dict[str, str], strategy: str = "full") -> Callable[[Table, World, tuple[int, int]], object]:
    return lambda table, _world, _keys: table.compact(strategy=strategy, options=options)


def _rescale(table: Table, world: World, _keys: tuple[int, int]) -> object:
    return table.maintenance.rescale(world.random.choice((1, 2, 3)))


def _restore(table: Table, _world: World, _keys: tuple[int, int]) -> object:
    """Delete all rows and go back."""
    before = table.latest_snapshot()
    assert before is not None
    table.delete("k >= 0")
    return table.versions.rollback_to_as_latest(snapshot_id=before.id)


def _sql(text: str) -> Callable[[Table, World, tuple[int, int]], object]:
    return lambda _table, world, keys: penstock.sql(None, world.catalog, f"{text} WHERE {condition(keys)}")


ALL_FILES: Final = {"compaction.force-rewrite-all-files": "true"}
REWRITES: Final = (
    Rewrite("compact", _compact({"compaction.min.file-num": "2"})),
    Rewrite("compact all files", _compact(ALL_FILES)),
    Rewrite("compact minor", _compact({"compaction.min.file-num": "2"}, "minor")),
    Rewrite("rescale", _rescale, needs=lambda world: world.bucket > 0),
    Rewrite("delete", lambda t, _, keys: t.delete(condition(keys)), remove_rows),
    Rewrite("update", lambda t, _, keys: t.update({"u": 7}, condition(keys)), set_column("u", 7)),
    Rewrite("move", lambda t, _, keys: t.update({"p": "b"}, condition(keys)), set_column("p", "b")),
    Rewrite("merge", _merge, set_column("u", 8)),
    Rewrite("SQL delete", _sql("DELETE FROM d.t"), remove_rows),
    Rewrite("SQL update", _sql("UPDATE d.t SET u = 9"), set_column("u", 9)),
    Rewrite("restore", _restore, needs=lambda world: not world.deletes, is_alone=True),
)


def _by_spark(text: str) -> Callable[[Table, World, tuple[int, int]], object]:
    """Return an operation in Spark SQL; ``{hits}`` is a condition that Penstock does not evaluate itself."""

    def run(_table: Table, world: World, keys: tuple[int, int]) -> object:
        hits = f"k + 0 >= {keys[0]} AND k + 0 <= {keys[1]}"
        source = f"(SELECT id AS k FROM range({keys[0]}, {keys[1] + 1}))"  # noqa: S608 - numbers
        new = world.next_inserted
        world.next_inserted += 1
        insert = f"(SELECT id AS k FROM range({keys[0]}, {keys[1] + 1}) UNION ALL SELECT {new}L)"  # noqa: S608 - numbers
        statement = text.format(t=f"{world.spark_name}.d.t", hits=hits, source=source, insert=insert)
        try:
            return world.spark.sql(statement).collect()
        except Exception as error:
            if any(words in str(error) for words in _CONFLICTS):
                raise CommitConflictError(str(error)) from error
            raise

    return run


_CONFLICTS: Final = (
    "others committed",
    "load the table again",
    "nothing was committed",
    "NOT NULL",
    "has a value of length",
)


def _sort(strategy: str) -> Callable[[Table, World, tuple[int, int]], object]:
    columns = ["k", "u"]
    return lambda table, world, _keys: table.compact(world.spark, order_strategy=strategy, order_by=columns)


SPARK_REWRITES: Final = (
    Rewrite("sort", _sort("order")),
    Rewrite("sort zorder", _sort("zorder")),
    Rewrite("sort hilbert", _sort("hilbert")),
    Rewrite("compact on executors", lambda t, world, _: t.compact(world.spark, options=ALL_FILES)),
    Rewrite("DELETE", _by_spark("DELETE FROM {t} WHERE {hits}"), remove_rows),
    Rewrite("DELETE by a query", _by_spark("DELETE FROM {t} WHERE k IN {source}"), remove_rows),
    Rewrite(
        "UPDATE",
        _by_spark("UPDATE {t} SET u = 7 WHERE {hits}"),
        set_column("u", 7),
        checks_whole_rows=True,
    ),
    Rewrite(
        "UPDATE of the partition",
        _by_spark("UPDATE {t} SET p = 'b' WHERE {hits}"),
        set_column("p", "b"),
        checks_whole_rows=True,
    ),
    Rewrite(
        "MERGE",
        _by_spark("MERGE INTO {t} t USING {source} s ON t.k = s.k WHEN MATCHED THEN UPDATE SET u = 8"),
        set_column("u", 8),
        checks_whole_rows=True,
    ),
    Rewrite(
        "MERGE that inserts",
        _by_spark(
            "MERGE INTO {t} t USING {insert} s ON t.k = s.k WHEN MATCHED THEN UPDATE SET u = 8 "
            "WHEN NOT MATCHED AND s.k >= 2000000 THEN INSERT (k, u, p) VALUES (s.k, 1, 'a')"
        ),
        set_column("u", 8),
        can_insert,
        checks_whole_rows=True,
    ),
)
"""Operations that run on ``World.spark``, on tables of catalog ``World.spark_name`` without buckets."""
