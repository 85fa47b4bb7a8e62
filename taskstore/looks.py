"""What a caller may look at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from operator import attrgetter

from .operations import Look
from .state import State
from .task import Task


def task(task_id: int) -> Look[Task | None]:
    """Look at one task."""
    return Look(lambda state, now_ns: state.tasks.get(task_id))


def tasks(ids: Iterable[int]) -> Look[list[Task | None]]:
    """Look at some tasks, None in the place of an absent one."""
    wanted = tuple(ids)
    return Look(lambda state, now_ns: [state.tasks.get(task_id) for task_id in wanted])


def every_task() -> Look[list[Task]]:
    """Look at all tasks, in the order of their ids."""
    return Look(lambda state, now_ns: list(map(state.tasks.__getitem__, sorted(state.tasks))))


def group(name: str, limit: int | None, *, owned: bool) -> Look[list[Task]]:
    """Look at a group's tasks, the oldest first."""
    return Look(_of_group(name, limit, owned))


def groups() -> Look[list[str]]:
    """Look at the names of the groups that have tasks."""
    return Look(lambda state, now_ns: sorted(state.groups))


def _of_group(name: str, limit: int | None, owned: bool) -> Callable[[State, int], list[Task]]:
    def see(state: State, now_ns: int) -> list[Task]:
        found = state.groups.get(name)
        if found is None:
            return []
        if limit is not None and 0 < limit < len(found.members):
            return list(islice(_shown(found.oldest(), now_ns, owned), limit))
        by_id = map(found.members.__getitem__, sorted(found.members))
        return sorted(
            _shown(by_id, now_ns, owned), key=attrgetter("available_at_ns")
        )  # the same age: by id, as they were

    return see


def _shown(tasks: Iterable[Task], now_ns: int, owned: bool) -> Iterator[Task]:
    return (task for task in tasks if owned or task.available_at_ns <= now_ns)
