"""A group's tasks, by age: which one a claim gets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush

from .task import Task

Dice = Callable[[], float]
MOST_PASSED = 16  # claims in a row that may pass the oldest task over: whoever is in a group gets its turn
TIDY = 64


class Group:
    """The tasks of one group. `heap` has an entry for each, and entries of gone ones until they come up or are many."""

    __slots__ = ("heap", "members", "passed")

    def __init__(self) -> None:
        self.members: dict[int, Task] = {}
        self.heap: list[tuple[int, int]] = []
        self.passed = 0

    def add(self, task: Task) -> None:
        """Take a task in."""
        self.members[task.id] = task
        heappush(self.heap, (task.available_at_ns, task.id))

    def drop(self, task_id: int) -> None:
        """Let a task go. Its entry stays behind; ids never come back, so it stays a gone one's."""
        del self.members[task_id]
        if len(self.heap) > 2 * len(self.members) + TIDY:
            self.heap = [(task.available_at_ns, task.id) for task in self.members.values()]
            heapify(self.heap)

    def first_at_ns(self) -> int | None:
        """Return when the first task is, or was, available; None where there is none."""
        heap, members = self.heap, self.members
        while heap and heap[0][1] not in members:
            heappop(heap)
        return heap[0][0] if heap else None

    def oldest(self) -> Iterator[Task]:
        """Yield the tasks, the oldest first: as far down the heap as somebody asks for them. Nothing may change meanwhile."""
        heap, members = self.heap, self.members
        front = [(*heap[0], 0)] if heap else []
        last_id = 0
        while front:
            _, task_id, place = heappop(front)
            for child in (2 * place + 1, 2 * place + 2):
                if child < len(heap):
                    heappush(front, (*heap[child], child))
            if task_id != last_id and (task := members.get(task_id)) is not None:
                last_id = task_id  # one that came back, by an undo, has two entries
                yield task

    def pick(self, now_ns: int, dice: Dice) -> Task | None:
        """Choose one of the available tasks: at random, the oldest most likely, and for certain once it was passed often."""
        first = self.first_at_ns()
        if first is None or first > now_ns:
            return None
        place = 0 if self.passed >= MOST_PASSED else self._walk(now_ns, dice)
        self.passed = self.passed + 1 if place else 0
        return self.members[self.heap[place][1]]

    def _walk(self, now_ns: int, dice: Dice) -> int:
        """Go down the heap from the oldest: stay, or go on to a child, each as likely as the other."""
        heap, members, place = self.heap, self.members, 0
        while True:
            ways = [place]
            for child in (2 * place + 1, 2 * place + 2):
                if child < len(heap) and heap[child][0] <= now_ns and heap[child][1] in members:
                    ways.append(child)
            chosen = ways[int(dice() * len(ways))]
            if chosen == place:
                return place
            place = chosen
