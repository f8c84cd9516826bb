"""The commands by name, each imported when it runs: importing all of them takes longer than most commands run."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, MutableMapping
from typing import Any, Final

import typer
from typer.main import get_group

from penstock.cli.arguments import GLOBAL_OPTIONS

_HERE: Final = "penstock.cli.commands"
SECTIONS: Final[dict[str, dict[str, tuple[str, str]]]] = {
    "Tables": {
        "create": ("catalog", "Create a database, or a table with its columns."),
        "list": ("catalog", "List databases, or the tables of one."),
        "show": ("catalog", "Show columns, keys, options, the latest snapshot and the size."),
        "options": ("catalog", "Show the options of a table, or all options."),
        "alter": ("alter", "Change columns, options and comments of a table."),
        "rename": ("catalog", "Rename a table within its warehouse."),
        "drop": ("catalog", "Permanently remove a table or a database with its files."),
    },
    "Rows": {
        "read": ("rows", "Print rows of the latest snapshot or an older one."),
        "append": ("rows", "Append the rows of files in order, as one commit."),
        "overwrite": ("rows", "Replace rows with the rows of files."),
        "import": ("rows", "Copy a Hive-style directory of Parquet files."),
        "migrate": ("migrate", "Create a table from a Hive-style directory, by hard links."),
        "convert": ("convert", "Copy files, or a Delta or Iceberg table, into a new table."),
        "export": ("convert", "Write rows as a directory of Parquet files."),
        "delete": ("rows", "Delete the rows that match a condition."),
        "truncate": ("rows", "Remove all rows in a new snapshot."),
        "drop-partition": ("rows", "Remove the rows of partitions in a new snapshot."),
        "sql": ("sql", "Run Flink SQL statements, or open a prompt."),
    },
    "Inspection": {
        "snapshots": ("inspect", "List snapshots, oldest first."),
        "schemas": ("inspect", "List schemas, oldest first."),
        "files": ("inspect", "List data files; with --wide also their statistics."),
        "partitions": ("inspect", "List partitions with rows, files and bytes."),
        "buckets": ("inspect", "List buckets with rows, files and bytes."),
        "manifests": ("inspect", "List manifests."),
        "debt": ("inspect", "List the small files of each partition, and what a compaction would merge."),
        "tags": ("inspect", "List tags; the same as tag list."),
        "consumers": ("inspect", "List consumers and the snapshot that each reads next."),
        "explain": ("inspect", "Print which files a read would open and what pruned the others."),
        "fsck": ("inspect", "Check that the files that the table needs exist."),
    },
    "Over time": {
        "follow": ("stream", "Print rows as they are added."),
        "lag": ("stream", "Print the lag of consumers and streaming queries."),
        "watch": ("watch", "Show a table's health and history, live."),
        "report": ("report", "Chart the history of tables in one HTML file."),
        "wait": ("completeness", "Wait until the table has all rows up to an event time."),
        "mark-done": ("completeness", "Mark partitions as done."),
        "consumer": ("consumer", "Manage consumers: positions of readers, which retain unread snapshots."),
    },
    "Upkeep": {
        "compact": ("compact", "Merge small files into large ones."),
        "expire": ("upkeep", "Expire old snapshots."),
        "expire-partitions": ("upkeep", "Drop the partitions that are older than their expiration time."),
        "remove-orphan-files": ("upkeep", "Delete files that no snapshot uses."),
        "branch": ("branch", "Manage branches, each with its own snapshots."),
        "tag": ("history", "Manage tags, which retain the snapshots they name."),
        "rollback": ("history", "Make an older snapshot the latest."),
    },
}
"""The module of each command, and its line in the list of commands; the command's own help is longer."""

_MODULES: Final = {name: module for commands in SECTIONS.values() for name, (module, _) in commands.items()}


class Commands(MutableMapping[str, Any]):
    """Typer's commands by name, each created on first use."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - some versions of typer bring a click of their own
        if name not in self._made:
            self._made[name] = _make(name, _MODULES[name])
        return self._made[name]

    def __setitem__(self, name: str, command: object) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**_MODULES, **self._made})

    def __len__(self) -> int:
        return len({**_MODULES, **self._made})


def _make(name: str, module: str) -> Any:  # noqa: ANN401 - as above
    found = importlib.import_module(f"{_HERE}.{module}").COMMANDS[name]
    parent = typer.Typer(rich_markup_mode=None)
    if isinstance(found, typer.Typer):
        parent.add_typer(found, name=name, epilog=GLOBAL_OPTIONS)
    else:
        parent.command(name, epilog=GLOBAL_OPTIONS)(found)
    return get_group(parent).commands[name]
