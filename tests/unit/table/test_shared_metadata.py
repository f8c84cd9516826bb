"""Which contents of metadata files a process keeps."""

from __future__ import annotations

from penstock.io.memory import MemoryFileIO
from penstock.table.shared_metadata import SharedFiles


def test_what_nobody_has_used_for_ten_minutes_is_evicted() -> None:
    now = [0.0]
    files, file_io = SharedFiles(1_000_000, clock=lambda: now[0]), MemoryFileIO("cached")
    for minute in range(30):
        now[0] = 60.0 * minute
        files.put(file_io, f"manifest-{minute}", b"content")
        assert files.get(file_io, "manifest-0") == b"content"
    kept = [minute for minute in range(30) if files.get(file_io, f"manifest-{minute}") is not None]
    assert kept == [0, *range(19, 30)]


def test_the_least_recently_used_is_evicted_first() -> None:
    files, file_io = SharedFiles(25), MemoryFileIO("cached")
    for name in ("a", "b"):
        files.put(file_io, name, b"0123456789")
    files.get(file_io, "a")
    files.put(file_io, "c", b"0123456789")
    assert [files.get(file_io, name) is not None for name in ("a", "b", "c")] == [True, False, True]
    files.put(file_io, "a", b"012345678901234")
    assert files.get(file_io, "a") == b"012345678901234"
    files.clear()
    assert files.get(file_io, "a") is None
