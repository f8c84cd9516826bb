"""Check the stored option ``scan.fallback-branch``.

Source:
    Paimon ``core:schema/SchemaValidation.java`` (``validateFallbackBranch``), which also runs when a table is created.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import InvalidOptionError
from penstock.table.read.branch import check_branch_name, has_branch
from penstock.table.read.fallback import KEY, fallback_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.io.file_io import FileIO


def check_no_fallback_branch(options: Mapping[str, str], table: str) -> None:
    """Refuse the option for a new table, which has no branches. Raises ``InvalidOptionError``."""
    name = fallback_of(options)
    if name is not None:
        raise _no_branch(name, table)


def check_fallback_branch(options: Mapping[str, str], *, file_io: FileIO, location: str, table: str) -> None:
    """Check that the branch in the option exists.

    Raises:
        InvalidOptionError: there is no such branch.
    """
    name = fallback_of(options)
    if name is None:
        return
    check_branch_name(table, name)
    if not has_branch(file_io, location, name):
        raise _no_branch(name, table)


def _no_branch(name: str, table: str) -> InvalidOptionError:
    return InvalidOptionError(
        f"table {table}: cannot set '{KEY}' = '{name}', because there is no branch '{name}': create the branch first, "
        "then set the option with ALTER TABLE"
    )
