"""Import of a Hive-style directory of Parquet files, ``dt=2024-01-01/part-0.parquet``, into a table.

Source:
    Hive's directory layout; ``org.apache.hadoop.hive.common.FileUtils`` for its escaping.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as arrow

from penstock.datafile.python_values import parse_floats
from penstock.datafile.types import ArrowAny, to_arrow_type
from penstock.errors import NotFoundError, SchemaMismatchError
from penstock.format.text.partitions import DEFAULT_PARTITION_NAME
from penstock.format.types.data_types import AtomicType
from penstock.format.types.text import format_sql_type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.format.types.data_types import DataField
    from penstock.io.file_io import FileIO, FileStatus
    from penstock.table.ref import TableRef

_NULL_NAME: Final = "__HIVE_DEFAULT_PARTITION__"
# Engines leave markers (_SUCCESS) and temporary files (.part-0.parquet.crc, _temporary) next to the data files.
_HIDDEN: Final = ("_", ".")


@dataclass(frozen=True, slots=True, kw_only=True)
class HiveFile:
    """A file to import.

    Attributes:
        partition: partition columns in the table's order with the text of their directory; None for NULL.
    """

    path: str
    size: int
    partition: tuple[tuple[str, str | None], ...]


def plan_hive_import(ref: TableRef, file_io: FileIO, root: str) -> tuple[HiveFile, ...]:
    """List the files to import, sorted by path.

    Args:
        ref: the table; its partition columns are those of the directories, in any order.
        root: the parent directory of the partitions.

    Raises:
        NotFoundError: there is no Parquet file below the directory.
        SchemaMismatchError: the directories are not those of the table's partition columns, or a value does not fit
            its column's type.
    """
    files = tuple(
        replace(file, partition=_in_order(ref, file.partition, file.path))
        for file in files_below(file_io, root)
        if file.path.endswith((".parquet", ".parq"))
    )
    if not files:
        raise NotFoundError(f"{root} holds no Parquet file; check the path (files that begin with _ or . do not count)")
    fields = {field.name: field for field in ref.schema.partition_fields}
    for name, text in {pair for file in files for pair in file.partition}:
        constant_array(fields[name], text, 0)
    return files


def constant_array(field: DataField, text: str | None, rows: int) -> ArrowAny:
    """Return a column that repeats one value, parsed from the text of its partition directory.

    Raises:
        SchemaMismatchError: the text is not a value of the column's type.
    """
    wanted: ArrowAny = to_arrow_type(field.type)
    if text is None:
        return pa.nulls(rows, wanted)
    try:
        one: ArrowAny = pa.array([text])
        if arrow.is_boolean(wanted):
            one = pc.utf8_lower(one)
        if isinstance(field.type, AtomicType) and arrow.is_floating(wanted):
            one = parse_floats(one, field.type, field.name)
        value: ArrowAny = one.cast(wanted)[0]
    except (ValueError, pa.ArrowNotImplementedError) as error:
        raise SchemaMismatchError(
            f"directory {field.name}={text}: '{text}' is not a value of the column's type {format_sql_type(field.type)}"
        ) from error
    return pa.repeat(value, rows)


def files_below(
    file_io: FileIO, directory: str, partition: tuple[tuple[str, str | None], ...] = ()
) -> Iterator[HiveFile]:
    """Yield the files below a directory, except hidden ones; partition columns are in directory order.

    Raises:
        SchemaMismatchError: a directory is not named ``column=value``, or it may be NULL or a text.
    """
    for status in file_io.list(directory):
        if status.name.startswith(_HIDDEN):
            continue
        if status.is_dir:
            yield from files_below(file_io, status.path, (*partition, _partition_of(status)))
        else:
            yield HiveFile(path=status.path, size=status.size, partition=partition)


def _partition_of(status: FileStatus) -> tuple[str, str | None]:
    name, equals, text = status.name.partition("=")
    if not equals:
        raise SchemaMismatchError(
            f"directory {status.path} is not named column=value; name the directory right above the partitions"
        )
    text = unquote(text)
    if text == DEFAULT_PARTITION_NAME:
        raise SchemaMismatchError(
            f"directory {status.path}: {text} is NULL to Flink, but a text to Spark and Hive; if the rows have NULL, "
            f"rename the directory to {name}={_NULL_NAME}"
        )
    return unquote(name), None if text == _NULL_NAME else text


def _in_order(
    ref: TableRef, partition: tuple[tuple[str, str | None], ...], path: str
) -> tuple[tuple[str, str | None], ...]:
    given = dict(partition)
    keys = ref.schema.partition_keys
    if len(given) != len(partition) or set(given) != set(keys):
        found = ", ".join(name for name, _ in partition) or "no partition directories"
        raise SchemaMismatchError(
            f"table {ref.name} is partitioned by {', '.join(keys) or 'nothing'}, but {path} lies below {found}; import "
            "into a table with these partition columns"
        )
    return tuple((name, given[name]) for name in keys)
