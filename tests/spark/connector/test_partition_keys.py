"""Joins and aggregates by the keys of partitions: no exchange where there need be none, and always the same rows."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest
from tests.spark.needs import needs
from tests.spark.plans import plan_of

from penstock import OptionWarning, RenameColumn, SetOption
from penstock.format.schema import encode_schema
from penstock.format.types.data_types import BIGINT
from penstock.spark.connector.partition_keys import partition_keys_of
from penstock.spark.versions.facts import INSTALLED, PYTHON_SCANS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from penstock import Catalog, Table

_moment: Final = dt.datetime.fromisoformat
_SWITCH: Final = "spark.sql.sources.v2.bucketing."
_SETTINGS: Final = {
    f"{_SWITCH}enabled": "true",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    # Keys are worth it in tables of any size.
    "spark.sql.files.openCostInBytes": "0",
}
_VALUES: Final[dict[str, list[Any]]] = {
    "BOOLEAN": [True, False],
    "TINYINT": [-128, 0, 127],
    "SMALLINT": [-1, 0, 300],
    "INT": [-(2**31), -1, 0, 7, 2**31 - 1],
    "BIGINT": [-(2**63), -1, 0, 7, 2**40],
    "DATE": [dt.date(1969, 12, 31), dt.date(2026, 1, 1), dt.date(2026, 2, 1)],
    "DECIMAL(10, 2)": [Decimal("-1.10"), Decimal("0.00"), Decimal("99.99")],
    "DECIMAL(30, 2)": [Decimal("-1.10"), Decimal("0.00"), Decimal(10**20)],
    "STRING": ["", "a", "ä", "longer than seven bytes", "a "],
    "VARCHAR(30)": ["", "a", "ä", "longer than seven bytes", "a "],
    "CHAR(3)": ["a", "ab", "abc"],
    "BYTES": [b"", b"\x00", b"longer than seven bytes"],
    "DOUBLE": [0.0, -0.0, 1.5, float("nan")],
    "TIMESTAMP(3)": [_moment("2026-01-01"), _moment("1969-12-31T23:59:59.001")],
    "TIMESTAMP(6)": [_moment("2026-01-01"), _moment("1969-12-31T23:59:59.001")],
}
_PARTITIONS: Final = ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "DATE", "STRING")


@pytest.fixture(autouse=True)
def _keys(spark: SparkSession) -> Iterator[None]:
    before = {key: str(spark.conf.get(key)) for key in _SETTINGS}
    for key, value in _SETTINGS.items():
        spark.conf.set(key, value)
    yield
    for key, value in before.items():
        spark.conf.set(key, value)


def _exchanges(spark: SparkSession, query: str) -> int:
    plan: str = plan_of(spark.sql(query))
    return plan.count("Exchange hashpartitioning")


def _append(table: Table, *columns: Sequence[object]) -> None:
    fields = table.arrow_schema
    arrays = [pa.array(values, field.type) for values, field in zip(columns, fields, strict=True)]
    table.append(pa.Table.from_arrays(arrays, schema=fields))


def _queue(catalog: Catalog, name: str, key: str = "BIGINT", buckets: int = 4, keys: Sequence[object] = ()) -> Table:
    options = {"bucket": str(buckets), "bucket-key": "k", "write-only": "true"}
    table = catalog.create_table(name, f"k {key}, v INT", options=options)
    values = list(keys) or [None, *range(30)]
    _append(table, values, list(range(len(values))))
    return table


@pytest.fixture(scope="module")
def queues(catalog: Catalog) -> tuple[Table, Table]:
    return _queue(catalog, "d.a"), _queue(catalog, "d.b", keys=[None, None, *range(0, 60, 2)])


_JOIN: Final = "SELECT count(*), sum(a.v), sum(b.v) FROM penstock.d.a a JOIN penstock.d.b b ON a.k = b.k"
_GROUP: Final = "SELECT k, count(*) FROM penstock.d.a GROUP BY k"


@pytest.mark.usefixtures("queues")
def test_queues_join_and_group_by_their_bucket_key_without_an_exchange(spark: SparkSession) -> None:
    assert (_exchanges(spark, _JOIN), _exchanges(spark, _GROUP)) == (0, 0)
    assert spark.sql(_JOIN).collect() == [(15, sum(range(1, 31, 2)), sum(range(2, 17)))]
    assert len(spark.sql(_GROUP).collect()) == 31
    assert _exchanges(spark, "SELECT v, count(*) FROM penstock.d.a GROUP BY v") == 1
    spark.conf.set(f"{_SWITCH}enabled", "false")
    assert (_exchanges(spark, _JOIN), _exchanges(spark, _GROUP)) == (2, 1)


def test_a_past_state_is_in_the_buckets_of_its_own_key(spark: SparkSession, catalog: Catalog) -> None:
    _queue(catalog, "d.past")
    wanted = [(None, 1), *((k, 1) for k in range(30))]
    steps = [("k", "w"), ("v", "k"), ("w", "v")]  # the last ones swap the names
    for renamed in [steps[:1], steps[1:]]:
        catalog.alter_table("d.past", *(RenameColumn(column=old, new_name=new) for old, new in renamed))
        query = "SELECT k, count(*) FROM penstock.d.past VERSION AS OF 1 GROUP BY k"
        assert _exchanges(spark, query) == 0
        assert sorted(spark.sql(query).collect(), key=lambda row: (row[0] is not None, row[0])) == wanted
        assert spark.sql("SELECT v FROM penstock.d.past VERSION AS OF 1 WHERE v = 9").collect() == [(9,)]


@pytest.mark.usefixtures("queues")
def test_small_tables_share_tasks_and_are_exchanged(spark: SparkSession) -> None:
    frame = spark.table("penstock.d.a")
    assert frame.rdd.getNumPartitions() == 4
    spark.conf.set("spark.sql.files.openCostInBytes", "4mb")
    assert spark.sql("SELECT * FROM penstock.d.a").rdd.getNumPartitions() == 2
    assert _exchanges(spark, _JOIN) == 2


def test_keys_with_too_many_bytes_for_a_task_are_exchanged(spark: SparkSession, catalog: Catalog) -> None:
    table = _queue(catalog, "d.large")
    for _ in range(4):
        table.append([{"k": k, "v": k} for k in range(30)])
    query = "SELECT k, count(*) FROM penstock.d.large GROUP BY k"
    assert _exchanges(spark, query) == 0
    spark.conf.set("spark.sql.files.maxPartitionBytes", "1")
    try:
        assert _exchanges(spark, query) == 1
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")


@pytest.mark.usefixtures("queues")
def test_executors_do_not_get_the_classes_of_the_driver(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    try:
        assert spark.sql(_JOIN).collect()[0][0] == 15
        assert spark.sql(f"SELECT count(*) FROM ({_GROUP})").collect() == [(31,)]
    finally:
        spark.conf.unset("spark.sql.codegen.wholeStage")


@pytest.mark.usefixtures("queues")
def test_one_side_that_is_shuffled_to_the_buckets_of_the_other_gets_an_exchange_on_both(spark: SparkSession) -> None:
    spark.conf.set(f"{_SWITCH}shuffle.enabled", "true")
    try:
        query = "SELECT count(*) FROM penstock.d.a JOIN (SELECT id AS k FROM range(10)) USING (k)"
        assert spark.sql(query).collect() == [(10,)]
    finally:
        spark.conf.unset(f"{_SWITCH}shuffle.enabled")


def test_runtime_filters_leave_the_keys_of_the_partitions_that_remain(spark: SparkSession, catalog: Catalog) -> None:
    table = catalog.create_table("d.facts", "p INT, x INT", partition_by=["p"], options={"write-only": "true"})
    for _ in range(2):
        _append(table, [None, *range(8)], [1] * 9)
    query = """
        SELECT /*+ BROADCAST(r) */ f.p, count(*) FROM penstock.d.facts f
        JOIN (SELECT CAST(id AS INT) p FROM range(9) WHERE id > 6) r ON f.p = r.p
        JOIN penstock.d.facts g ON f.p = g.p GROUP BY f.p
    """
    # 4.0 and 4.1 exchange both sides.
    assert _exchanges(spark, query) == (2 if INSTALLED in {(4, 0), (4, 1)} else 0)
    assert "RuntimeFilters: [dynamicpruning" in plan_of(spark.sql(query))
    for mode in ("pushPartValues", "partiallyClusteredDistribution", "allowJoinKeysSubsetOfPartitionKeys"):
        spark.conf.set(f"{_SWITCH}{mode}.enabled", "true")
        try:
            assert spark.sql(query).collect() == [(7, 4)], mode
        finally:
            spark.conf.unset(f"{_SWITCH}{mode}.enabled")


def test_tables_whose_buckets_differ_are_exchanged(spark: SparkSession, catalog: Catalog) -> None:
    moments = [None, _moment("2026-01-01"), _moment("2026-01-02T03:04:05")]
    _queue(catalog, "d.t3", "TIMESTAMP(3)", keys=moments)
    _queue(catalog, "d.t6", "TIMESTAMP(6)", keys=moments)
    _queue(catalog, "d.of_8", buckets=8)
    _queue(catalog, "d.rescaled")
    with pytest.warns(OptionWarning, match="existing ones keep 4 buckets"):
        catalog.alter_table("d.rescaled", SetOption(key="bucket", value="8"))
    join = "SELECT count(*) FROM penstock.d.{} a JOIN penstock.d.{} b ON a.k = b.k"
    for left, right, count in (("t3", "t6", 2), ("of_8", "rescaled", 30)):
        query = join.format(left, right)
        assert _exchanges(spark, query) == 2, (left, right)
        assert spark.sql(query).collect() == [(count,)]
    assert _exchanges(spark, join.format("t6", "t6")) == 0


@needs(PYTHON_SCANS)
def test_files_in_the_buckets_of_another_type_of_the_key_are_exchanged(spark: SparkSession, catalog: Catalog) -> None:
    """Other engines may widen a bucket key; negative numbers have another hash then."""
    numbers = range(-40, 0)
    old = _queue(catalog, "d.widened", "INT", keys=numbers)
    (key, *others) = old._ref.schema.fields
    schema = replace(old._ref.schema, id=1, fields=(replace(key, type=BIGINT), *others))
    old._ref.file_io.write(old._ref.layout.schema_path(1), encode_schema(schema))
    widened = catalog.load_table("d.widened")
    _append(widened, numbers, numbers)
    _queue(catalog, "d.wide", keys=numbers)
    query = "SELECT count(*) FROM penstock.d.widened a JOIN penstock.d.wide b ON a.k = b.k"
    assert _exchanges(spark, query) == 2
    assert spark.sql(query).collect() == [(80,)]
    groups = "SELECT count(*) FROM (SELECT k FROM penstock.d.widened GROUP BY k)"
    assert spark.sql(groups).collect() == [(40,)]
    assert widened.to_arrow(filter="k = -7").num_rows == 2


def test_keys_are_those_whose_equal_values_are_always_together(catalog: Catalog) -> None:
    for name in ("DOUBLE", "CHAR(3)", "TIMESTAMP(9)", "BINARY(2)"):
        options = {"bucket": "4", "bucket-key": "k"}
        table = catalog.create_table(f"d.other_{name[:4].lower()}_{len(name)}", f"k {name}, v INT", options=options)
        assert partition_keys_of(table._ref) == (), name
    names = {}
    for place, key in enumerate(_VALUES):
        options = {"bucket": "4", "bucket-key": "k"}
        table = catalog.create_table(f"d.key_{place}", f"k {key}, v INT", options=options)
        names[key] = [each.function for each in partition_keys_of(table._ref)]
    assert names["STRING"] == names["VARCHAR(30)"] == ["penstock_bucket_default_4_varchar"]
    assert names["TIMESTAMP(3)"] != names["TIMESTAMP(6)"]
    assert names["DECIMAL(10, 2)"] != names["DECIMAL(30, 2)"]


def test_functions_of_buckets_are_not_for_queries(spark: SparkSession) -> None:
    assert not [name for (name,) in spark.sql("SHOW USER FUNCTIONS IN penstock.d").collect() if "bucket" in name]
    for call in ("penstock.d.nothing(1)", "penstock.penstock_bucket_default_4_bigint(1L)"):
        with pytest.raises(Exception, match=r"ROUTINE|FUNCTION|UDF"):
            spark.sql(f"SELECT {call}").collect()


@pytest.mark.parametrize("share", [3, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[pytest.mark.slow] if seed > 2 else []) for seed in range(6)]
)
def test_rows_are_the_same_with_keys_and_without(seed: int, share: int, spark: SparkSession, catalog: Catalog) -> None:
    """Each query on two seeds, of which one has the same buckets on both sides; the slow version asks all on each."""
    dice = random.Random(seed)  # noqa: S311 - a seed of a test
    key = dice.choice(list(_VALUES))
    parts = [dice.choice(_PARTITIONS) for _ in range(dice.randrange(3))]
    pairs = [("STRING", "VARCHAR(30)"), ("TIMESTAMP(3)", "TIMESTAMP(6)"), ("INT", "BIGINT"), (key, key)]
    kinds = dice.choice([*pairs, (key, key)])
    names = [f"p{place}" for place in range(len(parts))]
    for name, kind in zip(("l", "r"), kinds, strict=True):
        columns = ", ".join([f"k {kind}", "v INT", *(f"{p} {of}" for p, of in zip(names, parts, strict=True))])
        options = {"write-only": "true"}
        if dice.random() < 0.8:
            options |= {"bucket": str(dice.choice([1, 2, 3, 5, 8])), "bucket-key": "k"}
        if seed % 2:
            options = {"write-only": "true", "bucket": "4", "bucket-key": "k"}
        table = catalog.create_table(f"d.{name}{seed}_{share}", columns, partition_by=names, options=options)
        for _ in range(dice.randint(1, 3)):
            count = dice.randint(1, 12)
            cells = [[dice.choice([None, *_VALUES[of]]) for _ in range(count)] for of in (kind, *parts)]
            _append(table, cells[0], [dice.randrange(9) for _ in range(count)], *cells[1:])
    for query in list(_queries(f"{seed}_{share}", names))[seed % share :: share]:
        found = {}
        for switch in ("true", "false"):
            spark.conf.set(f"{_SWITCH}enabled", switch)
            found[switch] = sorted(map(repr, spark.sql(query).collect()))
        assert found["true"] == found["false"], (kinds, parts, query)


def _queries(suffix: str, names: Sequence[str]) -> Iterator[str]:
    left, right = f"penstock.d.l{suffix} l", f"penstock.d.r{suffix} r"
    for columns in [["k"], ["k", *names], names[:1]]:
        if not columns:
            continue
        on = " AND ".join(f"l.{name} = r.{name}" for name in columns)
        keys = ", ".join(f"l.{name}" for name in columns)
        for kind in ("JOIN", "LEFT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"):
            sums = "sum(l.v)" if "LEFT " in kind and kind != "LEFT JOIN" else "sum(l.v), sum(r.v)"
            yield f"SELECT {keys}, count(*), {sums} FROM {left} {kind} {right} ON {on} GROUP BY {keys}"
        yield f"SELECT {keys}, count(*), count(DISTINCT v) FROM {left} GROUP BY {keys}"
        yield f"SELECT count(*) FROM {left} JOIN {right} ON {on} WHERE r.v = 3"
    yield f"SELECT k, sum(v) FROM (TABLE {left[:-2]} UNION ALL TABLE {left[:-2]}) GROUP BY k"
    yield f"SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v) FROM {left}"
