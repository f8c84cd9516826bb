"""Write ORC data files.

Source:
    Paimon ``format:orc/OrcTypeUtil.java``, ``format:orc/writer/FieldWriterFactory.java``;
    docs/spec/format.md section 8.2.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import orc

from penstock.datafile.column_stats import StatsCollector
from penstock.datafile.conform import convert_leaves, leaf_arrays, map_with_children, with_children
from penstock.datafile.data_format import WrittenFile
from penstock.datafile.streams import writing
from penstock.datafile.types import has_leaf, to_arrow_type, to_numbered_schema
from penstock.errors import InvalidOptionError, TableStoreError, UnsupportedFeatureError
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
from penstock.options import parse_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.datafile.conform import Array
    from penstock.datafile.data_format import EncodingChoices
    from penstock.datafile.types import ArrowAny
    from penstock.format.types.data_types import DataField
    from penstock.io.file_io import FileIO
    from penstock.options import FormatOptions

_STRIPE_BYTES: Final = 64 * 1024 * 1024
# Rows per batch that pyarrow passes to the ORC library; its default of 1024 costs a tenth of the speed.
_LIBRARY_BATCH_ROWS: Final = 16_384
_CODECS: Final[dict[str, ArrowAny]] = {
    "none": "uncompressed",
    "uncompressed": "uncompressed",
    "snappy": "snappy",
    "zlib": "zlib",
    "lz4": "lz4",
    "zstd": "zstd",
}
_UNITS_PER_MILLI: Final = {"us": 1_000, "ns": 1_000_000}


class OrcFileWriter:
    """Passes batches to pyarrow, which buffers stripes. Collects statistics meanwhile."""

    def __init__(
        self,
        file_io: FileIO,
        path: str,
        fields: Sequence[DataField],
        options: FormatOptions,
        _choices: EncodingChoices | None = None,
    ) -> None:
        self._file_io = file_io
        self._path = path
        self._fields = tuple(fields)
        for field in fields:
            _check_type(field.name, field.type)
        self._schema = to_numbered_schema(fields, key="paimon.id", to_arrow=_atomic_type)
        self._time_places = [place for place, field in enumerate(fields) if has_leaf(field.type, _is_time)]
        self._fine_places = [place for place, field in enumerate(fields) if has_leaf(field.type, _is_fine_timestamp)]
        self._codec = _codec(options.compression)
        self._stripe_bytes = _stripe_bytes(options)
        self._stats = StatsCollector(fields)
        self._row_count = 0
        self._arrow_bytes = 0
        self._flushed_arrow_bytes = 0
        self._flushed_bytes = 0
        self._target: Any = None
        self._sink: ArrowAny = None
        self._writer: Any = None

    @property
    def buffered_bytes(self) -> int:
        """Arrow bytes buffered for the current stripe, at most a stripe."""
        self._note_progress()
        return min(self._arrow_bytes - self._flushed_arrow_bytes, self._stripe_bytes)

    @property
    def bytes_written(self) -> int:
        """Flushed bytes, plus an estimate of the buffered ones by the compression ratio so far."""
        buffered = self.buffered_bytes
        ratio = self._flushed_bytes / self._flushed_arrow_bytes if self._flushed_arrow_bytes else 0.5
        return int(self._flushed_bytes + buffered * ratio)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        if not batch.num_rows:
            return
        for place in self._fine_places:
            _check_early_fractions(self._fields[place].name, batch.column(place))
        with writing(self._path):
            self._stats.add(batch)
        self._row_count += batch.num_rows
        self._arrow_bytes += batch.nbytes
        with writing(self._path):
            sink = self._open()
            self._writer.write(pa.Table.from_batches([self._to_orc(batch)]))
            sink.check()

    def settle(self) -> None:
        """Do nothing: pyarrow writes a stripe only when it is full."""

    def close(self) -> WrittenFile:
        """Write the last stripe and the tail."""
        with writing(self._path):
            sink = self._open()
            if not self._row_count:
                self._writer.write(self._schema.empty_table())
            self._writer.close()
            sink.check()
            size = self._target.tell()
            self._target.close()
            columns = self._stats.result()
        return WrittenFile(file_size=size, row_count=self._row_count, columns=columns)

    def abort(self) -> None:
        """Delete the unfinished file."""
        writer, target = self._writer, self._target
        if self._sink is not None:
            self._sink.drop()
        self._writer = self._target = self._sink = None
        if target is None:
            return
        # As with Parquet, failures do not matter, because the file is deleted.
        with contextlib.suppress(OSError, pa.ArrowException, TableStoreError):
            if writer is not None:
                writer.close()
        with contextlib.suppress(OSError, pa.ArrowException, TableStoreError):
            target.close()
        self._file_io.delete(self._path)

    def _open(self) -> ArrowAny:
        if self._sink is None:
            self._target = self._file_io.open_output(self._path)
            self._sink = OrcSink(self._target)
            self._writer = orc.ORCWriter(
                self._sink,
                compression=self._codec,
                stripe_size=self._stripe_bytes,
                batch_size=_LIBRARY_BATCH_ROWS,
            )
        return self._sink

    def _note_progress(self) -> None:
        """Check whether a stripe was written: then almost all rows so far are on storage."""
        flushed = 0 if self._target is None else self._target.tell()
        if flushed > self._flushed_bytes:
            self._flushed_bytes, self._flushed_arrow_bytes = flushed, self._arrow_bytes

    def _to_orc(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = batch.columns
        for place in self._time_places:
            arrow_type = self._schema.field(place).type
            arrays[place] = convert_leaves(arrays[place], self._fields[place].type, arrow_type, _time_to_int)
        whole = [_masked(_unsliced(array)) if pa.types.is_nested(array.type) else array for array in arrays]
        return pa.RecordBatch.from_arrays(whole, schema=self._schema)


def _unsliced(array: Array) -> Array:
    """Copy the array: for a sliced struct pyarrow's ORC writer takes nulls from the wrong rows."""
    return pa.concat_arrays([array.slice(0, 0), array])


def _masked(array: Array) -> Array:
    """Return the array with null in all fields of a row that is null.

    Values may stand there. Where rows are inside of others of which none is null, pyarrow's ORC writer writes these
    values too, and readers take them for the values of the rows that follow.
    """
    kind = array.type
    if pa.types.is_struct(kind) and kind.num_fields:
        children = [_masked(child) for child in array.flatten()]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=array.is_null())
    if pa.types.is_map(kind):
        return map_with_children(array, kind, _masked(array.keys), _masked(array.items))
    if pa.types.is_list(kind):
        return with_children(array, kind, [_masked(array.values)])
    return array


def _check_type(name: str, data_type: DataType) -> None:
    match data_type:
        case VectorType() | AtomicType(root=TypeRoot.VARIANT):
            kind = "VECTOR" if isinstance(data_type, VectorType) else "VARIANT"
            raise UnsupportedFeatureError(
                f"column '{name}': ORC files hold no {kind}; set 'file.format' = 'parquet' for this table"
            )
        case ArrayType():
            _check_type(name, data_type.element)
        case MapType():
            _check_type(name, data_type.key)
            _check_type(name, data_type.value)
        case MultisetType():
            _check_type(name, data_type.element)
        case RowType():
            for field in data_type.fields:
                _check_type(f"{name}.{field.name}", field.type)
        case AtomicType():
            pass


def _atomic_type(data_type: AtomicType) -> pa.DataType:
    return pa.int32() if _is_time(data_type) else to_arrow_type(data_type)


def _is_time(data_type: AtomicType) -> bool:
    return data_type.root is TypeRoot.TIME


def _time_to_int(data_type: AtomicType) -> Callable[[Array], Array] | None:
    return (lambda array: array.view(pa.int32())) if _is_time(data_type) else None


def _is_fine_timestamp(data_type: AtomicType) -> bool:
    return data_type.root in (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ) and (data_type.precision or 6) > 3


def _check_early_fractions(name: str, column: Array) -> None:
    """Refuse sub-millisecond digits before 1970: pyarrow writes them as negative, and Java cannot read that."""
    for chunks in leaf_arrays([column]):
        if not pa.types.is_timestamp(chunks[0].type) or chunks[0].type.unit == "ms":
            continue
        for chunk in chunks:
            numbers = np.asarray(chunk.view(pa.int64()).fill_null(0))
            if np.any((numbers < 0) & (numbers % _UNITS_PER_MILLI[chunk.type.unit] != 0)):
                raise UnsupportedFeatureError(
                    f"column '{name}': a timestamp before 1970 with digits below the millisecond cannot be written to "
                    "ORC so that Java reads it; set 'file.format' = 'parquet', or make the column TIMESTAMP(3)"
                )


def _codec(compression: str) -> ArrowAny:
    codec = _CODECS.get(compression)
    if codec is None:
        raise InvalidOptionError(
            f"option 'file.compression' = '{compression}': ORC files are written with one of "
            f"{', '.join(sorted(_CODECS))}"
        )
    return codec


def _stripe_bytes(options: FormatOptions) -> int:
    own = dict(options.orc).get("stripe.size")
    return (options.block_bytes or _STRIPE_BYTES) if own is None else parse_bytes(own)


class OrcSink:
    """Forwards bytes to the target until a write fails; later bytes are dropped.

    The ORC library writes in destructors too, and an exception there ends the process: a full disk would end a Spark
    executor. So ``write`` does not raise.
    """

    closed = False

    def __init__(self, target: Any) -> None:  # noqa: ANN401 - whatever FileIO.open_output gives
        self._target = target
        self._failure: BaseException | None = None
        self._is_dropped = False
        self._size = 0

    def write(self, data: bytes) -> int:
        """Forward bytes to the target, or drop them."""
        size = len(data)
        self._size += size
        if self._failure is None and not self._is_dropped:
            try:
                self._target.write(data)
            except BaseException as failure:  # noqa: BLE001 - ``check`` raises it
                self._failure = failure
        return size

    def tell(self) -> int:
        """Return the number of bytes so far, including dropped ones, because the library counts them too."""
        return self._size

    def flush(self) -> None:
        """Do nothing: no bytes are buffered."""

    def close(self) -> None:
        """Do nothing: the code that opened the target closes it."""

    def drop(self) -> None:
        """Drop all further bytes, because the file will be deleted."""
        self._is_dropped = True

    def check(self) -> None:
        """Raise the first error of ``write``, if any."""
        if self._failure is not None:
            raise self._failure
