"""Options of the SQL connectors for files, generated rows and printed rows, with Flink's keys.

They are not options of Penstock's own tables; ``docs/connectors.md`` has the list. Those of Kafka are in ``kafka``.

Source:
    Flink ``FileSystemConnectorOptions``, ``DataGenConnectorOptions``, ``PrintConnectorOptions``.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from penstock.errors import InvalidOptionError
from penstock.options.group import (
    OptionGroup,
    at_least,
    option,
    option_fields,
    parse_bool,
    parse_duration_ms,
    parse_float,
    parse_int,
    parse_long,
    parse_text,
)
from penstock.options.kafka import CsvFormat, JsonFormat, parse_kafka, parse_kafka_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.options.kafka import KafkaKey, KafkaOptions, ValueFormat

_Options = TypeVar("_Options", bound=OptionGroup)


class StoredFormat(StrEnum):
    """Format of the files of a table with the connector ``filesystem``."""

    PARQUET = "parquet"
    ORC = "orc"
    CSV = "csv"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesystemOptions(OptionGroup):
    """A directory of files, and how they are read.

    Attributes:
        monitor_interval_ms: interval between checks for new files; None for a table bounded by the existing files.
    """

    connector: str = option("connector", parse_text, "filesystem", "filesystem")
    path: str = option("path", parse_text, "", "the directory")
    format: StoredFormat | None = option("format", StoredFormat, None, "of the files")
    monitor_interval_ms: int | None = option(
        "source.monitor-interval", at_least(1, parse_duration_ms), None, "read new files, as a stream"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesystemTable:
    """The options of a directory of files, with those of its format.

    Attributes:
        value_format: how a line is read and written; None for Parquet and ORC.
    """

    options: FilesystemOptions
    value_format: ValueFormat | None = None


class FieldKind(StrEnum):
    """How the values of a column are generated."""

    RANDOM = "random"
    SEQUENCE = "sequence"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldOptions(OptionGroup):
    """How one column is generated; ``least`` and ``most`` are strings, since their type is that of the column."""

    kind: FieldKind = option("kind", FieldKind, FieldKind.RANDOM, "random or sequence")
    least: str | None = option("min", parse_text, None, "least random number")
    most: str | None = option("max", parse_text, None, "greatest random number")
    max_past_ms: int = option("max-past", parse_duration_ms, 0, "greatest age of a random time")
    length: int = option("length", at_least(1, parse_int), 100, "characters of a text, bytes of a value")
    varies: bool = option("var-len", parse_bool, False, "up to that many characters")
    null_rate: float = option("null-rate", parse_float, 0.0, "share of nulls")
    start: int | None = option("start", parse_long, None, "first number of a sequence")
    end: int | None = option("end", parse_long, None, "last number of a sequence")


@dataclass(frozen=True, slots=True, kw_only=True)
class DatagenOptions(OptionGroup):
    """How many rows are generated."""

    connector: str = option("connector", parse_text, "datagen", "datagen")
    rows_per_second: int = option("rows-per-second", at_least(1, parse_long), 10_000, "of an endless table")
    row_count: int | None = option(
        "number-of-rows", at_least(0, parse_long), None, "of a table that ends; unset, it does not"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DatagenTable:
    """The options of generated rows.

    Attributes:
        fields: of columns whose options are given, by name.
    """

    options: DatagenOptions
    fields: Mapping[str, FieldOptions] = field(default_factory=dict)

    @property
    def row_count(self) -> int | None:
        """Number of rows; None for an unbounded table. The shortest sequence ends the table."""
        sequences = [
            each.end - each.start + 1
            for each in self.fields.values()
            if each.end is not None and each.start is not None
        ]
        counts = [*sequences, *([] if self.options.row_count is None else [self.options.row_count])]
        return min(counts, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintOptions(OptionGroup):
    """How rows are printed."""

    connector: str = option("connector", parse_text, "print", "print")
    identifier: str | None = option("print-identifier", parse_text, None, "text before each row")
    to_standard_error: bool = option("standard-error", parse_bool, False, "print to the standard error")


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaTable:
    """The options of a topic that is written to.

    Attributes:
        sink: the options that begin with ``sink.``.
        key: None if records have no key.
    """

    options: KafkaOptions
    value_format: ValueFormat
    sink: Mapping[str, str]
    key: KafkaKey | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BlackholeOptions(OptionGroup):
    """A table that discards its rows."""

    connector: str = option("connector", parse_text, "blackhole", "blackhole")


ConnectorTable: TypeAlias = FilesystemTable | DatagenTable | PrintOptions | BlackholeOptions | KafkaTable
"""The options of a table with a connector."""

_LINE_FORMATS: Final[dict[StoredFormat, type[ValueFormat]]] = {
    StoredFormat.CSV: CsvFormat,
    StoredFormat.JSON: JsonFormat,
}
_FIELDS: Final = "fields."
# Flink's settings for parallelism and file sizes, which do not affect rows.
_WITHOUT_EFFECT: Final = ("sink.parallelism", "scan.parallelism", "sink.rolling-policy.", "json.encode.", "csv.write-")


def parse_kafka_sink(options: Mapping[str, str], columns: Sequence[str], table: str) -> KafkaTable:
    """Read the options of a topic that is written to."""
    kafka, how = parse_kafka(options, table, is_read=False)
    return KafkaTable(
        options=kafka,
        value_format=how,
        sink={key: text for key, text in options.items() if key.startswith("sink.")},
        key=parse_kafka_key(options, columns, table),
    )


def parse_filesystem(options: Mapping[str, str], columns: Sequence[str], table: str) -> FilesystemTable:  # noqa: ARG001 - as the others
    """Read the options of a directory of files.

    Args:
        columns: names of the table's columns, as for the other connectors; not used.
        table: table name for messages.
    """
    found = FilesystemOptions.parse(options, table=table)
    if not found.path or found.format is None:
        missing = "format" if found.path else "path"
        example = "'format' = 'parquet', or orc, csv, json" if found.path else "'path' = 'file:///data/orders'"
        raise InvalidOptionError(f"table {table}: option '{missing}' is missing: {example}")
    line_format = _LINE_FORMATS.get(found.format)
    known = _names(FilesystemOptions) | (set() if line_format is None else _names(line_format))
    _check_keys(options, known, f"'connector' = 'filesystem' with format '{found.format}'", table)
    how = None if line_format is None else line_format.parse(options, table=table)
    return FilesystemTable(options=found, value_format=how)


def parse_datagen(options: Mapping[str, str], columns: Sequence[str], table: str) -> DatagenTable:
    """Read the options of generated rows.

    Args:
        columns: names of the table's columns.
        table: table name for messages.
    """
    of_fields: dict[str, dict[str, str]] = {}
    others: dict[str, str] = {}
    for key, value in options.items():
        name, dot, what = key.removeprefix(_FIELDS).rpartition(".")
        if not key.startswith(_FIELDS) or not dot:
            others[key] = value
            continue
        if name not in columns:
            raise _unknown(key, [f"{_FIELDS}{column}.{what}" for column in columns], "there is no such column", table)
        of_fields.setdefault(name, {})[what] = value
    _check_keys(others, _names(DatagenOptions), "'connector' = 'datagen'", table)
    fields = {name: _parse_field(name, given, table) for name, given in of_fields.items()}
    return DatagenTable(options=DatagenOptions.parse(others, table=table), fields=fields)


def parse_print(options: Mapping[str, str], columns: Sequence[str], table: str) -> PrintOptions:  # noqa: ARG001 - as the others
    """Read the options of printed rows."""
    _check_keys(options, _names(PrintOptions), "'connector' = 'print'", table)
    return PrintOptions.parse(options, table=table)


def parse_blackhole(options: Mapping[str, str], columns: Sequence[str], table: str) -> BlackholeOptions:  # noqa: ARG001 - as the others
    """Read the options of a table that discards its rows."""
    _check_keys(options, _names(BlackholeOptions), "'connector' = 'blackhole'", table)
    return BlackholeOptions.parse(options, table=table)


def _parse_field(name: str, given: Mapping[str, str], table: str) -> FieldOptions:
    for what in given:
        if what not in _names(FieldOptions):
            known = [f"{_FIELDS}{name}.{each}" for each in sorted(_names(FieldOptions))]
            raise _unknown(f"{_FIELDS}{name}.{what}", known, f"there are {', '.join(known)}", table)
    found = FieldOptions.parse(given, table=f"{table}, column '{name}'")
    is_sequence = found.kind is FieldKind.SEQUENCE
    if is_sequence and (found.start is None or found.end is None or found.end < found.start):
        raise InvalidOptionError(
            f"table {table}: '{_FIELDS}{name}.kind' = 'sequence' needs '{_FIELDS}{name}.start' and an "
            f"'{_FIELDS}{name}.end' that is not less"
        )
    if not is_sequence and (found.start is not None or found.end is not None):
        raise InvalidOptionError(
            f"table {table}: '{_FIELDS}{name}.start' and 'end' are those of a sequence: say '{_FIELDS}{name}.kind' = "
            f"'sequence', or '{_FIELDS}{name}.min' and 'max' for random values"
        )
    if not 0 <= found.null_rate <= 1:
        raise InvalidOptionError(f"table {table}: '{_FIELDS}{name}.null-rate' is a share from 0 to 1")
    return found


def _names(group: type[_Options]) -> set[str]:
    return {each.option.name for each in option_fields(group)}


def _check_keys(options: Mapping[str, str], known: set[str], kind: str, table: str) -> None:
    for key in options:
        if key not in known and not key.startswith(_WITHOUT_EFFECT):
            raise _unknown(key, sorted(known), f"a table with {kind} has no such option", table)


def _unknown(key: str, known: Sequence[str], otherwise: str, table: str) -> InvalidOptionError:
    near = difflib.get_close_matches(key, known, n=1)
    return InvalidOptionError(
        f"table {table}: option '{key}' is not known: " + (f"did you mean '{near[0]}'?" if near else otherwise)
    )
