"""Storage of a table of a REST catalog: its files are in a directory, and the server decides which snapshot is next.

Source:
    Paimon ``core:catalog/CatalogSnapshotCommit.java``, ``core:utils/SnapshotManager.java``; design/0058.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn

from penstock.errors import AlreadyExistsError, InvalidOptionError, NotFoundError, StorageError, UnsupportedFeatureError
from penstock.format.layout import TableLayout, snapshot_id_of
from penstock.format.snapshot import encode_hint
from penstock.io.file_io import ServerSnapshotCommit
from penstock.io.wrapper import WrappingFileIO

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.io.file_io import Directories, FileIO, SnapshotCommit
    from penstock.io.rest.server import Body, RestServer

_NO_SNAPSHOT: Final = "SNAPSHOT"
_MAX_ID: Final = 2**63
_REFUSALS: Final = (AlreadyExistsError, InvalidOptionError, NotFoundError, UnsupportedFeatureError)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestTableFileIO(WrappingFileIO):
    """``FileIO`` of a table whose latest snapshot and schema only the server of its catalog changes.

    Files are read and written in the directory. The hint for the latest snapshot comes from the server.

    Attributes:
        server: of the catalog.
        database: of the table.
        table: its name in the database.
        table_id: by which the server distinguishes the table from a later one of the same name.
        location: the table's directory.
    """

    server: RestServer
    database: str
    table: str
    table_id: str
    location: str

    @property
    def _layout(self) -> TableLayout:
        return TableLayout(self.location)

    def commit(self, data: bytes, base_uuid: str | None, statistics: Sequence[Body]) -> bool:
        """Create a snapshot on the server; return False if it does not follow the latest one.

        An earlier call whose response was lost may have created it, as with ``put_if_absent``.

        Args:
            data: the encoded snapshot.
            base_uuid: of the previous snapshot.
            statistics: changes of each of its partitions.

        Raises:
            StorageError: the server failed and may have created the snapshot; or it refused, and ``retryable`` is
                false.
        """
        about = f"commit to table {self._name}"
        body = {
            "tableId": self.table_id,
            "baseSnapshotUuid": base_uuid,
            "snapshot": json.loads(data),
            "statistics": list(statistics),
        }
        try:
            answer = self.server.post(*self._path("commit"), about=about, body=body)
        except _REFUSALS as error:
            raise StorageError(str(error)) from error
        if not isinstance(answer.get("success"), bool):
            raise StorageError(f"{about}: the REST catalog at {self.server.uri} did not say whether it succeeded", True)  # noqa: FBT003
        return bool(answer["success"])

    def latest_snapshot_id(self) -> int | None:
        """Return the id of the server's latest snapshot; None if there is none yet."""
        about = f"latest snapshot of table {self._name}"
        answer = self.server.send("GET", *self._path("snapshot"), about=about)
        if answer.status == 404 and answer.resource_type == _NO_SNAPSHOT:
            return None
        found = self.server.check(answer, about)
        snapshot = found.get("snapshot")
        inner = snapshot.get("snapshot") or snapshot if isinstance(snapshot, dict) else None
        number = inner.get("id") if isinstance(inner, dict) else None
        if type(number) is not int or not 0 < number < _MAX_ID:
            raise StorageError(f"{about}: the REST catalog at {self.server.uri} named no snapshot")
        return number

    def rollback(self, snapshot_id: int, latest_id: int | None) -> None:
        """Roll back on the server to a snapshot, if its latest snapshot is still the given one.

        Raises:
            NotFoundError: the server has no such table or snapshot.
            StorageError: it refused or failed.
        """
        body: Body = {"instant": {"type": "snapshot", "snapshotId": snapshot_id}}
        if latest_id is not None:
            body["fromSnapshot"] = latest_id
        about = f"rollback of table {self._name} to snapshot {snapshot_id}"
        self.server.post(*self._path("rollback"), about=about, body=body)

    def read(self, path: str) -> bytes:
        """Read a file; the hint for the latest snapshot comes from the server."""
        if path != self._layout.latest_hint_path:
            return self.inner.read(path)
        latest = self.latest_snapshot_id()
        if latest is None:
            raise NotFoundError(f"table {self._name} has no snapshot yet")
        return encode_hint(latest)

    def write(self, path: str, data: bytes) -> None:
        """Write a file; hints are ignored, because the server provides them."""
        if path in {self._layout.latest_hint_path, self._layout.earliest_hint_path}:
            return
        self._check_own(path)
        self.inner.write(path, data)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Create a file that is neither a snapshot nor a schema."""
        self._check_own(path)
        return self.inner.put_if_absent(path, data)

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        """Delete a file, including expired snapshots, but not the server's latest snapshot or later ones."""
        directory, _, name = path.rpartition("/")
        number = snapshot_id_of(name) if directory == self._layout.snapshot_directory else None
        if number is not None and number >= (self.latest_snapshot_id() or 0):
            raise StorageError(
                f"table {self._name}: snapshot {number} is not deleted: the REST catalog at {self.server.uri} decides "
                "which snapshot is the latest; roll back by Table.rollback"
            )
        return self.inner.delete(path, recursive=recursive)

    @property
    def delete_batch_size(self) -> int:
        """One: each deletion is checked."""
        return 1

    def delete_many(self, paths: Sequence[str]) -> None:
        """Delete files one by one."""
        for path in paths:
            self.delete(path)

    def list_tree(self, directory: str) -> Directories:
        """Delegate."""
        return self.inner.list_tree(directory)

    @contextmanager
    def prefetch(self) -> Iterator[FileIO]:
        """Send nothing ahead: the hint comes from the server."""
        yield self

    @property
    def is_object_store(self) -> bool:
        """False: the server decides about commits."""
        return False

    @property
    def snapshot_commit(self) -> SnapshotCommit:
        """By the server of the catalog."""
        return ServerSnapshotCommit(self)

    @property
    def _name(self) -> str:
        return f"{self.database}.{self.table}"

    def _path(self, operation: str) -> tuple[str, ...]:
        return ("databases", self.database, "tables", self.table, operation)

    def _check_own(self, path: str) -> None:
        """Raise for files that only the server writes."""
        if path.startswith(f"{self._layout.schema_directory}/"):
            self._refuse("its schema", "change it by Catalog.alter_table of that catalog")
        if path.startswith(f"{self._layout.branches_directory}/"):
            self._refuse("its branches", "create and change them with Paimon")
        if path.startswith(f"{self._layout.snapshot_directory}/"):
            self._refuse("its snapshots", "roll back by Table.rollback, and use no action that rewrites the history")

    def _refuse(self, what: str, cure: str) -> NoReturn:
        raise UnsupportedFeatureError(
            f"table {self._name}: only the REST catalog at {self.server.uri} changes {what}: {cure}"
        )
