"""Schema changes as values, for ``alter_table``.

Columns are named by a path: ``"price"`` is the column of that name (dots in it are part of the name), and
``("address", "city")`` a field inside a ROW. Inside containers, the path has ``"element"`` for the elements of an
ARRAY, VECTOR or MULTISET and ``"value"`` for the values of a MAP: ``("tags", "element", "label")``.

Source:
    Paimon ``api:schema/SchemaChange.java``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from penstock.printable import mask_value

if TYPE_CHECKING:
    from penstock.format.types.data_types import DataType

ColumnPath: TypeAlias = str | tuple[str, ...]


class Place(StrEnum):
    """Kinds of positions of a column among its siblings."""

    FIRST = "FIRST"
    LAST = "LAST"
    BEFORE = "BEFORE"
    AFTER = "AFTER"


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A position among the columns of the same level.

    Attributes:
        reference: the sibling that BEFORE and AFTER refer to; None for FIRST and LAST.
    """

    place: Place
    reference: str | None = None


FIRST = Position(place=Place.FIRST)
LAST = Position(place=Place.LAST)


def before(column: str) -> Position:
    """Return the position just before that column."""
    return Position(place=Place.BEFORE, reference=column)


def after(column: str) -> Position:
    """Return the position just after that column."""
    return Position(place=Place.AFTER, reference=column)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SetOption:
    """Set a table option."""

    key: str
    value: str

    def __repr__(self) -> str:
        return f"{type(self).__name__}(key={self.key!r}, value={mask_value(self.key, self.value)!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveOption:
    """Reset a table option to its default; no effect if it is not set."""

    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateComment:
    """Set the table's comment; None removes it."""

    comment: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AddColumn:
    """Add a column, or a field of a ROW; existing rows have null in it.

    Attributes:
        type: must be nullable; a string is parsed as SQL, such as ``"DECIMAL(10, 2)"``.
        position: None for the end, or before the partition columns if ``add-column-before-partition`` is true.
    """

    column: ColumnPath
    type: DataType | str
    description: str | None = None
    position: Position | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameColumn:
    """Rename a column; it keeps its id and its data, and options that refer to it are updated."""

    column: ColumnPath
    new_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropColumn:
    """Remove a column; its id is never reused, so a later column of that name starts empty."""

    column: ColumnPath


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateColumnType:
    """Change the type of a column, of a field, or of the elements or values of a container.

    Attributes:
        type: its nullability is used only with ``keep_nullability=False``; a string is parsed as SQL.
        allow_explicit: also allow lossy casts, as SQL's CAST does.
    """

    column: ColumnPath
    type: DataType | str
    keep_nullability: bool = True
    allow_explicit: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateColumnNullability:
    """Allow or forbid null in a column; ``alter-column-null-to-not-null.disabled`` refuses the latter by default."""

    column: ColumnPath
    nullable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateColumnComment:
    """Set a column's comment; None removes it."""

    column: ColumnPath
    comment: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateColumnDefault:
    """Set the default of a column, the text of a literal that replaces null in written rows; None removes it.

    Existing rows keep their nulls.
    """

    column: ColumnPath
    default: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveColumn:
    """Move a column, or a field of a ROW, among its siblings."""

    column: ColumnPath
    position: Position


SchemaChange: TypeAlias = (
    SetOption
    | RemoveOption
    | UpdateComment
    | AddColumn
    | RenameColumn
    | DropColumn
    | UpdateColumnType
    | UpdateColumnNullability
    | UpdateColumnComment
    | UpdateColumnDefault
    | MoveColumn
)


def path_of(column: ColumnPath) -> tuple[str, ...]:
    """Return the path as a tuple; a string is the name of one column."""
    return (column,) if isinstance(column, str) else column
