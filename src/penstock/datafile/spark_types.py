"""Types of Spark that a file stores as other ones, and names only in its metadata.

Source:
    Spark ``ParquetWriteSupport``, which writes the schema of the rows, and ``OrcUtils``, which writes the type of each
    value; ORC timestamps of Spark are instants, in the time zone of the JVM that wrote them.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    import pyarrow.parquet as pq

_OF_ROWS: Final = b"org.apache.spark.sql.parquet.row.metadata"
_OF_VALUE: Final = b"spark.sql.catalyst.type"
_IN_PARQUET: Final = re.compile(r"variant|interval.*")
_IN_ORC: Final = re.compile(r"variant|interval.*|timestamp.*")
# pyarrow reads the logical type as a struct, and shows the type of a group only in this text.
_VARIANT: Final = re.compile(r"^ +\w+ group field_id=-?\d+ (.+) \(Variant\(\d+\)\) \{$", re.MULTILINE)


def unstored_types(schema: pa.Schema, parquet: pq.ParquetSchema | None = None) -> dict[str, str]:
    """Return the types that readers other than Spark do not find, by the names of their columns.

    Args:
        parquet: the schema of a Parquet file, in which other writers name VARIANT.
    """
    if parquet is not None and (names := _VARIANT.findall(str(parquet))):
        return dict.fromkeys(names, "variant")
    rows = (schema.metadata or {}).get(_OF_ROWS)
    if rows is None:
        columns, pattern = [(field.name, _of_field(field)) for field in schema], _IN_ORC
    else:
        columns = [(field["name"], _of_json(field["type"])) for field in json.loads(rows)["fields"]]
        pattern = _IN_PARQUET
    return {name: kind for name, kinds in columns for kind in kinds if pattern.fullmatch(kind)}


def _of_field(field: Any) -> Iterator[str]:  # noqa: ANN401 - pa.Field, with methods that its stubs lack
    if field.metadata and _OF_VALUE in field.metadata:
        yield field.metadata[_OF_VALUE].decode()
    for place in range(field.type.num_fields):
        yield from _of_field(field.type.field(place))


def _of_json(kind: Any) -> Iterator[str]:  # noqa: ANN401 - JSON
    match kind:
        case str():
            yield kind
        case {"fields": list(fields)}:
            for field in fields:
                yield from _of_json(field["type"])
        case {"elementType": element}:
            yield from _of_json(element)
        case {"keyType": key, "valueType": value}:
            yield from _of_json(key)
            yield from _of_json(value)
        case _:
            pass
