"""Counts the calls to storage of all processes of a Spark application, and ends it at a chosen one.

A run has a plan, a file in the state directory that the driver writes when the run begins; calls before it are not
counted. Processes count together by appending to one file: where a byte came to lie is its number.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from penstock.io.local import LocalFileIO
from penstock.testing.file_io import Operation, _Output

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

LANDED: Final = "landed"
RETURNED: Final = "returned"
CHOSEN: Final = "chosen"
_HELD_SECONDS: Final = 300
_KINDS: Final = {
    "/snapshot/snapshot-": "snapshot",
    "/snapshot/": "hint",
    "/snapshot": "snapshots",
    "/manifest/": "manifest",
    "/bucket-": "data",
    "/schema": "schema",
    "/leases": "lease",
    "/consumer": "consumer",
}
_CALLS: Final = tuple(Operation(name) for name in ("read", "write", "put_if_absent", "list", "exists", "delete"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Where the application ends.

    Attributes:
        run: number of the run, which names its log.
        what: kind of call, as ``Logged.kind`` has it, of which number ``at`` is chosen.
        at: from 1, calls of all processes counted; 0 for none.
        landing: number of the snapshot of ``table`` at which a count of the calls for this table begins; 0 for none.
        returning: number of the return from a foreachBatch function, of all queries; 0 for none.
        calls: with ``landing``, how many calls for the table later; 0 is the landing itself.
        is_after: once the call has had its effect, rather than before.
        after: tables whose calls have their effect first, whatever ``is_after`` says.
        delay_ms: with ``returning``, how much later.
        holds: calls of that kind with smaller numbers wait for the end, so that all are stopped at the same place.
    """

    run: int
    what: str = ""
    at: int = 0
    table: str = ""
    landing: int = 0
    returning: int = 0
    calls: int = 0
    is_after: bool = True
    after: tuple[str, ...] = ()
    delay_ms: float = 0.0
    holds: bool = False

    def lets_happen(self, path: str) -> bool:
        """Whether a call has its effect before the application ends there."""
        return self.is_after or any(path.startswith(f"{table}/") for table in self.after)


@dataclass(frozen=True, slots=True)
class Logged:
    """One record of the log."""

    pid: int
    operation: str
    path: str

    @property
    def kind(self) -> str:
        """The operation and what of a table it is about."""
        return f"{self.operation} {kind_of(self.path)}"


class Hook:
    """What the calls of this process go through."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._plan: Plan | None = None
        self._plan_stamp = 0
        self._since_landing = -1

    def call(self, operation: Operation, path: str, effect: Callable[[], T]) -> T:
        """Do a call, and end the application if the plan says so."""
        plan = self.plan()
        if plan is None:
            return effect()
        self._tick(plan, operation, path)
        dies = self._is_chosen_since_landing(plan, path)
        if plan.lets_happen(path):
            result = effect()
            self._end_if_chosen(plan, f"{operation} {kind_of(path)}", dies=dies)
        else:
            self._end_if_chosen(plan, f"{operation} {kind_of(path)}", dies=dies)
            result = effect()
        if operation == Operation.PUT_IF_ABSENT and result is True and "/snapshot/snapshot-" in path:
            self._land(plan, path)
        return result

    # The shape that the recording streams of ``penstock.testing`` ask for.
    _call = call

    def returned(self) -> None:
        """Note that a foreachBatch function has done its work; it returns to Spark next."""
        plan = self.plan()
        if plan is None:
            return
        self._tick(plan, RETURNED, "")
        if self._count(plan, RETURNED) == plan.returning:
            if plan.delay_ms:
                threading.Thread(target=self._die_later, args=(plan.delay_ms / 1000,), daemon=True).start()
            else:
                self.die()

    def plan(self) -> Plan | None:
        """Return the plan of the run; None between runs."""
        try:
            stamp = (self._folder / "plan").stat().st_mtime_ns
        except FileNotFoundError:
            return None
        with self._lock:
            if stamp != self._plan_stamp:
                self._plan = Plan(**json.loads((self._folder / "plan").read_text()))
                self._plan_stamp = stamp
            return self._plan

    def die(self) -> None:
        """End the driver: its JVM and its Python process, neither with a chance to do anything more."""
        for pid in json.loads((self._folder / "victims").read_text()):
            os.kill(pid, signal.SIGKILL)
        time.sleep(_HELD_SECONDS)  # a worker has only asked for its own end

    def _end_if_chosen(self, plan: Plan, kind: str, *, dies: bool) -> None:
        number = self._count(plan, CHOSEN) if plan.what == kind else 0
        if dies or number == plan.at != 0:
            self.die()
        if plan.holds and 0 < number < plan.at:
            time.sleep(_HELD_SECONDS)

    def _die_later(self, seconds: float) -> None:
        time.sleep(seconds)
        self.die()

    def _land(self, plan: Plan, path: str) -> None:
        self._tick(plan, LANDED, path)
        if path.startswith(f"{plan.table}/") and self._count(plan, LANDED) == plan.landing:
            self._since_landing = 0
            if plan.calls == 0:
                self.die()

    def _is_chosen_since_landing(self, plan: Plan, path: str) -> bool:
        if self._since_landing < 0 or not path.startswith(f"{plan.table}/"):
            return False
        self._since_landing += 1
        return self._since_landing == plan.calls

    def _tick(self, plan: Plan, what: str, path: str) -> None:
        self._append(f"calls-{plan.run}", f"{os.getpid()} {what} {path}\n".encode())

    def _count(self, plan: Plan, what: str) -> int:
        return self._append(f"{what}-{plan.run}", b"+")

    def _append(self, name: str, record: bytes) -> int:
        """Append to a file; returns the number of the record there, from 1."""
        # Opened each time: a description that is shared by forked processes has one position for all of them.
        file = os.open(self._folder / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            os.write(file, record)
            return os.lseek(file, 0, os.SEEK_CUR) // len(record)
        finally:
            os.close(file)


def kind_of(path: str) -> str:
    """Say what of a table a path is."""
    return next((kind for part, kind in _KINDS.items() if part in path), "other")


def write_plan(folder: Path, plan: Plan) -> None:
    """Begin a run."""
    aside = folder / ".plan"
    aside.write_text(json.dumps(asdict(plan)))
    aside.rename(folder / "plan")


def read_calls(folder: Path, run: int) -> tuple[Logged, ...]:
    """Read the log of a run, in order; empty when nothing was called."""
    path = folder / f"calls-{run}"
    lines = path.read_text(errors="replace").splitlines() if path.exists() else []
    return tuple(Logged(int(pid), what, path) for pid, what, path in (line.split(" ", 2) for line in lines))


def count_chosen(folder: Path, run: int) -> int:
    """Count the calls so far of the kind that the plan of a run chose."""
    path = folder / f"{CHOSEN}-{run}"
    return path.stat().st_size if path.exists() else 0


def install(folder: str) -> Hook:
    """Send the calls of all local storage of this process through one hook."""
    hook = Hook(Path(folder))
    for operation in _CALLS:
        setattr(LocalFileIO, operation, _through(hook, operation, getattr(LocalFileIO, operation)))
    LocalFileIO.rename_file = _through(hook, Operation.RENAME_FILE, LocalFileIO.rename_file)  # type: ignore[method-assign]
    LocalFileIO.open_output = _opening(hook, LocalFileIO.open_output)  # type: ignore[method-assign]
    return hook


def _through(hook: Hook, operation: Operation, method: Any) -> Any:
    def through(self: LocalFileIO, path: str, *args: Any, **named: Any) -> Any:
        return hook.call(operation, path, lambda: method(self, path, *args, **named))

    return through


def _opening(hook: Hook, method: Any) -> Any:
    def through(self: LocalFileIO, path: str) -> Any:
        stream = hook.call(Operation.OPEN_OUTPUT, path, lambda: method(self, path))
        return _Output(hook, path, stream)  # type: ignore[arg-type] # has what that asks for

    return through
