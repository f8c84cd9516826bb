"""A branch as storage: the table with the metadata of one of its branches.

A branch exists while its first schema file does, which is created last and deleted first. Without it, the directory of
a branch holds what an interrupted creation or deletion has left.

Source:
    Paimon ``core:utils/FileSystemBranchManager.java``; docs/spec/format.md section 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.errors import InvalidOptionError, NotFoundError
from penstock.format.layout import BRANCH_MARK, MAIN_BRANCH, TableLayout, branch_name_of, split_branch
from penstock.format.text.names import check_length
from penstock.io.branch import BranchFileIO
from penstock.table.assumptions import load_identity
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from penstock.io.file_io import FileIO
    from penstock.table.ref import TableRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A branch other than the main one; ``created_millis`` is 0 if the storage has no file times."""

    name: str
    created_millis: int


def at_branch(ref: TableRef, branch: str) -> TableRef:
    """Return the table of a branch, with the latest schema of the branch."""
    main = ref.file_io.main
    name = split_branch(ref.name)[0]
    if branch == MAIN_BRANCH:
        plain = replace(ref, name=name, file_io=main)
        return replace(plain, schema=MetadataStore(plain).load_latest_schema())
    check_branch_name(name, branch)
    storage = BranchFileIO(inner=main, branch=branch, location=ref.location, root=ref.layout.branch(branch).location)
    found = replace(ref, name=f"{name}{BRANCH_MARK}{branch}", file_io=storage)
    try:
        identity = load_identity(found)
    except NotFoundError:
        raise no_branch(ref, branch) from None
    found = replace(found, file_io=replace(storage, identity=identity))
    return replace(found, schema=MetadataStore(found).load_latest_schema())


def has_branch(file_io: FileIO, location: str, branch: str) -> bool:
    """Whether there is a branch of that name, other than the main one."""
    return file_io.main.has_file(TableLayout(location).branch(branch).schema_path(0))


def no_branch(ref: TableRef, branch: str) -> NotFoundError:
    """Return the error for a branch that does not exist, which lists those that do."""
    known = ", ".join(each.name for each in load_branches(ref)) or "none but main"
    return NotFoundError(f"table {split_branch(ref.name)[0]} has no branch '{branch}'; there are {known}")


def load_branches(ref: TableRef) -> tuple[Branch, ...]:
    """Return all branches except the main one, by name; not what an interrupted creation or deletion has left."""
    found = [
        Branch(name=name, created_millis=status.modified_millis)
        for status in ref.file_io.main.list(ref.layout.branches_directory)
        if status.is_dir
        and (name := branch_name_of(status.name)) is not None
        and has_branch(ref.file_io, ref.location, name)
    ]
    return tuple(sorted(found, key=lambda branch: branch.name))


def check_branch_name(table: str, branch: str) -> None:
    """Raise InvalidOptionError for an invalid branch name."""
    if (
        branch == MAIN_BRANCH
        or not branch.strip()
        or branch.isdecimal()
        or set(branch) & set("/\\$\0")
        or branch[0] == "."
    ):
        raise InvalidOptionError(
            f"table {table}: a branch cannot be called '{branch}': not main, no number, and without '/', '$' or a dot "
            "at the beginning"
        )
    check_length(branch, f"table {table}: a branch")
