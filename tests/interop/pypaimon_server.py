"""pypaimon as a server: one JSON request a line on standard input, one JSON answer a line on standard output.

Runs in pypaimon's own environment. Requests and answers are those of java/Engine.java, as far as they go.
"""

import json
import os
import sys
import traceback
from typing import TYPE_CHECKING, Any

from canonical import rows_of, table_of
from pypaimon import CatalogFactory, Schema
from pypaimon.schema.data_types import DataField, PyarrowFieldParser

if TYPE_CHECKING:
    import pyarrow as pa

Request = dict[str, Any]


def open_table(request: Request) -> Any:
    """Load the table anew, since other engines change it between two requests."""
    catalog = CatalogFactory.create({"warehouse": request["warehouse"], **request.get("catalog", {})})
    table = catalog.get_table(request["table"])
    return table.copy(request["options"]) if request.get("options") else table


def read(request: Request) -> Any:
    """Return rows and the number of files that the plan left."""
    builder = open_table(request).new_read_builder()
    if "columns" in request:
        builder = builder.with_projection(request["columns"])
    if "filter" in request:
        builder = builder.with_filter(make_filter(builder.new_predicate_builder(), request["filter"]))
    splits = builder.new_scan().plan().splits()
    table = builder.new_read().to_arrow(splits)
    return {"rows": [] if table is None else rows_of(table), "files": sum(len(split.files) for split in splits)}


def make_filter(builder: Any, conditions: list[list[Any]]) -> Any:
    """Build the conjunction; literals are plain JSON values."""
    operators = {
        "=": builder.equal,
        "<>": builder.not_equal,
        "<": builder.less_than,
        "<=": builder.less_or_equal,
        ">": builder.greater_than,
        ">=": builder.greater_or_equal,
        "in": lambda column, *values: builder.is_in(column, list(values)),
        "not in": lambda column, *values: builder.is_not_in(column, list(values)),
        "starts with": builder.startswith,
        "is null": builder.is_null,
        "is not null": builder.is_not_null,
    }
    return builder.and_predicates([operators[operator](column, *values) for column, operator, *values in conditions])


def create(request: Request) -> None:
    """Create a table; a field's type is the JSON of a schema file."""
    catalog = CatalogFactory.create({"warehouse": request["warehouse"], **request.get("catalog", {})})
    catalog.create_database(request["table"].split(".")[0], True)  # noqa: FBT003 - ignore_if_exists, positional there
    fields = [
        DataField.from_dict({"id": i, "name": name, "type": kind}) for i, (name, kind) in enumerate(request["fields"])
    ]
    schema = Schema(fields, request.get("partition"), None, request.get("table_options"))
    catalog.create_table(request["table"], schema, False)  # noqa: FBT003 - ignore_if_exists, positional there


def names(request: Request) -> list[str]:
    """Return the names of the tables of a database."""
    catalog = CatalogFactory.create({"warehouse": request["warehouse"], **request.get("catalog", {})})
    found: list[str] = catalog.list_tables(request["table"].split(".")[0])
    return found


def write(request: Request) -> None:
    """Append, or overwrite a partition, in one batch commit."""
    table = open_table(request)
    builder = table.new_batch_write_builder()
    if "overwrite" in request:
        builder = builder.overwrite(request["overwrite"])
    schema: pa.Schema = PyarrowFieldParser.from_paimon_schema(table.fields)
    writer, commit = builder.new_write(), builder.new_commit()
    writer.write_arrow(table_of(request["rows"], schema))
    commit.commit(writer.prepare_commit())
    writer.close()
    commit.close()


OPERATIONS = {"read": read, "create": create, "write": write, "names": names}


def answer(line: str) -> str:
    """Serve one request."""
    try:
        request = json.loads(line)
        return json.dumps({"ok": OPERATIONS[request["op"]](request)}, ensure_ascii=False)
    except Exception as error:  # noqa: BLE001 - whatever happened is the answer
        trace = "".join(traceback.format_exception(error)[-3:])
        return json.dumps({"error": f"{type(error).__name__}: {error}", "trace": trace}, ensure_ascii=False)


def main() -> None:
    """Serve until standard input ends."""
    # What a library prints must not get among the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    for line in sys.stdin:
        answers.write(answer(line) + "\n")


if __name__ == "__main__":
    main()
