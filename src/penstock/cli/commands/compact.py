"""The command that merges small files, of one table or many, once or until interrupted."""

from collections.abc import Callable
from typing import Annotated, Final

import typer

from penstock.api.compact_tables import TableCompaction, compact_tables
from penstock.catalog.selection import select_tables
from penstock.cli.arguments import DryRun, Options, parse_pairs
from penstock.cli.compaction import CompactionJob, Wanted
from penstock.cli.output.compaction_report import print_compactions
from penstock.cli.session import session_of
from penstock.errors import InvalidOptionError
from penstock.format.text.partitions import parse_partition
from penstock.options import parse_duration_ms


def compact(
    context: typer.Context,
    table: Annotated[str | None, typer.Argument(metavar="[TABLE]", help="database.table, or the table's path.")] = None,
    *,
    partition: Annotated[
        list[str] | None,
        typer.Option("--partition", metavar="K=V[,K=V]", help="Only this partition; may be repeated."),
    ] = None,
    where: Annotated[str | None, typer.Option("--where", help="Only partitions such as \"dt < '2026-01-01'\".")] = None,
    strategy: Annotated[str | None, typer.Option("--strategy", help="full or minor.  [default: full]")] = None,
    idle_time: Annotated[
        str | None, typer.Option("--idle-time", help='Only partitions without new rows for this long, such as "1 h".')
    ] = None,
    order_strategy: Annotated[
        str | None, typer.Option("--order-strategy", help="Sort the rows: order, zorder or hilbert; needs --spark.")
    ] = None,
    order_by: Annotated[
        str | None, typer.Option("--order-by", metavar="COLUMN[,COLUMN]", help="The columns to sort by.")
    ] = None,
    option: Options = None,
    dry_run: DryRun = False,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Merges at the same time in this process.  [default: cores]")
    ] = None,
    spark: Annotated[
        str | None, typer.Option("--spark", metavar="MASTER", help="Merge with Spark, such as local[4].")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Run next to the jobs that write to the table, until interrupted.")
    ] = False,
    interval: Annotated[str, typer.Option(help="With --follow: wait after a check that found nothing.")] = "10 s",
    database: Annotated[
        str | None, typer.Option("--database", metavar="REGEX", help="The tables of databases whose name matches.")
    ] = None,
    including: Annotated[str | None, typer.Option(metavar="REGEX", help="Of those, tables whose name matches.")] = None,
    excluding: Annotated[str | None, typer.Option(metavar="REGEX", help="Not tables whose name matches.")] = None,
) -> None:
    """Merge small files into larger ones, without changing rows or, in a queue, their order."""
    session = session_of(context)
    if (table is None) == ((database, including, excluding) == (None, None, None)):
        raise InvalidOptionError("give either a TABLE or a --database")
    if spark is not None and threads is not None:
        raise InvalidOptionError("give either --threads, for merges in this process, or --spark")
    wanted = Wanted(
        partitions=None if partition is None else tuple(parse_partition(text) for text in partition),
        where=where,
        strategy=strategy,
        idle_time=idle_time,
        order_strategy=order_strategy,
        order_by=None if order_by is None else tuple(order_by.split(",")),
        dry_run=dry_run,
    )
    job = CompactionJob(session=session, options=parse_pairs(option, "--option"), threads=threads, master=spark)
    if follow:
        if table is None or wanted != Wanted():
            raise InvalidOptionError(
                "--follow compacts one whole TABLE: leave out the options that select, sort or try"
            )
        job.follow(table, idle_ms=parse_duration_ms(interval))
    elif table is not None:
        done = TableCompaction(table=table, result=job.run(table, wanted), error=None)
        print_compactions(session, (done,), dry_run=dry_run)
    else:
        warehouse = session.open_warehouse()
        databases = database or ".*"
        names = select_tables(warehouse, databases=databases, including=including or ".*", excluding=excluding)
        many = tuple(compact_tables(names, lambda name: job.run(name, wanted)))
        print_compactions(session, many, dry_run=dry_run)


COMMANDS: Final[dict[str, Callable[..., None]]] = {"compact": compact}
