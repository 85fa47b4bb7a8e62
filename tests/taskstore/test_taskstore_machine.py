"""Any sequence of operations, against a plain model of the rules."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from servedtasks import ServedTasks
from taskstores import SECOND_NS, Hands, MemoryPlace

from slotkeeper.taskstore import Add, Change, Task, TaskStore, UpdateError
from slotkeeper.taskstore.remote import TaskClient

OWNERS = st.sampled_from(["alice", "bob", "carol"])
GROUPS = st.sampled_from(["a", "b"])
SECONDS = st.sampled_from([0, 1, 5, 30])
PICKS = st.lists(st.integers(0, 30), max_size=3)
SENT = st.binary(max_size=3)
KEYS = st.sampled_from([None, "k1", "k2"])
MOST = 3


class Machine(RuleBasedStateMachine):
    """A store and a model: all tasks by id. `last` is the last id, which only grows."""

    @initialize(seed=st.integers(0, 2**16))
    def start(self, seed: int) -> None:
        self.hands, self.place = Hands(), MemoryPlace()
        self.lots = random.Random(seed)
        self.model: dict[int, Task] = {}
        self.keys: dict[str, Task] = {}
        self.seen: set[int] = set()
        self.last = 0
        self.store = self._opened()

    def _opened(self) -> TaskStore | TaskClient:
        return TaskStore(self.place.journal(), **self._options()).open()

    def _options(self) -> dict[str, Any]:
        return {"clock": self.hands.clock(), "dice": self.lots.random, "most_attempts": MOST}

    def _close(self) -> None:
        self.store.close()

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self._close()

    @property
    def now(self) -> int:
        return self.hands.wall_ns

    def _some(self, picks: list[int]) -> list[int]:
        """Return ids: mostly of tasks that exist, sometimes of others."""
        ids = sorted(self.model)
        return [ids[pick % len(ids)] if ids and pick < 28 else 10_000 + pick for pick in picks]

    def _absent(self, ids: list[int]) -> list[int]:
        return [task_id for task_id in ids if task_id not in self.model]

    def _owned(self, ids: list[int], owner: str) -> list[int]:
        known = [self.model[task_id] for task_id in ids if task_id in self.model]
        return [task.id for task in known if task.available_at_ns > self.now and task.owner != owner]

    @rule(
        owner=OWNERS,
        adds=st.lists(st.tuples(GROUPS, SENT, SECONDS, KEYS), max_size=3),
        changes=PICKS,
        deletes=PICKS,
        depends=PICKS,
        until=SECONDS,
    )
    def update(
        self, owner: str, adds: list[Any], changes: list[int], deletes: list[int], depends: list[int], until: int
    ) -> None:
        changes, deletes, depends = self._some(changes), self._some(deletes), self._some(depends)
        asked = [Add(group, data, after_s=after, key=key) for group, data, after, key in adds]
        wanted = {
            "changes": self._absent(changes),
            "deletes": self._absent(deletes),
            "depends": self._absent(depends),
            "owned": self._owned([*changes, *deletes], owner),
        }
        bugs = self._bugs(asked, changes, deletes)
        changed = [Change(task_id, after_s=until) for task_id in changes]
        new = told(self.store.update, owner, adds=asked, changes=changed, deletes=deletes, depends=depends)
        if isinstance(new, UpdateError):
            assert {kind: sorted(getattr(new, kind)) for kind in wanted} == {k: sorted(v) for k, v in wanted.items()}
            assert bool(new.bugs) == bugs
            assert bugs or any(wanted.values())
            return
        assert not bugs
        assert not any(wanted.values())
        self._updated(owner, asked, changes, deletes, until, new)

    def _bugs(self, asked: list[Add], changes: list[int], deletes: list[int]) -> bool:
        named, keys = [*changes, *deletes], [add.key for add in asked if add.key]
        other = [a for a in asked if a.key in self.keys and not _same(self.keys[a.key], a)]
        nothing = not asked and not named
        return bool(nothing or other or len(named) > len(set(named)) or len(keys) > len(set(keys)))

    def _updated(
        self, owner: str, asked: list[Add], changes: list[int], deletes: list[int], until: int, new: list[Task]
    ) -> None:
        expected = []
        for add in asked:
            if add.key in self.keys:
                expected.append(self.keys[add.key])
                continue
            task = self._new(add.group, owner, self.now + int(add.after_s) * SECOND_NS, add.data, 0, 0)
            expected.append(task)
            if add.key:
                self.keys[add.key] = task
        for task_id in changes:
            old = self.model.pop(task_id)
            at = self.now + until * SECOND_NS
            expected.append(self._new(old.group, owner, at, old.data, old.claims, old.attempt, old.error))
        for task_id in deletes:
            del self.model[task_id]
        assert new == expected

    def _new(self, *values: Any) -> Task:
        self.last += 1
        task = self.model[self.last] = Task(self.last, *values)
        return task

    @rule(owner=OWNERS, groups=st.lists(GROUPS, min_size=1, max_size=2), for_s=SECONDS, depends=PICKS)
    def claim(self, owner: str, groups: list[str], for_s: int, depends: list[int]) -> None:
        depends = self._some(depends)
        got = told(self.store.claim, owner, groups, for_s, depends=depends)
        if isinstance(got, UpdateError):
            assert list(got.depends) == self._absent(depends) != []
            return
        assert not self._absent(depends)
        before = dict(self.model)
        self.model = {task.id: task for task in self.store.every_task()}
        aside = [t for t in self.model.values() if t.id not in before and (got is None or t.id != got.id)]
        assert all(task.group.endswith("/quarantine") and task.attempt >= MOST for task in aside)
        gone = [before[task_id] for task_id in before.keys() - self.model.keys()]
        ready = [t for t in before.values() if t.group in groups and t.available_at_ns <= self.now]
        assert len(gone) == len(aside) + (got is not None)
        assert all(task in ready for task in gone)
        assert (got is None) == all(task.attempt >= MOST for task in ready)
        self.last += len(gone)
        if got is not None:
            (old,) = [task for task in gone if task.attempt < MOST and task.data == got.data][:1]
            assert (got.owner, got.available_at_ns) == (owner, self.now + for_s * SECOND_NS)
            assert (got.claims, got.attempt, got.group) == (old.claims + 1, old.attempt + 1, got.group)

    @rule(owner=OWNERS, pick=st.integers(0, 30), for_s=SECONDS)
    def renew(self, owner: str, pick: int, for_s: int) -> None:
        (task_id,) = self._some([pick])
        old = self.model.get(task_id)
        new = told(self.store.renew, owner, task_id, for_s)
        if isinstance(new, UpdateError):
            assert (new.changes, new.owned) == (((task_id,), ()) if old is None else ((), (task_id,)))
            assert old is None or old.owner != owner
            return
        assert old is not None
        del self.model[task_id]
        at = self.now + for_s * SECOND_NS
        assert new == self._new(old.group, owner, at, old.data, old.claims, old.attempt, old.error)

    @rule(owner=OWNERS, pick=st.integers(0, 30), after_s=SECONDS, error=st.sampled_from([None, "", "boom"]))
    def release(self, owner: str, pick: int, after_s: int, error: str | None) -> None:
        (task_id,) = self._some([pick])
        old = self.model.get(task_id)
        new = told(self.store.release, owner, task_id, after_s=after_s, error=error)
        if isinstance(new, UpdateError):
            assert old is None or old.owner != owner
            return
        assert old is not None
        del self.model[task_id]
        self.last += 1
        self.model[new.id] = new
        assert (new.id, new.data, new.claims) == (self.last, old.data, old.claims)
        assert new.attempt == (old.attempt if error is not None else max(0, old.attempt - 1))
        if new.group == old.group:
            assert new.available_at_ns == self.now + after_s * SECOND_NS
        else:
            assert error is not None
            assert old.attempt >= MOST

    @rule(seconds=SECONDS)
    def time_passes(self, seconds: int) -> None:
        self.hands.go_on(seconds)

    @rule()
    def snapshot(self) -> None:
        self.store.snapshot()

    @rule()
    def open_again(self) -> None:
        self._close()
        self.store = self._opened()

    @invariant()
    def the_store_is_the_model(self) -> None:
        if not hasattr(self, "store"):
            return
        shown = self.store.every_task()
        assert {task.id: task for task in shown} == self.model
        assert self.store.stats().last_id == self.last
        assert self.store.groups() == sorted({task.group for task in shown})
        for group in ("a", "b"):
            free = [t for t in shown if t.group == group and t.available_at_ns <= self.now]
            assert self.store.group(group) == sorted(free, key=lambda t: (t.available_at_ns, t.id))


class ServedMachine(Machine):
    """The same over HTTP."""

    def _opened(self) -> TaskClient:
        self.service = ServedTasks(self.place.journal(), **self._options())
        return TaskClient(self.service.url).open()

    def _close(self) -> None:
        self.store.close()
        self.service.stop()


def told(call: Callable[..., Any], *values: Any, **named: Any) -> Any:
    """Return what a call returns, or the refusal that it raises."""
    try:
        return call(*values, **named)
    except UpdateError as error:
        return error


def _same(task: Task, add: Add) -> bool:
    return (task.group, task.data) == (add.group, add.data)


TestMachine = Machine.TestCase
TestMachine.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)

TestServedMachine = ServedMachine.TestCase
TestServedMachine.settings = settings(
    TestMachine.settings, max_examples=6, stateful_step_count=25
)  # each step is seven requests
