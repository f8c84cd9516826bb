"""Partitions that expire by their time or by their last rows."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from functools import partial

import pyarrow as pa
import pytest

from penstock import Catalog, Table
from penstock.clocks import local_wall_millis
from penstock.errors import InvalidOptionError, UnsupportedFeatureError
from penstock.format.snapshot import CommitKind
from penstock.table.expire.partitions import find_expired_partitions


def new_table(**options: str) -> Table:
    catalog = Catalog(f"memory://{uuid.uuid4()}")
    catalog.create_database("db")
    return catalog.create_table(
        "db.t", "k BIGINT, dt STRING", partition_by=["dt"], options={"write-only": "true", **options}
    )


def rows(*numbers: int, dt: str = "2026-01-01") -> pa.Table:
    return pa.table({"k": pa.array(numbers, pa.int64()), "dt": [dt] * len(numbers)})


def ids(table: Table) -> tuple[int, ...]:
    return table._store.list_snapshot_ids()


def test_partitions_that_are_old_are_dropped_the_oldest_first() -> None:
    table = new_table(**{"partition.expiration-time": "1 d", "partition.expiration-max-num": "2"})
    today = datetime.now().astimezone().strftime("%Y-%m-%d")
    for number, dt in enumerate(("2025-01-03", "2025-01-01", today, "no time", "2025-01-02")):
        table.append(rows(number, dt=dt))
    would = table.maintenance.expire_partitions(dry_run=True)
    assert [each.directory for each in would] == ["dt=2025-01-01", "dt=2025-01-02"]
    assert table.maintenance.expire_partitions() == would
    assert sorted(table.to_arrow().column("dt").to_pylist()) == sorted(["2025-01-03", today, "no time"])
    latest = table.latest_snapshot()
    assert latest is not None
    assert latest.commit_kind is CommitKind.OVERWRITE
    assert latest.delta_record_count == -2


def test_each_batch_of_partitions_is_a_snapshot() -> None:
    table = new_table(**{"partition.expiration-batch-size": "2"})
    for day in range(1, 4):
        table.append(rows(day, dt=f"2025-01-0{day}"))
    assert len(table.maintenance.expire_partitions(expiration_time="1 d")) == 3
    assert len(ids(table)) == 5


@pytest.mark.parametrize("age", ["1000000 d", "9223372036854775807 ms"])
def test_an_age_beyond_the_calendar_expires_no_partition(age: str) -> None:
    table = new_table(**{"partition.expiration-time": age})
    table.append(rows(1, dt="0001-01-01"))
    assert table.maintenance.expire_partitions() == ()
    table.append(rows(1, dt="0001-01-01"))
    assert table.compact().partitions


def test_partitions_may_expire_by_their_newest_file() -> None:
    table = new_table(**{"partition.expiration-strategy": "update-time"})
    table.append(rows(1, dt="2025-01-01"))
    assert table.maintenance.expire_partitions(expiration_time="1 h") == ()
    assert len(table.maintenance.expire_partitions(expiration_time="0 ms")) == 1


def test_a_partition_that_was_merged_is_as_young_as_the_merge(monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table(**{"partition.expiration-strategy": "update-time", "partition.expiration-time": "7 d"})
    for days_ago in range(9, -1, -1):
        with monkeypatch.context() as patch:
            patch.setattr("penstock.table.write.rolling.local_wall_millis", partial(_days_before_now, days_ago))
            table.append(rows(days_ago))
    table.compact()
    assert table.maintenance.expire_partitions() == ()
    (later,) = find_expired_partitions(
        table._ref, table._store, now=lambda: datetime.now().astimezone() + timedelta(days=8)
    )
    assert abs(later.time - datetime.now()) < timedelta(minutes=1)  # noqa: DTZ005 - a wall clock without a zone


def _days_before_now(days: int) -> int:
    return local_wall_millis() - days * 86_400_000


def test_the_end_of_a_batch_drops_expired_partitions_if_the_option_is_set() -> None:
    table = new_table(
        **{"write-only": "false", "partition.expiration-time": "1 d", "end-input.check-partition-expire": "true"}
    )
    table.append(rows(1, dt="2025-01-01"))
    assert table.to_arrow().num_rows == 0
    assert len(ids(table)) == 2


@pytest.mark.parametrize(
    "options", [{}, {"partition.expiration-strategy": "custom", "partition.expiration-time": "1 d"}]
)
def test_partitions_do_not_expire_without_a_rule(options: dict[str, str]) -> None:
    with pytest.raises((InvalidOptionError, UnsupportedFeatureError), match="expir"):
        new_table(**options).maintenance.expire_partitions()
