"""Fresh processes that begin together: each says when it is ready, and is told the window that all of them have."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from contextlib import ExitStack
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Protocol, TypeVar

from .crowd import Window

T_co = TypeVar("T_co", covariant=True)
PATIENCE_S = 120.0
HEAD_START_S = 0.1  # for the news of the window to reach everybody
Gate = Callable[[], Window]


class Job(Protocol[T_co]):
    """What a process does: it makes ready, passes the gate, works, and returns what goes back by pickle."""

    def __call__(self, number: int, gate: Gate) -> T_co: ...


def in_processes(count: int, job: Job[T_co], seconds: float) -> list[T_co]:
    """Let so many new processes do a job at once, and return what each made. The job is pickled."""
    context = multiprocessing.get_context("spawn")
    with ExitStack() as started:
        lines = [_start(context, started, job, number) for number in range(count)]
        for line in lines:
            _heard(line, PATIENCE_S)
        window = Window.opening(seconds, in_s=HEAD_START_S)
        for line in lines:
            line.send(window)
        return [_heard(line, seconds + PATIENCE_S) for line in lines]


def _start(context: Any, started: ExitStack, job: Job[Any], number: int) -> Connection:
    ours, theirs = context.Pipe()
    process = context.Process(target=_child, args=(theirs, job, number), daemon=True)
    process.start()
    theirs.close()  # so that a child's death ends the line
    started.callback(_end, process)
    return started.enter_context(ours)


def _end(process: BaseProcess) -> None:
    process.join(5)
    if process.is_alive():
        process.terminate()
        process.join()


def _heard(line: Connection, timeout_s: float) -> Any:
    if not line.poll(timeout_s):
        raise TimeoutError(f"a process said nothing for {timeout_s:.0f} s")
    failure, made = line.recv()
    if failure is not None:
        raise RuntimeError(f"a process failed: {failure}")
    return made


def _child(line: Connection, job: Job[Any], number: int) -> None:
    def gate() -> Window:
        line.send((None, None))
        window = line.recv()
        assert isinstance(window, Window)
        return window

    try:
        line.send((None, job(number, gate)))
    except Exception as error:
        line.send((repr(error), None))
