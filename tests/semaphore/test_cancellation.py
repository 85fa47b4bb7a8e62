"""Tasks that are cancelled, at every await of every operation: nothing leaks, and nobody else notices."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import suppress
from types import coroutine
from typing import Any
from uuid import uuid4

import pytest
from contract.clients import some_owner
from eventually import soon
from readystore import ready_store
from semaphorerows import Seen, seen

from slotkeeper.database import Store
from slotkeeper.owner import Owner
from slotkeeper.semaphore import AsyncClient, WaitCancelled

MOST_AWAITS = 200


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    """An embedded store with the tables."""
    with ready_store() as store:
        yield store


class Cancels:
    """Runs work and cancels it at its n-th await: as the wait begins, or when what it waits for has just come."""

    def __init__(self, number: int, *, answered: bool) -> None:
        self.number, self.answered, self.awaits = number, answered, 0

    async def run(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run work in a task of its own, until it ends or is cancelled."""
        task = asyncio.ensure_future(self._stepped(work))
        with suppress(asyncio.CancelledError):
            await task

    @property
    def came_to_it(self) -> bool:
        """Tell whether the work had so many awaits."""
        return self.awaits >= self.number

    @coroutine
    def _stepped(self, work: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
        step: Callable[[], Any] = lambda: work.send(None)  # noqa: E731 - it changes
        while True:
            try:
                waited_for = step()
            except StopIteration as done:
                return done.value
            self.awaits += 1
            if self.awaits == self.number:
                self._cancel(waited_for)
            try:
                yield waited_for
                step = lambda: work.send(None)  # noqa: E731
            except BaseException as error:
                step = lambda error=error: work.throw(error)  # type: ignore[misc]  # noqa: E731

    def _cancel(self, waited_for: asyncio.Future[Any] | None) -> None:
        task = asyncio.current_task()
        assert task is not None
        if self.answered and waited_for is not None:
            waited_for.add_done_callback(lambda _: task.cancel())
        else:
            task.cancel()


class Scene:
    """A semaphore, and the client whose caller is cancelled."""

    def __init__(self, client: AsyncClient, store: Store, cancels: Cancels) -> None:
        self.client, self.store, self.cancels, self.name = client, store, cancels, f"s {uuid4()}"

    async def begin(self, size: int = 1) -> None:
        """Create the semaphore."""
        await self.client.create(self.name, size)

    def seen(self) -> Seen:
        """Read the rows, which must agree."""
        return seen(self.store, self.client.domain_id, self.name)

    async def comes_to(self, *holders: Owner) -> None:
        """Wait until these hold slots and nobody waits."""
        wanted = {str(owner) for owner in holders}
        await soon(lambda: (rows := self.seen()).holders.keys() == wanted and not rows.line, bound_s=2)


async def try_acquire(scene: Scene) -> None:
    """A free slot is asked for."""
    await scene.begin()

    async def asks() -> None:
        hold = await scene.client.try_acquire(scene.name, some_owner())
        assert hold is not None
        await hold.release()

    await scene.cancels.run(asks())
    await scene.comes_to()


async def with_statement(scene: Scene) -> None:
    """A slot is held, and given back, whatever the way out is."""
    await scene.begin()

    async def holds() -> None:
        async with scene.client.hold(scene.name, some_owner()):
            await asyncio.sleep(0)

    await scene.cancels.run(holds())
    await scene.comes_to()


async def waiting(scene: Scene) -> None:
    """Somebody waits for a slot that is released meanwhile; another one waits behind."""
    await scene.begin()
    holder, friend = await scene.client.acquire(scene.name, some_owner()), some_owner()

    async def waits() -> None:
        async with scene.client.hold(scene.name, some_owner()):
            await asyncio.sleep(0)

    first = asyncio.ensure_future(scene.cancels.run(waits()))
    await soon(lambda: bool(scene.seen().line) or first.done())
    second = asyncio.ensure_future(scene.client.acquire(scene.name, friend))
    await soon(lambda: str(friend) in scene.seen().line or second.done())
    await holder.release()
    await first
    async with asyncio.timeout(2):
        hold = await second
    await scene.comes_to(friend)
    assert await hold.release()


async def waiting_in_vain(scene: Scene) -> None:
    """Somebody's patience ends; the holder stays."""
    await scene.begin()
    holder = await scene.client.acquire(scene.name, some_owner())

    async def waits() -> None:
        with suppress(TimeoutError):
            await scene.client.acquire(scene.name, some_owner(), wait_s=0.03)

    await scene.cancels.run(waits())
    await scene.comes_to(holder.owner)


async def release(scene: Scene) -> None:
    """A hold is given back by a call that is cancelled: the hold ends all the same."""
    await scene.begin()
    hold = await scene.client.acquire(scene.name, some_owner())
    await scene.cancels.run(hold.release())
    await scene.comes_to()


async def release_in_company(scene: Scene) -> None:
    """A hold is given back while another batch is on its way, and nobody comes later."""
    await scene.begin(2)
    hold, friend = await scene.client.acquire(scene.name, some_owner()), some_owner()
    before = asyncio.ensure_future(scene.client.acquire(scene.name, friend))
    await asyncio.sleep(0)
    await scene.cancels.run(hold.release())
    async with asyncio.timeout(2):
        await before
    await scene.comes_to(friend)


async def renew(scene: Scene) -> None:
    """A renewal that is cancelled may have taken effect; the hold goes on."""
    await scene.begin()
    hold = await scene.client.acquire(scene.name, some_owner())
    await scene.cancels.run(scene.client.renew(scene.name, hold.owner, lease_s=600, fence=hold.fence))
    await scene.comes_to(hold.owner)
    assert await scene.client.renew(scene.name, hold.owner, lease_s=None, fence=hold.fence) == hold.fence
    assert await hold.release()


async def cancel(scene: Scene) -> None:
    """Taking somebody out of the line may have taken effect; it can be done again."""
    await scene.begin()
    holder = await scene.client.acquire(scene.name, some_owner())
    owner = some_owner()
    waits = asyncio.ensure_future(scene.client.acquire(scene.name, owner))
    await soon(lambda: bool(scene.seen().line))
    await scene.cancels.run(scene.client.cancel(scene.name, owner))
    await scene.client.cancel(scene.name, owner)
    async with asyncio.timeout(2):
        with pytest.raises(WaitCancelled):
            await waits
    await scene.comes_to(holder.owner)


async def company(scene: Scene) -> None:
    """Others ask at the same time, before and behind it: they get their answers."""
    await scene.begin(4)
    friends = [some_owner() for _ in range(4)]

    def ask(owner: Owner) -> Awaitable[Any]:
        return asyncio.ensure_future(scene.client.acquire(scene.name, owner, wait_s=2))

    async def asks() -> None:
        async with scene.client.hold(scene.name, some_owner()):
            await asyncio.sleep(0)

    before = [ask(owner) for owner in friends[:2]]
    victim = asyncio.ensure_future(scene.cancels.run(asks()))
    await asyncio.sleep(0)
    behind = [ask(owner) for owner in friends[2:]]
    await victim
    async with asyncio.timeout(4):
        holds = await asyncio.gather(*before, *behind)
    await scene.comes_to(*friends)
    assert [await hold.release() for hold in holds] == [True] * 4


SCENES = [try_acquire, with_statement, waiting, waiting_in_vain, release, release_in_company, renew, cancel, company]
Play = Callable[[Scene], Awaitable[None]]
EVERY = pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
ANSWERED = pytest.mark.parametrize("answered", [False, True], ids=["as the wait begins", "as the answer comes"])


async def cancelled_everywhere(scene: Play, store: Store, *, answered: bool) -> int:
    """Play a scene again and again, the cancellation one await later each time. Return how many awaits it has."""
    async with AsyncClient(store, domain=uuid4()) as client:
        for number in range(1, MOST_AWAITS):
            cancels = Cancels(number, answered=answered)
            await scene(Scene(client, store, cancels))
            if not cancels.came_to_it:
                return number - 1
    raise AssertionError("the scene does not end")


@EVERY
@ANSWERED
def test_nothing_leaks_wherever_a_task_is_cancelled(store: Store, scene: Play, answered: bool) -> None:
    assert asyncio.run(cancelled_everywhere(scene, store, answered=answered)) >= 1


@pytest.mark.parametrize("scene", [with_statement, waiting, company], ids=lambda scene: scene.__name__)
@ANSWERED
def test_nothing_leaks_on_cassandra(cassandra_store: Store, scene: Play, answered: bool) -> None:
    assert asyncio.run(cancelled_everywhere(scene, cassandra_store, answered=answered)) >= 1


def test_client_that_closes_waits_for_what_cancelled_callers_left(store: Store) -> None:
    async def core() -> None:
        async with AsyncClient(store, domain=uuid4()) as client:
            await client.create("s", 1)
            cancels = Cancels(3, answered=True)  # it has read what the semaphore is, and its rows, and has written
            await cancels.run(client.acquire("s", some_owner()))
            assert cancels.came_to_it
        assert seen(store, client.domain_id, "s").holders == {}

    asyncio.run(core())
