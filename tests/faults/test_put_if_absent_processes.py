"""One winner for each name between real processes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.starting_line import run_together

from penstock.io.local import LocalFileIO

NAMES = 400
PROCESSES = 3

SLOT_SECONDS = 0.002

# All go for the same name at the same moment of the clock that they share. Each prints the numbers that it won.
RACER = """
import json, sys, time
from pathlib import Path
from penstock.io.local import LocalFileIO

root, me, names, slot, how = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), sys.argv[5]

def by_look_and_rename(path, data):
    if Path(path).exists():
        return False
    aside = Path(f"{path}.{me}")
    aside.write_bytes(data)
    aside.rename(path)
    return True

if how == "without links":
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")
    Path.hardlink_to = refuse
put = by_look_and_rename if how == "look and rename" else LocalFileIO(durable=how == "durable").put_if_absent
won = []
print("ready", flush=True)
start = float(sys.stdin.readline())
for number in range(names):
    # Asleep most of the time: who only spins is held back by a busy machine's scheduler, and misses every race.
    time.sleep(max(0, start + (number - 0.2) * slot - time.monotonic()))
    while time.monotonic() < start + number * slot:
        pass
    if put(f"{root}/snapshot/snapshot-{number}", f"{me} ".encode() * 500):
        won.append(number)
print(json.dumps(won))
"""


def race(root: Path, how: str) -> list[list[int]]:
    (root / "snapshot").mkdir(parents=True)
    return run_together(RACER, [(str(root), str(me), str(NAMES), str(SLOT_SECONDS), how) for me in range(PROCESSES)])


def wins(won: list[list[int]]) -> Iterator[tuple[int, int]]:
    return ((number, me) for me, numbers in enumerate(won) for number in numbers)


@pytest.mark.parametrize("how", ["as it is", "durable", "without links"])
def test_each_name_has_one_winner_whose_bytes_are_there(tmp_path: Path, how: str) -> None:
    won = race(tmp_path, how)
    assert sorted(number for number, _ in wins(won)) == list(range(NAMES))
    assert sum(map(bool, won)) > 1, "no race: one process won everything"
    file_io = LocalFileIO()
    for number, me in wins(won):
        assert file_io.read(f"{tmp_path}/snapshot/snapshot-{number}") == f"{me} ".encode() * 500
    assert len(file_io.list(f"{tmp_path}/snapshot")) == NAMES


def test_the_race_finds_out_who_only_looks_before_renaming(tmp_path: Path) -> None:
    # On a machine that is busy enough one race may pass without two at a time.
    assert any(len(list(wins(race(tmp_path / str(attempt), "look and rename")))) > NAMES for attempt in range(30))
