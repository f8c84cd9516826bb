"""What an overwrite through Spark replaces, and where its options have no meaning."""

from pathlib import Path

import pytest
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from penstock import Catalog, Table
from penstock.errors import InvalidOptionError
from penstock.spark.data_source.overwrite import OverwriteRule
from penstock.spark.data_source.source import PenstockDataSource
from penstock.table.partition_scope import MatchingPartitions, WholeTable, WrittenPartitions

SCHEMA = StructType([StructField("a", IntegerType()), StructField("p", StringType())])


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = Catalog(tmp_path)
    catalog.create_database("d")
    return catalog.create_table("d.t", "a INT, p STRING", partition_by="p")


def test_the_write_then_the_session_then_the_whole_table(table: Table) -> None:
    def scope(session: str | None, **options: str) -> object:
        return OverwriteRule.of(table._ref, options, overwrite=True).scope_in(session)

    assert scope(None) == scope("STATIC") == WholeTable()
    assert scope("DYNAMIC") == scope(None, partitionoverwritemode="Dynamic") == WrittenPartitions()
    assert scope("DYNAMIC", partitionoverwritemode="static") == WholeTable()
    assert isinstance(scope("DYNAMIC", replacewhere="p = 'x'"), MatchingPartitions)


@pytest.mark.parametrize(
    ("options", "overwrite", "text"),
    [
        ({"partitionoverwritemode": "both"}, True, "expected static or dynamic"),
        ({"replacewhere": "p = 'x'"}, False, "goes with mode"),
        ({"replacewhere": "p = 'x'", "partitionoverwritemode": "dynamic"}, True, "contradict each other"),
        ({"replacewhere": "a = 1"}, True, "'a' is not a partition column"),
    ],
)
def test_what_cannot_be_done_exactly_is_refused(
    table: Table, options: dict[str, str], *, overwrite: bool, text: str
) -> None:
    with pytest.raises(InvalidOptionError, match=text):
        OverwriteRule.of(table._ref, options, overwrite=overwrite)


@pytest.mark.parametrize("options", [{"replacewhere": "p = 'x'"}, {"partitionoverwritemode": "dynamic"}])
def test_on_streams_and_reads_they_are_refused(table: Table, options: dict[str, str]) -> None:
    source = PenstockDataSource({"path": table.location, **options})
    with pytest.raises(InvalidOptionError, match=r"has no meaning for a stream: give it to df\.write"):
        source.streamWriter(SCHEMA, overwrite=True)
    with pytest.raises(InvalidOptionError, match="has no meaning for a stream"):
        source.streamReader(SCHEMA)
    with pytest.raises(InvalidOptionError, match="has no meaning for a read"):
        source.reader(SCHEMA)
