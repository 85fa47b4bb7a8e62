"""A caller's deadline ends its own operation and nobody else's, and what it leaves open is settled by whoever comes next."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from uuid import uuid4

import pytest
from contract.clients import some_owner
from cqlserver import Late, write_timeout
from eventually import soon, until
from semaphorerows import Seen, seen
from servedstore import Behind, Landing, driven, served

from slotkeeper.database import AsyncioPort, BlockingPort, Store, Unavailable, drive, settling
from slotkeeper.owner import Owner
from slotkeeper.semaphore import Client, HoldUnknown
from slotkeeper.semaphore.core import Core
from slotkeeper.semaphore.operations import Full, Granted, Released, Stale
from slotkeeper.semaphore.planned import PROVISIONAL_S

SHORT_S, LONG_S = 0.2, 30.0
SOON_S = 5.0  # far shorter than LONG_S, far longer than an answer takes


@pytest.fixture(autouse=True)
def _brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the pauses between attempts: how long they are decides nothing here."""
    monkeypatch.setattr(settling, "FIRST_PAUSE_S", 0.005)
    monkeypatch.setattr(settling, "LONGEST_PAUSE_S", 0.02)
    monkeypatch.setattr(settling, "SILENT_PAUSE_S", 0.02)


@pytest.fixture(scope="module")
def behind() -> Iterator[Behind]:
    """A scripted server with a partition behind it."""
    with served() as behind:
        yield behind


@pytest.fixture(scope="module")
def store(behind: Behind) -> Iterator[Store]:
    """The real driver in front of it."""
    with driven(behind) as store:
        yield store


@pytest.fixture
def calm(behind: Behind) -> Iterator[Client]:
    """A client that stands beside the server, on the same partition."""
    with Client(behind.store, domain=uuid4()) as client:
        yield client


@contextmanager
def held_back(behind: Behind) -> Iterator[Event]:
    """Let the next transaction take effect and be answered only when the event is set."""
    gate = Event()
    behind.server.script(Late(gate, behind.commit))
    try:
        yield gate
    finally:
        gate.set()


def rows(behind: Behind, calm: Client, name: str) -> Seen:
    """Read the rows."""
    return seen(behind.store, calm.domain_id, name)


def core_over(port: AsyncioPort | BlockingPort, calm: Client) -> Core:
    """Return a core with whose calls the test says how long each may take."""
    return Core(port, calm.domain_id, client_id=uuid4().hex, dice=random.random)


async def tried(core: Core, name: str, owner: Owner, timeout_s: float) -> Granted | Full:
    """Ask for a slot without standing in line."""
    return await core.acquire(name, owner, wait_s=0, lease_s=None, timeout_s=timeout_s)


@pytest.mark.parametrize(
    ("company", "error"), [("behind it", HoldUnknown), ("with it", HoldUnknown), ("before it", Unavailable)]
)
def test_task_whose_deadline_comes_leaves_the_others_to_their_answers(
    behind: Behind, store: Store, calm: Client, company: str, error: type[Exception]
) -> None:
    calm.create("s", 3)

    async def core() -> None:
        ours, patient = core_over(AsyncioPort(store), calm), [some_owner() for _ in range(2)]
        await ours.describe("s")
        with held_back(behind) as gate:
            waits = []
            if company == "before it":  # a patient one leads, and the hasty one waits behind it
                waits.append(asyncio.ensure_future(tried(ours, "s", patient[0], LONG_S)))
                await soon(lambda: not behind.server.script_left)
            hasty = asyncio.ensure_future(tried(ours, "s", some_owner(), SHORT_S))
            if company == "behind it":
                await soon(lambda: not behind.server.script_left)
            waits += [asyncio.ensure_future(tried(ours, "s", owner, LONG_S)) for owner in patient[len(waits) :]]
            with pytest.raises(error):
                await hasty
            assert not any(wait.done() for wait in waits)
            gate.set()
            async with asyncio.timeout(SOON_S):
                assert all(isinstance(answer, Granted) for answer in await asyncio.gather(*waits))

    asyncio.run(core())


def test_thread_whose_deadline_comes_leaves_the_others_to_their_answers(
    behind: Behind, store: Store, calm: Client
) -> None:
    calm.create("s", 3)
    ours = core_over(BlockingPort(store), calm)
    drive(ours.describe("s"))
    with ThreadPoolExecutor(3) as threads, held_back(behind) as gate:
        hasty = threads.submit(drive, tried(ours, "s", some_owner(), SHORT_S))
        until(lambda: not behind.server.script_left)
        waits = [threads.submit(drive, tried(ours, "s", some_owner(), LONG_S)) for _ in range(2)]
        assert isinstance(hasty.exception(SOON_S), HoldUnknown)
        gate.set()
        assert all(isinstance(wait.result(SOON_S), Granted) for wait in waits)


@pytest.mark.parametrize("landing", Landing, ids=lambda landing: landing.value)
@pytest.mark.parametrize("adopt", ["acquire", "release"])
def test_unknown_acquire_is_adopted_by_the_owners_next_call(
    behind: Behind, store: Store, calm: Client, adopt: str, landing: Landing
) -> None:
    calm.create("s", 2)
    owner = some_owner()
    ours = core_over(BlockingPort(store), calm)
    drive(ours.describe("s"))
    fault = behind.fault(write_timeout("CAS"), landing)
    behind.server.script(fault, *[behind.fault(write_timeout("CAS"), Landing.NEVER)] * 100)
    with pytest.raises(HoldUnknown) as caught:
        drive(tried(ours, "s", owner, SHORT_S))
    assert (caught.value.semaphore, caught.value.owner_id) == ("s", str(owner))
    behind.server.forget_script()

    if adopt == "acquire":
        granted = drive(tried(ours, "s", owner, LONG_S))
        assert isinstance(granted, Granted)
        behind.land_late()
        assert rows(behind, calm, "s").holders == {str(owner): granted.token}
    assert not isinstance(drive(ours.release("s", owner, None, LONG_S)), Stale)
    behind.land_late()
    assert rows(behind, calm, "s").holders == {}


def test_place_of_a_caller_whose_deadline_has_come_is_not_kept_for_ever(
    behind: Behind, store: Store, calm: Client
) -> None:
    """Its row ends by its TTL, and a slot that is handed to it meanwhile comes back within seconds."""
    calm.create("s", 1)
    blocker, owner = some_owner(), some_owner()
    assert calm.try_acquire("s", blocker)
    with ThreadPoolExecutor(1) as threads:
        ours = core_over(BlockingPort(store), calm)
        drive(ours.describe("s"))
        with held_back(behind):
            waits = threads.submit(drive, ours.acquire("s", owner, wait_s=0.01, lease_s=None, timeout_s=SHORT_S))
            assert isinstance(waits.exception(SOON_S), HoldUnknown)
        assert isinstance(drive(ours.release("s", blocker, None, LONG_S)), Released)
        assert (
            rows(behind, calm, "s").line == [str(owner)] or rows(behind, calm, "s").leases[str(owner)] <= PROVISIONAL_S
        )
