"""A case: a random table as a list of steps, so that it can be kept, read by people and run again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

Row: TypeAlias = dict[int, Any]

COMPARISONS: Final = ("=", "<>", "<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True, kw_only=True)
class FuzzColumn:
    """A column; rows know it by its key through all renames.

    Attributes:
        sql: its type.
    """

    key: int
    name: str
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

    column: int
    operator: str
    texts: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()

    def to_sql(self, column: FuzzColumn) -> str:
        """Return the text of the filter.

        Args:
            column: as it is called now.
        """
        if self.operator in COMPARISONS:
            return f"{column.quoted} {self.operator} {self.texts[0]}"
        return f"{column.quoted} {self.operator}" + (f" ({', '.join(self.texts)})" if self.texts else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """Rows by the keys of columns."""

    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """A row that must not get in."""

    row: Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Add:
    """A new column."""

    column: FuzzColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """A column goes."""

    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    """A column gets another name."""

    column: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Widen:
    """A column gets a wider type."""

    column: int
    sql: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOld:
    """Read through the handle from before the last change, which may refuse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """Read through every reader; ``leaf`` is None for all rows."""

    leaf: FuzzLeaf | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert:
    """Insert between columns of two types by SQL, with Spark only; ``pair`` as in ``insert.PAIRS``."""

    pair: int


Step: TypeAlias = Append | Refuse | Add | Drop | Rename | Widen | ReadOld | Read | Insert


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A table, and what is done to it in turn.

    Attributes:
        name: of the table, unique in its database.
        columns: at its creation.
        partition_by: names.
        options: of the table.
    """

    name: str
    file_format: str
    columns: tuple[FuzzColumn, ...]
    partition_by: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
