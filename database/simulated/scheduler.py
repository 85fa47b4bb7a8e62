"""Virtual time, and the tasks that live in it. What is due next happens next; what is due at once, in the order it came."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from heapq import heappop, heappush
from math import inf
from typing import Any, TypeVar

T = TypeVar("T")
Sleepers = list[tuple["Task", int]]
Wait = tuple[float, Sleepers | None]


class Task:
    """A coroutine over simulated ports. `epoch` tells its present wait from those before: an old timer wakes nobody."""

    __slots__ = ("coroutine", "doomed", "epoch", "error", "go_on", "group", "is_done", "name", "value")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], name: str, group: object) -> None:
        self.coroutine, self.name, self.group = coroutine, name, group
        self.go_on = coroutine.send
        self.epoch = 0
        self.is_done = False
        self.doomed: BaseException | None = None
        self.value: Any = None
        self.error: BaseException | None = None

    def __repr__(self) -> str:
        return f"<Task {self.name}{' done' if self.is_done else ''}>"


class Scheduler:
    """Runs tasks on a clock of its own.

    `lag` tells how long a task of a group that may go on does not; `on_error` learns of a task that ended with an error.
    """

    def __init__(
        self,
        lag: Callable[[object], float] = lambda group: 0.0,
        on_error: Callable[[Task, BaseException], None] = lambda task, error: None,
    ) -> None:
        self.now = 0.0
        self.tasks: dict[Task, None] = {}
        self._lag, self._on_error = lag, on_error
        self._events: list[tuple[float, int, Callable[..., object], Any, Any]] = []
        self._count = 0
        self._take_step, self._ring_for = self._step, self._ring  # bound once: they are what mostly happens

    def at(self, when: float, action: Callable[..., object], one: Any = None, other: Any = None) -> None:
        """Let something happen at a moment."""
        self._count += 1
        heappush(self._events, (when, self._count, action, one, other))

    def spawn(self, coroutine: Coroutine[Any, Any, Any], name: str = "task", group: object = None) -> Task:
        """Begin a task."""
        task = Task(coroutine, name, group)
        self.tasks[task] = None
        self.wake(task, 0)
        return task

    def wake(self, task: Task, epoch: int) -> None:
        """Let a task go on with its wait of that epoch ended, sooner or later."""
        self._count += 1
        heappush(self._events, (self.now + self._lag(task.group), self._count, self._take_step, task, epoch))

    def cancel(self, task: Task, error: BaseException) -> None:
        """Raise an error where a task waits."""
        task.doomed = error
        self.wake(task, task.epoch)

    def drop(self, task: Task) -> None:
        """Let a task be gone, as when its process dies."""
        task.is_done = True
        self.tasks.pop(task, None)

    def run(self, until: float = inf, *, most: int | None = None) -> None:
        """Let happen what is due, up to a moment, or `most` things."""
        events, left = self._events, -1 if most is None else most
        while events and left and events[0][0] <= until:
            when, _, action, one, other = heappop(events)
            if when > self.now:
                self.now = when
            action(one, other)
            left -= 1
        if self.now < until < inf and left:
            self.now = until

    def finished(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end, and all else that is due meanwhile."""
        task = self.spawn(coroutine)
        while not task.is_done and self._events:
            self.run(most=1)
        if task.error is not None:
            raise task.error
        if not task.is_done:
            raise RuntimeError("it waits for what nobody will ever do")
        value: T = task.value
        return value

    def _step(self, task: Task, epoch: int) -> None:
        """Let a task go on until it waits again: until a moment, or until one of those that sleep on a flag is woken."""
        if task.epoch != epoch or task.is_done:
            return
        task.epoch = epoch = epoch + 1
        try:
            until, sleepers = task.go_on(None) if task.doomed is None else self._throw(task)
        except StopIteration as end:
            task.value = end.value
            self.drop(task)
        except BaseException as error:  # also a cancellation: it is the task's own end
            task.error = error
            self.drop(task)
            self._on_error(task, error)
        else:
            if sleepers is not None:
                sleepers.append((task, epoch))
            if until <= self.now:
                self.wake(task, epoch)
            elif until < inf:
                self._count += 1
                heappush(self._events, (until, self._count, self._ring_for, task, epoch))

    def _throw(self, task: Task) -> Wait:
        error, task.doomed = task.doomed, None
        assert error is not None
        return task.coroutine.throw(error)  # type: ignore[no-any-return]

    def _ring(self, task: Task, epoch: int) -> None:
        if task.epoch == epoch and not task.is_done:
            self.wake(task, epoch)
