"""Read Kafka topics as DataFrames, with the options of Flink's connector.

Source:
    Spark's Kafka source: ``subscribe``, ``startingOffsets`` and their like are its options, ``kafka.*`` go to the
    client; offsets of a topic name every partition, -2 is the earliest one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from py4j.java_gateway import JavaPackage
from py4j.protocol import Py4JJavaError
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from penstock.errors import InvalidOptionError, NotFoundError, StorageError, UnsupportedFeatureError
from penstock.format.text.names import quoted
from penstock.options.kafka import EndMode, StartMode, parse_kafka, parse_kafka_key
from penstock.printable import open_log
from penstock.spark.kafka.decode import ORIGIN, ORIGIN_FIELDS, check_columns, decode_values
from penstock.spark.types import to_spark_type
from penstock.spark.versions.python_api import maven_package
from penstock.spark.watermark.query_shape import observe_times, partition_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from penstock.format.types.data_types import DataField
    from penstock.format.watermark import DeclaredWatermark
    from penstock.options.kafka import KafkaKey, KafkaOptions, Offsets

_LOG: Final = open_log(__name__)
_WAIT_MS: Final = 10_000
# One timeout must not be below the other, so set both or none.
_WAITS: Final = frozenset({"default.api.timeout.ms", "request.timeout.ms"})
_EARLIEST: Final = -2

# Each observed partition is a metric, which is computed for every row of a micro-batch.
_MAX_OBSERVED: Final = 256

Partitions = dict[str, tuple[int, ...]]
KEY: Final = "key"
"""The field of ``ORIGIN`` with the key of a record."""

_ROW: Final = "__kafka_row"
HEADERS: Final = "headers"
_KEYS: Final = ("topic", "partition", HEADERS, "offset", "timestamp", "timestamp-type")
_SPARK_NAMES: Final = {"timestamp-type": "timestampType"}
_TYPES: Final = {0: "CreateTime", 1: "LogAppendTime"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """Description of the topics by the brokers.

    Attributes:
        cluster: id of the cluster, which does not depend on the names of its brokers.
        partitions: numbers of the current partitions, by topic.
    """

    cluster: str
    partitions: Partitions


def read_kafka(  # noqa: PLR0913 - what a table of Kafka declares
    spark: SparkSession,
    options: Mapping[str, str],
    fields: Sequence[DataField],
    *,
    is_stream: bool = True,
    table: str = "kafka",
    watermark: DeclaredWatermark | None = None,
    metadata: Mapping[str, str] | None = None,
) -> DataFrame:
    """Return the values of records as a DataFrame with these columns.

    Args:
        options: options of Flink's Kafka connector.
        is_stream: whether to return a streaming DataFrame; else a batch of the records that exist now.
        table: name of the table, for messages.
        watermark: watermark on one of the columns; event times are observed for each partition, for the watermark of
            snapshots that the stream writes. None if none is declared.
        metadata: metadata columns, with the name of the metadata that each shows.
    """
    kafka, how = parse_kafka(options, table)
    shown = dict(metadata or {})
    check_metadata(shown, table)
    physical = [field for field in fields if field.name not in shown]
    key = parse_kafka_key(options, [field.name for field in physical], table)
    # Where the value has the columns of the key too, Flink takes them from the value.
    key = None if key is None or key.is_in_value else key
    stored = [field for field in physical if key is None or field.name not in key.fields]
    check_columns(stored, how, table)
    _check_kind(kafka, table, is_stream=is_stream)
    check_connector(spark, table)
    topics = describe_topics(spark, kafka, table)
    settings = _source_options(kafka, topics.partitions, table, is_stream=is_stream)
    reader = spark.readStream if is_stream else spark.read
    if HEADERS in shown.values():
        settings["includeHeaders"] = "true"
    records = reader.format("kafka").options(**settings).load()
    besides = [*shown.values(), *([] if key is None else [KEY])]
    rows = decode_values(records, stored, how, table, origin=origin_of(besides) if besides else None)
    if key is not None:
        rows = with_key(rows, key, physical, table)
    rows = with_metadata(rows, fields, shown)
    if is_stream and watermark is not None:
        rows = _observed(rows, topics, watermark, table)
    return rows.drop(ORIGIN)


def _observed(rows: DataFrame, topics: Topics, watermark: DeclaredWatermark, table: str) -> DataFrame:
    origin = F.col(ORIGIN)
    is_in = {
        partition_name(topics.cluster, topic, number): (origin["partition"] == number) & (origin["topic"] == topic)
        for topic, numbers in topics.partitions.items()
        for number in numbers
    }
    if 0 < len(is_in) <= _MAX_OBSERVED and watermark.delay_millis is not None:
        return observe_times(rows, watermark, is_in)
    reason = (
        f"it has {len(is_in)} partitions, and at most {_MAX_OBSERVED} are observed"
        if len(is_in) > _MAX_OBSERVED
        else "its expression is Flink's alone"
        if is_in
        else "no topic is there yet"
    )
    _LOG.warning("table %s: what is written from it gets no watermark in its snapshots: %s", table, reason)
    return rows


def _check_kind(kafka: KafkaOptions, table: str, *, is_stream: bool) -> None:
    if is_stream and kafka.end_mode is not EndMode.UNBOUNDED:
        raise UnsupportedFeatureError(
            f"table {table}: 'scan.bounded.mode' = '{kafka.end_mode}': Spark's streams from Kafka have no end: read it "
            "as a batch, or take the trigger availableNow, which ends at what is there"
        )
    if not is_stream and kafka.start_mode is StartMode.LATEST:
        raise InvalidOptionError(
            f"table {table}: 'scan.startup.mode' = 'latest-offset' leaves nothing for a batch to read: say "
            "earliest-offset, timestamp or specific-offsets, or read it as a stream"
        )


def check_connector(spark: SparkSession, table: str) -> None:
    """Raise ``UnsupportedFeatureError`` if Spark lacks the JARs for Kafka."""
    jvm: Any = spark._jvm  # noqa: SLF001 - Python has no other way to ask for a class
    provider = jvm.org.apache.spark.sql.kafka010.KafkaSourceProvider
    if isinstance(provider, JavaPackage) or isinstance(jvm.org.apache.kafka.clients.admin.Admin, JavaPackage):
        package = maven_package(spark, "spark-sql-kafka-0-10")
        raise UnsupportedFeatureError(
            f"table {table}: Spark has no connector for Kafka: start the session with "
            f"config('spark.jars.packages', '{package}'), penstock sql or spark-submit with --packages {package}; "
            "if that version is not available, use the nearest lower one"
        )


def describe_topics(spark: SparkSession, kafka: KafkaOptions, table: str) -> Topics:
    """Read the topics from the brokers, so that a wrong address fails here and not minutes later in the query."""
    jvm: Any = spark._jvm  # noqa: SLF001 - Python has no client of Kafka
    settings = jvm.java.util.Properties()
    properties = dict(kafka.properties)
    if not _WAITS & properties.keys():
        properties |= dict.fromkeys(_WAITS, str(_WAIT_MS))
    for name, value in properties.items():
        settings.setProperty(name, value)
    try:
        admin = jvm.org.apache.kafka.clients.admin.Admin.create(settings)
        try:
            cluster = str(admin.describeCluster().clusterId().get())
            topics = kafka.topics
            if kafka.topic_pattern is not None:
                pattern = jvm.java.util.regex.Pattern.compile(kafka.topic_pattern)
                topics = tuple(each for each in admin.listTopics().names().get() if pattern.matcher(each).matches())
            names = jvm.java.util.ArrayList()
            for topic in topics:
                names.add(topic)
            found = admin.describeTopics(names).allTopicNames().get()
            partitions = {
                topic: tuple(sorted(each.partition() for each in found[topic].partitions())) for topic in topics
            }
            return Topics(cluster=cluster, partitions=partitions)
        finally:
            admin.close(jvm.java.time.Duration.ZERO)
    except Py4JJavaError as error:
        raise _explain(error, kafka, table) from error


def _explain(error: Py4JJavaError, kafka: KafkaOptions, table: str) -> Exception:
    chain = list(_causes(error.java_exception))
    kinds = {cause.getClass().getSimpleName() for cause in chain}
    said = str(chain[-1].getMessage())
    if "UnknownTopicOrPartitionException" in kinds:
        return NotFoundError(
            f"table {table}: Kafka at {kafka.servers} has no topic of this name: {', '.join(kafka.topics)}; create it, "
            "or correct 'topic'"
        )
    if "InvalidTopicException" in kinds or ("ConfigException" in kinds and "bootstrap" not in said):
        return InvalidOptionError(f"table {table}: Kafka's client refuses its options: {said}")
    return StorageError(
        f"table {table}: Kafka at {kafka.servers} does not answer ({said}): check that the brokers run, that "
        "'properties.bootstrap.servers' names them as this machine and the executors reach them, and that "
        "'properties.security.protocol' and similar options are those of the brokers",
        retryable=True,
    )


def _causes(throwable: Any) -> Iterable[Any]:  # noqa: ANN401 - of the JVM
    while throwable is not None:
        yield throwable
        throwable = throwable.getCause()


def _source_options(kafka: KafkaOptions, partitions: Partitions, table: str, *, is_stream: bool) -> dict[str, str]:
    """Return the options of Spark's source."""
    found = {f"kafka.{name}": value for name, value in kafka.properties if name != "group.id"}
    found["failOnDataLoss"] = str(kafka.fail_on_data_loss).lower()
    if (group := dict(kafka.properties).get("group.id")) is not None:
        # Used as a prefix: two queries in one consumer group would each get only a part of the records.
        found["groupIdPrefix"] = group
    if kafka.topic_pattern is not None:
        found["subscribePattern"] = kafka.topic_pattern
    else:
        found["subscribe"] = ",".join(kafka.topics)
    if is_stream and kafka.max_rows is not None:
        found["maxOffsetsPerTrigger"] = str(kafka.max_rows)
    return found | _start_options(kafka, partitions, table) | _end_options(kafka, partitions, table)


def _start_options(kafka: KafkaOptions, partitions: Partitions, table: str) -> dict[str, str]:
    match kafka.start_mode:
        case StartMode.TIMESTAMP:
            return {
                "startingTimestamp": str(kafka.start_millis),
                "startingOffsetsByTimestampStrategy": "latest",
            }
        case StartMode.SPECIFIC:
            _check_partitions(kafka.start_offsets, partitions, table)
            [(topic, numbers)] = partitions.items()
            offsets = dict.fromkeys(numbers, _EARLIEST) | dict(kafka.start_offsets)
            return {"startingOffsets": json.dumps({topic: offsets})}
        case StartMode.LATEST:
            return {"startingOffsets": "latest"}
        case _:
            return {"startingOffsets": "earliest"}


def _end_options(kafka: KafkaOptions, partitions: Partitions, table: str) -> dict[str, str]:
    match kafka.end_mode:
        case EndMode.TIMESTAMP:
            return {"endingTimestamp": str(kafka.end_millis)}
        case EndMode.SPECIFIC:
            _check_partitions(kafka.end_offsets, partitions, table)
            [(topic, numbers)] = partitions.items()
            missing = ", ".join(str(number) for number in numbers if number not in dict(kafka.end_offsets))
            if missing:
                raise InvalidOptionError(
                    f"table {table}: 'scan.bounded.specific-offsets' lacks these partitions of topic {topic}: "
                    f"{missing}; name an end for each of them"
                )
            return {"endingOffsets": json.dumps({topic: dict(kafka.end_offsets)})}
        case _:
            return {}


def _check_partitions(offsets: Offsets, partitions: Partitions, table: str) -> None:
    [(topic, numbers)] = partitions.items()
    for number, _ in offsets:
        if number not in numbers:
            raise NotFoundError(
                f"table {table}: topic {topic} has no partition {number}: it has {', '.join(map(str, numbers))}"
            )


def with_key(rows: DataFrame, key: KafkaKey, fields: Sequence[DataField], table: str) -> DataFrame:
    """Return ``ORIGIN`` and all columns in their order, those of the key decoded from it.

    Args:
        rows: from ``decode_values``, with ``KEY`` in its ``ORIGIN``.
        fields: of key and value.
        table: name of the table, for messages.

    Source:
        Flink ``DynamicKafkaDeserializationSchema``: a record whose key cannot be decoded yields no row.
    """
    by_name = {field.name: field for field in fields}
    # Without its prefix, a column of the key may have the name of a column of the value.
    of_key = [replace(by_name[name], name=name.removeprefix(key.prefix)) for name in key.fields]
    packed = rows.select(F.struct("*").alias(_ROW), F.col(ORIGIN)[KEY].alias("value"))
    place = F.concat(F.lit("the key of Kafka topic "), *_place(F.col(_ROW)[ORIGIN]))
    decoded = decode_values(packed, of_key, key.format, table, origin=F.col(_ROW), place=place)
    names = {name: name.removeprefix(key.prefix) for name in key.fields}
    row = F.col(ORIGIN)
    columns = [
        (F.col(quoted(names[field.name])) if field.name in names else row[field.name]).alias(field.name)
        for field in fields
    ]
    return decoded.select(row[ORIGIN].alias(ORIGIN), *columns)


def _place(origin: Column) -> tuple[Column, ...]:
    return (origin["topic"], F.lit(", partition "), origin["partition"], F.lit(", offset "), origin["offset"])


def check_metadata(shown: Mapping[str, str], table: str) -> None:
    """Check the names of metadata, by column."""
    for column, key in shown.items():
        if key == "leader-epoch":
            raise UnsupportedFeatureError(
                f"table {table}: column '{column}': Spark does not read 'leader-epoch': leave it out"
            )
        if key not in _KEYS:
            near = get_close_matches(key, _KEYS, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(_KEYS)}"
            raise InvalidOptionError(f"table {table}: column '{column}': a record has no metadata '{key}': {hint}")


def origin_of(keys: Iterable[str]) -> Column:
    """Return the origin of a record, with the requested metadata."""
    names = [_SPARK_NAMES.get(key, key) for key in keys]
    return F.struct(*dict.fromkeys((*ORIGIN_FIELDS, *names)))


def with_metadata(rows: DataFrame, fields: Sequence[DataField], shown: Mapping[str, str]) -> DataFrame:
    """Return ``ORIGIN`` and the columns of the table in their order, those of metadata with their declared types.

    Source:
        Flink's Kafka connector, "Available Metadata"; columns of Spark's Kafka source.
    """
    if not shown:
        return rows
    columns = [
        _value(shown[field.name]).cast(to_spark_type(field.type)).alias(field.name)
        if field.name in shown
        else F.col(quoted(field.name))
        for field in fields
    ]
    return rows.select(ORIGIN, *columns)


def _value(key: str) -> Column:
    found = F.col(ORIGIN)[_SPARK_NAMES.get(key, key)]
    if key == HEADERS:
        # A key may occur several times; the last value is used, as in Flink.
        names = F.array_distinct(F.coalesce(found["key"], F.array()))
        return F.map_from_arrays(names, F.transform(names, lambda name: _last(found, name)))
    if key == "timestamp-type":
        kind = F.lit("NoTimestampType")
        for number, text in _TYPES.items():
            kind = F.when(found == number, F.lit(text)).otherwise(kind)
        return kind
    return found


def _last(headers: Column, name: Column) -> Column:
    return F.element_at(F.filter(headers, lambda each: each["key"] == name), -1)["value"]
