"""Hypothesis strategies for the content of metadata files: types, columns, schemas, snapshots, tags.

All values are valid in the format; they include unusual names and extreme values.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from penstock.format.schema import TableSchema, assign_field_ids, is_system_name
from penstock.format.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from penstock.format.tag import Tag
from penstock.format.text.json import format_json
from penstock.format.types.data_types import (
    MAX_LENGTH,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VectorType,
    decimal_type,
    time_type,
    timestamp_type,
)
from penstock.format.types.ddl import ColumnSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

_PLAIN_ROOTS: Final = (
    TypeRoot.BOOLEAN,
    TypeRoot.TINYINT,
    TypeRoot.SMALLINT,
    TypeRoot.INT,
    TypeRoot.BIGINT,
    TypeRoot.FLOAT,
    TypeRoot.DOUBLE,
    TypeRoot.DATE,
)
_SIZED_ROOTS: Final = (TypeRoot.CHAR, TypeRoot.VARCHAR, TypeRoot.BINARY, TypeRoot.VARBINARY)
_PARTITION_ROOTS: Final = (
    *_PLAIN_ROOTS,
    TypeRoot.CHAR,
    TypeRoot.VARCHAR,
    TypeRoot.DECIMAL,
    TypeRoot.TIME,
    TypeRoot.TIMESTAMP,
    TypeRoot.TIMESTAMP_LTZ,
)


def names() -> st.SearchStrategy[str]:
    """Column names: mostly plain words, sometimes any text that is not blank."""
    plain = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
    awkward = st.text(min_size=1, max_size=8).filter(lambda name: bool(name.strip()))
    return st.one_of(plain, plain, awkward).filter(lambda name: not is_system_name(name))


def long_integers() -> st.SearchStrategy[int]:
    """Any 64-bit integer."""
    return st.integers(-(2**63), 2**63 - 1)


# Types


@st.composite
def _decimal_types(draw: st.DrawFn) -> AtomicType:
    precision = draw(st.integers(1, 38))
    return decimal_type(precision, draw(st.integers(0, precision)))


def _nullable_atomic_types() -> st.SearchStrategy[AtomicType]:
    lengths = st.one_of(st.integers(1, 300), st.just(MAX_LENGTH))
    precisions = st.integers(0, 9)
    return st.one_of(
        st.sampled_from([AtomicType(root=root) for root in _PLAIN_ROOTS]),
        st.builds(AtomicType, root=st.sampled_from(_SIZED_ROOTS), length=lengths),
        _decimal_types(),
        precisions.map(time_type),
        st.builds(timestamp_type, precisions, local_zone=st.booleans()),
        st.just(AtomicType(root=TypeRoot.VARIANT)),
    )


def atomic_types() -> st.SearchStrategy[AtomicType]:
    """Types without element types, nullable or not; without the types that append tables refuse."""
    return st.tuples(_nullable_atomic_types(), st.booleans()).map(lambda drawn: replace(drawn[0], nullable=drawn[1]))


def data_types(*, max_leaves: int = 6) -> st.SearchStrategy[DataType]:
    """Types of any shape with up to about ``max_leaves`` atomic types; ids of ROW fields count from 0."""
    return st.recursive(atomic_types(), _nested_types, max_leaves=max_leaves)


def _nested_types(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
    nullable = st.booleans()
    return st.one_of(
        st.builds(ArrayType, element=inner, nullable=nullable),
        st.builds(MultisetType, element=inner, nullable=nullable),
        st.builds(MapType, key=inner, value=inner, nullable=nullable),
        st.builds(VectorType, element=inner, length=st.integers(1, 1_000), nullable=nullable),
        st.builds(RowType, fields=_row_fields(inner), nullable=nullable),
    )


def _row_fields(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[tuple[DataField, ...]]:
    column = st.tuples(names(), inner, st.none() | st.text(max_size=10))
    return st.lists(column, max_size=3, unique_by=lambda column: column[0]).map(
        lambda columns: tuple(
            DataField(id=place, name=name, type=data_type, description=description)
            for place, (name, data_type, description) in enumerate(columns)
        )
    )


# Columns and schemas


def columns(types: st.SearchStrategy[DataType] | None = None) -> st.SearchStrategy[list[ColumnSpec]]:
    """Lists of one to six columns with unique names; of any type, or of the given ``types``."""
    column = st.builds(
        ColumnSpec,
        name=names(),
        type=data_types() if types is None else types,
        description=st.none() | st.text(max_size=10),
        default_value=st.none() | st.text(max_size=10),
    )
    return st.lists(column, min_size=1, max_size=6, unique_by=lambda column: column.name)


def fields(types: st.SearchStrategy[DataType] | None = None) -> st.SearchStrategy[tuple[DataField, ...]]:
    """Numbered columns of a new table."""
    return columns(types).map(lambda drawn: assign_field_ids(drawn)[0])


@st.composite
def schemas(draw: st.DrawFn, *, types: st.SearchStrategy[DataType] | None = None) -> TableSchema:
    """Schemas of append tables in the current version; options are arbitrary texts."""
    numbered, highest = assign_field_ids(draw(columns(types)))
    options = draw(st.dictionaries(st.text(min_size=1, max_size=12), st.text(max_size=12), max_size=4))
    return TableSchema(
        id=draw(st.integers(0, 1_000)),
        fields=numbered,
        highest_field_id=highest + draw(st.integers(0, 3)),  # as after dropped columns
        partition_keys=draw(_partition_keys(numbered)),
        options=tuple(options.items()),
        comment=draw(st.none() | st.text(max_size=10)),
        time_millis=draw(st.integers(0, 2**53)),
    )


def _partition_keys(numbered: Sequence[DataField]) -> st.SearchStrategy[tuple[str, ...]]:
    fit = [
        field.name for field in numbered if isinstance(field.type, AtomicType) and field.type.root in _PARTITION_ROOTS
    ]
    return st.lists(st.sampled_from(fit), max_size=2, unique=True).map(tuple) if fit else st.just(())


# Snapshots and tags


def _json_values() -> st.SearchStrategy[object]:
    scalars = st.one_of(st.none(), st.booleans(), long_integers(), st.text(max_size=8))
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=5,
    )


def _unknown_keys() -> st.SearchStrategy[tuple[tuple[str, str], ...]]:
    keys = st.from_regex(r"later[A-Z][a-z]{0,5}", fullmatch=True)
    return st.dictionaries(keys, _json_values(), max_size=2).map(
        lambda drawn: tuple((key, format_json(value)) for key, value in drawn.items())
    )


def file_names() -> st.SearchStrategy[str]:
    """Names that a file in one directory can have."""
    characters = st.characters(codec="utf-8", exclude_characters="/\\", exclude_categories=["Cc"])
    return st.text(characters, min_size=1, max_size=20).filter(lambda name: name not in {".", ".."})


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """Snapshots with any of the optional keys, and keys of future versions."""
    text = st.text(max_size=12)
    maybe_text = st.none() | text
    maybe_file = st.none() | file_names()
    maybe_long = st.none() | long_integers()
    names_of_lists = st.uuids().map(lambda uuid: f"manifest-list-{uuid}-0")
    properties = draw(st.dictionaries(text, text, max_size=3))
    return Snapshot(
        id=draw(st.integers(1, 2**63 - 2)),
        schema_id=draw(st.integers(0, 1_000)),
        base_manifest_list=draw(names_of_lists),
        base_manifest_list_size=draw(maybe_long),
        delta_manifest_list=draw(names_of_lists),
        delta_manifest_list_size=draw(maybe_long),
        changelog_manifest_list=draw(maybe_file),
        changelog_manifest_list_size=draw(maybe_long),
        index_manifest=draw(maybe_file),
        commit_user=draw(text),
        commit_identifier=draw(st.just(BATCH_COMMIT_IDENTIFIER) | long_integers()),
        commit_kind=draw(st.sampled_from(CommitKind)),
        time_millis=draw(st.integers(0, 2**53)),
        total_record_count=draw(maybe_long),
        delta_record_count=draw(maybe_long),
        changelog_record_count=draw(maybe_long),
        watermark=draw(maybe_long),
        statistics=draw(maybe_file),
        properties=tuple(properties.items()),
        next_row_id=draw(maybe_long),
        uuid=draw(maybe_text),
        writer_version=draw(maybe_text),
        operation=draw(maybe_text),
        version=draw(st.integers(1, 3)),
        extra=draw(_unknown_keys()),
    )


def tags() -> st.SearchStrategy[Tag]:
    """Tags with and without a retention; created between the years 1900 and 2200."""
    return st.builds(
        Tag,
        snapshot=snapshots(),
        create_time=st.none() | st.integers(-2_208_988_800 * 10**9, 7_258_118_400 * 10**9),
        retained_seconds=st.none() | st.integers(0, 10**27 - 1).map(lambda nanos: Decimal(nanos).scaleb(-9)),
    )
