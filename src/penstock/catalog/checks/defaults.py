"""Check default values when they are declared, so that no write finds an invalid one.

Source:
    Paimon ``core:utils/DefaultValueUtils.java``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.datafile.types import to_arrow_type
from penstock.table.write.default_values import decode_default

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.format.types.data_types import DataField


def check_defaults(fields: Iterable[DataField], table: str) -> None:
    """Check that each default value is valid text for its column's type. Raises ``InvalidSchemaError``."""
    for field in fields:
        if field.default_value is not None:
            decode_default(field, to_arrow_type(field.type), table)
