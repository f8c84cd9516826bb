"""Generate a case from a seed; the same seed always gives the same case."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any, Final

from tests.support.differential.case import (
    CHANGES,
    COMPARISONS,
    LIKES,
    Add,
    Append,
    Case,
    Compact,
    Delete,
    Drop,
    DropPartitions,
    First,
    FuzzColumn,
    FuzzCondition,
    FuzzJunction,
    FuzzLeaf,
    Index,
    Insert,
    Read,
    ReadOld,
    Reformat,
    Refuse,
    Remove,
    Rename,
    Step,
    Update,
    Widen,
)
from tests.support.differential.insert import PAIRS
from tests.support.differential.kinds import KINDS, LARGEST, NAMES, PLAIN_NAMES, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Texts have conditions that other types do not have.
_LIKELY: Final = (*KINDS, *(kind for kind in KINDS for _ in range(5) if kind.sql == "STRING"))
_FORMATS: Final = ("parquet", "orc", "avro")
_CONDITIONS: Final = 5
_JUNCTIONS: Final = 0.4
_DELETIONS: Final = 0.4
_MOST_ROWS: Final = 6
# Types by whose values files are skipped for ORDER BY.
_SORTED: Final = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL", "STRING", "VARCHAR", "DATE", "TIMESTAMP")


def random_case(seed: int, conditions: int = _CONDITIONS) -> Case:
    """Return the case of a seed, with reads by so many conditions."""
    maker = _Maker(Random(seed), conditions)  # noqa: S311 - not for secrets
    first = tuple(maker.columns)
    options, partition_by = maker.layout()
    return Case(
        name=f"t{seed}",
        file_format=maker.file_format,
        columns=first,
        partition_by=partition_by,
        options=options,
        steps=tuple(maker.steps()),
    )


class _Maker:
    """Generates a case; keeps the current columns, their kinds, and the number of rows."""

    def __init__(self, random: Random, conditions: int) -> None:
        self._random = random
        self._conditions = conditions
        kinds = [next(kind for kind in KINDS if kind.sql == "INT"), *random.choices(_LIKELY, k=random.randint(1, 4))]
        self.file_format = random.choice(_FORMATS)
        self.formats = [self.file_format]
        self._names = PLAIN_NAMES if self.file_format == "avro" else NAMES
        names = random.sample(self._names, len(kinds) - 1)
        self.columns = [
            FuzzColumn(key=key, name=name, sql=kind.sql)
            for key, (name, kind) in enumerate(zip(["id", *names], kinds, strict=True))
        ]
        self._kinds = dict(enumerate(kinds))
        self._row_count = 0
        self._has_vectors = False
        self._is_indexed = False
        self._partition: tuple[FuzzColumn, ...] = ()
        self._states: list[tuple[FuzzColumn, ...]] = []

    def layout(self) -> tuple[dict[str, str], tuple[str, ...]]:
        """Return the options and the partition columns of the table."""
        random = self._random
        options = {"bucket": "2", "bucket-key": "id"} if random.random() < 0.3 else {}
        if random.random() < 0.5:
            options["partition.legacy-name"] = "false"
        self._partition = tuple(self._partition_columns(options)) if random.random() < 0.5 else ()
        self._has_vectors = random.random() < 0.4
        if self._has_vectors:
            options["deletion-vectors.enabled"] = "true"
        if random.random() < 0.3 and "bucket" not in options:
            options["row-tracking.enabled"] = "true"
        return options, tuple(column.name for column in self._partition)

    def _partition_columns(self, options: dict[str, str]) -> list[FuzzColumn]:
        """Choose up to two partition columns, which get few values, so that partitions have several files."""
        random = self._random
        # Java names directories by the address of an array, unless names are new.
        kinds = ("ARRAY", "MAP", "ROW", *(("BYTES", "VARBINARY") if "partition.legacy-name" not in options else ()))
        columns = self.columns[1:] if "bucket" in options or random.random() < 0.9 else self.columns
        able = [column for column in columns if not column.sql.startswith(kinds)]
        chosen = random.sample(able, min(len(able), len(self.columns) - 1, random.choice((1, 1, 2))))
        for column in chosen:
            kind = self._kinds[column.key]
            values = random.sample(kind.values, min(len(kind.values), random.randint(1, 4)))
            self._kinds[column.key] = replace(kind, values=tuple(values))
        return chosen

    def steps(self) -> Iterator[Step]:
        """Yield the steps of the case."""
        for step in self._changes():
            yield step
            if isinstance(step, CHANGES):
                self._states.append(tuple(self.columns))
        yield Read()
        for condition in [self._condition(self.columns) for _ in range(self._conditions)]:
            yield Read(leaf=condition)
        yield from self._past_reads()
        for column in self.columns:
            if column.sql.startswith(_SORTED):
                descends, nulls_first = self._random.choices((False, True), k=2)
                count = self._random.randint(1, 2 * _MOST_ROWS)
                yield First(column=column.key, descends=descends, nulls_first=nulls_first, count=count)
        yield Insert(pair=self._random.randrange(len(PAIRS)))

    def _past_reads(self) -> Iterator[Read]:
        """Yield reads of past states, and of changes."""
        random = self._random
        for _ in range(min(2, len(self._states) - 1)):
            since, until = sorted(random.sample(range(len(self._states)), 2))
            by = random.choice(("snapshot", "tag", "time"))
            leaf = self._condition(self._states[since]) if random.random() < 0.5 else None
            yield Read(leaf=leaf, until=since, by=by)
            leaf = self._condition(self.columns) if random.random() < 0.5 else None
            yield Read(leaf=leaf, since=since, until=until, by=by)

    def _changes(self) -> Iterator[Step]:
        """Yield the steps that change the table."""
        yield self._append()
        for column in self.columns:
            for value in self._kinds[column.key].too_long:
                yield Refuse(row={**self._rows()[0], column.key: value})
        for _ in range(self._random.randint(0, 2)):
            yield from self._evolve()
            yield self._append()
            yield from self._maintain()
        if set(self.formats) == {"parquet"} and not self._has_vectors and self._random.random() < _DELETIONS:
            yield Delete(every=self._random.choice((1, 2, 3)))

    def _maintain(self) -> Iterator[Step]:
        """Yield what may happen between appends."""
        random = self._random
        if random.random() < 0.4:
            yield Remove(leaf=self._change_condition(), by_sql=random.random() < 0.5)
        if random.random() < 0.3:
            yield from self._update()
        if self._partition and random.random() < 0.3:
            named = random.sample(self._partition, random.randint(1, len(self._partition)))
            values = {each.key: self._value(each) for each in named}
            # Spark takes the bytes that a partition is named by for UTF-8.
            plain = [each for each in named if not each.sql.startswith(("BYTES", "VARBINARY"))]
            texts = [self._text(each, values[each.key]) for each in plain] if plain == named else [None]
            yield DropPartitions(values=values, texts=() if None in texts else tuple(map(str, texts)))
        if random.random() < 0.2:
            yield Compact()
        for _ in range(random.choice((0, 0, 0, 1, 2, 3))):
            self._is_indexed = not self._is_indexed
            yield Index(is_on=self._is_indexed)
        if random.random() < 0.3:
            formats = _FORMATS if self.file_format == "avro" else ("parquet", "orc")
            self.formats.append(random.choice(formats))
            yield Reformat(file_format=self.formats[-1])

    def _update(self) -> Iterator[Update]:
        columns = [column for column in self.columns[1:] if self._kinds[column.key].literals]
        if columns:
            column = self._random.choice(columns)
            value = self._value(column)
            text = self._text(column, value)
            yield Update(column=column.key, value=value, leaf=self._change_condition(), text=text)

    def _text(self, column: FuzzColumn, value: Any) -> str | None:
        """Return a value as a literal for half of the values; None if there is none."""
        kind = self._kinds[column.key]
        literals = kind.literals if kind.sql == column.sql and not kind.is_float else ()
        texts = {repr(literal): text for text, literal in (*literals, ("NULL", None))}
        return texts.get(repr(value)) if self._random.random() < 0.5 else None

    def _change_condition(self) -> FuzzCondition:
        """Return the condition of a change, often on partition columns alone."""
        return self._condition(self._partition if self._partition and self._random.random() < 0.5 else self.columns)

    def _value(self, column: FuzzColumn) -> Any:
        return self._random.choice((None, *self._kinds[column.key].values))

    def _append(self) -> Append:
        rows = self._rows()
        self._row_count += len(rows)
        return Append(rows=tuple(rows), by_spark=self._random.random() < 0.3)

    def _rows(self) -> list[dict[int, Any]]:
        """Return new rows with the current columns; the first column is a unique number."""
        rows = []
        for number in range(self._random.randint(1, _MOST_ROWS)):
            row = {each.key: self._value(each) for each in self.columns}
            row[0] = self._row_count + number
            rows.append(row)
        return rows

    def _evolve(self) -> Iterator[Step]:
        random = self._random
        able = [column for column in self.columns[1:] if column not in self._partition]
        if not able:
            yield self._add()
            return
        column = random.choice(able)
        kind = self._kinds[column.key]
        match random.choice(("add", "drop", "rename", "widen", "widen")):
            case "add":
                yield self._add()
            case "drop" if len(self.columns) > 2:
                self.columns.remove(column)
                yield Drop(column=column.key)
            case "rename":
                self._put(replace(column, name=self._free_name()))
                yield Rename(column=column.key, name=self._column(column.key).name)
            case "widen" if kind.wider and column.sql == kind.sql:
                yield from self._widen(column, kind)
            case _:
                return

    def _add(self) -> Add:
        kind = self._random.choice(KINDS)
        key = 1 + max(self._kinds)
        column = FuzzColumn(key=key, name=self._free_name(), sql=kind.sql)
        self.columns.append(column)
        self._kinds[key] = kind
        return Add(column=column)

    def _widen(self, column: FuzzColumn, kind: Kind) -> Iterator[Step]:
        """Widen a column, and append a value that does not fit the old type."""
        sql = self._random.choice(kind.wider)
        self._put(replace(column, sql=sql))
        yield Widen(column=column.key, sql=sql)
        if sql in LARGEST:
            self._kinds[column.key] = replace(kind, values=(*kind.values, LARGEST[sql]))
            yield Append(rows=({**self._rows()[0], column.key: LARGEST[sql]},))
            self._row_count += 1
            yield ReadOld()

    def _condition(self, columns: Sequence[FuzzColumn], depth: int = 0) -> FuzzCondition:
        random = self._random
        if random.random() >= (_JUNCTIONS if depth == 0 else _JUNCTIONS / 2) or depth > 1:
            return self._leaf(random.choice(columns))
        operator = random.choice(("AND", "OR", "NOT"))
        parts = [self._condition(columns, depth + 1) for _ in range(1 if operator == "NOT" else 2)]
        return FuzzJunction(operator=operator, parts=tuple(parts))

    def _leaf(self, column: FuzzColumn) -> FuzzLeaf:
        """Return a condition on a column."""
        random = self._random
        kind = self._kinds[column.key]
        literals = kind.literals if kind.sql == column.sql else ()
        if not literals or random.random() < 0.1:
            return FuzzLeaf(column=column.key, operator=random.choice(("IS NULL", "IS NOT NULL")))
        if column.sql.startswith(("STRING", "VARCHAR")) and random.random() < 0.3:
            odd = [text for _, text in literals if any(each in text for each in "%_\\")]
            likely = odd if odd and random.random() < 0.5 else [text for _, text in literals]
            text, pattern = self._pattern(random.choice(likely))
            return FuzzLeaf(column=column.key, operator=random.choice(LIKES), texts=(text,), values=(pattern,))
        if random.random() < 0.3:
            chosen = [*random.choices(literals, k=random.randint(1, 3)), *random.choices([("NULL", None)], k=1)]
            chosen = chosen if random.random() < 0.5 else chosen[:-1]
            operator = random.choice(("IN", "NOT IN"))
        else:
            chosen, operator = [random.choice(literals)], random.choice(COMPARISONS)
        texts, values = zip(*chosen, strict=True)
        return FuzzLeaf(column=column.key, operator=operator, texts=texts, values=values)

    def _pattern(self, text: str) -> tuple[str, str]:
        """Return a pattern that the text often matches, and the regular expression for it."""
        random = self._random
        parts: list[tuple[str, str]] = []
        for character in text[: random.randint(0, len(text))]:
            if random.random() < 0.1:
                parts.append(random.choice((("_", "."), ("%", ".*"))))
            else:
                parts.append((f"\\{character}" if character in "%_\\" else character, re.escape(character)))
        if random.random() < 0.8:
            parts.append(("%", ".*"))
        pattern = "".join(part for part, _ in parts).replace("'", "''")
        return f"'{pattern}'", "".join(part for _, part in parts)

    def _free_name(self) -> str:
        taken = {column.name for column in self.columns}
        return self._random.choice([name for name in self._names if name not in taken])

    def _column(self, key: int) -> FuzzColumn:
        return next(each for each in self.columns if each.key == key)

    def _put(self, column: FuzzColumn) -> None:
        self.columns[[each.key for each in self.columns].index(column.key)] = column
