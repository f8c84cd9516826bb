"""The tag that a batch creates, named after the day of its commit or with a fixed name.

Source:
    Paimon ``core:tag/TagBatchCreation.java``.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from penstock.clocks import local_now
from penstock.errors import NotFoundError
from penstock.format.layout import tag_name_of
from penstock.format.tag import encode_tag
from penstock.table.expire.tags import delete_tag, forget_snapshot
from penstock.table.tags import TagReader, new_tag, write_tag_success_file
from penstock.table.times import parse_zone, wall_clock

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, tzinfo

    from penstock.options import TagOptions
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore

_PREFIX: Final = "batch-write-"


def batch_zone(options: TagOptions, table: str) -> tzinfo | None:
    """Return the zone of the day in the tag's name; None for this machine's. Raises ``InvalidOptionError``."""
    return parse_zone(options.process_zone, "sink.process-time-zone", table)


def make_batch_tag(
    ref: TableRef, store: MetadataStore, options: TagOptions, *, now: Callable[[], datetime] = local_now
) -> str | None:
    """Tag the latest snapshot, moving the tag from the snapshot that had it.

    Beyond ``tag.num-retained-max`` the tags of the oldest snapshots are deleted, including manually created ones.

    Args:
        now: local wall clock as if it were UTC.

    Returns:
        The name; None if nothing was ever committed.

    Raises:
        InvalidOptionError: no such zone.
    """
    zone = batch_zone(options, ref.name)
    snapshot = store.load_latest_snapshot()
    time = None if snapshot is None else wall_clock(snapshot.time_millis, zone)
    if snapshot is None or time is None:
        return None
    name = options.batch_customized_name or f"{_PREFIX}{time:%Y-%m-%d}"
    try:
        before = store.load_tag(name).snapshot
    except NotFoundError:
        before = None
    tag = new_tag(snapshot, options.default_time_retained_ms, now=now)
    # In one step, so that readers always find it; the reference deletes it first.
    store.file_io.write(store.layout.tag_path(name), encode_tag(tag))
    write_tag_success_file(store, name, options)
    if before is not None:
        forget_snapshot(ref, store, before)
    if options.num_retained_max is not None:
        _drop_oldest(ref, store, options.num_retained_max)
    return name


def _drop_oldest(ref: TableRef, store: MetadataStore, count: int) -> None:
    tags = TagReader(ref.file_io, ref.location).load()
    changed = {
        name: status.modified_millis
        for status in ref.file_io.list(ref.layout.tag_directory)
        if (name := tag_name_of(status.name)) is not None
    }
    oldest = sorted(tags, key=lambda name: (tags[name].snapshot.id, changed.get(name, 0)))
    for name in oldest[: max(0, len(oldest) - count)]:
        with suppress(NotFoundError):  # another job was faster
            delete_tag(ref, store, name)
