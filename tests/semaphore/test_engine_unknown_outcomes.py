"""Attempts whose outcome nobody tells, of every operation, alone and in a group: each caller gets its own right answer.

The real driver stands before a scripted server with a real partition behind it, so an attempt may take effect at once,
never, or late, whatever its sender is told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from threading import Event
from typing import Any
from uuid import uuid4

import pytest
from contract.clients import some_owner
from cqlserver import (
    CutAfter,
    ErrorFrame,
    Late,
    Silence,
    cas_write_unknown,
    overloaded,
    server_error,
    unavailable,
    write_failure,
    write_timeout,
)
from eventually import soon
from semaphorerows import Seen, seen
from servedstore import Behind, Landing, Told, driven, served

from slotkeeper.database import Store, settling
from slotkeeper.owner import Owner
from slotkeeper.semaphore import AsyncClient, Client, StaleFence, WaitCancelled

BOUND_S = 20.0
HASTY_S = 0.3
LEASE_S = 600
ANSWERED: dict[str, ErrorFrame] = {
    "write timeout CAS": write_timeout("CAS"),
    "write timeout SIMPLE": write_timeout("SIMPLE", consistency="LOCAL_QUORUM"),
    "write failure": write_failure("CAS"),
    "CAS write unknown": cas_write_unknown(),
    "unavailable at commit": unavailable("LOCAL_QUORUM"),
    "overloaded": overloaded(),
    "server error": server_error(),
}


class Scene:
    """A semaphore, the client that meets a fault, and a calm one that stands beside it on the same partition."""

    def __init__(self, behind: Behind, ours: AsyncClient, calm: Client, told: Told, landing: Landing) -> None:
        self.behind, self.ours, self.calm = behind, ours, calm
        self.told, self.landing = told, landing
        self.name, self.plug = f"s {uuid4()}", some_owner()

    async def begin(self, size: int) -> None:
        """Create the semaphore; one slot of it is the plug's."""
        self.calm.create(self.name, size + 1)
        assert self.calm.try_acquire(self.name, self.plug)
        await self.ours.describe(self.name)

    async def together(self, *calls: Awaitable[Any], owners: list[Owner]) -> list[Any]:
        """Let the calls leave in one batch, whose outcome is not told: they come while another batch is on its way."""
        gate = Event()
        self.behind.server.script(Late(gate, self.behind.commit))
        plug = asyncio.ensure_future(self.ours.renew(self.name, self.plug, lease_s=LEASE_S))
        await soon(lambda: not self.behind.server.script_left)
        tasks = [asyncio.ensure_future(call) for call in calls]
        for _ in range(5):
            await asyncio.sleep(0)
        self.behind.server.script(self.behind.fault(self.told, self.landing))
        gate.set()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        await plug
        await soon(lambda: bool(self.behind.faulted))
        (faulted,) = self.behind.faulted
        named = {value for statement in faulted.statements for value in statement.values}
        assert {str(owner) for owner in owners} <= named, "they did not leave together"
        return answers

    async def in_line(self, owners: list[Owner]) -> list[asyncio.Future[Any]]:
        """Let owners stand in line, one after the other."""
        waits: list[asyncio.Future[Any]] = []
        for owner in owners:
            waits.append(asyncio.ensure_future(self.ours.acquire(self.name, owner)))
            await soon(lambda: len(self.seen().line) == len(waits))
        return waits

    def seen(self) -> Seen:
        """Read the rows."""
        return seen(self.behind.store, self.calm.domain_id, self.name)

    def holding(self, *owners: Owner) -> None:
        """Check that these hold slots beside the plug and nobody else, and that nobody waits."""
        self.behind.land_late()
        rows = self.seen()
        assert rows.holders.keys() - {str(self.plug)} == {str(owner) for owner in owners}
        assert rows.line == []


# What each operation must come to, whatever its first attempt came to


async def grants(scene: Scene, owners: list[Owner]) -> None:
    """One more asks than there are slots."""
    await scene.begin(len(owners))
    last = some_owner()
    *holds, refused = await scene.together(
        *(scene.ours.try_acquire(scene.name, owner) for owner in [*owners, last]), owners=owners
    )
    assert refused is None
    assert [(hold.owner, hold.again) for hold in holds] == [(owner, False) for owner in owners]
    scene.holding(*owners)
    assert {each.fence for each in scene.calm.holders(scene.name)} >= {hold.fence for hold in holds}
    assert [await hold.release() for hold in holds] == [True] * len(owners)
    scene.holding()


async def releases(scene: Scene, owners: list[Owner]) -> None:
    """A stranger's release goes along and says no."""
    await scene.begin(len(owners))
    for owner in owners:
        scene.calm.acquire(scene.name, owner)
    *released, strange = await scene.together(
        *(scene.ours.release(scene.name, owner) for owner in [*owners, some_owner()]), owners=owners
    )
    assert (released, strange) == ([True] * len(owners), False)
    scene.holding()


async def hand_offs(scene: Scene, owners: list[Owner]) -> None:
    """As many wait as release."""
    await scene.begin(len(owners))
    for owner in owners:
        scene.calm.acquire(scene.name, owner)
    heirs = [some_owner() for _ in owners]
    waits = await scene.in_line(heirs)
    released = await scene.together(*(scene.ours.release(scene.name, owner) for owner in owners), owners=owners)
    assert released == [True] * len(owners)
    holds = await asyncio.gather(*waits)
    assert [(hold.owner, hold.again) for hold in holds] == [(heir, False) for heir in heirs]
    scene.holding(*heirs)
    assert not scene.seen().leases.keys() & {str(heir) for heir in heirs}


async def enqueues(scene: Scene, owners: list[Owner]) -> None:
    """They stand in the order in which they came, and get in one after the other."""
    await scene.begin(1)
    blocker = some_owner()
    scene.calm.acquire(scene.name, blocker)
    admitted: list[Owner] = []

    async def waits(owner: Owner) -> None:
        async with scene.ours.hold(scene.name, owner) as hold:
            assert not hold.again
            admitted.append(owner)

    async def lets_them_in() -> None:
        await soon(lambda: len(scene.seen().line) == len(owners))
        scene.behind.land_late()
        assert scene.seen().line == [str(owner) for owner in owners]
        assert scene.calm.release(scene.name, blocker)

    done = await scene.together(*map(waits, owners), lets_them_in(), owners=owners)
    assert (done, admitted) == ([None] * (len(owners) + 1), owners)
    scene.holding()


async def cancels(scene: Scene, owners: list[Owner]) -> None:
    """One who does not stand in line is cancelled with them, and that says no."""
    await scene.begin(0)
    waits = await scene.in_line(owners)
    *cancelled, strange = await scene.together(
        *(scene.ours.cancel(scene.name, owner) for owner in [*owners, some_owner()]), owners=owners
    )
    assert (cancelled, strange) == ([True] * len(owners), False)
    ends = await asyncio.gather(*waits, return_exceptions=True)
    assert [type(end) for end in ends] == [WaitCancelled] * len(owners)
    scene.holding()


async def departures(scene: Scene, owners: list[Owner]) -> None:
    """Their tasks are cancelled: they leave the line without anybody's asking."""
    await scene.begin(0)
    waits = await scene.in_line(owners)

    async def leave() -> None:
        for wait in waits:
            wait.cancel()

    await scene.together(leave(), *waits, owners=owners)
    await soon(lambda: scene.seen().line == [])
    scene.holding()


async def renewals(scene: Scene, owners: list[Owner]) -> None:
    """A stranger's renewal goes along and says no."""
    await scene.begin(len(owners))
    fences = [scene.calm.acquire(scene.name, owner, lease_s=30).fence for owner in owners]
    *renewed, strange = await scene.together(
        *(scene.ours.renew(scene.name, owner, lease_s=LEASE_S) for owner in [*owners, some_owner()]), owners=owners
    )
    assert renewed == fences
    assert isinstance(strange, StaleFence)
    scene.holding(*owners)
    assert all(scene.seen().leases[str(owner)] > 30 for owner in owners)


SCENES = pytest.mark.parametrize(
    "scene", [grants, releases, hand_offs, enqueues, cancels, departures, renewals], ids=lambda scene: scene.__name__
)
LANDINGS = pytest.mark.parametrize("landing", Landing, ids=lambda landing: landing.value)
GROUPED = pytest.mark.parametrize("count", [1, 3], ids=["single", "grouped"])
Play = Callable[[Scene, list[Owner]], Awaitable[None]]


async def play(scene: Play, count: int, told: Told, landing: Landing, behind: Behind, store: Store) -> None:
    """Run a scene with a client of its own."""
    behind.faulted.clear()
    with Client(behind.store) as calm:
        async with asyncio.timeout(BOUND_S), AsyncClient(store) as ours:
            await scene(Scene(behind, ours, calm, told, landing), [some_owner() for _ in range(count)])
    assert not behind.server.script_left


@pytest.fixture(autouse=True)
def _brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the pauses between attempts: how long they are decides nothing here."""
    monkeypatch.setattr(settling, "FIRST_PAUSE_S", 0.005)
    monkeypatch.setattr(settling, "SILENT_PAUSE_S", 0.02)


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[Behind, Store]]:
    """A server and a store for all errors that are answered."""
    with served() as behind, driven(behind) as store:
        yield behind, store


@pytest.fixture(scope="module")
def hasty() -> Iterator[tuple[Behind, Store]]:
    """A server and a store for silence: the store waits only briefly."""
    with served() as behind, driven(behind, request_timeout_s=HASTY_S) as store:
        store._session._default_timeout = BOUND_S  # for preparing, which is no part of the play
        yield behind, store


@SCENES
@GROUPED
@LANDINGS
@pytest.mark.parametrize("told", ANSWERED)
def test_answered_error_is_settled_for_everybody(
    shared: tuple[Behind, Store], told: str, landing: Landing, count: int, scene: Play
) -> None:
    asyncio.run(play(scene, count, ANSWERED[told], landing, *shared))


@SCENES
@LANDINGS
def test_silence_is_settled_for_everybody(hasty: tuple[Behind, Store], landing: Landing, scene: Play) -> None:
    asyncio.run(play(scene, 3, Silence(), landing, *hasty))


@SCENES
@pytest.mark.parametrize("landing", [Landing.APPLIED, Landing.NEVER], ids=lambda landing: landing.value)
def test_cut_connection_is_settled_for_everybody(landing: Landing, scene: Play) -> None:
    with served() as behind, driven(behind) as store:
        asyncio.run(play(scene, 3, CutAfter(), landing, behind, store))
