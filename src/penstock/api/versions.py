"""Changes of tags and branches."""

from __future__ import annotations

from penstock.api.handle import TableMethods
from penstock.api.operations.branches import CreateBranch, DeleteBranch, FastForward, RenameBranch
from penstock.api.operations.declaration import method
from penstock.api.operations.rollback import RollbackToAsLatest
from penstock.api.operations.tags import CreateDueTags, DeleteTag, ExpireTags, RenameTag, ReplaceTag


class TableVersions(TableMethods):
    """Tags, branches, and a rollback that retains later snapshots: ``table.versions``."""

    replace_tag = method(ReplaceTag)
    rename_tag = method(RenameTag)
    delete_tag = method(DeleteTag)
    expire_tags = method(ExpireTags)
    create_due_tags = method(CreateDueTags)
    rollback_to_as_latest = method(RollbackToAsLatest)
    create_branch = method(CreateBranch)
    rename_branch = method(RenameBranch)
    delete_branch = method(DeleteBranch)
    fast_forward = method(FastForward)
