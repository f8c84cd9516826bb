"""Health checks of a table as text: five lines, the same on the page and in the terminal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.api.history import HealthStatus, evaluate
from penstock.cli.draw.labels import count_text, duration_words, name_text, time_text
from penstock.cli.draw.rows import unread_text
from penstock.clocks import END_OF_TIME_MS
from penstock.printable import bytes_text

if TYPE_CHECKING:
    from penstock.api.history import TableHistory

MARKS: Final = {HealthStatus.GOOD: "●", HealthStatus.LOOK: "▲", HealthStatus.UNKNOWN: "○"}
MEANINGS: Final = {
    HealthStatus.GOOD: "good",
    HealthStatus.LOOK: "needs attention",
    HealthStatus.UNKNOWN: "not used here, or not enough data",
}
LEGEND: Final = "   ".join(f"{MARKS[status]} {meaning}" for status, meaning in MEANINGS.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthCheck:
    """The result of one health check."""

    topic: str
    status: HealthStatus
    text: str


def checks_of(history: TableHistory) -> tuple[HealthCheck, ...]:
    """Return the results of the health checks, always in the same order."""
    statuses = evaluate(history)
    return (
        HealthCheck(topic="flow", status=statuses.flow, text=_flow(history, statuses.usual_pause_ms)),
        HealthCheck(topic="watermark", status=statuses.watermark, text=_watermark(history)),
        HealthCheck(topic="files", status=statuses.files, text=_files(history, statuses.files)),
        HealthCheck(topic="readers", status=statuses.readers, text=_readers(history, statuses.readers)),
        HealthCheck(topic="order", status=statuses.order, text=_order(history)),
    )


def headline(history: TableHistory) -> str:
    """Return the kind and the size of a table."""
    kind = f"queue of {count_text(history.total_buckets, 'bucket')}" if history.total_buckets > 0 else "scalable table"
    if history.latest is None:
        return f"{kind}, no snapshots"
    live = history.latest.live
    content = f"{count_text(live.rows, 'row')}, {bytes_text(live.bytes)} in {count_text(live.files, 'file')}"
    return f"{kind}, snapshot {history.latest.snapshot.id}: {content}"


def snapshots_read(history: TableHistory) -> str:
    """Return which snapshots were read, how many older ones were omitted, and which are damaged."""
    if not history.commits:
        return "nothing was ever committed"
    first, last = history.commits[0].snapshot, history.commits[-1].snapshot
    left = f"; {count_text(history.left_out, 'older one')} left out" if history.left_out else ""
    files = (f"{kind} {name_text(name)}" for kind, name, _ in history.damaged)
    damaged = ", ".join((*(str(snapshot_id) for snapshot_id, _ in history.unreadable), *files))
    if damaged:
        left += f"; damaged and left out, see penstock fsck {name_text(history.name)}: {damaged}"
    return (
        f"{count_text(len(history.commits), 'snapshot')}, {first.id} to {last.id}, of "
        f"{time_text(first.time_millis)} to {time_text(last.time_millis)} UTC{left}"
    )


def _flow(history: TableHistory, pause: int | None) -> str:
    last = history.last_rows
    if last is None:
        return "nothing was ever committed" if not history.commits else "none of the commits read brought rows"
    usual = f"; usually every {duration_words(pause)}" if pause is not None else ""
    ago = duration_words(max(0, history.seen_millis - last.snapshot.time_millis))
    return f"last rows {ago} ago, {count_text(last.change.new_rows, 'row')} in snapshot {last.snapshot.id}{usual}"


def _watermark(history: TableHistory) -> str:
    latest = history.latest
    watermark = None if latest is None else latest.watermark
    if watermark is None:
        declared = history.event_time_column
        return "none declared" if declared is None else f"declared on {name_text(declared)}, in no snapshot yet"
    if watermark >= END_OF_TIME_MS:
        return "the input has ended"
    lag = None if latest is None else latest.event_time_lag_ms
    text = f"complete up to {time_text(watermark)} UTC"
    if lag is not None:
        text += f", {duration_words(abs(lag))} {'before' if lag >= 0 else 'after'} the last commit"
    last = history.standstills[-1] if history.standstills else None
    if last is not None and last.is_open:
        text += (
            f"; has not advanced for {duration_words(last.duration_ms)} while {count_text(last.commits, 'commit')} "
            "brought rows"
        )
    return text


def _files(history: TableHistory, status: HealthStatus) -> str:
    if history.no_debt is not None:
        return "not for Penstock to compact"
    if history.latest is None or history.debt is None:
        return "none"
    debt = history.debt
    text = f"{count_text(history.latest.live.files, 'file')}, {debt.small_files:,} small"
    if debt.waiting_files:
        text += f"; compact would take {debt.waiting_files:,} ({bytes_text(debt.waiting_bytes)})"
        text += f": penstock compact {name_text(history.name)}" if status is HealthStatus.LOOK else ""
    elif debt.small_files:
        text += ", none to merge with another"
    merge = history.last_merge
    if merge is None:
        return f"{text}; no merge among the commits read"
    ago = duration_words(max(0, history.seen_millis - merge.snapshot.time_millis))
    return f"{text}; last merge {ago} ago, snapshot {merge.snapshot.id}"


def _readers(history: TableHistory, status: HealthStatus) -> str:
    if not history.readers:
        return "no consumer, and no query was named"
    last = max(history.readers, key=lambda reader: (reader.expired_snapshots, reader.rows, reader.snapshots))
    if last.unread_since_millis is None and not last.expired_snapshots:
        return f"{count_text(len(history.readers), 'reader')}, all have read everything"
    text = f"{count_text(len(history.readers), 'reader')}; {name_text(last.name)} {unread_text(last, history)}"
    if status is not HealthStatus.LOOK:
        return text
    reset = f"consumer reset {name_text(history.name)} {name_text(last.name)} --to earliest"
    goes_on = last.expired_snapshots and last.kind == "consumer"
    return f"{text}: penstock {reset if goes_on else f'lag {name_text(history.name)}'}"


def _order(history: TableHistory) -> str:
    order = history.order
    if order is None:
        return "a scalable table keeps none"
    if not order.files:
        return "no files"
    where = f"{count_text(order.files, 'file')} in {count_text(order.buckets, 'bucket')}"
    if not order.overlaps:
        return f"holds: {where} are in order of their sequence numbers"
    begin = "begins" if order.overlaps == 1 else "begin"
    return f"is broken: {order.overlaps:,} of {where} {begin} within the sequence numbers of a file before"
