"""Without Spark: append from Arrow and read into Arrow, compared with pypaimon and plain pyarrow."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.parquet as pq
from tests.interop.engines import UnavailableError, install_pypaimon

import penstock
from bench.child import Child
from bench.data import make_orders, read_orders
from bench.measure import Contender, Series, race
from bench.result import OURS, PYARROW, PYPAIMON, Check, Section, faster_than, find_series
from bench.settings import DATA

if TYPE_CHECKING:
    from types import TracebackType

    from bench.settings import Settings

KEY = "product_id"
COLUMNS = ["price", "sales"]
APPEND = "append from Arrow"
APPEND_BUCKETS = "append from Arrow, 8 buckets"
READ = "read 2 of 7 columns"
TARGETS = {APPEND: 1.0, APPEND_BUCKETS: 8.0, READ: 3.0}


class PyPaimonWorker:
    """pypaimon's process."""

    def __init__(self, source: Path, folder: Path) -> None:
        self._folder = folder
        python = install_pypaimon() / "bin" / "python"
        self._child = Child(PYPAIMON, str(python), "bench.pypaimon_worker", log=subprocess.DEVNULL)
        self.ask("load", source=str(source))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._child.__exit__(kind, error, trace)

    def ask(self, op: str, table: str = "", **request: Any) -> Any:  # noqa: ANN401 - JSON
        """Send a request about one of its tables and wait for the response.

        Raises:
            RuntimeError: pypaimon rejected it.
        """
        return self._child.ask(op, warehouse=str(self._folder / f"pypaimon-{table}"), **request).value


class OurTables:
    """Our tables, by name."""

    def __init__(self, rows: pa.Table, folder: Path) -> None:
        self._rows = rows
        self._catalog = penstock.Catalog(str(folder / "penstock"))
        self._catalog.create_database("bench")

    def create(self, table: str, options: dict[str, str]) -> None:
        """Create an empty table."""
        self._catalog.drop_table(f"bench.{table}", if_exists=True)
        self._catalog.create_table(f"bench.{table}", self._rows.schema, options=options)

    def append(self, table: str) -> None:
        """Load the table and commit the rows."""
        self._catalog.load_table(f"bench.{table}").append(self._rows)

    def read(self, table: str, columns: list[str] | None = None) -> int:
        """Load the table and read into memory."""
        return self._catalog.load_table(f"bench.{table}").to_arrow(columns).num_rows


def measure(settings: Settings, *, with_pypaimon: bool = True) -> Section:
    """Append and read in turns."""
    DATA.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=DATA))
    notes: list[str] = []
    try:
        rows = read_orders(settings.python_rows)
        ours = OurTables(rows, folder)
        if not with_pypaimon:
            return _section(_race_all(settings, rows, ours, None, folder), notes)
        try:
            with PyPaimonWorker(make_orders(settings.python_rows), folder) as worker:
                series = _race_all(settings, rows, ours, worker, folder)
        except UnavailableError as error:
            notes.append(f"pypaimon is left out: {error}")
            series = _race_all(settings, rows, ours, None, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return _section(series, notes)


def _race_all(
    settings: Settings, rows: pa.Table, ours: OurTables, worker: PyPaimonWorker | None, folder: Path
) -> tuple[Series, ...]:
    series: list[Series] = []
    for work, options in {APPEND: {}, APPEND_BUCKETS: {"bucket": "8", "bucket-key": KEY}}.items():
        contenders = [_our_append(ours, options)]
        if worker is not None:
            contenders.append(_their_append(worker, options))
        contenders.append(_plain_append(rows, folder))
        series += race(work, contenders, rounds=settings.rounds, warm_ups=settings.warm_ups, rows=rows.num_rows)
    readers = [Contender(name=OURS, run=lambda: ours.read("t", COLUMNS))]
    ours.create("t", {})
    ours.append("t")
    if worker is not None:
        worker.ask("create", "t", options={})
        worker.ask("append", "t")
        readers.append(Contender(name=PYPAIMON, run=lambda: worker.ask("read", "t", columns=COLUMNS)))
    plain = folder / "plain.parquet"
    pq.write_table(rows, plain, compression="zstd", compression_level=1)
    readers.append(Contender(name=PYARROW, run=lambda: pq.read_table(plain, columns=COLUMNS)))
    series += race(READ, readers, rounds=3 * settings.rounds, warm_ups=2 * settings.warm_ups, rows=rows.num_rows)
    return tuple(series)


def _our_append(ours: OurTables, options: dict[str, str]) -> Contender:
    return Contender(
        name=OURS,
        before=lambda: ours.create("w", options),
        run=lambda: ours.append("w"),
        verify=lambda: ours.read("w"),
    )


def _their_append(worker: PyPaimonWorker, options: dict[str, str]) -> Contender:
    return Contender(
        name=PYPAIMON,
        before=lambda: worker.ask("create", "w", options=options),
        run=lambda: worker.ask("append", "w"),
        verify=lambda: worker.ask("read", "w"),
    )


def _plain_append(rows: pa.Table, folder: Path) -> Contender:
    path = folder / "written.parquet"
    return Contender(
        name=PYARROW,
        before=lambda: path.unlink(missing_ok=True),
        run=lambda: pq.write_table(rows, path, compression="zstd", compression_level=1),
        verify=lambda: pq.read_metadata(path).num_rows,
    )


def _section(series: tuple[Series, ...], notes: list[str]) -> Section:
    checks: list[Check] = []
    for work, target in TARGETS.items():
        ours = find_series(series, work, OURS)
        for peer, at_least in {PYPAIMON: target, PYARROW: None}.items():
            theirs = find_series(series, work, peer)
            if ours and theirs:
                checks.append(faster_than(ours, theirs, at_least=at_least))
    return Section(name="python", title="Without Spark", series=series, checks=tuple(checks), notes=tuple(notes))
