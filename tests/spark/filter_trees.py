"""Random conditions of Spark SQL: the rows that they find, delete and update, compared with Spark's own Parquet table.

A batch is one table with the same rows in Penstock and in Parquet files, and some conditions. One query evaluates all
of them over the Parquet files as columns, without push-down; one query for each way of reading has a WHERE for each of
them, in a UNION ALL. See design/0022.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import shutil
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.errors.exceptions.base import PySparkException
from tests.support.differential.spark_sql import collect_together

from penstock.catalog.changes import AddColumn, RenameColumn, UpdateColumnType
from penstock.errors import InvalidFilterError
from penstock.spark.connector import native_reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from penstock import Catalog, Table

_COMPARISONS: Final = ("=", "<>", "<", "<=", ">", ">=", "<=>")
_ROWS: Final = 24
_CHANGED: Final = "changed"
_ADAPTIVE: Final = "spark.sql.adaptive.enabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """A column of every table.

    Attributes:
        sql: type in Penstock's DDL.
        values: values of the rows, besides NULL.
        literals: texts that it is compared with.
        is_plain: Penstock's own filters have these literals, with the same meaning.
    """

    name: str
    sql: str
    arrow: Any
    values: tuple[Any, ...]
    literals: tuple[str, ...]
    is_plain: bool = True


def _whole(name: str, sql: str, bits: int) -> _Column:
    values = (0, 1, 2, -1, 7, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)))
    # The least value has a sign that Spark reads apart from the number.
    odd = ("2.5", "1000", f"{2 ** min(bits, 62)}", "1.0", "1e3D", "CAST(1 AS BIGINT)")
    literals = (*(str(each) for each in values[:-1]), *odd)
    return _Column(name=name, sql=sql, arrow=getattr(pa, f"int{bits}")(), values=values, literals=literals)


def _days(name: str) -> _Column:
    texts = ("0001-01-01", "1000-02-28", "1582-10-04", "1582-10-05", "1582-10-10", "1582-10-14", "1582-10-15")
    texts = (*texts, "1969-12-31", "2024-02-29", "9999-12-31")
    return _Column(
        name=name,
        sql="DATE",
        arrow=pa.date32(),
        values=tuple(map(dt.date.fromisoformat, texts)),
        literals=tuple(f"DATE '{text}'" for text in texts),
    )


def _times(name: str, sql: str, zone: str | None) -> _Column:
    texts = ("0001-01-02 03:04:05.006", "1582-10-10 12:00:00", "1582-10-15 00:00:00", "1899-12-31 23:59:59.999")
    texts = (*texts, "1969-12-31 23:59:59.999", "2024-02-29 12:34:56.789", "2024-02-29 12:34:56.789012")
    texts = (*texts, "2024-11-03 08:30:00", "2024-11-03 09:30:00", "9999-12-30 00:00:00")
    stamps = tuple(dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC if zone else None) for text in texts)
    prefix, suffix = ("TIMESTAMP", "Z") if zone else ("TIMESTAMP_NTZ", "")
    more = ("DATE '2024-02-29'", "TIMESTAMP '2024-11-03 01:30:00'", "DATE '1582-10-10'")
    literals = (*(f"{prefix} '{text}{suffix}'" for text in texts), *more)
    return _Column(name=name, sql=sql, arrow=pa.timestamp("us", zone), values=stamps, literals=literals, is_plain=False)


def _texts(name: str, sql: str, values: tuple[str, ...]) -> _Column:
    literals = tuple("'" + each.replace("'", "''") + "'" for each in values)
    return _Column(name=name, sql=sql, arrow=pa.string(), values=values, literals=literals)


_FLOATS: Final = (0.0, -0.0, 1.0, -0.5, 16777216.0, math.inf, -math.inf, math.nan, 0.1)
_FLOAT_TEXTS: Final = ("0", "-0.0D", "1", "-0.5", "16777217", "0.1", "0.1D", "CAST(0.1 AS FLOAT)", "1e39D")
_FLOAT_LITERALS: Final = (*_FLOAT_TEXTS, "double('NaN')", "double('Infinity')", "float('-Infinity')")
# Texts of the full length, so that blanks at their ends make no difference. To compare shorter ones as Spark pads
# them, add such values here, and have `_reference` declare the column as CHAR(4).
_CHARS: Final = ("abcd", "abce", "zzzz", "a' d")
COLUMNS: Final = (
    _whole("id", "INT", 32),
    _Column(name="b", sql="BOOLEAN", arrow=pa.bool_(), values=(True, False), literals=("TRUE", "FALSE")),
    _whole("ti", "TINYINT", 8),
    _whole("si", "SMALLINT", 16),
    _whole("i", "INT", 32),
    _whole("l", "BIGINT", 64),
    _Column(name="f", sql="FLOAT", arrow=pa.float32(), values=_FLOATS, literals=_FLOAT_LITERALS, is_plain=False),
    _Column(name="d", sql="DOUBLE", arrow=pa.float64(), values=_FLOATS, literals=_FLOAT_LITERALS, is_plain=False),
    _Column(
        name="de",
        sql="DECIMAL(10, 2)",
        arrow=pa.decimal128(10, 2),
        values=tuple(map(Decimal, ("0.00", "1.00", "1.01", "-1.50", "99999999.99"))),
        literals=("0", "1", "1.01", "1.005", "-1.5", "99999999.99", "1e2", "12345678901.5"),
    ),
    _Column(
        name="big",
        sql="DECIMAL(38, 10)",
        arrow=pa.decimal128(38, 10),
        values=tuple(map(Decimal, ("0", "1.5", "-0.0000000001", "9" * 28))),
        literals=("0", "1.5", "-0.0000000001", "9" * 28, "1"),
    ),
    _texts("s", "STRING", ("", "a", "ab", "abc", "ab ", "äöü", "☃", "a'b", "a%b", "zz")),
    _texts("c", "CHAR(4)", _CHARS),
    _texts("v", "VARCHAR(5)", ("", "a", "ab", "abcde", "zz")),
    _Column(
        name="bin",
        sql="BYTES",
        arrow=pa.binary(),
        values=(b"", b"\x00", b"\xff\xfe", b"ab"),
        literals=("X''", "X'00'", "X'FFFE'", "X'6162'"),
    ),
    _days("dt"),
    _times("ts", "TIMESTAMP_LTZ(6)", "UTC"),
    _times("tn", "TIMESTAMP(6)", None),
    _Column(
        name="r",
        sql="ROW<x INT, y STRING, z DATE>",
        arrow=pa.struct([("x", pa.int32()), ("y", pa.string()), ("z", pa.date32())]),
        values=(
            {"x": 1, "y": "a", "z": dt.date(1582, 10, 10)},
            {"x": None, "y": "ab", "z": None},
            {"x": 7, "y": None, "z": dt.date(2024, 2, 29)},
        ),
        literals=("named_struct('x', 1, 'y', 'a', 'z', DATE '1582-10-10')",),
        is_plain=False,
    ),
    _Column(name="pi", sql="INT", arrow=pa.int32(), values=(1, 2), literals=("0", "1", "2", "1.5")),
    _Column(name="pb", sql="BOOLEAN", arrow=pa.bool_(), values=(True, False), literals=("TRUE", "FALSE")),
    replace(_days("pd"), values=(dt.date(1582, 10, 10), dt.date(2024, 2, 29))),
    _texts("ps", "STRING", ("a", "ab")),
)
_LITERALS: Final = {
    **{column.name: column.literals for column in COLUMNS},
    "r.x": ("1", "7", "NULL"),
    "r.y": ("'a'", "'ab'"),
    "r.z": ("DATE '1582-10-10'", "DATE '2024-02-29'"),
}
_SQL: Final = {column.name: column.sql for column in COLUMNS}
_FORMATS: Final = ("parquet", "parquet", "parquet", "parquet", "orc", "avro")
# By change of the schema between files: columns that the first ones lack, and types that they have.
_CHANGES: Final[dict[str, tuple[tuple[str, ...], dict[str, str]]]] = {
    "added": (("b", "dt"), {}),
    "widened": ((), {"i": "SMALLINT", "l": "INT"}),
    "renamed": ((), {}),
}
# `@` is a column, `#` one of its literals, `?` a comparison.
_OF_COLUMNS: Final = (
    "@ ? #",
    "@ ? #",
    "@ ? #",
    "# ? @",
    "@ IN (#, #)",
    "@ IN (#)",
    "@ IN (#, #, #)",
    "@ IN (#, NULL)",
    "@ NOT IN (#, #)",
    "@ NOT IN (#, NULL)",
    "@ BETWEEN # AND #",
    "@ NOT BETWEEN # AND #",
    "@ IS NULL",
    "@ IS NOT NULL",
)
_OF_COLUMNS_IN_SPARK: Final = (
    "@ <=> NULL",
    "@ <=> #",
    "@ = NULL",
    "@ IS DISTINCT FROM #",
    "coalesce(@, #) ? #",
    "nullif(@, #) IS NULL",
    "CASE WHEN @ IS NULL THEN # ELSE @ END = #",
    "if(b, @, #) ? #",
    "CAST(@ AS STRING) ? CAST(# AS STRING)",
    "CAST(@ AS STRING) LIKE '1%'",
)
# `{name}` is a literal of a column.
_OTHERS: Final = (
    *("b", "NOT b", "pb", "b IS TRUE", "b IS NOT FALSE", "b IS UNKNOWN", "b = (i > 0)", "b AND pb", "b <=> pb"),
    *("TRUE", "FALSE", "CAST(NULL AS BOOLEAN)", "1 = 1", "1 > 2", "NULL IS NULL"),
    *(f"{name} LIKE {like}" for name in ("s", "v", "ps", "r.y") for like in ("'a%'", "'%b'", "'%a%'", "'a_c'", "'ab'")),
    *("s NOT LIKE 'a%'", "c LIKE 'ab%'", "s LIKE '%'", "s LIKE ''", "s LIKE 'a\\\\%b'", "s RLIKE '^a'", "s LIKE NULL"),
    *("startswith(s, 'a')", "endswith(s, 'b')", "contains(s, 'a')", "length(s) > 1", "upper(s) = 'A'", "s || v = 'aa'"),
    *(
        "i % 3 = 1",
        "-CAST(si AS INT) > {i}",
        "si + 1 ? {i}",
        "i + 0L = {i}",
        "greatest(i, si) ? {i}",
        "i < l",
        "ti = si",
        "pi = i",
    ),
    *(
        "CAST(i AS BIGINT) ? {i}",
        "CAST(ti AS INT) IN ({ti}, {ti})",
        "try_cast(l AS INT) ? {i}",
        "CAST(i AS DOUBLE) ? 1.5D",
    ),
    *(
        "try_cast(s AS INT) IS NULL",
        "CAST(si AS DECIMAL(10, 1)) = 1.0",
        "CAST(f AS DOUBLE) = 0.1D",
        "CAST(b AS INT) = 1",
    ),
    *("isnan(f)", "isnan(d)", "f = d", "f < d", "nanvl(d, 1D) = 1D", "d = f + 0", "abs(f) = 0", "f <=> d", "de = big"),
    *("year(dt) = 2024", "dt = pd", "date_add(dt, 1) > {dt}", "CAST(ts AS DATE) ? {dt}", "CAST(tn AS DATE) = {dt}"),
    *("CAST(dt AS TIMESTAMP) ? {ts}", "CAST(dt AS TIMESTAMP_NTZ) = {tn}", "date_trunc('DAY', ts) = {ts}", "ts = tn"),
    *(
        "month(ts) = 11",
        "hour(tn) = 12",
        "unix_date(dt) < 0",
        "hex(bin) = '00'",
        "length(bin) = 2",
        "CAST(s AS BINARY) = bin",
    ),
    *(
        "r.x ? {r.x}",
        "{r.x} ? r.x",
        "r.x IN (1, 7)",
        "r.x IS NULL",
        "r.y ? {r.y}",
        "r.z ? {r.z}",
        "r.z IN ({r.z}, {r.z})",
    ),
    *("r.y IS NOT NULL", "r.x <=> NULL", "r.x = i"),
)
_NO_ROWS: Final = "(SELECT * FROM folded WHERE key > 100)"
_SOURCES: Final = ("folded", "local", "files", "empty", _NO_ROWS, _NO_ROWS)
# `$` is a source of (key INT, name STRING).
_SUBQUERIES: Final = (
    "EXISTS (SELECT * FROM $ WHERE key > {pi})",
    "NOT EXISTS (SELECT * FROM $ WHERE key > {pi})",
    "NOT EXISTS (SELECT * FROM $ WHERE key > 7)",
    "NOT EXISTS (SELECT * FROM $)",
    "EXISTS (SELECT * FROM $ WHERE key = i)",
    "NOT EXISTS (SELECT * FROM $ WHERE key = i)",
    "NOT EXISTS (SELECT 1 FROM $ WHERE name = s AND key > {pi})",
    "EXISTS (SELECT 1 FROM $ WHERE key = pi AND name <> 'zz')",
    "i IN (SELECT key FROM $)",
    "pi IN (SELECT key FROM $ WHERE key < 7)",
    "i NOT IN (SELECT key FROM $)",
    "s NOT IN (SELECT name FROM $ WHERE name IS NOT NULL)",
    "(i, s) IN (SELECT key, name FROM $)",
    "i ? (SELECT max(key) FROM $)",
    "pi = (SELECT min(key) FROM $ WHERE key > 7)",
    "(SELECT count(*) FROM $ WHERE key > 7) = 0",
    "(SELECT max(name) FROM $) IS NULL",
    "(SELECT count(*) FROM $ WHERE key = i) = 0",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A text, or AND, OR or NOT of conditions.

    Attributes:
        is_plain: a text with the same meaning in Penstock's own filters.
    """

    text: str = ""
    is_plain: bool = False
    operator: str = ""
    parts: tuple[Condition, ...] = ()

    @property
    def sql(self) -> str:
        """The condition in SQL."""
        if not self.parts:
            return self.text
        parts = [f"({part.sql})" for part in self.parts]
        return f"NOT {parts[0]}" if self.operator == "NOT" else f" {self.operator} ".join(parts)

    @property
    def is_filter(self) -> bool:
        """Whether Penstock's own filters can express it."""
        return all(part.is_filter for part in self.parts) if self.parts else self.is_plain

    @property
    def has_subquery(self) -> bool:
        """Whether it contains a SELECT."""
        return "SELECT" in self.sql

    def smaller(self) -> Iterator[Condition]:
        """Yield conditions that have a part less, the smallest first."""
        yield from self.parts
        for place, part in enumerate(self.parts):
            before, after = self.parts[:place], self.parts[place + 1 :]
            if len(self.parts) > 2:
                yield replace(self, parts=(*before, *after))
            yield from (replace(self, parts=(*before, each, *after)) for each in part.smaller())


def random_condition(
    random: Random, *, depth: int = 3, subqueries: float = 0.0, plain: bool | None = None
) -> Condition:
    """Return a condition.

    Args:
        subqueries: their share among the parts.
        plain: whether all parts are plain; None for a third of the conditions.
    """
    is_plain = random.random() < 0.35 - subqueries if plain is None else plain
    if depth == 0 or random.random() < 0.3:
        return _part(random, subqueries, is_plain=is_plain)
    operator = random.choice(("AND", "AND", "OR", "OR", "OR", "NOT"))
    count = 1 if operator == "NOT" else random.choice((2, 2, 3))
    parts = (random_condition(random, depth=depth - 1, subqueries=subqueries, plain=is_plain) for _ in range(count))
    return Condition(operator=operator, parts=tuple(parts))


def _part(random: Random, subqueries: float, *, is_plain: bool) -> Condition:
    texts = _OF_COLUMNS if is_plain else random.choice((_OF_COLUMNS, _OF_COLUMNS_IN_SPARK, _OTHERS, _OTHERS))
    text = random.choice(_SUBQUERIES if not is_plain and random.random() < subqueries else texts)
    name = random.choice([column.name for column in COLUMNS if column.is_plain or not is_plain])
    text = text.replace("@", name).replace("$", random.choice(_SOURCES))
    text = re.sub("#", lambda _: random.choice(_LITERALS[name]), text)
    text = re.sub(r"\{(.*?)\}", lambda found: random.choice(_LITERALS[found[1]]), text)
    return Condition(text=text.replace("?", random.choice(_COMPARISONS)), is_plain=is_plain)


@dataclass(slots=True)
class Findings:
    """What a run found.

    Attributes:
        texts: differences, each with the smallest condition that has it.
        tally: numbers of conditions by way, and of those that were not compared by reason.
    """

    texts: list[str] = field(default_factory=list)
    tally: Counter[str] = field(default_factory=Counter)


def create_sources(spark: SparkSession, folder: Path) -> None:
    """Create the views that subqueries read: one that Spark folds, a local one, files, and one without rows."""
    rows = "(1, 'a'), (2, 'ab'), (7, NULL), (NULL, 'zz')"
    spark.sql(f"SELECT * FROM VALUES {rows} AS t(key, name)").createOrReplaceTempView("folded")  # noqa: S608 - texts of ours
    keys = pa.table({"key": pa.array([1, 7], pa.int32()), "name": ["a", "zz"]})
    spark.createDataFrame(keys).createOrReplaceTempView("local")
    for name, table in {"files": keys, "empty": keys.slice(0, 0)}.items():
        pq.write_table(table, folder / f"{name}.parquet")
        spark.read.parquet(str(folder / f"{name}.parquet")).createOrReplaceTempView(name)


class Batch:
    """One table, and conditions on it.

    Args:
        catalog: attached to the session as ``penstock``, with a database ``fuzz``.
        seed: of the table and of the conditions.
    """

    def __init__(self, spark: SparkSession, catalog: Catalog, folder: Path, seed: int) -> None:
        self._spark = spark
        self._catalog = catalog
        self._random = Random(seed)  # noqa: S311 - not for secrets
        self._name = f"trees{seed}"
        self._copies = 0
        self._folder = folder / self._name
        self._rows = self._new_rows()
        self.layout, self._table = self._created()
        self._reference = self._reference_view()

    def conditions(self, count: int, *, change_every: int) -> list[Condition]:
        """Return random conditions; those of changes are short and have subqueries, which take Spark long to plan."""
        return [
            random_condition(self._random, depth=1, subqueries=0.5)
            if change_every and place % change_every == 0
            else random_condition(self._random, subqueries=0.03)
            for place in range(count)
        ]

    def run(self, count: int, findings: Findings, *, format_every: int, change_every: int) -> None:
        """Compare conditions: each by SQL, half of them by ``to_spark``, some of them in the other ways.

        Args:
            format_every: number of conditions of which one is for ``format``; 0 for none.
            change_every: the same for DELETE and UPDATE.
        """
        given = self.conditions(count, change_every=change_every)
        known = self._expected(given, findings)
        conditions = list(known)
        self._compare("catalog", conditions, known, self._by_sql, findings)
        self._compare("to_spark().where", conditions[1::2], known, self._by_frame, findings)
        if format_every:
            without = [each for each in conditions if not each.has_subquery]
            self._compare("format", without[::format_every], known, self._by_format, findings)
        for each in (each for each in conditions if each.is_filter):
            self._compare_one("to_arrow", each, known[each], self._by_arrow, findings)
        for each in (each for each in given[::change_every] if each in known) if change_every else ():
            before = self._spark.conf.get(_ADAPTIVE)
            self._spark.conf.set(_ADAPTIVE, self._random.choice(("true", "false")))
            self._compare_one("DELETE", each, known[each], self._by_delete, findings)
            self._compare_one("UPDATE", each, known[each], self._by_update, findings)
            self._spark.conf.set(_ADAPTIVE, before)

    def drop(self) -> None:
        """Delete the files of the batch."""
        self._spark.table(self._reference).unpersist()
        self._spark.catalog.dropTempView(self._reference)
        for each in (self._folder, Path(self._table.location)):
            shutil.rmtree(each, ignore_errors=True)

    # Tables

    def _new_rows(self) -> pa.Table:
        random = self._random
        columns: dict[str, list[Any]] = {}
        for column in COLUMNS:
            # Some columns with few values, so that files have only one of them.
            values = random.sample(column.values, k=random.randint(2, len(column.values)))
            columns[column.name] = random.choices([*values, *values, None], k=_ROWS)
        columns["id"] = random.sample(range(100), k=_ROWS)
        rows = pa.table([pa.array(columns[each.name], each.arrow) for each in COLUMNS], names=list(columns))
        sortable = [each.name for each in COLUMNS if each.name != "r"]
        return rows.sort_by(random.choice(sortable))

    def _created(self) -> tuple[str, Table]:
        random, name = self._random, f"fuzz.{self._name}"
        keys = random.choice(((), (), ("pi",), ("pb",), ("pd", "ps"), ("ps",)))
        options = {"file.format": random.choice(_FORMATS), "write-only": "true"}
        if not keys and random.random() < 0.15:
            options |= {"bucket": "2", "bucket-key": random.choice(("id", "i", "s"))}
        change = random.choice(("", "", "", *_CHANGES)) if options["file.format"] == "parquet" else ""
        dropped, retyped = _CHANGES.get(change, ((), {}))
        columns = {each.name: retyped.get(each.name, each.sql) for each in COLUMNS if each.name not in dropped}
        old = {("s_old" if change == "renamed" and key == "s" else key): sql for key, sql in columns.items()}
        table = self._catalog.create_table(
            name, ", ".join(f"{key} {sql}" for key, sql in old.items()), partition_by=keys, options=options
        )
        if change:
            self._rows = pa.concat_tables([_as_before(self._rows.slice(0, 10), change), self._rows.slice(10)])
            self._append(table, self._rows.slice(0, 5))
            self._append(table, self._rows.slice(5, 5))
            for each in dropped:
                self._catalog.alter_table(name, AddColumn(column=each, type=_SQL[each]))
            for each in retyped:
                self._catalog.alter_table(name, UpdateColumnType(column=each, type=_SQL[each]))
            if change == "renamed":
                self._catalog.alter_table(name, RenameColumn(column="s_old", new_name="s"))
            table = self._catalog.load_table(name)
        for start in range(10 if change else 0, _ROWS, 5):
            self._append(table, self._rows.slice(start, 5))
        return f"{options} by {keys} {change}", table

    def _append(self, table: Table, rows: pa.Table) -> None:
        schema = table.arrow_schema
        columns = [rows[name.removesuffix("_old")].cast(schema.field(name).type) for name in schema.names]
        table.append(pa.table(columns, schema=schema))

    def _reference_view(self) -> str:
        self._folder.mkdir(parents=True)
        pq.write_table(self._rows, self._folder / "rows.parquet")
        frame = self._spark.read.option("datetimeRebaseMode", "CORRECTED").parquet(str(self._folder))
        # In memory: conditions with subqueries go into a WHERE, and Spark's own Parquet tables lose days before
        # 1582-10-15 where its reader gets them as filters.
        frame.cache().createOrReplaceTempView(name := f"reference_{self._name}")
        return name

    # Ways to find rows

    def _expected(self, conditions: Sequence[Condition], findings: Findings) -> dict[Condition, set[int]]:
        """Return the ids of the rows for which each condition is true, without those that Spark refuses."""
        try:
            return self._evaluated(conditions)
        except PySparkException as error:
            if len(conditions) == 1:
                findings.tally[f"refused by Spark: {error.getCondition()}"] += 1
                return {}
            middle = len(conditions) // 2
            return self._expected(conditions[:middle], findings) | self._expected(conditions[middle:], findings)

    def _evaluated(self, conditions: Sequence[Condition]) -> dict[Condition, set[int]]:
        table = self._spark.table(self._reference)
        columns = [f"({each.sql}) AS c{place}" for place, each in enumerate(conditions) if not each.has_subquery]
        found = table.selectExpr("id", *columns).toArrow()
        by_query = iter(self._where(table, [each for each in conditions if each.has_subquery]))
        known = {}
        for place, each in enumerate(conditions):
            known[each] = (
                next(by_query) if each.has_subquery else set(found.filter(found[f"c{place}"])["id"].to_pylist())
            )
        return known

    def _where(self, frame: DataFrame, conditions: Sequence[Condition]) -> list[set[int]]:
        """Return the ids that each condition finds, by one query."""
        frames = [frame.where(each.sql).select("id") for each in conditions]
        return [_ids(each) for each in (collect_together(frames) if frames else ())]

    def _by_sql(self, conditions: Sequence[Condition]) -> list[set[int]]:
        return self._where(self._spark.table(f"penstock.fuzz.{self._name}"), conditions)

    def _by_frame(self, conditions: Sequence[Condition]) -> list[set[int]]:
        return self._where(self._table.to_spark(self._spark), conditions)

    def _by_format(self, conditions: Sequence[Condition]) -> list[set[int]]:
        return self._where(self._spark.read.format("penstock").load(self._table.location), conditions)

    def _by_arrow(self, condition: Condition) -> set[int]:
        return _ids(self._table.to_arrow(filter=condition.sql, columns=["id"]))

    def _by_delete(self, condition: Condition) -> set[int]:
        return _ids(self._rows) - _ids(self._changed(f"DELETE FROM {{}} WHERE {condition.sql}"))  # noqa: S608 - texts of ours

    def _by_update(self, condition: Condition) -> set[int]:
        rows = self._changed(f"UPDATE {{}} SET s = '{_CHANGED}' WHERE {condition.sql}")  # noqa: S608 - texts of ours
        assert rows.num_rows == _ROWS
        return _ids(rows.filter(pc.equal(rows["s"], _CHANGED)))

    def _changed(self, statement: str) -> pa.Table:
        """Return ids and texts after a statement on a copy of the table."""
        self._copies += 1
        name = f"{self._name}_{self._copies}"
        location = Path(self._table.location)
        copy = location.with_name(location.name.replace(self._name, name))
        shutil.copytree(location, copy)
        try:
            self._spark.sql(statement.format(f"penstock.fuzz.{name}"))
            return self._catalog.load_table(f"fuzz.{name}").to_arrow(columns=["id", "s"])
        finally:
            shutil.rmtree(copy)

    # Comparison

    def _compare(
        self,
        way: str,
        conditions: Sequence[Condition],
        known: dict[Condition, set[int]],
        find: Callable[[Sequence[Condition]], list[set[int]]],
        findings: Findings,
    ) -> None:
        """Compare conditions by one query; one after the other those that differ, or all if it fails."""
        try:
            found = find(conditions)
        except Exception:  # noqa: BLE001 - the queries one by one say which of them it was
            findings.tally["queries that failed as one"] += 1
            found = [set()] * len(conditions)
        for each, ids in zip(conditions, found, strict=True):
            if ids == known[each]:
                findings.tally[way] += 1
            else:
                self._compare_one(way, each, known[each], lambda one: find([one])[0], findings)

    def _compare_one(
        self, way: str, condition: Condition, ids: set[int], find: Callable[[Condition], set[int]], findings: Findings
    ) -> None:
        try:
            found: object = find(condition)
        except Exception as error:  # noqa: BLE001 - whatever an engine raises is a finding
            if (reason := _refusal(way, error)) is not None:
                findings.tally[f"{way} refused: {reason}"] += 1
                return
            found = f"{type(error).__name__}: {str(error)[:300]}"
        findings.tally[way] += 1
        if found != ids:
            smallest = self._smallest(condition, find)
            findings.texts.append(
                f"{self._name} {self.layout}, {way}: {smallest.sql}\n  of {condition.sql}\n  finds {sorted(ids)}, "
                f"and found {sorted(found) if isinstance(found, set) else found}"
            )

    def _smallest(self, condition: Condition, find: Callable[[Condition], set[int]]) -> Condition:
        """Return the smallest condition with a difference that removing parts leads to."""
        for each in condition.smaller():
            try:
                if self._evaluated([each])[each] != find(each):
                    return self._smallest(each, find)
            except Exception:  # noqa: BLE001, S112 - another failure than the one to reduce
                continue
        return condition


def _ids(rows: pa.Table) -> set[int]:
    ids = rows["id"].to_pylist()
    return set(ids) if len(ids) == len(set(ids)) else {-1, *ids}


def _as_before(rows: pa.Table, change: str) -> pa.Table:
    """Return rows as they are after a change of the schema: without values that did not fit before."""
    dropped, retyped = _CHANGES[change]
    for name in (*dropped, *retyped):
        place, kind = rows.schema.get_field_index(name), rows.schema.field(name)
        values = rows[name].to_pylist()
        kept = [None if name in dropped or value is None or abs(value) > 1000 else value for value in values]
        rows = rows.set_column(place, kind, pa.array(kept, kind.type))
    return rows


def _refusal(way: str, error: Exception) -> str | None:
    """Return why a condition is refused, if that is right; None if it is a finding."""
    if way == "to_arrow" and isinstance(error, InvalidFilterError):
        return "a literal or an operator that Penstock's filters lack"
    if way in {"DELETE", "UPDATE"} and "its rows are in buckets" in str(error):
        return "buckets"
    if "V2ExpressionBuilder.generateExpression" in f"{error} {getattr(error, '_stackTrace', '')}":
        return "an assertion of Spark's, which fails for some conditions on each table of its V2 API"
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    return condition if way in {"DELETE", "UPDATE"} and (condition or "").startswith("UNSUPPORTED_SUBQUERY") else None


@contextmanager
def count_filters(findings: Findings) -> Iterator[None]:
    """Count the scans by Spark's readers, and those of them whose readers get filters."""
    original = native_reader.reader_factory

    def counted(*arguments: Any) -> Any:
        findings.tally["scans by Spark's readers"] += 1
        findings.tally["scans whose reader got filters"] += len(arguments[-1]) > 0
        return original(*arguments)

    native_reader.reader_factory = counted
    try:
        yield
    finally:
        native_reader.reader_factory = original
