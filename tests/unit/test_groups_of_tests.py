"""The groups of ``make test`` and the parts of ``make test-slow`` have every test, each once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from scripts.run_slow_tests import KILLED_STREAMS, PARTS, SOAKS
from scripts.run_tests import all_groups

ROOT: Final = Path(__file__).parents[2]
FILES: Final = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py"))
# Parts of whole files: not those of one test, nor those that give tests that always run more examples.
WHOLE: Final = [part for part in PARTS if part.marks == "slow" and "::" not in part.paths[0]]
# What they have with a Spark session are benchmarks or long runs.
NEVER_IN_ALWAYS: Final = {
    "tests/soak/test_soak.py",
    "tests/unit/bench/test_bench.py",
    "tests/unit/bench/test_stream_bench.py",
    "tests/unit/test_groups_of_tests.py",
}


def is_below(file: str, paths: tuple[str, ...]) -> bool:
    return any(file == path or file.startswith(f"{path}/") for path in paths)


def test_every_file_is_in_one_group() -> None:
    for file in FILES:
        groups = [
            group.name for group in all_groups() if is_below(file, group.paths) and not is_below(file, group.ignored)
        ]
        assert len(groups) == 1, f"{file} is in the groups {groups} of scripts/run_tests.py"


def test_tests_with_a_spark_session_are_in_groups_that_run_them() -> None:
    paths = tuple(path for group in all_groups() if "not spark" not in group.marks for path in group.paths)
    for file in FILES:
        if "mark.spark" in (ROOT / file).read_text("utf-8") and file not in NEVER_IN_ALWAYS:
            assert is_below(file, paths), f"no group of scripts/run_tests.py runs the Spark tests of {file}"


def test_the_other_groups_give_way_to_those_with_a_session_of_all_their_tests() -> None:
    assert {group.paths for group in all_groups() if group.niceness == 0} == {
        ("tests/spark",),
        ("tests/spark/connector",),
    }


def test_every_file_with_clusters_is_in_a_folder_of_their_target() -> None:
    command = re.search(
        r"pytest -m \"cluster and not slow\" ([a-z/ ]+) \$\(ARGS\)", (ROOT / "Makefile").read_text("utf-8")
    )
    assert command is not None
    for file in FILES:
        if "mark.cluster" in (ROOT / file).read_text("utf-8") and file != "tests/unit/test_groups_of_tests.py":
            assert is_below(file, tuple(command[1].split())), f"make test-cluster does not run the tests of {file}"


def test_every_file_with_long_runs_is_in_one_part_of_them() -> None:
    for file in FILES:
        if "mark.slow" in (ROOT / file).read_text("utf-8") and file != "tests/unit/test_groups_of_tests.py":
            parts = [
                part.name for part in PARTS if part.has(file) and part.marks == "slow" and "::" not in part.paths[0]
            ]
            assert len(parts) == 1, f"{file} is in the parts {parts} of scripts/run_slow_tests.py"


def test_soaks_of_parts_of_their_own_are_tests_that_exist() -> None:
    text = (ROOT / KILLED_STREAMS).read_text("utf-8")
    for name, count in SOAKS.values():
        assert f'@pytest.mark.parametrize("part", range({count}))\ndef {name}(' in text
