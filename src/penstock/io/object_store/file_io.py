"""``FileIO`` over object stores."""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from penstock.errors import StorageError, UnsupportedFeatureError
from penstock.io.file_io import FileIO, FileStatus
from penstock.io.local import MAX_READ_BYTES
from penstock.io.object_store.address import StoreKind
from penstock.io.object_store.client import StoreFailureError, client_of, content_of
from penstock.io.object_store.conditional import PREFIX, check_conditional_puts, put_new
from penstock.io.object_store.reader import ObjectReader
from penstock.io.object_store.writer import ObjectWriter
from penstock.io.prefetch import PrefetchedFileIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from penstock.io.file_io import Directories
    from penstock.io.object_store.client import StoreClient
    from penstock.io.object_store.settings import StoreSettings

# Bytes on S3 and Google Cloud Storage, characters on Azure.
_MAX_KEY: Final = 1024
# Suffix of the marker objects that Hadoop's connectors write to represent directories.
_MARKER_SUFFIX: Final = "_$folder$"


class _ListedTree:
    def __init__(self, children: Mapping[str, Sequence[FileStatus]]) -> None:
        self._children = children

    def list(self, path: str) -> Sequence[FileStatus]:
        return self._children.get(path, ())


@dataclass(frozen=True, slots=True)
class ObjectFileIO(FileIO):
    """``FileIO`` on one bucket. Paths are locations, ``s3://bucket/path``.

    A directory exists only while it contains an object. Credentials come from the options of the catalog, or from the
    environment of each process; this value holds the options, and does not show them.

    ``put_if_absent`` sends a conditional request, and retries it when an answer is lost; if an object then exists and
    has our bytes, it counts as ours. So content that must have only one owner has to include random bytes.
    """

    settings: StoreSettings

    def read(self, path: str) -> bytes:
        """Return the content of an object of at most ``MAX_READ_BYTES``."""
        key = self._key(path)

        def load(library: Any, store: Any) -> bytes | int:  # noqa: ANN401 - of a library without types
            got = library.get(store, key)
            size = int(got.meta["size"])
            return content_of(got) if size <= MAX_READ_BYTES else size

        with self._failing("read", path) as client:
            data = client.call(load)
        if isinstance(data, int):
            raise StorageError(f"cannot read {path}: it has {data} bytes, and no metadata file has {MAX_READ_BYTES}")
        return data

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """Return some bytes of an object, fewer at its end, by one request."""
        key, options = self._key(path), {"range": (start, start + length)}
        with self._failing("read", path) as client:
            return client.call(lambda library, store: content_of(library.get(store, key, options=options)))

    def write(self, path: str, data: bytes) -> None:
        """Create or replace an object, in one request."""
        key = self._key(path)
        with self._failing("write", path) as client:
            client.call(lambda library, store: library.put(store, key, data, use_multipart=False))

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Create an object only if it does not exist; a store that lets two callers do so is rejected."""
        key = self._key(path)
        with self._failing("create", path) as client:
            check_conditional_puts(client, key.rpartition("/")[0])
            return put_new(client, key, data)

    def open_input(self, path: str) -> ObjectReader:
        """Open for random reading; the first request fetches the end of the object."""
        return ObjectReader(client_of(self.settings), self._key(path), path)

    def open_output(self, path: str) -> ObjectWriter:
        """Open a new object for writing; it exists after ``close``."""
        return ObjectWriter(client_of(self.settings), self._key(path), path)

    def list(self, path: str) -> Sequence[FileStatus]:
        """Return the direct children sorted by name, without a request per child; skips other engines' markers."""
        key = self._key(path)
        prefix = f"{key}/" if key else ""
        with self._failing("list", path) as client:
            found = client.call(lambda library, store: library.list_with_delimiter(store, prefix or None))
        return self._statuses(key, found["common_prefixes"], found["objects"])

    def list_tree(self, directory: str) -> Directories:
        """Return a directory and all directories below it, with a request per 1000 objects."""
        key = self._key(directory)

        def load(library: Any, store: Any) -> list[Any]:  # noqa: ANN401 - of a library without types
            return [meta for chunk in library.list(store, f"{key}/", chunk_size=1000) for meta in chunk]

        with self._failing("list", directory) as client:
            found = client.call(load)
        objects: dict[str, list[Any]] = {key: []}
        directories: dict[str, set[str]] = {key: set()}
        for meta in found:
            parent = meta["path"].rpartition("/")[0]
            objects.setdefault(parent, []).append(meta)
            while parent != key and parent not in directories.setdefault(parent.rpartition("/")[0], set()):
                directories[parent.rpartition("/")[0]].add(parent)
                parent = parent.rpartition("/")[0]
        root = self.settings.address.root
        return _ListedTree(
            {
                f"{root}/{each}".rstrip("/"): self._statuses(each, directories.get(each, ()), objects.get(each, ()))
                for each in objects.keys() | directories.keys()
            }
        )

    def _statuses(self, key: str, prefixes: Iterable[str], objects: Iterable[Any]) -> Sequence[FileStatus]:
        root = self.settings.address.root
        directories = {name.rstrip("/") for name in prefixes}
        statuses = [
            FileStatus(path=f"{root}/{name}", size=0, modified_millis=0, is_dir=True) for name in sorted(directories)
        ]
        statuses += [
            FileStatus(
                path=f"{root}/{meta['path']}",
                size=meta["size"],
                modified_millis=int(meta["last_modified"].timestamp() * 1000),
                is_dir=False,
            )
            for meta in objects
            if not _is_marker(meta, key, directories)
        ]
        # A store may repeat an object at the border of two pages.
        return tuple(sorted({status.path: status for status in statuses}.values(), key=lambda status: status.name))

    def exists(self, path: str) -> bool:
        """Whether the path is an object, or a directory with objects below it."""
        key = self._key(path)
        with self._failing("look for", path) as client:
            return (bool(key) and _has_object(client, key)) or bool(_keys_below(client, key, max_keys=1))

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        """Delete an object, or with ``recursive`` all objects below, many per request."""
        key = self._key(path)
        with self._failing("delete", path) as client:
            if _has_object(client, key):
                _delete(client, [key])
                return True
            below = _keys_below(client, key, max_keys=None if recursive else 1)
            if below and not recursive:
                raise StorageError(f"cannot delete {path}: the directory is not empty")
            _delete(client, below)
            return bool(below)

    def has_file(self, path: str) -> bool:
        """Whether the path is an object; objects below it do not count, so one request is enough."""
        key = self._key(path)
        with self._failing("look for", path) as client:
            return _has_object(client, key)

    @property
    def delete_batch_size(self) -> int:
        """A thousand, the limit of S3."""
        return 1_000

    def delete_many(self, paths: Sequence[str]) -> None:
        """Delete objects, up to a thousand per request; missing objects are ignored."""
        keys = [self._key(path) for path in paths]
        if keys:
            with self._failing("delete", paths[0]) as client:
                _delete(client, keys)

    def rename_file(self, source: str, target: str) -> None:
        """Copy inside the store, then delete the source; for a moment a reader sees both, each complete."""
        key, new_key = self._key(source), self._key(target)
        with self._failing("rename", source) as client:
            client.call(lambda library, store: library.copy(store, key, new_key))
            _delete(client, [key])

    def rename_dir(self, source: str, target: str) -> bool:
        """Refuse: a store has no directories, and moving objects one by one would show a partial result to readers."""
        raise UnsupportedFeatureError(
            f"cannot rename {source} to {target}: object stores cannot rename directories atomically; create a new "
            "table or branch, and copy the rows"
        )

    @property
    def is_object_store(self) -> bool:
        """True."""
        return True

    @property
    def is_slow(self) -> bool:
        """True."""
        return True

    @property
    def has_directories(self) -> bool:
        """False: a directory is a prefix of keys."""
        return False

    def storage_options(self) -> dict[str, str]:
        """Return the options of the catalog."""
        return dict(self.settings.options)

    @contextmanager
    def prefetch(self) -> Iterator[FileIO]:
        """Yield a view that sends requests ahead."""
        with closing(PrefetchedFileIO(inner=self)) as view:
            yield view

    def to_uri(self, path: str) -> str:
        """Return the location in the form of Hadoop's connectors, special characters percent-encoded."""
        return f"{self.settings.hadoop_root}/{quote(self._key(path), safe='/=:@!$&()*+,;~')}"

    def _key(self, path: str) -> str:
        root = self.settings.address.root
        if path != root and not path.startswith(f"{root}/"):
            raise StorageError(f"cannot use {path!a} here: it is outside of {root}")
        key = path[len(root) :].strip("/")
        length = len(key) if self.settings.address.kind is StoreKind.AZURE else len(key.encode(errors="replace"))
        if length > _MAX_KEY:
            raise StorageError(
                f"cannot use {path}: the name of an object has at most {_MAX_KEY} bytes, and this one has {length} "
                "after the bucket; shorten the values of the partition columns, or the names in the location"
            )
        return key

    @contextmanager
    def _failing(self, action: str, path: str) -> Iterator[StoreClient]:
        try:
            yield client_of(self.settings)
        except StoreFailureError as error:
            raise error.failure.to_error(action, path, self.settings.address.bucket) from None


def settings_of(file_io: FileIO) -> StoreSettings | None:
    """Return how the object store that holds the files is opened; None if they are on no object store."""
    storage = file_io.storage
    return storage.settings if isinstance(storage, ObjectFileIO) else None


def _is_marker(meta: Any, directory: str, directories: set[str]) -> bool:  # noqa: ANN401 - of a library without types
    path = meta["path"]
    name = path.rpartition("/")[2]
    is_directory = path == directory or (meta["size"] == 0 and path in directories)
    return is_directory or name.endswith(_MARKER_SUFFIX) or name.startswith(PREFIX)


def _has_object(client: StoreClient, key: str) -> bool:
    try:
        client.call(lambda library, store: library.head(store, key))
    except StoreFailureError as error:
        if error.failure.is_missing:
            return False
        if not error.failure.is_unexplained:
            raise
        return _has_content(client, key)
    return True


def _has_content(client: StoreClient, key: str) -> bool:
    """Whether there is an object, by a request whose refusal has a text."""
    try:
        client.call(lambda library, store: library.get(store, key, options={"range": (0, 1)}))
    except StoreFailureError as error:
        if error.failure.is_missing:
            return False
        raise
    return True


def _delete(client: StoreClient, keys: Sequence[str]) -> None:
    if not keys:
        return
    try:
        client.call(lambda library, store: library.delete(store, keys if len(keys) > 1 else keys[0]))
    except StoreFailureError as error:
        # Azure rejects the whole request if one object is missing, and does not report on the others.
        if not error.failure.is_missing:
            raise
        for key in keys if len(keys) > 1 else ():
            _delete(client, [key])


def _keys_below(client: StoreClient, key: str, *, max_keys: int | None) -> list[str]:
    """Return the keys of objects inside a directory at any depth, markers included."""
    prefix = f"{key}/" if key else None

    def load(library: Any, store: Any) -> list[str]:  # noqa: ANN401 - of a library without types
        found: list[str] = []
        for chunk in library.list(store, prefix, chunk_size=max_keys or 1000):
            found += [meta["path"] for meta in chunk]
            if max_keys is not None and found:
                break
        return found

    return client.call(load)
