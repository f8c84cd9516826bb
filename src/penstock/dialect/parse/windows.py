"""Read Flink's window functions and express them in Spark SQL.

A row keeps its columns and gets ``window_start``, ``window_end`` and ``window_time``, the last millisecond of the
window. Where rows are grouped, Spark's own window column is kept too, because the watermark of a stream is attached to
that column. Spark has no CUMULATE: its windows are added to the rows before the query reads them.

Where the syntax is wrong, every function raises ``InvalidSqlError`` with line and column.

Source:
    Flink's windowing table-valued functions; Spark's ``window`` and ``session_window``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.dialect.parse.reader import read_interval, read_path
from penstock.dialect.parse.tables import OFFSET, TableUse, WindowCall, interval_millis, read_extras, table_of
from penstock.format.lexer import WORD
from penstock.format.types.ddl import read_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.dialect.parse.reader import StatementReader

WINDOWS: Final = ("TUMBLE", "HOP", "SESSION", "CUMULATE")
WINDOW_COLUMN: Final = "__window"

_PARAMETERS: Final[Mapping[str, tuple[str, ...]]] = {
    "TUMBLE": ("DATA", "TIMECOL", "SIZE", "OFFSET"),
    "HOP": ("DATA", "TIMECOL", "SLIDE", "SIZE", "OFFSET"),
    "CUMULATE": ("DATA", "TIMECOL", "STEP", "SIZE", "OFFSET"),
    "SESSION": ("DATA", "TIMECOL", "GAP"),
}
_INTERVAL: Final = "expected an interval such as INTERVAL '10' MINUTES"


def at_window(reader: StatementReader) -> bool:
    """Whether a call of a window function is next, with or without ``TABLE(…)`` around it."""
    words = [reader.ahead(count).word for count in range(4)]
    if words[:2] == ["TABLE", "("]:
        return words[2] in WINDOWS and words[3] == "("
    return words[0] in WINDOWS and words[1] == "(" and words[2] in {"TABLE", "DATA"}


def read_window(reader: StatementReader) -> tuple[WindowCall, int]:
    """Read a call of a window function, with or without ``TABLE(…)`` around it.

    Returns:
        The call, and the offset of the text after it.
    """
    start = reader.current.start
    is_wrapped = reader.take_words("TABLE")
    if is_wrapped:
        reader.expect_sign("(", "after TABLE")
    at = reader.take()
    kind = at.word
    arguments = _Arguments(reader, _PARAMETERS[kind])
    arguments.read()
    call = arguments.to_call(kind, start)
    problem = _problem(call)
    if problem is not None:
        raise reader.error(problem, at=at)
    end = reader.current
    reader.expect_sign(")", f"after the arguments of {kind}")
    if is_wrapped:
        end = reader.current
        reader.expect_sign(")", "after TABLE(...")
    return call, end.end


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
        self._table = TableUse(name=())
        self._column: str | None = None
        self._column_offset = 0
        self._partition_by: tuple[str, ...] = ()
        self._intervals: dict[str, str] = {}

    def read(self) -> None:
        reader = self._reader
        reader.expect_sign("(", "before the arguments")
        for place, expected in enumerate(self._parameters):
            if place and not reader.take_sign(","):
                missing = [name for name in self._parameters if name != OFFSET and not self._has(name)]
                if missing:
                    raise reader.error(f"expected a comma, and the argument {missing[0]}")
                return
            self._read_one(self._name_given() or expected)

    def to_call(self, kind: str, offset: int) -> WindowCall:
        return WindowCall(
            kind=kind,
            table=self._table,
            column=self._column or "",
            intervals=tuple(self._intervals.items()),
            partition_by=self._partition_by,
            offset=offset,
            column_offset=self._column_offset,
        )

    def _has(self, name: str) -> bool:
        return {"DATA": bool(self._table.name), "TIMECOL": self._column is not None}.get(name, name in self._intervals)

    def _name_given(self) -> str | None:
        reader = self._reader
        at = reader.current
        if at.kind != WORD or reader.ahead(1).text != "=" or reader.ahead(2).text != ">":
            return None
        reader.back_to(reader.place + 3)
        if at.word not in self._parameters:
            raise reader.error(f"expected one of the parameters {', '.join(self._parameters)}", at=at)
        return at.word

    def _read_one(self, name: str) -> None:
        reader = self._reader
        if self._has(name):
            raise reader.error(f"the argument {name} is given twice")
        if name == "DATA":
            self._read_data()
        elif name == "TIMECOL":
            if not reader.take_words("DESCRIPTOR"):
                raise reader.error("expected DESCRIPTOR(…) with the column that is the time")
            reader.expect_sign("(", "before the column")
            self._column_offset = reader.current.start
            self._column = read_name(reader, "a column")
            reader.expect_sign(")", "after the column")
        else:
            at = reader.current
            text = read_interval(reader, f"{_INTERVAL} for {name}").partition("'")[2].replace("'", "").upper()
            millis = interval_millis(text)
            if millis is None or (millis <= 0 and name != OFFSET):
                raise reader.error(f"{_INTERVAL} for {name}", at=at)
            self._intervals[name] = text

    def _read_data(self) -> None:
        reader = self._reader
        if not reader.take_words("TABLE"):
            raise reader.error("expected TABLE and a table's name")
        start = reader.current.start
        path = read_path(reader, "a table's name")
        self._table, _ = read_extras(reader, table_of(path, start), start)
        if not reader.take_words("PARTITION", "BY"):
            return
        if "GAP" not in self._parameters:
            raise reader.error(
                "expected a comma; only SESSION takes PARTITION BY; in other windows GROUP BY the columns"
            )
        keys = [read_name(reader, "a column")]
        # A comma also separates the next argument.
        while reader.at_sign(",") and not self._is_argument_ahead():
            reader.take()
            keys.append(read_name(reader, "a column"))
        self._partition_by = tuple(keys)

    def _is_argument_ahead(self) -> bool:
        first, second = self._reader.ahead(1), self._reader.ahead(2)
        return first.word == "DESCRIPTOR" or second.text == "="
