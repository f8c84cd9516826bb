"""Another number of buckets for a queue."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

import penstock
from penstock import Catalog, InvalidOptionError, Table
from penstock.clocks import utc_millis
from penstock.format.snapshot import CommitKind

if TYPE_CHECKING:
    from collections.abc import Mapping

ROUNDS = 4


@pytest.fixture
def catalog() -> Catalog:
    catalog = Catalog(f"memory://{uuid.uuid4()}/w")
    catalog.create_database("d")
    return catalog


def queue(catalog: Catalog, options: Mapping[str, Any]) -> Table:
    table = catalog.create_table("d.q", "k INT, n INT, dt STRING", partition_by="dt", options=options)
    for number in range(ROUNDS):
        table.append([{"k": k, "n": number, "dt": dt} for k in range(20) for dt in ("a", "b")])
    return table


def orders(table: Table) -> dict[tuple[str, int], list[int]]:
    found: dict[tuple[str, int], list[int]] = {}
    for row in table.to_arrow().to_pylist():
        found.setdefault((row["dt"], row["k"]), []).append(row["n"])
    return found


@pytest.mark.parametrize(("before", "after"), [(2, 5), (4, 1), (1, 3)])
def test_rows_of_a_key_keep_their_order(catalog: Catalog, before: int, after: int) -> None:
    table = queue(catalog, {"bucket": before, "bucket-key": "k"})
    done = table.maintenance.rescale(after)
    assert [(each.directory, each.buckets_before, each.rows) for each in done] == [
        ("dt=a", before, 80),
        ("dt=b", before, 80),
    ]
    table = catalog.load_table("d.q")
    assert table.options["bucket"] == str(after)
    assert set(table.inspect.buckets()["bucket"].to_pylist()) <= set(range(after))
    assert orders(table) == {(dt, k): [0, 1, 2, 3] for dt in ("a", "b") for k in range(20)}
    assert [each.commit_kind for each in (done[0].snapshot, done[1].snapshot) if each] == [CommitKind.OVERWRITE] * 2
    table.append([{"k": k, "n": 4, "dt": "a"} for k in range(20)])
    assert orders(table)["a", 7] == [0, 1, 2, 3, 4]
    assert table.to_arrow(filter="k = 7 AND dt = 'a'").num_rows == 5
    assert table.maintenance.rescale(after) == ()


def test_streams_do_not_deliver_the_rows_again(catalog: Catalog) -> None:
    table = queue(catalog, {"bucket": 2, "bucket-key": "k"})
    options = {"consumer-id": "me", "scan.mode": "earliest"}
    assert sum(batch.num_rows for batch in table.follow(options=options, once=True)) == 160
    table.maintenance.rescale(3)
    table = catalog.load_table("d.q")
    table.append([{"k": 1, "n": 9, "dt": "a"}])
    assert [row for batch in table.follow(options=options, once=True) for row in batch.to_pylist()] == [
        {"k": 1, "n": 9, "dt": "a"}
    ]


@pytest.mark.filterwarnings("ignore:.*existing ones keep:penstock.OptionWarning")
def test_a_dry_run_changes_nothing_and_single_partitions_follow_the_option(catalog: Catalog) -> None:
    table = queue(catalog, {"bucket": 2, "bucket-key": "k"})
    latest = table.latest_snapshot()
    assert [each.snapshot for each in table.maintenance.rescale(3, dry_run=True)] == [None, None]
    assert (table.latest_snapshot(), catalog.load_table("d.q").options["bucket"]) == (latest, "2")
    with pytest.raises(InvalidOptionError, match="set 'bucket' = '3' before"):
        table.maintenance.rescale(3, partition={"dt": "a"})
    table = catalog.alter_table("d.q", penstock.SetOption(key="bucket", value="3"))
    assert [each.directory for each in table.maintenance.rescale(partition={"dt": "b"})] == ["dt=b"]
    table.append([{"k": 1, "n": 9, "dt": "b"}])
    with pytest.raises(InvalidOptionError, match="written with 2 buckets"):
        table.append([{"k": 1, "n": 9, "dt": "a"}])


@pytest.mark.filterwarnings("ignore:.*existing ones keep:penstock.OptionWarning")
def test_writers_with_the_old_number_are_refused_where_it_would_come_back(catalog: Catalog) -> None:
    old = queue(catalog, {"bucket": 2, "bucket-key": "k"})
    table = catalog.alter_table("d.q", penstock.SetOption(key="bucket", value="3"))
    old.append([{"k": 1, "n": 9, "dt": "b"}])  # the partition still has the old number
    old.overwrite([{"k": 1, "n": 0, "dt": "b"}])
    table.maintenance.rescale(partition={"dt": "a"})
    with pytest.raises(InvalidOptionError, match=r"written with 2 buckets, .* 'bucket' has become 3; nothing was"):
        old.append([{"k": 1, "n": 9, "dt": "new"}])
    with pytest.raises(InvalidOptionError, match="has become 3"):
        old.overwrite([{"k": 1, "n": 9, "dt": "a"}])
    with pytest.raises(InvalidOptionError, match="written with 3 buckets"):
        old.append([{"k": 1, "n": 9, "dt": "a"}])
    for partition in ("a", "new"):
        table.append([{"k": 1, "n": 9, "dt": partition}])
    assert (orders(table)["a", 1][-1], orders(table)["b", 1], orders(table)["new", 1]) == (9, [0], [9])
    assert table.remove_orphan_files(older_than=utc_millis(), allow_recent=True).orphans == ()


def test_only_queues_have_a_number_of_buckets(catalog: Catalog) -> None:
    table = catalog.create_table("d.s", "k INT", options={"bucket": "-1"})
    with pytest.raises(InvalidOptionError, match="rescale is for queues: 'bucket' is -1"):
        table.maintenance.rescale(4)


def test_a_commit_of_others_is_not_lost(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    table = queue(catalog, {"bucket": 2, "bucket-key": "k"})
    rescale = penstock.table.actions.rescale
    write = rescale.write_arrow
    others = iter([True])

    def write_after_another(*arguments: Any) -> Any:
        if next(others, False):
            catalog.create_table("d.other", "k INT")  # nothing to do with it
            catalog.load_table("d.q").append([{"k": 1, "n": 9, "dt": "c"}])
        return write(*arguments)

    monkeypatch.setattr(rescale, "write_arrow", write_after_another)
    catalog.load_table("d.q").maintenance.rescale(3)
    table = catalog.load_table("d.q")
    assert orders(table)["c", 1] == [9]
    assert len(orders(table)) == 41


@pytest.mark.filterwarnings("ignore:.*existing ones keep:penstock.OptionWarning")
def test_the_procedure_has_flinks_arguments(catalog: Catalog) -> None:
    queue(catalog, {"bucket": 2, "bucket-key": "k"})
    rows = penstock.sql(None, catalog, "CALL sys.rescale(`table` => 'd.q', bucket_num => 4, sink_parallelism => 2)")
    assert rows.to_pylist() == [{"partition": f"dt={dt}", "buckets_before": 2, "rows": 80} for dt in ("a", "b")]
    penstock.sql(None, catalog, "ALTER TABLE d.q SET ('bucket' = '3'); CALL sys.rescale('d.q', 3, 'dt=a')")
    assert catalog.load_table("d.q").maintenance.rescale(dry_run=True)[0].directory == "dt=b"


def test_another_number_of_buckets_alone_warns_that_old_partitions_keep_theirs(catalog: Catalog) -> None:
    table = queue(catalog, {"bucket": 2, "bucket-key": "k"})
    rows = table.to_arrow().num_rows
    with pytest.warns(
        penstock.OptionWarning, match="existing ones keep 2 buckets, and appends to them are refused"
    ) as told:
        table = catalog.alter_table("d.q", penstock.SetOption(key="bucket", value="4"))
    assert told[0].filename == __file__
    assert table.to_arrow().num_rows == rows
    with pytest.raises(InvalidOptionError, match=r"written with 2 buckets.*table\.maintenance\.rescale\(\)"):
        table.append([{"k": 1, "n": 9, "dt": "a"}])
    table.append([{"k": 1, "n": 9, "dt": "new"}])
    table.maintenance.rescale()
    table.append([{"k": 1, "n": 9, "dt": "a"}])
    assert table.to_arrow().num_rows == rows + 2
    catalog.alter_table("d.q", penstock.SetOption(key="comment", value="x"))


def test_the_number_of_buckets_of_an_empty_table_changes_without_a_word(catalog: Catalog) -> None:
    catalog.create_table("d.q", "k INT", options={"bucket": 2, "bucket-key": "k"})
    table = catalog.alter_table("d.q", penstock.SetOption(key="bucket", value="4"))
    table.append([{"k": 1}])
    assert table.to_arrow().num_rows == 1
