"""The simulated store passes the contract of every store: the suites of `contract`, run on it through all three ports."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from contract.faces import FACES, Face, blocking_face
from contract.model import Model, steps
from contract.rooms import Room
from contract.test_random_batches import Steps, agree
from contract.test_slices import *  # noqa: F403
from contract.test_ttl import *  # noqa: F403
from contract.test_values import *  # noqa: F403
from contract.test_verb import *  # noqa: F403
from contract.worlds import World
from hypothesis import given, settings

from slotkeeper.database.simulated import Scheduler, SimulatedPort, SimulatedStore, Straight


@contextmanager
def simulated_face() -> Iterator[Face]:
    """Give the face of a schedule in which nothing goes wrong."""
    scheduler = Scheduler()
    yield Face(lambda store: SimulatedPort(scheduler, Straight(store)), scheduler.finished)


@pytest.fixture
def world() -> World:
    """A store whose clock the test moves."""
    now = [1_000.5]

    def let_pass() -> None:
        now[0] += 0.04

    return World("simulated:", SimulatedStore(clock=lambda: now[0]), let_pass)


@pytest.fixture(params=[*FACES, "simulated"])
def face(request: pytest.FixtureRequest) -> Iterator[Face]:
    """A port: blocking, asyncio or simulated."""
    with (FACES | {"simulated": simulated_face})[request.param]() as face:
        yield face


@pytest.fixture
def room(world: World, face: Face) -> Room:
    """A partition of its own."""
    return Room(world, face)


@settings(deadline=None, max_examples=200)
@given(steps(ttl_s=(1, 2, 3, 60), most_pause_s=3))
def test_simulated_store_does_what_the_model_does(happened: Steps) -> None:
    now = [1_000.0]
    store, model = SimulatedStore(clock=lambda: now[0]), Model()
    with blocking_face() as face:
        room = Room(World("simulated:", store, lambda: None), face)
        for pause_s, writes in happened:
            now[0] += pause_s
            model.now_s += pause_s
            agree(room, model, writes)
