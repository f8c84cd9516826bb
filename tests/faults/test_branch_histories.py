"""Random histories of branches: a failure or another operation at every call to storage of a branch operation.

A branch operation that failed is complete or undone, can be repeated, and leaves no name that neither exists nor can be
created; nothing that was acknowledged is lost.
"""

from __future__ import annotations

import itertools
import random
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from unittest import mock

import pytest

import penstock
from penstock import AddColumn
from penstock.clocks import utc_millis
from penstock.errors import AlreadyExistsError, CommitConflictError, NotFoundError, TableStoreError
from penstock.io.memory import MemoryFileIO
from penstock.table import branches
from penstock.table.assumptions import load_identity
from penstock.table.process import this_process
from penstock.table.read.live import load_live_entries
from penstock.table.ref import FileLocator
from penstock.table.store import MetadataStore
from penstock.testing.file_io import FailingFileIO, Fault, Operation, ProcessDiedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.format.snapshot import Snapshot

ROOT: Final = "memory://branch-histories"
NAMES: Final = ("a", "b", "c")
TAGS: Final = ("s", "t", "u")
STEPS: Final = 14
FAULTS: Final = tuple(Fault)
OPTIONS: Final = {"write-only": "true", "file-operation.thread-num": "1"}
COUNTER: Final = itertools.count(1)
FAR: Final = 10**9
CRASHES: Final = frozenset({Fault.CRASH_BEFORE, Fault.CRASH_AFTER})
DEAD: Final = replace(this_process(), pid=2**22 + 1)  # more than Linux allows


class SteppedFileIO(FailingFileIO):
    """A storage whose recursive deletion deletes one file after the other, in any order, as real ones do.

    Attributes:
        beside: called before call ``at``, if there is no fault.
    """

    beside: Callable[[], None] | None = None
    order: random.Random

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        if not recursive or not isinstance(self.inner, MemoryFileIO):
            return super().delete(path, recursive=recursive)
        below = self.inner._store().below(path)
        self.order.shuffle(below)
        for each in below:
            super().delete(each)
        return bool(below)

    def _call(self, operation: Operation, path: str, effect: Any) -> Any:
        beside = self.beside
        if beside is not None and self.call_count + 1 == self.at:
            self.beside = None
            beside()
        return super()._call(operation, path, effect)


@dataclass(slots=True)
class History:
    """The data files of the snapshots and tags of a branch, by their ids and names.

    Attributes:
        identity: of the branch; None until it was loaded.
    """

    snapshots: dict[int, frozenset[str]] = field(default_factory=dict)
    tags: dict[str, tuple[int, frozenset[str]]] = field(default_factory=dict)
    identity: str | None = None

    @property
    def latest_id(self) -> int:
        return max(self.snapshots, default=0)

    def view(self) -> dict[str, frozenset[str]]:
        """What a reader sees: the latest snapshot and the tags."""
        return {
            "": self.snapshots.get(self.latest_id, frozenset()),
            **{tag: files for tag, (_, files) in self.tags.items()},
        }


@dataclass(slots=True)
class Model:
    main: History = field(default_factory=History)
    branches: dict[str, History] = field(default_factory=dict)

    def views(self) -> dict[str, dict[str, frozenset[str]]]:
        return {"main": self.main.view(), **{name: each.view() for name, each in self.branches.items()}}

    def without(self, name: str) -> Model:
        found = deepcopy(self)
        found.branches.pop(name, None)
        return found

    def with_branch(self, name: str, history: History) -> Model:
        found = deepcopy(self)
        found.branches[name] = deepcopy(history)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchOperation:
    """A branch operation; ``after`` is the state that it leaves if it succeeds."""

    name: str
    run: Callable[[penstock.Table], Any]
    after: Model
    between: tuple[Model, ...] = ()
    names: tuple[str, ...] = ()


def load(storage: Any, branch: str | None = None) -> penstock.Table:
    catalog = penstock.Catalog(ROOT)
    catalog._warehouse = replace(catalog._warehouse, file_io=storage)
    return catalog.load_table("db.t" if branch is None else f"db.t$branch_{branch}")


def new_storage(source: MemoryFileIO | None = None) -> MemoryFileIO:
    storage = MemoryFileIO(f"branch-histories-{next(COUNTER)}")
    if source is not None:
        store, old = storage._store(), source._store()
        store.objects, store.paths = dict(old.objects), list(old.paths)
    return storage


def files_of(table: penstock.Table, snapshot: Snapshot | None) -> frozenset[str]:
    """Return the data files of a snapshot; fail if one is missing."""
    if snapshot is None:
        return frozenset()
    locator, store = FileLocator.of(table._ref), MetadataStore(table._ref)
    paths = {
        locator.path(entry.partition, entry.bucket, entry.file) for entry in load_live_entries(store, snapshot).values()
    }
    for path in paths:
        assert table._ref.file_io.exists(path), f"{path} of snapshot {snapshot.id} of {table.name} is missing"
    return frozenset(paths)


def view_of(storage: Any, branch: str | None) -> dict[str, frozenset[str]]:
    table = load(storage, branch)
    store = MetadataStore(table._ref)
    return {
        "": files_of(table, store.load_latest_snapshot()),
        **{name: files_of(table, store.load_tag(name).snapshot) for name in store.list_tags()},
    }


def views_of(storage: Any) -> dict[str, dict[str, frozenset[str]]]:
    names: list[Any] = load(storage).inspect.branches().column("branch_name").to_pylist()
    return {"main": view_of(storage, None), **{name: view_of(storage, name) for name in names}}


def remove_orphans(storage: Any) -> None:
    load(storage).remove_orphan_files(older_than=utc_millis(), dry_run=False, allow_recent=True)


class World:
    """One history: a storage, and the model of what is in it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - not for keys
        self.storage = new_storage()
        self.model = Model()
        self.handles: list[tuple[str, str, penstock.Table]] = []
        self.dead: set[str] = set()
        self.cases = 0
        catalog = penstock.Catalog(ROOT)
        catalog._warehouse = replace(catalog._warehouse, file_io=self.storage)
        catalog.create_database("db")
        catalog.create_table("db.t", "k BIGINT", options=OPTIONS)
        self.write(None)

    # Steps without faults

    def step(self) -> None:
        choice = self.random.choice
        steps = [self.write_any, self.write_any, self.tag, self.untag, self.expire, self.roll_back, self.alter]
        choice([*steps, self.expire, lambda: remove_orphans(self.storage), self.branch, self.branch, self.branch])()

    def history(self, branch: str | None) -> History:
        return self.model.main if branch is None else self.model.branches[branch]

    def any_branch(self) -> str | None:
        return self.random.choice([None, *self.model.branches])

    def write_any(self) -> None:
        self.write(self.any_branch())

    def write(self, branch: str | None) -> None:
        table, history = load(self.storage, branch), self.history(branch)
        rows = [self.row(table)]
        kind = self.random.randrange(3)
        if kind == 0 or not history.snapshots:
            snapshot = table.append(rows)
        elif kind == 1:
            snapshot = table.overwrite(rows, partition={})
        else:
            table.compact(strategy="full", options={"compaction.force-rewrite-all-files": "true"})
            snapshot = table.latest_snapshot()
        assert snapshot is not None
        history.snapshots[snapshot.id] = files_of(table, snapshot)

    def tag(self) -> None:
        branch, name = self.any_branch(), self.random.choice(TAGS)
        table, history = load(self.storage, branch), self.history(branch)
        if not history.snapshots:
            return
        chosen = self.random.choice(sorted(history.snapshots))
        if name in history.tags:
            table.versions.replace_tag(name, snapshot_id=chosen)
        else:
            table.create_tag(name, snapshot_id=chosen)
        history.tags[name] = (chosen, history.snapshots[chosen])

    def untag(self) -> None:
        branch = self.any_branch()
        history = self.history(branch)
        if history.tags:
            name = self.random.choice(sorted(history.tags))
            load(self.storage, branch).versions.delete_tag(name)
            del history.tags[name]

    def expire(self) -> None:
        expire(self.storage, self.random.choice([1, 1, 2]))
        kept = MetadataStore(load(self.storage)._ref).list_snapshot_ids()
        self.model.main.snapshots = {each: self.model.main.snapshots[each] for each in kept}

    def let_tags_keep_files(self) -> None:
        """Make the tags of main the only readers of their files besides branches."""
        if self.random.randrange(3):
            self.tag()
            load(self.storage).overwrite([self.row(load(self.storage))], partition={})
            self.model.main.snapshots[self.model.main.latest_id + 1] = view_of(self.storage, None)[""]
            self.expire()

    def row(self, table: penstock.Table) -> dict[str, int | None]:
        return {**dict.fromkeys(table.schema.field_names), "k": next(COUNTER)}

    def roll_back(self) -> None:
        main = self.model.main
        target = self.random.choice(sorted(main.snapshots))
        load(self.storage).rollback_to(snapshot_id=target)
        main.snapshots = {each: files for each, files in main.snapshots.items() if each <= target}
        main.tags = {name: tag for name, tag in main.tags.items() if tag[0] <= target}

    def alter(self) -> None:
        catalog = penstock.Catalog(ROOT)
        catalog._warehouse = replace(catalog._warehouse, file_io=self.storage)
        catalog.alter_table("db.t", AddColumn(column=f"c{next(COUNTER)}", type="INT"))

    # Branch operations

    def branch(self) -> None:
        operation = self.operation()
        operation.run(load(self.storage))
        self.model = operation.after
        self.note_identities()

    def operation(self) -> BranchOperation:
        names = sorted(self.model.branches)
        free = sorted(set(NAMES) - set(names))
        kinds = [
            *([self.creation] * 2 if free else []),
            *([self.deletion, self.renaming, self.forward] if names else []),
        ]
        kinds = [each for each in kinds if each != self.renaming or free]
        return self.random.choice(kinds)()

    def creation(self) -> BranchOperation:
        name = self.random.choice(sorted(set(NAMES) - set(self.model.branches)))
        main, source = self.model.main, self.random.choice(["tag", "snapshot", "tag", "nothing"])
        history, arguments = History(), dict[str, Any]()
        if source == "tag" and main.tags:
            tag = self.random.choice(sorted(main.tags))
            chosen, files = main.tags[tag]
            history, arguments = History(snapshots={chosen: files}, tags={tag: (chosen, files)}), {"tag": tag}
        elif source == "snapshot":
            chosen = self.random.choice(sorted(main.snapshots))
            history, arguments = History(snapshots={chosen: main.snapshots[chosen]}), {"snapshot_id": chosen}
        return BranchOperation(
            name=f"create_branch {name} {arguments}",
            run=lambda table: table.versions.create_branch(name, **arguments),
            after=self.model.with_branch(name, history),
            names=(name,),
        )

    def deletion(self) -> BranchOperation:
        name = self.random.choice(sorted(self.model.branches))
        return BranchOperation(
            name=f"delete_branch {name}",
            run=lambda table: table.versions.delete_branch(name),
            after=self.model.without(name),
            names=(name,),
        )

    def renaming(self) -> BranchOperation:
        old = self.random.choice(sorted(self.model.branches))
        new = self.random.choice(sorted(set(NAMES) - set(self.model.branches)))
        return BranchOperation(
            name=f"rename_branch {old} {new}",
            run=lambda table: table.versions.rename_branch(old, new),
            after=self.model.without(old).with_branch(new, self.model.branches[old]),
            names=(old, new),
        )

    def forward(self) -> BranchOperation:
        name = self.random.choice(sorted(self.model.branches))
        main, theirs = self.model.main, self.model.branches[name]
        is_base = theirs.snapshots.get(main.latest_id) == main.snapshots[main.latest_id]
        between = [deepcopy(self.model)]
        if is_base:
            for each in sorted(set(theirs.snapshots) - set(range(main.latest_id + 1))):
                between.append(deepcopy(between[-1]))
                between[-1].main.snapshots[each] = theirs.snapshots[each]
            for tag in sorted(set(theirs.tags) - set(main.tags)):
                between.append(deepcopy(between[-1]))
                between[-1].main.tags[tag] = theirs.tags[tag]
        elif not theirs.snapshots:
            for tag in sorted(set(theirs.tags) - set(main.tags)):
                raise AssertionError(tag)

        def run(table: penstock.Table) -> None:
            if is_base or not theirs.snapshots:
                table.versions.fast_forward(name)
            else:
                with pytest.raises(CommitConflictError):
                    table.versions.fast_forward(name)

        return BranchOperation(
            name=f"fast_forward {name}", run=run, after=between[-1], between=tuple(between), names=(name,)
        )

    # Checks

    def note_identities(self) -> None:
        """A branch keeps its identity, which differs from that of main and of all branches before."""
        found = {}
        for name, history in self.model.branches.items():
            table = load(self.storage, name)
            identity = load_identity(table._ref)
            assert history.identity in {None, identity}, f"the identity of branch {name} has changed"
            if history.identity is None:
                assert identity not in self.dead, f"branch {name} has the identity of another one"
                self.dead.add(identity)
                self.handles.append((identity, name, table))
            history.identity = identity
            found[name] = identity
        assert load_identity(load(self.storage)._ref) not in found.values(), "a branch has the identity of its table"
        for identity, name, table in self.handles:
            if found.get(name) != identity:
                with pytest.raises(NotFoundError):
                    table.append([self.row(table)])

    def check(self, storage: MemoryFileIO, allowed: tuple[Model, ...], operation: BranchOperation) -> Model:
        """Return the one of the allowed states that the storage has."""
        views = views_of(storage)
        states = [each for each in allowed if each.views() == views]
        assert states, f"it reads as {shown(views)}; expected {' or '.join(shown(each.views()) for each in allowed)}"
        cleaned = new_storage(storage)
        remove_orphans(cleaned)
        assert views_of(cleaned) == views, "orphan removal has changed something"
        for name in set(operation.names) - set(views):
            load(cleaned).versions.create_branch(name, snapshot_id=self.model.main.latest_id)
            assert view_of(cleaned, name)[""] == self.model.main.view()[""]
            load(cleaned).versions.delete_branch(name)
        cleaned.discard()
        return states[0]

    def fail_everywhere(self) -> None:
        """Make each call of one branch operation fail in one way, and go on from one of the results."""
        operation = self.operation()
        results: list[tuple[MemoryFileIO, Model]] = []
        before = deepcopy(self.model)
        for at in itertools.count(1):
            storage = new_storage(self.storage)
            failing = SteppedFileIO(storage)
            failing.order = self.random
            table = load(failing)
            failing.forget()
            failing.at, failing.fault = at, FAULTS[(at + self.cases) % 4]
            error: BaseException | None = None
            process = DEAD if failing.fault in CRASHES else this_process()
            try:
                with mock.patch.object(branches, "this_process", lambda process=process: process, create=True):
                    operation.run(table)
            except (TableStoreError, ProcessDiedError) as raised:
                error = raised
            if failing.call_count < at:
                storage.discard()
                break
            call = failing.calls[at - 1]
            self.cases += 1
            try:
                allowed = (operation.after,) if error is None else (before, operation.after, *operation.between)
                state = self.check(storage, allowed, operation)
                repeated = new_storage(storage)
                done = {"d": NotFoundError, "r": NotFoundError, "c": AlreadyExistsError}.get(operation.name[0])
                is_done = done is not None and state.views() == operation.after.views()
                with suppress(*([done] if done is not None and is_done else [])):
                    operation.run(load(repeated))
                assert views_of(repeated) == operation.after.views(), "repeated"
                repeated.discard()
            except (AssertionError, TableStoreError) as failure:
                failure.add_note(f"{operation.name}: {failing.fault} at call {at}, {call}: {error!r}")
                raise
            results.append((storage, state))
        self.go_on(results)

    def run_beside(self) -> None:
        """Run another operation before each call of one branch operation, and go on from one of the results."""
        operation = self.operation()
        results: list[tuple[MemoryFileIO, Model]] = []
        before = deepcopy(self.model)
        for at in itertools.count(1):
            storage = new_storage(self.storage)
            stepped = SteppedFileIO(storage)
            stepped.order = self.random
            table = load(stepped)
            stepped.forget()
            stepped.at = at
            name, beside = self.random.choice(self.others(storage, operation))
            errors: list[BaseException | None] = []

            stepped.beside = partial(note_error, beside, errors)
            note_error(partial(operation.run, table), errors)
            if stepped.call_count < at:
                storage.discard()
                break
            self.cases += 1
            try:
                results.append((storage, self.check_beside(storage, operation, before, name, errors)))
            except (AssertionError, TableStoreError) as failure:
                failure.add_note(f"{operation.name}: {name} before call {at}, {stepped.calls[at - 1]}: {errors!r}")
                raise
        self.go_on(results)

    def others(self, storage: MemoryFileIO, operation: BranchOperation) -> list[tuple[str, Callable[[], Any]]]:
        latest, name = self.model.main.latest_id, operation.names[-1]
        found: list[tuple[str, Callable[[], Any]]] = [
            ("expire", partial(expire, storage, 1)),
            ("orphans", partial(remove_orphans, storage)),
        ]
        for tag in [
            each for each in self.model.main.tags if f"'{each}'" in operation.name or "tag" not in operation.name
        ]:
            found += [
                (f"replace_tag {tag}", partial(load(storage).versions.replace_tag, tag, snapshot_id=latest)),
                (f"delete_tag {tag}", partial(load(storage).versions.delete_tag, tag)),
            ]
        if operation.name.startswith("create"):
            found += [
                ("create", partial(load(storage).versions.create_branch, name, snapshot_id=latest)),
                ("delete", partial(load(storage).versions.delete_branch, name)),
            ]
        return found

    def check_beside(
        self,
        storage: MemoryFileIO,
        operation: BranchOperation,
        before: Model,
        beside: str,
        errors: list[BaseException | None],
    ) -> Model:
        """Check the branches, and return the state with the tags of main and its snapshots as they are now."""
        other, ours = errors
        assert isinstance(other, NotFoundError | AlreadyExistsError | None), other
        allowed = [operation.after] if ours is None else [before, *operation.between]
        name = operation.names[-1]
        if beside == "create":
            latest = before.main.latest_id
            made = before.with_branch(name, History(snapshots={latest: before.main.snapshots[latest]}))
            allowed = [*([] if ours is not None and other is None else allowed), *([made] if other is None else [])]
            assert ours is not None or other is not None, "both have created the branch"
            if ours is not None and other is not None:
                allowed = [before, operation.after, made]
        if beside.startswith("replace_tag") and f"'{beside.split()[1]}'" in operation.name:
            allowed = [*allowed, self.with_latest(before, name, beside.split()[1])]
        if beside == "delete":
            allowed = [*allowed, before] if other is None else allowed
        views = views_of(storage)
        table = load(storage)
        ids = MetadataStore(table._ref).list_snapshot_ids()
        for each in allowed:
            state = deepcopy(each)
            state.main.snapshots = {each: files for each, files in state.main.snapshots.items() if each in ids}
            state.main.tags = {tag: value for tag, value in state.main.tags.items() if tag in views["main"]}
            if beside.startswith("replace_tag") and other is None:
                state.main.tags[beside.split()[1]] = (before.main.latest_id, before.main.view()[""])
            if state.views() == views:
                return self.check(storage, (state,), operation)
        raise AssertionError(
            f"it reads as {shown(views)}; expected {' or '.join(shown(each.views()) for each in allowed)}"
        )

    def with_latest(self, before: Model, name: str, tag: str) -> Model:
        """Return the state with a branch whose tag was replaced before it was read."""
        latest, files = before.main.latest_id, before.main.view()[""]
        return before.with_branch(name, History(snapshots={latest: files}, tags={tag: (latest, files)}))

    def go_on(self, results: list[tuple[MemoryFileIO, Model]]) -> None:
        chosen = self.random.randrange(len(results))
        for number, (storage, state) in enumerate(results):
            if number == chosen:
                self.storage, self.model = storage, deepcopy(state)
            else:
                storage.discard()
        self.handles = []
        for history in self.model.branches.values():
            history.identity = None
        self.dead = set()
        self.note_identities()


def note_error(call: Callable[[], Any], errors: list[BaseException | None]) -> None:
    """Call, and add the error to the list, or None."""
    try:
        call()
    except (TableStoreError, pytest.fail.Exception) as error:
        errors.append(error)
    else:
        errors.append(None)


def expire(storage: Any, retained: int) -> None:
    load(storage).expire_snapshots(retain_max=retained, retain_min=1, older_than=utc_millis() + FAR)


def shown(views: dict[str, dict[str, frozenset[str]]]) -> str:
    return str({name: {tag: len(files) for tag, files in view.items()} for name, view in views.items()})


def run_history(seed: int) -> int:
    """Run one history; return the number of failures and interleavings."""
    world = World(seed)
    try:
        for number in range(STEPS):
            world.step()
            if number == STEPS // 2:
                (world.fail_everywhere if seed % 2 else world.run_beside)()
        world.let_tags_keep_files()
        (world.run_beside if seed % 2 else world.fail_everywhere)()
        for branch in (None, *world.model.branches):
            assert load(world.storage, branch).inspect.fsck(all_snapshots=True).findings == ()
    except BaseException as error:
        error.add_note(f"seed {seed}")
        raise
    finally:
        world.storage.discard()
    return world.cases


def test_branches_are_whole_or_absent_after_failures_at_every_call() -> None:
    assert sum(run_history(seed) for seed in range(6)) > 100


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_two_thousand_histories_of_branches(part: int) -> None:
    count = 250
    first = 1_000 + part * count
    assert sum(run_history(seed) for seed in range(first, first + count)) > count
