"""Schema changes as JSON for the REST catalog.

Source:
    Paimon ``api:schema/SchemaChange.java``; ``SchemaChange`` in ``docs/static/rest-catalog-open-api.yaml``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, assert_never

from penstock.catalog.changes import (
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
    UpdateComment,
    path_of,
)
from penstock.format.types.text import encode_type, parse_sql_type

if TYPE_CHECKING:
    from penstock.catalog.changes import ColumnPath, Position, SchemaChange
    from penstock.format.types.data_types import DataType

_ColumnChange: TypeAlias = (
    AddColumn
    | RenameColumn
    | DropColumn
    | UpdateColumnType
    | UpdateColumnNullability
    | UpdateColumnComment
    | UpdateColumnDefault
)


def encode_change(change: SchemaChange) -> dict[str, Any]:
    """Return the JSON of a change."""
    match change:
        case SetOption():
            return {"action": "setOption", "key": change.key, "value": change.value}
        case RemoveOption():
            return {"action": "removeOption", "key": change.key}
        case UpdateComment():
            return {"action": "updateComment", "comment": change.comment}
        case MoveColumn():
            return {"action": "updateColumnPosition", "move": _move(change.column, change.position)}
        case _:
            action, values = _column_change(change)
            return {"action": action, "fieldNames": list(path_of(change.column)), **values}


def _column_change(change: _ColumnChange) -> tuple[str, dict[str, Any]]:  # noqa: PLR0911 - one for each kind of change
    match change:
        case AddColumn():
            move = _move(change.column, change.position)
            return "addColumn", {"dataType": _type(change.type), "comment": change.description, "move": move}
        case RenameColumn():
            return "renameColumn", {"newName": change.new_name}
        case DropColumn():
            return "dropColumn", {}
        case UpdateColumnType():
            keeps = change.keep_nullability
            return "updateColumnType", {"newDataType": _type(change.type), "keepNullability": keeps}
        case UpdateColumnNullability():
            return "updateColumnNullability", {"newNullability": change.nullable}
        case UpdateColumnComment():
            return "updateColumnComment", {"newComment": change.comment}
        case UpdateColumnDefault():
            return "updateColumnDefaultValue", {"newDefaultValue": change.default}
        case other:
            assert_never(other)


def _type(given: DataType | str) -> object:
    return encode_type(parse_sql_type(given) if isinstance(given, str) else given)


def _move(column: ColumnPath, position: Position | None) -> dict[str, Any] | None:
    if position is None:
        return None
    return {
        "fieldName": path_of(column)[-1],
        "referenceFieldName": position.reference,
        "type": position.place.value,
    }
