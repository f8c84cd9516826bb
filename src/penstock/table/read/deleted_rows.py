"""Rows that deletion vectors delete: loading their positions, and removing them from batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from penstock.datafile.conform import make_batch
from penstock.errors import FormatError, NotFoundError
from penstock.format.deletion_vector import decode_deletion_vector
from penstock.table.locate import FileLocator

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from penstock.format.manifest.entry import DataFileMeta
    from penstock.format.manifest.index_manifest import VectorPlace
    from penstock.table.ref import TableRef

# Length before and checksum after a vector.
_FRAME_BYTES = 8


class DeletedRows:
    """Reads the deletion vectors of data files. Thread-safe."""

    def __init__(self, ref: TableRef) -> None:
        self._ref = ref
        self._locator = FileLocator.of(ref)

    def load(self, file: DataFileMeta, place: VectorPlace) -> npt.NDArray[np.int64]:
        """Return the positions of the deleted rows of a file, ascending.

        Raises:
            NotFoundError: the file with the vector is missing.
            FormatError: it is damaged.
        """
        path = self._path_of(place)
        try:
            with self._ref.file_io.open_input(path) as stream:
                stream.seek(place.offset)
                data = bytes(stream.read(place.length + _FRAME_BYTES))
        except NotFoundError as error:
            raise NotFoundError(
                f"table {self._ref.name}: {path} is missing, which has the deletion vector of {file.file_name}; "
                "restore it from a copy"
            ) from error
        rows = decode_deletion_vector(data, path)
        if len(rows) and rows[-1] >= file.row_count:
            raise FormatError(
                f"table {self._ref.name}: {path} deletes row {rows[-1]} of {file.file_name}, which is none"
            )
        return rows

    def _path_of(self, place: VectorPlace) -> str:
        if place.external_path:
            return self._locator.external.readable(place.external_path)
        if self._ref.options.get("index-file-in-data-file-dir", "false").strip().lower() == "true":
            return f"{self._locator.directory(place.partition, place.bucket)}/{place.index_file}"
        return self._ref.layout.index_path(place.index_file)


def without_rows(batches: Iterable[pa.RecordBatch], deleted: npt.NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a whole file without some rows.

    Args:
        deleted: positions in the file, ascending.
    """
    first = 0
    for batch in batches:
        rows = batch.num_rows
        low, high = np.searchsorted(deleted, (first, first + rows))
        gone = deleted[low:high] - first
        first += rows
        if not len(gone):
            yield batch
        elif not batch.num_columns:
            yield make_batch((), batch.schema, rows - len(gone))
        else:
            stays = np.ones(rows, dtype=bool)
            stays[gone] = False
            yield batch.filter(pa.array(stays))
