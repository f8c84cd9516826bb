"""Runs cases: makes the tables, reads them through every entry point, and reports what differs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from penstock.catalog.changes import AddColumn, DropColumn, RenameColumn, UpdateColumnType
from penstock.errors import TableStoreError
from penstock.testing.differential.case import FuzzColumn, random_leaf, random_rows, random_table
from penstock.testing.differential.insert import insert_differs
from penstock.testing.differential.kinds import KINDS, NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock import Catalog, Table
    from penstock.testing.differential.case import FuzzLeaf

_LEAVES: Final = 4
_LARGEST: Final = {"BIGINT": 2**62 + 1, "INT": 2**31 - 1, "DOUBLE": 0.1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that differs.

    Attributes:
        seed: of the case, to run it again.
        entry_point: where.
        what: the table and the filter.
    """

    seed: int
    entry_point: str
    what: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"seed {self.seed}, {self.entry_point}: {self.what}\n  expected {self.expected}\n  found    {self.found}"


def run_case(catalog: Catalog, seed: int, spark: Any = None) -> list[Finding]:  # noqa: ANN401 - a session, where there is one
    """Run one case in database ``fuzz``; the same seed makes the same case.

    Args:
        spark: a session in which ``format("penstock")`` is registered; None to read without Spark.
    """
    return list(_Run(catalog, seed, spark).findings())


class _Run:
    def __init__(self, catalog: Catalog, seed: int, spark: Any) -> None:  # noqa: ANN401 - see run_case
        self._catalog = catalog
        self._seed = seed
        self._random = Random(seed)  # noqa: S311 - not for secrets
        self._spark = spark
        self._name = f"fuzz.t{seed}"
        self._model = random_table(self._random)
        self._last_key = len(self._model.columns)

    def findings(self) -> Iterator[Finding]:
        model, random = self._model, self._random
        options = {"file.format": model.file_format}
        if random.random() < 0.3:
            options |= {"bucket": "2", "bucket-key": "id"}
        columns = ", ".join(f"{column.quoted} {column.sql}" for column in model.columns)
        partition_by = ["id"] if random.random() < 0.2 and "bucket" not in options else []
        table = self._catalog.create_table(self._name, columns, partition_by=partition_by, options=options)
        self._append(table)
        yield from self._refusals(table)
        for _ in range(random.randint(0, 2)):
            yield from self._evolve(table)
            table = self._catalog.load_table(self._name)
            self._append(table)
        leaves = [None, *(random_leaf(random, model) for _ in range(_LEAVES))]
        for leaf in leaves:
            yield from self._reads(table, leaf)
        if self._spark is not None:
            wrong = insert_differs(self._catalog, random, self._name, self._spark)
            if wrong is not None:
                yield self._finding("INSERT", wrong, "the same values, or refused", "others")

    def _append(self, table: Table) -> None:
        rows = random_rows(self._random, self._model)
        table.append(self._arrow(rows))
        self._model.rows += rows

    def _arrow(self, rows: list[dict[int, Any]]) -> pa.Table:
        columns = self._model.columns
        return pa.table(
            [pa.array([row.get(column.key) for row in rows], column.kind.arrow) for column in columns],
            names=[column.name for column in columns],
        )

    def _refusals(self, table: Table) -> Iterator[Finding]:
        """Values that are too long must not get in."""
        for column in self._model.columns:
            for value in column.kind.too_long:
                row = {**random_rows(self._random, self._model)[0], column.key: value}
                try:
                    table.append(self._arrow([row]))
                except TableStoreError:
                    continue
                self._model.rows.append(row)
                yield self._finding("append", f"{value!r} into {column.sql}", "refused", "written")

    def _evolve(self, table: Table) -> Iterator[Finding]:
        """Change a column; rows that come afterwards must not come out wrong through the old handle."""
        columns, random = self._model.columns, self._random
        column = random.choice(columns[1:])
        match random.choice(("add", "drop", "rename", "widen", "widen")):
            case "add":
                self._add(random)
            case "drop" if len(columns) > 2:
                self._catalog.alter_table(self._name, DropColumn(column=column.name))
                columns.remove(column)
            case "rename":
                new = self._free_name(random)
                self._catalog.alter_table(self._name, RenameColumn(column=column.name, new_name=new))
                column.name = new
            case "widen" if column.kind.wider and column.sql == column.kind.sql:
                yield from self._widen(table, column)
            case _:
                return

    def _add(self, random: Random) -> None:
        kind = random.choice(KINDS)
        key = 1 + max(
            [*(column.key for column in self._model.columns), *(key for row in self._model.rows for key in row)]
        )
        column = FuzzColumn(key, self._free_name(random), kind, kind.sql)
        self._catalog.alter_table(self._name, AddColumn(column=column.name, type=kind.sql))
        self._model.columns.append(column)

    def _free_name(self, random: Random) -> str:
        return random.choice([name for name in NAMES if name not in {column.name for column in self._model.columns}])

    def _widen(self, old: Table, column: FuzzColumn) -> Iterator[Finding]:
        sql = self._random.choice(column.kind.wider)
        self._catalog.alter_table(self._name, UpdateColumnType(column=column.name, type=sql))
        column.sql = sql
        if sql not in _LARGEST:
            return
        arrow = {"BIGINT": pa.int64(), "INT": pa.int32(), "DOUBLE": pa.float64()}[sql]
        column.kind = replace(column.kind, arrow=arrow, values=(*column.kind.values, _LARGEST[sql]))
        row = {**random_rows(self._random, self._model)[0], column.key: _LARGEST[sql]}
        self._catalog.load_table(self._name).append(self._arrow([row]))
        self._model.rows.append(row)
        yield from self._compare("to_arrow of an older handle", None, old.to_arrow, may_refuse=True)

    def _reads(self, table: Table, leaf: FuzzLeaf | None) -> Iterator[Finding]:
        text = None if leaf is None else str(leaf)
        yield from self._compare("to_arrow", leaf, lambda: table.to_arrow(filter=text))
        if self._spark is None:
            return
        yield from self._compare("to_spark", leaf, lambda: table.to_spark(self._spark, filter=text).toArrow())
        reader = self._spark.read.format("penstock")
        if text is not None:
            reader = reader.option("filter", text)
        yield from self._compare("format", leaf, lambda: reader.load(table.location).toArrow())
        if (
            leaf is not None
            and leaf.column.kind.is_float
            and leaf.operator in {">", ">=", "="}
            and leaf.texts[0] in "015"
        ):
            frame = table.to_spark(self._spark)
            yield from self._compare("to_spark().where", leaf, lambda: frame.where(str(leaf)).toArrow())

    def _compare(
        self, entry_point: str, leaf: FuzzLeaf | None, read: Callable[[], pa.Table], *, may_refuse: bool = False
    ) -> Iterator[Finding]:
        expected = sorted(repr(_normal(list(row.values()))) for row in self._model.expected(leaf))
        try:
            found = sorted(repr(_normal(row)) for row in _rows(read()))
        except TableStoreError as error:
            if may_refuse:
                return
            found = [f"{type(error).__name__}: {str(error)[:300]}"]
        except Exception as error:  # noqa: BLE001 - whatever Spark raises is a finding
            found = [f"{type(error).__name__}: {str(error)[:300]}"]
        if found != expected:
            missing, extra = (
                [row for row in expected if row not in found],
                [row for row in found if row not in expected],
            )
            what = f"{self._describe()} filter {leaf}"
            yield self._finding(
                entry_point, what, f"{len(expected)} rows, with {missing}", f"{len(found)}, with {extra}"
            )

    def _describe(self) -> str:
        return f"{self._model.file_format} ({', '.join(f'{each.quoted} {each.sql}' for each in self._model.columns)})"

    def _finding(self, entry_point: str, what: str, expected: str, found: str) -> Finding:
        return Finding(seed=self._seed, entry_point=entry_point, what=what, expected=expected, found=found)


def _rows(table: pa.Table) -> Iterator[list[Any]]:
    columns = [[_plain(cell) for chunk in column.chunks for cell in chunk] for column in table.columns]
    return map(list, zip(*columns, strict=True))


def _plain(cell: Any) -> Any:  # noqa: ANN401 - a scalar of any type
    if not cell.is_valid:
        return None
    kind = cell.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return cell.value
    if pa.types.is_struct(kind):
        return {name: _plain(cell[name]) for name in kind.names}
    if pa.types.is_map(kind):
        return [(_plain(each["key"]), _plain(each["value"])) for each in cell.values]
    if pa.types.is_list(kind):
        return [_plain(each) for each in cell.values]
    return cell.as_py()


def _normal(value: Any) -> Any:  # noqa: ANN401 - see above
    """Decimals by value; NaN and the sign of zero show in ``repr``."""
    if isinstance(value, list | tuple):
        return [_normal(each) for each in value]
    if isinstance(value, dict):
        return [_normal(each) for each in value.values()]
    return format(value.normalize(), "f") if hasattr(value, "normalize") else value
