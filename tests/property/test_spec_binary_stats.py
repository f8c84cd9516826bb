"""Statistics never say less than the rows: what is cut still is a range, and what is stored comes back."""

import re

from hypothesis import given
from hypothesis import strategies as st
from tests.support import strategies, strategies_manifest

from penstock.errors import FormatError
from penstock.format.manifest.entry import EMPTY_STATS
from penstock.format.manifest.stats import (
    ColumnStats,
    StatsKind,
    StatsMode,
    build_stats,
    decode_stats,
    partition_stats,
    truncate_stats,
)
from penstock.format.row.row import decode_row, encode_row
from penstock.format.types.data_types import INT, STRING, AtomicType, DataField, DataType, TypeRoot, timestamp_type

MODES = st.one_of(
    st.sampled_from([StatsKind.NONE, StatsKind.COUNTS, StatsKind.FULL]).map(lambda kind: StatsMode(kind=kind)),
    st.builds(StatsMode, kind=st.just(StatsKind.TRUNCATE), length=st.integers(1, 20)),
)
# Near the ends of Unicode and of its gap, where a maximum is hard to raise.
TEXTS = st.text("ab\x7f\ud7ff\ue000\uffff\U0010ffff", max_size=6) | st.text(max_size=12)
BLOBS = st.binary(max_size=6) | st.lists(st.sampled_from([0, 0x7F, 0x80, 0xFE, 0xFF]), max_size=6).map(bytes)


@given(st.lists(TEXTS, min_size=1) | st.lists(BLOBS, min_size=1), st.integers(1, 6))
def test_a_cut_range_still_holds_every_value(values: list[str] | list[bytes], length: int) -> None:
    cut = truncate_stats(ColumnStats(min=min(values), max=max(values), null_count=0), length)
    if cut.max is None:
        assert cut.min is None
        whole = max(values)
        assert whole[:length] in ("\U0010ffff" * length, b"\xff" * length)
        return
    for value in values:
        assert cut.min <= value <= cut.max  # type: ignore[operator]  # values of one kind
        if isinstance(value, str):
            # Readers compare UTF-8.
            assert str(cut.min).encode() <= value.encode() <= str(cut.max).encode()
    assert len(cut.min) <= length  # type: ignore[arg-type]  # text or bytes
    assert len(cut.max) <= length  # type: ignore[arg-type]  # text or bytes


@st.composite
def columns(draw: st.DrawFn) -> tuple[tuple[DataField, ...], list[ColumnStats | None], list[StatsMode]]:
    types = [t for t in draw(st.lists(strategies.atomic_types(), max_size=6)) if t.root is not TypeRoot.VARIANT]
    fields = tuple(DataField(id=place, name=f"c{place}", type=data_type) for place, data_type in enumerate(types))
    known = [
        st.builds(
            ColumnStats,
            min=strategies_manifest.values(data_type),
            max=strategies_manifest.values(data_type),
            null_count=st.none() | st.integers(0, 2**40),
        )
        for data_type in types
    ]
    return (
        fields,
        [draw(st.none() | column) for column in known],
        draw(st.lists(MODES, min_size=len(types), max_size=len(types))),
    )


@given(drawn=columns(), dense=st.booleans())
def test_what_the_mode_keeps_comes_back(
    drawn: tuple[tuple[DataField, ...], list[ColumnStats | None], list[StatsMode]], *, dense: bool
) -> None:
    fields, stats, modes = drawn
    stored, cols = build_stats(fields, stats, modes, dense=dense)
    view = decode_stats(stored, cols, fields)
    assert (cols is None and bool(fields)) or len(cols or ()) < len(fields) or not fields
    for field, column, mode in zip(fields, stats, modes, strict=True):
        found = view.get(field.name, ColumnStats())
        is_binary = isinstance(field.type, AtomicType) and field.type.root in (TypeRoot.BINARY, TypeRoot.VARBINARY)
        if column is None or mode.kind is StatsKind.NONE:
            assert found == ColumnStats()
            assert not dense or field.name not in view
            continue
        assert found.null_count == column.null_count
        if mode.kind is StatsKind.COUNTS or is_binary:
            assert (found.min, found.max) == (None, None)
        elif mode.kind is StatsKind.FULL:
            assert found == column
        else:
            assert found == truncate_stats(column, mode.length)


@given(st.text(max_size=15) | st.from_regex(re.compile(r"truncate\(\d{1,3}\)", re.IGNORECASE), fullmatch=True))
def test_modes_parse_or_say_what_was_expected(text: str) -> None:
    try:
        mode = StatsMode.parse(text)
    except ValueError as error:
        assert "expected 'none'" in str(error)  # noqa: PT017 - both outcomes are fine
    else:
        assert (mode.length > 0) == (mode.kind is StatsKind.TRUNCATE)


PARTITION_TYPES: tuple[DataType, ...] = (INT, STRING, timestamp_type(6))


@given(st.lists(strategies_manifest.rows(PARTITION_TYPES), min_size=1, max_size=10))
def test_partition_statistics_are_those_of_the_rows(rows: list[tuple[object, ...]]) -> None:
    stats = partition_stats([encode_row(row, PARTITION_TYPES) for row in rows], PARTITION_TYPES)
    low, high = decode_row(stats.min_values, PARTITION_TYPES), decode_row(stats.max_values, PARTITION_TYPES)
    for place in range(len(PARTITION_TYPES)):
        known = [row[place] for row in rows if row[place] is not None]
        assert stats.null_counts[place] == len(rows) - len(known)
        assert low[place] == min(known, default=None)  # type: ignore[type-var]  # values of one type
        assert high[place] == max(known, default=None)  # type: ignore[type-var]  # values of one type


@given(strategies_manifest.simple_stats(), st.none() | st.lists(st.sampled_from(["a", "b", "z"])).map(tuple))
def test_statistics_of_any_bytes_raise_our_errors_only(stats: object, cols: tuple[str, ...] | None) -> None:
    fields = (DataField(id=0, name="a", type=INT), DataField(id=1, name="b", type=STRING))
    try:
        assert set(dict(decode_stats(stats, cols, fields))) <= {"a", "b"}  # type: ignore[arg-type]
    except FormatError:
        assert stats != EMPTY_STATS
