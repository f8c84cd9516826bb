"""Run the tests in groups, four at a time, one pytest process per group, and print a line of totals at the end.

Groups are separate because a Spark session lasts as long as its process and must not slow down the others, and because
each collects only its own folders. Each of four lanes takes the next group when it is free; six took longer. Groups
that start JVMs come first: they wait a lot, so they share two cores well. The tests of ``tests/spark`` take longest:
they have two Spark sessions, one for the catalog and one for the rest, and the other groups have a lower priority.
Arguments are passed to every pytest.
"""

import re
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
ALWAYS: Final = "not slow and not bench and not cluster"
NO_JVM: Final = f"not spark and {ALWAYS}"
NO_TESTS_COLLECTED: Final = 5
LANES: Final = 4
CATALOG: Final = "tests/spark/connector"
# Their sessions are in separate processes: they run with the drivers, to shorten the longest group.
OWN_SESSIONS: Final = tuple(
    f"tests/spark/test_{name}.py"
    for name in ("attempts", "demo_kafka", "shared_storage", "spark_connect", "sql_prompt", "standalone")
)
SORTS: Final = "tests/faults/test_killed_sorts.py"
PROTOCOL: Final = tuple(f"tests/property/test_protocol_{name}.py" for name in ("model", "replay"))
_PRINTING: Final = threading.Lock()


@dataclass
class Group:
    """One pytest process for the tests of some folders that a marker expression selects."""

    name: str
    paths: tuple[str, ...]
    marks: str = NO_JVM
    ignored: tuple[str, ...] = ()
    has_drivers: bool = False
    niceness: int = 5
    output: bytearray = field(default_factory=bytearray)
    exit_code: int = -1
    seconds: float = 0.0

    def run(self, arguments: list[str]) -> None:
        """Run it, then show its output."""
        start = time.monotonic()
        show(f"---- {self.name}: started\n".encode())
        if self.has_drivers:
            make_class_archive()
        command = [
            *("nice", "-n", str(self.niceness)),
            *(sys.executable, "-m", "pytest", "-m", self.marks),
            *("-o", f"cache_dir=.pytest_cache/{self.name}"),
            *(["--color=yes"] if sys.stdout.isatty() else []),
            *(f"--ignore={path}" for path in self.ignored),
            *self.paths,
            *arguments,
        ]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        self.output += done.stdout
        self.exit_code = done.returncode
        self.seconds = time.monotonic() - start
        show(f"\n---- {self.name}: ended after {self.seconds:.0f} s\n".encode() + bytes(self.output))

    def counts(self) -> Counter[str]:
        """Return the figures of pytest's closing line, such as ``{"passed": 12, "skipped": 1}``."""
        lines = re.sub(rb"\x1b\[[0-9;]*m", b"", bytes(self.output)).decode(errors="replace").strip().splitlines()
        found = re.findall(r"(\d+) (passed|failed|skipped|xfailed|errors?)\b", lines[-1] if lines else "")
        return Counter({("failed" if word.startswith("error") else word): int(n) for n, word in found})


def show(data: bytes) -> None:
    """Write to standard output, flushed, one caller at a time."""
    with _PRINTING:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()


def make_class_archive() -> None:
    """Create the class-data archive that halves the start-up time of a driver's JVM, if it is missing."""
    subprocess.run([sys.executable, "-m", "tests.class_archive"], cwd=ROOT, check=False)


def all_groups() -> list[Group]:
    """Return the groups in start order; a test checks that no folder is omitted."""
    return [
        Group("spark", ("tests/spark",), f"spark and {ALWAYS}", ignored=(CATALOG, *OWN_SESSIONS), niceness=0),
        Group("drivers", ("tests/docs", "tests/faults/streams", SORTS, *OWN_SESSIONS), ALWAYS, has_drivers=True),
        Group("unit", ("tests/unit", "tests/themes"), ignored=("tests/unit/table",)),
        Group("catalog", (CATALOG,), f"spark and {ALWAYS}", niceness=0),
        Group("faults", ("tests/faults", "tests/golden", "tests/soak"), ignored=("tests/faults/streams", SORTS)),
        Group("interop", ("tests/interop",), f"interop and {NO_JVM}"),
        Group("table", ("tests/unit/table",)),
        # Two groups, so that no core is idle at the end.
        Group("protocol", PROTOCOL),
        Group("property", ("tests/property",), ignored=PROTOCOL),
    ]


def main(arguments: list[str]) -> int:
    """Run all groups and return the exit code: 0 if tests ran and none failed."""
    start = time.monotonic()
    groups = all_groups()
    with ThreadPoolExecutor(LANES) as lanes:
        for future in [lanes.submit(group.run, arguments) for group in groups]:
            future.result()

    total = sum((group.counts() for group in groups), Counter[str]())
    failed_groups = [group.name for group in groups if group.exit_code not in {0, NO_TESTS_COLLECTED}]
    if failed_groups:
        print(f"\nFailed: {', '.join(failed_groups)}")
    print("\nSeconds: " + ", ".join(f"{group.name} {group.seconds:.0f}" for group in groups))
    print(f"All groups took {time.monotonic() - start:.0f} s")
    print(f"total: {total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
    return 1 if failed_groups or not total["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
