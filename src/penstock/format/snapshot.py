"""The snapshot file ``snapshot/snapshot-N``: its value, and its JSON.

Source:
    Paimon ``api:Snapshot.java``; docs/spec/format.md section 3; ``core:utils/HintFileUtils.java``;
    docs/spec/format.md section 3.1 (the hint files ``snapshot/LATEST`` and ``EARLIEST``).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from penstock.errors import FormatError
from penstock.format.layout import changelog_id_of, snapshot_id_of
from penstock.format.text.json import Json, JsonObject, decode_json, encode_json, parse_json
from penstock.printable import record_html

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

BATCH_COMMIT_IDENTIFIER: Final = 2**63 - 1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class CommitKind(StrEnum):
    """Why a snapshot exists; the value is the text on disk."""

    APPEND = "APPEND"
    COMPACT = "COMPACT"
    OVERWRITE = "OVERWRITE"
    ANALYZE = "ANALYZE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One version of the table.

    Attributes:
        id: N of the file's name; no gaps while it grows.
        schema_id: the latest schema when this was committed, not the writer's.
        base_manifest_list: everything before this snapshot; a name in ``manifest/``.
        delta_manifest_list: the changes of this snapshot.
        base_manifest_list_size: exact bytes; readers trust it.
        commit_identifier: strictly increasing per commit user; ``BATCH_COMMIT_IDENTIFIER`` for batch commits.
        time_millis: commit time, ms since 1970-01-01 UTC, by the committer's clock.
        watermark: event time in ms up to which input is complete; None when never set. Kept as stored here, so
            -2**63 (which means "none" too) survives being copied forward.
        properties: pairs, in file order.
        extra: keys of newer versions as (key, JSON text), so that copies of this file (tags) keep them.
    """

    id: int
    schema_id: int
    base_manifest_list: str
    delta_manifest_list: str
    commit_user: str
    commit_identifier: int
    commit_kind: CommitKind
    time_millis: int
    total_record_count: int | None
    delta_record_count: int | None
    base_manifest_list_size: int | None = None
    delta_manifest_list_size: int | None = None
    changelog_manifest_list: str | None = None
    changelog_manifest_list_size: int | None = None
    index_manifest: str | None = None
    changelog_record_count: int | None = None
    watermark: int | None = None
    statistics: str | None = None
    properties: tuple[tuple[str, str], ...] = ()
    next_row_id: int | None = None
    uuid: str | None = None
    writer_version: str | None = None
    operation: str | None = None
    version: int = 3
    extra: tuple[tuple[str, str], ...] = ()

    def _repr_html_(self) -> str:
        """Return the HTML for a notebook."""
        return record_html(self)

    def __repr__(self) -> str:
        """Show what people ask for, not where its manifests are."""
        parts = [f"id={self.id}", f"kind={self.commit_kind.value}", f"time={_time_text(self.time_millis)}"]
        parts += [f"rows={self.total_record_count}"] if self.total_record_count is not None else []
        parts += [f"change={self.delta_record_count:+}"] if self.delta_record_count is not None else []
        parts += [f"schema_id={self.schema_id}", f"user={self.commit_user!r}"]
        parts += [f"watermark={self.watermark}"] if self.watermark is not None else []
        return f"Snapshot({', '.join(parts)})"


def _time_text(millis: int) -> str:
    try:
        moment = _EPOCH + timedelta(milliseconds=millis)
    except OverflowError:
        return f"{millis} ms"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


_LONG_MIN: Final = -(2**63)
_LONG_MAX: Final = 2**63 - 1
_WHAT: Final = "snapshot file"

# In Java's order.
_KEYS: Final = {
    "version": "version",
    "uuid": "uuid",
    "id": "id",
    "schemaId": "schema_id",
    "baseManifestList": "base_manifest_list",
    "baseManifestListSize": "base_manifest_list_size",
    "deltaManifestList": "delta_manifest_list",
    "deltaManifestListSize": "delta_manifest_list_size",
    "changelogManifestList": "changelog_manifest_list",
    "changelogManifestListSize": "changelog_manifest_list_size",
    "indexManifest": "index_manifest",
    "commitUser": "commit_user",
    "writerVersion": "writer_version",
    "commitIdentifier": "commit_identifier",
    "commitKind": "commit_kind",
    "timeMillis": "time_millis",
    "totalRecordCount": "total_record_count",
    "deltaRecordCount": "delta_record_count",
    "changelogRecordCount": "changelog_record_count",
    "watermark": "watermark",
    "statistics": "statistics",
    "properties": "properties",
    "nextRowId": "next_row_id",
    "operation": "operation",
}
_VERSION_WHEN_ABSENT: Final = 1
_NEWEST_VERSION: Final = 3


def decode_snapshot(data: bytes, path: str) -> Snapshot:
    """Decode a snapshot file of any version up to today's; unknown keys are kept in ``extra``.

    Args:
        data: the whole file.
        path: for messages; if its last part is the name of a snapshot or changelog file, the id in the content must
            match it, since all other code uses the id of the name.
    """
    json = decode_json(data, _WHAT, path)
    snapshot = read_snapshot(json)
    name = path.rpartition("/")[2]
    named = snapshot_id_of(name) or changelog_id_of(name)
    if named is not None and named != snapshot.id:
        raise json.error(f"claims to be snapshot {snapshot.id}")
    return snapshot


def read_snapshot(json: JsonObject, *, ignored: frozenset[str] = frozenset()) -> Snapshot:
    """Decode a snapshot from a parsed JSON object; the keys in ``ignored`` are not the snapshot's, and are ignored."""
    return Snapshot(
        version=json.version(absent=_VERSION_WHEN_ABSENT, newest=_NEWEST_VERSION),
        uuid=json.optional_text("uuid"),
        id=_id(json),
        schema_id=json.integer("schemaId"),
        base_manifest_list=json.file_name("baseManifestList"),
        base_manifest_list_size=json.optional_integer("baseManifestListSize"),
        delta_manifest_list=json.file_name("deltaManifestList"),
        delta_manifest_list_size=json.optional_integer("deltaManifestListSize"),
        changelog_manifest_list=json.optional_file_name("changelogManifestList"),
        changelog_manifest_list_size=json.optional_integer("changelogManifestListSize"),
        index_manifest=json.optional_file_name("indexManifest"),
        commit_user=json.text("commitUser"),
        writer_version=json.optional_text("writerVersion"),
        commit_identifier=json.integer("commitIdentifier"),
        commit_kind=_commit_kind(json),
        time_millis=json.integer("timeMillis"),
        total_record_count=json.optional_integer("totalRecordCount"),
        delta_record_count=json.optional_integer("deltaRecordCount"),
        changelog_record_count=json.optional_integer("changelogRecordCount"),
        watermark=json.optional_integer("watermark"),
        statistics=json.optional_file_name("statistics"),
        properties=json.text_pairs("properties"),
        next_row_id=json.optional_integer("nextRowId"),
        operation=json.optional_text("operation"),
        extra=json.others(_KEYS.keys() | ignored),
    )


def _id(json: JsonObject) -> int:
    snapshot_id = json.integer("id")
    # The largest number is invalid too: the next snapshot would have no id.
    if not 1 <= snapshot_id < _LONG_MAX:
        raise json.error(f"has the id {snapshot_id}, which no snapshot can have")
    return snapshot_id


def _commit_kind(json: JsonObject) -> CommitKind:
    text = json.text("commitKind")
    try:
        return CommitKind(text)
    except ValueError as error:
        raise json.error(f"has the unknown commitKind '{text}'") from error


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """Encode a snapshot file; None and empty values are left out, and ``extra`` is last."""
    return encode_json(snapshot_values(snapshot))


def check_snapshot(snapshot: Snapshot) -> None:
    """Refuse to store a snapshot that readers would reject, such as with a sum over a wrong number."""
    for key, name in _KEYS.items():
        value = getattr(snapshot, name)
        if isinstance(value, int) and not _LONG_MIN <= value <= _LONG_MAX - (key == "id"):
            raise FormatError(
                f"snapshot {snapshot.id} would have {key} = {value}, which no reader accepts: the value that it adds "
                "to "
                "is damaged; nothing was committed. Roll back to a snapshot from before the damage"
            )


def snapshot_values(snapshot: Snapshot) -> dict[str, Json]:
    """Return the JSON object of the file, keys in Java's order."""
    values: dict[str, Json] = {key: getattr(snapshot, name) for key, name in _KEYS.items()}
    values["properties"] = dict(snapshot.properties) or None
    written = {key: value for key, value in values.items() if value is not None}
    return written | {key: parse_json(text) for key, text in snapshot.extra}


def decode_hint(data: bytes) -> int | None:
    """Decode a hint file; None if it is unusable: it is overwritten in place, so a reader may see a partial file."""
    text = data.decode("ascii", "replace").strip()
    # 19 digits suffice for every 64-bit id.
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 19 else None


def encode_hint(snapshot_id: int) -> bytes:
    """Encode a hint file: decimal digits without a line break."""
    return str(snapshot_id).encode("ascii")


ROLLED_BACK_TO: Final = "penstock.rolled-back-to"
"""Property of a snapshot that a rollback makes: the id of the rollback's target."""
VECTORS_OF: Final = "penstock.changes-vectors-of"
"""Property of a snapshot that changes deletion vectors: the index manifest of its base; empty for none."""
RESTORES: Final = "penstock.restores"
"""Property of a snapshot that adds the files of an older snapshot again: the id of that snapshot.

Empty if files are live again because manifests that deleted them were lost.
"""


def find_lost_ids(ids: Sequence[int], snapshots: Iterable[Snapshot]) -> list[range]:
    """Return the ids that are missing between others although neither an expiration nor a rollback deletes them alone.

    A rollback that runs while others commit leaves its own snapshot, and none between that and the id after its
    target.

    Args:
        ids: of the existing snapshots, ascending.
        snapshots: those of them that can be read.
    """
    gaps = [range(low + 1, high) for low, high in pairwise(ids) if high > low + 1]
    if not gaps:
        return []
    freed = []
    for snapshot in snapshots:
        target_id = decode_hint(dict(snapshot.properties).get(ROLLED_BACK_TO, "").encode())
        if target_id is not None:
            freed.append(range(target_id + 2, snapshot.id))
    return [gap for gap in gaps if not any(span.start <= gap.start and gap.stop <= span.stop for span in freed)]


def present_text(first_id: int, last_id: int) -> str:
    """Return which snapshots exist, such as ``snapshots 7 to 9 are there``."""
    return f"snapshot {last_id} is there" if first_id == last_id else f"snapshots {first_id} to {last_id} are there"


def snapshots_text(ranges: Sequence[range]) -> str:
    """Return snapshots as text, such as ``snapshot 5`` or ``snapshots 5, 7 to 9``."""
    return f"{'snapshot' if sum(map(len, ranges)) == 1 else 'snapshots'} {ids_text(ranges)}"


def ids_text(ranges: Iterable[range]) -> str:
    """Return snapshot ids as text, such as ``5, 7 to 9``."""
    return ", ".join(str(ids[0]) if len(ids) == 1 else f"{ids[0]} to {ids[-1]}" for ids in ranges)
