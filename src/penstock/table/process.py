"""Identifies a process, and tells whether it is certainly dead.

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
        host: name of the machine, for messages.
        machine: identifies one boot of a machine and one PID namespace; empty where that is unknown.
        pid: process id.
        started: clock ticks from the boot of the machine to the start of the process, which distinguishes it from a
            later process with the same id; None where that is unknown.
    """

    host: str
    machine: str
    pid: int
    started: int | None

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def this_process() -> Process:
    """Return the current process."""
    pid = os.getpid()
    state = _load_state(pid)
    return Process(host=platform.node(), machine=_machine(), pid=pid, started=state[1] if state else None)


def encode_process(process: Process) -> dict[str, Any]:
    """Return the process as members of a JSON object."""
    return asdict(process)


def decode_process(values: JsonObject) -> Process:
    """Decode the members that ``encode_process`` returned; other members are ignored."""
    return Process(
        host=values.text("host"),
        machine=values.text("machine"),
        pid=values.integer("pid"),
        started=values.optional_integer("started"),
    )


def is_surely_dead(process: Process) -> bool:
    """Whether the process ran on this machine and has ended; False where that is unknown."""
    if not process.machine or process.machine != _machine():
        return False
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # it exists, but belongs to another user
    state = _load_state(process.pid)
    if state is None:
        return False
    letter, started = state
    return letter in _DEAD_STATES or (process.started is not None and started != process.started)


def _machine() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        # Containers share the boot id of their machine, but each has its own process ids.
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _load_state(pid: int) -> tuple[str, int] | None:
    """Return the state letter of a process, and its start time in clock ticks."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name in parentheses may itself contain spaces and parentheses. These are fields 3 and 22 of the line.
    fields = text.rpartition(")")[2].split()
    return fields[0], int(fields[19])
