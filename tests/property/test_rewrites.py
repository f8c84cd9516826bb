"""What a rewrite is not meant to change is equal, cell by cell, before and after it; and every rewrite is known."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from tests.rewrites import REWRITES, SPARK_REWRITES, World

import penstock
from penstock.io import memory
from penstock.io.memory import MemoryFileIO

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock import Catalog

SOURCE: Final = Path(penstock.__file__).parent
STEPS: Final = 8

# Modules that replace files by files with the same rows, and an operation of the property tests that they run for.
REWRITING: Final = {
    "table/actions/rescale.py": "rescale",
    "table/compact/rewrite.py": "compact",
    "table/compact/sort.py": "sort",
    "table/dml/replacement.py": "MERGE",
    "table/dml/run.py": "merge",
}
# The others that name files to remove.
REMOVING: Final = {
    "table/actions/file_indexes.py": "replaces the indexes of files, which stay",
    "table/actions/missing_files.py": "removes files that are lost",
    "table/actions/rescale.py": "removes files whose rows deletion vectors have all deleted",
    "table/actions/restore.py": "puts files back as they were",
    "table/expire/partitions.py": "removes whole partitions",
}
# Those that remove what is in a scope.
OVERWRITING: Final = {
    "catalog/staged_tables.py": "rows of a query replace the table",
    "table/actions/changes.py": "rows of the user replace those in the scope",
    "table/actions/rescale.py": "rescale",
    "table/stream_sink/committer.py": "a batch replaces the table",
}


def test_every_place_that_replaces_files_is_known() -> None:
    """A new operation that rewrites rows calls ``as_replacement``, and gets a place in the property test."""
    found = list(_calls())
    assert {path for path, name, _ in found if name == "as_replacement"} == set(REWRITING)
    assert {path for path, _, names in found if "compact_before" in names} == {
        *(set(REWRITING) - set(OVERWRITING)),
        *REMOVING,
    }
    assert {path for path, name, names in found if name == "CommitRequest" and "scope" in names} == set(OVERWRITING)
    assert set(REWRITING.values()) <= {each.name for each in (*REWRITES, *SPARK_REWRITES)}


def _calls() -> Iterator[tuple[str, str, set[str]]]:
    """Yield the calls of the package: file, name of the function, names of the arguments."""
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text()
        if not any(name in text for name in ("as_replacement", "compact_before", "CommitRequest")):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call):
                name = node.func.id if isinstance(node.func, ast.Name) else ""
                names = {each.arg for each in node.keywords if each.arg is not None}
                yield path.relative_to(SOURCE).as_posix(), name, names


@pytest.mark.parametrize("seed", range(5))
def test_a_rewrite_changes_only_what_it_is_meant_to_change(seed: int) -> None:
    _run(seed)


@pytest.mark.parametrize("seed", range(3))
def test_a_rewrite_leaves_rows_that_vectors_delete_out(seed: int) -> None:
    _run(seed, deletes=True)


@pytest.mark.parametrize("seed", range(3))
def test_a_rewrite_keeps_the_ids_of_rows(seed: int) -> None:
    _run(seed, deletes=seed % 2 == 0, tracked=True)


@pytest.mark.slow
@pytest.mark.parametrize("group", range(10))
def test_thousands_of_rewrites_change_only_what_they_are_meant_to_change(group: int) -> None:
    for seed in range(1000 * (group + 1), 1000 * (group + 1) + 63):
        _run(seed)
        _run(seed, deletes=True)
        _run(seed, deletes=seed % 2 == 0, tracked=True)


def _run(seed: int, *, deletes: bool = False, tracked: bool = False) -> None:
    world = World(seed, _catalog, _copy, MemoryFileIO, deletes=deletes, tracked=tracked)
    for _ in range(STEPS):
        world.step(REWRITES)
    _forget()


@pytest.fixture(autouse=True)
def _cleaned() -> Iterator[None]:
    yield
    _forget()


def _forget() -> None:
    for name in [name for name in memory._STORES if name.startswith("rewrites-")]:
        del memory._STORES[name]


def _catalog(name: str) -> Catalog:
    return penstock.Catalog(f"memory://{name}/w")


def _copy(source: str, target: str) -> None:
    copied, given = MemoryFileIO(target), MemoryFileIO(source)
    for path, (data, _) in list(given._store().objects.items()):
        copied.write(path.replace(f"//{source}/", f"//{target}/", 1), data)
