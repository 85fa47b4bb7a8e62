"""How a store is doing, in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .state import State


@dataclass(frozen=True, slots=True)
class GroupStats:
    """A group: tasks `available` now, `claimed`, or for the `future`; and the age of the oldest available one."""

    size: int
    available: int
    claimed: int
    future: int
    oldest_s: float


@dataclass(frozen=True, slots=True)
class Stats:
    """A store. `behind` answered changes are not durable yet, the oldest of them since `behind_s`, which `lag_s` bounds.

    `failure` says what keeps them from being written, or why the last snapshot was not taken.
    """

    strict: bool
    size: int
    last_id: int
    waiting: int
    groups: Mapping[str, GroupStats]
    behind: int = 0
    behind_s: float = 0.0
    lag_s: float = 0.0
    failure: str = ""


def group_stats(state: State, now_ns: int) -> dict[str, GroupStats]:
    """Count every group's tasks."""
    return {name: _counted(state, name, now_ns) for name in sorted(state.groups)}


def _counted(state: State, name: str, now_ns: int) -> GroupStats:
    tasks = state.groups[name].members.values()
    available = sum(task.available_at_ns <= now_ns for task in tasks)
    claimed = sum(task.available_at_ns > now_ns and task.claims > 0 and task.owner != "" for task in tasks)
    first = state.groups[name].first_at_ns() or now_ns
    return GroupStats(len(tasks), available, claimed, len(tasks) - available - claimed, max(0, now_ns - first) / 1e9)
