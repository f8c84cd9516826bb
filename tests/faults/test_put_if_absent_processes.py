"""One winner for each name between real processes."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.io.local import LocalFileIO

NAMES = 400
PROCESSES = 3

# Each process waits for the others before each name, by a byte on its standard input, and then goes for it at once.
# It prints the numbers that it won.
RACER = """
import json, os, sys
from pathlib import Path
from penstock.io.local import LocalFileIO

root, me, names, how = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]

def by_look_and_rename(path, data):
    aside = Path(f"{path}.{me}")
    aside.write_bytes(data)
    if Path(path).exists():
        return False
    aside.rename(path)
    return True

if how == "without links":
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")
    Path.hardlink_to = refuse
put = by_look_and_rename if how == "look and rename" else LocalFileIO(durable=how == "durable").put_if_absent
won = []
for number in range(names):
    os.write(1, b".")
    os.read(0, 1)
    if put(f"{root}/snapshot/snapshot-{number}", f"{me} ".encode() * 500):
        won.append(number)
os.write(1, b"!" + json.dumps(won).encode())
"""


def race(root: Path, how: str) -> list[list[int]]:
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(root), str(me), str(NAMES), how],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ,
        )
        for me in range(PROCESSES)
    ]
    try:
        for number in range(NAMES):
            for racer in racers:
                assert os.read(racer.stdout.fileno(), 1) == b"."  # type: ignore[union-attr] # it is a pipe
            for place in range(PROCESSES):
                # Another one starts first each time, or the first would win everything on a busy machine.
                os.write(racers[(number + place) % PROCESSES].stdin.fileno(), b"g")  # type: ignore[union-attr]
        return [json.loads(racer.communicate(timeout=60)[0].removeprefix(b"!")) for racer in racers]
    finally:
        for racer in racers:
            racer.kill()
            racer.communicate()


def wins(won: list[list[int]]) -> Iterator[tuple[int, int]]:
    return ((number, me) for me, numbers in enumerate(won) for number in numbers)


@pytest.mark.parametrize("how", ["as it is", "durable", "without links"])
def test_each_name_has_one_winner_whose_bytes_are_there(tmp_path: Path, how: str) -> None:
    (tmp_path / "snapshot").mkdir()
    won = race(tmp_path, how)
    assert sorted(number for number, _ in wins(won)) == list(range(NAMES))
    assert all(won), "no race: one process won everything"
    file_io = LocalFileIO()
    for number, me in wins(won):
        assert file_io.read(f"{tmp_path}/snapshot/snapshot-{number}") == f"{me} ".encode() * 500
    assert len(file_io.list(f"{tmp_path}/snapshot")) == NAMES


def test_the_race_finds_out_who_only_looks_before_renaming(tmp_path: Path) -> None:
    (tmp_path / "snapshot").mkdir()
    assert len(list(wins(race(tmp_path, "look and rename")))) > NAMES
