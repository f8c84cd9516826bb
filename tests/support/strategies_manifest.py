"""Hypothesis strategies for the content of manifests: internal values, rows, statistics, entries, manifest metas."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, assert_never

from hypothesis import strategies as st
from tests.support.strategies import file_names

from penstock.format.manifest.entry import (
    EMPTY_ROW,
    EMPTY_STATS,
    DataFileMeta,
    FileKind,
    FileSource,
    ManifestEntry,
    ManifestFileMeta,
    SimpleStats,
)
from penstock.format.types.data_types import (
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VectorType,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

# 0001-01-01 to 9999-12-31 in ns.
_FIRST_NANOS: Final = -62_135_596_800 * 10**9
_LAST_NANOS: Final = 253_402_300_799 * 10**9

_INTEGER_BITS: Final = {
    TypeRoot.TINYINT: 8,
    TypeRoot.SMALLINT: 16,
    TypeRoot.INT: 32,
    TypeRoot.DATE: 32,
    TypeRoot.BIGINT: 64,
}


def values(data_type: DataType) -> st.SearchStrategy[Any]:
    """Internal values of a type, with nulls if it is nullable; without NaN, which equals no value."""
    some = _values(data_type)
    return st.none() | some if data_type.nullable else some


def rows(types: Sequence[DataType]) -> st.SearchStrategy[tuple[object, ...]]:
    """Rows of internal values."""
    return st.tuples(*map(values, types))


def _values(data_type: DataType) -> st.SearchStrategy[Any]:
    match data_type:
        case AtomicType():
            return _atomic_values(data_type)
        case ArrayType(element=element):
            return st.lists(values(element), max_size=3)
        case VectorType(element=element, length=length):
            return st.lists(_values(element), min_size=length, max_size=length)
        case MapType(key=key, value=value):
            return st.lists(st.tuples(values(key), values(value)), max_size=3)
        case MultisetType(element=element):
            return st.lists(st.tuples(values(element), st.integers(1, 2**31 - 1)), max_size=3)
        case RowType(fields=fields):
            return rows([field.type for field in fields])
        case other:
            assert_never(other)


def _atomic_values(data_type: AtomicType) -> st.SearchStrategy[Any]:
    if bits := _INTEGER_BITS.get(data_type.root):
        return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    match data_type.root:
        case TypeRoot.DECIMAL:
            return _decimals(data_type.precision or 10, data_type.scale or 0)
        case TypeRoot.TIMESTAMP | TypeRoot.TIMESTAMP_LTZ:
            step = 10 ** (9 - (data_type.precision or 0))
            return st.integers(_FIRST_NANOS // step, _LAST_NANOS // step).map(lambda count: count * step)
        case TypeRoot.CHAR | TypeRoot.VARCHAR | TypeRoot.BINARY | TypeRoot.VARBINARY:
            # Around the largest length of a value that is stored inline in its slot.
            longest = min(data_type.length or 1, 20)
            is_text = data_type.root in (TypeRoot.CHAR, TypeRoot.VARCHAR)
            return st.text(max_size=longest) if is_text else st.binary(max_size=longest)
        case root:
            return _OTHER_VALUES[root]


_OTHER_VALUES: Final[dict[TypeRoot, st.SearchStrategy[Any]]] = {
    TypeRoot.BOOLEAN: st.booleans(),
    TypeRoot.FLOAT: st.floats(width=32, allow_nan=False),
    TypeRoot.DOUBLE: st.floats(allow_nan=False),
    TypeRoot.TIME: st.integers(0, 86_399_999),
    TypeRoot.VARIANT: st.tuples(st.binary(max_size=12), st.binary(max_size=12)),
}


def _decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    limit = 10**precision - 1
    small = st.integers(-min(limit, 300), min(limit, 300))
    return (small | st.integers(-limit, limit)).map(lambda number: Decimal(f"{number}e-{scale}"))


def simple_stats() -> st.SearchStrategy[SimpleStats]:
    """Statistics as bytes with any content."""
    some = st.builds(
        SimpleStats,
        min_values=st.binary(max_size=40),
        max_values=st.binary(max_size=40),
        null_counts=st.lists(st.none() | st.integers(0, 2**40), max_size=4).map(tuple),
    )
    return st.just(EMPTY_STATS) | some


def _serialized_rows() -> st.SearchStrategy[bytes]:
    return st.just(EMPTY_ROW) | st.binary(min_size=12, max_size=40)


def _names() -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.text(max_size=8), max_size=4).map(tuple)


def _maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def _longs() -> st.SearchStrategy[int]:
    # Most counts in manifests are small; all lengths of Avro's numbers occur.
    return st.integers(0, 300) | st.integers(-(2**63), 2**63 - 1)


def _ints() -> st.SearchStrategy[int]:
    return st.integers(-1, 300) | st.integers(-(2**31), 2**31 - 1)


@st.composite
def data_files(draw: st.DrawFn) -> DataFileMeta:
    """Files with any of the optional fields."""
    return DataFileMeta(
        file_name=draw(file_names()),
        file_size=draw(_longs()),
        row_count=draw(_longs()),
        min_sequence_number=draw(_longs()),
        max_sequence_number=draw(_longs()),
        schema_id=draw(_longs()),
        value_stats=draw(simple_stats()),
        value_stats_cols=draw(_maybe(_names())),
        min_key=draw(_serialized_rows()),
        max_key=draw(_serialized_rows()),
        key_stats=draw(simple_stats()),
        level=draw(_ints()),
        extra_files=draw(st.lists(file_names(), max_size=4).map(tuple)),
        creation_millis=draw(_maybe(_longs())),
        delete_row_count=draw(_maybe(_longs())),
        embedded_file_index=draw(_maybe(st.binary(max_size=20))),
        file_source=draw(_maybe(st.sampled_from(FileSource))),
        external_path=draw(_maybe(st.text(max_size=20))),
        first_row_id=draw(_maybe(_longs())),
        write_cols=draw(_maybe(_names())),
    )


def manifest_entries() -> st.SearchStrategy[ManifestEntry]:
    """Entries of any kind."""
    return st.builds(
        ManifestEntry,
        kind=st.sampled_from(FileKind),
        partition=_serialized_rows(),
        bucket=_ints(),
        total_buckets=_ints(),
        file=data_files(),
    )


def manifest_metas() -> st.SearchStrategy[ManifestFileMeta]:
    """Manifest metas, the entries of manifest lists."""
    return st.builds(
        ManifestFileMeta,
        file_name=file_names(),
        file_size=_longs(),
        num_added_files=_longs(),
        num_deleted_files=_longs(),
        partition_stats=simple_stats(),
        schema_id=_longs(),
        min_bucket=_maybe(_ints()),
        max_bucket=_maybe(_ints()),
        min_level=_maybe(_ints()),
        max_level=_maybe(_ints()),
        min_row_id=_maybe(_longs()),
        max_row_id=_maybe(_longs()),
    )
