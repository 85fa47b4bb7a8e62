"""What a handler has to say about its task, to be committed in one update with the task's end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .task import Add, Change


@dataclass(frozen=True, slots=True)
class Outcome:
    """The task is done, and this happens with its deletion: all of it, or nothing.

    A change of the task itself, by any id that it had in the handler's hands, comes instead of its deletion.
    """

    adds: tuple[Add, ...] = ()
    changes: tuple[Change, ...] = ()
    deletes: tuple[int, ...] = ()
    depends: tuple[int, ...] = ()

    def __init__(
        self,
        *,
        adds: Iterable[Add] = (),
        changes: Iterable[Change] = (),
        deletes: Iterable[int] = (),
        depends: Iterable[int] = (),
    ) -> None:
        for name, values in (("adds", adds), ("changes", changes), ("deletes", deletes), ("depends", depends)):
            object.__setattr__(self, name, tuple(values))

    def against(self, task_id: int, ids: frozenset[int]) -> dict[str, Any]:
        """Return what to update, with the id that the task has now in the place of those that it had."""
        changes = [Change(task_id, *_rest(change)) if change.id in ids else change for change in self.changes]
        deletes = [each for each in self.deletes if each not in ids]
        if all(change.id != task_id for change in changes):
            deletes.append(task_id)
        return {"adds": self.adds, "changes": changes, "deletes": deletes, "depends": self._others(ids)}

    def _others(self, ids: frozenset[int]) -> list[int]:
        return [each for each in self.depends if each not in ids]  # that it is there, its own deletion says


def _rest(change: Change) -> tuple[Any, ...]:
    return tuple(getattr(change, field) for field in change.__struct_fields__ if field != "id")
