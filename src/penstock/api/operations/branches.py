"""Operations on branches."""

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Final

from penstock.api.arguments import NAMES
from penstock.api.handle import TableHandle
from penstock.api.operations.declaration import Named, Operation
from penstock.api.operations.procedure import Procedure
from penstock.catalog.checks.features import check_writable
from penstock.errors import AlreadyExistsError
from penstock.table.branches import create_branch, delete_branch, fast_forward, rename_branch


@dataclass(frozen=True, slots=True)
class CreateBranch(Operation[TableHandle, None]):
    """Create a branch with its own snapshots and schemas, which shares its initial files with the table.

    Without a tag or a snapshot it has no rows, as in Paimon. Read and write it with
    ``Table.with_options({"branch": name})``, or as ``db.table$branch_name``.

    Args:
        tag: begin with the snapshot with this tag.
        snapshot_id: begin with this snapshot. If other engines expire snapshots, prefer a tag: they retain only the
            files of tags.
        if_not_exists: no error if the branch exists, whatever its rows are.

    Raises:
        AlreadyExistsError: the branch exists, or another process may be creating it.
        NotFoundError: there is no such tag or snapshot, or its files are being deleted.
        InvalidOptionError: the name is invalid.
    """

    name: Annotated[str, Named("branch")]
    _: KW_ONLY
    tag: str | None = None
    snapshot_id: int | None = None
    if_not_exists: Annotated[bool, Named("ignoreIfExists")] = False

    def run(self, table: TableHandle, /) -> None:
        check_writable(table.ref)
        try:
            create_branch(table.checked_ref, self.name, tag=self.tag, snapshot_id=self.snapshot_id)
        except AlreadyExistsError:
            if not self.if_not_exists:
                raise


@dataclass(frozen=True, slots=True)
class RenameBranch(Operation[TableHandle, None]):
    """Rename a branch; nothing may write to it meanwhile.

    Args:
        new_name: its new name.

    Raises:
        NotFoundError: there is no such branch.
        AlreadyExistsError: the new name is taken.
        InvalidOptionError: the table's ``scan.fallback-branch`` names it.
    """

    name: Annotated[str, Named("from_branch")]
    new_name: Annotated[str, Named("to_branch")]

    def run(self, table: TableHandle, /) -> None:
        check_writable(table.ref)
        rename_branch(table.checked_ref, self.name, self.new_name)


@dataclass(frozen=True, slots=True)
class DeleteBranch(Operation[TableHandle, None]):
    """Delete a branch, or the rest of an interrupted creation; files that only it uses are removed as orphan files.

    Args:
        dry_run: only check that it may be deleted.

    Raises:
        NotFoundError: there is no such branch.
        InvalidOptionError: the table's ``scan.fallback-branch`` names it.
    """

    name: Annotated[str, Named("branch", sql=NAMES)]
    _: KW_ONLY
    dry_run: bool = False

    def run(self, table: TableHandle, /) -> None:
        check_writable(table.ref)
        delete_branch(table.checked_ref, self.name, dry_run=self.dry_run)


@dataclass(frozen=True, slots=True)
class FastForward(Operation[TableHandle, int]):
    """Move the main branch to the snapshots, schemas and tags of a branch.

    Returns:
        The number of snapshots added to the main branch.

    Raises:
        NotFoundError: there is no such branch.
        CommitConflictError: the main branch has received commits since the branch was created; Paimon would drop them.
        UnsupportedFeatureError: on an object store, another engine created the latest snapshot of the main branch.
        StorageError: the storage failed; repeat the call, which adds the rest.
    """

    name: Annotated[str, Named("branch")]

    def run(self, table: TableHandle, /) -> int:
        check_writable(table.ref)
        return fast_forward(table.checked_ref, self.name)


PROCEDURES: Final = (
    Procedure(
        "create_branch", CreateBranch, "table, branch, tag, ignoreIfExists", note="it has no rows if no tag is given"
    ),
    Procedure("rename_branch", RenameBranch, "table, from_branch, to_branch"),
    Procedure(
        "delete_branch", DeleteBranch, "table, branch", each="branch", note="`branch` may be several names"
    ),
    Procedure("fast_forward", FastForward, "table, branch"),
)  # fmt: skip
