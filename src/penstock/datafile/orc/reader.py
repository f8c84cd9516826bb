"""Read ORC files of any writer.

Two kinds of values that Java writes are ambiguous in ORC, and are read as Java itself reads them: CHAR loses its
trailing blanks, and the last second before 1970 becomes the first one after. Timestamps before 1582 keep their date
here; Java shifts them by the difference of the calendars.

Source:
    Paimon ``format:orc/OrcReaderFactory.java``; docs/spec/format.md section 8.2, docs/spec/observed.md.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import orc

from penstock.datafile.conform import conform_batch, make_batch, select_rows, without_padding
from penstock.datafile.orc.lengths import check_lengths, types_with_lengths
from penstock.datafile.orc.tail import read_tail
from penstock.datafile.orc.timestamps import WideTimestamps, is_beyond_nanoseconds
from penstock.datafile.streams import as_native_file, reading
from penstock.datafile.types import has_leaf, to_arrow_schema
from penstock.format.types.data_types import TypeRoot

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
