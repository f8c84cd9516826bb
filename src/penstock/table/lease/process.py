"""Which process holds something, and whether it surely is gone.

Source:
    Linux ``proc(5)``: ``/proc/<pid>/stat``, ``/proc/sys/kernel/random/boot_id``, ``/proc/<pid>/ns/pid``.
"""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from penstock.format.text.json import JsonObject

_DEAD_STATES: Final = frozenset({"Z", "X", "x"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process of one machine.

    Attributes:
        host: its name, for people.
        machine: one start of one machine, as one set of process ids sees it; empty where that cannot be told.
        started: clock ticks from the machine's start to the process's, which tells it from one that got the id later;
            None where that cannot be told.
    """

    host: str
    machine: str
    pid: int
    started: int | None

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def this_process() -> Process:
    """Return the process that asks."""
    pid = os.getpid()
    state = _load_state(pid)
    return Process(host=platform.node(), machine=_machine(), pid=pid, started=state[1] if state else None)


def encode_process(process: Process) -> dict[str, Any]:
    """Return the members of a JSON object that says who holds something."""
    return asdict(process)


def decode_process(values: JsonObject) -> Process:
    """Decode what ``encode_process`` made, among others.

    Raises:
        FormatError: something is missing, or something else.
    """
    return Process(
        host=values.text("host"),
        machine=values.text("machine"),
        pid=values.integer("pid"),
        started=values.optional_integer("started"),
    )


def is_surely_dead(process: Process) -> bool:
    """Whether the process ran on this machine and has ended; False whenever that cannot be told."""
    if not process.machine or process.machine != _machine():
        return False
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # there, but another user's
    state = _load_state(process.pid)
    if state is None:
        return False
    letter, started = state
    return letter in _DEAD_STATES or (process.started is not None and started != process.started)


def _machine() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        # Containers share their machine's boot id, but number their processes each for itself.
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _load_state(pid: int) -> tuple[str, int] | None:
    """Return the letter of the state, and the ticks at the start."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name in parentheses may itself hold spaces and parentheses. Fields 3 and 22 count from the line's start.
    fields = text.rpartition(")")[2].split()
    return fields[0], int(fields[19])
