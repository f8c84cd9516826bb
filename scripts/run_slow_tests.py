"""Run the long tests part by part, each at most fifty minutes long, and print how long each took.

``run_slow_tests.py [PART...] [-- arguments of pytest]``; without a name all parts, one after the other, and ``--list``
prints the names. A part that takes longer than fifty minutes is stopped and counts as failed.
"""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PART_SECONDS: Final = 3_000
NO_TESTS_COLLECTED: Final = 5
KILLED_STREAMS: Final = "tests/faults/streams/test_killed_streams.py"
BRANCHES: Final = "tests/faults/test_branch_histories.py"
# By the name of the parts: the test, and the number of its parts.
SOAKS: Final = {
    "soak": ("test_a_long_soak_of_killed_streams", 8),
    "soak-cluster": ("test_a_soak_where_tasks_share_nothing_with_the_driver", 2),
}
SPARK_STREAMS: Final = (
    "tests/spark/stream",
    "tests/spark/watermark",
    *sorted(
        path.relative_to(ROOT).as_posix()
        for pattern in ("test_*stream*.py", "test_event_time.py")
        for path in (ROOT / "tests" / "spark").glob(pattern)
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some of the long tests.

    Attributes:
        paths: folders, files or tests.
        ignored: folders and files below them that are in another part.
        without: words in the names of tests that are in another part.
        marks: marker expression that selects the tests.
        profile: of Hypothesis; empty for the default one.
    """

    name: str
    paths: tuple[str, ...]
    ignored: tuple[str, ...] = ()
    without: str = ""
    marks: str = "slow"
    profile: str = ""

    def has(self, file: str) -> bool:
        """Whether tests of a file are in this part."""
        paths = [path.partition("::")[0] for path in self.paths]
        return _is_below(file, paths) and not _is_below(file, self.ignored)

    def run(self, arguments: list[str]) -> bool:
        """Run it; return whether it finished in time without failures."""
        command = [
            *(sys.executable, "-m", "pytest", "-m", self.marks, "-o", f"cache_dir=.pytest_cache/slow-{self.name}"),
            *(f"--ignore={path}" for path in self.ignored),
            *(["-k", f"not {self.without}"] if self.without else []),
            *self.paths,
            *arguments,
        ]
        environment = {**os.environ, **({"HYPOTHESIS_PROFILE": self.profile} if self.profile else {})}
        try:
            done = subprocess.run(command, cwd=ROOT, env=environment, timeout=PART_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            print(f"{self.name}: stopped after {PART_SECONDS // 60} minutes; divide it in scripts/run_slow_tests.py")
            return False
        return done.returncode in {0, NO_TESTS_COLLECTED}


def _is_below(file: str, paths: list[str] | tuple[str, ...]) -> bool:
    return any(file == path or file.startswith(f"{path}/") for path in paths)


PARTS: Final = (
    # The regular tests, with twenty times as many examples.
    Part(name="examples", paths=("tests/property",), marks="not slow", profile="long"),
    Part(name="model", paths=("tests/property",)),
    Part(name="faults", paths=("tests/faults",), ignored=("tests/faults/streams", BRANCHES)),
    Part(name="branches", paths=(BRANCHES,)),
    Part(name="drivers", paths=("tests/faults/streams",), without="soak"),
    *(
        Part(name=f"{name}-{number}", paths=(f"{KILLED_STREAMS}::{test}[{number}]",))
        for name, (test, count) in SOAKS.items()
        for number in range(count)
    ),
    Part(name="spark", paths=("tests/spark",), ignored=(*SPARK_STREAMS, "tests/spark/connector")),
    Part(name="connector", paths=("tests/spark/connector",)),
    Part(name="spark-streams", paths=SPARK_STREAMS),
    Part(
        name="rest", paths=("tests/unit", "tests/themes", "tests/golden", "tests/docs", "tests/interop", "tests/soak")
    ),
)


def main(arguments: list[str]) -> int:
    """Run the parts that the arguments name and return the exit code: 0 when none failed."""
    place = arguments.index("--") if "--" in arguments else len(arguments)
    names, more = arguments[:place], arguments[place + 1 :]
    if names == ["--list"]:
        print("\n".join(part.name for part in PARTS))
        return 0
    unknown = set(names) - {part.name for part in PARTS}
    if unknown:
        print(f"no part {', '.join(sorted(unknown))}; there are {', '.join(part.name for part in PARTS)}")
        return 2
    subprocess.run([sys.executable, "-m", "tests.class_archive"], cwd=ROOT, check=False)
    failed, taken = [], []
    for part in PARTS:
        if names and part.name not in names:
            continue
        print(f"\n---- {part.name}", flush=True)
        start = time.monotonic()
        if not part.run(more):
            failed.append(part.name)
        taken.append(f"{part.name} {time.monotonic() - start:.0f}")
    print("\nSeconds: " + ", ".join(taken))
    if failed:
        print(f"Failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
