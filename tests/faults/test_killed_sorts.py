"""Sort compaction and clustering killed while they run beside a writer: each row is there once."""

from __future__ import annotations

import os
import random
import select
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa
import pytest
from tests.faults.sorting_script import ORDER
from tests.quick_spark import quick_environment
from tests.support.garbage import needed_files, stored_files

import penstock
from penstock.clocks import utc_millis

if TYPE_CHECKING:
    from types import TracebackType

pytestmark = pytest.mark.spark
HERE: Final = Path(__file__).parent
CLUSTERED: Final = {"clustering.incremental": "true", "clustering.columns": ORDER}
TABLES: Final[dict[str, dict[str, str]]] = {
    "d.sorted": {},
    "d.clustered": {**CLUSTERED, "num-sorted-run.compaction-trigger": "2"},
    "d.marked": {"deletion-vectors.enabled": "true", "row-tracking.enabled": "true"},
    "d.buckets": {**CLUSTERED, "bucket": "2", "bucket-key": "id", "bucket-append-ordered": "false"},
}
WAYS: Final = {False: ("order", "zorder", "hilbert", "procedure"), True: ("full", "minor", "full", "call")}
ROWS: Final = 300
JOB_SECONDS: Final = 120.0


class Sorter:
    """A driver of Spark in a process of its own."""

    def __init__(self, warehouse: str, scratch: Path) -> None:
        own = {"PYTHONPATH": str(HERE.parents[1]), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        self._errors = scratch.with_suffix(".err").open("wb")
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "sorting_script.py"), warehouse, str(scratch)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, **quick_environment(), **own},
            start_new_session=True,
        )
        self._jvm = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self._errors.close()

    def begin(self, table: str, way: str) -> None:
        """Start a job."""
        if not self._jvm:
            self._jvm = int(self.answer(JOB_SECONDS)[1])
        assert self._process.stdin is not None
        self._process.stdin.write(f"{table} {way}\n".encode())
        self._process.stdin.flush()

    def answer(self, seconds: float) -> list[str]:
        """Return the words of the next answer; none if there is none in time."""
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], seconds)[0]:
            return []
        return self._process.stdout.readline().decode().split(maxsplit=1)

    def kill(self, *, jvm_alone: bool = False) -> None:
        """Kill the driver and its JVM; or the JVM, upon which the driver ends by itself."""
        if jvm_alone:
            os.kill(self._jvm, signal.SIGKILL)
            self.answer(30)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(30)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()


class Scene:
    """Tables, and a writer that appends to them and deletes rows until it is stopped."""

    def __init__(self, root: Path, tables: tuple[str, ...]) -> None:
        self.root = root
        self.warehouse = str(root / "warehouse")
        self.tables = tables
        self.begun: Counter[str] = Counter()
        self.done: Counter[str] = Counter()
        self.deleted: dict[str, set[int]] = {name: set() for name in tables}
        self._stopped = threading.Event()
        self._error: BaseException | None = None
        catalog = penstock.Catalog(self.warehouse)
        catalog.create_database("d")
        for name in tables:
            options = {"target-file-size": "64 kb", "write-only": "true", **TABLES[name]}
            columns = "id BIGINT, k BIGINT, v STRING, p STRING"
            catalog.create_table(name, columns, partition_by=["p"], options=options)
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> Self:
        for name in self.tables:
            self._append(name)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def load(self, name: str) -> penstock.Table:
        return penstock.Catalog(self.warehouse).load_table(name)

    def _write(self) -> None:
        chance = random.Random(3)  # noqa: S311 - no secret
        try:
            while not self._stopped.wait(0.15):
                name = chance.choice(self.tables)
                self._append(name)
                if chance.random() < 0.2:
                    number = chance.randrange(self.done[name])
                    # The job beside may have replaced the files at each attempt; then nothing has changed.
                    with suppress(penstock.errors.CommitConflictError):
                        self.load(name).delete(f"id = {number}")
                        self.deleted[name].add(number)
        except BaseException as error:  # noqa: BLE001 - raised where the test ends
            self._error = error

    def _append(self, name: str) -> None:
        ids = range(self.begun[name], self.begun[name] + ROWS)
        self.begun[name] += ROWS
        self.load(name).append(rows_of(ids))
        self.done[name] += ROWS

    def check(self) -> None:
        """Compare the tables with what the writer knows to be in them."""
        for name in self.tables:
            done, deleted = self.done[name], set(self.deleted[name])
            rows = self.load(name).to_arrow()
            begun, maybe_deleted = self.begun[name], {*self.deleted[name], *self._doubtful(name, rows)}
            ids = rows["id"].to_pylist()
            assert len(ids) == len(set(ids)), f"{name}: rows are there twice"
            assert set(range(done)) - maybe_deleted <= set(ids) <= set(range(begun)) - deleted, name
            assert rows.sort_by("id").equals(rows_of(sorted(ids)).cast(rows.schema)), name

    def _doubtful(self, name: str, rows: pa.Table) -> set[int]:
        """Return the row whose deletion the writer may be about to note."""
        missing = set(range(self.done[name])) - set(rows["id"].to_pylist()) - self.deleted[name]
        return missing if len(missing) <= 1 and self._thread.is_alive() else set()

    def finish(self) -> None:
        """Check what is there when nothing runs any more, and that nothing else is left behind."""
        assert self._error is None, self._error
        self.check()
        for name in self.tables:
            table = self.load(name)
            assert table.inspect.fsck(all_snapshots=True).findings == ()
            table.remove_orphan_files(older_than=utc_millis() - 86_400_000, dry_run=False)
            self.check()
            table.remove_orphan_files(older_than=utc_millis(), dry_run=False, allow_recent=True)
            assert stored_files(table._ref) == needed_files(table._ref)
            if "row-tracking.enabled" in table.options:
                ids = table.to_arrow(["_ROW_ID"])["_ROW_ID"].to_pylist()
                assert len(set(ids)) == len(ids)
        self.check()


def rows_of(ids: Any) -> pa.Table:
    ids = list(ids)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "k": pa.array([each * 7919 % 1000 for each in ids], pa.int64()),
            "v": [f"{each * 104729 % 9973:04}" + "x" * 40 for each in ids],
            "p": ["ab"[each % 2] for each in ids],
        }
    )


@pytest.mark.parametrize(
    ("tables", "kills"),
    [
        (("d.sorted", "d.clustered"), 2),
        pytest.param(tuple(TABLES), 24, marks=[pytest.mark.slow, pytest.mark.timeout(1_800)]),
    ],
)
def test_sorts_that_are_killed_lose_and_double_no_rows(
    tables: tuple[str, ...], kills: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(kills)  # noqa: S311 - no secret
    finished = killed = started = 0
    seconds = dict.fromkeys(tables, 1.0)
    with ExitStack() as stack, Scene(tmp_path, tables) as scene:
        waiting: list[Sorter] = []
        while killed < kills:
            while len(waiting) < 2 and (not waiting or killed + 1 < kills):
                waiting.append(stack.enter_context(Sorter(scene.warehouse, tmp_path / f"scratch-{started}")))
                started += 1
            sorter = waiting.pop(0)
            table = tables[killed % len(tables)]
            ways = WAYS["clustering.incremental" in TABLES[table]]
            sorter.begin(table, chance.choice(ways))
            start = time.monotonic()
            answer = sorter.answer(JOB_SECONDS)
            assert answer, "the job did not end"
            assert answer[0] == "done", answer
            finished += answer[1] != "0\n"
            seconds[table] = time.monotonic() - start
            # The second job of a process takes less time than the first.
            while True:
                sorter.begin(table, chance.choice(ways))
                if not sorter.answer(chance.uniform(0.0, 0.7 * seconds[table])):
                    break
                finished += 1
            sorter.kill(jvm_alone=chance.random() < 0.3)
            killed += 1
            scene.check()
        with capsys.disabled():
            print(f"\nsorts: {finished} finished, {killed} killed", end="")  # noqa: T201 - asked for by those who watch
    scene.finish()
    assert finished >= min(kills, 20)
