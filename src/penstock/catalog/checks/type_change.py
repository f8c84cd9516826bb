"""Which changes of a column's type may be made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.datafile.evolve import can_cast
from penstock.datafile.widening import is_widening
from penstock.errors import InvalidSchemaError
from penstock.format.types.data_types import AtomicType, DataType, TypeRoot
from penstock.format.types.text import format_sql_type

if TYPE_CHECKING:
    from collections.abc import Mapping

EXPLICIT_CASTING_DISABLED: Final = "disable-explicit-type-casting"


def hashes_alike(source: DataType, target: DataType) -> bool:
    """Tell whether values of both types have the same bytes in a bucket's hash: text and bytes of any length."""
    if not isinstance(source, AtomicType) or not isinstance(target, AtomicType):
        return False
    return source.root is target.root and source.root in (TypeRoot.VARCHAR, TypeRoot.VARBINARY)


def check_type_change(
    change: tuple[DataType, DataType], *, options: Mapping[str, str], allow_explicit: bool, where: str
) -> None:
    """Check that a column may get another type.

    Widening always may. Other casts may where ``allow_explicit`` or the option ``disable-explicit-type-casting`` =
    'false' asks for them and the option does not forbid them with 'true'.

    Args:
        change: the old type and the new one.
        where: the table and column, for messages.

    Raises:
        InvalidSchemaError: saying which of the two it is, and what to do.
    """
    source, target = change
    if is_widening(source, target):
        return
    what = f"{where} of type {format_sql_type(source)} cannot become {format_sql_type(target)}"
    if not isinstance(source, AtomicType) or not isinstance(target, AtomicType):
        raise InvalidSchemaError(f"{what}: change the fields, elements or values inside it one by one, or add a column")
    if not can_cast(source, target):
        raise InvalidSchemaError(f"{what}: there is no such cast; add a column of the new type")
    setting = options.get(EXPLICIT_CASTING_DISABLED, "").strip().lower()
    if setting == "true":
        raise InvalidSchemaError(f"{what}: values could change, and '{EXPLICIT_CASTING_DISABLED}' = 'true' forbids it")
    if not allow_explicit and setting != "false":
        raise InvalidSchemaError(
            f"{what} unasked, since values could change; say allow_explicit=True, or add a column of the new type"
        )
