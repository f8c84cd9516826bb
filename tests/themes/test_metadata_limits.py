"""The limits of metadata reach what reads it."""

from pathlib import Path

import pyarrow as pa
import pytest

from penstock import Catalog
from penstock.errors import FormatError


def test_a_table_that_has_more_than_its_limit_is_read_with_a_larger_one(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path))
    catalog.create_database("d")
    options = {"penstock.metadata.max-records": "1"}
    table = catalog.create_table("d.t", "id BIGINT, dt INT", partition_by=["dt"], options=options)
    table.append(pa.table({"id": [1, 2], "dt": pa.array([1, 2], pa.int32())}))
    fresh = catalog.load_table("d.t")
    with pytest.raises(FormatError, match="more records than the limit of 1"):
        fresh.to_arrow()
    assert fresh.with_options({"penstock.metadata.max-records": "2"}).to_arrow().num_rows == 2
    assert catalog.load_table("d.t", {"penstock.metadata.max-records": "2"}).to_arrow().num_rows == 2
