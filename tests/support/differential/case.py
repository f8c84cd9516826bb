"""A case: a random table as a list of steps, which can be stored, read by humans and run again."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Row: TypeAlias = dict[int, Any]

COMPARISONS: Final = ("=", "<>", "<", "<=", ">", ">=")
LIKES: Final = ("LIKE", "NOT LIKE")
# In a regular expression that is made of a pattern.
_WILDCARD: Final = re.compile(r"(?<!\\)(?:\\\\)*\.")


@dataclass(frozen=True, slots=True, kw_only=True)
class FuzzColumn:
    """A column; rows refer to it by its key, which renames do not change.

    Attributes:
        sql: SQL type.
    """

    key: int
    name: str
    sql: str

    @property
    def quoted(self) -> str:
        """The name, quoted for SQL."""
        return "`" + self.name.replace("`", "``") + "`"


@dataclass(frozen=True, slots=True, kw_only=True)
class FuzzLeaf:
    """A condition on one column, as SQL and as values.

    Attributes:
        operator: a comparison, ``IN``, ``NOT IN``, ``LIKE``, ``NOT LIKE``, ``IS NULL`` or ``IS NOT NULL``.
        values: values that the column is compared with; for a pattern, a regular expression.
    """

    column: int
    operator: str
    texts: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()

    @property
    def is_filter(self) -> bool:
        """Whether Penstock's filters have it: of patterns, those of beginnings and of whole texts."""
        return self.operator not in LIKES or not _WILDCARD.search(self.values[0].removesuffix(".*"))

    @property
    def beginning(self) -> str | None:
        """The text that a value begins with, if the pattern says only that."""
        pattern = self.values[0] if self.operator == "LIKE" and self.is_filter else ""
        if not pattern.endswith(".*"):
            return None
        return re.sub(r"\\(.)", r"\1", pattern.removesuffix(".*"), flags=re.DOTALL)

    def to_sql(self, column: FuzzColumn) -> str:
        """Return the text of the filter.

        Args:
            column: the column with its current name.
        """
        if self.operator in (*COMPARISONS, *LIKES):
            return f"{column.quoted} {self.operator} {self.texts[0]}"
        return f"{column.quoted} {self.operator}" + (f" ({', '.join(self.texts)})" if self.texts else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class FuzzJunction:
    """Conditions that are joined.

    Attributes:
        operator: ``AND`` or ``OR`` of two or more parts, or ``NOT`` of one.
    """

    operator: str
    parts: tuple[FuzzCondition, ...]


FuzzCondition: TypeAlias = FuzzLeaf | FuzzJunction


def condition_sql(condition: FuzzCondition, leaf_sql: Callable[[FuzzLeaf], str]) -> str:
    """Return the text of a condition.

    Args:
        leaf_sql: returns the text of a condition on one column.
    """
    if isinstance(condition, FuzzLeaf):
        return leaf_sql(condition)
    parts = [f"({condition_sql(part, leaf_sql)})" for part in condition.parts]
    return f"NOT {parts[0]}" if condition.operator == "NOT" else f" {condition.operator} ".join(parts)


def leaves_of(condition: FuzzCondition) -> Iterator[FuzzLeaf]:
    """Yield the conditions on one column that a condition consists of."""
    if isinstance(condition, FuzzLeaf):
        yield condition
    else:
        for part in condition.parts:
            yield from leaves_of(part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """Append rows, which map column keys to values.

    Attributes:
        by_spark: from a DataFrame to the attached catalog, if there is a session.
    """

    rows: tuple[Row, ...]
    by_spark: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """Append a row that must be refused."""

    row: Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Add:
    """Add a column."""

    column: FuzzColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """Drop a column."""

    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    """Rename a column."""

    column: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Widen:
    """Change a column to a wider type."""

    column: int
    sql: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOld:
    """Read with the table handle from before the last change; the read may fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """Read with every reader.

    Attributes:
        leaf: condition; None for all rows.
        until: number of the past state that is read, of those that steps of ``CHANGES`` leave; None for the latest one.
        since: number of the state after which the changes until then are read; None to read a state.
        by: what names the states: ``snapshot``, ``tag`` or ``time``.
    """

    leaf: FuzzCondition | None = None
    until: int | None = None
    since: int | None = None
    by: str = "snapshot"


@dataclass(frozen=True, slots=True, kw_only=True)
class First:
    """Read the first rows of an order by one column with the readers that skip files for it."""

    column: int
    descends: bool
    nulls_first: bool
    count: int

    @property
    def sql(self) -> str:
        """What follows the column in ORDER BY."""
        direction, nulls = ("DESC" if self.descends else "ASC"), ("FIRST" if self.nulls_first else "LAST")
        return f"{direction} NULLS {nulls} LIMIT {self.count}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Delete the first of each ``every`` rows of each file by deletion vectors, after which the table is read only."""

    every: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """Delete the rows for which a condition is true; by deletion vectors, if the table has them.

    Attributes:
        by_sql: by Spark SQL, if there is a session.
    """

    leaf: FuzzCondition
    by_sql: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """Set a column of the rows for which a condition is true.

    Attributes:
        text: the value as a literal, by which Spark SQL sets it, if there is a session; None to set it without.
    """

    column: int
    value: Any
    leaf: FuzzCondition
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropPartitions:
    """Remove the partitions with values of some partition columns.

    Attributes:
        texts: the values as literals, by which Spark SQL removes them, if there is a session; none to do without.
    """

    values: Row
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reformat:
    """Write new files in another format."""

    file_format: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Compact:
    """Rewrite all files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """Give all files an index of the first column in their manifests, or none again."""

    is_on: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert:
    """Insert between columns of two types by SQL, with Spark only; ``pair`` as in ``insert.PAIRS``."""

    pair: int


Step: TypeAlias = (
    Append
    | Refuse
    | Add
    | Drop
    | Rename
    | Widen
    | ReadOld
    | Read
    | First
    | Delete
    | Remove
    | Update
    | DropPartitions
    | Reformat
    | Compact
    | Index
    | Insert
)
CHANGES: Final = (Append, Remove, Update, DropPartitions, Compact)
"""Steps that leave a state that can be read later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A table, and the steps on it.

    Attributes:
        name: name of the table, unique in its database.
        columns: columns at its creation.
        partition_by: names of partition columns.
        options: options of the table.
    """

    name: str
    file_format: str
    columns: tuple[FuzzColumn, ...]
    partition_by: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
