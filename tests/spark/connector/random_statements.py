"""Random statements on a partitioned table, and queries that compute the same rows over Spark's own Parquet table.

Each statement is drawn with a query over the rows before it; the result of the query, in a new Parquet table, is what
the table has to hold after the statement.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from tests.support.garbage import needed_files, stored_files

from penstock.format.text.names import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from penstock import Catalog

PARTITION_VALUES: Final = {
    "STRING": ("'a'", "'B'", "''", "'a/b=c%2F'", "NULL", "'__DEFAULT_PARTITION__'", "' x '", "'é\\n'", "'x:y*z?'"),
    "INT": ("0", "1", "-1", "NULL", "2147483647"),
    "BIGINT": ("0", "1", "-9223372036854775807", "NULL"),
    "DATE": ("DATE'2024-02-29'", "DATE'1582-10-04'", "DATE'0001-01-01'", "NULL", "DATE'9999-12-31'"),
    "TIMESTAMP": (
        "TIMESTAMP'2024-11-03 01:30:00-07:00'",
        "TIMESTAMP'2024-11-03 01:30:00-08:00'",
        "TIMESTAMP'1969-12-31 23:59:59.999999'",
        "TIMESTAMP'1500-01-01 00:00:00'",
        "NULL",
    ),
    "TIMESTAMP_NTZ": ("TIMESTAMP_NTZ'2024-03-10 02:30:00'", "TIMESTAMP_NTZ'1500-01-01 00:00:00'", "NULL"),
    "DECIMAL(9,2)": ("0", "1.5", "-0.01", "9999999.99", "NULL"),
    "DECIMAL(38,10)": ("0", "-0.01", "9999999999999999999999999999", "NULL"),
    "BOOLEAN": ("true", "false", "NULL"),
    "DOUBLE": ("1.5D", "CAST('NaN' AS DOUBLE)", "CAST('Infinity' AS DOUBLE)", "NULL"),
    "VARCHAR(4)": ("'a'", "'abcd'", "'é'", "NULL", "''", "'ab  '"),
    "BINARY": ("X'00ff'", "X'6162'", "NULL", "X''"),
}
COLUMN_VALUES: Final = {
    "INT": ("0", "1", "2", "7", "-5", "NULL"),
    "STRING": ("'s'", "'t'", "'long text of more than sixteen bytes'", "NULL", "''"),
    "ARRAY<INT>": ("array(1, 2)", "array()", "array(CAST(NULL AS INT))", "NULL"),
    "STRUCT<x: INT, y: STRING>": ("named_struct('x', 1, 'y', 'q')", "named_struct('x', NULL, 'y', NULL)", "NULL"),
    "MAP<STRING, INT>": ("map('k', 1)", "map()", "NULL"),
    "DOUBLE": ("1.5D", "CAST('NaN' AS DOUBLE)", "NULL"),
    "TIMESTAMP": ("TIMESTAMP'2024-11-03 01:30:00-07:00'", "TIMESTAMP'2020-01-01 00:00:00.123456'", "NULL"),
    "DECIMAL(10,3)": ("1.125", "-7", "NULL"),
    "CHAR(4)": ("'c'", "'four'", "NULL"),
}
KINDS: Final[dict[str, dict[str, str]]] = {
    "plain": {},
    "vectors": {"deletion-vectors.enabled": "true"},
    "tracked": {"row-tracking.enabled": "true"},
    "tracked vectors": {"deletion-vectors.enabled": "true", "row-tracking.enabled": "true"},
    "queue": {"bucket": "2", "bucket-key": "id"},
    "queue of one": {"bucket": "1", "bucket-key": "id"},
    "queue with vectors": {"bucket": "2", "bucket-key": "id", "deletion-vectors.enabled": "true"},
}
# Each in about one table of six.
EXTRAS: Final = (
    {"target-file-row-num": "3"},
    {"file-index.bloom-filter.columns": "v"},
    {"partition.sink-strategy": "hash"},
    {"compaction.min.file-num": "2"},
    {"metadata.stats-mode": "counts"},
    {"partition.default-name": "a"},
)
NAMES: Final = ("p", "Part", "p q", "p.x", "é", "SELECT", "dt")
DYNAMIC: Final = "spark.sql.sources.partitionOverwriteMode"

Sets: TypeAlias = "Mapping[str, str]"
Clause: TypeAlias = "tuple[str | None, Sets | str]"
"""The condition of a clause of MERGE, if it has one, and its new values, ``*`` or ``DELETE``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of the table.

    Attributes:
        text: the statement, or what the function does.
        run: makes the change.
        rows: query over the model that returns the rows after it.
    """

    text: str
    run: Callable[[], object]
    rows: str


class RandomTable:
    """A table of random columns and options, with its model.

    Attributes:
        log: the statements so far.
        kind: of the table, a key of ``KINDS``.
    """

    def __init__(self, spark: SparkSession, catalog: Catalog, seed: int) -> None:
        self._spark = spark
        self._catalog = catalog
        self._chance = chance = Random(seed)  # noqa: S311 - no secret
        types = chance.sample(sorted(PARTITION_VALUES), chance.choice((1, 1, 2, 2, 3)))
        self._keys = dict(zip(chance.sample(NAMES, len(types)), types, strict=True))
        kinds = chance.sample(sorted(COLUMN_VALUES), chance.choice((1, 2, 3)))
        columns = {"id": "INT", "v": "INT", **{f"c{place}": each for place, each in enumerate(kinds)}, **self._keys}
        self._types = dict(chance.sample(list(columns.items()), len(columns)))
        # Few of each, so that rows share partitions.
        self._values = {
            name: chance.sample(values, min(len(values), chance.choice((2, 3, 4))))
            for name, values in ((name, PARTITION_VALUES[each]) for name, each in self._keys.items())
        } | {name: COLUMN_VALUES[each] for name, each in columns.items() if name not in self._keys}
        self.kind = chance.choice(sorted(KINDS))
        options = dict(KINDS[self.kind])
        for extra in EXTRAS:
            if chance.random() < 0.15:
                options |= extra
        if all(name.isascii() and name.isalnum() for name in self._types) and chance.random() < 0.25:
            options["file.format"] = chance.choice(("orc", "avro"))
        if "BINARY" in types or chance.random() < 0.2:
            options["partition.legacy-name"] = "false"
        self._name = f"d.random_{seed}"
        self._table = f"penstock.{self._name}"
        self._model = f"random_{seed}_model"
        self._new = f"random_{seed}_new"
        self._source = f"random_{seed}_source"
        self._last_id = 0
        self._columns = ", ".join(f"{quoted(name)} {each}" for name, each in self._types.items())
        shown = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
        create = f"CREATE TABLE {self._table} ({self._columns}) PARTITIONED BY ({_listed(self._keys)})"
        self.log = [f"{create} TBLPROPERTIES ({shown})" if shown else create]
        spark.sql(self.log[0])
        self._make(self._model)

    def change(self) -> None:
        """Make a change, of the table and of the model."""
        ways = self._insert, self._update, self._delete, self._merge, self._overwrite, self._others
        change = self._chance.choices(ways, (3, 4, 2, 5, 3, 3))[0]() if len(self.log) > 1 else self._insert()
        self.log.append(change.text)
        self._make(self._new, change.rows)
        change.run()
        self._spark.sql(f"DROP TABLE {self._model}")
        self._spark.sql(f"ALTER TABLE {self._new} RENAME TO {self._model}")

    def check(self) -> list[str]:
        """Return what is different between the table and its model."""
        condition = self._condition()
        keys = _listed(self._keys)
        measures = "count(*), count(v), min(v), max(v), max(id)"
        findings = [
            f"{name}: {self._difference(*(query.format(table) for table in (self._table, self._model)))}"
            for name, query in {
                "rows": f"SELECT {self._shown()} FROM {{}}",
                f"WHERE {condition}": f"SELECT {self._shown()} FROM {{}} WHERE {condition}",
                "partitions": f"SELECT {keys}, {measures} FROM {{}} GROUP BY {keys}",
                "totals": f"SELECT {measures}, min({keys.split(', ')[0]}) FROM {{}}",
            }.items()
        ]
        table = self._catalog.load_table(self._name)
        strays = stored_files(table._ref) - needed_files(table._ref)
        findings.append(f"strays: {sorted(strays) or ''}")
        if "row-tracking.enabled" in table.options:
            ids = [row[0] for row in self._spark.sql(f"SELECT _ROW_ID FROM {self._table}").collect()]
            repeated = [each for each, count in Counter(ids).items() if count > 1 or each is None]
            findings.append(f"row ids: {repeated or ''}")
        return [each for each in findings if not each.endswith(": ")]

    def drop(self) -> None:
        """Remove the table and its model."""
        for name in (self._table, self._model, self._new, self._source):
            self._spark.sql(f"DROP TABLE IF EXISTS {name}")

    # Statements

    def _insert(self) -> Change:
        rows = self._rows(self._chance.randint(1, 12))
        after = f"SELECT * FROM {self._model} UNION ALL ({rows})"
        way = self._chance.choice(("INSERT", "BY NAME", "some columns", "append", "Table.append"))
        frame = self._spark.sql(rows)
        names = self._chance.sample(list(self._types), len(self._types))
        match way:
            case "append":
                text = f"writeTo(...).append() of {rows}"
                shuffled = frame.select(*map(quoted, names))
                return Change(text=text, run=shuffled.writeTo(self._table).append, rows=after)
            case "Table.append" if not any("CHAR" in each for each in self._types.values()):
                table = self._catalog.load_table(self._name)
                return Change(text=f"Table.append of {rows}", run=lambda: table.append(frame), rows=after)
            case "BY NAME":
                return self._statement(
                    f"INSERT INTO {self._table} BY NAME SELECT {_listed(names)} FROM ({rows})", after
                )
            case "some columns":
                some = [name for name in names if name == "id" or self._chance.random() < 0.6]
                filled = ", ".join(quoted(name) if name in some else f"NULL AS {quoted(name)}" for name in self._types)
                return self._statement(
                    f"INSERT INTO {self._table} ({_listed(some)}) SELECT {_listed(some)} FROM ({rows})",
                    f"SELECT * FROM {self._model} UNION ALL SELECT {filled} FROM ({rows})",
                )
        return self._statement(f"INSERT INTO {self._table} {rows}", after)

    def _overwrite(self) -> Change:
        way = self._chance.choice(("PARTITION", "PARTITION", "dynamic", "overwritePartitions", "REPLACE WHERE"))
        rows = self._rows(self._chance.randint(1, 6))
        if way == "REPLACE WHERE":
            key = self._chance.choice(list(self._keys))
            some = f"{quoted(key)} <=> {self._value(key)}"
            return self._statement(
                f"INSERT INTO {self._table} REPLACE WHERE {some} SELECT * FROM ({rows}) WHERE {some}",
                f"SELECT * FROM {self._model} WHERE NOT ({some}) UNION ALL SELECT * FROM ({rows}) WHERE {some}",
            )
        if way == "PARTITION":
            return self._overwrite_partition(rows)
        on = " AND ".join(f"m.{quoted(name)} <=> s.{quoted(name)}" for name in self._keys)
        self._make(self._source, rows)
        after = f"SELECT m.* FROM {self._model} m LEFT ANTI JOIN {self._source} s ON {on} UNION ALL ({rows})"
        frame = self._spark.sql(rows)
        if way == "overwritePartitions":
            text = f"writeTo(...).overwritePartitions() of {rows}"
            return Change(text=text, run=frame.writeTo(self._table).overwritePartitions, rows=after)
        text = f"INSERT OVERWRITE {self._table} {rows}"

        def run() -> None:
            self._spark.conf.set(DYNAMIC, "dynamic")
            try:
                self._spark.sql(text)
            finally:
                self._spark.conf.unset(DYNAMIC)

        return Change(text=f"dynamic {text}", run=run, rows=after)

    def _overwrite_partition(self, rows: str) -> Change:
        """Return an overwrite of the partitions that a specification selects; of all of them without one."""
        fixed = self._chance.sample(list(self._keys), self._chance.choice((0, 1, len(self._keys), len(self._keys))))
        # Spark makes a text of what a specification names: an hour of autumn is there twice, and bytes become UTF-8.
        spec = {
            name: self._chance.choice([x for x in (*self._values[name], "NULL") if not _is_ambiguous(x)])
            for name in fixed
        }
        if self._chance.random() < 0.2:
            rows = f"SELECT * FROM ({rows}) WHERE 1 = 0"
        listed = ", ".join(f"{quoted(name)} = {value}" for name, value in spec.items())
        others = _listed(name for name in self._types if name not in spec)
        casts = {name: f"CAST({value} AS {self._types[name]})" for name, value in spec.items()}
        same = " AND ".join(f"{quoted(name)} <=> {value}" for name, value in casts.items()) or "true"
        return self._statement(
            f"INSERT OVERWRITE {self._table}{f' PARTITION ({listed})' if spec else ''} SELECT {others} FROM ({rows})",
            f"SELECT * FROM {self._model} WHERE NOT ({same}) UNION ALL SELECT {self._with(casts)} FROM ({rows})",
        )

    def _update(self) -> Change:
        condition, sets = self._condition(), self._sets()
        assigned = ", ".join(f"{quoted(name)} = {value}" for name, value in sets.items())
        changed = {name: f"CASE WHEN {condition} THEN {value} ELSE {quoted(name)} END" for name, value in sets.items()}
        return self._statement(
            f"UPDATE {self._table} SET {assigned} WHERE {condition}", f"SELECT {self._with(changed)} FROM {self._model}"
        )

    def _delete(self) -> Change:
        key = quoted(self._chance.choice(list(self._keys)))
        several = self._chance.choice((2, 3, 7))
        condition = self._chance.choice(
            (
                self._condition(),
                f"id IN (SELECT id * {several} FROM range({self._last_id}))",
                f"{key} IN (SELECT {key} FROM {{table}} WHERE id % {several} = 0)",
            )
        )
        return self._statement(
            f"DELETE FROM {self._table} WHERE {condition.format(table=self._table)}",
            f"SELECT * FROM {self._model} WHERE NOT coalesce({condition.format(table=self._model)}, false)",
        )

    def _others(self) -> Change:
        if self._chance.random() < 0.5:
            text = f"CALL penstock.sys.compact(table => '{self._name}')"
            return self._statement(text, f"SELECT * FROM {self._model}")
        table = self._catalog.load_table(self._name)
        condition = "id > 3 AND v < 2"
        return Change(
            text=f"Table.update({{'v': 11}}, '{condition}')",
            run=lambda: table.update({"v": 11}, condition),
            rows=f"SELECT {self._with({'v': f'CASE WHEN {condition} THEN 11 ELSE v END'})} FROM {self._model}",
        )

    def _merge(self) -> Change:
        chance = self._chance
        ids = chance.sample(range(1, self._last_id + 6), min(chance.randint(1, 8), self._last_id + 5))
        self._last_id += 6
        source = self._rows(len(ids), ids)
        self.log.append(f"source: {source}")
        self._make(self._source, source)
        key = quoted(chance.choice(list(self._keys)))
        more = chance.choice(("", "", f" AND t.{key} <=> s.{key}", f" AND {self._condition('t.')}", " AND false"))
        on = f"t.id = s.id{more}"
        matched = self._clauses((0, 1, 1, 2), lambda: chance.choice(("t.", "s.")), lambda: self._sets("t.", "s."))
        new = self._clauses((0, 1, 1, 2), lambda: "s.", self._new_row, may_delete=False)
        gone = self._clauses((0, 0, 0, 1, 1), lambda: "t.", lambda: self._sets("t."), may_copy=False)
        if not (matched or new or gone):
            new = [(None, "*")]
        text = f"MERGE INTO {self._table} t USING {self._source} s ON {on}"
        for when, clauses in (("MATCHED", matched), ("NOT MATCHED", new), ("NOT MATCHED BY SOURCE", gone)):
            for condition, sets in clauses:
                also = "" if condition is None else f" AND {condition}"
                text += f" WHEN {when}{also} THEN {_action(sets, is_insert=clauses is new)}"
        tables = f"{self._model} t", f"{self._source} s"
        both = f"FROM {tables[0]} JOIN {tables[1]} ON {on}"
        parts = [
            self._merged(matched, f"struct(t.*) AS t, struct(s.*) AS s {{}} {both}"),
            self._merged(gone, f"struct(t.*) AS t {{}} FROM {tables[0]} LEFT ANTI JOIN {tables[1]} ON {on}"),
        ]
        if new:
            anti = f"struct(s.*) AS s {{}} FROM {tables[1]} LEFT ANTI JOIN {tables[0]} ON {on}"
            parts.append(self._merged(new, anti, is_insert=True))
        return self._statement(text, " UNION ALL ".join(parts))

    def _merged(self, clauses: Sequence[Clause], rows: str, *, is_insert: bool = False) -> str:
        """Return the query of the rows after the first clause that applies to each; without one they stay."""
        cases = "".join(
            f" WHEN {'true' if condition is None else condition} THEN {place}"
            for place, (condition, _) in enumerate(clauses)
        )
        number = f", {f'CASE{cases} ELSE -1 END' if cases else '-1'} AS number"
        columns = []
        for name in map(quoted, self._types):
            arms = "".join(
                f" WHEN number = {place} THEN {f's.{name}' if isinstance(sets, str) else sets.get(name, other)}"
                for place, (_, sets) in enumerate(clauses)
                for other in ["NULL" if is_insert else f"t.{name}"]
                if sets != "DELETE"
            )
            other = "NULL" if is_insert else f"t.{name}"
            columns.append(f"{f'CASE{arms} ELSE {other} END' if arms else other} AS {name}")
        gone = [-1] if is_insert else [place for place, (_, sets) in enumerate(clauses) if sets == "DELETE"]
        kept = f" WHERE number NOT IN ({', '.join(map(str, gone))})" if gone else ""
        return f"SELECT {', '.join(columns)} FROM (SELECT {rows.format(number)}){kept}"

    def _clauses(
        self,
        counts: Sequence[int],
        prefix: Callable[[], str],
        sets: Callable[[], Sets],
        *,
        may_delete: bool = True,
        may_copy: bool = True,
    ) -> list[Clause]:
        """Draw clauses; one without a condition is the last."""
        drawn: list[Clause] = []
        for _ in range(self._chance.choice(counts)):
            condition = self._condition(prefix()) if self._chance.random() < 0.7 else None
            ways = [*(["DELETE"] if may_delete else []), *(["*"] if may_copy else []), ""]
            drawn.append((condition, self._chance.choice(ways) or {quoted(k): v for k, v in sets().items()}))
            if condition is None:
                break
        return drawn

    # Parts of statements

    def _statement(self, text: str, rows: str) -> Change:
        return Change(text=text, run=lambda: self._spark.sql(text), rows=rows)

    def _value(self, name: str) -> str:
        """Return a value of a column, in a type that needs no cast to it; VARCHAR and CHAR are texts until stored."""
        each = self._types[name]
        return f"CAST({self._chance.choice(self._values[name])} AS {'STRING' if 'CHAR' in each else each})"

    def _rows(self, count: int, ids: Sequence[int] | None = None) -> str:
        if ids is None:
            ids = range(self._last_id + 1, self._last_id + count + 1)
            self._last_id += count
        rows = (
            ", ".join(f"{number if name == 'id' else self._value(name)} AS {quoted(name)}" for name in self._types)
            for number in ids
        )
        return " UNION ALL ".join(f"SELECT {row}" for row in rows)

    def _condition(self, prefix: str = "") -> str:
        condition = self._comparison(prefix)
        for _ in range(self._chance.choice((0, 0, 1, 1, 2))):
            condition = f"({condition} {self._chance.choice(('AND', 'OR', 'AND'))} {self._comparison(prefix)})"
        return f"NOT ({condition})" if self._chance.random() < 0.1 else condition

    def _comparison(self, prefix: str) -> str:
        chance = self._chance
        name = chance.choice(list(self._keys))
        key, values = f"{prefix}{quoted(name)}", [each for each in self._values[name] if each != "NULL"]
        some = chance.sample(values, chance.randint(1, len(values)))
        operator = "=" if self._keys[name] == "BINARY" else chance.choice(("=", "=", "<>", "<=", ">", "<=>"))
        return chance.choice(
            (
                f"{key} {operator} {some[0]}",
                f"{key} IN ({', '.join(some)})",
                f"{key} IS NULL",
                f"{prefix}id % {chance.choice((2, 3, 5))} = {chance.choice((0, 1))}",
                f"{prefix}v {chance.choice(('<', '>', '=', '<>'))} {chance.choice((0, 1, 2, 7))}",
                f"{prefix}v IS NULL",
                f"{prefix}id {chance.choice(('<', '>='))} {chance.randint(0, max(1, self._last_id))}",
                f"abs({prefix}v) > 1",
                chance.choice(("true", "false")),
            )
        )

    def _sets(self, prefix: str = "", source: str = "") -> Sets:
        """Draw new values of one or two columns, some of them from the source of a MERGE."""
        sets = {}
        for name in self._chance.sample([each for each in self._types if each != "id"], self._chance.randint(1, 2)):
            ways = [
                self._value(name),
                f"CASE WHEN {prefix}id % 2 = 0 THEN {self._value(name)} ELSE {self._value(name)} END",
            ]
            ways += [f"{prefix}v + 1", f"{prefix}id"] if name == "v" else []
            ways += [f"{source}{quoted(name)}"] * 2 if source else []
            sets[name] = self._chance.choice(ways)
        return sets

    def _new_row(self) -> Sets:
        some = [name for name in self._types if name == "id" or self._chance.random() < 0.7]
        return {
            name: f"s.{quoted(name)}" if name == "id" or self._chance.random() < 0.7 else self._value(name)
            for name in some
        }

    def _with(self, values: Sets) -> str:
        """Return the columns of the table, some with other values."""
        return ", ".join(
            f"{values[name]} AS {quoted(name)}" if name in values else quoted(name) for name in self._types
        )

    # Comparison

    def _make(self, name: str, rows: str | None = None) -> None:
        self._spark.sql(f"DROP TABLE IF EXISTS {name}")
        self._spark.sql(f"CREATE TABLE {name} ({self._columns}) USING parquet")
        if rows is not None:
            self._spark.sql(f"INSERT INTO {name} {rows}")

    def _shown(self) -> str:
        """Return the columns as text; of a TIMESTAMP, whose text is ambiguous, its microseconds."""
        kinds = {"BINARY": "hex({})", "TIMESTAMP": "unix_micros({})"}
        return ", ".join(
            f"CAST({kinds.get(each, '{}').format(quoted(name))} AS STRING)" for name, each in self._types.items()
        )

    def _difference(self, ours: str, theirs: str) -> str:
        found, wanted = (
            Counter(repr(tuple(row)) for row in self._spark.sql(text).collect()) for text in (ours, theirs)
        )
        return (
            ""
            if found == wanted
            else f"too many {list((found - wanted).elements())}, missing {list((wanted - found).elements())}"
        )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(quoted, names))


def _is_ambiguous(value: str) -> bool:
    return "-08:00" in value or "CAST" in value or value == "X'00ff'"


def _action(sets: Any, *, is_insert: bool) -> str:
    if sets == "DELETE":
        return "DELETE"
    if sets == "*":
        return "INSERT *" if is_insert else "UPDATE SET *"
    if is_insert:
        return f"INSERT ({', '.join(sets)}) VALUES ({', '.join(sets.values())})"
    return f"UPDATE SET {', '.join(f'{name} = {value}' for name, value in sets.items())}"
