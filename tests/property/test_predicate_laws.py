"""One filter, four answers that must agree: a plain model in Python, row evaluation, Arrow, and pruning."""

from __future__ import annotations

import datetime as dt
import math
import operator
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.datafile.filter import filter_batch, row_mask
from penstock.datafile.types import to_arrow_schema
from penstock.format.manifest import column_steps, columns
from penstock.format.manifest.columns import decode_manifest_columns
from penstock.format.manifest.entry import EMPTY_ROW, DataFileMeta, FileKind, ManifestEntry
from penstock.format.manifest.files import encode_manifest
from penstock.format.manifest.stats import ColumnStats, StatsMode, build_stats, truncate_stats
from penstock.format.schema import TableSchema
from penstock.format.types.data_types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    FLOAT,
    STRING,
    TINYINT,
    DataField,
    decimal_type,
    time_type,
    timestamp_type,
)
from penstock.predicate.bind import bind
from penstock.predicate.evaluate import allowed_values, evaluate, may_match, residual
from penstock.predicate.tree import (
    FALSE,
    TRUE,
    UNKNOWN,
    And,
    Compare,
    Constant,
    In,
    IsNull,
    Not,
    Operator,
    Or,
    Predicate,
    StartsWith,
    col,
)
from penstock.table.read.prune import StatsPruner
from penstock.table.read.prune_columns import CANNOT, MAY, ColumnsPruner, GroupBounds

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import SearchStrategy

    from penstock.format.avro.columns import Cursor
    from penstock.format.manifest.columns import ManifestColumns
    from penstock.predicate.tree import BoundPredicate

Row = dict[str, Any]

# Few distinct values, so that filters and rows meet; among them those that are hard to get right.
_NUMBERS: Final = st.sampled_from([-129, -1, 0, 1, 2, 127, 128, 2**63, Decimal("1.5"), Decimal("-0.25"), 0.5, -1e30])
_FLOATS: Final = st.sampled_from([math.nan, -math.inf, math.inf, -0.0, 0.0, 0.5, 1.0, -2.0])
_TEXTS: Final = st.text("ab%\U0010ffff", max_size=4)
_DATES: Final = st.sampled_from([dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 2, 29)])
_TIMES: Final = st.sampled_from([dt.time(0), dt.time(12, 0, 0, 1000), dt.time(23, 59, 59, 999_000)])
_SECOND: Final = dt.datetime(1969, 12, 31, 23, 59, 59)  # noqa: DTZ001 - a wall clock
_MOMENTS: Final = st.sampled_from([_SECOND, _SECOND + dt.timedelta(milliseconds=1), _SECOND + dt.timedelta(days=1)])

# Column: its type, values of rows, literals of filters (some of which no row can hold).
COLUMNS: Final[dict[str, tuple[Any, SearchStrategy[Any], SearchStrategy[Any]]]] = {
    "tiny": (TINYINT, st.sampled_from([-128, -1, 0, 1, 2, 127]), _NUMBERS),
    "big": (BIGINT, st.sampled_from([-(2**63), -1, 0, 1, 2, 2**63 - 1]), _NUMBERS),
    "price": (decimal_type(4, 2), st.sampled_from([Decimal("-99.99"), Decimal("0.00"), Decimal("1.50")]), _NUMBERS),
    "f": (FLOAT, _FLOATS, _FLOATS),
    "d": (DOUBLE, _FLOATS, _FLOATS),
    "s": (STRING, _TEXTS, _TEXTS),
    "raw": (BYTES, st.binary(max_size=2), st.binary(max_size=2)),
    "ok": (BOOLEAN, st.booleans(), st.booleans()),
    "day": (DATE, _DATES, _DATES),
    "at": (time_type(3), _TIMES, _TIMES),
    "ts": (timestamp_type(3), _MOMENTS, _MOMENTS | _MOMENTS.map(lambda moment: moment + dt.timedelta(microseconds=1))),
    "ltz": (
        timestamp_type(6, local_zone=True),
        _MOMENTS.map(lambda moment: moment.replace(tzinfo=dt.UTC)),
        _MOMENTS.map(lambda moment: moment.replace(tzinfo=dt.UTC)),
    ),
}
FIELDS: Final = tuple(DataField(id=i, name=name, type=COLUMNS[name][0]) for i, name in enumerate(COLUMNS))
SCHEMA: Final = to_arrow_schema(FIELDS)
TABLE_SCHEMA: Final = TableSchema(id=0, fields=FIELDS, highest_field_id=len(FIELDS))

rows = st.lists(st.fixed_dictionaries({name: st.none() | column[1] for name, column in COLUMNS.items()}), max_size=6)


def leaf_of(name: str) -> SearchStrategy[Predicate]:
    literals = COLUMNS[name][2]
    leaves: list[SearchStrategy[Any]] = [
        st.builds(Compare, column=st.just(name), operator=st.sampled_from(Operator), value=st.none() | literals),
        st.builds(
            In,
            column=st.just(name),
            values=st.lists(st.none() | literals, min_size=1, max_size=3).map(tuple),
            negated=st.booleans(),
        ),
        st.builds(IsNull, column=st.just(name), negated=st.booleans()),
    ]
    if name == "s":
        leaves.append(st.builds(StartsWith, column=st.just(name), prefix=_TEXTS, negated=st.booleans()))
    return st.one_of(leaves)


leaf_filters = st.sampled_from(sorted(COLUMNS)).flatmap(leaf_of)
filters: SearchStrategy[Predicate] = st.recursive(
    leaf_filters | st.sampled_from([TRUE, FALSE, UNKNOWN]),
    lambda inner: st.one_of(
        st.builds(Not, operand=inner),
        st.builds(And, operands=st.lists(inner, max_size=3).map(tuple)),
        st.builds(Or, operands=st.lists(inner, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)

# ------------------------------------------------------------------ the model: SQL's logic on plain Python values

_MODEL_OPERATORS: Final[dict[Operator, Callable[[Any, Any], bool]]] = {
    Operator.EQ: operator.eq,
    Operator.NE: operator.ne,
    Operator.LT: operator.lt,
    Operator.LE: operator.le,
    Operator.GT: operator.gt,
    Operator.GE: operator.ge,
}


def rank(value: Any) -> tuple[bool, Any]:
    """NaN above everything, and equal to itself."""
    return (True, 0) if isinstance(value, float) and math.isnan(value) else (False, value)


def compare(value: Any, sign: Operator, literal: Any) -> bool | None:
    if value is None or literal is None:
        return None
    return _MODEL_OPERATORS[sign](rank(value), rank(literal))


Answer = bool | None


def model_not(answer: Answer) -> Answer:
    return None if answer is None else not answer


def model_any(answers: list[bool | None]) -> bool | None:
    return True if True in answers else None if None in answers else False


def model(node: Predicate, row: Row) -> Answer:
    match node:
        case Constant(value=value):
            answer = value
        case Not(operand=operand):
            answer = model_not(model(operand, row))
        case Or(operands=operands):
            answer = model_any([model(each, row) for each in operands])
        case And(operands=operands):
            answer = model_not(model_any([model_not(model(each, row)) for each in operands]))
        case Compare(column=column, operator=sign, value=literal):
            answer = compare(row[column], sign, literal)
        case IsNull(column=column):
            answer = row[column] is None
        case In(column=column, values=values):
            answer = model_any([compare(row[column], Operator.EQ, each) for each in values])
        case StartsWith(column=column, prefix=prefix):
            answer = None if row[column] is None else row[column].startswith(prefix)
    return model_not(answer) if getattr(node, "negated", False) else answer


# ------------------------------------------------------------------ the same rows as the library sees them


def to_batch(python_rows: list[Row]) -> pa.RecordBatch:
    arrays = [pa.array([row[field.name] for row in python_rows], field.type) for field in SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def to_internal(row: Row) -> Row:
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

    def convert(value: Any) -> Any:
        if isinstance(value, dt.datetime):
            return (value.replace(tzinfo=dt.UTC) - epoch) // dt.timedelta(microseconds=1) * 1000
        if isinstance(value, dt.date):
            return (value - epoch.date()).days
        if isinstance(value, dt.time):
            return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000
        return value

    return {name: convert(value) for name, value in row.items()}


def stats_of(internal_rows: list[Row]) -> dict[str, ColumnStats]:
    """Statistics as a Parquet footer has them: without nulls, without NaN."""
    found = {}
    for name in COLUMNS:
        values = [row[name] for row in internal_rows]
        known = [each for each in values if each is not None and not (isinstance(each, float) and math.isnan(each))]
        found[name] = ColumnStats(
            min=min(known, default=None), max=max(known, default=None), null_count=values.count(None)
        )
    return found


# ------------------------------------------------------------------ the laws


@given(filters, rows)
def test_rows_and_arrow_answer_as_the_model_does(predicate: Predicate, python_rows: list[Row]) -> None:
    expected = [model(predicate, row) for row in python_rows]
    bound = bind(predicate, FIELDS, "t")
    assert [evaluate(bound.root, to_internal(row)) for row in python_rows] == expected
    batch = to_batch(python_rows)
    assert row_mask(batch, bound).to_pylist() == expected
    assert filter_batch(batch, bound).num_rows == expected.count(True)


@given(filters, rows, st.sampled_from([None, 1, 2]), st.sets(st.sampled_from(sorted(COLUMNS))))
def test_pruning_keeps_every_file_with_a_row_that_passes(
    predicate: Predicate, python_rows: list[Row], truncate: int | None, unknown: set[str]
) -> None:
    bound = bind(predicate, FIELDS, "t")
    stats = stats_of([to_internal(row) for row in python_rows])
    if truncate is not None:
        stats = {name: truncate_stats(each, truncate) for name, each in stats.items()}
    known = {name: each for name, each in stats.items() if name not in unknown}
    if True in [model(predicate, row) for row in python_rows]:
        assert may_match(bound, known, len(python_rows))


@given(filters, rows.filter(bool), st.sets(st.sampled_from(sorted(COLUMNS))))
def test_a_row_passes_the_residual_where_it_passes_the_filter(
    predicate: Predicate, python_rows: list[Row], partition_columns: set[str]
) -> None:
    bound = bind(predicate, FIELDS, "t")
    row = python_rows[0]
    known = {name: value for name, value in to_internal(row).items() if name in partition_columns}
    rest = residual(bound, known)
    assert not partition_columns.intersection(rest.columns)
    passes = model(predicate, row) is True
    assert (evaluate(rest.root, to_internal(row)) is True) == passes
    if passes:
        assert residual(bound, known).root != FALSE


@given(filters, rows, st.sampled_from(sorted(set(COLUMNS) - {"f", "d"})))
def test_a_row_that_passes_holds_one_of_the_allowed_values(
    predicate: Predicate, python_rows: list[Row], column: str
) -> None:
    allowed = allowed_values(bind(predicate, FIELDS, "t").root, column)
    if allowed is not None:
        for row in python_rows:
            assert model(predicate, row) is not True or to_internal(row)[column] in allowed


@given(leaf_filters, rows)
def test_pruning_by_one_condition_skips_files(predicate: Predicate, python_rows: list[Row]) -> None:
    """Rows that are all equal leave nothing to doubt, but for NaN and the order of bytes."""
    bound = bind(predicate, FIELDS, "t")
    if python_rows and not {"f", "d", "raw"}.intersection(bound.columns):
        row = to_internal(python_rows[0])
        assert may_match(bound, stats_of([row]), 1) == (model(predicate, python_rows[0]) is True)


@given(filters, st.lists(rows, min_size=1, max_size=5), st.sampled_from([None, 1, 2]), st.data())
def test_pruning_in_columns_keeps_the_same_files(
    predicate: Predicate, files: list[list[Row]], truncate: int | None, data: st.DataObject
) -> None:
    entries = [file_of(number, part, truncate, data) for number, part in enumerate(files * 20)]
    bound = bind(predicate, FIELDS, "t")
    reference = StatsPruner(lambda _: TABLE_SCHEMA)
    pruner = ColumnsPruner(reference)

    def visit(files: ManifestColumns, cursor: Cursor) -> Any:
        return pruner.read(bound, files, cursor)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "MIN_RECORDS", 1)
        patch.setattr(column_steps, "_MIN_ALIKE", 8)
        decoded = [decode_manifest_columns(encode_manifest(entries), "x", visit=each) for each in (None, visit)]
    chosen = np.arange(0, len(entries), data.draw(st.integers(1, 3)))
    expected = [reference.keeps(entries[place].file, bound) for place in chosen]
    for files_of_manifest in decoded:
        assert files_of_manifest is not None
        assert pruner.keeps(files_of_manifest, chosen, bound).tolist() == expected


@given(filters, st.lists(rows, min_size=1, max_size=6), st.integers(0, 6), st.data())
def test_pruning_of_files_of_one_shape_keeps_the_same_files(
    predicate: Predicate, files: list[list[Row]], change: int, data: st.DataObject
) -> None:
    """Statistics of one file, and of others whose statistics have as many bytes."""
    entries = [file_of(change, part, None, data) for part in files * 4]
    sizes = [len(encode_manifest([entry], codec="none")) for entry in entries]
    entries = [entry for entry, size in zip(entries, sizes, strict=True) if size == sizes[0]] * 5
    bound = bind(predicate, FIELDS, "t")
    reference = StatsPruner(lambda _: TABLE_SCHEMA)

    def visit(files: ManifestColumns, cursor: Cursor) -> Any:
        return ColumnsPruner(reference).read(bound, files, cursor)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "MIN_RECORDS", 1)
        patch.setattr(column_steps, "_MIN_ALIKE", 2)
        for _ in range(2):  # the second time, the shape is known
            decoded = decode_manifest_columns(encode_manifest(entries), "x", visit=visit)
            assert decoded is not None
            for each in (decoded, replace(decoded, visited=())):
                kept = ColumnsPruner(reference).keeps(each, np.arange(len(entries)), bound)
                assert kept.tolist() == [reference.keeps(entry.file, bound) for entry in entries]


def file_of(number: int, python_rows: list[Row], truncate: int | None, data: st.DataObject) -> ManifestEntry:
    """An entry with statistics of the rows, some of which are left out, or damaged."""
    found = stats_of([to_internal(row) for row in python_rows])
    if truncate is not None:
        found = {name: truncate_stats(each, truncate) for name, each in found.items()}
    change = number % 7 if number < 10 else 0
    names = [name for name in COLUMNS if change != 1 or name not in ("big", "s")]
    stats, covered = build_stats(
        [field for field in FIELDS if field.name in names],
        [replace(found[name], null_count=None if change == 2 else found[name].null_count) for name in names],
        [StatsMode.parse("full")] * len(names),
        dense=change == 3,
    )
    if change == 4:
        place = data.draw(st.integers(0, len(stats.min_values) - 1))
        damaged = (
            stats.min_values[:place] + data.draw(st.binary(min_size=1, max_size=1)) + stats.min_values[place + 1 :]
        )
        stats = replace(stats, min_values=damaged)
    elif change == 5:
        stats = replace(stats, max_values=stats.max_values[: data.draw(st.integers(0, len(stats.max_values)))])
    elif change == 6:
        stats = replace(stats, null_counts=stats.null_counts[:-1])
    file = DataFileMeta(
        file_name=f"data-{number}.{'orc' if number % 5 == 0 else 'parquet'}",
        file_size=1,
        row_count=len(python_rows),
        min_sequence_number=0,
        max_sequence_number=0,
        schema_id=0,
        value_stats=stats,
        value_stats_cols=tuple(names) if change == 1 else covered,
    )
    return ManifestEntry(kind=FileKind.ADD, partition=EMPTY_ROW, bucket=0, total_buckets=-1, file=file)


def test_pruning_in_columns_decides_files_with_usual_statistics() -> None:
    number, text = ColumnStats(min=1, max=9, null_count=0), ColumnStats(min="ab", max="b" * 12, null_count=3)
    used = [field for field in FIELDS if field.name in ("big", "s")]
    stats, covered = build_stats(used, [number, text], [StatsMode.parse("full")] * 2, dense=True)
    file = DataFileMeta(
        file_name="data-1.parquet",
        file_size=1,
        row_count=4,
        min_sequence_number=0,
        max_sequence_number=0,
        schema_id=0,
        value_stats=stats,
        value_stats_cols=covered or ("big", "s"),
    )
    entry = ManifestEntry(kind=FileKind.ADD, partition=EMPTY_ROW, bucket=0, total_buckets=-1, file=file)
    decoded = decode_manifest_columns(encode_manifest([entry] * 100), "x")
    assert decoded is not None
    pruner = ColumnsPruner(StatsPruner(lambda _: TABLE_SCHEMA))
    for predicate, is_kept in (
        (col("big") == 10, False),
        (col("big") == 9, True),
        ((col("s") > "b" * 13) | col("s").is_null(), True),
        ((col("s") < "aa") | (col("big") > 9), False),
    ):
        bound = bind(predicate, FIELDS, "t")
        kept = pruner.keeps(decoded, np.arange(100), bound)
        assert kept.tolist() == [is_kept] * 100
        found = evaluated_by_shape([entry] * 200, pruner, bound)
        assert found.tolist() == [MAY if is_kept else CANNOT] * 200
    assert pruner.undecided == 0


def evaluated_by_shape(entries: list[ManifestEntry], pruner: ColumnsPruner, bound: BoundPredicate) -> Any:
    """What the pruner says of entries that are known to be of one shape."""
    steps = []

    def visit(files: ManifestColumns, cursor: Cursor) -> Any:
        steps.append(cursor.is_even)
        return pruner.read(bound, files, cursor)

    for _ in range(2):
        decoded = decode_manifest_columns(encode_manifest(entries), "x", visit=visit)
    assert decoded is not None
    assert steps[-1]
    (found,) = decoded.visited
    assert isinstance(found, GroupBounds)
    return found.answers(bound, decoded.row_count)
