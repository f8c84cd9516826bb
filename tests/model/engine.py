"""Breadth-first search of everything that concurrent programs can do to one storage.

A program is a generator: it yields calls to the storage and gets their answers, as the code that it stands for makes
them. Each call is one step, and between two steps of one actor any other may go on, or the actor may be stopped for
good. What an actor will do next follows from the answers that it got, so that a state is the content of the storage and
for each actor the calls that are open, each with its answers so far. ``Call`` and ``Become`` keep these short: of a
call that returned, its result stays, not the answers that led to it; so that two ways to the same knowledge are one
state.

Storages, actors and calls are numbered, and a step is looked up by numbers once it was computed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from tests.model.calls import LOST, Become, Call, Note, Op, Program, Verb
from tests.model.views import Content, Explored, Outcome, Status, Step, System, View, Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

Frame: TypeAlias = "tuple[Callable[..., Program], tuple[Hashable, ...], tuple[Hashable, ...]]"
"""A program, its arguments, and the answers that it got."""

_State: TypeAlias = "tuple[int, ...]"
"""Numbers of the storage and of each actor; then crashes and lost answers that are left."""


@dataclass(slots=True)
class _Actor:
    """An actor at one point.

    Attributes:
        frames: open calls, the innermost last; empty when it is over.
    """

    frames: tuple[Frame, ...]
    outcome: Outcome
    op: Op | None = None


@dataclass(slots=True)
class Explorer:
    """Searches one system, each state once."""

    system: System
    _contents: list[Content] = field(default_factory=list)
    _content_ids: dict[frozenset[Any], int] = field(default_factory=dict)
    _actors: list[_Actor] = field(default_factory=list)
    _actor_ids: dict[Hashable, int] = field(default_factory=dict)
    _effects: dict[tuple[int, Op], tuple[int, Hashable]] = field(default_factory=dict)
    _resumed: dict[tuple[int, Hashable], int] = field(default_factory=dict)
    _crashed: dict[int, int] = field(default_factory=dict)
    _checked: set[tuple[int, ...]] = field(default_factory=set)
    _outcome_ids: dict[Outcome, int] = field(default_factory=dict)
    _outcome_of: list[int] = field(default_factory=list)

    def start(self) -> _State:
        """Return the first state."""
        actors = [self._settle(((call.program, call.args, ()),), ()) for _, call in self.system.actors]
        content = self._intern(dict(self.system.content))
        return (content, *actors, self.system.crashes, self.system.lost_answers)

    def run(self, *, max_depth: int | None = None, max_states: int | None = None) -> Explored:
        """Search until a violation is found or nothing is left."""
        started = time.perf_counter()
        first = self.start()
        parents: dict[_State, tuple[_State, int, str | None] | None] = {first: None}
        frontier, depth, transitions, quiet = [first], 0, 0, 0
        is_complete = True
        violation = self._check(first, parents)
        while frontier and violation is None:
            if (max_depth is not None and depth >= max_depth) or (max_states is not None and len(parents) > max_states):
                is_complete = False
                break
            following: list[_State] = []
            for state in frontier:
                quiet += 1
                moved = False
                for successor, actor, fault in self.successors(state):
                    transitions += 1
                    moved = True
                    if successor in parents:
                        continue
                    parents[successor] = (state, actor, fault)
                    following.append(successor)
                    violation = self._check(successor, parents)
                    if violation is not None:
                        break
                quiet -= moved
                if violation is not None:
                    break
            frontier = following
            depth += bool(following)
        return Explored(
            states=len(parents),
            transitions=transitions,
            depth=depth,
            seconds=time.perf_counter() - started,
            is_complete=is_complete,
            quiet=quiet,
            violation=violation,
        )

    def successors(self, state: _State) -> list[tuple[_State, int, str | None]]:
        """Return every state that one step leads to, with the actor's number and what went wrong."""
        found: list[tuple[_State, int, str | None]] = []
        content, crashes, lost = state[0], state[-2], state[-1]
        for number in range(1, len(state) - 2):
            actor = state[number]
            op = self._actors[actor].op
            if op is None:
                continue
            effect = self._effects.get((content, op))
            if effect is None:
                effect = self._effects[content, op] = self._apply(content, op)
            found.append((self._next(state, number, effect[0], effect[1]), number, None))
            if lost and op.verb is Verb.PUT:
                for after, fault in ((content, "lost"), (effect[0], "lost after")):
                    moved = self._next(state, number, after, LOST)
                    found.append(((*moved[:-1], lost - 1), number, fault))
            if crashes:
                stopped = self._crashed.get(actor)
                if stopped is None:
                    stopped = self._crashed[actor] = self._crash(actor)
                found.append(((*state[:number], stopped, *state[number + 1 : -2], crashes - 1, lost), number, "crash"))
        return found

    def view(self, state: _State) -> View:
        """Return what invariants see of a state."""
        names = [name for name, _ in self.system.actors]
        outcomes = {
            name: self._actors[each].outcome for name, each in zip(names, state[1 : len(names) + 1], strict=True)
        }
        return View(self._contents[state[0]], outcomes)

    def step(self, state: _State, number: int, fault: str | None) -> Step:
        """Return what an actor does in a state."""
        op = self._actors[state[number]].op
        assert op is not None
        answer = LOST if fault else self._apply(state[0], op)[1]
        return Step(self.system.actors[number - 1][0], op, answer, fault)

    def _next(self, state: _State, number: int, content: int, answer: Hashable) -> _State:
        key = (state[number], answer)
        actor = self._resumed.get(key)
        if actor is None:
            known = self._actors[state[number]]
            program, args, answers = known.frames[-1]
            frames = (*known.frames[:-1], (program, args, (*answers, answer)))
            actor = self._resumed[key] = self._settle(frames, known.outcome.notes)
        return (content, *state[1:number], actor, *state[number + 1 :])

    def _settle(self, frames: tuple[Frame, ...], notes: tuple[Any, ...]) -> int:
        """Run an actor to its next call to the storage, or to its end."""
        stack, known = list(frames), notes
        while stack:
            program, args, answers = stack[-1]
            running = program(*args)
            said: list[Any] = []
            try:
                item = _fed(running, answers, said)
            except StopIteration as end:
                known += tuple(said)
                stack.pop()
                if isinstance(end.value, Become):
                    stack.append((end.value.program, end.value.args, ()))
                elif stack:
                    above = stack[-1]
                    stack[-1] = (above[0], above[1], (*above[2], end.value))
                continue
            known += tuple(said)
            if isinstance(item, Call):
                stack.append((item.program, item.args, ()))
                continue
            return self._intern_actor(_Actor(tuple(stack), Outcome(Status.RUNNING, known), item))
        return self._intern_actor(_Actor((), Outcome(Status.DONE, known)))

    def _crash(self, actor: int) -> int:
        return self._intern_actor(_Actor((), Outcome(Status.CRASHED, self._actors[actor].outcome.notes)))

    def _intern_actor(self, actor: _Actor) -> int:
        key = (actor.frames, actor.outcome)
        found = self._actor_ids.get(key)
        if found is None:
            found = self._actor_ids[key] = len(self._actors)
            self._actors.append(actor)
            self._outcome_of.append(self._outcome_ids.setdefault(actor.outcome, len(self._outcome_ids)))
        return found

    def _intern(self, content: Content) -> int:
        key = frozenset(content.items())
        found = self._content_ids.get(key)
        if found is None:
            found = self._content_ids[key] = len(self._contents)
            self._contents.append(content)
        return found

    def _apply(self, number: int, op: Op) -> tuple[int, Hashable]:
        content = self._contents[number]
        is_there = op.path in content
        match op.verb:
            case Verb.WRITE | Verb.REPLACE:
                return self._intern({**content, op.path: op.value}), True
            case Verb.PUT if not is_there:
                return self._intern({**content, op.path: op.value}), True
            case Verb.DELETE if is_there:
                return self._intern({path: value for path, value in content.items() if path != op.path}), True
            case _:
                return number, _answer(content, op)

    def _check(self, state: _State, parents: dict[_State, tuple[_State, int, str | None] | None]) -> Violation | None:
        key = (state[0], *(self._outcome_of[each] for each in state[1:-2]))
        if key in self._checked:
            return None
        self._checked.add(key)
        view = self.view(state)
        for name, invariant in self.system.invariants:
            text = invariant(view)
            if text is not None:
                return Violation(invariant=name, text=text, trace=self._trace(state, parents), view=view)
        return None

    def _trace(self, state: _State, parents: dict[_State, tuple[_State, int, str | None] | None]) -> tuple[Step, ...]:
        steps = []
        link = parents[state]
        while link is not None:
            before, number, fault = link
            steps.append(self.step(before, number, fault))
            link = parents[before]
        return tuple(reversed(steps))


def _fed(running: Program, answers: tuple[Hashable, ...], said: list[Any]) -> Any:
    """Give a program the answers it has got; returns what it asks next, with the notes since the last answer."""
    item = next(running)
    for number in range(len(answers) + 1):
        while isinstance(item, Note):
            said.append(item.value)
            item = running.send(None)
        if number < len(answers):
            said.clear()
            item = running.send(answers[number])
    return item


def _answer(content: Content, op: Op) -> Hashable:
    """Return the answer to a call that changes nothing."""
    match op.verb:
        case Verb.READ:
            return content.get(op.path)
        case Verb.EXISTS:
            return op.path in content
        case Verb.LIST | Verb.STATUSES:
            paths = sorted(path for path in content if path.startswith(op.path))
            if op.verb is Verb.LIST:
                return tuple(paths)
            return tuple((path, bool(getattr(content[path], "is_old", False))) for path in paths)
        case _:
            return False
