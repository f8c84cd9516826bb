from __future__ import annotations

import pytest
from tests.unit.table.metadata_tables import MemoryTable

from penstock.table.tags.first import first_since, first_with_watermark


@pytest.mark.parametrize(("millis", "expected"), [(500, 1), (3000, 3), (3001, 7), (7000, 7), (7001, 8)])
def test_the_first_snapshot_since_a_time_may_come_after_a_gap_of_ids(millis: int, expected: int) -> None:
    table = MemoryTable()
    for number in range(1, 10):
        table.commit(watermark=1000 * number)
    for gone in (4, 5, 6):
        table.expire(gone)
    assert first_since(table.store, millis).id == expected
    assert first_with_watermark(table.store, millis).id == expected
