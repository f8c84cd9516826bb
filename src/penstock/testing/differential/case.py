"""A random table: what is done to it, and the rows that it must have, in plain Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from penstock.testing.differential.kinds import KINDS, NAMES, Kind

if TYPE_CHECKING:
    from random import Random

# Not Avro, which takes few names and is never read natively.
_FORMATS: Final = ("parquet", "orc")
_MOST_ROWS: Final = 6
_COMPARISONS: Final = ("=", "<>", "<", "<=", ">", ">=")


@dataclass(slots=True)
class FuzzColumn:
    """A column of today; rows know it by its key through all renames."""

    key: int
    name: str
    kind: Kind
    sql: str

    @property
    def quoted(self) -> str:
        """The name as SQL."""
        return "`" + self.name.replace("`", "``") + "`"


@dataclass(frozen=True, slots=True, kw_only=True)
class FuzzLeaf:
    """A condition on one column, as SQL and as values.

    Attributes:
        operator: a comparison, ``IN``, ``NOT IN``, ``IS NULL`` or ``IS NOT NULL``.
        values: that the column is compared with.
    """

    column: FuzzColumn
    operator: str
    texts: tuple[str, ...]
    values: tuple[Any, ...]

    def __str__(self) -> str:
        name = self.column.quoted
        if self.operator in _COMPARISONS:
            return f"{name} {self.operator} {self.texts[0]}"
        return f"{name} {self.operator}" + (f" ({', '.join(self.texts)})" if self.texts else "")

    def holds(self, value: Any) -> bool | None:  # noqa: ANN401 - of any column
        """Return what SQL says of a value: true, false or unknown."""
        if self.operator.startswith("IS"):
            return (value is None) == (self.operator == "IS NULL")
        if value is None:
            return None
        if self.operator in _COMPARISONS:
            return _compare(value, self.operator, self.values[0])
        found = any(each is not None and _compare(value, "=", each) for each in self.values)
        if not found and None in self.values:
            return None
        return found == (self.operator == "IN")


@dataclass(slots=True)
class FuzzTable:
    """The state of a case.

    Attributes:
        rows: key of a column to value.
    """

    file_format: str
    columns: list[FuzzColumn]
    rows: list[dict[int, Any]] = field(default_factory=list)

    def expected(self, leaf: FuzzLeaf | None) -> list[dict[str, Any]]:
        """Return the rows that pass."""
        return [
            {column.name: row.get(column.key) for column in self.columns}
            for row in self.rows
            if leaf is None or leaf.holds(row.get(leaf.column.key))
        ]


def random_table(random: Random) -> FuzzTable:
    """Return a table without rows; its first column, an INT, tells rows apart."""
    kinds = [next(kind for kind in KINDS if kind.sql == "INT"), *random.choices(KINDS, k=random.randint(1, 4))]
    names = ["id", *random.sample(NAMES, len(kinds) - 1)]
    columns = [FuzzColumn(key, name, kind, kind.sql) for key, (name, kind) in enumerate(zip(names, kinds, strict=True))]
    return FuzzTable(random.choice(_FORMATS), columns)


def random_rows(random: Random, table: FuzzTable) -> list[dict[int, Any]]:
    """Return new rows of the columns of today."""
    rows = []
    for number in range(random.randint(1, _MOST_ROWS)):
        row = {column.key: random.choice((None, *column.kind.values)) for column in table.columns}
        row[0] = len(table.rows) + number
        rows.append(row)
    return rows


def random_leaf(random: Random, table: FuzzTable) -> FuzzLeaf:
    """Return a condition on one of the columns."""
    column = random.choice(table.columns)
    literals = column.kind.literals if column.kind.sql == column.sql else ()
    if not literals or random.random() < 0.1:
        return FuzzLeaf(column=column, operator=random.choice(("IS NULL", "IS NOT NULL")), texts=(), values=())
    if random.random() < 0.3:
        chosen = [*random.choices(literals, k=random.randint(1, 3)), *random.choices([("NULL", None)], k=1)]
        chosen = chosen if random.random() < 0.5 else chosen[:-1]
        operator = random.choice(("IN", "NOT IN"))
    else:
        chosen, operator = [random.choice(literals)], random.choice(_COMPARISONS)
    texts, values = zip(*chosen, strict=True)
    return FuzzLeaf(column=column, operator=operator, texts=texts, values=values)


def _compare(value: Any, operator: str, literal: Any) -> bool:  # noqa: ANN401 - values of any column
    is_nan = value != value  # noqa: PLR0124 - only NaN is not itself
    match operator:
        case "=":
            return not is_nan and bool(value == literal)
        case "<>":
            return is_nan or bool(value != literal)
        case "<":
            return not is_nan and bool(value < literal)
        case "<=":
            return not is_nan and bool(value <= literal)
        case ">":
            return is_nan or bool(value > literal)
        case _:
            return is_nan or bool(value >= literal)
