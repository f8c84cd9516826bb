"""Run the tests in two lanes at once, one pytest process a group, and close with one line of totals.

Groups are apart because a Spark session lasts as long as its process and must not weigh on the others, and lanes
overlap because Spark spends its time starting up and waiting while the unit tests keep one core busy. There is never
more than one Spark session at a time. Arguments go to every pytest.
"""

import re
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

ALWAYS: Final = "not slow and not bench"
NO_TESTS_COLLECTED: Final = 5


@dataclass
class Group:
    """One pytest process over the tests that a marker expression picks."""

    name: str
    marks: str
    output: bytearray = field(default_factory=bytearray)
    exit_code: int = -1

    def run(self, arguments: list[str], *, live: bool) -> None:
        """Run to the end; ``live`` shows the output while it comes."""
        command = [
            *(sys.executable, "-m", "pytest", "-m", f"{self.marks} and {ALWAYS}"),
            *("-o", f"cache_dir=.pytest_cache/{self.name}"),
            *(["--color=yes"] if sys.stdout.isatty() else []),
            *arguments,
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0) as process:
            assert process.stdout is not None  # noqa: S101 - a pipe was asked for
            while chunk := process.stdout.read(1 << 16):
                self.output += chunk
                if live:
                    show(chunk)
        self.exit_code = process.returncode

    def counts(self) -> Counter[str]:
        """Return the figures of pytest's closing line, such as ``{"passed": 12, "skipped": 1}``."""
        lines = re.sub(rb"\x1b\[[0-9;]*m", b"", bytes(self.output)).decode(errors="replace").strip().splitlines()
        found = re.findall(r"(\d+) (passed|failed|skipped|xfailed|errors?)\b", lines[-1] if lines else "")
        return Counter({("failed" if word.startswith("error") else word): int(n) for n, word in found})


def show(data: bytes) -> None:
    """Write to standard output at once."""
    sys.stdout.buffer.write(data)
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    """Run all groups and return the exit code: 0 when tests ran and none failed."""
    start = time.monotonic()
    unit = Group("unit", "not spark and not interop")
    beside = [Group("spark", "spark"), Group("interop", "interop and not spark")]

    def run_beside() -> None:
        for group in beside:
            group.run(arguments, live=False)

    lane = threading.Thread(target=run_beside)
    lane.start()
    show(b"---- unit (spark and interop run beside it, their output follows)\n")
    unit.run(arguments, live=True)
    lane.join()
    for group in beside:
        show(f"\n---- {group.name}\n".encode() + bytes(group.output))

    groups = [unit, *beside]
    total = sum((group.counts() for group in groups), Counter[str]())
    failed_groups = [group.name for group in groups if group.exit_code not in {0, NO_TESTS_COLLECTED}]
    if failed_groups:
        print(f"\nFailed: {', '.join(failed_groups)}")
    print(f"\nAll groups took {time.monotonic() - start:.0f} s")
    print(f"total: {total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
    return 1 if failed_groups or not total["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
