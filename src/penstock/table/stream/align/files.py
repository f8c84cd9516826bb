"""The files of an alignment group: one for each member, in ``.penstock/alignment/<group>`` of the warehouse.

Each member rewrites only its own file, so there are no conflicts. A member without a file has left.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from penstock.errors import FormatError, NotFoundError, StorageError
from penstock.format.layout import DATABASE_SUFFIX
from penstock.format.text.json import decode_json, encode_json
from penstock.io.resolve import resolve
from penstock.printable import open_log
from penstock.table.process import decode_process, encode_process
from penstock.table.stream.align.progress import Member, MemberState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.io.file_io import FileIO, FileStatus
    from penstock.table.ref import TableRef
    from penstock.table.stream.align.progress import AlignmentRule

_LOG: Final = open_log(__name__)
_PREFIX: Final = "member-"
_VERSION: Final = 1
_TEMPORARY: Final = re.compile(r"^\.member-.+\.tmp$")
# A file is renamed as soon as it is written.
_REMAINS_MILLIS: Final = 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """The content of a member's file.

    Attributes:
        modified_millis: modification time by the storage's clock; 0 where there is none.
    """

    member: Member
    modified_millis: int


class GroupFiles:
    """The files of one group.

    Args:
        directory: of the group.
    """

    def __init__(self, file_io: FileIO, directory: str) -> None:
        self._file_io = file_io
        self._directory = directory
        self._unreadable: set[str] = set()

    @classmethod
    def of(cls, ref: TableRef, rule: AlignmentRule) -> GroupFiles:
        """Return the files of the group that the options of a table's stream name.

        Raises:
            InvalidOptionError: an invalid path.
            UnsupportedFeatureError: a path on a storage that is not built in.
        """
        file_io, root = (ref.file_io.unconfined(), _root_of(ref.location)) if rule.path is None else resolve(rule.path)
        return cls(file_io.relaxed(), f"{root}/.penstock/alignment/{rule.group}")

    def load(self) -> tuple[Sign, ...]:
        """Load all members, sorted by file name; an unreadable file is skipped with a warning."""
        found = []
        statuses = self._file_io.list(self._directory)
        for status in statuses:
            if status.is_dir or not status.name.startswith(_PREFIX):
                continue
            try:
                member = _decode(self._file_io.read(status.path), status.path)
            except NotFoundError:
                continue  # the member has left meanwhile
            except FormatError as error:
                self._warn(status.path, error)
                continue
            found.append(Sign(member=member, modified_millis=status.modified_millis))
        self._delete_remains(statuses)
        return tuple(found)

    def write(self, member: Member) -> None:
        """Create or replace the file of a member; only that member calls this."""
        self._file_io.write(self._path(member.id), encode_json({"version": _VERSION, **_encode(member)}))

    def delete(self, member_id: str) -> None:
        """Delete the file of a member that leaves or is dead; a member that is still alive writes a new one."""
        self._file_io.delete(self._path(member_id))

    def _delete_remains(self, statuses: Sequence[FileStatus]) -> None:
        """Delete temporary files of members that were killed during a write; orphan removal does not cover them."""
        now_millis = max((status.modified_millis for status in statuses), default=0)
        for status in statuses:
            if _TEMPORARY.match(status.name) and now_millis - status.modified_millis >= _REMAINS_MILLIS:
                with suppress(StorageError):
                    self._file_io.delete(status.path)

    def _path(self, member_id: str) -> str:
        return f"{self._directory}/{_PREFIX}{member_id}"

    def _warn(self, path: str, error: FormatError) -> None:
        if path not in self._unreadable:
            self._unreadable.add(path)
            _LOG.warning("no stream waits for who wrote %s: %s", path, error)


def _root_of(location: str) -> str:
    """Return the warehouse of a table; for a table outside of a warehouse, its parent directory.

    The group's directory does not appear in listings of databases or tables: databases end in ``.db``, and tables have
    schema files.
    """
    database = location.rpartition("/")[0]
    return database.rpartition("/")[0] if database.endswith(DATABASE_SUFFIX) else database


def _encode(member: Member) -> dict[str, object]:
    values = asdict(member)
    del values["process"]
    return {**values, "state": member.state.value, **encode_process(member.process)}


def _decode(data: bytes, path: str) -> Member:
    values = decode_json(data, "alignment file", path)
    if values.integer("version") != _VERSION:
        raise values.error("was written by another version of Penstock")
    state = values.text("state")
    if state not in set(MemberState):
        raise values.error(f"has '{state}' under 'state'")
    return Member(
        id=values.text("id"),
        table=values.text("table"),
        process=decode_process(values),
        state=MemberState(state),
        watermark=values.optional_integer("watermark"),
        moves=values.integer("moves"),
        beat=values.integer("beat"),
        dead_ms=values.integer("dead_ms"),
    )
