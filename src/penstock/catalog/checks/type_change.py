"""Check changes of a column's type."""

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
    """Whether a value has the same bucket hash in both types: both are text, or both are bytes, of any length."""
    if not isinstance(source, AtomicType) or not isinstance(target, AtomicType):
        return False
    return source.root is target.root and source.root in (TypeRoot.VARCHAR, TypeRoot.VARBINARY)


def check_type_change(
    change: tuple[DataType, DataType], *, options: Mapping[str, str], allow_explicit: bool, where: str
) -> None:
    """Check that the type of a column may change.

    Widening is always allowed. Other casts are allowed with ``allow_explicit``, or with the option
    ``disable-explicit-type-casting`` = 'false'; the value 'true' forbids them.

    Args:
        change: the old and the new type.
        where: table and column for messages.

    Raises:
        InvalidSchemaError: there is no such cast, or it is not allowed; the message says which, and what to do.
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
            f"{what} implicitly, because values could change; set the table's option '{EXPLICIT_CASTING_DISABLED}' = "
            "'false' (in Python: allow_explicit=True), or add a column of the new type"
        )
