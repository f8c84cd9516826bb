"""Export of rows to a directory of Parquet files."""

from __future__ import annotations

import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from penstock.api.arguments import FUNCTION, LOCATION, NAMES, NONE, accepts, instance_of, no_progress
from penstock.api.table import Table
from penstock.errors import AlreadyExistsError, FormatError, UnsupportedFeatureError
from penstock.format.layout import escape_path_name
from penstock.io.failures import to_storage_error
from penstock.io.resolve import resolve
from penstock.printable import Result

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator
    from typing import Unpack

    from penstock.api.arguments import Filter, Names, Options, Progress
    from penstock.api.reads import ReadAt


# Spark fails on a directory `p=`, and reads the other one as NULL.
_NO_NAMES: Final = ("", "__HIVE_DEFAULT_PARTITION__")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ParquetExport(Result):
    """The result of an export.

    Attributes:
        rows: in all files, according to their footers; equals the number of rows read from the table.
    """

    directory: str
    files: int
    bytes: int
    rows: int


@accepts(table=instance_of(Table), directory=LOCATION, columns=NAMES | NONE, progress=FUNCTION)
def export_parquet(
    table: Table,
    directory: str | os.PathLike[str],
    columns: Names | None = None,
    filter: Filter | None = None,
    *,
    options: Options | None = None,
    progress: Progress = no_progress,
    **at: Unpack[ReadAt],
) -> ParquetExport:
    """Write rows of a table as Parquet files, in directories such as ``dt=2026-01-01`` for its partition columns.

    All or nothing: files are written to a temporary directory and counted by their footers, then the directory is
    renamed.

    Args:
        directory: a local one that does not exist yet, or is empty.
        columns: names in the desired order; None for all. A partition column that is not included creates no
            directories.
        filter: as for ``Table.to_arrow``.
        progress: called with the number of rows written so far.
        **at: the snapshot, as for ``Table.to_arrow``.

    Raises:
        AlreadyExistsError: the directory is not empty.
        UnsupportedFeatureError: an object store.
        NotFoundError: no such snapshot, tag or column.
        StorageError: the directory cannot be written.
        UnsupportedFeatureError: a partition has a text that no directory can have.
        FormatError: the files do not have as many rows as were read; they were removed.
    """
    file_io, path = resolve(str(directory))
    if not file_io.is_local:
        raise UnsupportedFeatureError(
            f"table {table.name}: export writes to a local directory, not to {path}: with Spark, "
            f"table.to_spark(spark).write.parquet('{path}') writes there"
        )
    target = Path(path)
    reader = table.to_batches(columns, filter, options=options, **at)
    keys = [name for name in table.schema.partition_keys if name in reader.schema.names]
    made = target.with_name(f".{target.name}.{uuid.uuid4()}.tmp")
    try:
        if target.exists() and any(target.iterdir()):
            raise AlreadyExistsError(f"table {table.name}: {target} has files already: export into a new directory")
        made.mkdir(parents=True)
    except OSError as error:
        raise to_storage_error("write", str(target), error, creating=True) from error
    try:
        read = _write(reader, made, keys, table.name, progress)
        _rename(made, keys)
        files = sorted(made.rglob("*.parquet"))
        rows = sum(pq.read_metadata(file).num_rows for file in files)
        if rows != read:
            raise FormatError(f"table {table.name}: {rows} rows were written, but {read} read; nothing was exported")
        size = sum(file.stat().st_size for file in files)
        if target.exists():
            target.rmdir()
        made.rename(target)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return ParquetExport(directory=str(target), files=len(files), bytes=size, rows=rows)


def _write(reader: pa.RecordBatchReader, directory: Path, keys: list[str], table: str, progress: Progress) -> int:
    rows = 0
    texts = [key for key in keys if reader.schema.field(key).type == pa.string()]

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal rows
        for batch in reader:
            for key in texts:
                found = pc.is_in(batch.column(key), pa.array(_NO_NAMES)).index(True).as_py()
                if found >= 0:
                    raise UnsupportedFeatureError(
                        f"table {table}: no directory can be named by the text '{batch.column(key)[found]}' of its "
                        f"partition column '{key}': give filter, which leaves it out, or columns without '{key}'"
                    )
            rows += batch.num_rows
            progress(rows, None)
            yield batch

    partitioning = ds.partitioning(pa.schema([reader.schema.field(key) for key in keys]), flavor="hive")
    ds.write_dataset(
        counted(),
        directory,
        schema=reader.schema,
        format="parquet",
        partitioning=partitioning if keys else None,
        basename_template="part-{i}.parquet",
        max_partitions=100_000,
    )
    return rows


def _rename(directory: Path, keys: list[str]) -> None:
    """Give directories the names that Spark gives them, which reads the 'é' that Arrow escapes as two letters."""
    made = sorted((path for path in directory.rglob("*") if path.is_dir()), reverse=True)
    for path in made:
        key = keys[len(path.relative_to(directory).parts) - 1]
        value = escape_path_name(unquote(path.name.removeprefix(f"{key}=")))
        path.rename(path.with_name(f"{escape_path_name(key)}={value}"))
