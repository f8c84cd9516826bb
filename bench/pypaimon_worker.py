"""pypaimon as a worker, in its own environment; see ``line_server`` for the protocol."""

import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pypaimon import CatalogFactory, Schema

from bench.line_server import serve

ROWS: dict[str, Any] = {}


def catalog_of(warehouse: str) -> Any:  # noqa: ANN401 - pypaimon is not in the environment that checks types
    """Open the catalog."""
    return CatalogFactory.create({"warehouse": warehouse})


def load(request: dict[str, Any]) -> None:
    """Keep the source rows in memory."""
    ROWS["source"] = pq.read_table(request["source"]).combine_chunks()


def create(request: dict[str, Any]) -> None:
    """Create an empty table in a new warehouse."""
    shutil.rmtree(request["warehouse"], ignore_errors=True)
    Path(request["warehouse"]).mkdir(parents=True)
    catalog = catalog_of(request["warehouse"])
    catalog.create_database("bench", True)  # noqa: FBT003 - ignore_if_exists, positional there
    schema = Schema.from_pyarrow_schema(ROWS["source"].schema, options=request["options"])
    catalog.create_table("bench.t", schema, False)  # noqa: FBT003 - ignore_if_exists, positional there


def append(request: dict[str, Any]) -> None:
    """Load the table and commit the rows."""
    builder = catalog_of(request["warehouse"]).get_table("bench.t").new_batch_write_builder()
    writer, commit = builder.new_write(), builder.new_commit()
    writer.write_arrow(ROWS["source"])
    commit.commit(writer.prepare_commit())
    writer.close()
    commit.close()


def read(request: dict[str, Any]) -> int:
    """Load the table and read some columns into memory."""
    builder = catalog_of(request["warehouse"]).get_table("bench.t").new_read_builder()
    builder = builder.with_projection(request["columns"]) if request.get("columns") else builder
    return builder.new_read().to_arrow(builder.new_scan().plan().splits()).num_rows


STEPS = {"load": load, "create": create, "append": append, "read": read}


if __name__ == "__main__":
    serve(STEPS)
