"""Metrics that a process collects while it writes tables, for monitoring systems.

Without a sink nothing is collected. ``penstock.export_metrics`` adds one for Prometheus.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from threading import Lock
from typing import Final, Protocol

from penstock.printable import open_log

_LOG: Final = open_log("penstock.metrics")


class MetricKind(StrEnum):
    """The type of a metric: counters only grow, histograms count seconds in ranges, gauges are read on request."""

    COUNTER = "counter"
    HISTOGRAM = "histogram"
    GAUGE = "gauge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric with its Prometheus name."""

    name: str
    kind: MetricKind
    text: str
    labels: tuple[str, ...] = ("table",)


class MetricSink(Protocol):
    """Receives metrics; called by several threads."""

    def record(self, metric: Metric, amount: float, labels: tuple[str, ...]) -> None:
        """Add to a counter, or observe a value in a histogram."""
        ...


def _counter(name: str, text: str, *labels: str) -> Metric:
    return Metric(name=f"penstock_{name}_total", kind=MetricKind.COUNTER, text=text, labels=("table", *labels))


def _histogram(name: str, text: str) -> Metric:
    return Metric(name=f"penstock_{name}_seconds", kind=MetricKind.HISTOGRAM, text=text)


def _gauge(name: str, text: str, *labels: str) -> Metric:
    return Metric(name=f"penstock_{name}", kind=MetricKind.GAUGE, text=text, labels=("table", *labels))


COMMITS: Final = _counter("commits", "Snapshots that this process has committed.", "kind")
COMMIT_SECONDS: Final = _histogram("commit", "Time of a commit, retries included; data files are written before it.")
COMMIT_RETRIES: Final = _counter("commit_retries", "Attempts of commits that lost the race for the next snapshot id.")
COMMIT_CONFLICTS: Final = _counter("commit_conflicts", "Commits that were given up: nothing was committed.")
COMMITS_UNKNOWN: Final = _counter("commits_unknown", "Commits of which the storage did not say whether they succeeded.")
ROWS_ADDED: Final = _counter("rows_added", "Rows in files that commits have added.", "kind")
FILES_ADDED: Final = _counter("files_added", "Data files that commits have added.", "kind")
BYTES_ADDED: Final = _counter("bytes_added", "Bytes of data files that commits have added.", "kind")
FILES_REMOVED: Final = _counter("files_removed", "Data files that commits have removed from the table.", "kind")
SNAPSHOTS_EXPIRED: Final = _counter("snapshots_expired", "Snapshots that this process has expired.")
FILES_EXPIRED: Final = _counter("files_expired", "Data files that this process has deleted with expired snapshots.")
LEASES_LOST: Final = Metric(
    name="penstock_leases_lost_total",
    kind=MetricKind.COUNTER,
    text="Leases that another process took from this one.",
    labels=(),
)
BATCH_SECONDS: Final = _histogram("batch", "Time of a micro-batch of write_stream, from its first row to its commit.")
BATCH_ROWS: Final = _counter("batch_rows", "Rows that micro-batches of write_stream have written.")

TABLE_SNAPSHOT: Final = _gauge("table_snapshot_id", "Id of the latest snapshot.")
TABLE_COMMIT_TIME: Final = _gauge("table_last_commit_timestamp_seconds", "Time of the latest snapshot.")
TABLE_WATERMARK: Final = _gauge("table_watermark_timestamp_seconds", "Watermark of the latest snapshot.")
TABLE_SNAPSHOTS: Final = _gauge("table_snapshots", "Snapshots that have not expired.")
TABLE_ROWS: Final = _gauge("table_rows", "Rows of the latest snapshot.")
TABLE_FILES: Final = _gauge("table_files", "Data files of the latest snapshot.")
TABLE_BYTES: Final = _gauge("table_bytes", "Bytes of the data files of the latest snapshot.")
TABLE_SMALL_FILES: Final = _gauge("table_small_files", "Small data files, which a compaction would merge.")
READER_ROWS_BEHIND: Final = _gauge("reader_rows_behind", "Rows that a reader has not read.", "reader")
READER_SNAPSHOTS_BEHIND: Final = _gauge("reader_snapshots_behind", "Snapshots that a reader has not read.", "reader")
READER_OLDEST_UNREAD: Final = _gauge(
    "reader_oldest_unread_age_seconds",
    "Age of the oldest commit that a reader has not read; 0 if it read all.",
    "reader",
)
TABLE_UP: Final = _gauge("table_up", "1 if the metadata of the table could be read, else 0.")

METRICS: Final = tuple(each for each in list(globals().values()) if isinstance(each, Metric))
"""All metrics, in the order of this module."""


class RowCounter:
    """Counts the rows of one table that this process reads and writes, while an operation shows its progress.

    Attributes:
        location: of the table; None while nothing is counted.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self.location: str | None = None
        self.read = 0
        self.written = 0

    def begin(self, location: str) -> None:
        """Start counting from zero."""
        self.location, self.read, self.written = location, 0, 0

    def end(self) -> None:
        """Stop counting."""
        self.location = None

    def add(self, location: str, *, read: int = 0, written: int = 0) -> None:
        """Count rows if they are those of the table."""
        if location == self.location:
            with self._lock:
                self.read += read
                self.written += written


ROWS: Final = RowCounter()
"""The counter of this process."""

_sinks: list[MetricSink] = []


def add_sink(sink: MetricSink) -> None:
    """Start passing metrics to a sink."""
    _sinks.append(sink)


def remove_sink(sink: MetricSink) -> None:
    """Stop passing metrics to a sink."""
    _sinks.remove(sink)


def is_counting() -> bool:
    """Whether there is a sink."""
    return bool(_sinks)


def record(metric: Metric, amount: float, *labels: str) -> None:
    """Record a value. Never raises: a commit must not fail because of a sink.

    Args:
        labels: values of the metric's labels, in order.
    """
    for sink in tuple(_sinks):
        try:
            sink.record(metric, amount, labels)
        except Exception as error:  # noqa: BLE001 - see above
            _LOG.warning("metric %s was not counted: %s", metric.name, error)
