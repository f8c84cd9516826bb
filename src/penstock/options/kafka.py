"""Options of a Kafka table, with the keys of Flink's Kafka connector and formats.

They are not options of Penstock's own tables; ``docs/kafka.md`` has the list.

Source:
    Flink ``KafkaConnectorOptions``, ``JsonFormatOptions``, ``CsvFormatOptions``, ``RawFormatOptions``.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias

from penstock.errors import InvalidOptionError, UnsupportedFeatureError
from penstock.options.group import (
    Key,
    OptionGroup,
    ValueKind,
    at_least,
    family,
    option,
    option_fields,
    parse_bool,
    parse_long,
    parse_text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class StartMode(StrEnum):
    """Where a new query starts."""

    EARLIEST = "earliest-offset"
    LATEST = "latest-offset"
    GROUP = "group-offsets"
    TIMESTAMP = "timestamp"
    SPECIFIC = "specific-offsets"


class EndMode(StrEnum):
    """Where a read ends."""

    UNBOUNDED = "unbounded"
    LATEST = "latest-offset"
    GROUP = "group-offsets"
    TIMESTAMP = "timestamp"
    SPECIFIC = "specific-offsets"


class TimestampStandard(StrEnum):
    """How JSON writes a timestamp: with a space or with a T between date and time."""

    SQL = "SQL"
    ISO = "ISO-8601"


class ValueColumns(StrEnum):
    """Which columns the value of a record holds."""

    ALL = "ALL"
    EXCEPT_KEY = "EXCEPT_KEY"


Offsets: TypeAlias = tuple[tuple[int, int], ...]
"""Pairs of partition and offset."""

_OFFSET: Final = re.compile(r"partition:([0-9]+),offset:([0-9]+)")
_ESCAPES: Final = {"\\t": "\t", "\\\\": "\\", "\\'": "'", '\\"': '"'}


def _decode_offsets(text: str) -> Offsets:
    found = [_OFFSET.fullmatch(part.strip()) for part in text.split(";") if part.strip()]
    pairs = tuple((int(match[1]), int(match[2])) for match in found if match is not None)
    if not pairs or len(dict(pairs)) != len(found):
        raise ValueError("offsets such as 'partition:0,offset:42;partition:1,offset:300'")
    return pairs


def _decode_character(text: str) -> str:
    if match := re.fullmatch(r"\\u([0-9a-fA-F]{4})", text):
        return chr(int(match[1], 16))
    found = _ESCAPES.get(text, text)
    if len(found) != 1:
        raise ValueError("one character, or an escape such as '\\t' or '\\u0001'")
    return found


def _decode_topics(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(";") if name.strip())
    if not names or any("," in name for name in names):
        raise ValueError("a topic, or several with semicolons between them")
    return names


def _decode_names(text: str) -> tuple[str, ...]:
    names = tuple(name for name in text.split(";") if name)
    if not names or len(set(names)) < len(names):
        raise ValueError("columns, each once, with semicolons between them")
    return names


_parse_names: Final = ValueKind("columns", _decode_names, ";".join)
_parse_offsets: Final = ValueKind("offsets", _decode_offsets)
_parse_character: Final = ValueKind("character", _decode_character)
_parse_topics: Final = ValueKind("topics", _decode_topics, ";".join)


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaOptions(OptionGroup):
    """Which records of which topics are read.

    Attributes:
        start_millis: ms since 1970-01-01 UTC; each partition starts at its first record that is not older.
        end_millis: each partition ends before its first record that is not older.
        properties: properties of the Kafka client, without the prefix ``properties.``.
    """

    connector: str = option("connector", parse_text, "kafka", "kafka")
    topics: tuple[str, ...] = option("topic", _parse_topics, (), "topics, with semicolons between them")
    topic_pattern: str | None = option("topic-pattern", parse_text, None, "Java regular expression of topics")
    start_mode: StartMode | None = option("scan.startup.mode", StartMode, None, "where a new query begins")
    start_millis: int | None = option(
        "scan.startup.timestamp-millis", at_least(0, parse_long), None, "begin at the records of that time"
    )
    start_offsets: Offsets = option(
        "scan.startup.specific-offsets", _parse_offsets, (), "begin there, partition by partition"
    )
    end_mode: EndMode = option("scan.bounded.mode", EndMode, EndMode.UNBOUNDED, "where a batch read ends")
    end_millis: int | None = option(
        "scan.bounded.timestamp-millis", at_least(0, parse_long), None, "end before records of that time"
    )
    end_offsets: Offsets = option(
        "scan.bounded.specific-offsets", _parse_offsets, (), "end before them, partition by partition"
    )
    format: str | None = option("format", parse_text, None, "of the values: json, csv or raw")
    value_format: str | None = option("value.format", parse_text, None, "the same")
    key_format: str | None = option("key.format", parse_text, None, "of the keys: json, csv or raw")
    key_fields: tuple[str, ...] = option("key.fields", _parse_names, (), "columns of the key")
    key_prefix: str = option(
        "key.fields-prefix", parse_text, "", "begins the names of the key's columns, and is not in the key"
    )
    value_columns: ValueColumns = option(
        "value.fields-include", ValueColumns, ValueColumns.ALL, "whether the key's columns are in the value too"
    )
    max_rows: int | None = option(
        "read.stream.maxRowsPerTrigger", at_least(1, parse_long), None, "records of one micro-batch"
    )
    fail_on_data_loss: bool = option(
        "penstock.fail-on-data-loss", parse_bool, True, "fail when Kafka has deleted records that were not read"
    )
    properties: tuple[tuple[str, str], ...] = family(
        "properties.", "", parse_text, "settings of Kafka's client", is_secret=True
    )

    @property
    def servers(self) -> str:
        """Addresses of the brokers."""
        return dict(self.properties)["bootstrap.servers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonFormat(OptionGroup):
    """Format whose values are JSON objects."""

    ignores_errors: bool = option("json.ignore-parse-errors", parse_bool, False, "null or no row for an error")
    fails_on_missing: bool = option("json.fail-on-missing-field", parse_bool, False, "a missing field is one")
    timestamps: TimestampStandard = option(
        "json.timestamp-format.standard", TimestampStandard, TimestampStandard.SQL, "how moments are written"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvFormat(OptionGroup):
    """Format whose values are lines of separated fields."""

    ignores_errors: bool = option("csv.ignore-parse-errors", parse_bool, False, "null for a field in error")
    delimiter: str = option("csv.field-delimiter", _parse_character, ",", "between fields")
    quote: str = option("csv.quote-character", _parse_character, '"', "around fields")
    is_unquoted: bool = option("csv.disable-quote-character", parse_bool, False, "quotes mean nothing")
    escape: str | None = option("csv.escape-character", _parse_character, None, "before a character as it is")
    null_literal: str | None = option("csv.null-literal", parse_text, None, "text that means null")
    allows_comments: bool = option("csv.allow-comments", parse_bool, False, "values must not begin with #")


@dataclass(frozen=True, slots=True, kw_only=True)
class RawFormat(OptionGroup):
    """Format whose value is the only column."""

    charset: str = option("raw.charset", parse_text, "UTF-8", "of a text")


ValueFormat: TypeAlias = JsonFormat | CsvFormat | RawFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaKey:
    """The columns that are in the keys of records.

    Attributes:
        fields: columns of the table.
        prefix: of their names in the table; the key has the names without it.
        is_in_value: whether the value has them too; reads take them from the value then.
    """

    format: ValueFormat
    fields: tuple[str, ...]
    prefix: str
    is_in_value: bool


_FORMATS: Final[dict[str, type[ValueFormat]]] = {"json": JsonFormat, "csv": CsvFormat, "raw": RawFormat}
# Options for writing, or for Flink's parallelism; they have no effect on reads.
_WITHOUT_EFFECT: Final = ("sink.", "json.encode.", "json.map-null-key.", "json.decode.", "csv.write-")
_WITHOUT_EFFECT_KEYS: Final = frozenset({"scan.topic-partition-discovery.interval", "scan.parallelism"})
# Spark sets these properties itself, and refuses them with an error of its own.
_REFUSED_PROPERTIES: Final = frozenset(
    {
        "auto.offset.reset",
        "enable.auto.commit",
        "interceptor.classes",
        "key.deserializer",
        "key.serializer",
        "value.deserializer",
        "value.serializer",
    }
)


def parse_kafka(options: Mapping[str, str], table: str, *, is_read: bool = True) -> tuple[KafkaOptions, ValueFormat]:
    """Read the options of a Kafka table.

    Args:
        table: table name for messages.
        is_read: whether the table is read; a table that is only written to needs no start mode.
    """
    kafka = KafkaOptions.parse(options, table=table)
    name, prefix = _format_of(kafka, table)
    # If value.format is set, the options of the format have the prefix too.
    of_format = {key.removeprefix(prefix): text for key, text in options.items() if key.startswith(f"{prefix}{name}.")}
    _check_keys(options, name, prefix, table)
    _check_topics(kafka, table)
    if is_read or kafka.start_mode is not None:
        _check_start(kafka, table)
    _check_end(kafka, table)
    _check_properties(kafka, table)
    return kafka, _parse_format(_FORMATS[name], of_format, table)


def parse_kafka_key(options: Mapping[str, str], columns: Sequence[str], table: str) -> KafkaKey | None:
    """Read the options of the keys of a Kafka table; None if keys are neither read nor written.

    Args:
        columns: of the table, without metadata columns.
        table: table name for messages.

    Source:
        Flink ``KafkaConnectorOptionsUtil``: ``createKeyFormatProjection``, ``createValueFormatProjection``.
    """
    kafka = KafkaOptions.parse(options, table=table)
    name, fields, prefix = kafka.key_format, kafka.key_fields, kafka.key_prefix
    is_in_value = kafka.value_columns is ValueColumns.ALL
    if name is None:
        if fields or prefix or not is_in_value:
            raise InvalidOptionError(f"table {table}: options of keys need 'key.format': give json, csv or raw")
        return None
    if not fields:
        raise InvalidOptionError(f"table {table}: 'key.format' needs 'key.fields': name columns, such as 'id;name'")
    _check_format(name, table)
    for column in fields:
        if column not in columns:
            raise InvalidOptionError(
                f"table {table}: 'key.fields' names '{column}': the table's columns are {', '.join(columns)}"
            )
        if not column.startswith(prefix) or column == prefix:
            raise InvalidOptionError(
                f"table {table}: 'key.fields' names '{column}', which does not begin with '{prefix}', the value of "
                "'key.fields-prefix': rename the column, or leave the prefix out"
            )
    if prefix and is_in_value:
        raise InvalidOptionError(
            f"table {table}: 'key.fields-prefix' needs 'value.fields-include' = 'EXCEPT_KEY': the value has the names "
            "of the columns, with the prefix"
        )
    if not is_in_value and len(fields) == len(columns):
        raise InvalidOptionError(
            f"table {table}: 'value.fields-include' = 'EXCEPT_KEY' leaves no column for the value: add one, or say ALL"
        )
    start = f"key.{name}."
    given = {key.removeprefix("key."): text for key, text in options.items() if key.startswith(start)}
    return KafkaKey(
        format=_parse_format(_FORMATS[name], given, table), fields=fields, prefix=prefix, is_in_value=is_in_value
    )


def _check_format(name: str, table: str) -> None:
    if name not in _FORMATS:
        raise UnsupportedFeatureError(
            f"table {table}: format '{name}' cannot be read: json, csv and raw can; with raw and one BYTES column "
            "you can decode the values yourself"
        )


def _parse_format(kind: type[ValueFormat], options: Mapping[str, str], table: str) -> ValueFormat:
    found = kind.parse(options, table=table)
    if isinstance(found, JsonFormat) and found.ignores_errors and found.fails_on_missing:
        raise InvalidOptionError(
            f"table {table}: 'json.fail-on-missing-field' and 'json.ignore-parse-errors' cannot both be true: leave "
            "one out"
        )
    return found


def _format_of(kafka: KafkaOptions, table: str) -> tuple[str, str]:
    given = [name for name in (kafka.format, kafka.value_format) if name is not None]
    if kafka.connector != "kafka":
        raise InvalidOptionError(f"table {table}: connector '{kafka.connector}' is not Kafka's: say 'kafka'")
    if len(given) != 1:
        problem = "two formats" if given else "no format"
        raise InvalidOptionError(f"table {table}: {problem}: give 'format', or 'value.format', as json, csv or raw")
    _check_format(given[0], table)
    return given[0], "" if kafka.format is not None else "value."


def _check_keys(options: Mapping[str, str], name: str, prefix: str, table: str) -> None:
    known = {field.option.name for field in option_fields(KafkaOptions) if isinstance(field.option, Key)}
    known |= {prefix + field.option.name for field in option_fields(_FORMATS[name])}
    known.add("properties.bootstrap.servers")
    of_key = _FORMATS.get(options.get("key.format", ""))
    if of_key is not None:
        known |= {f"key.{field.option.name}" for field in option_fields(of_key)}
    for key in options:
        plain = key.removeprefix(prefix)
        if key.startswith("properties.") or key in known | _WITHOUT_EFFECT_KEYS or plain.startswith(_WITHOUT_EFFECT):
            continue
        near = difflib.get_close_matches(key, sorted(known), n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"a Kafka table with format '{name}' has no such option"
        raise InvalidOptionError(f"table {table}: option '{key}' is not known: {hint}")


def _check_topics(kafka: KafkaOptions, table: str) -> None:
    if (not kafka.topics) == (kafka.topic_pattern is None):
        raise InvalidOptionError(f"table {table}: give either 'topic' or 'topic-pattern'")
    if len(kafka.topics) != 1 and (kafka.start_offsets or kafka.end_offsets):
        raise InvalidOptionError(f"table {table}: specific offsets are those of one topic: give 'topic' with one name")


def _check_start(kafka: KafkaOptions, table: str) -> None:
    if kafka.start_mode in {None, StartMode.GROUP}:
        said = "is not set, which means group-offsets" if kafka.start_mode is None else "= 'group-offsets'"
        raise InvalidOptionError(
            f"table {table}: 'scan.startup.mode' {said}: a query keeps its position in its checkpoint and writes none "
            "to Kafka's consumer groups; say where a new query begins: earliest-offset, latest-offset, timestamp or "
            "specific-offsets"
        )
    _check_pair(table, "scan.startup", kafka.start_mode or "", kafka.start_millis, kafka.start_offsets)


def _check_end(kafka: KafkaOptions, table: str) -> None:
    if kafka.end_mode is EndMode.GROUP:
        raise InvalidOptionError(
            f"table {table}: 'scan.bounded.mode' = 'group-offsets': Penstock does not read consumer groups; say "
            "latest-offset, timestamp or specific-offsets"
        )
    _check_pair(table, "scan.bounded", kafka.end_mode, kafka.end_millis, kafka.end_offsets)


def _check_pair(table: str, prefix: str, mode: str, millis: int | None, offsets: Offsets) -> None:
    """Check that the options that a mode requires are set, and that no option of another mode is set."""
    for wanted, key, is_there in (
        ("timestamp", f"{prefix}.timestamp-millis", millis is not None),
        ("specific-offsets", f"{prefix}.specific-offsets", bool(offsets)),
    ):
        if (mode == wanted) != is_there:
            problem = f"needs '{key}'" if mode == wanted else f"does not use '{key}', which is for '{wanted}'"
            raise InvalidOptionError(f"table {table}: '{prefix}.mode' = '{mode}' {problem}")


def _check_properties(kafka: KafkaOptions, table: str) -> None:
    names = dict(kafka.properties)
    if not names.get("bootstrap.servers", "").strip():
        raise InvalidOptionError(
            f"table {table}: option 'properties.bootstrap.servers' is missing: name the brokers, such as "
            "'host1:9092,host2:9092'"
        )
    for name in sorted(_REFUSED_PROPERTIES & names.keys()):
        cure = "say where to begin with 'scan.startup.mode'" if name == "auto.offset.reset" else "leave it out"
        raise InvalidOptionError(
            f"table {table}: option 'properties.{name}': Spark sets this for Kafka's client itself; {cure}"
        )
