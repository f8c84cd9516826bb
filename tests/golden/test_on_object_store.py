"""Golden tables copied to an object store read there as they do on disk."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import pytest
from tests.golden.test_read_tables import DATA, LOCATIONS, open_table, read_state

from penstock.table.location import TableLocation
from penstock.table.ref import TableRef
from penstock.table.store import MetadataStore

if TYPE_CHECKING:
    from tests.s3_server import S3Bucket

# One of each format and kind; the long run has all.
FEW: Final = frozenset(sorted(LOCATIONS)[::6]) | {name for name in LOCATIONS if name.startswith("types_")}


@pytest.fixture(scope="module")
def root(s3_bucket: S3Bucket) -> str:
    """Copy the tables that the tests read."""
    file_io, root = s3_bucket.file_io, f"{s3_bucket.root}/golden"
    files = [path for name in FEW for path in LOCATIONS[name].rglob("*") if path.is_file()]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda path: file_io.write(f"{root}/{path.relative_to(DATA)}", path.read_bytes()), files))
    return root


@pytest.mark.parametrize("name", sorted(FEW))
def test_a_copied_table_reads_equal(name: str, root: str, s3_bucket: S3Bucket) -> None:
    local_store, local = open_table(name)
    location = f"{root}/{LOCATIONS[name].relative_to(DATA)}"
    store = MetadataStore(TableLocation(file_io=s3_bucket.file_io, location=location, name=name))
    ref = TableRef(name=name, location=location, file_io=s3_bucket.file_io, schema=store.load_latest_schema())
    snapshot = store.load_latest_snapshot()
    assert snapshot == local_store.load_latest_snapshot()
    assert store.list_tags() == local_store.list_tags()
    here, there = read_state(local_store, local, snapshot), read_state(store, ref, snapshot)
    assert there.schema == here.schema
    assert repr(there.to_pylist()) == repr(here.to_pylist())  # of equal NaNs too
