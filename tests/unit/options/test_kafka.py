"""The options of a Kafka table: what they mean, and what is refused with which cure."""

from __future__ import annotations

import re

import pytest

from penstock.errors import InvalidOptionError, UnsupportedFeatureError
from penstock.options.kafka import (
    CsvFormat,
    EndMode,
    JsonFormat,
    RawFormat,
    StartMode,
    TimestampStandard,
    parse_kafka,
    parse_kafka_key,
)

LEAST = {
    "connector": "kafka",
    "topic": "orders",
    "properties.bootstrap.servers": "127.0.0.1:9092",
    "scan.startup.mode": "earliest-offset",
    "format": "json",
}
SPECIFIC = {"scan.startup.mode": "specific-offsets", "scan.startup.specific-offsets": "partition:0,offset:4"}


def merged(changes: dict[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in {**LEAST, **changes}.items() if value is not None}


def test_the_least_that_is_needed_has_the_defaults_of_flink() -> None:
    kafka, how = parse_kafka(LEAST, "t")
    assert (kafka.topics, kafka.servers, kafka.start_mode) == (("orders",), "127.0.0.1:9092", StartMode.EARLIEST)
    assert (kafka.end_mode, kafka.max_rows, kafka.fail_on_data_loss) == (EndMode.UNBOUNDED, None, True)
    assert how == JsonFormat(ignores_errors=False, fails_on_missing=False, timestamps=TimestampStandard.SQL)


def test_every_filter_is_parsed() -> None:
    kafka, how = parse_kafka(
        merged(
            {
                "topic": "a; b",
                "scan.startup.mode": "timestamp",
                "scan.startup.timestamp-millis": "1763683200000",
                "scan.bounded.mode": "timestamp",
                "scan.bounded.timestamp-millis": "1763683300000",
                "properties.security.protocol": "SSL",
                "json.ignore-parse-errors": "true",
                "json.timestamp-format.standard": "ISO-8601",
                "read.stream.maxRowsPerTrigger": "100",
                "penstock.fail-on-data-loss": "false",
            }
        ),
        "t",
    )
    assert kafka.topics == ("a", "b")
    assert (kafka.start_millis, kafka.end_millis) == (1763683200000, 1763683300000)
    assert dict(kafka.properties)["security.protocol"] == "SSL"
    assert (kafka.max_rows, kafka.fail_on_data_loss) == (100, False)
    assert how == JsonFormat(ignores_errors=True, timestamps=TimestampStandard.ISO)


def test_offsets_are_pairs_of_partition_and_offset() -> None:
    ends = {"scan.bounded.mode": "specific-offsets", "scan.bounded.specific-offsets": "partition:2,offset:7;"}
    kafka, _ = parse_kafka(merged({**SPECIFIC, **ends}), "t")
    assert (kafka.start_offsets, kafka.end_offsets) == (((0, 4),), ((2, 7),))


def test_options_of_a_value_format_have_its_prefix() -> None:
    changes = {"format": None, "value.format": "csv", "value.csv.field-delimiter": "\\t", "value.csv.null-literal": "-"}
    _, how = parse_kafka(merged(changes), "t")
    assert how == CsvFormat(delimiter="\t", null_literal="-")
    with pytest.raises(InvalidOptionError, match=r"'csv.field-delimiter' is not known: did you mean 'value.csv"):
        parse_kafka(merged({"format": None, "value.format": "csv", "csv.field-delimiter": ";"}), "t")


@pytest.mark.parametrize(("text", "character"), [(";", ";"), ("\\u0001", "\x01"), ("\\\\", "\\"), ("\\'", "'")])
def test_a_delimiter_may_be_an_escape(text: str, character: str) -> None:
    _, how = parse_kafka(merged({"format": "csv", "csv.field-delimiter": text}), "t")
    assert how == CsvFormat(delimiter=character)


def test_what_says_how_to_write_has_no_effect_on_a_read() -> None:
    changes = {
        "format": "raw",
        "raw.charset": "ISO-8859-1",
        "sink.partitioner": "round-robin",
        "sink.delivery-guarantee": "exactly-once",
        "scan.topic-partition-discovery.interval": "10 s",
    }
    kafka, how = parse_kafka(merged(changes), "t")
    assert how == RawFormat(charset="ISO-8859-1")
    assert kafka == parse_kafka(merged({"format": "raw"}), "t")[0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scan.startup.mod": "x"}, "option 'scan.startup.mod' is not known: did you mean 'scan.startup.mode'?"),
        ({"csv.quote-character": "'"}, "option 'csv.quote-character' is not known: a Kafka table with format 'json'"),
        ({"topic": None}, "give either 'topic' or 'topic-pattern'"),
        ({"topic-pattern": "a.*"}, "give either 'topic' or 'topic-pattern'"),
        ({"topic": " ; "}, "option 'topic' = ' ; ': expected a topic"),
        ({"properties.bootstrap.servers": None}, "'properties.bootstrap.servers' is missing: name the brokers"),
        ({"properties.bootstrap.servers": " "}, "'properties.bootstrap.servers' is missing: name the brokers"),
        ({"connector": "upsert-kafka"}, "connector 'upsert-kafka' is not Kafka's"),
        ({"format": None}, "no format: give 'format'"),
        ({"value.format": "json"}, "two formats: give 'format'"),
        ({"scan.startup.mode": None}, "'scan.startup.mode' is not set, which means group-offsets: a query keeps"),
        ({"scan.startup.mode": "group-offsets"}, "'scan.startup.mode' = 'group-offsets': a query keeps its position"),
        ({"scan.startup.mode": "first"}, "option 'scan.startup.mode' = 'first': expected one of earliest-offset"),
        ({"scan.startup.mode": "timestamp"}, "'timestamp' needs 'scan.startup.timestamp-millis'"),
        ({"scan.startup.timestamp-millis": "5"}, "does not use 'scan.startup.timestamp-millis', which is for"),
        ({"scan.startup.mode": "specific-offsets"}, "needs 'scan.startup.specific-offsets'"),
        ({**SPECIFIC, "topic": "a;b"}, "specific offsets are those of one topic"),
        ({**SPECIFIC, "scan.startup.specific-offsets": "0:4"}, "expected offsets such as 'partition:0,offset:42"),
        (
            {**SPECIFIC, "scan.startup.specific-offsets": "partition:0,offset:4;partition:0,offset:5"},
            "expected offsets such as",
        ),
        ({"scan.bounded.mode": "group-offsets"}, "'scan.bounded.mode' = 'group-offsets': Penstock does not read"),
        ({"scan.bounded.mode": "timestamp"}, "'timestamp' needs 'scan.bounded.timestamp-millis'"),
        ({"properties.auto.offset.reset": "latest"}, "'properties.auto.offset.reset': Spark sets this for Kafka's"),
        ({"properties.value.deserializer": "x"}, "'properties.value.deserializer': Spark sets this"),
        (
            {"json.fail-on-missing-field": "true", "json.ignore-parse-errors": "true"},
            "'json.fail-on-missing-field' and 'json.ignore-parse-errors' cannot both be true",
        ),
        ({"format": "csv", "csv.field-delimiter": "||"}, "'csv.field-delimiter' = '||': expected one character"),
        ({"read.stream.maxRowsPerTrigger": "0"}, "expected 1 or more"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_cure(changes: dict[str, str | None], message: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"^table t: .*{re.escape(message)}"):
        parse_kafka(merged(changes), "t")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "avro"}, "format 'avro' cannot be read: json, csv and raw can"),
    ],
)
def test_what_flink_can_and_we_cannot_is_refused_with_the_reason(changes: dict[str, str], message: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=f"^table t: .*{re.escape(message)}"):
        parse_kafka(merged(changes), "t")


KEYED: dict[str, str | None] = {"key.format": "json", "key.fields": "k_id;k_day", "key.fields-prefix": "k_"}
EXCEPT: dict[str, str | None] = {"value.fields-include": "EXCEPT_KEY"}


def test_a_key_has_columns_and_a_format_of_its_own() -> None:
    given = merged({**KEYED, **EXCEPT, "key.json.ignore-parse-errors": "true"})
    parse_kafka(given, "t")
    key = parse_kafka_key(given, ["k_id", "k_day", "id"], "t")
    assert key is not None
    assert (key.fields, key.prefix, key.is_in_value) == (("k_id", "k_day"), "k_", False)
    assert key.format == JsonFormat(ignores_errors=True)
    assert parse_kafka_key(LEAST, ["id"], "t") is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"key.fields": "k_id"}, "options of keys need 'key.format'"),
        (EXCEPT, "options of keys need 'key.format'"),
        ({"key.format": "json"}, "'key.format' needs 'key.fields'"),
        ({**KEYED, "key.fields": "nothing"}, "'key.fields' names 'nothing': the table's columns are k_id, k_day, id"),
        ({**KEYED, **EXCEPT, "key.fields": "id"}, "names 'id', which does not begin with 'k_'"),
        (KEYED, "'key.fields-prefix' needs 'value.fields-include' = 'EXCEPT_KEY'"),
        (
            {**EXCEPT, "key.format": "json", "key.fields": "k_id;k_day;id"},
            "'EXCEPT_KEY' leaves no column for the value",
        ),
    ],
)
def test_options_of_a_key_that_contradict_each_other_are_refused(changes: dict[str, str | None], message: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"^table t: .*{re.escape(message)}"):
        parse_kafka_key(merged(changes), ["k_id", "k_day", "id"], "t")


def test_options_of_the_format_of_a_key_are_checked() -> None:
    with pytest.raises(InvalidOptionError, match=r"'key.json.ignore-parse-erors' is not known: did you mean 'key.json"):
        parse_kafka(merged({**KEYED, "key.json.ignore-parse-erors": "true"}), "t")
    with pytest.raises(UnsupportedFeatureError, match="format 'avro'"):
        parse_kafka_key(merged({"key.format": "avro", "key.fields": "id"}), ["id"], "t")
