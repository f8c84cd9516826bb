"""Marking partitions done: manually, all that are due, and after commits.

Source:
    Paimon ``flink:sink/listener/PartitionMarkDoneListener.java``, ``flink:procedure/MarkPartitionDoneProcedure.java``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from penstock.clocks import utc_millis
from penstock.errors import InvalidOptionError
from penstock.options import MarkDoneOptions
from penstock.printable import open_log
from penstock.table.mark_done.ledger import add_to_ledger, load_ledger
from penstock.table.mark_done.marker import check_actions, find_partitions, ledger_entries, mark_done
from penstock.table.mark_done.trigger import DoneWatch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from penstock.table.mark_done.marker import DonePartition
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore

_LOG: Final = open_log(__name__)


def open_done_watch(ref: TableRef, *, clock_millis: Callable[[], int]) -> DoneWatch | None:
    """Return a watch over the partitions of a table, if its options require one. Raises as ``DoneWatch``."""
    options = ref.parsed(MarkDoneOptions)
    if not ref.schema.partition_keys:
        return None
    if options.idle_time_ms is not None and options.time_interval_ms is None:
        _LOG.warning(
            "table %s: option 'partition.idle-time-to-done' marks no partition done without 'partition.time-interval', "
            "such as '1 d' for daily ones",
            ref.name,
        )
    if not options.is_by_time and not options.at_end_of_input:
        return None
    return DoneWatch(ref, options, clock_millis=clock_millis)


def mark_named_partitions(
    ref: TableRef, store: MetadataStore, specs: Sequence[Mapping[str, object]], *, dry_run: bool = False
) -> tuple[DonePartition, ...]:
    """Mark the partitions that match at least one spec, even if already done. Raises as ``find_partitions``.

    Args:
        dry_run: only return which.

    Raises:
        UnsupportedFeatureError: the table asks for another mark than the success file.
    """
    check_actions(ref.parsed(MarkDoneOptions), ref.name)
    done = mark_done(ref, find_partitions(ref, store, specs), dry_run=dry_run)
    if not dry_run:
        add_to_ledger(ref.file_io, ref.location, ledger_entries(each for each in done if each.rows))
    return done


def mark_due_partitions(ref: TableRef, store: MetadataStore, *, dry_run: bool = False) -> tuple[DonePartition, ...]:
    """Mark the partitions that are done by the table's options and have no mark since their last rows.

    Args:
        dry_run: only return which.

    Raises:
        InvalidOptionError: the options do not define when a partition is done.
        UnsupportedFeatureError: the table asks for another mark than the success file.
    """
    options = ref.parsed(MarkDoneOptions)
    if not options.is_by_time or not ref.schema.partition_keys:
        raise InvalidOptionError(
            f"table {ref.name}: only a partitioned table with the options 'partition.idle-time-to-done' and "
            "'partition.time-interval' determines which partitions are done; otherwise name them"
        )
    watch = DoneWatch(ref, replace(options, recover=True), clock_millis=utc_millis)
    latest = store.load_latest_snapshot()
    if latest is None:
        return ()
    watch.recover(store, latest, load_ledger(ref.file_io, ref.location))
    done = mark_done(ref, watch.find_due(store, latest), dry_run=dry_run)
    if not dry_run and done:
        add_to_ledger(ref.file_io, ref.location, ledger_entries(done))
    return done
