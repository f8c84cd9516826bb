"""The schema file ``schema/schema-N`` as a value.

Source:
    Paimon ``api:schema/TableSchema.java``, ``api:schema/SchemaSerializer.java``; docs/spec/format.md section 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.format.types.data_types import DataField, RowType
from penstock.format.types.text import format_name, format_sql_type
from penstock.printable import mask_options

if TYPE_CHECKING:
    from collections.abc import Mapping

_SHOWN: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSchema:
    """One version of a table's schema.

    Attributes:
        id: equals N of the file's name.
        highest_field_id: the highest id ever given out, nested and dropped fields included; -1 for no fields.
        options: pairs as stored, in file order; use ``option_map`` for look-ups.
        time_millis: creation time of this version, ms since 1970-01-01 UTC.
        version: 3 in what we write; 1 and 2 change defaults on read (``bucket``, ``file.format``).
        unknown_keys: keys of newer releases, which a file that we write would lack; those of a column as
            ``column.key``.
    """

    id: int
    fields: tuple[DataField, ...]
    highest_field_id: int
    partition_keys: tuple[str, ...] = ()
    primary_keys: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    comment: str | None = None
    time_millis: int = 0
    version: int = 3
    unknown_keys: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Show the columns as DDL has them, and options without secrets."""
        shown = [f"{format_name(field.name)} {format_sql_type(field.type)}" for field in self.fields[:_SHOWN]]
        more = len(self.fields) - len(shown)
        parts = [f"id={self.id}", f"columns={', '.join(shown) + (f', … {more} more' if more else '')!r}"]
        parts += [f"partition_keys={self.partition_keys!r}"] if self.partition_keys else []
        parts += [f"primary_keys={self.primary_keys!r}"] if self.primary_keys else []
        parts += [f"options={mask_options(self.options)!r}"] if self.options else []
        parts += [f"comment={self.comment!r}"] if self.comment else []
        return f"TableSchema({', '.join(parts)})"

    @property
    def option_map(self) -> Mapping[str, str]:
        """Options for look-up; a new dict each time."""
        return dict(self.options)

    @property
    def row_type(self) -> RowType:
        """The columns as one ROW."""
        return RowType(fields=self.fields, nullable=False)

    @property
    def field_names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(field.name for field in self.fields)

    @property
    def partition_fields(self) -> tuple[DataField, ...]:
        """Partition columns, in ``partition_keys`` order."""
        by_name = {field.name: field for field in self.fields}
        return tuple(by_name[name] for name in self.partition_keys)
