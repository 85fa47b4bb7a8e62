"""What a caller may look at."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import nsmallest

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
    return Look(lambda state, now_ns: sorted(state.tasks.values(), key=_id))


def group(name: str, limit: int | None, *, owned: bool) -> Look[list[Task]]:
    """Look at a group's tasks, the oldest first."""
    return Look(_of_group(name, limit, owned))


def groups() -> Look[list[str]]:
    """Look at the names of the groups that have tasks."""
    return Look(lambda state, now_ns: sorted(state.groups))


def _of_group(name: str, limit: int | None, owned: bool) -> Callable[[State, int], list[Task]]:
    def see(state: State, now_ns: int) -> list[Task]:
        found = state.groups.get(name)
        members = found.members.values() if found is not None else ()
        shown = [task for task in members if owned or task.available_at_ns <= now_ns]
        return nsmallest(limit, shown, key=_age) if limit is not None and limit > 0 else sorted(shown, key=_age)

    return see


def _age(task: Task) -> tuple[int, int]:
    return task.available_at_ns, task.id


def _id(task: Task) -> int:
    return task.id
