"""Positions of readers that we wrote, as Java Paimon's stream reads take them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.interop import ours

from penstock.table.store import MetadataStore
from penstock.table.stream.consumers import record_progress

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interop.engines import JavaPaimon

OPTIONS = {"consumer-id": "nightly", "scan.mode": "latest-full"}


def test_java_continues_at_the_position_of_our_consumer(java: JavaPaimon, location: Path) -> None:
    ours.create(location, "id INT, c STRING", options={"bucket": "1", "bucket-key": "id"})
    for number in range(4):
        ours.append(location, [{"id": number, "c": "x"}])
    table = ours.load(location)
    record_progress(MetadataStore(table._ref), "nightly", 3)
    followed = java.follow(location, "first", OPTIONS)
    assert [row["id"] for plan in followed["plans"] for split in plan["splits"] for row in split["rows"]] == [2, 3]
    assert followed["next"] == 5
    table.maintenance.reset_consumer("nightly", 2)
    again = java.follow(location, "second", OPTIONS)
    assert [split["snapshot"] for plan in again["plans"] for split in plan["splits"]] == [2, 3, 4]
