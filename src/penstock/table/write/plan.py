"""Settings of a table's writers, derived from its options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.clocks import local_wall_millis
from penstock.datafile.formats import FORMATS
from penstock.errors import NotFoundError
from penstock.options import BucketOptions, FormatOptions, StatsOptions
from penstock.table.locate import FileLocator
from penstock.table.write.assign import BucketRule
from penstock.table.write.rolling import FileTarget, new_job_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.options import WriteOptions
    from penstock.table.ref import TableRef


def plan_files(
    ref: TableRef, options: WriteOptions, *, job_id: str | None = None, clock_millis: Callable[[], int] | None = None
) -> FileTarget:
    """Return the settings that all data files of a task share.

    Args:
        options: source of the target sizes; everything else is taken from the options of ``ref``.
        job_id: from ``new_job_id``; None for a new one.
        clock_millis: returns creation times; None for the local wall clock.
    """
    format_options = ref.parsed(FormatOptions)
    stats = ref.parsed(StatsOptions)
    return FileTarget(
        ref=ref,
        locator=FileLocator.of(ref),
        data_format=FORMATS[format_options.file_format],
        format=format_options,
        stats_modes=stats.modes(ref.schema.field_names),
        stats_are_dense=stats.dense_store,
        target_file_bytes=options.target_file_bytes,
        target_file_rows=options.target_file_rows,
        total_buckets=ref.parsed(BucketOptions).bucket,
        job_id=job_id or new_job_id(),
        clock_millis=clock_millis or local_wall_millis,
    )


def plan_buckets(ref: TableRef) -> BucketRule:
    """Return how the table assigns rows to buckets.

    Raises:
        NotFoundError: the bucket key names a column that the table does not have.
    """
    options = ref.parsed(BucketOptions)
    missing = [name for name in options.bucket_key if name not in ref.schema.field_names]
    if missing:
        raise NotFoundError(
            f"table '{ref.name}': 'bucket-key' names '{missing[0]}', which is not one of its columns: "
            f"{', '.join(ref.schema.field_names)}"
        )
    key = options.bucket_key if options.bucket > 1 else ()
    return BucketRule(key=key, num_buckets=options.bucket, function=options.bucket_function)
