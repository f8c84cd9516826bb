"""Read tables in queries as Flink and Spark write them: names, system tables, hints and time travel.

Where the syntax is wrong, every function raises ``InvalidSqlError`` with line and column.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from penstock.dialect.parse.reader import OPTIONS_HINT, StatementReader, read_options
from penstock.format.lexer import NUMBER, TEXT
from penstock.format.text.names import quoted

if TYPE_CHECKING:
    from penstock.dialect.parse.reader import Pairs, Path
    from penstock.format.lexer import Token

_TRAVEL: Final = {
    ("FOR", "SYSTEM_TIME", "AS", "OF"): "scan.timestamp",
    ("FOR", "TIMESTAMP", "AS", "OF"): "scan.timestamp",
    ("TIMESTAMP", "AS", "OF"): "scan.timestamp",
    ("FOR", "SYSTEM_VERSION", "AS", "OF"): "scan.version",
    ("FOR", "VERSION", "AS", "OF"): "scan.version",
    ("VERSION", "AS", "OF"): "scan.version",
}
_TRAVEL_WORDS: Final = frozenset(words[0] for words in _TRAVEL)
# After these a hint with options is one without a table.
_KEYWORDS: Final = frozenset(
    {"SELECT", "DISTINCT", "FROM", "JOIN", "ON", "USING", "WHERE", "BY", "HAVING", "AND", "OR", "NOT"}
    | {"DELETE", "UPDATE"}
)
_LITERAL: Final = "expected a literal such as TIMESTAMP '2026-01-01 00:00:00', a snapshot id or 'a-tag'"
_NO_LOOKUP: Final = (
    "for a lookup join of Flink, which reads a table as of a column of the other one, join the tables without the "
    "clause"
)
_UNITS: Final = {
    "SECOND": timedelta(seconds=1),
    "MINUTE": timedelta(minutes=1),
    "HOUR": timedelta(hours=1),
    "DAY": timedelta(days=1),
    "WEEK": timedelta(weeks=1),
}
_MONTHS: Final = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_MILLIS: Final = {"SECOND": 1_000, "MINUTE": 60_000, "HOUR": 3_600_000, "DAY": 86_400_000}
_COUNT: Final = re.compile(r"(?P<sign>-?)(?P<whole>\d{1,18})(?:\.(?P<part>\d{1,3}))? (?P<unit>[A-Z]+?)S?(?:\(.*)?")
OFFSET: Final = "OFFSET"
"""The parameter of window functions that may be missing."""

_SIGNS: Final = {"+": 1, "-": -1}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableUse:
    """One use of a table in a query.

    Attributes:
        options: options of the hint and of the time travel clause.
        system: name of the system table; None if the table's own rows are read.
        window: the window function that reads the table; None if there is none.
        offset: offset of the table's name in the query's text.
    """

    name: Path
    options: Pairs = field(default=(), repr=False)
    system: str | None = None
    window: WindowCall | None = None
    offset: int = 0

    @property
    def last_name(self) -> str:
        """The table's name without catalog and database, as the query may refer to it."""
        return self.name[-1] if self.system is None else f"{self.name[-1]}${self.system}"

    @property
    def title(self) -> str:
        """The full name for messages."""
        return ".".join((*self.name[:-1], self.last_name))


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowCall:
    """``TABLE(TUMBLE(TABLE t, DESCRIPTOR(time), INTERVAL …))``.

    Attributes:
        kind: ``TUMBLE``, ``HOP``, ``CUMULATE`` or ``SESSION``.
        table: a table, or a name that the query itself defines (``WITH``).
        intervals: interval of each parameter, in Spark's syntax: ``10 MINUTES``.
        partition_by: for SESSION: the columns whose values all rows of one session share.
        offset: offset of the call in the query's text.
        column_offset: offset of the time column's name in the query's text.
    """

    kind: str
    table: TableUse
    column: str
    intervals: tuple[tuple[str, str], ...]
    partition_by: tuple[str, ...] = ()
    offset: int = 0
    column_offset: int = 0

    @property
    def spark_window(self) -> str:
        """The Spark expression that computes the windows; for CUMULATE, the windows of full size."""
        given = dict(self.intervals)
        column = quoted(self.column)
        if self.kind == "SESSION":
            return f"session_window({column}, '{given['GAP']}')"
        size, slide = given["SIZE"], given.get("SLIDE", given["SIZE"])
        offset = f", '{self._offset(slide)} milliseconds'" if OFFSET in given else ""
        return f"window({column}, '{size}', '{slide}'{offset})"

    @property
    def is_keyless_session(self) -> bool:
        """Whether this is a SESSION window without PARTITION BY."""
        return self.kind == "SESSION" and not self.partition_by

    @property
    def spark_step(self) -> str:
        """For CUMULATE: the Spark expression for the step that contains a row."""
        given = dict(self.intervals)
        offset = f", '{self._offset(given['STEP'])} milliseconds'" if OFFSET in given else ""
        return f"window({quoted(self.column)}, '{given['STEP']}', '{given['STEP']}'{offset})"

    def millis(self, parameter: str) -> int:
        """Return the interval of a parameter in ms."""
        return interval_millis(dict(self.intervals)[parameter]) or 0

    def _offset(self, slide: str) -> int:
        # Flink accepts any offset; Spark only an offset shorter than the distance between two windows.
        return self.millis(OFFSET) % (interval_millis(slide) or 1)


def interval_millis(text: str) -> int | None:
    """Convert an interval such as ``10 MINUTES`` to ms; return None if it is malformed or has fractions of a ms."""
    match = _COUNT.fullmatch(text)
    unit = None if match is None else _MILLIS.get(match["unit"])
    if match is None or unit is None:
        return None
    part = int((match["part"] or "").ljust(3, "0"))
    millis = int(match["whole"]) * unit + part * unit // 1_000
    return -millis if match["sign"] else millis


def table_of(path: Path, offset: int) -> TableUse:
    """Return the table of a path; the last part may name a system table or a branch: ``t$branch_b$snapshots``."""
    name, dollar, system = path[-1].partition("$")
    if dollar and system.startswith("branch_"):
        branch, dollar, system = system.partition("$")
        name = f"{name}${branch}"
    return TableUse(name=(*path[:-1], name), system=system if dollar else None, offset=offset)


def read_use(reader: StatementReader) -> tuple[TableUse, int] | None:
    """Read a name that may be a table's, with the hints and time travel clauses after it.

    Returns:
        The table, and the offset of the text after it; None if sqlglot can read all of it.
    """
    first, has_dollar = reader.take(), False
    parts, end = [first.content], first.end
    while reader.current.text in {".", "$"} and reader.ahead(1).is_name:
        sign, name = reader.take(), reader.take()
        end = name.end
        if sign.text == ".":
            parts.append(name.content)
        else:
            has_dollar = True
            parts[-1] += f"${name.content}"
    use, after = read_extras(reader, table_of(tuple(parts), first.start), end)
    return (use, after) if has_dollar or after > end else None


def read_extras(reader: StatementReader, use: TableUse, end: int) -> tuple[TableUse, int]:
    """Read the hints and time travel clauses after a table's name, in any order.

    Args:
        end: offset of the text after the name.

    Returns:
        The table with their options, of which ``branch`` becomes part of its name, and the offset of the text after
        them.
    """
    options: dict[str, str] = {}
    while True:
        start, hint = reader.current.start, reader.hint
        if hint is not None and OPTIONS_HINT.match(hint.text):
            if use.name[-1].upper() in _KEYWORDS and reader.text.startswith(use.name[-1], use.offset):
                raise reader.misplaced(hint)
            start, found, end = hint.start, dict(read_hint(reader)), hint.end
        elif (key := _take_travel(reader)) is not None:
            value, end = _read_travel_value(reader, is_version=key == "scan.version")
            found = {key: value}
        else:
            break
        twice = next((key for key in found if key in options), None)
        if twice is not None:
            raise reader.statement.error(start, f"'{twice}' is given twice for this table")
        options |= found
    branch = options.pop("branch", None)
    name = use.name if branch is None else (*use.name[:-1], f"{use.name[-1]}$branch_{branch}")
    return replace(use, name=name, options=tuple(options.items())), end


def read_hint(reader: StatementReader) -> Pairs:
    """Read the options of the hint before the current token."""
    place, hint = next(each for each in reader.hints if each[0] == reader.place)
    reader.hints.remove((place, hint))
    match = OPTIONS_HINT.match(hint.text)
    if match is None:
        raise reader.statement.error(hint.start, "expected the hint /*+ OPTIONS('key' = 'value') */")
    inner = StatementReader(reader.statement.part(hint.start + match.start("body"), hint.start + match.end("body")))
    inner.expect_words("OPTIONS")
    options = read_options(inner)
    inner.done()
    return options


# Time travel


def _take_travel(reader: StatementReader) -> str | None:
    if reader.current.word not in _TRAVEL_WORDS:
        return None
    return next((key for words, key in _TRAVEL.items() if reader.take_words(*words)), None)


def _read_travel_value(reader: StatementReader, *, is_version: bool) -> tuple[str, int]:
    """Read the value of a time travel clause; return its text, and the offset after it.

    Args:
        is_version: whether a snapshot id or a tag is expected, not a time.
    """
    error = reader.statement.error
    reader.take_any("TIMESTAMP", "DATE")
    at = reader.current
    if at.kind == TEXT:
        reader.take()
        return (at.content, at.end) if is_version else _read_intervals(reader, at)
    if at.kind == NUMBER and is_version:
        return reader.take().text, at.end
    if at.kind == NUMBER:
        # Spark reads the number as seconds, Paimon's options as milliseconds: neither is assumed silently.
        raise error(at.start, "expected a text; for a number say /*+ OPTIONS('scan.timestamp-millis' = '…') */")
    raise error(at.start, f"{_LITERAL}; {_NO_LOOKUP}" if at.is_name and not is_version else _LITERAL)


def _read_intervals(reader: StatementReader, at: Token) -> tuple[str, int]:
    """Add the intervals that follow to a time."""
    error, end = reader.statement.error, at.end
    if reader.current.text not in _SIGNS:
        return at.content, end
    try:
        moment = datetime.fromisoformat(at.content.strip())
    except ValueError:
        raise error(at.start, "expected a time such as '2026-01-01 00:00:00' before the interval") from None
    while reader.current.text in _SIGNS:
        sign = _SIGNS[reader.take().text]
        count, unit, end = _read_interval(reader)
        try:
            moment = _moved(moment, sign * count, unit)
        except (ValueError, OverflowError):
            raise error(at.start, "this time is before the year 1 or after 9999") from None
    return moment.isoformat(sep=" "), end


def _read_interval(reader: StatementReader) -> tuple[float, str, int]:
    start = reader.current.start
    if reader.take_words("INTERVAL") and reader.current.kind in {TEXT, NUMBER}:
        number, end = reader.take().content.strip(), reader.current.end
        unit = reader.take().word.removesuffix("S")
        is_number = number.removeprefix("-").replace(".", "", 1).isdecimal()
        if is_number and (unit in _UNITS or (unit in _MONTHS and "." not in number)):
            return float(number), unit, end
    units = ", ".join((*_UNITS, *_MONTHS))
    raise reader.statement.error(start, f"expected an interval such as INTERVAL '1' DAY, in one of {units}")


def _moved(moment: datetime, count: float, unit: str) -> datetime:
    if unit in _UNITS:
        return moment + count * _UNITS[unit]
    months = moment.year * 12 + moment.month - 1 + int(count) * _MONTHS[unit]
    year, month = divmod(months, 12)
    # The last day of a shorter month, as in SQL.
    day = min(moment.day, calendar.monthrange(year, month + 1)[1])
    return moment.replace(year=year, month=month + 1, day=day)
