"""Merging of manifests, so that their number stays small and commit time does not grow with history.

Source:
    Paimon ``core:operation/ManifestFileMerger.java``; docs/spec/commit.md section 4.3.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.format.manifest.entries import merge_entries
from penstock.format.manifest.entry import FileKind
from penstock.table.commit.manifest_write import least_split_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from penstock.format.manifest.entry import FileIdentity, ManifestEntry, ManifestFileMeta
    from penstock.options import ManifestOptions

    LoadManifest = Callable[[ManifestFileMeta], Sequence[ManifestEntry]]
    WriteManifests = Callable[[Sequence[ManifestEntry]], tuple[ManifestFileMeta, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """Neighbouring manifests of a list, and the manifests that replace them.

    Attributes:
        inputs: names, in list order.
    """

    inputs: tuple[str, ...]
    outputs: tuple[ManifestFileMeta, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """Replacements that are applied together or not at all.

    One part may have dropped a DELETE entry because another part has dropped the ADD entry of that file.
    """

    parts: tuple[Replacement, ...]


def merge_manifests(
    manifests: Sequence[ManifestFileMeta], options: ManifestOptions, load: LoadManifest, write: WriteManifests
) -> tuple[Merge, ...]:
    """Choose the manifests that are worth merging (mostly none) and rewrite them. Live entries keep their order.

    Manifests with fields of a newer release of Paimon are not merged.

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
        if _has_newer(merged.values()):
            continue
        # DELETE entries for files of older manifests are kept, as this run does not contain those manifests.
        merges.append(Merge(parts=(Replacement(inputs=_names(run), outputs=write(tuple(merged.values()))),)))
    return tuple(merges)


def apply_merges(manifests: Sequence[ManifestFileMeta], merges: Sequence[Merge]) -> tuple[ManifestFileMeta, ...]:
    """Return the list with the outputs of each replacement in place of its first input.

    A merge is skipped if one of its inputs is not in the list any more.
    """
    present = {meta.file_name for meta in manifests}
    outputs: dict[str, tuple[ManifestFileMeta, ...]] = {}
    for merge in merges:
        if all(present.issuperset(part.inputs) for part in merge.parts):
            for part in merge.parts:
                outputs |= dict.fromkeys(part.inputs, ())
                outputs[part.inputs[0]] = part.outputs
    return tuple(each for meta in manifests for each in outputs.get(meta.file_name, (meta,)))


def _full_merge(
    manifests: Sequence[ManifestFileMeta], options: ManifestOptions, load: LoadManifest, write: WriteManifests
) -> Merge | None:
    target = options.manifest_target_file_bytes
    dirty_bytes = sum(meta.file_size for meta in manifests if _is_dirty(meta, target))
    if dirty_bytes < options.manifest_full_compaction_threshold_bytes:
        return None
    gone = _find_gone(manifests, load)
    runs = [
        run for run in _full_runs(manifests, gone, target_bytes=target) if len(run) > 1 or gone.get(run[0].file_name)
    ]
    if sum(map(len, runs)) <= 1:
        return None
    parts = []
    for run in runs:
        live = tuple(
            entry
            for meta in run
            for position, entry in enumerate(load(meta))
            if position not in gone.get(meta.file_name, ())
        )
        if _has_newer(live):
            return None
        parts.append(Replacement(inputs=_names(run), outputs=write(live)))
    return Merge(parts=tuple(parts))


def _find_gone(manifests: Sequence[ManifestFileMeta], load: LoadManifest) -> dict[str, set[int]]:
    """Find the entries that cancel each other over all manifests: DELETE entries, and the ADD entries they delete.

    Returns:
        Manifest name to the positions of such entries.
    """
    deleted_names = {
        entry.file.file_name
        for meta in manifests
        if meta.num_deleted_files > 0
        for entry in load(meta)
        if entry.kind is FileKind.DELETE
    }
    gone: dict[str, set[int]] = defaultdict(set)
    added: dict[FileIdentity, tuple[str, int]] = {}
    for meta in manifests if deleted_names else ():
        for position, entry in enumerate(load(meta)):
            if entry.file.file_name not in deleted_names:
                continue
            if entry.kind is FileKind.ADD:
                added[entry.identity] = (meta.file_name, position)
                continue
            gone[meta.file_name].add(position)
            if entry.identity in added:
                name, place = added.pop(entry.identity)
                gone[name].add(place)
    return gone


def _full_runs(
    manifests: Sequence[ManifestFileMeta], gone: Mapping[str, set[int]], *, target_bytes: int
) -> list[list[ManifestFileMeta]]:
    """Return runs of neighbouring manifests to rewrite together: dirty manifests, and those that lose entries.

    A run whose output would be too small includes the clean manifest after it. Otherwise the output would be dirty
    again, and every later commit would rewrite it.
    """
    runs: list[list[ManifestFileMeta]] = []
    run: list[ManifestFileMeta] = []
    size = 0
    for meta in manifests:
        lost = len(gone.get(meta.file_name, ()))
        if not _is_dirty(meta, target_bytes) and not lost:
            if run and (size == 0 or size >= least_split_bytes(target_bytes)):
                runs.append(run)
                run, size = [], 0
            if not run:
                continue
        run.append(meta)
        count = _entry_count(meta)
        size += meta.file_size * (count - lost) // max(count, 1)
    return [*runs, run] if run else runs


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
        runs.append(tuple(_worth_merging(run)))
    return runs


def _worth_merging(run: Sequence[ManifestFileMeta]) -> Sequence[ManifestFileMeta]:
    """Return the end of a run, starting after the last manifest that has more than twice the entries of all after it.

    If only one manifest follows, the whole run is returned.

    The reference rewrites the whole run, so every 30th commit rewrites everything below the target size: 0.3 s on
    10,000 entries, several seconds just below 8 MB. Here a manifest that is merged grows at least by half, so an entry
    is rewritten only a few times in all. The sizes of the manifests that are not merged fall by a factor of three each,
    so there are few of them. Size is measured in entries, since half the bytes of small manifests are their header.
    """
    start = len(run) - 1
    weight = _entry_count(run[start])
    while start > 0 and _entry_count(run[start - 1]) <= 2 * weight:
        start -= 1
        weight += _entry_count(run[start])
    return run[start:] if start < len(run) - 1 else run


def _has_newer(entries: Iterable[ManifestEntry]) -> bool:
    """Whether manifests have fields of a newer release of Paimon, which a merge would drop."""
    return any(entry.file.is_of_newer_release for entry in entries)


def _entry_count(meta: ManifestFileMeta) -> int:
    return meta.num_added_files + meta.num_deleted_files


def _is_dirty(meta: ManifestFileMeta, target_bytes: int) -> bool:
    return meta.num_deleted_files > 0 or meta.file_size < target_bytes


def _names(manifests: Sequence[ManifestFileMeta]) -> tuple[str, ...]:
    return tuple(meta.file_name for meta in manifests)
