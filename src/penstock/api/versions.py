"""Tags, which name snapshots, rollback to older ones, and branches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.catalog.checks.features import check_writable
from penstock.clocks import to_millis
from penstock.errors import InvalidOptionError
from penstock.options import TagCreation, TagOptions
from penstock.table.actions.auto_tags import TagMaker
from penstock.table.actions.changes import open_committer
from penstock.table.actions.restore import restore_snapshot
from penstock.table.branches import create_branch, delete_branch, fast_forward, rename_branch
from penstock.table.expire.rollback import RollbackPlan, apply_rollback, plan_rollback
from penstock.table.expire.tags import delete_tag, expire_tags, replace_tag
from penstock.table.tags.first import first_since, first_with_watermark
from penstock.table.tags.store import create_tag, rename_tag

if TYPE_CHECKING:
    from datetime import datetime

    from penstock.api.handle import TableHandle
    from penstock.format.snapshot import Snapshot


class TableVersions:
    """Tags, rollback to older snapshots, and branches: ``table.versions``."""

    def __init__(self, table: TableHandle) -> None:
        self._table = table

    def create_tag(
        self,
        name: str,
        *,
        snapshot_id: int | None = None,
        timestamp: datetime | int | None = None,
        watermark: datetime | int | None = None,
        time_retained: str | None = None,
    ) -> Snapshot:
        """Give a snapshot a name that keeps it from expiring; without a position it is the latest.

        Args:
            snapshot_id: also of an expired snapshot that another tag keeps.
            timestamp: the first snapshot that was committed then or later, in ms since 1970-01-01 UTC or as a datetime
                (local without a zone).
            watermark: the first snapshot whose watermark has reached it; ms of event time, or a datetime.
            time_retained: such as ``7 d``; None for ``tag.default-time-retained`` of the table, or for ever.

        Returns:
            The snapshot.

        Raises:
            AlreadyExistsError: the table has a tag of that name.
            NotFoundError: there is no such snapshot.
            InvalidOptionError: more than one position, or a name that cannot be one.
        """
        if [snapshot_id, timestamp, watermark].count(None) < 2:
            raise InvalidOptionError(
                f"table {self._table.name}: a tag is made of a snapshot id, or of a timestamp, or of a watermark"
            )
        store = self._table.checked_store
        if timestamp is not None:
            snapshot_id = first_since(store, to_millis(timestamp)).id
        elif watermark is not None:
            snapshot_id = first_with_watermark(store, to_millis(watermark)).id
        options = self._table.ref.parsed(TagOptions)
        tag = create_tag(store, name, snapshot_id=snapshot_id, time_retained=time_retained, options=options)
        return tag.snapshot

    def replace_tag(self, name: str, *, snapshot_id: int | None = None, time_retained: str | None = None) -> Snapshot:
        """Give the name of a tag to another snapshot; what only the tag kept of an expired snapshot goes.

        Args:
            snapshot_id: None for the latest.
            time_retained: as for ``create_tag``.

        Raises:
            NotFoundError: there is no such tag or snapshot.
        """
        return replace_tag(
            self._table.ref, self._table.checked_store, name, snapshot_id=snapshot_id, time_retained=time_retained
        ).snapshot

    def rename_tag(self, name: str, new_name: str) -> None:
        """Give a tag another name.

        Raises:
            NotFoundError: there is no such tag.
            AlreadyExistsError: the table has a tag of the new name.
        """
        rename_tag(self._table.checked_store, name, new_name, self._table.ref.parsed(TagOptions))

    def delete_tag(self, name: str) -> None:
        """Delete a tag; what only it kept of an expired snapshot goes too. Raises ``NotFoundError``."""
        delete_tag(self._table.ref, self._table.checked_store, name)

    def expire_tags(self, *, older_than: datetime | int | None = None, dry_run: bool = False) -> tuple[str, ...]:
        """Delete tags that have outlived the ``time_retained`` they were made with; commits do this by themselves.

        Args:
            older_than: also all tags that were made before, in ms since 1970-01-01 UTC or as a datetime (local without
                a zone).
            dry_run: only find them.

        Returns:
            Their names.
        """
        check_writable(self._table.ref)
        millis = None if older_than is None else to_millis(older_than)
        return expire_tags(self._table.ref, self._table.checked_store, older_than_millis=millis, dry_run=dry_run)

    def create_due_tags(self) -> tuple[str, ...]:
        """Make the tags that ``tag.automatic-creation`` asks for and no commit has made yet, and expire old ones.

        Returns:
            Names of the new tags; empty for a table whose options ask for none, and for ``batch``, whose tags are made
            by batch commits alone.
        """
        check_writable(self._table.ref)
        options, store = self._table.ref.parsed(TagOptions), self._table.checked_store
        latest, made = store.load_latest_snapshot(), tuple[str, ...]()
        if latest is not None and options.automatic_creation in {TagCreation.PROCESS_TIME, TagCreation.WATERMARK}:
            made = TagMaker(self._table.ref, store, options).run(latest)
        if options.time_expire_enabled:
            expire_tags(self._table.ref, store)
        return made

    def rollback_to(
        self,
        *,
        snapshot_id: int | None = None,
        tag: str | None = None,
        timestamp: datetime | int | None = None,
        watermark: int | datetime | None = None,
        dry_run: bool = False,
    ) -> RollbackPlan:
        """Make an older snapshot the latest; what came after it is gone.

        Writers may commit meanwhile: they wait for its end, at most 5 s, and add to the older snapshot. Consumers that
        have read what is gone continue after the older snapshot.

        Args:
            timestamp: the newest snapshot committed then or before, in ms since 1970-01-01 UTC or as a datetime (local
                without a zone).
            watermark: the newest snapshot whose watermark is not beyond it; ms of event time, or a datetime, local
                without a zone.
            dry_run: only return what would go.

        Raises:
            NotFoundError: there is no such snapshot or tag.
            InvalidOptionError: not exactly one target.
            CommitConflictError: another rollback was made meanwhile, or writers left no moment for it.
        """
        store = self._table.checked_store
        plan = plan_rollback(
            store,
            snapshot_id=snapshot_id,
            tag=tag,
            timestamp_millis=None if timestamp is None else to_millis(timestamp),
            watermark=None if watermark is None else to_millis(watermark),
        )
        if not dry_run:
            apply_rollback(store, plan)
        return plan

    def rollback_to_as_latest(self, *, snapshot_id: int | None = None, tag: str | None = None) -> Snapshot | None:
        """Commit the state of an older snapshot as a new snapshot; what came after it stays readable until it expires.

        The older snapshot keeps a tag, ``rollback-to-as-latest-<id>-<uuid>``, unless one was given: its files are in
        use again. Streams that read this table do not deliver the rows again.

        Returns:
            The new snapshot; None where the latest has the same rows already.

        Raises:
            NotFoundError: there is no such snapshot or tag.
            InvalidOptionError: not exactly one of them.
            CommitConflictError: others committed each time that this was tried.
        """
        check_writable(self._table.ref)
        committer = open_committer(self._table.ref, self._table.checked_store, adds_rows=False)
        return restore_snapshot(committer, snapshot_id=snapshot_id, tag=tag)

    # Branches

    def create_branch(self, name: str, *, tag: str | None = None, snapshot_id: int | None = None) -> None:
        """Make a branch, which has snapshots and schemas of its own and shares the files that it begins with.

        It is read and written as ``Table.with_options({"branch": name})``, or by the name ``db.table$branch_name``.

        Args:
            tag: what it begins with; without a tag or a snapshot it has no rows, as in the reference.
            snapshot_id: likewise. Other engines keep the files of a tag only from expiring, so prefer a tag with them.

        Raises:
            AlreadyExistsError: there is such a branch.
            NotFoundError: there is no such tag or snapshot.
            InvalidOptionError: a name that cannot be one.
        """
        check_writable(self._table.ref)
        create_branch(self._table.checked_ref, name, tag=tag, snapshot_id=snapshot_id)

    def rename_branch(self, name: str, new_name: str) -> None:
        """Rename a branch that nobody writes to. Raises ``NotFoundError``, ``AlreadyExistsError``."""
        check_writable(self._table.ref)
        rename_branch(self._table.checked_ref, name, new_name)

    def delete_branch(self, name: str) -> None:
        """Delete a branch; the files that only it has are removed with orphan files. Raises ``NotFoundError``."""
        check_writable(self._table.ref)
        delete_branch(self._table.checked_ref, name)

    def fast_forward(self, name: str) -> int:
        """Give the main branch the snapshots, schemas and tags that a branch has got since it was made.

        Returns:
            How many snapshots.

        Raises:
            NotFoundError: there is no such branch.
            CommitConflictError: the main branch has commits of its own since then; Paimon would drop these.
        """
        check_writable(self._table.ref)
        return fast_forward(self._table.checked_ref, name)
