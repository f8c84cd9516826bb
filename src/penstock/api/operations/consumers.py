"""Operations on consumers: positions of readers, stored in the table."""

import re
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Final, Literal

from penstock.api.arguments import INTEGER
from penstock.api.handle import TableHandle
from penstock.api.operations.declaration import Named, Operation
from penstock.api.operations.procedure import Arguments, Procedure
from penstock.errors import InvalidOptionError
from penstock.table.stream.consumers import ConsumerReset, clear_consumers, delete_consumer, reset_consumer


@dataclass(frozen=True, slots=True)
class ResetConsumer(Operation[TableHandle, ConsumerReset]):
    """Move a consumer to a snapshot, forwards or backwards; creates the consumer if it does not exist.

    No query may use the consumer meanwhile.

    Args:
        consumer_id: value of the reader's option ``consumer-id``.
        next_snapshot: id of the first snapshot that it reads, from the earliest to the one after the latest; or
            ``earliest``, or ``latest`` for the one after the latest.
        dry_run: only check the arguments.

    Returns:
        The new and the previous position.

    Raises:
        NotFoundError: that snapshot has expired, or is later than the one after the latest.
        LeaseHeldError: a query uses this consumer.
    """

    consumer_id: Annotated[str, Named(aliases=("consumerId",))]
    next_snapshot: Annotated[
        int | Literal["earliest", "latest"], Named("next_snapshot_id", aliases=("nextSnapshotId",), option="--to")
    ]
    _: KW_ONLY
    dry_run: bool = False

    def run(self, table: TableHandle, /) -> ConsumerReset:
        return reset_consumer(table.checked_store, self.consumer_id, self.next_snapshot, dry_run=self.dry_run)


@dataclass(frozen=True, slots=True)
class DeleteConsumer(Operation[TableHandle, None]):
    """Delete a consumer, so that snapshots that it has not read can expire.

    Args:
        consumer_id: value of the reader's option ``consumer-id``.
        dry_run: only check that it exists.

    Raises:
        NotFoundError: there is no such consumer.
        LeaseHeldError: a query uses it.
    """

    consumer_id: str
    _: KW_ONLY
    dry_run: bool = False

    def run(self, table: TableHandle, /) -> None:
        delete_consumer(table.checked_store, self.consumer_id, dry_run=self.dry_run)


@dataclass(frozen=True, slots=True)
class ClearConsumers(Operation[TableHandle, tuple[str, ...]]):
    """Delete the consumers whose whole id matches a regular expression.

    Args:
        including: regular expression.
        excluding: keep consumers that match this expression.
        dry_run: only return them.

    Returns:
        Ids of the deleted consumers.

    Raises:
        LeaseHeldError: queries use some of them; the others are deleted.
        InvalidOptionError: an invalid regular expression.
    """

    including: Annotated[str, Named("including_consumers", aliases=("includingConsumers",))] = ".*"
    excluding: Annotated[str | None, Named("excluding_consumers", aliases=("excludingConsumers",))] = None
    _: KW_ONLY
    dry_run: bool = False

    def run(self, table: TableHandle, /) -> tuple[str, ...]:
        try:
            include, exclude = (
                re.compile(self.including),
                None if self.excluding is None else re.compile(self.excluding),
            )
        except re.error as error:
            raise InvalidOptionError(
                f"table {table.name}: '{error.pattern!s}' is not a regular expression for consumers: {error}"
            ) from None
        return clear_consumers(table.checked_store, include, exclude, dry_run=self.dry_run)


def _reset_or_delete(arguments: Arguments) -> Operation[Any, Any]:
    consumer, snapshot_id = arguments.needed("consumer_id"), arguments.value("next_snapshot_id", INTEGER)
    return DeleteConsumer(consumer) if snapshot_id is None else ResetConsumer(consumer, snapshot_id)


PROCEDURES: Final = (
    Procedure(
        "reset_consumer", ResetConsumer, "table, consumer_id, next_snapshot_id", build=_reset_or_delete,
        note="deletes the consumer if no snapshot is given"
    ),
    Procedure(
        "clear_consumers", ClearConsumers, "table, including_consumers, excluding_consumers",
        note="consumers in use are kept"
    ),
)  # fmt: skip
