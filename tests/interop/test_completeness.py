"""Watermarks at work, here and in Java Paimon: rollback, tags made by themselves, marks of partitions."""

from pathlib import Path

import pytest
from tests.interop import ours
from tests.interop.engines import JavaPaimon


@pytest.mark.parametrize("until", [10_000, 14_999, 20_000, 35_000, 99_000])
def test_java_rolls_back_to_the_same_snapshot(java: JavaPaimon, location: Path, until: int) -> None:
    ours.create(location, "k INT, dt STRING")
    for number, watermark in enumerate([10_000, 15_000, 20_000, 30_000, 40_000]):
        ours.append_until(location, [{"k": number, "dt": "a"}], watermark)
    expected = java.ask("until", location, watermark=until)
    assert ours.load(location).rollback_to(watermark=until, dry_run=True).target.id == expected
