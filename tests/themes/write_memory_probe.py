"""A process of its own that writes to very many partitions and buckets, and prints what it took.

Its data files go nowhere, so that what is measured is the writer's. Arguments: partitions, buckets, rows.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.datafile.types import to_arrow_schema
from penstock.format.schema import TableSchema
from penstock.format.types.data_types import BIGINT, INT, STRING, DataField
from penstock.table.ref import TableRef
from penstock.table.write.writer import TableWriter

BATCH_ROWS = 50_000


class Nowhere:
    """A stream that only counts."""

    def __init__(self, owner: DiscardingFileIO) -> None:
        self.owner = owner
        self.position = 0
        self.closed = False

    def write(self, data: Any) -> int:
        self.position += memoryview(data).nbytes
        return memoryview(data).nbytes

    def tell(self) -> int:
        return self.position

    def flush(self) -> None:
        pass

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        self.owner.open_files -= not self.closed
        self.closed = True


class DiscardingFileIO:
    """As much of ``FileIO`` as a writer needs."""

    is_object_store = False

    def __init__(self) -> None:
        self.open_files = 0
        self.most_open_files = 0

    def open_output(self, _path: str) -> Nowhere:
        self.open_files += 1
        self.most_open_files = max(self.most_open_files, self.open_files)
        return Nowhere(self)


def peak_megabytes() -> float:
    """Most resident memory of this process alone; ``ru_maxrss`` would have that of the one that started it."""
    status = Path("/proc/self/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def main(partitions: int, buckets: int, rows: int) -> None:
    """Write, and print the figures as JSON."""
    fields = tuple(
        DataField(id=i, name=name, type=kind)
        for i, (name, kind) in enumerate([("k", BIGINT), ("p", INT), ("s", STRING)])
    )
    schema = TableSchema(
        id=0,
        fields=fields,
        highest_field_id=2,
        partition_keys=("p",),
        options=(("bucket", str(buckets)), ("bucket-key", "k")),
    )
    file_io: Any = DiscardingFileIO()
    ref = TableRef(name="probe", location="/nowhere", file_io=file_io, schema=schema)
    before = peak_megabytes()
    rng = np.random.default_rng(0)
    texts = pa.array([f"the text of a row that is long enough: {i:06}" for i in range(BATCH_ROWS)])
    with TableWriter(ref) as writer:
        for _ in range(0, rows, BATCH_ROWS):
            keys = rng.integers(0, 1_000_000, BATCH_ROWS)
            parts = rng.integers(0, partitions, BATCH_ROWS, dtype=np.int32)
            writer.write(pa.record_batch([keys, parts, texts], schema=to_arrow_schema(fields)))
        messages = writer.prepare_commit()
    files = [file for message in messages for file in message.new_files]
    figures = {
        "groups": len(messages),
        "files": len(files),
        "rows": sum(file.row_count for file in files),
        "peak_mb": round(peak_megabytes()),
        "idle_mb": round(before),
        "most_open_files": file_io.most_open_files,
    }
    sys.stdout.write(json.dumps(figures))


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
