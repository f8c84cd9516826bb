"""Tables of metadata only: any number of live files, which do not exist, or are empty."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Final

import penstock
from penstock.catalog.place import load_location
from penstock.format.manifest.entry import DataFileMeta
from penstock.format.manifest.stats import DEFAULT_STATS_MODE, ColumnStats, build_stats
from penstock.format.row.row import encode_row
from penstock.format.snapshot import CommitKind
from penstock.format.types.data_types import STRING
from penstock.predicate.parse import parse_filter
from penstock.table.actions.changes import open_committer
from penstock.table.commit.delta import CommitRequest
from penstock.table.message import CommitMessage
from penstock.table.read.query import plan_query
from penstock.table.read.split import iter_bucket_splits
from penstock.table.ref import ExternalPaths
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from penstock.format.schema import TableSchema
    from penstock.table.ref import TableRef

COLUMNS: Final = (
    "order_id BIGINT, product_id BIGINT, price DOUBLE, sales BIGINT, order_time TIMESTAMP(6), category STRING, "
    "note STRING, dt STRING"
)
PARTITIONS: Final = 100
FILE_ROWS: Final = 1_000_000
COMMITS: Final = 20


def make_table(warehouse: str, files: int, buckets: int = -1, commits: int = COMMITS) -> TableRef:
    """Return a table of 100 partitions in a new warehouse.

    Args:
        warehouse: a folder that does not exist yet.
        files: live files.
        buckets: of a queue, among which the files are distributed in turn; -1 for a scalable table.
        commits: in which the files are added.
    """
    return add_files(create_table(warehouse, buckets), files, commits)


def create_table(warehouse: str, buckets: int) -> TableRef:
    """Create an empty table in a new warehouse; ``buckets`` as of ``make_table``."""
    catalog = penstock.Catalog(warehouse)
    catalog.create_database("bench")
    options = {"bucket": str(buckets), "bucket-key": "product_id"} if buckets > 0 else {}
    table = catalog.create_table("bench.many", COLUMNS, partition_by=["dt"], options=options)
    return load_location(table.location)


def add_files(ref: TableRef, files: int, commits: int = COMMITS) -> TableRef:
    """Commit entries of files that do not exist."""
    committer = open_committer(ref)
    buckets = int(ref.options.get("bucket", "-1"))
    for number in range(commits):
        span = range(files * number // commits, files * (number + 1) // commits)
        messages = tuple(
            CommitMessage(
                partition=encode_row([partition_value(file, files)], [STRING]),
                bucket=file % max(buckets, 1),
                total_buckets=buckets,
                new_files=(new_file(ref.schema, file, partition_value(file, files)),),
            )
            for file in span
        )
        committer.commit(CommitRequest(commit_user="bench", kind=CommitKind.APPEND, messages=messages))
    return ref


def make_files(ref: TableRef, filter: str) -> str:
    """Create the files of one partition on storage, of the sizes of their entries but empty; return their directory."""
    (split,) = iter_bucket_splits(ref, plan_query(ref, MetadataStore(ref), parse_filter(filter)).plan)
    Path(split.bucket_path).mkdir(parents=True)
    ((directory, names),) = split.by_directory(ExternalPaths.of(ref))
    for name, size in zip(names, split.sizes(), strict=True):
        Path(directory, name).touch()
        os.truncate(f"{directory}/{name}", size)
    return directory


def partition_value(file: int, files: int) -> str:
    """Return the day of a file; days ascend as in a growing table."""
    return f"day-{file * PARTITIONS // files:03d}"


def new_file(schema: TableSchema, number: int, day: str) -> DataFileMeta:
    """Return the entry of a file with statistics of all columns, as a writer creates it."""
    first = number * FILE_ROWS
    time = 1_700_000_000_000_000_000 + first * 1000
    ends = (
        (first, first + FILE_ROWS - 1),
        (17, 99_983),
        (0.25, 999.75),
        (0, 49),
        (time, time + FILE_ROWS * 1000),
        ("category-0", "category-999"),
        ("00003b0a", "ffffe2c7"),
        (day, day),
    )
    columns = [ColumnStats(min=low, max=high, null_count=0) for low, high in ends]
    stats, covered = build_stats(schema.fields, columns, [DEFAULT_STATS_MODE] * len(columns), dense=True)
    return DataFileMeta(
        file_name=f"data-{uuid.uuid4()}-0.parquet",
        file_size=128 * 1024 * 1024 + number,
        row_count=FILE_ROWS,
        min_sequence_number=0,
        max_sequence_number=FILE_ROWS - 1,
        schema_id=schema.id,
        value_stats=stats,
        value_stats_cols=covered,
        creation_millis=1_700_000_000_000 + number,
    )


def selective_filter(files: int) -> str:
    """Return a filter that selects one partition and one file in it."""
    file = files // 2
    return f"dt = '{partition_value(file, files)}' AND order_id = {file * FILE_ROWS + 7}"
