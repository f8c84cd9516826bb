"""What a handle may assume about its table (design/0019): its identity, its schema, and who else commits.

A table that was dropped and created again there is a different table. A branch has an identity too: it differs from its
table, and from a branch that had its name before.

A handle must not cast values of a newer file to an older type that cannot hold them, nor write with an older number of
buckets into partitions that do not have it any more.

Penstock creates a snapshot by a conditional put, so only one of several writers succeeds. On an object store, Paimon
without a lock checks whether the snapshot exists, writes a temporary file, and renames it by copying, which replaces a
snapshot that was created meanwhile: in 45 of 400 races it replaced one of Penstock's. So if another engine created the
latest snapshot, it may be about to commit the next one.
"""

from __future__ import annotations

import hashlib
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from penstock.clocks import utc_millis
from penstock.datafile.widening import keeps_values
from penstock.errors import (
    CommitConflictError,
    FormatError,
    InvalidOptionError,
    NotFoundError,
    OtherEngineWarning,
    SchemaMismatchError,
    UnsupportedFeatureError,
    warn,
)
from penstock.format.layout import TableLayout, schema_id_of
from penstock.format.manifest.entry import FileKind
from penstock.format.schema import decode_schema
from penstock.format.types.data_types import with_nullability
from penstock.format.types.text import format_sql_type
from penstock.options import BucketOptions, CommitOptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from penstock.format.manifest.entry import DataFileMeta, ManifestEntry
    from penstock.format.snapshot import Snapshot
    from penstock.format.types.data_types import DataField
    from penstock.table.location import HasLocation
    from penstock.table.ref import TableRef
    from penstock.table.store import MetadataStore


_DIGEST_BYTES: Final = 16


class _Moments:
    """A clock in ms that never returns the same value twice."""

    def __init__(self) -> None:
        self._last = 0
        self._lock = threading.Lock()

    def next_millis(self) -> int:
        with self._lock:
            self._last = max(self._last + 1, utc_millis())
            return self._last


_CREATIONS: Final = _Moments()


def new_creation_millis() -> int:
    """Return the time at which a table is created, ms since 1970-01-01 UTC.

    Two tables with the same columns differ only in this time, and a process can create several tables in one
    millisecond, so no two calls in a process return the same value.
    """
    return _CREATIONS.next_millis()


def load_identity(table: HasLocation) -> str:
    """Load a digest of what ``read_identity`` returns."""
    try:
        data = read_identity(table)
    except NotFoundError as error:
        raise NotFoundError(f"table {table.name}: {table.location} holds no table") from error
    return digest_of(data)


def read_identity(table: HasLocation) -> bytes:
    """Read what identifies a table: its first schema file, which never changes and holds the table's creation time.

    The first schema of a branch is a copy of its table's. So for a branch, the random identity that its creation has
    stored is added; for a branch of another engine its name, and the time at which its first schema file was made.
    """
    file_io, path = table.file_io, table.layout.schema_path(0)
    data = file_io.read(path)
    if file_io.branch_name is None:
        return data
    try:
        return data + file_io.read(_branch_identity_path(table))
    except NotFoundError:
        statuses = file_io.list(table.layout.schema_directory)
        millis = next((each.modified_millis for each in statuses if schema_id_of(each.name) == 0), 0)
        return data + f"{file_io.branch_name} {millis}".encode()


def check_same_table(ref: TableRef) -> None:
    """Raise unless the loaded table is still at its location; costs one read of storage, of a branch three.

    A schema file never changes and holds its creation time. So the file with the handle's schema id differs if another
    table was created in the same place, even one with the same columns. The schema files of branches can be equal.

    Raises:
        NotFoundError: the table was dropped, renamed, or dropped and created again.
        FormatError: the schema file is damaged.
    """
    file_io = ref.file_io
    if file_io.branch_name is None:
        _check_schema(ref)
        return
    with file_io.prefetch() as ahead:
        reading = replace(ref, file_io=ahead)
        request_identity(reading)
        _check_schema(reading)
        if load_identity(reading) != file_io.branch_identity:
            raise _made_anew(ref)


def request_identity(ref: TableRef) -> None:
    """Request what ``check_same_table`` reads."""
    file_io = ref.file_io
    path, first = ref.layout.schema_path(ref.schema.id), ref.layout.schema_path(0)
    if file_io.branch_name is not None:
        file_io.request_read(first, uses=2 if path == first else 1)
        file_io.request_read(_branch_identity_path(ref))
    file_io.request_read(path)


def _branch_identity_path(table: HasLocation) -> str:
    return TableLayout(table.file_io.metadata_root(table.location)).branch_identity_path


def _check_schema(ref: TableRef) -> None:
    path = ref.layout.schema_path(ref.schema.id)
    try:
        found = decode_schema(ref.file_io.read(path), path)
    except NotFoundError as error:
        if ref.file_io.list(ref.layout.schema_directory):
            raise _made_anew(ref) from error
        raise NotFoundError(
            f"table {ref.name}: {ref.location} holds no table: it was dropped or renamed since it was loaded; "
            "load it by the name that it has now"
        ) from error
    # A read of the past has the columns of its schema and the current options.
    if replace(found, options=ref.schema.options) != ref.schema:
        raise _made_anew(ref)


def _made_anew(ref: TableRef) -> NotFoundError:
    return NotFoundError(
        f"table {ref.name} at {ref.location} is not the one that was loaded: that one was dropped, and another was "
        "created in its place; load the table again"
    )


def digest_of(data: bytes) -> str:
    """Return a short digest, the same in every version of Penstock."""
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()


def check_schema_of_file(ref: TableRef, store: MetadataStore, schema_id: int, fields: Iterable[DataField]) -> None:
    """Raise if a file was written with a newer schema in which a column has a type that the read schema cannot hold.

    Files that are older than the read schema are cast by the rules of the format: a user requested that cast by
    altering the column.

    Args:
        ref: its schema is the read schema.
        schema_id: of the file.
        fields: columns of the read schema to read.
    """
    if schema_id <= ref.schema.id:
        return
    stored = {field.id: field.type for field in store.load_schema(schema_id).fields}
    for field in fields:
        newer = stored.get(field.id)
        if newer is not None and not keeps_values(newer, field.type):
            raise SchemaMismatchError(
                f"table {ref.name}: column '{field.name}' became {format_sql_type(newer)} in schema {schema_id}, and "
                f"is read here as {format_sql_type(field.type)}, its type in schema {ref.schema.id}, which cannot hold "
                "all its values: load the table again; a stream has to be started again, from its checkpoint"
            )


def at_latest_schema(ref: TableRef, store: MetadataStore) -> TableRef:
    """Return the table with its latest schema. Raises as ``MetadataStore.load_latest_schema``."""
    latest = store.load_latest_schema()
    return ref if latest.id == ref.schema.id else replace(ref, schema=latest)


def check_schema_exists(store: MetadataStore, snapshot: Snapshot | None, schema_ids: Sequence[int]) -> None:
    """Refuse to build on a snapshot whose schema file is lost.

    The schemas below it would be taken for the latest ones: new rows would get an older schema, and the next schema the
    lost id with other columns, so that files written with the lost schema would be read wrongly.

    Args:
        snapshot: the latest one; None if nothing was ever committed.
        schema_ids: from a listing that was made after the snapshot was read.

    Raises:
        FormatError: the file is lost.
    """
    if snapshot is not None and snapshot.schema_id not in schema_ids:
        raise FormatError(
            f"table {store.name}: schema {snapshot.schema_id} of snapshot {snapshot.id} is missing "
            f"({store.layout.schema_path(snapshot.schema_id)}); nothing was changed: restore the file from a copy, or "
            "roll back to a snapshot whose schema is there ('penstock rollback')"
        )


def check_schema_of_rewrites(
    ref: TableRef, store: MetadataStore, files: Iterable[DataFileMeta], latest_id: int
) -> None:
    """Raise if rows were rewritten with an older type of a column: the new files would keep the cast to that type.

    Args:
        files: the new files.
        latest_id: id of the table's latest schema.
    """
    ids = {file.schema_id for file in files} - {latest_id}
    if not ids:
        return
    latest = {field.id: field.type for field in store.load_schema(latest_id).fields}
    for schema_id in ids:
        for field in store.load_schema(schema_id).fields:
            now = latest.get(field.id, field.type)
            if with_nullability(now, nullable=True) != with_nullability(field.type, nullable=True):
                raise CommitConflictError(
                    f"table {ref.name}: column '{field.name}' became {format_sql_type(now)} while rows were rewritten "
                    f"as {format_sql_type(field.type)}; nothing was committed: plan again from the latest schema"
                )


def check_buckets_of_new_files(
    ref: TableRef,
    store: MetadataStore,
    delta: Sequence[ManifestEntry],
    *,
    known_buckets: Mapping[bytes, int],
    latest_id: int,
) -> None:
    """Raise if a writer that does not know the table's number of buckets brings an old number into a partition.

    Writers that know it could not write to the partition any more. Where the partition still has files of the old
    number, it stays as it is.

    Args:
        ref: with the writer's schema.
        delta: the changes to be committed.
        known_buckets: number of buckets of the partitions to which files are added.
        latest_id: id of the table's latest schema.
    """
    if ref.schema.id == latest_id or all(entry.total_buckets < 0 for entry in delta):
        return
    buckets = replace(ref, schema=store.load_schema(latest_id)).parsed(BucketOptions).bucket
    present = set(known_buckets.items())
    present |= {(entry.partition, entry.total_buckets) for entry in delta if entry.kind is FileKind.DELETE}
    for entry in delta:
        number = entry.total_buckets
        if entry.kind is FileKind.ADD and number != buckets and (entry.partition, number) not in present:
            raise InvalidOptionError(
                f"table {ref.name}: rows were written with {number} buckets, and since then option 'bucket' has become "
                f"{buckets}; nothing was committed: load the table again; a stream has to be started again"
            )


WRITER_VERSION: Final = "penstock"
"""``writer_version`` of the snapshots that Penstock makes."""

ALLOW_KEY: Final = "penstock.object-store.allow-other-engines"


class _Warned:
    """The tables about which this process has warned."""

    def __init__(self) -> None:
        self.locations: set[str] = set()
        self.lock = threading.Lock()

    def is_first(self, location: str) -> bool:
        with self.lock:
            is_new = location not in self.locations
            self.locations.add(location)
            return is_new


_WARNED: Final = _Warned()


def check_other_engines(ref: TableRef, latest: Snapshot | None) -> None:
    """Refuse to commit on an object store if another engine created the latest snapshot."""
    if latest is not None and _is_foreign(ref, latest):
        raise UnsupportedFeatureError(
            f"table {ref.name}: another engine created snapshot {latest.id} (commit user {latest.commit_user}), and on "
            "an object store its next commit could replace one of Penstock, or be replaced by it; nothing was "
            f"committed: make sure that no other engine commits to the table any more, then set '{ALLOW_KEY}' = 'true' "
            "for one commit"
        )


def warn_other_engines(ref: TableRef, latest: Snapshot | None) -> None:
    """Warn once for each table on an object store whose latest snapshot another engine created."""
    if latest is not None and _is_foreign(ref, latest) and _WARNED.is_first(ref.location):
        warn(
            f"table {ref.name}: another engine created snapshot {latest.id}; reading is safe, but while it commits to "
            "the table on this object store Penstock must not",
            OtherEngineWarning,
        )


def _is_foreign(ref: TableRef, latest: Snapshot) -> bool:
    if latest.writer_version == WRITER_VERSION or not ref.file_io.is_object_store:
        return False
    return not ref.parsed(CommitOptions).allow_other_engines
