"""Run in a process of its own: what a table does under limits of the operating system. Ends with 0 if all is well."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

import penstock
from penstock.clocks import utc_millis
from penstock.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OPTIONS: Final = {"write-only": "true", "commit.max-retries": "1", "commit.min-retry-wait": "1 ms"}


def rows(number: int, size: int = 10_000) -> pa.Table:
    return pa.table({"k": pa.array([number], pa.int64()), "s": [os.urandom(size).hex()]})


def new_table(root: Path, name: str, **options: str) -> penstock.Table:
    catalog = penstock.Catalog(str(root))
    if "d" not in catalog.list_databases():
        catalog.create_database("d")
    return catalog.create_table(f"d.{name}", "k BIGINT, s STRING", options={**OPTIONS, **options})


def keys(table: penstock.Table) -> list[int]:
    return sorted(row["k"] for row in table.to_arrow().to_pylist())


def failure_of(call: Callable[[], object]) -> StorageError | None:
    """Return what it fails with; None when it works. Other errors are none of ours."""
    try:
        call()
    except StorageError as error:
        return error
    return None


def fails(call: Callable[[], object], number: int) -> str:
    """The call fails with an error of ours that comes from this answer of the system."""
    error = failure_of(call)
    assert error is not None
    cause: BaseException | None = error
    while cause is not None and not (isinstance(cause, OSError) and cause.errno == number):
        cause = cause.__cause__
    assert cause is not None, repr(error)
    return str(error)


@contextlib.contextmanager
def limited(kind: int, limit: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(kind, (soft, hard))


def check_full_disk(root: Path) -> None:
    """A full disk loses nothing, and expiring snapshots frees it."""
    for file_format in ("orc", "parquet", "avro"):
        table = new_table(root, file_format, **{"file.format": file_format})
        done = 0
        while (error := failure_of(partial(table.overwrite, rows(done, 30_000)))) is None:
            done += 1
            assert done < 1_000
        assert "free space" in str(error)
        assert done > 0
        with contextlib.suppress(OSError), (root / "filler").open("wb", buffering=0) as filler:
            while filler.write(bytes(4096)):
                pass
        assert os.statvfs(root).f_bavail == 0
        assert keys(table) == [done - 1]
        fails(partial(table.append, rows(done)), errno.ENOSPC)
        expired = table.expire_snapshots(retain_min=1, older_than=utc_millis() + 1)
        assert len(expired.snapshot_ids) == done - 1
        table.append(rows(done))
        assert keys(table) == [done - 1, done]
        orphans = table.remove_orphan_files(older_than=utc_millis(), dry_run=False, allow_recent=True)
        assert orphans.orphans == ()
        (root / "filler").unlink()


def check_file_size(root: Path) -> None:
    """A limit of file sizes fails writes, where the system would end other programs."""
    table = new_table(root, "sizes")
    table.append(rows(1))
    with limited(resource.RLIMIT_FSIZE, 100_000):
        assert "ulimit -f" in fails(lambda: table.append(rows(2, 200_000)), errno.EFBIG)
    table.append(rows(2, 200_000))
    assert keys(table) == [1, 2]


def check_open_files(root: Path) -> None:
    """Too few handles, with many threads: whatever fails leaves none open."""
    table = new_table(root, "handles", bucket="8", **{"bucket-key": "k"})
    many = pa.table({"k": pa.array(range(200), pa.int64()), "s": ["x" * 100] * 200})
    table.append(many)
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - only counted
    failures = 0
    for more in range(13):
        for call in (lambda: table.append(many), table.to_arrow, table.compact):
            with limited(resource.RLIMIT_NOFILE, before + more):
                error = failure_of(call)
            failures += error is not None
            assert error is None or "ulimit -n" in str(error)
            del error
            assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - only counted
    assert failures > 0
    count = table.latest_snapshot().total_record_count or 0  # type: ignore[union-attr] # it has some
    assert table.to_arrow().num_rows == count
    table.append(many)
    assert table.to_arrow().num_rows == count + 200
    orphans = table.remove_orphan_files(older_than=utc_millis(), dry_run=False, allow_recent=True)
    assert orphans.orphans == ()


CHECKS: Final[dict[str, Callable[..., None]]] = {
    "disk": check_full_disk,
    "size": check_file_size,
    "handles": check_open_files,
}

if __name__ == "__main__":
    for name in sys.argv[2].split(","):
        CHECKS[name](Path(sys.argv[1]))
