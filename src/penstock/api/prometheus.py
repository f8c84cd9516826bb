"""Metrics for Prometheus: counters of this process, and the state of tables at each request."""

from __future__ import annotations

import importlib
import threading
from typing import TYPE_CHECKING, Any, Final

from penstock.api.arguments import INTEGER, NONE, TEXT, TEXTS, ArgumentType, accepts, instance_of
from penstock.api.table import Table
from penstock.errors import InvalidOptionError, TableStoreError, UnsupportedFeatureError
from penstock.metrics import (
    METRICS,
    READER_OLDEST_UNREAD,
    READER_ROWS_BEHIND,
    READER_SNAPSHOTS_BEHIND,
    TABLE_BYTES,
    TABLE_COMMIT_TIME,
    TABLE_FILES,
    TABLE_ROWS,
    TABLE_SMALL_FILES,
    TABLE_SNAPSHOT,
    TABLE_SNAPSHOTS,
    TABLE_UP,
    TABLE_WATERMARK,
    Metric,
    MetricKind,
    add_sink,
    remove_sink,
)
from penstock.printable import mask_locations, open_log

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from prometheus_client import CollectorRegistry


_LOG: Final = open_log("penstock.metrics")
_REGISTRY: Final = ArgumentType(
    "a CollectorRegistry", lambda value: any(kind.__name__ == "CollectorRegistry" for kind in type(value).__mro__)
)
# From a commit on a local disk to a micro-batch of some minutes.
_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)


class _Sink:
    """Receives the metrics of this process.

    Attributes:
        made: counters and histograms of the client library, by metric name.
    """

    def __init__(self) -> None:
        self.made: dict[str, Any] = {}

    def record(self, metric: Metric, amount: float, labels: tuple[str, ...]) -> None:
        """Add to a counter, or observe a value in a histogram."""
        made = self.made[metric.name]
        child = made.labels(*labels) if labels else made
        if metric.kind is MetricKind.HISTOGRAM:
            child.observe(amount)
        else:
            child.inc(amount)


class MetricsExport:
    """Exports metrics until it is closed; created by ``export_metrics``.

    Attributes:
        port: on which ``/metrics`` is served; None if this export does not serve it.
    """

    def __init__(self, registry: CollectorRegistry, tables: Sequence[Table], checkpoints: Sequence[str]) -> None:
        client = prometheus_client()
        self._registry = registry
        self._sink = _Sink()
        made = self._sink.made
        for metric in METRICS:
            if metric.kind is MetricKind.COUNTER:
                made[metric.name] = client.Counter(metric.name, metric.text, metric.labels, registry=registry)
            elif metric.kind is MetricKind.HISTOGRAM:
                made[metric.name] = client.Histogram(
                    metric.name, metric.text, metric.labels, registry=registry, buckets=_SECONDS
                )
        self._collectors = [*made.values()]
        if tables:
            of_tables = TableCollector(tables, checkpoints)
            registry.register(of_tables)
            self._collectors.append(of_tables)
        self.port: int | None = None
        self._server: tuple[Any, threading.Thread] | None = None
        add_sink(self._sink)

    def serve(self, host: str, port: int) -> None:
        """Serve ``/metrics`` on a thread; port 0 selects any free port. Raises ``OSError``."""
        server, thread = prometheus_client().start_http_server(port, addr=host, registry=self._registry)
        self._server = server, thread
        self.port = server.server_port

    def close(self) -> None:
        """Stop the export."""
        remove_sink(self._sink)
        if self._server is not None:
            server, thread = self._server
            server.shutdown()
            server.server_close()
            thread.join()
        for each in self._collectors:
            self._registry.unregister(each)


class TableCollector:
    """Reads the state of tables at each request of Prometheus, from metadata of the latest and of unread snapshots."""

    def __init__(self, tables: Sequence[Table], checkpoints: Sequence[str] = ()) -> None:
        self._tables = tuple(tables)
        self._checkpoints = tuple(checkpoints)
        # Two requests at once would share the handles.
        self._lock = threading.Lock()

    def describe(self) -> Iterable[Any]:
        """Return no names in advance: otherwise the tables would be read when the collector is registered."""
        return ()

    def collect(self) -> Iterator[Any]:
        """Yield a metric family for each gauge, with a sample for each table or reader."""
        client = prometheus_client("metrics_core")
        families = {
            metric.name: client.GaugeMetricFamily(metric.name, metric.text, labels=metric.labels)
            for metric in METRICS
            if metric.kind is MetricKind.GAUGE
        }
        with self._lock:
            for table in self._tables:
                name = mask_locations(table.name)
                try:
                    samples = [*_state_of(table), *_readers_of(table, self._checkpoints)]
                except TableStoreError as error:
                    _LOG.warning("table %s: its metadata cannot be read: %s", name, error)
                    samples = [(TABLE_UP, 0, ())]
                for metric, value, labels in samples:
                    families[metric.name].add_metric([name, *labels], value)
        yield from families.values()


@accepts(tables=instance_of(Table), checkpoints=TEXTS, port=INTEGER | NONE, host=TEXT, registry=_REGISTRY | NONE)
def export_metrics(
    *tables: Table,
    checkpoints: Sequence[str] = (),
    port: int | None = None,
    host: str = "127.0.0.1",
    registry: CollectorRegistry | None = None,
) -> MetricsExport:
    """Export commits, retries, files, micro-batches and other metrics of this process to Prometheus.

    Args:
        tables: whose latest snapshots and readers are also exported; read at each request.
        checkpoints: of Spark queries that read the table; ``tables`` must contain exactly one table then.
        port: on which to serve ``/metrics``, 0 for any free port; None if the process serves its registry itself.
        host: address to serve on; by default reachable only from this machine.
        registry: of ``prometheus_client``; None for its default one.

    Returns:
        The export; ``close()`` ends it.

    Raises:
        UnsupportedFeatureError: ``prometheus_client`` is not installed: ``pip install 'penstock[metrics]'``.
        InvalidOptionError: checkpoints without exactly one table, another export in this registry, or a port in use.
    """
    client = prometheus_client()
    if checkpoints and len(tables) != 1:
        raise InvalidOptionError(f"export_metrics: checkpoints belong to one table, but {len(tables)} are given")
    chosen = client.REGISTRY if registry is None else registry
    try:
        export = MetricsExport(chosen, tables, checkpoints)
    except ValueError as error:
        raise InvalidOptionError(
            f"export_metrics: the registry has metrics of Penstock already: close() the other export first ({error})"
        ) from error
    if port is not None:
        try:
            export.serve(host, port)
        except OSError as error:
            export.close()
            raise InvalidOptionError(f"export_metrics: cannot serve on {host}:{port}: {error}") from error
    return export


def prometheus_client(module: str = "") -> Any:  # noqa: ANN401 - a module that is not there for a type checker
    """Import the client library, or a module of it. Raises ``UnsupportedFeatureError`` if it is not installed."""
    try:
        return importlib.import_module(f"prometheus_client.{module}".rstrip("."))
    except ModuleNotFoundError as error:
        raise UnsupportedFeatureError(
            "metrics need prometheus_client, which is not installed: pip install 'penstock[metrics]'"
        ) from error


def _state_of(table: Table) -> Iterator[tuple[Metric, float, tuple[str, ...]]]:
    summary = table.inspect.summary()
    yield TABLE_UP, 1, ()
    yield TABLE_SNAPSHOTS, summary.snapshots, ()
    yield TABLE_ROWS, summary.rows, ()
    yield TABLE_FILES, summary.files, ()
    yield TABLE_BYTES, summary.bytes, ()
    if summary.small_files is not None:
        yield TABLE_SMALL_FILES, summary.small_files, ()
    if summary.latest is not None:
        yield TABLE_SNAPSHOT, summary.latest.id, ()
        yield TABLE_COMMIT_TIME, summary.latest.time_millis / 1000, ()
        if summary.latest.watermark is not None:
            yield TABLE_WATERMARK, summary.latest.watermark / 1000, ()


def _readers_of(table: Table, checkpoints: Sequence[str]) -> Iterator[tuple[Metric, float, tuple[str, ...]]]:
    for row in table.inspect.lag(*checkpoints).to_pylist():
        reader = (mask_locations(row["reader"]),)
        for metric, value, scale in (
            (READER_ROWS_BEHIND, row["rows_behind"], 1),
            (READER_SNAPSHOTS_BEHIND, row["snapshots_behind"], 1),
            (READER_OLDEST_UNREAD, row["oldest_unread_ms"] or 0, 1000),
        ):
            if value is not None:
                yield metric, value / scale, reader
