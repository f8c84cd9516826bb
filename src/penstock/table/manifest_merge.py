"""Keeping the number of manifests small, so that commit time does not grow with history.

Source:
    Paimon ``core:operation/ManifestFileMerger.java``; spec/commit.md section 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.spec.entries import merge_entries
from penstock.spec.manifest import FileIdentity, FileKind, ManifestEntry, ManifestFileMeta

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.options import ManifestOptions

    LoadManifest = Callable[[ManifestFileMeta], Sequence[ManifestEntry]]
    WriteManifests = Callable[[Sequence[ManifestEntry]], tuple[ManifestFileMeta, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """Some manifests of a list, and those that take their place.

    Attributes:
        inputs: names, in list order.
        outputs: stand where the first input stood.
    """

    inputs: tuple[str, ...]
    outputs: tuple[ManifestFileMeta, ...]


def merge_manifests(
    manifests: Sequence[ManifestFileMeta], options: ManifestOptions, load: LoadManifest, write: WriteManifests
) -> tuple[Merge, ...]:
    """Choose and rewrite the manifests that are worth it; mostly none.

    Args:
        manifests: base list, then delta list, of the snapshot to build on.

    Returns:
        Replacements with disjoint inputs, for ``apply_merges``.
    """
    full = _full_merge(manifests, options, load, write)
    if full is not None:
        return (full,)
    merges = []
    for run in _minor_runs(manifests, options):
        merged = merge_entries(entry for meta in run for entry in load(meta))
        # Deletes of files in older manifests stay: this run does not see those.
        merges.append(Merge(inputs=_names(run), outputs=write(tuple(merged.values()))))
    return tuple(merges)


def apply_merges(manifests: Sequence[ManifestFileMeta], merges: Sequence[Merge]) -> tuple[ManifestFileMeta, ...]:
    """Return the list with each merge's outputs in the place of its first input.

    A merge one of whose inputs is not in the list is left out: the list has moved on.
    """
    present = {meta.file_name for meta in manifests}
    first: dict[str, Merge] = {}
    gone: set[str] = set()
    for merge in merges:
        if present.issuperset(merge.inputs):
            first[merge.inputs[0]] = merge
            gone.update(merge.inputs)
    result: list[ManifestFileMeta] = []
    for meta in manifests:
        if meta.file_name in first:
            result.extend(first[meta.file_name].outputs)
        elif meta.file_name not in gone:
            result.append(meta)
    return tuple(result)


def _full_merge(
    manifests: Sequence[ManifestFileMeta], options: ManifestOptions, load: LoadManifest, write: WriteManifests
) -> Merge | None:
    target = options.manifest_target_file_bytes
    dirty_bytes = sum(meta.file_size for meta in manifests if _is_dirty(meta, target))
    if dirty_bytes < options.manifest_full_compaction_threshold_bytes:
        return None
    deleted = {
        entry.identity
        for meta in manifests
        if meta.num_deleted_files > 0
        for entry in load(meta)
        if entry.kind is FileKind.DELETE
    }
    chosen: list[ManifestFileMeta] = []
    live: list[ManifestEntry] = []
    for meta in manifests:
        entries = load(meta) if _is_dirty(meta, target) or deleted else ()
        if _is_dirty(meta, target) or any(entry.identity in deleted for entry in entries):
            chosen.append(meta)
            live.extend(_live_adds(entries, deleted))
    if len(chosen) <= 1:
        return None
    # Every input was seen, so no delete is needed any more.
    return Merge(inputs=_names(chosen), outputs=write(tuple(live)))


def _live_adds(entries: Sequence[ManifestEntry], deleted: set[FileIdentity]) -> list[ManifestEntry]:
    return [entry for entry in entries if entry.kind is FileKind.ADD and entry.identity not in deleted]


def _minor_runs(manifests: Sequence[ManifestFileMeta], options: ManifestOptions) -> list[tuple[ManifestFileMeta, ...]]:
    runs: list[tuple[ManifestFileMeta, ...]] = []
    run: list[ManifestFileMeta] = []
    size = 0
    for meta in manifests:
        run.append(meta)
        size += meta.file_size
        if size >= options.manifest_target_file_bytes:
            if len(run) > 1:
                runs.append(tuple(run))
            run, size = [], 0
    if len(run) >= max(2, options.manifest_merge_min_count):
        runs.append(tuple(run))
    return runs


def _is_dirty(meta: ManifestFileMeta, target_bytes: int) -> bool:
    return meta.num_deleted_files > 0 or meta.file_size < target_bytes


def _names(manifests: Sequence[ManifestFileMeta]) -> tuple[str, ...]:
    return tuple(meta.file_name for meta in manifests)
