"""Membership of a source in its group: reports the source's progress, and reads that of the others.

Each member has a file in ``.penstock/alignment/<group>`` of the warehouse, and rewrites only that one, so there are no
conflicts. A member without a file has left.
"""

from __future__ import annotations

import re
import threading
import time
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final

from penstock.errors import FormatError, NotFoundError, OptionWarning, StorageError, warn
from penstock.format.layout import DATABASE_SUFFIX
from penstock.format.text.json import decode_json, encode_json
from penstock.io.resolve import resolve
from penstock.printable import open_log
from penstock.table.lease import LeaseKeeper
from penstock.table.process import decode_process, encode_process, is_surely_dead, this_process
from penstock.table.read.travel import watermark_of
from penstock.table.stream.align.progress import AlignmentRule, Member, MemberState, allowance_of
from penstock.table.stream.event_time import usable_watermark

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.io.file_io import FileIO, FileStatus
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore
    from penstock.table.stream.align.progress import Allowance

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
        """Return the files of the group that the options of a table's stream name."""
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


_NO_TIME: Final = "it declares no watermark that its files give, and its snapshots have none, so"
_CURE: Final = "create it with watermark=(<column>, <delay>), or write it with a stream that has a watermark"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """The last known heartbeat of another member.

    Attributes:
        beat: its count.
        since: when it was written, by this process's clock.
    """

    beat: int
    since: float


class Membership:
    """Makes a source a member of a group from ``join`` or the first ``look`` until ``leave``; it may join again.

    While it is a member, a thread renews its file, also while the source is not called. Another member is alive if its
    file changed recently by this process's clock. When a file is read for the first time, its age is the difference
    between its modification time and that of the own file; both are by the storage's clock. So the clocks of machines
    need not agree. Not for several threads.

    Args:
        table: for messages.
        clock: seconds that only grow.
        keeps: start the thread.
    """

    def __init__(
        self,
        files: GroupFiles,
        rule: AlignmentRule,
        table: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        keeps: bool = True,
    ) -> None:
        self.rule = rule
        self._files = files
        self._clock = clock
        self._keeps = keeps
        self._lock = threading.Lock()
        self._member = Member(id=uuid.uuid4().hex, table=table, process=this_process(), dead_ms=rule.dead_ms)
        self._is_in = self._has_left = False
        self._keeper: LeaseKeeper | None = None
        self._quiet_since: float | None = None
        self._joined = 0.0
        self._seen: dict[str, _Seen] = {}
        self._last_allowance: tuple[float, Allowance] | None = None
        self._has_warned = False

    def __repr__(self) -> str:
        return f"Membership({self.rule.group!r}, {self._member.table!r})"

    @property
    def watermark(self) -> int | None:
        """The source's watermark that the group knows, ms of event time; None while it is unknown."""
        return self._member.watermark

    @property
    def ttl_ms(self) -> int:
        """How long it counts as alive after each heartbeat."""
        return self.rule.dead_ms

    def join(self) -> None:
        """Join the group; does nothing for a member.

        Raises:
            StorageError: the file could not be written, so the others would not wait for this source.
        """
        if self._is_in:
            return
        self._joined, self._quiet_since = self._clock(), None
        with self._lock:
            self._write()
        self._is_in, self._has_left = True, False
        if self._keeps:
            self._keeper = LeaseKeeper(self)

    def look(self, *, is_fresh: bool = False) -> Allowance:
        """Return how far this source may go, by a state of the group that is at most one update interval old.

        It joins the group first, unless it has left.

        Args:
            is_fresh: read the current state.
        """
        if not self._has_left:
            self.join()
        now = self._clock()
        if (
            is_fresh
            or self._last_allowance is None
            or (now - self._last_allowance[0]) * 1000 >= self.rule.update_interval_ms
        ):
            self._last_allowance = (now, allowance_of(self._load_alive(now), self.rule))
        return self._last_allowance[1]

    def report(self, watermark: int | None, *, has_rows: bool, is_held: bool) -> None:
        """Report the source's progress after a plan; joins the group if it is not a member.

        Args:
            watermark: ms of event time; None, or a time before the last report, keeps the last one.
            has_rows: rows were planned.
            is_held: there are more rows, which others hold back.
        """
        if watermark is None and has_rows and self.watermark is None:
            self._warn()
        self.join()
        with self._lock:
            known = [each for each in (self.watermark, watermark) if each is not None]
            moves = self._member.moves + has_rows
            before = self._member
            self._member = replace(before, watermark=max(known, default=None), moves=moves)
            if has_rows or is_held:
                self._quiet_since = None
            elif self._quiet_since is None:
                self._quiet_since = self._clock()
            if replace(self._member, state=self._state()) != before:
                with suppress(StorageError):  # the keeper writes it again
                    self._write()

    def leave(self) -> None:
        """Leave the group, so that this source holds back no other; does nothing for a source that is not a member."""
        self._has_left = True
        if not self._is_in:
            return
        self._is_in, self._last_allowance = False, None
        with suppress(StorageError):  # without heartbeats it soon counts as dead
            if self._keeper is None:
                self.release()
            else:
                self._keeper.close()
        self._keeper = None

    def renew(self) -> None:
        """Write a heartbeat. Raises ``StorageError``."""
        with self._lock:
            self._write()

    def release(self) -> None:
        """Delete the member's file. Raises ``StorageError``."""
        with self._lock:
            self._files.delete(self._member.id)

    def _write(self) -> None:
        self._member = replace(self._member, state=self._state(), beat=self._member.beat + 1)
        self._files.write(self._member)

    def _state(self) -> MemberState:
        # A source without a known watermark becomes idle after the same time as one without rows.
        since = self._joined if self._member.watermark is None else self._quiet_since
        is_idle = since is not None and (self._clock() - since) * 1000 >= self.rule.idle_ms
        return MemberState.IDLE if is_idle else MemberState.LIVE

    def _load_alive(self, now: float) -> list[Member]:
        signs = self._files.load()
        own_millis = next((sign.modified_millis for sign in signs if sign.member.id == self._member.id), 0)
        others = [sign for sign in signs if sign.member.id != self._member.id]
        self._seen = {sign.member.id: self._see(sign, own_millis, now) for sign in others}
        alive = []
        for member in (sign.member for sign in others):
            silent_ms = (now - self._seen[member.id].since) * 1000
            if silent_ms <= member.dead_ms and not is_surely_dead(member.process):
                alive.append(member)
                continue
            with suppress(StorageError):  # another member will delete it
                self._files.delete(member.id)
        return alive

    def _see(self, sign: Sign, own_millis: int, now: float) -> _Seen:
        seen = self._seen.get(sign.member.id)
        if seen is not None and seen.beat == sign.member.beat:
            return seen
        is_stamped = seen is None and own_millis > 0 and sign.modified_millis > 0
        age_ms = max(0, own_millis - sign.modified_millis) if is_stamped else 0
        return _Seen(beat=sign.member.beat, since=now - age_ms / 1000)

    def _warn(self) -> None:
        if not self._has_warned:
            self._has_warned = True
            _LOG.warning(
                "table %s: %s its stream neither waits for others of group '%s' nor is it waited for: %s",
                self._member.table,
                _NO_TIME,
                self.rule.group,
                _CURE,
            )


def open_membership(ref: TableRef, *, clock: Callable[[], float] = time.monotonic) -> Membership | None:
    """Return the membership of a stream in the group that its options name; None where they name no group."""
    rule = AlignmentRule.of(ref)
    return None if rule is None else Membership(GroupFiles.of(ref, rule), rule, ref.name, clock=clock)


def check_alignment(ref: TableRef, store: MetadataStore) -> None:
    """Check that a stream with these options can join its group; a stream without a group passes.

    Warns with ``OptionWarning`` of a table without a watermark. Such a table is not refused: its rows are correct
    without alignment, and a commit by an engine that stores no watermark must not prevent the restart of a query.


    """
    latest = store.load_latest_snapshot() if open_membership(ref) is not None else None
    # An empty table may later get snapshots with a watermark.
    if latest is not None and watermark_of(latest) is None and usable_watermark(ref) is None:
        warn(
            f"table {ref.name}: {_NO_TIME} 'scan.watermark.alignment.group' has no effect on it: {_CURE}",
            OptionWarning,
        )
