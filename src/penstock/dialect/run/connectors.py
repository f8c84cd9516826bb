"""Options of the tables of a session, by their connectors."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from penstock.errors import InvalidOptionError, InvalidSqlError, UnsupportedFeatureError
from penstock.format.types.data_types import DataField
from penstock.options.connectors import (
    DatagenTable,
    FilesystemTable,
    parse_blackhole,
    parse_datagen,
    parse_filesystem,
    parse_kafka_sink,
    parse_print,
)
from penstock.options.kafka import EndMode, parse_kafka

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from penstock.dialect.parse.reader import Pairs
    from penstock.dialect.parse.statements import CreateTable
    from penstock.options.connectors import ConnectorTable

KAFKA: Final = "kafka"
_FILES: Final = "filesystem"
# Unsupported connectors of Flink, with the reason.
_REFUSED: Final = {
    "upsert-kafka": "its records change and delete rows by their key, and an append table has no keys: with 'kafka', "
    "'key.format' and 'key.fields' every record is a row, which MERGE INTO brings into a table by its key",
}
_PARSERS: Final[Mapping[str, Callable[[Mapping[str, str], Sequence[str], str], ConnectorTable]]] = {
    KAFKA: parse_kafka_sink,
    _FILES: parse_filesystem,
    "datagen": parse_datagen,
    "print": parse_print,
    "blackhole": parse_blackhole,
}
CONNECTORS: Final = tuple(_PARSERS)
"""Connectors that a table of a session may have."""


def connector_of(table: CreateTable) -> str:
    """Return the connector of a table of a session."""
    return dict(table.options)["connector"]


def check_declaration(table: CreateTable) -> None:
    """Check the definition of a table of a session.

    Raises:
        InvalidOptionError: the connector, or an option of it, is not known or does not accept its value.
        UnsupportedFeatureError: a connector of Flink that is not supported.
        InvalidSqlError: the connector does not support partitions, computed columns or metadata columns.
    """
    name, connector = ".".join(table.name), connector_of(table)
    if connector in _REFUSED:
        raise UnsupportedFeatureError(f"table {name}: 'connector' = '{connector}': {_REFUSED[connector]}")
    if connector not in CONNECTORS:
        near = get_close_matches(connector, CONNECTORS, n=1)
        hint = f" (did you mean '{near[0]}'?)" if near else ""
        raise InvalidOptionError(
            f"table {name}: 'connector' = '{connector}' is not known{hint}; there is {', '.join(CONNECTORS)}, and a "
            "table without a connector is one of the catalog"
        )
    if table.computed:
        raise InvalidSqlError(f"table {name}: a table with a connector has no computed columns: compute in the query")
    if table.partition_by and connector != _FILES:
        raise InvalidSqlError(f"table {name}: a table with the connector {connector} has no partitions")
    names = {column.name for column in table.columns}
    strangers = [each for each in table.partition_by if each not in names]
    if strangers or len(table.partition_by) == len(names):
        problem = f"there is no column '{strangers[0]}'" if strangers else "a column is needed besides the partitions"
        raise InvalidSqlError(f"table {name}: PARTITIONED BY: {problem}")
    if table.metadata and connector != KAFKA:
        raise InvalidSqlError(f"table {name}: the connector {connector} has no metadata columns; Kafka's has")
    connector_table(table)


def connector_table(table: CreateTable, hint: Pairs = ()) -> ConnectorTable:
    """Return the options of a table of a session; for Kafka, those of a topic that is written to.

    Args:
        hint: options of a hint, which override those of the table.
    """
    options = {**dict(table.options), **dict(hint)}
    shown = {column.name for column in table.metadata}
    columns = [column.name for column in table.columns if column.name not in shown]
    return _PARSERS[connector_of(table)](options, columns, ".".join(table.name))


def is_endless(table: CreateTable, hint: Pairs = ()) -> bool:
    """Whether a table of a session is unbounded, so that it can only be read as a stream."""
    if connector_of(table) == KAFKA:
        kafka, _ = parse_kafka({**dict(table.options), **dict(hint)}, ".".join(table.name))
        return kafka.end_mode is EndMode.UNBOUNDED
    match connector_table(table, hint):
        case FilesystemTable(options=options):
            return options.monitor_interval_ms is not None
        case DatagenTable() as generated:
            return generated.row_count is None
        case _:
            return False


def fields_of(table: CreateTable) -> tuple[DataField, ...]:
    """Return the columns of a table of a session."""
    return tuple(DataField(id=place, name=each.name, type=each.type) for place, each in enumerate(table.columns))
