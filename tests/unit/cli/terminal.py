"""A process at a terminal of its own."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAIN: Final = "from penstock.cli.main import main; main()"
CTRL_C, CTRL_D, CTRL_L, UP, ENTER, TAB = "\x03", "\x04", "\x0c", "\x1b[A", "\r", "\t"
_CODES: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\r")


@dataclass(slots=True)
class Terminal:
    """What a person has in front of them.

    Attributes:
        seen: everything that was printed, without the codes that move the cursor.
    """

    process: subprocess.Popen[bytes]
    handle: int
    seen: str = ""

    def type(self, keys: str) -> None:
        os.write(self.handle, keys.encode())

    def wait_for(self, text: str, *, seconds: float = 60) -> str:
        """Read until a text is there; return what came before and with it, and begin anew behind it."""
        deadline = time.monotonic() + seconds
        while text not in self.seen:
            left = deadline - time.monotonic()
            assert left > 0, f"{text!r} did not come; there was {self.seen!r}"
            if select.select([self.handle], [], [], min(left, 1.0))[0]:
                try:
                    data = os.read(self.handle, 65536)
                except OSError:
                    data = b""
                assert data, f"the process ended before {text!r} came; there was {self.seen!r}"
                # A terminal answers where its cursor is; who asks waits for it.
                if b"\x1b[6n" in data:
                    os.write(self.handle, b"\x1b[1;1R")
                self.seen += _CODES.sub("", data.decode("utf-8", "replace"))
        found, _, self.seen = self.seen.partition(text)
        return found + text

    def wait_for_input(self, text: str, *, seconds: float = 60) -> None:
        """Redraw the screen until a text is in it; otherwise what is typed and completed is drawn in parts."""
        deadline = time.monotonic() + seconds
        while True:
            self.type(CTRL_L)
            try:
                self.wait_for(text, seconds=1)
            except AssertionError:
                if time.monotonic() > deadline:
                    raise
            else:
                return


@contextmanager
def at_terminal(*args: str, environment: Mapping[str, str]) -> Iterator[Terminal]:
    """Run ``penstock`` at a terminal of 120 by 40 characters."""
    mine, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, *args],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", **environment},
        # Ctrl-C goes to the processes whose terminal it is.
        preexec_fn=lambda: os.login_tty(theirs),  # noqa: PLW1509 - no other thread runs yet
    )
    os.close(theirs)
    try:
        yield Terminal(process, mine)
    finally:
        process.kill()
        process.wait()
        os.close(mine)
