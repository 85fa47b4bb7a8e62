"""Locks straight in the database: through both faces, on SQLite and on Cassandra."""

from __future__ import annotations

import asyncio
import doctest
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from subprocess import PIPE
from typing import Any
from uuid import UUID, uuid4

import pytest
from eitherface import EitherFace
from eventually import BOUND_S, until
from readystore import ready_store
from taskstores import soon

from slotkeeper import schema
from slotkeeper.database import ClosedError, Store, Unavailable, open_store
from slotkeeper.locktable import (
    AlreadyReleased,
    AsyncLocker,
    BadLockRequest,
    Lock,
    Locker,
    LockHeld,
    LockLost,
    LockUnavailable,
    LockUnknown,
    NoName,
    NotHeld,
    direct,
)
from slotkeeper.locktable.direct import AsyncDirectLocks, DirectLocks, cluster_id
from slotkeeper.locktable.direct.ids import lock_id_of, owner_of_lock
from slotkeeper.owner import Owner
from slotkeeper.semaphore import AsyncClient, Client, HoldUnknown
from slotkeeper.semaphore.core import Core as Semaphores

WAIT_S = 20.0


class Direct(EitherFace):
    """A client of either face."""

    def __init__(self, face: str, store: Store | str, **options: Any) -> None:
        self.client: Any = (DirectLocks if face == "threads" else AsyncDirectLocks)(store, **options)
        super().__init__(face, self.client)

    def holding(self, name: str, body: Callable[[Any], Any], **named: Any) -> Any:
        """Do something while a lock is held; return the hold."""
        if self._runner is not None:
            return self.run(self._holding(name, body, named))
        with self.client.hold(name, **named) as hold:
            body(hold)
        return hold

    async def _holding(self, name: str, body: Callable[[Any], Any], named: dict[str, Any]) -> Any:
        async with self.client.hold(name, **named) as hold:
            await asyncio.to_thread(body, hold)
        return hold

    def end(self) -> None:
        """Close it and its loop."""
        self.close()
        super().end()


@pytest.fixture(scope="module")
def sqlite_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """An embedded store with the tables."""
    with ready_store(f"sqlite:///{tmp_path_factory.mktemp('locks')}/locks.db") as store:
        yield store


@pytest.fixture(params=["sqlite", "cassandra"])
def store(request: pytest.FixtureRequest) -> Store:
    """A database."""
    found: Store = request.getfixturevalue(f"{request.param}_store")
    return found


@pytest.fixture
def cluster() -> str:
    """A cluster of the test's own."""
    return f"cluster {uuid4()}"


@pytest.fixture
def locks(face: str, store: Store, cluster: str) -> Iterator[Direct]:
    """An open client."""
    yield from _opened(face, store, cluster, "n1")


@pytest.fixture
def other(face: str, store: Store, cluster: str) -> Iterator[Direct]:
    """Another one, as another node would have it."""
    yield from _opened(face, store, cluster, "n2")


def _opened(face: str, store: Store, cluster: str, node: str) -> Iterator[Direct]:
    opened = Direct(face, store, cluster=cluster, node=node)
    try:
        opened.open()
        yield opened
    finally:
        opened.end()


def test_the_package_tells_a_story_that_runs() -> None:
    results = doctest.testmod(direct)
    assert results.attempted > 0
    assert results.failed == 0


def test_the_faces_are_clients_like_all_others(store: Store) -> None:
    threads: Locker = DirectLocks(store)
    tasks: AsyncLocker = AsyncDirectLocks(store)
    assert repr(threads).startswith("<DirectLocks node=")
    assert repr(tasks).startswith("<AsyncDirectLocks node=")


def test_a_lock_has_one_holder(locks: Direct, other: Direct) -> None:
    before = time.monotonic()
    lock = locks.acquire("network/blue", holder="job 7", lease_s=60)

    with pytest.raises(LockHeld) as held:
        other.acquire("network/blue", holder="job 8")
    assert (held.value.lock.id, held.value.lock.holder, held.value.lock.node) == (lock.id, "job 7", "n1")
    assert held.value.lock.fence == lock.fence
    assert str(held.value).startswith("lock network/blue is held by job 7 on n1 until 20")

    assert other.acquire("another").name == "another"
    assert before + 58.8 <= lock.until <= time.monotonic() + 58.8
    assert UUID(lock.id).version == 4
    assert locks.release(lock)
    assert not locks.release(lock)
    assert other.acquire("network/blue").fence > lock.fence


def test_a_lock_is_listed_as_it_is(locks: Direct, other: Direct) -> None:
    b, a = locks.acquire("b", holder="two", lease_s=60), other.acquire("a", holder="one", lease_s=30)
    locks.release(locks.acquire("free"))

    listed = locks.locks()

    assert [(lock.name, lock.id, lock.node, lock.holder, lock.fence) for lock in listed] == [
        ("a", a.id, "n2", "one", a.fence),
        ("b", b.id, "n1", "two", b.fence),
    ]
    assert listed[1].left_s(time.monotonic()) == pytest.approx(60, abs=3)
    assert abs((listed[0].acquired_at - a.acquired_at).total_seconds()) < 1
    assert abs((listed[0].expires_at - a.expires_at).total_seconds()) < 3


def test_clusters_have_nothing_to_do_with_one_another(locks: Direct, face: str, store: Store) -> None:
    locks.acquire("a")
    elsewhere = Direct(face, store, cluster=f"not {locks.domain_id}")
    elsewhere.open()
    assert elsewhere.release(elsewhere.acquire("a"))
    elsewhere.end()
    assert cluster_id("x") == cluster_id("x") != cluster_id("y")
    assert cluster_id(UUID(int=7)) == UUID(int=7)


def test_who_waits_gets_the_lock_at_its_release(locks: Direct, other: Direct) -> None:
    lock = locks.acquire("a", holder="first")
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(other.acquire, "a", holder="second", wait_s=WAIT_S)
        with Client(locks.client._slots._store, domain=locks.domain_id) as slots:
            until(lambda: slots.waiters("a"))
            with pytest.raises(LockHeld) as held:
                locks.acquire("a")
            assert held.value.ahead == 1
        locks.release(lock)
        assert waiting.result(BOUND_S).fence > lock.fence


def test_the_end_of_a_lease_frees_the_lock(locks: Direct, other: Direct) -> None:
    lock = locks.acquire("a", lease_s=1)  # two whole seconds are the least

    next_one = other.acquire("a", wait_s=WAIT_S)

    assert time.monotonic() >= lock.until
    assert next_one.fence > lock.fence
    assert not locks.release(lock)
    with pytest.raises(NotHeld):
        locks.renew(lock)
    assert [held.id for held in locks.locks()] == [next_one.id]


def test_patience_ends_with_the_holder(locks: Direct, other: Direct) -> None:
    lock = locks.acquire("a")
    with pytest.raises(LockHeld) as held:
        other.acquire("a", wait_s=0.2)
    assert held.value.lock.id == lock.id


def test_a_renewal_counts_the_lease_anew(locks: Direct) -> None:
    lock = locks.acquire("a", lease_s=10)
    renewed = locks.renew(lock, 60)
    assert renewed.until > lock.until + 40
    assert (renewed.id, renewed.fence) == (lock.id, lock.fence)
    assert locks.locks()[0].left_s(time.monotonic()) > 50
    assert locks.release(lock)


def test_what_is_not_held_is_neither_renewed_nor_released(locks: Direct) -> None:
    lock = locks.acquire("a")
    never = Lock("never", lock.id, "", "", lock.acquired_at, lock.expires_at, lock.until)
    assert not locks.release(never)
    assert not locks.release("never", lock.id)
    assert not locks.release("a", "another id")
    with pytest.raises(NotHeld):
        locks.renew(never)
    assert locks.release("a", lock.id)
    with pytest.raises(NotHeld):
        locks.renew(lock)


def test_a_repeated_request_gets_the_same_lock(locks: Direct, other: Direct) -> None:
    lock = locks.acquire("a", holder="me", request="r1")
    again = locks.acquire("a", holder="me", request="r1")
    assert (again.id, again.fence) == (lock.id, lock.fence)
    assert again.id == lock_id_of("a", "r1") != lock_id_of("b", "r1")
    with pytest.raises(LockHeld):
        locks.acquire("a", holder="me", request="r2")

    assert not other.release_request("a", "r2")
    assert other.release_request("a", "r1")
    assert locks.locks() == []


def test_a_request_repeated_from_another_node_gets_the_same_lock(locks: Direct, other: Direct) -> None:
    lock = locks.acquire("a", holder="me", request="r1")

    again = other.acquire("a", holder="me too", wait_s=WAIT_S, request="r1")

    assert (again.id, again.fence, again.node, again.holder) == (lock.id, lock.fence, "n1", "me")
    assert other.renew(again).fence == lock.fence
    assert other.release(again)
    assert locks.locks() == []


def test_many_names_are_listed_in_pages(locks: Direct, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct.core, "PAGE", 2)
    held = [locks.acquire(name).name for name in "cabed"]
    assert [lock.name for lock in locks.locks()] == sorted(held)


HOLDER = """
import sys
from slotkeeper.locktable.direct import DirectLocks
with DirectLocks(sys.argv[1]) as locks, locks.hold("a", holder="child", lease_s=2) as hold:
    print(hold.fence, flush=True)
    sys.stdin.read()
"""


def test_the_lock_of_a_killed_process_comes_back_by_itself(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/locks.db"
    with closing(open_store(url)) as store:
        schema.setup(store)
    with subprocess.Popen([sys.executable, "-c", HOLDER, url], stdin=PIPE, stdout=PIPE, text=True) as child:
        assert child.stdout is not None
        fence = int(child.stdout.readline())
        with DirectLocks(url) as locks:
            with pytest.raises(LockHeld) as held:
                locks.acquire("a")
            assert held.value.lock.holder == "child"
            child.kill()
            assert locks.acquire("a", wait_s=WAIT_S).fence > fence


@pytest.mark.parametrize("name", ["ä" * 256, "a:b", "8:x", " "])
def test_names_that_a_lock_can_have(name: str, locks: Direct) -> None:
    lock = locks.acquire(name, holder="h:1:2")
    (listed,) = locks.locks()
    assert (listed.name, listed.holder, listed.id) == (name, "h:1:2", lock.id)
    assert locks.release(listed)


def test_what_no_request_can_say_is_refused(locks: Direct) -> None:
    with pytest.raises(NoName):
        locks.acquire("")
    for bad in ({"name": "a\n"}, {"name": "x" * 257}, {"name": "😀" * 256}, {"name": "a", "lease_s": float("nan")}):
        with pytest.raises(BadLockRequest):
            locks.acquire(**bad)
    lock = locks.acquire("a")
    with pytest.raises(BadLockRequest):
        locks.renew(lock, float("nan"))


def test_a_hold_is_renewed_and_given_back(locks: Direct, other: Direct) -> None:
    def body(hold: Any) -> None:
        first = hold.trusted_until
        until(lambda: hold.trusted_until > first)
        hold.check()
        assert not hold.is_lost
        assert hold.lock.fence == hold.fence
        assert "held" in repr(hold)
        with pytest.raises(LockHeld):
            DirectLocksBeside(other).acquire("a")

    hold = locks.holding("a", body, holder="me", lease_s=2)

    assert not hold.lost.is_set()
    assert "ended" in repr(hold)
    assert locks.locks() == []


class DirectLocksBeside:
    """Asks through a client of its own: the body of an asyncio hold runs in another thread than its loop."""

    def __init__(self, beside: Direct) -> None:
        self._store, self._domain = beside.client._slots._store, beside.domain_id

    def acquire(self, name: str) -> Lock:
        """Acquire a lock."""
        with DirectLocks(self._store, cluster=self._domain) as locks:
            return locks.acquire(name)

    def release(self, name: str, lock_id: str) -> bool:
        """Release a lock."""
        with DirectLocks(self._store, cluster=self._domain) as locks:
            return locks.release(name, lock_id)


def test_a_hold_that_somebody_released_is_lost(locks: Direct, other: Direct) -> None:
    def body(hold: Any) -> None:
        assert DirectLocksBeside(other).release("a", hold.id)
        until(lambda: hold.is_lost)
        until(hold.lost.is_set)
        with pytest.raises(LockLost):
            hold.check()

    with pytest.raises(LockLost) as lost:
        locks.holding("a", body, lease_s=2)

    assert (lost.value.name, lost.value.fence > 0) == ("a", True)


def test_the_error_of_a_body_is_the_one_to_see(locks: Direct, other: Direct) -> None:
    def body(hold: Any) -> None:
        DirectLocksBeside(other).release("a", hold.id)
        until(lambda: hold.is_lost)
        raise ZeroDivisionError("of the body")

    with pytest.raises(ZeroDivisionError) as error:
        locks.holding("a", body, lease_s=2)
    assert any("the lock was not given back" in note for note in error.value.__notes__)


def test_a_hold_is_given_back_once(store: Store, cluster: str) -> None:
    with DirectLocks(store, cluster=cluster) as locks:
        hold = locks.hold("a")
        assert hold.release()
        assert not hold.release()


def test_a_client_that_is_not_open_says_so(face: str, store: Store) -> None:
    locks = Direct(face, store)
    with pytest.raises(ClosedError, match="is not open"):
        locks.acquire("a")
    with pytest.raises(ClosedError):
        locks.locks()
    locks.end()


@pytest.mark.parametrize(
    ("error", "kind"),
    [(Unavailable(), LockUnavailable), (HoldUnknown("a", "o", wanted="acquire"), LockUnknown)],
)
def test_what_went_wrong_is_said_of_locks(
    error: Exception, kind: type[Exception], sqlite_store: Store, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with DirectLocks(sqlite_store, cluster=cluster) as locks:
        lock = locks.acquire("a")

        async def failing(*_: object, **__: object) -> None:
            raise error

        for method in ("acquire", "renew", "release", "page", "holder_of"):
            monkeypatch.setattr(Semaphores, method, failing)
        for call in (
            lambda: locks.acquire("a", request="r1"),
            lambda: locks.renew(lock),
            lambda: locks.release(lock),
            lambda: locks.release("a", lock.id),
            locks.locks,
        ):
            with pytest.raises(kind) as raised:
                call()
            assert raised.value.__cause__ is error


def test_a_wait_that_somebody_ended_holds_nothing(sqlite_store: Store, cluster: str) -> None:
    with DirectLocks(sqlite_store, cluster=cluster) as locks, ThreadPoolExecutor(1) as threads:
        locks.acquire("a")
        waiting = threads.submit(locks.acquire, "a", wait_s=WAIT_S)
        with Client(sqlite_store, domain=locks.domain_id) as slots:
            until(lambda: slots.waiters("a"))
            assert slots.cancel("a", slots.waiters("a")[0].owner_id)
        with pytest.raises(AlreadyReleased):
            waiting.result(BOUND_S)


async def test_a_cancelled_task_leaves_neither_place_nor_lock(sqlite_store: Store, cluster: str) -> None:
    async with AsyncDirectLocks(sqlite_store, cluster=cluster) as locks:
        lock = await locks.acquire("a")
        waiting = asyncio.ensure_future(locks.acquire("a", wait_s=WAIT_S))
        async with AsyncClient(sqlite_store, domain=locks.domain_id) as slots:

            async def somebody_waits() -> bool:
                return bool(await slots.waiters("a"))

            async def nobody_waits() -> bool:
                return not await slots.waiters("a")

            await soon(somebody_waits)
            waiting.cancel()
            await asyncio.wait([waiting])
            await soon(nobody_waits)
        await locks.release(lock)
        assert await locks.locks() == []


def test_a_slot_taken_without_these_locks_is_shown_and_can_be_released(sqlite_store: Store, cluster: str) -> None:
    owner = Owner("order:42", "run-1", 7)
    with DirectLocks(sqlite_store, cluster=cluster) as locks:
        locks.release(locks.acquire("a"))
        with Client(sqlite_store, domain=locks.domain_id) as slots:
            slots.acquire("a", owner).detach()
        (seen,) = locks.locks()
        assert (seen.id, seen.holder, owner_of_lock(seen)) == (str(owner), "order:42", owner)
        assert locks.release("a", str(owner))
        assert locks.locks() == []


def test_it_works_from_a_url(face: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/locks.db"
    with closing(open_store(url)) as store:
        schema.setup(store)
    locks = Direct(face, url)
    locks.open()
    assert locks.acquire("a").name == "a"
    locks.end()


def test_threads_and_tasks_of_many_clients_exclude_each_other(sqlite_store: Store, cluster: str) -> None:
    inside: list[int] = []
    fences: list[int] = []

    def work(number: int) -> None:
        with DirectLocks(sqlite_store, cluster=cluster) as locks:
            for _ in range(10):
                with locks.hold("a", wait_s=WAIT_S * 3) as hold:
                    inside.append(number)
                    assert inside == [number]
                    fences.append(hold.fence)
                    inside.clear()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    assert len(fences) == 40
    assert fences == sorted(set(fences))
