"""Tags: names for snapshots, whose files expiration then retains, and the names and periods of automatic tags.

Source:
    Paimon ``core:utils/TagManager.java``, ``core:tag/TagPeriodHandler.java``,
    ``flink:procedure/CreateTagFromTimestampProcedure.java``, ``CreateTagFromWatermarkProcedure.java``;
    docs/spec/format.md section 3.2, docs/spec/commit.md section 7.2.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.clocks import EPOCH, local_now, utc_millis, utc_text
from penstock.errors import AlreadyExistsError, InvalidOptionError, NotFoundError, StorageError, TableStoreError
from penstock.format.layout import TableLayout, tag_name_of
from penstock.format.tag import Tag, decode_tag, encode_tag
from penstock.format.text.names import check_length
from penstock.options import TagFormatter, TagOptions, TagPeriod, format_duration_ms, parse_duration_ms
from penstock.table.commit.expiring import is_announced
from penstock.table.commit.reused_ids import is_there
from penstock.table.read.travel import find_at_or_after, newest_by_time, resolve_snapshot, watermark_of
from penstock.table.success import write_success

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.format.snapshot import Snapshot
    from penstock.io.file_io import Directories, FileIO, FileStatus
    from penstock.table.store import MetadataStore

# A recreated tag has another modification time, unless both are too recent to be distinguished.
_SURE_AFTER_MILLIS: Final = 60_000


class TagReader:
    """Loads the tags of one table; caches those that have not changed for a while.

    Args:
        clock_millis: now, ms since 1970-01-01 UTC.
    """

    def __init__(self, file_io: FileIO, location: str, *, clock_millis: Callable[[], int] | None = None) -> None:
        self._file_io = file_io
        self._location = location
        self._clock_millis = clock_millis or utc_millis
        self._known: dict[FileStatus, Tag] = {}

    def load(self, directories: Directories | None = None) -> dict[str, Tag]:
        """Return tags by name, sorted.

        Args:
            directories: in which the tags are listed; None for the storage.
        """
        known, self._known = self._known, {}
        tags: dict[str, Tag] = {}
        sure_before = self._clock_millis() - _SURE_AFTER_MILLIS
        for status in (directories or self._file_io).list(TableLayout(self._location).tag_directory):
            name = tag_name_of(status.name)
            if name is None or status.is_dir:
                continue
            tag = known.get(status)
            if tag is None:
                try:
                    tag = decode_tag(self._file_io.read(status.path), status.path)
                except NotFoundError:
                    continue  # deleted since it was listed
            tags[name] = tag
            if 0 < status.modified_millis < sure_before:
                self._known[status] = tag
        return tags


def create_tag(
    store: MetadataStore,
    name: str,
    *,
    snapshot_id: int | None = None,
    time_retained: str | None = None,
    options: TagOptions | None = None,
    now: Callable[[], datetime] = local_now,
) -> Tag:
    """Create a tag for a snapshot.

    Args:
        snapshot_id: None for the latest; the snapshot of another tag may have expired.
        time_retained: such as ``7 d``; None for the table's option, or forever if it is not set.
        options: of the table; None for the defaults.
        now: local wall clock as if it were UTC.
    """
    check_tag_name(name, store.name)
    options = options or TagOptions()
    tag = tag_of(store, snapshot_id, time_retained, options, now=now)
    if not put_tag(store, name, tag, options):
        raise AlreadyExistsError(
            f"table {store.name} has a tag '{name}' already; delete it first, or choose another name"
        )
    return tag


def tag_of(
    store: MetadataStore,
    snapshot_id: int | None,
    time_retained: str | None,
    options: TagOptions,
    *,
    now: Callable[[], datetime] = local_now,
) -> Tag:
    """Return a tag of a snapshot, which is not written yet; for the arguments see ``create_tag``."""
    snapshot = store.load_latest_snapshot() if snapshot_id is None else _find_snapshot(store, snapshot_id)
    if snapshot is None:
        raise NotFoundError(f"table {store.name} has no snapshot to tag; append to it first")
    retained_ms = options.default_time_retained_ms if time_retained is None else parse_duration_ms(time_retained)
    return new_tag(snapshot, retained_ms, now=now)


def _find_snapshot(store: MetadataStore, snapshot_id: int) -> Snapshot:
    """Load a snapshot; one that has expired is taken from a tag of it."""
    found = store.find_snapshot(snapshot_id)
    if found is None:
        found = next((each for each in tagged_snapshots(store) if each.id == snapshot_id), None)
    return store.load_snapshot(snapshot_id) if found is None else found


def tagged_snapshots(store: MetadataStore) -> list[Snapshot]:
    """Return the snapshots that have tags, by their ids."""
    found = {tag.snapshot.id: tag.snapshot for tag in TagReader(store.file_io, store.location).load().values()}
    return [found[each] for each in sorted(found)]


def new_tag(snapshot: Snapshot, retained_ms: int | None, *, now: Callable[[], datetime] = local_now) -> Tag:
    """Return a tag of a snapshot.

    Args:
        retained_ms: None for no limit.
        now: local wall clock as if it were UTC.
    """
    if retained_ms is None:
        return Tag(snapshot=snapshot)
    micros = (now() - EPOCH) // timedelta(microseconds=1)
    return Tag(snapshot=snapshot, create_time=micros * 1000, retained_seconds=Decimal(retained_ms) / 1000)


def put_tag(store: MetadataStore, name: str, tag: Tag, options: TagOptions) -> bool:
    """Create a tag, and its success file if the options require one; False if the name is taken."""
    if not _put(store, name, encode_tag(tag)):
        return False
    if not is_retained(store, name, tag.snapshot):
        store.file_io.delete(store.layout.tag_path(name))
        raise NotFoundError(
            f"table {store.name}: snapshot {tag.snapshot.id} is about to expire, its files are being deleted, or was "
            "rolled back: tag a later one, and keep snapshots longer ('snapshot.time-retained') where they are to be "
            "tagged"
        )
    write_tag_success_file(store, name, options)
    return True


def is_retained(store: MetadataStore, name: str, snapshot: Snapshot) -> bool:
    """Whether no expiration may delete the files of a snapshot that has just got a tag of this name.

    A snapshot that was rolled back is not in the history that expirations look at. An expired snapshot keeps its files
    as long as it has another tag, which must still exist after the new tag was created.
    """
    if not is_announced(store, snapshot.id) and is_there(store, snapshot):
        return True
    tags = TagReader(store.file_io, store.location).load()
    return any(other != name and tag.snapshot.id == snapshot.id for other, tag in tags.items())


def rename_tag(store: MetadataStore, name: str, new_name: str, options: TagOptions) -> None:
    """Rename a tag; its snapshot, its age and its retention are unchanged.

    The new name is created before the old one is deleted, so the snapshot always has one of them.
    """
    check_tag_name(new_name, store.name)
    tag = store.load_tag(name)
    if not _put(store, new_name, encode_tag(tag)):
        raise AlreadyExistsError(
            f"table {store.name} has a tag '{new_name}' already; delete it first, or choose another name"
        )
    write_tag_success_file(store, new_name, options)
    store.file_io.delete(store.layout.tag_path(name))
    if options.create_success_file:
        store.file_io.delete(store.layout.tag_success_path(name))


def write_tag_success_file(store: MetadataStore, name: str, options: TagOptions) -> None:
    """Write the success file of a tag, if the options require one."""
    if options.create_success_file:
        write_success(store.file_io, store.layout.tag_success_path(name), utc_millis())


def _put(store: MetadataStore, name: str, data: bytes) -> bool:
    path = store.layout.tag_path(name)
    try:
        return store.file_io.put_if_absent(path, data)
    except StorageError:
        # Only the response may have been lost. Another writer's tag with the same name and content is equivalent.
        with suppress(TableStoreError):
            if store.file_io.read(path) == data:
                store.file_io.flush([path], root=store.location)  # or this read failed
                return True
        raise


def check_tag_name(name: str, table: str) -> None:
    """Check that a tag may have this name. Raises ``InvalidOptionError``."""
    if not name.strip() or "/" in name or name in {".", ".."}:
        raise InvalidOptionError(f"table {table}: '{name}' is not a valid name for a tag: it is blank or a path")
    if name.isdecimal():
        # Paimon refuses these too: a time travel to such a name could mean the snapshot id.
        raise InvalidOptionError(f"table {table}: tag '{name}' looks like a snapshot id; put a letter into it")
    check_length(name, f"table {table}: a tag")


def first_since(store: MetadataStore, millis: int) -> Snapshot:
    """Return the first snapshot that was committed at or after a time; an expired one if it has a tag.

    Args:
        millis: since 1970-01-01 UTC.
    """
    found, latest = None, store.load_latest_snapshot()
    if latest is not None and latest.time_millis >= millis:
        before = newest_by_time(store, latest, millis)
        found = store.load_earliest_snapshot() if before is None else find_at_or_after(store, before.id + 1)
    tagged = next((each for each in tagged_snapshots(store) if each.time_millis >= millis), None)
    if tagged is not None and (found is None or tagged.time_millis < found.time_millis):
        found = tagged
    if found is None:
        last = "nothing was committed yet" if latest is None else f"the latest is of {utc_text(latest.time_millis)}"
        raise NotFoundError(
            f"table {store.name}: no snapshot was committed at {utc_text(millis)} ({millis}) or later; {last}"
        )
    return found


def first_with_watermark(store: MetadataStore, watermark: int) -> Snapshot:
    """Return the first snapshot whose watermark has reached a point in event time; an expired one if it has a tag.

    Args:
        watermark: ms of event time.
    """
    tagged = next((each for each in tagged_snapshots(store) if (watermark_of(each) or -1) >= watermark), None)
    try:
        found = resolve_snapshot(store, watermark=watermark)
    except NotFoundError:
        if tagged is None:
            raise
        return tagged
    if found is None or (tagged is not None and (watermark_of(tagged) or 0) < (watermark_of(found) or 0)):
        found = tagged or found
    if found is None:
        raise NotFoundError(f"table {store.name}: nothing was committed yet")
    return found


_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - wall clocks without a zone
_MILLI: Final = timedelta(milliseconds=1)
_TWO_HOURS: Final = "yyyy-MM-dd HH"
_DURATION: Final = "yyyyMMddHHmm"
_HOURLY: Final = {
    TagFormatter.WITH_DASHES: "yyyy-MM-dd HH",
    TagFormatter.WITHOUT_DASHES: "yyyyMMdd HH",
    TagFormatter.WITHOUT_DASHES_AND_SPACES: "yyyyMMddHH",
}
_DAILY: Final = {
    TagFormatter.WITH_DASHES: "yyyy-MM-dd",
    TagFormatter.WITHOUT_DASHES: "yyyyMMdd",
    TagFormatter.WITHOUT_DASHES_AND_SPACES: "yyyyMMdd",
}


class _Field(NamedTuple):
    text: str
    directive: str


# strftime would not fill years up to four digits.
_FIELDS: Final = {
    "yyyy": _Field("{0.year:04}", "%Y"),
    "MM": _Field("{0.month:02}", "%m"),
    "dd": _Field("{0.day:02}", "%d"),
    "HH": _Field("{0.hour:02}", "%H"),
    "mm": _Field("{0.minute:02}", "%M"),
}
_FIELD: Final = re.compile("|".join(_FIELDS))


@dataclass(frozen=True, slots=True, kw_only=True)
class TagPeriods:
    """Periods of one length, counted from 1970-01-01 on the wall clock.

    Attributes:
        length_ms: of a period.
        pattern: of the names, in the letters of Java.
    """

    length_ms: int
    pattern: str

    @property
    def length(self) -> timedelta:
        """Of a period."""
        return timedelta(milliseconds=self.length_ms)

    def last_ended(self, time: datetime) -> datetime:
        """Return the beginning of the last period that has ended at a time."""
        millis = (time - _EPOCH) // _MILLI
        count = abs(millis) // self.length_ms
        # Towards zero, as Java divides.
        return _EPOCH + ((count if millis >= 0 else -count) - 1) * self.length

    def name_of(self, beginning: datetime) -> str:
        """Return the name of a period's tag."""
        return _FIELD.sub(lambda match: _FIELDS[match.group()].text.format(beginning), self.pattern)

    def beginning_of(self, name: str) -> datetime | None:
        """Return the beginning of the period of a tag's name; None for a tag of another kind.

        For daily periods only the text before a space is parsed, so names of hourly tags count as days, too.
        """
        text = name if "HH" in self.pattern else name.split(" ", maxsplit=1)[0]
        digits = _FIELD.sub(lambda match: rf"\d{{{len(match.group())}}}", self.pattern)
        if not re.fullmatch(digits, text, re.ASCII):
            return None
        try:
            return datetime.strptime(text, _FIELD.sub(lambda match: _FIELDS[match.group()].directive, self.pattern))  # noqa: DTZ007 - a wall clock
        except ValueError:
            return None


def tag_periods(options: TagOptions, table: str) -> TagPeriods:
    """Return the periods in a table's options."""
    if options.creation_period_duration_ms is not None:
        periods = TagPeriods(length_ms=options.creation_period_duration_ms, pattern=_DURATION)
    elif options.creation_period is TagPeriod.DAILY:
        periods = TagPeriods(length_ms=86_400_000, pattern=_DAILY[options.period_formatter])
    elif options.creation_period is TagPeriod.HOURLY:
        periods = TagPeriods(length_ms=3_600_000, pattern=_HOURLY[options.period_formatter])
    else:
        periods = TagPeriods(length_ms=7_200_000, pattern=_TWO_HOURS)
    if options.creation_delay_ms >= periods.length_ms:
        raise InvalidOptionError(
            f"table {table}: option 'tag.creation-delay' = '{format_duration_ms(options.creation_delay_ms)}': expected "
            f"less than the period of the tags, {format_duration_ms(periods.length_ms)}"
        )
    return periods
