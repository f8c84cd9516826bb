"""Read Flink's window functions and express them in Spark SQL.

A row keeps its columns and gets ``window_start``, ``window_end`` and ``window_time``, the last millisecond of the
window. Where rows are grouped, Spark's own window column is kept too, because the watermark of a stream is attached to
that column. Spark has no CUMULATE: its windows are added to the rows before the query reads them.

Source:
    Flink's windowing table-valued functions; Spark's ``window`` and ``session_window``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.dialect.parse.reader import read_interval, read_list, read_path
from penstock.format.text.names import quoted
from penstock.format.types.sql import read_name
from penstock.format.types.tokens import TokenKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.dialect.parse.names import Path
    from penstock.dialect.parse.reader import StatementReader

WINDOWS: Final = ("TUMBLE", "HOP", "SESSION", "CUMULATE")
WINDOW_COLUMN: Final = "__window"

_PARAMETERS: Final[Mapping[str, tuple[str, ...]]] = {
    "TUMBLE": ("DATA", "TIMECOL", "SIZE", "OFFSET"),
    "HOP": ("DATA", "TIMECOL", "SLIDE", "SIZE", "OFFSET"),
    "CUMULATE": ("DATA", "TIMECOL", "STEP", "SIZE", "OFFSET"),
    "SESSION": ("DATA", "TIMECOL", "GAP"),
}
_MILLIS: Final = {"SECOND": 1_000, "MINUTE": 60_000, "HOUR": 3_600_000, "DAY": 86_400_000}
_COUNT: Final = re.compile(r"(?P<sign>-?)(?P<whole>\d{1,18})(?:\.(?P<part>\d{1,3}))? (?P<unit>[A-Z]+?)S?(?:\(.*)?")
_OPTIONAL: Final = "OFFSET"
_INTERVAL: Final = "expected an interval such as INTERVAL '10' MINUTES"


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowCall:
    """``TABLE(TUMBLE(TABLE t, DESCRIPTOR(time), INTERVAL …))``.

    Attributes:
        kind: ``TUMBLE``, ``HOP``, ``CUMULATE`` or ``SESSION``.
        table: a table, or a name that the query itself defines (``WITH``).
        table_offset: offset of that name from the start of the call.
        intervals: interval of each parameter, in Spark's syntax: ``10 MINUTES``.
        partition_by: for SESSION: the columns whose values all rows of one session share.
        offset: offset of the call in the query's text.
        column_offset: offset of the time column's name in the query's text.
    """

    kind: str
    table: Path
    table_offset: int
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
        offset = f", '{self._offset(slide)} milliseconds'" if _OPTIONAL in given else ""
        return f"window({column}, '{size}', '{slide}'{offset})"

    @property
    def is_keyless_session(self) -> bool:
        """Whether this is a SESSION window without PARTITION BY."""
        return self.kind == "SESSION" and not self.partition_by

    @property
    def spark_step(self) -> str:
        """For CUMULATE: the Spark expression for the step that contains a row."""
        given = dict(self.intervals)
        offset = f", '{self._offset(given['STEP'])} milliseconds'" if _OPTIONAL in given else ""
        return f"window({quoted(self.column)}, '{given['STEP']}', '{given['STEP']}'{offset})"

    def millis(self, parameter: str) -> int:
        """Return the interval of a parameter in ms."""
        return _interval_millis(dict(self.intervals)[parameter]) or 0

    def _offset(self, slide: str) -> int:
        # Flink accepts any offset; Spark only an offset shorter than the distance between two windows.
        return self.millis(_OPTIONAL) % (_interval_millis(slide) or 1)


def read_window(reader: StatementReader) -> tuple[WindowCall, int]:
    """Read a call of a window function, with or without ``TABLE(…)`` around it.

    Returns:
        The call, and the length of its text.

    Raises:
        InvalidSqlError: the call has a syntax error, or Spark has no such window.
    """
    is_wrapped = reader.take_words("TABLE")
    if is_wrapped:
        reader.expect_sign("(", "after TABLE")
    at = reader.current
    kind = reader.take().text.upper()
    if kind not in _PARAMETERS:
        raise reader.error(f"Spark has no such window; expected one of {', '.join(_PARAMETERS)}", at=at)
    arguments = _Arguments(reader, _PARAMETERS[kind])
    arguments.read()
    call = arguments.to_call(kind)
    problem = _problem(call)
    if problem is not None:
        raise reader.error(problem, at=at)
    end = reader.current
    reader.expect_sign(")", f"after the arguments of {kind}")
    if is_wrapped:
        end = reader.current
        reader.expect_sign(")", "after TABLE(...")
    return call, end.start + 1


def _problem(call: WindowCall) -> str | None:
    """Return the error in the sizes of the windows, or None."""
    given = dict(call.intervals)
    if "SLIDE" in given and call.millis("SLIDE") > call.millis("SIZE"):
        return f"the slide, {given['SLIDE']}, is longer than the windows, {given['SIZE']}; expected slide, then size"
    if "STEP" in given and call.millis("SIZE") % call.millis("STEP"):
        return f"the size, {given['SIZE']}, is not a multiple of the step, {given['STEP']}; expected step, then size"
    return None


class _Arguments:
    """Reads arguments by position or by name."""

    def __init__(self, reader: StatementReader, parameters: tuple[str, ...]) -> None:
        self._reader = reader
        self._parameters = parameters
        self._table: Path = ()
        self._table_offset = 0
        self._column: str | None = None
        self._column_offset = 0
        self._partition_by: tuple[str, ...] = ()
        self._intervals: dict[str, str] = {}

    def read(self) -> None:
        reader = self._reader
        reader.expect_sign("(", "before the arguments")
        for place, expected in enumerate(self._parameters):
            if place and not reader.take_sign(","):
                missing = [name for name in self._parameters if name != _OPTIONAL and not self._has(name)]
                if missing:
                    raise reader.error(f"expected a comma, and the argument {missing[0]}")
                return
            self._read_one(self._name_given() or expected)

    def to_call(self, kind: str) -> WindowCall:
        return WindowCall(
            kind=kind,
            table=self._table,
            table_offset=self._table_offset,
            column=self._column or "",
            intervals=tuple(self._intervals.items()),
            partition_by=self._partition_by,
            column_offset=self._column_offset,
        )

    def _has(self, name: str) -> bool:
        return {"DATA": bool(self._table), "TIMECOL": self._column is not None}.get(name, name in self._intervals)

    def _name_given(self) -> str | None:
        reader = self._reader
        sign, arrow = reader.ahead(1), reader.ahead(2)
        if reader.current.kind is not TokenKind.WORD or sign.text != "=" or arrow.text != ">":
            return None
        at = reader.take()
        reader.take()
        reader.take()
        if at.text.upper() not in self._parameters:
            raise reader.error(f"expected one of the parameters {', '.join(self._parameters)}", at=at)
        return at.text.upper()

    def _read_one(self, name: str) -> None:
        reader = self._reader
        if self._has(name):
            raise reader.error(f"the argument {name} is given twice")
        if name == "DATA":
            self._read_data()
        elif name == "TIMECOL":
            if not reader.take_words("DESCRIPTOR"):
                raise reader.error("expected DESCRIPTOR(…) with the column that is the time")
            self._column_offset = reader.ahead(1).start
            columns = read_list(reader, lambda inner: read_name(inner, "a column").text, "the column")
            self._column = columns[0]
        else:
            at = reader.current
            text = read_interval(reader, f"{_INTERVAL} for {name}").partition("'")[2].replace("'", "").upper()
            millis = _interval_millis(text)
            if millis is None or (millis <= 0 and name != _OPTIONAL):
                raise reader.error(f"{_INTERVAL} for {name}", at=at)
            self._intervals[name] = text

    def _read_data(self) -> None:
        reader = self._reader
        if not reader.take_words("TABLE"):
            raise reader.error("expected TABLE and a table's name")
        self._table_offset = reader.current.start
        self._table = read_path(reader, "a table's name")
        if not reader.take_words("PARTITION", "BY"):
            return
        if "GAP" not in self._parameters:
            raise reader.error(
                "expected a comma; only SESSION takes PARTITION BY; in other windows GROUP BY the columns"
            )
        keys = [read_name(reader, "a column").text]
        # A comma also separates the next argument.
        while reader.at_sign(",") and not self._is_argument_ahead():
            reader.take()
            keys.append(read_name(reader, "a column").text)
        self._partition_by = tuple(keys)

    def _is_argument_ahead(self) -> bool:
        first, second = self._reader.ahead(1), self._reader.ahead(2)
        return first.text.upper() == "DESCRIPTOR" or second.text == "="


def _interval_millis(text: str) -> int | None:
    """Convert an interval such as ``10 MINUTES`` to ms; return None if it is malformed or has fractions of a ms."""
    match = _COUNT.fullmatch(text)
    unit = None if match is None else _MILLIS.get(match["unit"])
    if match is None or unit is None:
        return None
    part = int((match["part"] or "").ljust(3, "0"))
    millis = int(match["whole"]) * unit + part * unit // 1_000
    return -millis if match["sign"] else millis
