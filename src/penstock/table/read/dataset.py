"""A planned read as a pyarrow dataset, which DuckDB, Polars and others scan with their own readers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import fs

from penstock.datafile.conform import conform_array
from penstock.datafile.filter import to_scalar
from penstock.datafile.types import has_leaf, to_arrow_schema, to_arrow_type
from penstock.errors import UnsupportedFeatureError
from penstock.format.layout import FileFormat, format_of
from penstock.format.types.data_types import TypeRoot, with_nullability
from penstock.table.read.split import plan_splits
from penstock.table.ref import ExternalPaths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.datafile.types import ArrowAny
    from penstock.format.types.data_types import DataField
    from penstock.table.read.query import Query
    from penstock.table.read.split import DataSplit
    from penstock.table.store import MetadataStore

_FORMATS: Final[dict[FileFormat, Any]] = {FileFormat.PARQUET: ds.ParquetFileFormat}


def to_dataset(query: Query, store: MetadataStore) -> ds.Dataset:
    """Return the files of a plan as a dataset, each with the values of its partition."""
    ref, name = query.ref, query.ref.name
    if not ref.file_io.is_local:
        raise _refusal(name, f"{ref.location} is not a local directory")
    if query.plan.vectors:
        raise _refusal(name, "some rows are deleted by deletion vectors")
    checked: set[int] = set()
    fragments = []
    external, place = ExternalPaths.of(ref), fs.LocalFileSystem()
    variants = [
        field for field in ref.schema.fields if has_leaf(field.type, lambda leaf: leaf.root is TypeRoot.VARIANT)
    ]
    for split in plan_splits(ref, query.plan):
        guarantee = _guarantee(ref.schema.partition_fields, split)
        for file in split.files:
            file_format = _FORMATS.get(format_of(file.file_name))
            if file_format is None:
                raise _refusal(name, f"{file.file_name} is not a Parquet file")
            if file.schema_id not in checked:
                _check_columns(name, store.load_schema(file.schema_id).fields, ref.schema.fields)
                checked.add(file.schema_id)
            path = split.path_of(file, external)
            fragment = file_format().make_fragment(path, place, partition_expression=guarantee)
            _check_variants(name, fragment, variants)
            fragments.append(fragment)
    schema = to_arrow_schema(ref.schema.fields)
    return ds.FileSystemDataset(fragments, schema, ds.ParquetFileFormat(), place)


def _guarantee(fields: Sequence[DataField], split: DataSplit) -> ArrowAny:
    """Return an expression that is true for all rows of a split.

    By it filters prune files of other partitions, and files that lack the partition columns get their values.
    """
    known = ds.scalar(True)  # noqa: FBT003 - an expression
    for field, value in zip(fields, split.values, strict=True):
        column = ds.field(field.name)
        known &= column.is_null() if value is None else column == to_scalar(value, to_arrow_type(field.type))
    return known


def _check_columns(table: str, stored: Sequence[DataField], wanted: Sequence[DataField]) -> None:
    by_id, names = {field.id: field for field in stored}, {field.name for field in stored}
    for field in wanted:
        old = by_id.get(field.id)
        if old is None and field.name not in names:
            continue  # added later: NULL in these files
        if (
            old is None
            or old.name != field.name
            or with_nullability(old.type, nullable=True) != with_nullability(field.type, nullable=True)
        ):
            raise _refusal(table, f"column '{field.name}' had another name or type when older files were written")


def _check_variants(table: str, fragment: ds.Fragment, variants: Sequence[DataField]) -> None:
    """Refuse a file with parts of a VARIANT that Arrow would drop to get the type of the column."""
    stored = fragment.physical_schema if variants else pa.schema([])
    for field in variants:
        if field.name in stored.names:
            try:
                conform_array(pa.array([], stored.field(field.name).type), field.type)
            except UnsupportedFeatureError as error:
                raise UnsupportedFeatureError(f"table {table}: column '{field.name}': {error}") from error


def _refusal(table: str, reason: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"table {table}: to_dataset: {reason}; to_arrow(filter=...) and to_batches(filter=...) read it, and prune too"
    )
