"""What a person sees of a demo while it runs: a table that moves on a terminal, and a line a second elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from .crew import WAITING, WORKING, Crew
from .options import Choices
from .output import console, new_table

if TYPE_CHECKING:
    from rich.console import RenderableType

FRAME_S = 0.1
LINE_S = 1.0


def watch(choices: Choices, crew: Crew, slots: int, seconds: float | None) -> float:
    """Show the crew until it is done, or until its time is over. Return how long that took, in seconds."""
    began = time.monotonic()

    def passed() -> float:
        return time.monotonic() - began

    def goes_on() -> bool:
        return crew.wait(FRAME_S) and (seconds is None or passed() < seconds)

    if choices.json or choices.quiet:
        _in_silence(goes_on)
    elif sys.stderr.isatty():
        _live(crew, slots, goes_on, passed)
    else:
        _lines(crew, slots, goes_on, passed)
    return passed()


def _in_silence(goes_on: Callable[[], bool]) -> None:
    while goes_on():
        pass


def _lines(crew: Crew, slots: int, goes_on: Callable[[], bool], passed: Callable[[], float]) -> None:
    told = 0.0
    while goes_on():
        if passed() - told >= LINE_S:
            told = passed()
            click.echo(_line(crew, slots, told), err=True)


def _live(crew: Crew, slots: int, goes_on: Callable[[], bool], passed: Callable[[], float]) -> None:
    from rich.live import Live

    with Live(console=console(stderr=True), auto_refresh=False, transient=True) as live:
        while goes_on():
            live.update(_picture(crew, slots, passed()), refresh=True)


def _line(crew: Crew, slots: int, passed_s: float) -> str:
    states = [worker.state for worker in crew.workers]
    done = len(crew.visits)
    inside, waiting = states.count(WORKING), states.count(WAITING)
    return f"{passed_s:5.1f} s  {done:5} jobs done, {inside} of {slots} slots held, {waiting} workers waiting"


def _picture(crew: Crew, slots: int, passed_s: float) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    return Group(_slots(crew, slots), Text(), _workers(crew), Text(), Text(_line(crew, slots, passed_s)))


def _slots(crew: Crew, slots: int) -> RenderableType:
    table = new_table(("#slot", "holder", "#fence"))
    inside = {hold.token: hold for worker in crew.workers if (hold := worker.hold) is not None}
    for token in range(1, slots + 1):
        hold = inside.get(token)
        table.add_row(str(token), hold.owner.workflow_id if hold else "-", str(hold.fence) if hold else "")
    return table


def _workers(crew: Crew) -> RenderableType:
    from rich.text import Text

    table = new_table(("#worker", "state", "#jobs"))
    colours = {WORKING: "green", WAITING: "yellow"}
    for worker in crew.workers:
        state = worker.state
        table.add_row(str(worker.number), Text(f"{state:<7}", style=colours.get(state, "")), str(worker.jobs))
    return table
