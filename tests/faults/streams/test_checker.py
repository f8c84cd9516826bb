"""The checker itself: it must see every kind of damage, or the stream tests prove nothing."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.faults.streams.checker import LANE, LANE_OF_PRODUCER, Verdict, check_rows, load_placed_rows
from tests.faults.streams.order import TaskOrder
from tests.faults.streams.rows import BUCKETS, PARTITIONS, Producer, make_queue

import penstock

COUNT = 4_000


@pytest.fixture(scope="module")
def sent() -> pa.Table:
    return Producer(1).rows(COUNT)


def _findings(verdict: Verdict) -> dict[str, int]:
    names = ("lost", "doubled", "unknown", "misplaced", "disordered")
    return {name: getattr(verdict, name) for name in names if getattr(verdict, name)}


def _without(rows: pa.Table, place: int) -> pa.Table:
    return pa.concat_tables([rows.slice(0, place), rows.slice(place + 1)])


def _swapped(rows: pa.Table, one: int, other: int) -> pa.Table:
    places = np.arange(rows.num_rows)
    places[[one, other]] = places[[other, one]]
    return rows.take(places)


def _neighbours(rows: pa.Table) -> tuple[int, int]:
    """Two rows of one lane, one after the other there."""
    first = rows.slice(0, 1).to_pylist()[0]
    lane = [place for place, row in enumerate(rows.to_pylist()) if (row["p"], row["b"]) == (first["p"], first["b"])]
    return lane[0], lane[1]


def test_rows_as_they_were_sent_are_clean(sent: pa.Table) -> None:
    verdict = check_rows(sent, sent)
    assert verdict.is_clean
    assert verdict.rows == COUNT
    assert verdict.examples == ()


def test_lanes_may_arrive_in_any_order_among_each_other(sent: pa.Table) -> None:
    assert check_rows(sent, sent.sort_by([("b", "descending"), ("p", "ascending"), ("n", "ascending")])).is_clean


@pytest.mark.parametrize("place", [0, 17, COUNT - 1])
def test_one_lost_row_is_seen(sent: pa.Table, place: int) -> None:
    verdict = check_rows(sent, _without(sent, place))
    assert _findings(verdict) == {"lost": 1}
    row = sent.slice(place, 1).select(["p", "b", "producer", "n"]).to_pylist()[0]
    assert verdict.examples == (f"lost: {row}",)


def test_a_row_that_comes_again_is_seen(sent: pa.Table) -> None:
    assert _findings(check_rows(sent, pa.concat_tables([sent, sent.slice(COUNT - 1, 1)]))) == {"doubled": 1}


def test_a_batch_that_comes_again_is_seen_as_doubled_and_late(sent: pa.Table) -> None:
    findings = _findings(check_rows(sent, pa.concat_tables([sent, sent.slice(100, 500)])))
    assert findings["doubled"] == 500
    assert findings["disordered"] == BUCKETS * len(PARTITIONS)


def test_neighbours_that_changed_places_are_seen(sent: pa.Table) -> None:
    assert _findings(check_rows(sent, _swapped(sent, *_neighbours(sent)))) == {"disordered": 1}


def test_batches_that_changed_places_are_seen(sent: pa.Table) -> None:
    found = pa.concat_tables([sent.slice(2_000), sent.slice(0, 2_000)])
    assert _findings(check_rows(sent, found)) == {"disordered": BUCKETS * len(PARTITIONS)}


def test_a_row_that_was_not_sent_is_detected(sent: pa.Table) -> None:
    stranger = Producer(2).rows(1)
    assert _findings(check_rows(sent, pa.concat_tables([sent, stranger]))) == {"unknown": 1}


def test_a_row_in_a_bucket_that_is_not_its_own_is_seen(sent: pa.Table) -> None:
    buckets = sent["b"].to_numpy().copy()
    buckets[5] = (buckets[5] + 1) % BUCKETS
    assert _findings(check_rows(sent, sent.append_column("bucket", pa.array(buckets)))) == {"misplaced": 1}


def test_an_empty_set_differs_from_a_full_one(sent: pa.Table) -> None:
    assert _findings(check_rows(sent, sent.slice(0, 0))) == {"lost": COUNT}
    assert check_rows(sent.slice(0, 0), sent.slice(0, 0)).is_clean


def test_producers_that_wrote_at_once_have_an_order_each_but_none_among_them() -> None:
    one, other = Producer(1).rows(COUNT), Producer(2).rows(COUNT)
    sent, found = pa.concat_tables([one, other]), pa.concat_tables([other, one])
    assert check_rows(sent, found, lane=LANE_OF_PRODUCER).is_clean
    assert not check_rows(sent, found, lane=LANE).is_clean
    swapped = pa.concat_tables([other, _swapped(one, *_neighbours(one))])
    assert _findings(check_rows(sent, swapped, lane=LANE_OF_PRODUCER)) == {"disordered": 1}


def test_numbers_go_on_from_one_batch_of_a_producer_to_the_next() -> None:
    producer = Producer(3)
    batches = [producer.rows(COUNT), producer.rows(100, (10,)), producer.rows(COUNT)]
    assert set(batches[1]["p"].to_pylist()) == {10}
    groups: Any = pa.concat_tables(batches).group_by(["p", "b"], use_threads=False).aggregate([("n", "list")])
    assert groups.num_rows == BUCKETS * len(PARTITIONS)
    assert all(row["n_list"] == list(range(len(row["n_list"]))) for row in groups.to_pylist())


def test_rows_are_read_from_a_queue_with_their_bucket_and_in_their_order(tmp_path: Any) -> None:
    catalog = penstock.Catalog(str(tmp_path))
    catalog.create_database("d")
    table = make_queue(catalog, "d.t")
    assert load_placed_rows(table).num_rows == 0
    producer = Producer(1)
    batches = [producer.rows(COUNT), producer.rows(COUNT)]
    for batch in batches:
        table.append(batch)
    found = load_placed_rows(table)
    assert set(found["bucket"].to_pylist()) == set(range(BUCKETS))
    assert check_rows(pa.concat_tables(batches), found).is_clean
    table.append(batches[0])
    assert _findings(check_rows(pa.concat_tables(batches), load_placed_rows(table)))["doubled"] == COUNT


def _pass(*batches: pa.Table) -> int:
    pieces = [piece for batch in batches for piece in batch.combine_chunks().to_batches()]
    return sum(batch.num_rows for batch in TaskOrder()(iter(pieces)))


def _of_bucket(rows: pa.Table, bucket: int) -> pa.Table:
    return rows.filter(pc.equal(rows["b"], bucket))


def test_a_task_with_one_bucket_in_order_passes(sent: pa.Table) -> None:
    rows = _of_bucket(sent, 3)
    assert _pass(rows.slice(0, 100), rows.slice(100)) == rows.num_rows > 300
    assert _pass(rows.slice(57)) == rows.num_rows - 57


def test_a_task_with_a_gap_a_repetition_or_a_step_back_fails(sent: pa.Table) -> None:
    rows = _of_bucket(sent, 3)
    for damaged in (
        [_without(rows, 200)],
        [rows.slice(0, 100), rows.slice(150)],
        [rows.slice(0, 100), rows.slice(99)],
        [_swapped(rows, *_neighbours(rows))],
        [rows.slice(200), rows.slice(0, 200)],
    ):
        with pytest.raises(AssertionError, match="was due"):
            _pass(*damaged)


def test_a_task_with_rows_of_two_buckets_passes_if_each_is_in_order(sent: pa.Table) -> None:
    first, second = _of_bucket(sent, 3), _of_bucket(sent, 4)
    assert _pass(first.slice(0, 100), second, first.slice(100)) == first.num_rows + second.num_rows
    with pytest.raises(AssertionError, match=r"bucket and producer \(\d+, 4, \d+\): row \d+ was due"):
        _pass(first, second.slice(0, 100), second.slice(150))


def test_a_task_whose_partitions_come_in_another_order_than_promised_fails(sent: pa.Table) -> None:
    rows = _of_bucket(sent, 3)
    by_value = rows.sort_by([("p", "ascending"), ("n", "ascending")])
    by_text = pa.concat_tables([rows.filter(pc.equal(rows["p"], p)) for p in (10, 100, 9)])
    for good, bad, check in (
        (by_value, by_text, TaskOrder(("producer", "p"))),
        (by_text, by_value, TaskOrder(("p", "producer"), (10, 100, 9))),
    ):
        assert sum(batch.num_rows for batch in check(iter(good.to_batches()))) == rows.num_rows
        with pytest.raises(AssertionError, match="after"):
            list(check(iter(bad.to_batches())))
