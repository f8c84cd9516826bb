"""Java Paimon and pypaimon read on after our expiration and orphan removal, of our snapshots and of theirs."""

from pathlib import Path
from typing import Any

from tests.interop import ours
from tests.interop.canonical import sort_rows
from tests.interop.engines import Engine, Row
from tests.support.garbage import needed_files, stored_files

from penstock.catalog.changes import AddColumn
from penstock.clocks import utc_millis

FUTURE = 4_000_000_000_000


def row(number: int, day: str) -> Row:
    return {"k": number, "dt": day}


def clean_up(location: Path, retain_min: int) -> Any:
    table = ours.load(location)
    found = table.expire_snapshots(retain_min=retain_min, older_than=FUTURE)
    orphans = table.remove_orphan_files(older_than=utc_millis(), allow_recent=True, dry_run=False)
    assert [orphan.path for orphan in orphans.orphans if "/bucket-" in orphan.path] == []
    assert table.inspect.fsck(all_snapshots=True).findings == ()
    assert stored_files(table._ref) == needed_files(table._ref)
    return found


def test_an_engine_reads_what_stays_after_our_expiration(engine: Engine, location: Path) -> None:
    ours.create(location, "k INT, dt STRING", partition_by=["dt"], options={"write-only": "true"})
    for number in range(1, 9):
        if number % 3:
            ours.append(location, [row(number, f"d{number % 2}")])
        else:
            ours.overwrite(location, [row(number, f"d{number % 2}")], {"dt": f"d{number % 2}"})
    table = ours.load(location)
    table.create_tag("third", snapshot_id=3)
    before = {each: ours.read(location, snapshot_id=each) for each in range(1, 9)}
    found = clean_up(location, 2)
    assert found.snapshot_ids == (1, 2, 3, 4, 5, 6)
    assert found.data_files > 0
    assert engine.read(location) == before[8]
    assert engine.read(location, snapshot=7) == before[7]
    assert engine.read(location, tag="third") == before[3]
    engine.append(location, [row(9, "d1")])
    assert ours.read(location) == engine.read(location) == sort_rows([*before[8], row(9, "d1")])


def test_snapshots_of_an_engine_expire_here(engine: Engine, location: Path) -> None:
    ours.create(location, "k INT, dt STRING", options={"write-only": "true"})
    for number in range(1, 4):
        engine.append(location, [row(number, "a")])
    engine.overwrite(location, [row(4, "b")])
    engine.append(location, [row(5, "b")])
    found = clean_up(location, 1)
    assert (found.snapshot_ids, found.data_files) == ((1, 2, 3, 4), 3)
    assert engine.read(location) == ours.read(location) == [row(4, "b"), row(5, "b")]


def test_engines_pass_over_what_a_rollback_of_ours_leaves_among_the_schemas(java: Engine, location: Path) -> None:
    ours.create(location, "k INT, dt STRING", options={"write-only": "true"})
    for number in range(1, 6):
        ours.append(location, [row(number, "a")])
    ours.load(location).rollback_to(snapshot_id=2)
    [record] = [path for path in (location / "schema").iterdir() if not path.name.startswith("schema-")]
    assert record.name == "rolled-back-4-7"
    expected = [row(1, "a"), row(2, "a")]
    assert java.read(location) == expected
    for number in range(6, 11):
        java.append(location, [row(number, "b")])
        expected.append(row(number, "b"))
        ours.append(location, [row(number + 10, "b")])
        expected.append(row(number + 10, "b"))
    assert java.read(location) == ours.read(location) == sort_rows(expected)
    java.ask("alter", location, changes=[["set", "snapshot.num-retained.min", "1"]])
    ours.alter(location, [AddColumn(column="n", type="INT")])
    java.ask("rollback", location, snapshot=11)
    java.ask("expire", location, retain=1)
    java.append(location, [row(99, "c") | {"n": 1}])
    assert len(java.read(location)) == 12
    assert len(ours.read(location)) == 12
    assert record.exists()
    assert ours.load(location).inspect.fsck(all_snapshots=True).findings == ()


def test_pypaimon_passes_over_what_a_rollback_of_ours_leaves_among_the_schemas(
    pypaimon: Engine, location: Path
) -> None:
    ours.create(location, "k INT, dt STRING", options={"write-only": "true"})
    for number in range(1, 6):
        ours.append(location, [row(number, "a")])
    ours.load(location).rollback_to(snapshot_id=2)
    expected = [row(1, "a"), row(2, "a")]
    assert pypaimon.read(location) == expected
    for number in range(6, 9):
        pypaimon.append(location, [row(number, "b")])
        ours.append(location, [row(number + 10, "b")])
        expected += [row(number, "b"), row(number + 10, "b")]
    assert pypaimon.read(location) == ours.read(location) == sort_rows(expected)
    assert (location / "schema" / "rolled-back-4-7").exists()
