"""A short soak, so that the long one works when it is wanted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.soak.record import load_samples
from tests.soak.roles import drop_old_slots
from tests.soak.scene import (
    BATCH_ROWS,
    KEPT_SLOTS,
    KEYS,
    QUEUE,
    SOURCE,
    WIDE,
    Delivered,
    Scene,
    WrongRows,
    check_snapshot,
)

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.spark
def test_a_short_soak_loses_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.soak", "--minutes", "1", "--resume", str(tmp_path / "soak")]
    done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=500, check=False)
    # A minute says nothing of slopes: what is judged is that all rows have arrived, which raises.
    assert done.returncode in {0, 1}, done.stderr[-4000:]
    assert "counted at the end" in done.stdout, done.stderr[-4000:]
    samples = load_samples(tmp_path / "soak" / "samples.jsonl")
    assert len(samples) >= 12
    assert samples[-1].notes["consumed"] > 0


def test_a_snapshot_is_held_to_its_rows(tmp_path: Path) -> None:
    scene = Scene(root=tmp_path, slot_batches=2)
    numbers = np.arange(scene.slot_rows, scene.slot_rows * 2 + 7)
    slots = numbers // scene.slot_rows
    check_snapshot(numbers, slots, scene, is_ordered=True)
    swapped = numbers.copy()
    swapped[[0, KEYS]] = swapped[[KEYS, 0]]
    check_snapshot(swapped, slots, scene, is_ordered=False)
    for wrong in (swapped, np.append(numbers, numbers[0]), np.delete(numbers, 5), numbers[3:]):
        with pytest.raises(WrongRows):
            check_snapshot(wrong, wrong // scene.slot_rows, scene, is_ordered=True)


def test_rows_of_a_stream_come_once_and_in_order() -> None:
    numbers = np.arange(BATCH_ROWS)
    delivered = Delivered()
    delivered.check(numbers)
    delivered.check(numbers + BATCH_ROWS)
    assert delivered.following.min() == 2 * BATCH_ROWS
    for wrong in (numbers, numbers + 3 * BATCH_ROWS, numbers[::-1] + 2 * BATCH_ROWS):
        again = Delivered()
        again.check(np.arange(2 * BATCH_ROWS))
        # Rows that came before this reader began are its predecessor's; these came since.
        with pytest.raises(WrongRows):
            again.check(wrong)


def test_a_reader_that_starts_again_may_get_the_last_snapshot_again() -> None:
    delivered = Delivered(list(range(BATCH_ROWS, BATCH_ROWS + KEYS)))
    delivered.check(np.arange(BATCH_ROWS))
    delivered.check(np.arange(BATCH_ROWS, 2 * BATCH_ROWS))
    assert delivered.following.min() == 2 * BATCH_ROWS


def test_settings_of_a_soak_are_those_of_its_first_part(tmp_path: Path) -> None:
    first = Scene.make(tmp_path, slot_batches=3)
    assert Scene.make(tmp_path, slot_batches=9) == first
    assert first.table(QUEUE).name.endswith("queue")


def test_old_slots_go_from_each_table_when_its_newest_is_far_enough(tmp_path: Path) -> None:
    scene = Scene.make(tmp_path, slot_batches=1)
    for name, appends in ((SOURCE, KEPT_SLOTS + 2), (QUEUE, KEPT_SLOTS), (WIDE, 1)):
        for number in range(appends):
            scene.table(name).append(scene.rows(number * BATCH_ROWS))
    drop_old_slots(scene, KEPT_SLOTS + 2)
    left = [scene.table(name).partitions().num_rows for name in (SOURCE, QUEUE, WIDE)]
    assert left == [KEPT_SLOTS, KEPT_SLOTS, 1]
    rows = scene.table(SOURCE).to_arrow(["n", "slot"])
    check_snapshot(rows["n"].to_numpy(), rows["slot"].to_numpy(), scene, is_ordered=False)
