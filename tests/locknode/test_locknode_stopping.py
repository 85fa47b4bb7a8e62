"""A node that stops in order holds nobody up: the seat is free at once, and its clients' locks are somebody else's to tell."""

from __future__ import annotations

import pytest
from lockcluster import Cluster, want

from slotkeeper.database import Slice
from slotkeeper.locktable import Grant, LockHeld, LockUnavailable
from slotkeeper.locktable.node import NodeLeaving
from slotkeeper.locktable.node.messages import Done, Leave, Refusal, Renew, Told
from slotkeeper.locktable.node.rows import CLUSTERS, HORIZON_ROWS, NODES


def rows(cluster: Cluster) -> set[str]:
    """Return the instances that have a horizon row."""
    found = cluster.store.read(CLUSTERS, ("c",), (HORIZON_ROWS,), serial=True)
    return {str(row["instance"]) for row in found}


def stopped(cluster: Cluster, name: str) -> float:
    """Stop a node in order, and return how long that took."""
    began_at = cluster.now()
    cluster.ended(cluster.begin(cluster.nodes[name].stop(), group=name))
    took_s = cluster.now() - began_at
    cluster.kill(name)
    return took_s


def test_a_speaker_that_stops_lets_another_one_grant_at_once(cluster: Cluster) -> None:
    speaker, (other, _) = cluster.granting(), cluster.others()
    cluster.run(cluster.terms.beat_s)
    own: Grant = cluster.done(speaker.acquire(want("own", lease_s=300)))
    grant: Grant = cluster.done(other.acquire(want("x", lease_s=300)))

    took_s = stopped(cluster, speaker.me.node)
    again_s = cluster.until(lambda: (node := cluster.speaker()) is not None and node.speaking.table.is_rebuilt)

    assert took_s + again_s < 1.5
    after = cluster.granting()
    assert [lock.id for lock in cluster.done(after.locks())] == [own.lock.id, grant.lock.id]
    assert cluster.done(after.acquire(want("y"))).lock.fence >> 32 == 2


def test_what_a_stopped_nodes_clients_hold_is_told_by_another_one(cluster: Cluster) -> None:
    speaker, (leaving, _) = cluster.granting(), cluster.others()
    grant: Grant = cluster.done(leaving.acquire(want("x", lease_s=300)))

    assert stopped(cluster, leaving.me.node) < 1.0

    assert rows(cluster) == {speaker.me.instance}
    assert [lock.id for lock in speaker.held.locks()] == [grant.lock.id]
    cluster.kill(speaker.me.node)
    (again,) = cluster.start(speaker.me.node)
    after_s = cluster.until(lambda: (node := cluster.speaker()) is not None and node.speaking.table.is_rebuilt)
    assert 280 < after_s + 10 < 320  # it waits for the one that died, and for nobody else
    assert again.me.node in cluster.nodes


def test_what_was_left_is_told_in_the_next_rebuild_and_renewed(cluster: Cluster) -> None:
    speaker, (leaving, third) = cluster.granting(), cluster.others()
    grant: Grant = cluster.done(leaving.acquire(want("x", lease_s=300)))
    cluster.run(cluster.terms.beat_s)
    stopped(cluster, leaving.me.node)
    stopped(cluster, speaker.me.node)

    assert cluster.granting() is third
    assert rows(cluster) == {third.me.instance}
    assert [lock.id for lock in cluster.done(third.locks())] == [grant.lock.id]
    assert cluster.done(third.renew("x", grant.lock.id, 60)).lock.fence == grant.lock.fence
    with pytest.raises(LockHeld):
        cluster.done(third.acquire(want("x")))


def test_all_stopped_in_order_with_nothing_held_are_there_again_at_once(cluster: Cluster) -> None:
    cluster.run(cluster.terms.beat_s)
    for node in list(cluster.nodes.values()):
        grant: Grant = cluster.done(node.acquire(want("x", lease_s=600)))
        cluster.done(node.release("x", grant.lock.id))
    for name in list(cluster.nodes):
        assert stopped(cluster, name) < 2.0
    assert rows(cluster) == set()
    assert cluster.store.read(NODES, ("c",), (Slice(),), serial=True) == []
    cluster.start("a", "b", "c")
    began_at = cluster.now()

    cluster.granting()

    assert cluster.now() - began_at < 1.0


def test_the_last_one_leaves_its_leases_to_the_clock(cluster: Cluster) -> None:
    cluster.run(cluster.terms.beat_s)
    for node in cluster.others():
        stopped(cluster, node.me.node)
    last = cluster.granting()
    cluster.until(lambda: not last.members.others)
    ends_at = cluster.done(last.acquire(want("x", lease_s=60))).lock.until

    assert stopped(cluster, last.me.node) < 1.0

    cluster.start("a")
    cluster.granting()
    assert ends_at <= cluster.now() < ends_at + cluster.terms.ahead_s + 5


def test_those_who_wait_are_told_to_ask_elsewhere(cluster: Cluster) -> None:
    speaker, (other, _) = cluster.granting(), cluster.others()
    cluster.done(other.acquire(want("x", lease_s=600)))
    waiting = [cluster.begin(node.acquire(want("x", wait_s=300)), group=node.me.node) for node in (speaker, other)]
    cluster.run(0.5)

    stopping = cluster.begin(speaker.stop(), group=speaker.me.node)
    for task in waiting:
        with pytest.raises(LockUnavailable):
            cluster.ended(task, within_s=5)
    cluster.ended(stopping)


def test_a_request_that_stands_in_another_nodes_line_ends_when_its_node_stops(cluster: Cluster) -> None:
    other = cluster.others()[0]
    cluster.done(other.acquire(want("x", lease_s=600)))
    waiting = cluster.begin(other.acquire(want("x", wait_s=300)), group=other.me.node)
    cluster.run(0.5)

    cluster.ended(cluster.begin(other.stop(), group=other.me.node))

    with pytest.raises(NodeLeaving):
        cluster.ended(waiting, within_s=5)


def test_nothing_is_handed_out_once_it_was_left(cluster: Cluster) -> None:
    speaker, (leaving, _) = cluster.granting(), cluster.others()
    cluster.holds = lambda source, target, message: 2.0 if target == speaker.me.node else 0.0
    late = cluster.begin(leaving.acquire(want("x", lease_s=60)), group=leaving.me.node)
    cluster.run(0.5)

    stopping = cluster.begin(leaving.stop(), group=leaving.me.node)
    with pytest.raises(NodeLeaving):
        cluster.ended(late)
    cluster.ended(stopping)
    assert leaving.held.locks() == []


def test_a_node_that_left_is_granted_nothing_more(cluster: Cluster) -> None:
    speaker, (leaving, _) = cluster.granting(), cluster.others()
    cluster.done(leaving.acquire(want("x", lease_s=60)))
    told = tuple(Told.of(lock, cluster.now()) for lock in leaving.held.locks())
    assert isinstance(cluster.done(speaker.answer(Leave(asker=leaving.me, held=told))), Done)
    assert isinstance(cluster.done(speaker.answer(Leave(asker=leaving.me, held=told))), Done)  # asked twice

    with pytest.raises(LockUnavailable):
        cluster.done(leaving.acquire(want("y", lease_s=60)))
    assert rows(cluster) == {speaker.me.instance}


def test_nobody_leaves_to_a_node_that_stops_or_does_not_speak(cluster: Cluster) -> None:
    speaker, (leaving, third) = cluster.granting(), cluster.others()
    message = Leave(asker=leaving.me, held=())

    assert isinstance(cluster.done(third.answer(message)), Refusal)
    speaker.takes_requests = False
    assert isinstance(cluster.done(speaker.answer(message)), Refusal)


def test_nobody_leaves_to_a_speaker_that_does_not_know_yet_what_they_hold(cluster: Cluster) -> None:
    speaker, (leaving, third) = cluster.granting(), cluster.others()
    cluster.done(leaving.acquire(want("x", lease_s=600)))
    cluster.done(third.acquire(want("y", lease_s=600)))
    cluster.silent.update((leaving.me.node, third.me.node))
    cluster.kill(speaker.me.node)
    cluster.until(lambda: cluster.speaker() is not None)
    after = cluster.speaker()
    assert after is not None
    other = third if after is leaving else leaving
    cluster.run(1.0)
    message = Leave(asker=other.me, held=())

    assert isinstance(cluster.done(after.answer(message)), Refusal)
    cluster.silent.clear()
    cluster.granting()
    assert isinstance(cluster.done(after.answer(message)), Done)


def test_stopping_ends_although_the_database_is_away(cluster: Cluster) -> None:
    speaker = cluster.granting()
    cluster.done(speaker.acquire(want("x", lease_s=600)))
    for port in cluster.ports.values():
        port.network.is_away = True

    assert stopped(cluster, speaker.me.node) <= cluster.terms.stop_s + cluster.terms.ask_s


def test_stopping_twice_or_before_the_start_does_nothing(cluster: Cluster) -> None:
    other = cluster.others()[0]
    for _ in range(2):
        cluster.ended(cluster.begin(other.stop(), group=other.me.node))
    assert not other.takes_requests


def test_no_renewal_is_handed_out_once_the_lock_was_left(cluster: Cluster) -> None:
    """The speaker's own row covers the lock as it was left, not as it was renewed through a node that is gone."""
    speaker, (leaving, _) = cluster.granting(), cluster.others()
    grant: Grant = cluster.done(leaving.acquire(want("x", lease_s=10)))
    cluster.holds = lambda source, target, message: 2.0 if isinstance(message, Renew) else 0.0
    late = cluster.begin(leaving.renew("x", grant.lock.id, 600), group=leaving.me.node)
    cluster.run(0.5)

    cluster.ended(cluster.begin(leaving.stop(), group=leaving.me.node))

    with pytest.raises(NodeLeaving):
        cluster.ended(late)
    assert rows(cluster) == {speaker.me.instance}
