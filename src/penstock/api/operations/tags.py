"""Operations on tags."""

from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from typing import Annotated, Final

from penstock.api.arguments import INTEGER, NAMES
from penstock.api.handle import TableHandle
from penstock.api.operations.declaration import Named, Operation
from penstock.api.operations.procedure import Procedure, ResultRows
from penstock.catalog.checks.features import check_taggable, check_writable
from penstock.clocks import to_millis
from penstock.errors import FormatError, InvalidOptionError
from penstock.format.snapshot import Snapshot
from penstock.options import TagCreation, TagOptions
from penstock.table.actions.auto_tags import TagMaker
from penstock.table.expire.tags import delete_tag, expire_tags, replace_tag
from penstock.table.tags import create_tag, first_since, first_with_watermark, rename_tag


@dataclass(frozen=True, slots=True)
class CreateTag(Operation[TableHandle, Snapshot]):
    """Tag a snapshot, by default the latest, so that its rows stay readable.

    Args:
        snapshot_id: may be an expired snapshot that another tag retains.
        timestamp: tag the first snapshot committed at or after this time.
        watermark: tag the first snapshot whose watermark has reached this event time.
        time_retained: such as ``7 d``; by default the option ``tag.default-time-retained``, or forever if it is not
            set.

    Returns:
        The tagged snapshot.

    Raises:
        AlreadyExistsError: the table has a tag of that name.
        NotFoundError: there is no such snapshot.
        InvalidOptionError: more than one position, or an invalid name.
        UnsupportedFeatureError: the table has readers that would not learn of the tag.
    """

    name: Annotated[str, Named("tag")]
    _: KW_ONLY
    snapshot_id: Annotated[int | None, Named(aliases=("snapshot",))] = None
    timestamp: Annotated[datetime | int | None, Named(sql=INTEGER)] = None
    watermark: Annotated[datetime | int | None, Named(sql=INTEGER)] = None
    time_retained: str | None = None

    def run(self, table: TableHandle, /) -> Snapshot:
        check_taggable(table.ref)
        if [self.snapshot_id, self.timestamp, self.watermark].count(None) < 2:
            raise InvalidOptionError(
                f"table {table.name}: a tag needs exactly one of a snapshot id, a timestamp and a watermark"
            )
        store, snapshot_id = table.checked_store, self.snapshot_id
        if self.timestamp is not None:
            snapshot_id = first_since(store, to_millis(self.timestamp)).id
        elif self.watermark is not None:
            snapshot_id = first_with_watermark(store, to_millis(self.watermark)).id
        options = table.ref.parsed(TagOptions)
        tag = create_tag(store, self.name, snapshot_id=snapshot_id, time_retained=self.time_retained, options=options)
        return tag.snapshot


@dataclass(frozen=True, slots=True)
class ReplaceTag(Operation[TableHandle, Snapshot]):
    """Move a tag to another snapshot; files that only the tag retained are deleted.

    Args:
        snapshot_id: by default the latest.
        time_retained: as for ``create_tag``.

    Raises:
        NotFoundError: there is no such tag or snapshot.
    """

    name: Annotated[str, Named("tag")]
    _: KW_ONLY
    snapshot_id: Annotated[int | None, Named(aliases=("snapshot",))] = None
    time_retained: str | None = None

    def run(self, table: TableHandle, /) -> Snapshot:
        check_taggable(table.ref)
        return replace_tag(
            table.ref,
            table.checked_store,
            self.name,
            snapshot_id=self.snapshot_id,
            time_retained=self.time_retained,
        ).snapshot


@dataclass(frozen=True, slots=True)
class RenameTag(Operation[TableHandle, None]):
    """Rename a tag.

    Args:
        new_name: its new name.

    Raises:
        NotFoundError: there is no such tag.
        AlreadyExistsError: the table has a tag of the new name.
    """

    name: Annotated[str, Named("tagName", aliases=("tag",))]
    new_name: Annotated[str, Named("targetTagName", aliases=("target_tag",))]

    def run(self, table: TableHandle, /) -> None:
        check_taggable(table.ref)
        rename_tag(table.checked_store, self.name, self.new_name, table.ref.parsed(TagOptions))


@dataclass(frozen=True, slots=True)
class DeleteTag(Operation[TableHandle, None]):
    """Delete a tag, and the files that only it retained.

    Args:
        dry_run: only check that it exists.

    Raises:
        NotFoundError: there is no such tag.
    """

    name: Annotated[str, Named("tag", sql=NAMES)]
    _: KW_ONLY
    dry_run: bool = False

    def run(self, table: TableHandle, /) -> None:
        check_taggable(table.ref)
        if self.dry_run:
            with suppress(FormatError):  # a damaged tag is deleted too
                table.checked_store.load_tag(self.name)
        else:
            delete_tag(table.ref, table.checked_store, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireTags(Operation[TableHandle, tuple[str, ...]]):
    """Delete tags whose ``time_retained`` has passed; commits do this automatically.

    Args:
        older_than: also delete all tags created before this time.
        dry_run: only return them.

    Returns:
        Their names.
    """

    older_than: datetime | int | None = None
    dry_run: bool = False

    def run(self, table: TableHandle, /) -> tuple[str, ...]:
        check_writable(table.ref)
        millis = None if self.older_than is None else to_millis(self.older_than)
        return expire_tags(table.ref, table.checked_store, older_than_millis=millis, dry_run=self.dry_run)


@dataclass(frozen=True, slots=True)
class CreateDueTags(Operation[TableHandle, tuple[str, ...]]):
    """Create the tags that are due by ``tag.automatic-creation`` and not created by a commit; expire old ones.

    Returns:
        Names of the new tags; empty without automatic tags, and for ``batch``, whose tags only batch commits create.
    """

    def run(self, table: TableHandle, /) -> tuple[str, ...]:
        check_writable(table.ref)
        options, store = table.ref.parsed(TagOptions), table.checked_store
        latest, made = store.load_latest_snapshot(), tuple[str, ...]()
        if latest is not None and options.automatic_creation in {TagCreation.PROCESS_TIME, TagCreation.WATERMARK}:
            made = TagMaker(table.ref, store, options).run(latest)
        if options.time_expire_enabled:
            expire_tags(table.ref, store)
        return made


def _tagged(table: TableHandle, operation: CreateTag) -> ResultRows:
    snapshot = operation.run(table)
    watermark = "null" if snapshot.watermark is None else str(snapshot.watermark)
    return [(operation.name, snapshot.id, snapshot.time_millis, watermark)]


def _renamed(table: TableHandle, operation: RenameTag) -> ResultRows:
    operation.run(table)
    return [(f"Rename [{operation.name}] to [{operation.new_name}] successfully.",)]


_TAGGED: Final = "tagName STRING, snapshot BIGINT, commit_time BIGINT, watermark STRING"

PROCEDURES: Final = (
    Procedure("create_tag", CreateTag, "table, tag, snapshot_id, time_retained"),
    Procedure(
        "create_tag_from_timestamp", CreateTag, "table, tag, timestamp, time_retained", _TAGGED, _tagged,
        needed="timestamp", note="tag the first snapshot committed at or after a time in ms"
    ),
    Procedure(
        "create_tag_from_watermark", CreateTag, "table, tag, watermark, time_retained", _TAGGED, _tagged,
        needed="watermark", note="tag the first snapshot whose watermark has reached an event time in ms"
    ),
    Procedure("replace_tag", ReplaceTag, "table, tag, snapshot_id, time_retained"),
    Procedure("rename_tag", RenameTag, "table, tagName, targetTagName", run=_renamed),
    Procedure("delete_tag", DeleteTag, "table, tag", each="tag", note="`tag` may be several names"),
    Procedure(
        "expire_tags", ExpireTags, "table, older_than", "expired_tags STRING",
        lambda table, operation: [(name,) for name in operation.run(table)],
        note="with `older_than`, also all tags created before that"
    ),
    Procedure("trigger_tag_automatic_creation", CreateDueTags, "table"),
)  # fmt: skip
