"""The types of a writer's Avro schema, with a limit on their number.

Source:
    Avro 1.11 specification, "Schema Declaration".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.format.avro.items import ItemBudget

if TYPE_CHECKING:
    from penstock.format.avro.schemas import AvroType

MOST_TYPES: Final = 100_000
"""Maximum number of types in a schema, each counted per reference; a manifest has about 70."""


class NamedTypes:
    """The named types of a schema, to which other places of the schema refer by name.

    If each type refers to the next one twice, the expanded size grows exponentially with the number of types; so code
    that traverses a schema counts the types with ``count``.

    Args:
        schema: the whole schema, as parsed JSON.
        most_items: maximum number of items in all arrays of the file together.
        refuses_empty_items: see below.

    Attributes:
        items: the budget for items in arrays.
        refuses_empty_items: whether arrays of items without bytes are refused, whatever their number.
    """

    def __init__(self, schema: AvroType, most_items: int, *, refuses_empty_items: bool = False) -> None:
        self.items = ItemBudget(most_items)
        self.refuses_empty_items = refuses_empty_items
        self._types: dict[str, AvroType] = {}
        self._left = MOST_TYPES
        self._collect(schema)

    def find(self, name: str) -> AvroType:
        """Return a type by its name, with or without namespace. Raises ``KeyError``."""
        return self._types[_short(name)]

    def count(self) -> None:
        """Count one type.

        Raises:
            ValueError: there are more than ``MOST_TYPES``.
        """
        self._left -= 1
        if self._left < 0:
            raise ValueError(f"its Avro schema has more than {MOST_TYPES} types")

    def _collect(self, schema: AvroType) -> None:
        if isinstance(schema, dict):
            if schema.get("type") in ("record", "fixed", "enum"):
                self._types[_short(str(schema["name"]))] = schema
            for part in schema.values():
                self._collect(part)
        elif isinstance(schema, list):
            for part in schema:
                self._collect(part)


def field_types(schema: AvroType) -> dict[str, AvroType]:
    """Return the types of a record's fields, by name in file order.

    Raises:
        ValueError: the schema is not that of a record.
    """
    fields = schema.get("fields") if isinstance(schema, dict) and schema.get("type") == "record" else None
    if not isinstance(fields, list):
        raise ValueError("its Avro schema is not that of a record")  # noqa: TRY004 - a damaged file is no type error
    types = {str(field["name"]): field["type"] for field in fields if isinstance(field, dict)}
    if len(types) < len(fields):
        raise ValueError("its Avro schema has a record with two fields of one name")
    return types


def _short(name: str) -> str:
    return name.rpartition(".")[2]
