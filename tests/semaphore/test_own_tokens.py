"""Processes that share a bucket keep out of each other's way: each takes again the tokens that it gave back itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from simulator.stage import Actor, Stage

from slotkeeper.database import Batch, Outcome, Refused
from slotkeeper.semaphore.operations import Granted, Released

PROCESSES, CYCLES = 4, 25


@pytest.fixture
def stage() -> Iterator[Stage]:
    """A bucket of twice as many tokens as there are owners."""
    stage = Stage(2 * PROCESSES)
    yield stage
    stage.close()


def cycle(stage: Stage, actors: list[Actor]) -> None:
    """Let everybody hold a slot at once, each for an owner of its own."""
    for operation, answer in ((Actor.acquire, Granted), (Actor.release, Released)):
        asked = [operation(actor, number) for number, actor in enumerate(actors)]
        assert all(isinstance(stage.answer(task), answer) for task in asked)


def test_processes_refuse_each_other_at_first_only(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes: list[Outcome] = []
    commit = stage.store.commit

    def noted(batch: Batch) -> Outcome:
        outcomes.append(commit(batch))
        return outcomes[-1]

    monkeypatch.setattr(stage.store, "commit", noted)
    actors = [stage.actor(f"c{number}") for number in range(PROCESSES)]
    cycle(stage, actors)
    first = sum(isinstance(outcome, Refused) for outcome in outcomes)
    for _ in range(CYCLES):
        cycle(stage, actors)

    assert first > 0, "they all began at the same token"
    assert sum(isinstance(outcome, Refused) for outcome in outcomes) == first
