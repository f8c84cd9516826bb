"""Read ORC files of any writer.

Two kinds of values that Java writes are ambiguous in ORC, and are read as Java itself reads them: CHAR loses its
trailing blanks, and the last second before 1970 becomes the first one after. Timestamps before 1582 keep their date
here; Java shifts them by the difference of the calendars.

Source:
    Paimon ``format:orc/OrcReaderFactory.java``; docs/spec/format.md section 8.2, docs/spec/observed.md.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from pyarrow import orc

from penstock.datafile.conform import (
    Array,
    conform_batch,
    make_batch,
    map_with_children,
    select_rows,
    with_children,
    without_padding,
)
from penstock.datafile.orc.protobuf import messages_of, number_of
from penstock.datafile.orc.rle import check_unsigned, decode_unsigned
from penstock.datafile.orc.tail import (
    LENGTH_STREAM,
    TIMESTAMPS,
    OrcKind,
    OrcTail,
    has_known_codec,
    read_part,
    read_streams,
    read_tail,
    stripe_nanos,
    uncompress,
    with_seconds_as_long,
)
from penstock.datafile.streams import as_native_file, reading
from penstock.datafile.types import has_leaf, to_arrow_schema
from penstock.format.types.data_types import TypeRoot

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from penstock.datafile.types import ArrowAny
    from penstock.format.types.data_types import AtomicType, DataField
    from penstock.io.file_io import FileIO


def read_orc(
    file_io: FileIO,
    path: str,
    fields: Sequence[DataField],
    *,
    batch_rows: int,
    ranges: Sequence[tuple[int, int]] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Read columns by name as canonical Arrow; see ``ReadFile``."""
    schema = to_arrow_schema(fields)
    data_types = [field.type for field in fields]
    with reading(path), closing(file_io.open_input(path)) as opened:
        stripes = _read_stripes(as_native_file(opened), fields)
        cut = (piece for stripe in stripes for piece in _cut(stripe, batch_rows))
        for batch in select_rows(cut, 0, ranges):
            conformed = conform_batch(batch, data_types, schema)
            yield without_padding(conformed, fields)


def _read_stripes(source: pa.NativeFile, fields: Sequence[DataField]) -> Iterator[pa.RecordBatch]:
    file = orc.ORCFile(source)
    known = set(file.schema.names)
    names = [field.name for field in fields if field.name in known]
    if not names:
        yield make_batch((), pa.schema([]), file.nrows)
        return
    reader: orc.ORCFile | WideTimestamps = file
    tail = read_tail(source)
    if any(has_leaf(field.type, _is_timestamp) for field in fields) and is_beyond_nanoseconds(tail, names):
        reader = WideTimestamps.open(source, tail)
    type_ids = types_with_lengths(tail, names)
    for stripe in range(file.nstripes):
        check_lengths(source, tail, stripe, type_ids)
        yield reader.read_stripe(stripe, names)


def _cut(batch: pa.RecordBatch, batch_rows: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, batch.num_rows, batch_rows):
        yield batch.slice(start, batch_rows)


def _is_timestamp(data_type: AtomicType) -> bool:
    return data_type.root in (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ)


_MOST_LENGTH: Final = 2**31 - 1
_WITH_LENGTHS: Final = frozenset(
    {OrcKind.STRING, OrcKind.BINARY, OrcKind.VARCHAR, OrcKind.CHAR, OrcKind.LIST, OrcKind.MAP}
)


def types_with_lengths(tail: OrcTail, names: Collection[str]) -> frozenset[int]:
    """Return the ids of the types that have lengths, in the columns with these names."""
    root = tail.types[0]
    waiting = [child for name, child in zip(root.names, root.children, strict=True) if name in names]
    seen: set[int] = set()
    while waiting:
        type_id = waiting.pop()
        if type_id not in seen:
            seen.add(type_id)
            waiting += tail.types[type_id].children
    return frozenset(type_id for type_id in seen if tail.types[type_id].kind in _WITH_LENGTHS)


def check_lengths(source: pa.NativeFile, tail: OrcTail, stripe: int, type_ids: Collection[int]) -> None:
    """Check the lengths of some types in a stripe; nothing for LZO, which only pyarrow can uncompress."""
    if not type_ids or not has_known_codec(tail):
        return
    for stream in read_streams(source, tail, stripe):
        if stream.kind == LENGTH_STREAM and stream.type_id in type_ids:
            data = uncompress(read_part(source, stream.start, stream.size), tail.codec)
            check_unsigned(data, most=_MOST_LENGTH, is_version_2=stream.is_version_2)


_DAY_SECONDS: Final = 86_400
_BASE_SECONDS: Final = 1_420_070_400  # 2015-01-01T00:00:00Z, the epoch of ORC
_FIRST_SECOND, _FIRST_NANO = divmod(-(2**63), 1_000_000_000)
_LAST_SECOND, _LAST_NANO = divmod(2**63 - 1, 1_000_000_000)


def is_beyond_nanoseconds(tail: OrcTail, names: Sequence[str]) -> bool:
    """Whether columns may have timestamps outside of the nanosecond range, according to the file's statistics."""
    root = tail.types[0]
    statistics = messages_of(tail.footer, 7)
    wanted = [child for name, child in zip(root.names, root.children, strict=True) if name in names]
    return any(
        type_id >= len(statistics) or not _fits_nanoseconds(messages_of(statistics[type_id], 9))
        for column in wanted
        for type_id in _timestamps_below(tail, column)
        if type_id >= len(statistics) or number_of(statistics[type_id], 1)
    )


def _timestamps_below(tail: OrcTail, type_id: int) -> list[int]:
    node = tail.types[type_id]
    below = [found for child in node.children for found in _timestamps_below(tail, child)]
    return [type_id, *below] if node.kind in TIMESTAMPS else below


def _fits_nanoseconds(statistics: Sequence[dict[int, list[int | bytes]]]) -> bool:
    """Check a ``TimestampStatistics``: minimum and maximum in ms, in UTC (3, 4) or local to the writer (1, 2)."""
    if not statistics or not ({3, 4} <= statistics[0].keys() or {1, 2} <= statistics[0].keys()):
        return False
    low, high = (_unzigzag(number_of(statistics[0], field, number_of(statistics[0], field - 2))) for field in (3, 4))
    return low // 1000 > _FIRST_SECOND and high // 1000 < _LAST_SECOND


def _unzigzag(number: int) -> int:
    return (number >> 1) ^ -(number & 1)


@dataclass(frozen=True, slots=True)
class WideTimestamps:
    """A file whose timestamps are read in two parts: seconds and fractions.

    Attributes:
        data: the whole file.
        file: the same file with seconds as BIGINT.
    """

    data: bytes
    tail: OrcTail
    file: orc.ORCFile

    @classmethod
    def open(cls, source: pa.NativeFile, tail: OrcTail) -> WideTimestamps:
        """Read a file into memory."""
        source.seek(0)
        data = source.read()
        return cls(data, tail, orc.ORCFile(pa.BufferReader(with_seconds_as_long(data, tail))))

    def read_stripe(self, stripe: int, names: list[str]) -> pa.RecordBatch:
        """Return columns of a stripe; timestamps are ``timestamp[ns]`` if all values fit, else ``timestamp[us]``."""
        batch = self.file.read_stripe(stripe, columns=names)
        root = self.tail.types[0]
        type_ids = dict(zip(root.names, root.children, strict=True))
        arrays = [
            self._restore(column, type_ids[name], stripe)
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)

    def _restore(self, array: Array, type_id: int, stripe: int) -> Array:
        node = self.tail.types[type_id]
        if not _timestamps_below(self.tail, type_id):
            return array
        if node.kind in TIMESTAMPS:
            nanos = decode_unsigned(stripe_nanos(self.data, self.tail, stripe, type_id))
            return _join(array, nanos, is_julian=self.tail.is_julian)
        if node.kind == OrcKind.LIST:
            values = self._restore(array.values, node.children[0], stripe)
            arrow_type: ArrowAny = pa.list_(values.type)
            return with_children(array, arrow_type, [values])
        if node.kind == OrcKind.MAP:
            keys = self._restore(array.keys, node.children[0], stripe)
            items = self._restore(array.items, node.children[1], stripe)
            return map_with_children(array, pa.map_(keys.type, items.type), keys, items)
        children = [self._restore(array.field(place), child, stripe) for place, child in enumerate(node.children)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, names=list(node.names), mask=mask)


def _join(seconds: Array, encoded_nanos: Array, *, is_julian: bool) -> Array:
    """Combine seconds, null where the value is null, and the fractions of the non-null values."""
    valid = np.asarray(seconds.is_valid())
    nanos = np.zeros(len(seconds), dtype=np.int64)
    nanos[valid] = _decode_fractions(encoded_nanos[: int(valid.sum())])
    whole = np.asarray(seconds.fill_null(0)) + _BASE_SECONDS
    # Java rounds seconds before 1970 towards 1970, although the fraction counts forwards.
    whole -= (whole < 0) & (nanos > 999_999)
    if is_julian:
        whole += _julian_shift_days(whole // _DAY_SECONDS) * _DAY_SECONDS
    mask = ~valid if seconds.null_count else None
    inside = (whole > _FIRST_SECOND) & (whole < _LAST_SECOND)
    inside |= (whole == _FIRST_SECOND) & (nanos >= _FIRST_NANO)
    inside |= (whole == _LAST_SECOND) & (nanos <= _LAST_NANO)
    if inside[valid].all():
        return pa.array(whole * 1_000_000_000 + nanos, type=pa.int64(), mask=mask).view(pa.timestamp("ns"))
    micros = whole * 1_000_000 + nanos // 1_000
    return pa.array(micros, type=pa.int64(), mask=mask).view(pa.timestamp("us"))


# First days, in the Julian calendar, of the periods with a constant difference between the calendars; the last period
# begins with the Gregorian reform on 1582-10-15.
_JULIAN_SPANS: Final = np.array(
    [
        *(-719_164, -682_945, -646_420, -609_895, -536_845, -500_320, -463_795),
        *(-390_745, -354_220, -317_695, -244_645, -208_120, -171_595, -141_427),
    ]
)
_JULIAN_SHIFTS: Final = np.array([2, 1, 0, -1, -2, -3, -4, -5, -6, -7, -8, -9, -10, 0])


def _julian_shift_days(days: Array) -> Array:
    """Return the days to add to keep the date when Julian days are read in the proleptic Gregorian calendar."""
    return _JULIAN_SHIFTS[np.maximum(np.searchsorted(_JULIAN_SPANS, days, side="right") - 1, 0)]


def _decode_fractions(encoded: Array) -> Array:
    """Decode nanoseconds; the low three bits are the number of removed trailing zeros, minus one."""
    zeros = encoded & 7
    return (encoded >> 3) * np.where(zeros > 0, 10 ** (zeros + 1), 1)
