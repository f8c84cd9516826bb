"""Appends files under given names, as an adopted directory has them: one name in several partitions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.table.actions.changes import commit_append, open_committer
from penstock.table.ref import FileLocator
from penstock.table.write.writer import write_arrow

if TYPE_CHECKING:
    from collections.abc import Sequence

    import penstock


def append_as(table: penstock.Table, name: str, rows: Sequence[dict[str, Any]]) -> None:
    """Append rows, in each of their partitions as a file of this name."""
    locator, file_io, messages = FileLocator.of(table._ref), table._ref.file_io, []
    for message in write_arrow(table._ref, pa.Table.from_pylist(list(rows), table.arrow_schema)):
        (file,) = message.new_files
        directory = locator.directory(message.partition, message.bucket)
        file_io.write(f"{directory}/{name}", file_io.read(f"{directory}/{file.file_name}"))
        file_io.delete(f"{directory}/{file.file_name}")
        messages.append(replace(message, new_files=(replace(file, file_name=name),)))
    commit_append(open_committer(table._ref), tuple(messages))
