"""The table against a plain model that knows neither heaps nor lines that wake: whatever is done, in whatever order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from locktables import Scheduled

from slotkeeper.database.simulated.scheduler import Task
from slotkeeper.locktable import (
    AlreadyReleased,
    Lock,
    LockHeld,
    NotHeld,
    NotRebuilt,
    TakenOver,
    lease,
)

NAMES = st.sampled_from("ab")
REQUESTS = st.sampled_from(["", "", "r1", "r2"])
LEASES = st.sampled_from([0.0, 1.0, 3.0, 10.0, 700.0])
WAITS = st.sampled_from([0.0, 2.0, 5.0, 40.0])
STEPS = st.sampled_from([0.5, 1.0, 2.5, 9.0, 31.0, 601.0])


@dataclass
class Entry:
    """A lock in the model."""

    id: str
    until: float
    request: str
    fence: int


@dataclass
class Place:
    """Somebody in line in the model, and its task in the table."""

    task: Task
    lease_s: float
    until: float
    request: str


@dataclass
class Model:
    """What a table is, said as plainly as can be."""

    now: float = 0.0
    rebuilt: bool = True
    held: dict[str, Entry] = field(default_factory=dict)
    former: dict[tuple[str, str], float] = field(default_factory=dict)
    lines: dict[str, list[Place]] = field(default_factory=lambda: {"a": [], "b": []})
    released: dict[tuple[str, str], float] = field(default_factory=dict)
    refused: dict[tuple[str, str], float] = field(default_factory=dict)
    fences: int = 0
    expected: list[tuple[Task, object]] = field(default_factory=list)

    def remembers(self, ids: dict[tuple[str, str], float], name: str, some_id: str) -> bool:
        """Tell whether an id was released within ten minutes."""
        return self.now < ids.get((name, some_id), self.now)

    def grant(self, name: str, lease_s: float, request: str) -> Entry:
        """Let somebody have a lock; the table says under which id."""
        self.fences += 1
        self.held[name] = Entry("", self.now + lease(lease_s), request, self.fences)
        return self.held[name]

    def hand_over(self, name: str) -> None:
        """Let the first in line have a free lock."""
        if name not in self.held and self.lines[name]:
            place = self.lines[name].pop(0)
            self.expected.append((place.task, self.grant(name, place.lease_s, place.request)))

    def pass_to(self, moment: float) -> None:
        """Let time pass, from one end of a lease or of somebody's patience to the next."""
        while (next_at := self._next_at()) is not None and next_at <= moment:
            self.now = next_at
            for name in [name for name, entry in self.held.items() if entry.until <= next_at]:
                del self.held[name]
                self.hand_over(name)
            for line in self.lines.values():
                for place in [place for place in line if place.until <= next_at]:
                    line.remove(place)
                    self.expected.append((place.task, LockHeld))
        self.now = moment

    def _next_at(self) -> float | None:
        places = [place.until for line in self.lines.values() for place in line]
        return min([*(entry.until for entry in self.held.values()), *places], default=None)


class TableMachine(RuleBasedStateMachine):
    """The table in a schedule, and the model beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.scheduled, self.model = Scheduled(), Model()
        self.known: list[Lock] = []

    def teardown(self) -> None:
        """Leave nothing waiting."""
        Scheduled.end()

    def _took(self, task: Task, name: str, entry: Entry) -> None:
        lock = task.value.lock
        assert (lock.name, lock.until, lock.request, lock.fence) == (name, entry.until, entry.request, entry.fence)
        entry.id = lock.id
        self.known.append(lock)

    def _settle(self) -> None:
        """See that all whom the model answered were answered so."""
        self.scheduled.go_on(0)
        for task, answer in self.model.expected:
            assert task.is_done, f"{task} waits, and should have got {answer}"
            if isinstance(answer, Entry):
                assert task.error is None, task.error
                self._took(task, task.value.lock.name, answer)
            else:
                assert type(task.error) is answer
        self.model.expected.clear()
        for place in (place for line in self.model.lines.values() for place in line):
            assert not place.task.is_done, f"{place} was answered: {place.task.value or place.task.error}"

    @rule(name=NAMES, lease_s=LEASES, wait_s=WAITS, request=REQUESTS)
    def acquire(self, name: str, lease_s: float, wait_s: float, request: str) -> None:
        """Ask for a lock."""
        model = self.model
        task = self.scheduled.wait(name, lease_s=lease_s, wait_s=wait_s, request=request)
        entry = model.held.get(name)
        expected: object = None
        if not model.rebuilt:
            expected = NotRebuilt
        elif request and model.remembers(model.refused, name, request):
            expected = AlreadyReleased
        elif entry is None:
            expected = model.grant(name, lease_s, request)
        elif request and entry.request == request:
            assert task.value.again
            assert task.value.lock.id == entry.id
            return
        elif wait_s <= 0:
            expected = LockHeld
        else:
            self._stand(name, Place(task, lease_s, model.now + wait_s, request))
            return
        model.expected.append((task, expected))
        self._settle()

    def _stand(self, name: str, place: Place) -> None:
        line = self.model.lines[name]
        before = next((n for n, other in enumerate(line) if place.request and other.request == place.request), None)
        if before is None:
            line.append(place)
        else:
            self.model.expected.append((line[before].task, TakenOver))
            line[before] = place
        self._settle()

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        """Release a lock that was granted some time."""
        lock, model = data.draw(st.sampled_from(self.known)), self.model
        entry = model.held.get(lock.name)
        model.former.pop((lock.name, lock.id), None)
        is_held = entry is not None and entry.id == lock.id
        if entry is not None and is_held:
            self._end(lock.name, entry, by_its_client=True)
        assert (self.scheduled.do(self.scheduled.locks.release(lock.name, lock.id)) is not None) == is_held
        self._settle()

    @rule(name=NAMES, request=st.sampled_from(["r1", "r2"]))
    def release_request(self, name: str, request: str) -> None:
        """Release what a request has, and its place in line."""
        model = self.model
        model.refused[name, request] = model.now + 600
        for place in [place for place in model.lines[name] if place.request == request]:
            model.lines[name].remove(place)
            model.expected.append((place.task, AlreadyReleased))
        entry = model.held.get(name)
        is_held = entry is not None and entry.request == request
        if entry is not None and is_held:
            self._end(name, entry, by_its_client=True)
        assert (self.scheduled.do(self.scheduled.locks.release(name, request=request)) is not None) == is_held
        self._settle()

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        """Let a lock be forgotten that was granted some time."""
        lock, model = data.draw(st.sampled_from(self.known)), self.model
        entry = model.held.get(lock.name)
        model.former.pop((lock.name, lock.id), None)
        model.released[lock.name, lock.id] = model.now + 600
        if entry is not None and entry.id == lock.id:
            self._end(lock.name, entry, by_its_client=False)
        self.scheduled.do(self.scheduled.locks.forget(lock.name, lock.id))
        self._settle()

    def _end(self, name: str, entry: Entry, *, by_its_client: bool) -> None:
        model = self.model
        model.released[name, entry.id] = model.now + 600
        if by_its_client and entry.request:
            model.refused[name, entry.request] = model.now + 600
        del model.held[name]
        model.hand_over(name)

    @precondition(lambda self: self.known)
    @rule(data=st.data(), lease_s=LEASES)
    def renew(self, data: st.DataObject, lease_s: float) -> None:
        """Renew a lock that was granted some time."""
        lock, model = data.draw(st.sampled_from(self.known)), self.model
        entry = model.held.get(lock.name)
        core = self.scheduled.locks.renew(lock.name, lock.id, lease_s)
        if not model.rebuilt or entry is None or entry.id != lock.id:
            with pytest.raises(NotHeld if model.rebuilt else NotRebuilt):
                self.scheduled.do(core)
            return
        entry.until = max(entry.until, model.now + lease(lease_s))
        assert self.scheduled.do(core).lock.until == entry.until

    @rule(seconds=STEPS)
    def time_passes(self, seconds: float) -> None:
        """Let time pass."""
        self.scheduled.go_on(seconds)
        self.model.pass_to(self.scheduled.scheduler.now)
        self._settle()

    @rule()
    def drop(self) -> None:
        """Drop the table."""
        model = self.model
        model.rebuilt = False
        model.former |= {(name, entry.id): entry.until for name, entry in model.held.items()}
        model.held.clear()
        for line in model.lines.values():
            model.expected += [(place.task, NotRebuilt) for place in line]
            line.clear()
        self.scheduled.do(self.scheduled.locks.drop())
        self._settle()

    @precondition(lambda self: not self.model.rebuilt)
    @rule(data=st.data(), is_late=st.booleans())
    def rebuild(self, data: st.DataObject, is_late: bool) -> None:
        """Rebuild the table, from nodes that may not have heard of all that happened."""
        locks, model = self.scheduled.locks, self.model
        stale = data.draw(st.lists(st.sampled_from(self.known))) if self.known else []
        told = [*self.scheduled.do(locks.granted()), *stale]
        conflicts = self.scheduled.do(locks.rebuild(locks.generation - is_late, told))
        if is_late:
            assert conflicts is None
            return
        kept = self._kept(told)
        assert {(lock.name, lock.id) for lock in conflicts} == {
            (lock.name, lock.id) for lock in self._alive(told) if kept[lock.name].id != lock.id
        }
        model.held, model.rebuilt = kept, True
        self._settle()

    def _alive(self, told: Iterable[Lock]) -> list[Lock]:
        model = self.model
        return [
            lock
            for lock in told
            if lock.until > model.now
            and not model.remembers(model.released, lock.name, lock.id)
            and not (lock.request and model.remembers(model.refused, lock.name, lock.request))
        ]

    def _kept(self, told: Iterable[Lock]) -> dict[str, Entry]:
        kept: dict[str, Entry] = {}
        for lock in self._alive(told):
            if lock.name not in kept or lock.until > kept[lock.name].until:
                kept[lock.name] = Entry(lock.id, lock.until, lock.request, lock.fence)
        return kept

    @precondition(lambda self: any(self.model.lines.values()))
    @rule(data=st.data())
    def somebody_goes(self, data: st.DataObject) -> None:
        """Let somebody in line go."""
        name, place = data.draw(
            st.sampled_from([(name, place) for name, line in self.model.lines.items() for place in line])
        )
        self.scheduled.scheduler.cancel(place.task, KeyboardInterrupt())
        self.model.lines[name].remove(place)
        self.model.expected.append((place.task, KeyboardInterrupt))
        self._settle()

    @invariant()
    def the_table_is_as_the_model_says(self) -> None:
        """Compare what is held, what was granted, and how many wait."""
        locks, model = self.scheduled.locks, self.model
        held = {
            lock.name: Entry(lock.id, lock.until, lock.request, lock.fence) for lock in self.scheduled.do(locks.locks())
        }
        assert held == model.held
        assert locks.waiting == sum(map(len, model.lines.values()))
        assert locks.is_rebuilt == model.rebuilt
        former = {key for key, until in model.former.items() if until > model.now}
        granted = {(lock.name, lock.id) for lock in self.scheduled.do(locks.granted())}
        requests = {(lock.name, lock.id): lock.request for lock in self.known}
        told = {key for key in former if not model.remembers(model.refused, key[0], requests[key] or " ")}
        assert granted == told | {(name, entry.id) for name, entry in model.held.items()}


TestTableMachine = TableMachine.TestCase
TestTableMachine.settings = settings(
    max_examples=150, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
