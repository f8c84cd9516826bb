"""What versions of Spark can do, and the names of their classes, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import pyspark

from penstock.errors import UnsupportedFeatureError, warn

if TYPE_CHECKING:
    from collections.abc import Iterable

Version: TypeAlias = tuple[int, int]
"""Major and minor version, which decide what Spark has."""

TESTED: Final[tuple[Version, ...]] = ((3, 5), (4, 0), (4, 1), (4, 2), (4, 3))
"""Versions that the tests run with; the first one is the oldest that works."""

INSTALLED: Final[Version] = (int((_parts := pyspark.__version__.split("."))[0]), int(_parts[1]))
"""The version of PySpark in this process, which is that of its JVM."""

_SQL: Final = "org.apache.spark.sql."
_CATALOG: Final = f"{_SQL}connector.catalog."

NEEDS_METADATA_COLUMN: Final = (4, 0) <= INSTALLED < (4, 2)
"""Whether rows of an UPDATE, MERGE or DELETE reach the writers of a source with a column too many, unless the scan has
a metadata column: Spark then takes the table's columns out of each row.

Source:
    ``ReplaceDataExec`` of Spark, which 4.2 cured by ``DataWithProjectionWritingSparkTask``.
"""

GROUPS_SCANS: Final = INSTALLED == (4, 1)
"""Whether Spark by default reads all files with one partition key in one task, even if no join or aggregate needs it.

Source:
    ``spark.sql.sources.v2.bucketing.enabled`` is on since 4.1, and 4.2 groups partitions by ``GroupPartitionsExec``.
"""

_INTERFACES: Final[dict[str, tuple[bool, str | None]]] = {
    f"{_CATALOG}ProcedureCatalog": (INSTALLED >= (4, 0), None),
    f"{_CATALOG}procedures.BoundProcedure": (INSTALLED >= (4, 0), None),
    f"{_CATALOG}procedures.UnboundProcedure": (INSTALLED >= (4, 0), None),
    f"{_CATALOG}RelationCatalog": (INSTALLED >= (4, 2), f"{_CATALOG}TableCatalog"),
    f"{_CATALOG}SupportsMetadataColumns": (INSTALLED >= (4, 0), None),
    f"{_CATALOG}SupportsSchemaEvolution": (INSTALLED >= (4, 2), None),
    f"{_SQL}connector.read.SupportsPushDownVariantExtractions": (INSTALLED >= (4, 1), None),
}
"""Interfaces, whether objects implement them, and what they implement otherwise."""

HAS_CLASSIC: Final = INSTALLED >= (4, 0)
"""Whether the sessions and DataFrames of this JVM are in ``org.apache.spark.sql.classic``, next to those of Connect."""

THRIFT_SERVER_EXITS: Final = INSTALLED >= (4, 0)
"""Whether a Thrift server that cannot start ends its JVM, unless ``systemExitOnError`` is false."""

_STREAMING: Final = f"{_SQL}execution.streaming."
_MOVED: Final[dict[str, tuple[Version, str]]] = {
    f"{_STREAMING}checkpointing.FileSystemBasedCheckpointFileManager": (
        (4, 1),
        f"{_STREAMING}FileSystemBasedCheckpointFileManager",
    ),
    f"{_SQL}classic.Dataset": ((4, 0), f"{_SQL}Dataset"),
    f"{_SQL}classic.SparkSession": ((4, 0), f"{_SQL}SparkSession"),
    f"{_STREAMING}runtime.SerializedOffset": ((4, 1), f"{_STREAMING}SerializedOffset"),
}
"""Private classes, since when they have their name, and what they were called before."""

PYTHON_CLASSES: Final = f"{_SQL}execution.datasources.v2.python."
"""Package of private classes that came with ``PYTHON_SOURCES``; scans and writes by Python workers need them."""

ERROR_CLASS: Final = "USER_RAISED_EXCEPTION" if INSTALLED >= (4, 0) else "_LEGACY_ERROR_TEMP_1332"
"""Class of errors whose text is only the parameter ``errorMessage``."""

WIDENS_VALUES: Final = INSTALLED >= (4, 0)
"""Whether Spark's Parquet reader returns INT as BIGINT, and FLOAT as DOUBLE."""

READS_ORC_INSTANTS: Final = INSTALLED >= (4, 2)
"""Whether Spark reads other columns of ORC files that have one of ``timestamp with local time zone``."""

HAS_SAVE_COMMAND: Final = INSTALLED >= (4, 1)
"""Whether ``DataFrameWriter`` has ``saveCommand``."""

MEASURES_BATCHES: Final = INSTALLED >= (4, 0)
"""Whether Spark limits the bytes of the batches that it sends to Python, by ``arrow.maxBytesPerBatch``."""

_NEW_CAPABILITIES: Final[dict[str, Version]] = {
    # 4.1 does not ask the table which changes of its columns it makes, so they are refused there. Without the
    # capability, it would leave out the new columns of the rows.
    "AUTOMATIC_SCHEMA_EVOLUTION": (4, 1),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """Something that only newer versions of Spark can do, or through which only they offer it.

    Attributes:
        what: its name, in Markdown.
        since: the first version that has it.
        instead: what to use in older versions.
        refusal: who refuses it there, or what happens.
    """

    what: str
    since: Version
    instead: str
    refusal: str = "refused"

    @property
    def is_here(self) -> bool:
        """Whether the installed version has it."""
        return self.since <= INSTALLED

    def check(self, subject: str) -> None:
        """Raise ``UnsupportedFeatureError`` if the installed version does not have it.

        Args:
            subject: what it is needed for, such as ``table d.t``.
        """
        if not self.is_here:
            raise UnsupportedFeatureError(f"{subject}: {self.refused()}")

    def refused(self) -> str:
        """Return the text of an error: what needs which version, and what to use instead."""
        text = f"{self.what} needs Spark {text_of(self.since)} or newer, this is {pyspark.__version__}: {self.instead}"
        return text.replace("`", "")


PYTHON_SOURCES: Final = Feature(
    what='`format("penstock")`, `saveAsTable` with it',
    since=(4, 0),
    instead="use the catalog of `penstock.attach`, or `Table.to_spark`, `append`, `overwrite`",
    refusal="refused by Spark",
)
PYTHON_SCANS: Final = Feature(
    what="a scan of the catalog, or a stream, by Python workers (Avro, TIME, numbers that were texts)",
    since=(4, 0),
    instead="use `Table.to_spark`, or `Table.follow` for a stream",
)
PYTHON_WRITES: Final = Feature(
    what="a dynamic overwrite or `toTable` through the catalog",
    since=(4, 0),
    instead="use `Table.overwrite`, or `Table.write_stream`",
)
PROCEDURES: Final = Feature(
    what="`CALL`",
    since=(4, 0),
    instead="use methods of `Table`, or `CALL` in `penstock.sql`",
    refusal="refused by Spark",
)
VARIANT: Final = Feature(
    what="a column of VARIANT",
    since=(4, 0),
    instead="leave it out, or use `Table.to_arrow`",
    refusal="refused, here or by Spark",
)
DELTA_OPTIONS: Final = Feature(
    what="`versionAsOf` and `timestampAsOf` as options of `spark.read.table`",
    since=(4, 0),
    instead="use `VERSION AS OF`, or the option `scan.snapshot-id`",
)
QUERY_OPTIONS: Final = Feature(
    what="`SELECT ... FROM t WITH (options)`",
    since=(4, 0),
    instead="use `spark.read.option(...).table(...)`",
    refusal="refused by Spark",
)
COLLATIONS: Final = Feature(
    what="`COLLATE` in a query",
    since=(4, 0),
    instead="use `lower` or `upper`",
    refusal="refused by Spark",
)
CHAR_DEFAULTS: Final = Feature(
    what="`DEFAULT` of a new column of CHAR or VARCHAR",
    since=(4, 0),
    instead="use `Catalog.create_table`, or `ALTER TABLE ... SET DEFAULT` of `penstock.sql`",
    refusal="refused by Spark",
)
SHOW_COLUMNS: Final = Feature(
    what="`SHOW COLUMNS`",
    since=(4, 0),
    instead="use `DESCRIBE TABLE`",
    refusal="refused by Spark",
)
VIEWS: Final = Feature(
    what="a view of the catalog (`CREATE VIEW`, `SHOW VIEWS`, `FROM` a view)",
    since=(4, 2),
    instead="use `penstock.sql`",
    refusal="refused by Spark",
)
CREATE_LIKE: Final = Feature(
    what="`CREATE TABLE ... LIKE`",
    since=(4, 2),
    instead="use `CREATE TABLE ... AS SELECT * FROM ... WHERE false`, or `Catalog.create_table`",
    refusal="refused by Spark",
)
SCHEMA_EVOLUTION: Final = Feature(
    what="`WITH SCHEMA EVOLUTION`",
    since=(4, 2),
    instead="change the columns with `ALTER TABLE` first, and leave it out",
    refusal="refused, here or by Spark",
)
CONNECT_MERGES: Final = Feature(
    # 4.0 tells no table whether it says withSchemaEvolution(), and then leaves out new columns.
    what="`mergeInto` of a DataFrame of Connect",
    since=(4, 1),
    instead="use `MERGE INTO` in SQL",
    refusal="refused, here or by Spark",
)
STREAM_READS_OF_FORMAT: Final = Feature(
    what='`readStream.format("penstock")`',
    since=(4, 2),
    instead="use `Table.read_stream`, or `readStream.table` after `penstock.attach`",
)
STREAM_WRITES_OF_FORMAT: Final = Feature(
    what='`writeStream.format("penstock")`',
    since=(4, 1),
    instead="use `Table.write_stream`, or `writeStream.toTable` after `penstock.attach`",
)
FILTERS_OF_FORMAT: Final = Feature(
    what='`where` on `format("penstock")` prunes files',
    since=(4, 1),
    instead="use the option `filter`, or `Table.to_spark`",
    refusal="opens all files",
)
OMITTED_DEFAULTS: Final = Feature(
    what="`INSERT` that omits a column with a `DEFAULT`",
    since=(4, 1),
    instead="write `DEFAULT` as its value",
    refusal="refused by Spark",
)
SHOW_PROCEDURES: Final = Feature(
    what="`SHOW PROCEDURES`, `DESCRIBE PROCEDURE`",
    since=(4, 1),
    instead="see the list in [sql.md](sql.md)",
    refusal="refused by Spark",
)
KEPT_CACHES: Final = Feature(
    what="`CACHE TABLE` keeps its rows while other processes commit",
    since=(4, 1),
    instead="nothing is needed: the rows are those after `REFRESH TABLE`",
    refusal="reads the table again",
)
COUNTED_UPDATES: Final = Feature(
    what="an `UPDATE` that matches no row makes no snapshot",
    since=(4, 2),
    instead="nothing is needed: the rows are the same, in new files",
    refusal="makes one",
)
COUNTED_MERGES: Final = Feature(
    what="a `MERGE` that changes no row makes no snapshot",
    since=(4, 1),
    instead="nothing is needed: the rows are the same, in new files",
    refusal="makes one",
)
MERGES_TO_NOTHING: Final = Feature(
    what="a `MERGE` that deletes all rows, because its source turns out to have none",
    since=(4, 0),
    instead="use `DELETE`, or `Table.merge`",
)
ROW_DELTAS: Final = Feature(
    # Row ids are metadata columns.
    what="`UPDATE`, `MERGE`, and `DELETE` with functions or subqueries, of a queue, or with `row-tracking.enabled`",
    since=(4, 0),
    instead="use `Table.update`, `Table.merge`, `Table.delete`, or `penstock.sql`",
)
VARIANT_FIELDS: Final = Feature(
    what="a scan reads only the fields of a VARIANT that a query takes",
    since=(4, 1),
    instead="nothing is needed: the values are the same",
    refusal="reads the whole VARIANT",
)
CONNECT_SERVER: Final = Feature(
    # The package pyspark has the JAR of the server since 4.0.
    what="`penstock connect-server` with nothing but `pip install`",
    since=(4, 0),
    instead="give it `--packages` with the server, which the error names",
)
STREAM_PRUNING: Final = Feature(
    what="files and columns that a stream does not need are skipped (`readStream.table(...).where(...).select(...)`)",
    since=(4, 0),
    instead="use the arguments of `Table.read_stream`",
    refusal="reads all",
)
METADATA_COLUMNS: Final = Feature(
    what="columns that say where a row is (`__paimon_file_path`, `_ROW_ID` and others)",
    since=(4, 0),
    instead="use `input_file_name()`",
    refusal="refused by Spark",
)

FEATURES: Final = (
    PYTHON_SOURCES,
    PYTHON_SCANS,
    PYTHON_WRITES,
    PROCEDURES,
    VARIANT,
    DELTA_OPTIONS,
    QUERY_OPTIONS,
    COLLATIONS,
    CHAR_DEFAULTS,
    SHOW_COLUMNS,
    VIEWS,
    CREATE_LIKE,
    SCHEMA_EVOLUTION,
    CONNECT_MERGES,
    STREAM_READS_OF_FORMAT,
    STREAM_WRITES_OF_FORMAT,
    FILTERS_OF_FORMAT,
    OMITTED_DEFAULTS,
    SHOW_PROCEDURES,
    KEPT_CACHES,
    COUNTED_UPDATES,
    COUNTED_MERGES,
    MERGES_TO_NOTHING,
    ROW_DELTAS,
    CONNECT_SERVER,
    STREAM_PRUNING,
    METADATA_COLUMNS,
    VARIANT_FIELDS,
)
"""What not all versions have."""


def text_of(version: Version) -> str:
    """Return a version as text."""
    return f"{version[0]}.{version[1]}"


def check_version() -> None:
    """Raise ``UnsupportedFeatureError`` if the installed version is older than all that work; warn of a newer one."""
    if TESTED[0] > INSTALLED:
        raise UnsupportedFeatureError(
            f"Penstock works with Spark {text_of(TESTED[0])} and newer, this is {pyspark.__version__}: install one of "
            f"{', '.join(map(text_of, TESTED))}, or use Penstock without Spark"
        )
    if INSTALLED not in TESTED:
        warn(
            f"Penstock was never tested with Spark {pyspark.__version__}, but with "
            f"{', '.join(map(text_of, TESTED))}: private API of Spark that it uses may differ",
            UserWarning,
        )


def interfaces_here(names: Iterable[str]) -> list[str]:
    """Return which interfaces an object implements in the installed version."""
    found = []
    for name in names:
        is_here, other = _INTERFACES.get(name, (True, None))
        found.append(name if is_here else other)
    return list(dict.fromkeys(name for name in found if name is not None))


def class_here(name: str) -> str:
    """Return the name of a private class in the installed version."""
    since, before = _MOVED.get(name, (INSTALLED, name))
    return name if since <= INSTALLED else before


def capabilities_here(names: Iterable[str]) -> tuple[str, ...]:
    """Return those capabilities of a table that the installed version has."""
    return tuple(name for name in names if _NEW_CAPABILITIES.get(name, INSTALLED) <= INSTALLED)
