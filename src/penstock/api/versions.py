"""Changes of tags and branches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.api.arguments import FLAG, INTEGER, NONE, TEXT, TIME, accepts
from penstock.api.handle import TableMethods
from penstock.catalog.checks.features import check_taggable, check_writable
from penstock.clocks import to_millis
from penstock.options import TagCreation, TagOptions
from penstock.table.actions.auto_tags import TagMaker
from penstock.table.actions.changes import open_committer
from penstock.table.actions.restore import restore_snapshot
from penstock.table.branches import create_branch, delete_branch, fast_forward, rename_branch
from penstock.table.expire.tags import delete_tag, expire_tags, replace_tag
from penstock.table.tags import rename_tag

if TYPE_CHECKING:
    from datetime import datetime

    from penstock.format.snapshot import Snapshot


class TableVersions(TableMethods):
    """Tags, branches, and a rollback that retains later snapshots: ``table.versions``."""

    @accepts(name=TEXT, snapshot_id=INTEGER | NONE, time_retained=TEXT | NONE)
    def replace_tag(self, name: str, *, snapshot_id: int | None = None, time_retained: str | None = None) -> Snapshot:
        """Move a tag to another snapshot; files that only the tag retained are deleted.

        Args:
            snapshot_id: None for the latest.
            time_retained: as for ``create_tag``.

        Raises:
            NotFoundError: there is no such tag or snapshot.
        """
        check_taggable(self._handle.ref)
        return replace_tag(
            self._handle.ref, self._handle.checked_store, name, snapshot_id=snapshot_id, time_retained=time_retained
        ).snapshot

    @accepts(name=TEXT, new_name=TEXT)
    def rename_tag(self, name: str, new_name: str) -> None:
        """Rename a tag.

        Raises:
            NotFoundError: there is no such tag.
            AlreadyExistsError: the table has a tag of the new name.
        """
        check_taggable(self._handle.ref)
        rename_tag(self._handle.checked_store, name, new_name, self._handle.ref.parsed(TagOptions))

    @accepts(name=TEXT)
    def delete_tag(self, name: str) -> None:
        """Delete a tag, and the files that only it retained. Raises ``NotFoundError``."""
        check_taggable(self._handle.ref)
        delete_tag(self._handle.ref, self._handle.checked_store, name)

    @accepts(older_than=TIME | NONE, dry_run=FLAG)
    def expire_tags(self, *, older_than: datetime | int | None = None, dry_run: bool = False) -> tuple[str, ...]:
        """Delete tags whose ``time_retained`` has passed; commits do this automatically.

        Args:
            older_than: also delete all tags created before this time, in ms since 1970-01-01 UTC or as a datetime
                (local without a zone).
            dry_run: only return them.

        Returns:
            Their names.
        """
        check_writable(self._handle.ref)
        millis = None if older_than is None else to_millis(older_than)
        return expire_tags(self._handle.ref, self._handle.checked_store, older_than_millis=millis, dry_run=dry_run)

    def create_due_tags(self) -> tuple[str, ...]:
        """Create the tags that are due by ``tag.automatic-creation`` and not created by a commit; expire old ones.

        Returns:
            Names of the new tags; empty without automatic tags, and for ``batch``, whose tags only batch commits
            create.
        """
        check_writable(self._handle.ref)
        options, store = self._handle.ref.parsed(TagOptions), self._handle.checked_store
        latest, made = store.load_latest_snapshot(), tuple[str, ...]()
        if latest is not None and options.automatic_creation in {TagCreation.PROCESS_TIME, TagCreation.WATERMARK}:
            made = TagMaker(self._handle.ref, store, options).run(latest)
        if options.time_expire_enabled:
            expire_tags(self._handle.ref, store)
        return made

    @accepts(snapshot_id=INTEGER | NONE, tag=TEXT | NONE)
    def rollback_to_as_latest(self, *, snapshot_id: int | None = None, tag: str | None = None) -> Snapshot | None:
        """Commit the state of an older snapshot as a new snapshot; later snapshots stay readable until they expire.

        Because its files are in use again, the older snapshot gets a tag, ``rollback-to-as-latest-<id>-<uuid>``, unless
        one was given. Streams that read this table do not deliver the rows again.

        Returns:
            The new snapshot; None if the latest snapshot already has the same rows.

        Raises:
            NotFoundError: there is no such snapshot or tag.
            InvalidOptionError: not exactly one target.
            CommitConflictError: others committed at every attempt.
        """
        check_writable(self._handle.ref)
        committer = open_committer(self._handle.ref, self._handle.checked_store, adds_rows=False)
        return restore_snapshot(committer, snapshot_id=snapshot_id, tag=tag)

    # Branches

    @accepts(name=TEXT, tag=TEXT | NONE, snapshot_id=INTEGER | NONE)
    def create_branch(self, name: str, *, tag: str | None = None, snapshot_id: int | None = None) -> None:
        """Create a branch with its own snapshots and schemas, which shares its initial files with the table.

        Read and write it with ``Table.with_options({"branch": name})``, or as ``db.table$branch_name``.

        Args:
            tag: the initial state; without a tag or a snapshot the branch has no rows, as in Paimon.
            snapshot_id: the initial state. If other engines expire snapshots, prefer a tag: they retain only the files
                of tags.

        Raises:
            AlreadyExistsError: the branch exists, or another process may be creating it.
            NotFoundError: there is no such tag or snapshot, or its files are being deleted.
            InvalidOptionError: the name is invalid.
        """
        check_writable(self._handle.ref)
        create_branch(self._handle.checked_ref, name, tag=tag, snapshot_id=snapshot_id)

    @accepts(name=TEXT, new_name=TEXT)
    def rename_branch(self, name: str, new_name: str) -> None:
        """Rename a branch; nothing may write to it meanwhile.

        Raises:
            NotFoundError: there is no such branch.
            AlreadyExistsError: the new name is taken.
            InvalidOptionError: the table's ``scan.fallback-branch`` names it.
        """
        check_writable(self._handle.ref)
        rename_branch(self._handle.checked_ref, name, new_name)

    @accepts(name=TEXT)
    def delete_branch(self, name: str) -> None:
        """Delete a branch, or the rest of an interrupted creation; files that only it uses are removed as orphan files.

        Raises:
            NotFoundError: there is no such branch.
            InvalidOptionError: the table's ``scan.fallback-branch`` names it.
        """
        check_writable(self._handle.ref)
        delete_branch(self._handle.checked_ref, name)

    @accepts(name=TEXT)
    def fast_forward(self, name: str) -> int:
        """Move the main branch to the snapshots, schemas and tags of a branch.

        Returns:
            The number of snapshots added to the main branch.

        Raises:
            NotFoundError: there is no such branch.
            CommitConflictError: the main branch has received commits since the branch was created; Paimon would drop
                them.
            UnsupportedFeatureError: on an object store, another engine created the latest snapshot of the main branch.
            StorageError: the storage failed; repeat the call, which adds the rest.
        """
        check_writable(self._handle.ref)
        return fast_forward(self._handle.checked_ref, name)
