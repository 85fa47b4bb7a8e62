"""All that a store knows: its tasks, by id and by group, the keys that were used, and the last id."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from .group import Group
from .record import Keyed, Record
from .task import Task

MOST_KEYS = 100_000
KEY_NS = 24 * 3600 * 1_000_000_000
PART_TASKS, PART_BYTES = 1_000, 1 << 20  # of a snapshot's record


class State:
    """Tasks, changed by whole records only. Nothing here waits, asks the time or draws lots."""

    __slots__ = ("at_ns", "groups", "keys", "last_id", "tasks")

    def __init__(self) -> None:
        self.tasks: dict[int, Task] = {}
        self.groups: dict[str, Group] = {}
        self.keys: dict[str, Keyed] = {}
        self.last_id = 0
        self.at_ns = 0

    def apply(self, record: Record) -> list[Task]:
        """Do what a record says. Return the tasks that are gone, for `undo`."""
        gone = [self._drop(task_id) for task_id in record.gone] if record.gone else []
        for task in record.came:
            self._add(task)
        if record.keyed:
            self.keys.update((keyed.key, keyed) for keyed in record.keyed)
            self._forget_keys(record.at_ns)
        if record.last_id > self.last_id:  # a reservation may be far ahead of the records behind it
            self.last_id = record.last_id
        if record.at_ns > self.at_ns:
            self.at_ns = record.at_ns
        return gone

    def undo(self, record: Record, gone: list[Task]) -> None:
        """Take back the record that was applied last. Its ids are burnt, and the clock has gone on."""
        for task in record.came:
            self._drop(task.id)
        for task in gone:
            self._add(task)
        for keyed in record.keyed:
            self.keys.pop(keyed.key, None)

    def salvage(self, record: Record) -> None:
        """Do what still can be done of a record that follows lost ones: a repair's last resort."""
        for task_id in record.gone:
            if task_id in self.tasks:
                self._drop(task_id)
        came = tuple(task for task in record.came if task.id not in self.tasks)
        self.apply(Record(record.at_ns, record.last_id, (), came, record.keyed))

    def parts(self) -> list[Record]:
        """Return records that make this state out of an empty one. Cheap: tasks are immutable, so none is copied."""
        parts = [Record(self.at_ns, self.last_id, (), came) for came in _portions(iter(list(self.tasks.values())))]
        keyed = iter(list(self.keys.values()))
        while some := tuple(islice(keyed, PART_TASKS)):
            parts.append(Record(self.at_ns, self.last_id, (), (), some))
        return parts or [Record(self.at_ns, self.last_id)]

    def _add(self, task: Task) -> None:
        self.tasks[task.id] = task
        group = self.groups.get(task.group)
        if group is None:
            group = self.groups[task.group] = Group()
        group.add(task)

    def _drop(self, task_id: int) -> Task:
        task = self.tasks.pop(task_id)
        group = self.groups[task.group]
        group.drop(task_id)
        if not group.members:
            del self.groups[task.group]
        return task

    def _forget_keys(self, now_ns: int) -> None:
        for key in list(islice(self.keys, max(0, len(self.keys) - MOST_KEYS))):
            del self.keys[key]
        while self.keys:
            first = next(iter(self.keys))
            if self.keys[first].at_ns > now_ns - KEY_NS:
                return
            del self.keys[first]


def _portions(tasks: Iterator[Task]) -> Iterator[tuple[Task, ...]]:
    """Cut tasks into portions that make records of a bearable size."""
    portion: list[Task] = []
    size = 0
    for task in tasks:
        portion.append(task)
        size += len(task.data)
        if len(portion) == PART_TASKS or size >= PART_BYTES:
            yield tuple(portion)
            portion, size = [], 0
    if portion:
        yield tuple(portion)
