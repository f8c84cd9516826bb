"""Sources of a conversion: files, read in this process, and what Spark reads, such as Delta Lake and Iceberg."""

from __future__ import annotations

import json
import re
from contextlib import closing, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import fs

from penstock.api.exchange.csv_files import NULL_CURE, infer_csv_schema, read_csv
from penstock.api.exchange.json_files import infer_json_schema, read_json
from penstock.api.exchange.options import InputOptions
from penstock.api.lazy import lazy_spark
from penstock.datafile.parquet.reader import int96_types, read_with_int96
from penstock.datafile.spark_types import unstored_types
from penstock.datafile.streams import as_native_file
from penstock.errors import InvalidOptionError, NotFoundError, SchemaMismatchError, UnsupportedFeatureError
from penstock.format.types.data_types import DataField
from penstock.table.write.imports import files_below, not_found

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from penstock.format.types.ddl import ColumnSpec
    from penstock.io.file_io import FileIO


class SourceFormat(StrEnum):
    """Formats of a source; Delta Lake, Iceberg and other formats that Spark supports are read by Spark."""

    PARQUET = "parquet"
    ORC = "orc"
    CSV = "csv"
    JSON = "json"
    DELTA = "delta"
    ICEBERG = "iceberg"


_SUFFIXES: Final = {
    ".parquet": SourceFormat.PARQUET,
    ".parq": SourceFormat.PARQUET,
    ".orc": SourceFormat.ORC,
    ".csv": SourceFormat.CSV,
    ".tsv": SourceFormat.CSV,
    ".json": SourceFormat.JSON,
    ".jsonl": SourceFormat.JSON,
    ".ndjson": SourceFormat.JSON,
}
_BATCH_ROWS: Final = 65_536
_WITH_FOOTER: Final = frozenset({SourceFormat.PARQUET, SourceFormat.ORC})
_COMPRESSED: Final = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_INTEGER: Final = re.compile(r"0|-?[1-9]\d{0,18}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A file with rows.

    Attributes:
        partition: partition columns with the texts of their values; None for NULL.
    """

    path: str
    size: int
    format: SourceFormat
    partition: tuple[tuple[str, str | None], ...]


def find_lake(file_io: FileIO, root: str) -> SourceFormat | None:
    """Return the table format of a directory: Delta Lake, Iceberg, or None for plain files."""
    names = {each.name for each in file_io.list(root) if each.is_dir}
    if "_delta_log" in names:
        return SourceFormat.DELTA
    if "metadata" in names and any(each.name.endswith(".metadata.json") for each in file_io.list(f"{root}/metadata")):
        return SourceFormat.ICEBERG
    return None


def list_source(file_io: FileIO, root: str, file_format: SourceFormat | None) -> tuple[SourceFile, ...]:
    """List the files with rows, sorted by path.

    Args:
        file_format: the format of all files, whatever their suffixes are; None to determine it from the suffixes.

    Raises:
        NotFoundError: there are none.
        SchemaMismatchError: a directory is not a partition, or directories have different columns.
        InvalidOptionError: files of several formats.
    """
    files = tuple(
        SourceFile(path=each.path, size=each.size, format=kind, partition=each.partition)
        for each in sorted(files_below(file_io, root), key=lambda file: file.path)
        if (kind := file_format or _format_of(each.path))
    )
    if not files:
        what = f"no file to convert, as no name ends with {', '.join(_SUFFIXES)}; check the path, or give the format"
        raise not_found(file_io, root, what)
    formats = sorted({file.format for file in files})
    if len(formats) > 1:
        raise InvalidOptionError(
            f"{root} holds files of several formats ({', '.join(formats)}): convert one directory for each, or move "
            "the files that hold no rows away"
        )
    keys = {tuple(name for name, _ in file.partition) for file in files}
    if len(keys) > 1:
        found = "; ".join("/".join(each) or "none" for each in sorted(keys))
        raise SchemaMismatchError(
            f"{root}: files have different partition columns in their paths ({found}): move them apart"
        )
    return files


def source_schema(file_io: FileIO, files: Sequence[SourceFile], types: Mapping[str, pa.DataType]) -> pa.Schema:
    """Return columns that fit the rows of all files, from each footer or from the first block of each text file.

    Columns with nothing but NULL are strings. All columns are nullable, as another file may lack them.

    Args:
        types: of some columns, instead of those of the files.

    Raises:
        SchemaMismatchError: a file cannot be read, or has columns of unsupported types or of types that only Spark
            reads, or INT96 columns that are not in ``types``.
    """
    schemas: list[pa.Schema] = []
    for file in files:
        parquet = None
        with _named(file):
            if file.format in _WITH_FOOTER:
                fragment = _fragment(file_io, file)
                schema = fragment.physical_schema
                if file.format is SourceFormat.PARQUET:
                    parquet = fragment.metadata.schema
                    _check_int96(file.path, fragment.metadata, types)
            else:
                with _opened(file_io, file) as stream:
                    schema = _infer(stream, file)
        for name, kind in unstored_types(schema, parquet).items():
            raise SchemaMismatchError(
                f"{file.path}: column '{name}' has values of Spark's type {kind}, which only Spark reads: give a "
                "session, convert(..., spark=spark), or penstock convert --spark local[2]"
            )
        if schema not in schemas:
            schemas.append(schema)
    try:
        schema = pa.unify_schemas(schemas, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise SchemaMismatchError(
            f"the columns of the files differ too much: {error}; give the types with 'types', or convert them apart"
        ) from error
    partition = {name for name, _ in files[0].partition}
    return pa.schema(
        [
            pa.field(field.name, types.get(field.name, pa.string() if pa.types.is_null(field.type) else field.type))
            for field in schema
            if field.name not in partition
        ]
    )


def _check_int96(path: str, metadata: pq.FileMetaData, types: Mapping[str, pa.DataType]) -> None:
    for name, known in int96_types(metadata).items():
        chosen = types.get(name) or known
        if chosen is None or not pa.types.is_timestamp(chosen):
            raise SchemaMismatchError(
                f"{path}: column '{name}' has timestamps of the old type INT96, which does not say whether they are "
                "instants (Spark writes instants, Paimon wall clocks too): give its type, for instants --type "
                f"{name}='TIMESTAMP_LTZ(6)' or types={{'{name}': 'TIMESTAMP_LTZ(6)'}}, for wall clocks --type "
                f"{name}='TIMESTAMP(9)' or types={{'{name}': 'TIMESTAMP(9)'}}; if it is nested, write the files again "
                "with spark.sql.parquet.outputTimestampType=TIMESTAMP_MICROS"
            )


def partition_types(files: Sequence[SourceFile]) -> dict[str, str]:
    """Return a type for each partition column: INT or BIGINT if all values are integers, otherwise STRING.

    Dates are STRING: as strings they sort, prune and name directories in the same way, and engines agree on them.
    """
    types = {}
    for place, (name, _) in enumerate(files[0].partition):
        texts = {text for file in files if (text := file.partition[place][1]) is not None}
        if not texts or not all(_INTEGER.fullmatch(text) for text in texts):
            types[name] = "STRING"
        else:
            types[name] = "INT" if all(abs(int(text)) < 2**31 for text in texts) else "BIGINT"
    return types


def read_file(file_io: FileIO, file: SourceFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file with the columns of a schema; columns that the file lacks are NULL.

    Raises:
        SchemaMismatchError: a value does not fit, or the file is damaged; the message names the file.
    """
    with _named(file):
        if file.format not in _WITH_FOOTER:
            with _opened(file_io, file) as stream:
                for batch in _read_text(stream, file, schema):
                    yield _with_schema(batch, schema)
            return
        fragment = _fragment(file_io, file)
        if file.format is not SourceFormat.PARQUET or not int96_types(fragment.metadata):
            yield from fragment.to_batches(schema=schema, batch_readahead=2)
            return
        types = {field.name: field.type for field in schema}
        with closing(file_io.open_input(file.path)) as opened:
            for batch in read_with_int96(as_native_file(opened), types, batch_rows=_BATCH_ROWS):
                yield _with_schema(batch, schema)


def _with_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    arrays = [
        batch.column(field.name).cast(field.type)
        if field.name in batch.schema.names
        else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def count_rows(file_io: FileIO, file: SourceFile) -> int | None:
    """Return the number of rows of a file from its footer; None if it has no footer, like text files."""
    if file.format not in _WITH_FOOTER:
        return None
    with _named(file):
        rows: int = _fragment(file_io, file).count_rows()
    return rows


class _named:  # noqa: N801 - used like a function
    """Add the name of the file to errors that are raised in the block."""

    def __init__(self, file: SourceFile) -> None:
        self._file = file

    def __enter__(self) -> None:
        return

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, SchemaMismatchError) and self._file.format not in _WITH_FOOTER:
            raise SchemaMismatchError(
                f"{str(error).removesuffix(NULL_CURE)}; nothing was converted: correct it, or give the column another "
                "type, --type name=STRING or types={'name': 'STRING'}"
            ) from error
        if isinstance(error, (pa.ArrowException, ValueError, OSError)) and not isinstance(error, SchemaMismatchError):
            raise SchemaMismatchError(
                f"{self._file.path}: cannot be read as {self._file.format}: {error}; nothing was converted"
            ) from error


def _fragment(file_io: FileIO, file: SourceFile) -> Any:  # noqa: ANN401 - of pyarrow, whose stubs lack it
    chosen: Any = ds.ParquetFileFormat() if file.format is SourceFormat.PARQUET else ds.OrcFileFormat()
    if file_io.is_local:
        return chosen.make_fragment(file.path, fs.LocalFileSystem())
    return chosen.make_fragment(file_io.open_input(file.path))


@contextmanager
def _opened(file_io: FileIO, file: SourceFile) -> Iterator[Any]:
    """Yield the text of a file as a stream."""
    kind: Any = _COMPRESSED.get(PurePosixPath(file.path).suffix.lower())
    with closing(file_io.open_input(file.path)) as opened:
        yield opened if kind is None else pa.CompressedInputStream(as_native_file(opened), kind)


def _infer(stream: Any, file: SourceFile) -> pa.Schema:  # noqa: ANN401 - a file of pyarrow or of Python
    if file.format is SourceFormat.CSV:
        return infer_csv_schema(stream, _text_options(file), file.path)
    return infer_json_schema(stream, file.path)


def _read_text(stream: Any, file: SourceFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:  # noqa: ANN401 - likewise
    if file.format is SourceFormat.CSV:
        return read_csv(stream, schema, _text_options(file), file.path)
    return read_json(stream, schema, file.path)


def _text_options(file: SourceFile) -> InputOptions:
    return InputOptions(delimiter="\t" if ".tsv" in PurePosixPath(file.path).suffixes else ",")


def _format_of(path: str) -> SourceFormat | None:
    suffixes = [each.lower() for each in PurePosixPath(path).suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    return _SUFFIXES.get(suffixes[-1]) if suffixes else None


_PACKAGES: Final = {
    SourceFormat.DELTA: "io.delta:delta-spark_4.2_2.13 (and spark.sql.extensions as its documentation says)",
    SourceFormat.ICEBERG: "org.apache.iceberg:iceberg-spark-runtime for your version of Spark",
}


_WITHOUT_JAR: Final = (
    "DATA_SOURCE_NOT_FOUND",
    "ClassNotFoundException",
    "NoClassDefFoundError",
    "does not have the JAR",
)


def load_with_spark(
    spark: SparkSession | None, file_io: FileIO, source: str, name: SourceFormat, types: Sequence[ColumnSpec] = ()
) -> DataFrame:
    """Return the rows of a table of another format.

    Args:
        types: of columns that are texts in the names of directories, from which Spark otherwise infers them.

    Raises:
        NotFoundError: an Iceberg table has no metadata file.
        UnsupportedFeatureError: there is no session, or it cannot read the format.
    """
    package = _PACKAGES.get(name, f"the JAR that reads {name}")
    if spark is None:
        raise UnsupportedFeatureError(
            f"{source} is a table of {name}, which Spark reads: give a session that has {package}: "
            "convert(..., spark=spark), or penstock convert --spark local[2] --packages group:name:version"
        )
    try:
        if name is SourceFormat.ICEBERG:
            return lazy_spark.read_iceberg(spark, _newest_of_iceberg(file_io, f"{source}/metadata"))
        # Without these, all values of CSV are texts, and the columns are those of one file.
        options = {"header": True, "inferSchema": True, "mergeSchema": True}
        reader = spark.read.format(str(name)).options(**options)
        frame = reader.load(source)
        if not types:
            return frame
        fields = (DataField(id=0, name=each.name, type=each.type) for each in types)
        declared = {field.name: field for field in lazy_spark.to_spark_schema(fields)}
        schema = type(frame.schema)([declared.get(field.name, field) for field in frame.schema])
        return reader.schema(schema).load(source)
    except Exception as error:
        text = str(error)
        if any(sign in text for sign in _WITHOUT_JAR):
            raise UnsupportedFeatureError(
                f"{source} is a table of {name}, which this session of Spark cannot read: put {package} into "
                "spark.jars.packages before the session starts"
            ) from error
        raise


def partition_columns(file_io: FileIO, root: str, name: SourceFormat) -> tuple[str, ...]:
    """Return the columns by which a table is partitioned, without transforms such as ``days(t)``."""
    if name is SourceFormat.DELTA:
        return _of_delta(file_io, f"{root}/_delta_log")
    return _of_iceberg(file_io, f"{root}/metadata") if name is SourceFormat.ICEBERG else ()


def _of_delta(file_io: FileIO, log: str) -> tuple[str, ...]:
    paths = sorted((each.path for each in file_io.list(log) if not each.is_dir), reverse=True)
    for path in paths:
        if path.endswith(".json"):
            actions = (json.loads(line) for line in file_io.read(path).decode().splitlines() if line.strip())
            found = [each["metaData"] for each in actions if "metaData" in each]
        elif path.endswith(".parquet"):
            with file_io.open_input(path) as stream:
                rows = pq.read_table(stream, columns=["metaData"]).column("metaData").to_pylist()
            found = [each for each in rows if each is not None]
        else:
            continue
        if found:
            return tuple(found[-1].get("partitionColumns") or ())
    return ()


def _of_iceberg(file_io: FileIO, directory: str) -> tuple[str, ...]:
    metadata: dict[str, Any] = json.loads(file_io.read(_newest_of_iceberg(file_io, directory)))
    schemas = metadata.get("schemas") or [metadata["schema"]]
    names = {field["id"]: field["name"] for schema in schemas for field in schema["fields"]}
    specs = {each["spec-id"]: each for each in metadata.get("partition-specs", ())}
    fields = specs.get(metadata.get("default-spec-id"), {}).get("fields", ())
    return tuple(names[field["source-id"]] for field in fields if field["transform"] == "identity")


def _newest_of_iceberg(file_io: FileIO, directory: str) -> str:
    """Return the path of the newest metadata file."""
    found = [each for each in file_io.list(directory) if each.name.endswith(".metadata.json")]
    if not found:
        raise NotFoundError(
            f"{directory} has no metadata file of Iceberg (*.metadata.json); give the table's directory"
        )
    return max(found, key=lambda each: (each.modified_millis, each.name)).path
