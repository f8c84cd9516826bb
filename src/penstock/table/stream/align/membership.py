"""One source in its group: it says where it stands, and looks where the others do."""

from __future__ import annotations

import threading
import time
import uuid
import warnings
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from penstock.errors import OptionWarning, StorageError
from penstock.printable import open_log
from penstock.table.lease.holder import LeaseKeeper
from penstock.table.lease.process import is_surely_dead, this_process
from penstock.table.read.travel import watermark_of
from penstock.table.stream.align.files import GroupFiles
from penstock.table.stream.align.progress import AlignmentRule, Member, MemberState, allowance_of
from penstock.table.stream.event_time import usable_watermark

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore
    from penstock.table.stream.align.files import Sign
    from penstock.table.stream.align.progress import Allowance

_LOG: Final = open_log(__name__)
_NO_TIME: Final = "it declares no watermark that can be told from its files, and its snapshots have none, so"
_CURE: Final = "create it with watermark=(<column>, <delay>), or write it with a stream that has a watermark"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """A sign of life of another member.

    Attributes:
        since: when it was new, by the clock of who has seen it.
    """

    beat: int
    since: float


class Membership:
    """Takes part in a group from the first look on until it leaves; it may come back with more rows.

    While it takes part a thread writes its file again and again, also while nobody asks anything. Whether another
    member is alive is judged by one's own clock: by how long its file has not changed; at first sight by the storage's
    clock, which has stamped both files. So the clocks of machines need not agree. Not for several threads.

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
        self._looked: tuple[float, Allowance] | None = None
        self._has_warned = False

    def __repr__(self) -> str:
        return f"Membership({self.rule.group!r}, {self._member.table!r})"

    @property
    def watermark(self) -> int | None:
        """What the group knows of this source, ms of event time; None while it cannot tell."""
        return self._member.watermark

    @property
    def ttl_ms(self) -> int:
        """For how long after each sign of life it counts as alive."""
        return self.rule.dead_ms

    def join(self) -> None:
        """Let the others know; nothing when they do.

        Raises:
            StorageError: they could not be told, and would run away.
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
        """Return how far this source may go, as the group stood an update interval ago at most.

        It joins the group first, unless it has left.

        Args:
            is_fresh: as it stands now.

        Raises:
            StorageError: the storage failed.
        """
        if not self._has_left:
            self.join()
        now = self._clock()
        if is_fresh or self._looked is None or (now - self._looked[0]) * 1000 >= self.rule.update_interval_ms:
            self._looked = (now, allowance_of(self._load_alive(now), self.rule))
        return self._looked[1]

    def stand(self, watermark: int | None, *, has_rows: bool, is_held: bool) -> None:
        """Say where the source stands behind what was planned; it joins the group if it is not in it.

        Args:
            watermark: ms of event time; None keeps what was said before, and so does an earlier one.
            has_rows: some were planned.
            is_held: there are more, and others hold them back.
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
                with suppress(StorageError):  # the keeper says it again
                    self._write()

    def leave(self) -> None:
        """Hold nobody back any more; nothing when it is not in the group."""
        self._has_left = True
        if not self._is_in:
            return
        self._is_in, self._looked = False, None
        with suppress(StorageError):  # then it falls silent
            if self._keeper is None:
                self.release()
            else:
                self._keeper.close()
        self._keeper = None

    def renew(self) -> None:
        """Give a sign of life. Raises ``StorageError``."""
        with self._lock:
            self._write()

    def release(self) -> None:
        """Take the file away. Raises ``StorageError``."""
        with self._lock:
            self._files.delete(self._member.id)

    def _write(self) -> None:
        self._member = replace(self._member, state=self._state(), beat=self._member.beat + 1)
        self._files.write(self._member)

    def _state(self) -> MemberState:
        # Who cannot tell where it stands is waited for as long as one that has nothing to read.
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
            with suppress(StorageError):  # somebody else will
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
    """Return what lets a stream take part in the group that its options name; None where they name none.

    Raises:
        InvalidOptionError: they contradict each other.
        UnsupportedFeatureError: the group lies on a storage that is not built in.
    """
    rule = AlignmentRule.of(ref)
    return None if rule is None else Membership(GroupFiles.of(ref, rule), rule, ref.name, clock=clock)


def check_alignment(ref: TableRef, store: MetadataStore, *, stacklevel: int = 2) -> None:
    """Return when a stream with these options can take part in its group, or is to be in none.

    Warns with ``OptionWarning`` of a table that shows no time. It is not refused: rows are right without alignment, and
    no commit by an engine that stores no watermark shall keep a query from its restart.

    Args:
        stacklevel: of ``warnings.warn``.

    Raises as ``open_membership``.
    """
    latest = store.load_latest_snapshot() if open_membership(ref) is not None else None
    # An empty table may get snapshots that have one.
    if latest is not None and watermark_of(latest) is None and usable_watermark(ref) is None:
        warnings.warn(
            f"table {ref.name}: {_NO_TIME} 'scan.watermark.alignment.group' has no effect on it: {_CURE}",
            OptionWarning,
            stacklevel=stacklevel,
        )
