"""Read ``ALTER TABLE`` statements, in Flink's syntax and in Spark's.

Where the syntax is wrong, every function raises ``InvalidSqlError`` with line and column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from penstock.catalog.changes import (
    FIRST,
    AddColumn,
    DropColumn,
    MoveColumn,
    RemoveOption,
    RenameColumn,
    SetOption,
    UpdateColumnComment,
    UpdateColumnDefault,
    UpdateColumnNullability,
    UpdateColumnType,
    after,
)
from penstock.dialect.parse.create import read_watermark
from penstock.dialect.parse.reader import read_list, read_options, read_partition, read_path
from penstock.dialect.parse.statements import (
    AddComputed,
    AddPartitions,
    AlterTable,
    AlterWatermark,
    DropPartitions,
    RenameTable,
)
from penstock.format.types.ddl import read_column, read_name, read_string, read_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from penstock.catalog.changes import Position, SchemaChange
    from penstock.dialect.parse.reader import PartitionSpec, Path, StatementReader

_KEYS: Final = ("PRIMARY", "CONSTRAINT", "UNIQUE")

Alteration: TypeAlias = AlterTable | AddComputed | AlterWatermark | RenameTable | AddPartitions | DropPartitions


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    name: Path
    if_exists: bool

    def with_changes(self, changes: Iterable[SchemaChange]) -> AlterTable:
        return AlterTable(name=self.name, changes=tuple(changes), if_exists=self.if_exists)


def read_alter(reader: StatementReader) -> Alteration:
    """Read what follows ``ALTER``."""
    if not reader.take_words("TABLE"):
        raise reader.error("expected TABLE; nothing else can be altered")
    if_exists = reader.take_words("IF", "EXISTS")
    name = read_path(reader, "a table's name")
    for word, read in _ACTIONS.items():
        if reader.take_words(word):
            return read(reader, _Target(name=name, if_exists=if_exists))
    raise reader.unexpected(f"expected one of {', '.join(_ACTIONS)}", tuple(_ACTIONS))


def _read_set(reader: StatementReader, target: _Target) -> Alteration:
    reader.take_words("TBLPROPERTIES")
    return target.with_changes(SetOption(key=key, value=value) for key, value in read_options(reader))


def _read_reset(reader: StatementReader, target: _Target) -> Alteration:
    reader.take_words("TBLPROPERTIES")
    keys = read_list(reader, lambda inner: read_string(inner, "an option's key in quotes"), "the keys")
    return target.with_changes(RemoveOption(key=key) for key in keys)


def _read_rename(reader: StatementReader, target: _Target) -> Alteration:
    if reader.take_words("TO"):
        return RenameTable(name=target.name, new_name=read_path(reader, "the new name"), if_exists=target.if_exists)
    reader.take_words("COLUMN")
    old = read_name(reader, "TO, or a column to rename")
    reader.expect_words("TO")
    new = read_name(reader, "the column's new name")
    return target.with_changes([RenameColumn(column=old, new_name=new)])


def _read_add(reader: StatementReader, target: _Target) -> Alteration:
    if reader.take_words("WATERMARK", "FOR"):
        return AlterWatermark(name=target.name, clause=read_watermark(reader), if_exists=target.if_exists)
    if reader.at_words("PARTITION") or reader.at_words("IF", "NOT", "EXISTS", "PARTITION"):
        reader.take_words("IF", "NOT", "EXISTS")
        return AddPartitions(name=target.name, partitions=_read_partitions(reader), if_exists=target.if_exists)
    _refuse_keys(reader)
    _refuse_if(reader, "IF", "NOT", "EXISTS")
    reader.take_any("COLUMNS", "COLUMN")
    if reader.ahead(2 if reader.at_sign("(") else 1).word == "AS":
        return AddComputed(name=target.name, source=reader.take_rest(), if_exists=target.if_exists)
    return target.with_changes(_read_columns(reader, _read_new_column))


def _read_modify(reader: StatementReader, target: _Target) -> Alteration:
    if reader.take_words("WATERMARK", "FOR"):
        return AlterWatermark(name=target.name, clause=read_watermark(reader), if_exists=target.if_exists)
    _refuse_keys(reader)
    return target.with_changes(_read_columns(reader, _read_changed_column))


def _read_drop(reader: StatementReader, target: _Target) -> Alteration:
    if reader.take_words("WATERMARK"):
        return AlterWatermark(name=target.name, clause=None, if_exists=target.if_exists)
    if reader.at_words("PARTITION") or reader.at_words("IF", "EXISTS", "PARTITION"):
        may_miss = reader.take_words("IF", "EXISTS")
        return DropPartitions(
            name=target.name,
            partitions=_read_partitions(reader),
            if_exists=target.if_exists,
            if_partitions_exist=may_miss,
        )
    _refuse_keys(reader)
    _refuse_if(reader, "IF", "EXISTS")
    return target.with_changes(_read_columns(reader, _read_dropped_column))


def _read_alter_column(reader: StatementReader, target: _Target) -> Alteration:
    reader.take_words("COLUMN")
    column = read_name(reader, "a column to alter")
    change: SchemaChange
    if reader.take_words("TYPE"):
        change = UpdateColumnType(column=column, type=read_type(reader))
    elif reader.take_words("COMMENT"):
        change = UpdateColumnComment(column=column, comment=read_string(reader, "the comment in quotes"))
    elif reader.take_words("DROP", "NOT", "NULL"):
        change = UpdateColumnNullability(column=column, nullable=True)
    elif reader.take_words("SET", "NOT", "NULL"):
        change = UpdateColumnNullability(column=column, nullable=False)
    elif (position := _read_position(reader)) is not None:
        change = MoveColumn(column=column, position=position)
    else:
        raise reader.error("expected TYPE, COMMENT, FIRST, AFTER, SET NOT NULL or DROP NOT NULL")
    return target.with_changes([change])


_ACTIONS: Final[dict[str, Callable[[StatementReader, _Target], Alteration]]] = {
    "SET": _read_set,
    "RESET": _read_reset,
    "UNSET": _read_reset,
    "RENAME": _read_rename,
    "ADD": _read_add,
    "DROP": _read_drop,
    "MODIFY": _read_modify,
    "ALTER": _read_alter_column,
}


def _refuse_keys(reader: StatementReader) -> None:
    if any(reader.at_words(word) for word in _KEYS):
        raise reader.error("append tables have no keys and constraints; expected a column")


def _refuse_if(reader: StatementReader, *words: str) -> None:
    if any(reader.at_words(*before, *words) for before in ((), ("COLUMN",), ("COLUMNS",))):
        raise reader.error(f"columns have no {' '.join(words)}; leave it out: DESCRIBE shows which there are")


def _read_columns(
    reader: StatementReader, read: Callable[[StatementReader], tuple[SchemaChange, ...]]
) -> tuple[SchemaChange, ...]:
    """Read one column, or several in parentheses."""
    reader.take_any("COLUMNS", "COLUMN")
    if reader.at_sign("("):
        return tuple(change for changes in read_list(reader, read, "the columns") for change in changes)
    changes = list(read(reader))
    while reader.take_sign(","):
        changes += read(reader)
    return tuple(changes)


def _read_new_column(reader: StatementReader) -> tuple[SchemaChange, ...]:
    column = read_column(reader)
    position = _read_position(reader)
    added = AddColumn(column=column.name, type=column.type, description=column.description, position=position)
    if column.default_value is None:
        return (added,)
    return (added, UpdateColumnDefault(column=column.name, default=column.default_value))


def _read_dropped_column(reader: StatementReader) -> tuple[SchemaChange, ...]:
    return (DropColumn(column=read_name(reader, "a column to drop")),)


def _read_changed_column(reader: StatementReader) -> tuple[SchemaChange, ...]:
    column = read_column(reader)
    changes: list[SchemaChange] = [
        UpdateColumnType(column=column.name, type=column.type, keep_nullability=False, allow_explicit=False)
    ]
    if column.description is not None:
        changes.append(UpdateColumnComment(column=column.name, comment=column.description))
    if column.default_value is not None:
        changes.append(UpdateColumnDefault(column=column.name, default=column.default_value))
    position = _read_position(reader)
    if position is not None:
        changes.append(MoveColumn(column=column.name, position=position))
    return tuple(changes)


def _read_position(reader: StatementReader) -> Position | None:
    if reader.take_words("FIRST"):
        return FIRST
    return after(read_name(reader, "a column")) if reader.take_words("AFTER") else None


def _read_partitions(reader: StatementReader) -> tuple[PartitionSpec, ...]:
    specs: list[PartitionSpec] = []
    while not specs or reader.take_sign(",") or reader.at_words("PARTITION"):
        reader.expect_words("PARTITION")
        specs.append(read_partition(reader))
    return tuple(specs)
