"""Three node processes on a real Cassandra: killed, stopped, all gone, and without their database."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx2
import pytest
from cluster import LocalNode, fresh_keyspace
from eventually import until
from locknodeprocess import BOUND_S, Load, NodeProcess, node_processes, speaker_of, stopped

from slotkeeper import schema
from slotkeeper.database import open_store
from slotkeeper.locktable import LockHeld, LockUnavailable
from slotkeeper.locktable.remote import LockClient

pytestmark = pytest.mark.timeout(300)
LEASE_S, LOCK = 4, "/api/cluster/lock"
LONG_LEASE_S = 30
AHEAD_S = 6 + 2  # how much longer than a lease its horizon is noted, and the rounding of TTLs
NAMES = ("a", "b", "c")


@pytest.fixture(scope="module")
def database(cassandra_url: str) -> str:
    """A keyspace with our tables."""
    with closing(open_store(cassandra_url)) as store:
        schema.setup(store)
    return cassandra_url


@pytest.fixture
def nodes(database: str, tmp_path: Path) -> Iterator[list[NodeProcess]]:
    """Three nodes, one of which speaks."""
    with node_processes(database, tmp_path, election_lease_s=LEASE_S) as nodes:
        yield nodes


def others(nodes: list[NodeProcess], node: NodeProcess) -> list[NodeProcess]:
    return [each for each in nodes if each is not node]


@pytest.mark.parametrize("through", ["others", "all"])
def test_kill_9_of_the_speaker_under_load(nodes: list[NodeProcess], through: str) -> None:
    """Clients wait for an election. What those of the dead one hold is told by its witness."""
    speaker = speaker_of(nodes)
    until(lambda: speaker.status().get("witness"), bound_s=BOUND_S)
    asked = nodes if through == "all" else others(nodes, speaker)
    staying = [each.url for each in others(nodes, speaker)]
    with (
        LockClient(staying) as client,
        client.hold("kept", lease_s=20) as hold,
        Load([each.url for each in asked], NAMES) as load,
    ):
        until(lambda: len(load.stays) > 30, bound_s=BOUND_S)
        speaker.kill()
        killed = time.monotonic()
        granted_before = len(load.stays)
        until(lambda: len(load.granted_since(killed)) > 30, bound_s=BOUND_S)
        until(lambda: hold.trusted_until > killed + 20, bound_s=BOUND_S)  # renewed, and not by the dead one
        assert not hold.is_lost
    load.check()

    first = min(stay.began for stay in load.granted_since(killed + 0.5))
    print(
        f"granted again {first - killed:.2f} s after kill -9; {granted_before} stays before, {len(load.stays)} in all"
    )
    assert first - killed <= LEASE_S + 2
    assert {stay.fence >> 32 for stay in load.stays} == {1, 2}


def test_kill_9_of_a_speaker_that_clients_ask_for_long_leases_keeps_nobody_else_waiting(
    nodes: list[NodeProcess],
) -> None:
    """What its own clients hold is told by its witness, so that nobody waits until their leases have ended."""
    speaker = speaker_of(nodes)
    until(lambda: speaker.status().get("witness"), bound_s=BOUND_S)
    rest = [each.url for each in others(nodes, speaker)]
    with LockClient([speaker.url, *rest]) as client:
        held = client.acquire("mine", lease_s=LONG_LEASE_S)
        with Load([node.url for node in nodes], NAMES, lease_s=LONG_LEASE_S) as load:
            until(lambda: len(load.stays) > 30, bound_s=BOUND_S)
            renewed = time.monotonic() + LEASE_S  # its row names the witness by then
            until(lambda: time.monotonic() > renewed, bound_s=BOUND_S)
            speaker.kill()
            killed = time.monotonic()
            with LockClient(rest) as another:
                another.acquire("new", wait_s=60)
            took = time.monotonic() - killed
            until(lambda: len(load.granted_since(killed)) > 10, bound_s=BOUND_S)
        load.check()

        print(f"granted again {took:.2f} s after kill -9, with {held.until - killed:.2f} s of a lease left")
        assert took <= LEASE_S + 2
        with pytest.raises(LockHeld):
            client.acquire("mine", wait_s=1)
        assert client.renew(held, lease_s=LONG_LEASE_S).fence == held.fence
        client.release(held)


def test_kill_9_of_the_node_that_holders_ask_costs_their_leases_and_no_more(nodes: list[NodeProcess]) -> None:
    speaker = speaker_of(nodes)
    with LockClient(speaker.url) as client:
        held = client.acquire("mine", lease_s=6)
    speaker.kill()
    killed = time.monotonic()

    with LockClient([each.url for each in others(nodes, speaker)]) as client:
        taken = client.acquire("mine", wait_s=60)

    took = time.monotonic() - killed
    print(f"granted again {took:.2f} s after kill -9, with {held.until - killed:.2f} s of a lease left")
    assert time.monotonic() >= held.until
    assert taken.fence > held.fence
    assert took <= 6 + AHEAD_S + LEASE_S + 2  # the lease, its horizon, and the election


def test_a_speaker_that_was_stopped_for_longer_than_its_lease_grants_nothing_when_it_wakes(
    nodes: list[NodeProcess],
) -> None:
    speaker = speaker_of(nodes)
    epoch = speaker.status()["epoch"]
    answers: list[httpx2.Response] = []

    def ask(name: str) -> None:
        asked = {"name": name, "lease": "2s"}
        answers.append(httpx2.post(f"{speaker.url}{LOCK}", json=asked, timeout=60, trust_env=False))

    with Load([each.url for each in others(nodes, speaker)], NAMES) as load:
        until(lambda: len(load.stays) > 10, bound_s=BOUND_S)
        with stopped(speaker):
            asking = [threading.Thread(target=ask, args=(name,)) for name in (*NAMES, "d")]  # to be read when it wakes
            for each in asking:
                each.start()
            until(lambda: any(each.speaks for each in others(nodes, speaker)), bound_s=BOUND_S)
            until(lambda: any(stay.fence >> 32 > epoch for stay in load.stays), bound_s=BOUND_S)
        for each in asking:
            each.join()
        woken = time.monotonic()
        until(lambda: len(load.granted_since(woken)) > 10, bound_s=BOUND_S)
    load.check()

    assert len(answers) == 4
    for answer in answers:
        assert answer.status_code in (200, 409, 503), answer.text
        if answer.status_code == 200:  # it handed the request over
            assert answer.json()["fence"] >> 32 > epoch


def test_speakers_end_in_every_way_one_after_the_other_under_load(nodes: list[NodeProcess]) -> None:
    def told_to_stop(node: NodeProcess) -> None:
        node.signal(signal.SIGTERM)
        node.wait()
        node.start()

    def stopped_for_a_while(node: NodeProcess) -> None:
        with stopped(node):
            until(lambda: any(each.speaks for each in others(nodes, node)), bound_s=BOUND_S)

    def killed(node: NodeProcess) -> None:
        node.kill()
        node.start()

    with Load([each.url for each in nodes], NAMES) as load:
        until(lambda: len(load.stays) > 30, bound_s=BOUND_S)
        for end in (told_to_stop, stopped_for_a_while, killed, told_to_stop):
            speaker, began = speaker_of(nodes), time.monotonic()
            end(speaker)
            ended = time.monotonic()
            until(lambda ended=ended: len(load.granted_since(ended)) > 20, bound_s=BOUND_S)  # type: ignore[misc]
            print(f"{speaker.name} {end.__name__}: 20 grants {time.monotonic() - began:.1f} s later")
    load.check()

    assert len({stay.fence >> 32 for stay in load.stays}) >= 4


def test_after_all_nodes_died_nothing_is_granted_before_the_old_leases_have_ended(nodes: list[NodeProcess]) -> None:
    with LockClient([node.url for node in nodes]) as client:
        held = client.acquire("mine", lease_s=9)
        for node in nodes:
            node.kill()
        died = time.monotonic()
        for node in nodes:
            node.start()
        granted: dict[str, float] = {}
        for name in ("mine", "another"):
            lock = client.acquire(name, wait_s=60)
            granted[name] = time.monotonic()
            assert lock.fence > held.fence

    took = min(granted.values()) - died
    print(f"granted again {took:.2f} s after all died, with {held.until - died:.2f} s of a lease left")
    assert min(granted.values()) >= held.until
    assert took <= 9 + AHEAD_S + LEASE_S + 10  # the lease, its horizon, the election, and starting up


@contextmanager
def own_cassandra() -> Iterator[tuple[str, int]]:
    """A Cassandra that nobody else uses, as the URL of a keyspace with our tables and the id of its process."""
    with (
        LocalNode() as node,
        node.server.session() as session,
        fresh_keyspace(session, node.server.local_dc, "test") as keyspace,
    ):
        url = node.server.url(keyspace)
        with closing(open_store(url)) as store:
            schema.setup(store)
        assert node._java is not None
        yield url, node._java.pid


def test_without_the_database_holders_keep_their_locks_and_nobody_gets_one(tmp_path: Path) -> None:
    with (
        own_cassandra() as (url, pid),
        node_processes(url, tmp_path, election_lease_s=LEASE_S) as nodes,
        LockClient([node.url for node in nodes], timeout_s=3) as client,
    ):
        hold = client.hold("mine", lease_s=90)
        os.kill(pid, signal.SIGSTOP)
        away = time.monotonic()
        try:
            until(lambda: not any(node.speaks for node in nodes), bound_s=BOUND_S)
            silent = time.monotonic() - away
            refused = count_refusals(client, away + 20)
        finally:
            os.kill(pid, signal.SIGCONT)
        back = time.monotonic()
        new = client.acquire("new", wait_s=60)
        healed = time.monotonic() - back

        print(f"no speaker after {silent:.2f} s, {refused} requests refused, healed {healed:.2f} s after it was back")
        assert silent <= LEASE_S + 2
        assert not hold.is_lost
        with pytest.raises(LockHeld):
            client.acquire("mine")
        assert new.fence > hold.fence
        assert hold.release()


def count_refusals(client: LockClient, until_moment: float) -> int:
    """Ask for a lock until a moment: nobody grants it."""
    refused = 0
    while time.monotonic() < until_moment:
        with pytest.raises(LockUnavailable):
            client.acquire("new")
        refused += 1
    return refused
