"""What schedules of the simulator have shown, played again one by one. The seeds are those of their time."""

from __future__ import annotations

import pytest
from lockcluster import Cluster, want

from slotkeeper.locktable import LockUnavailable, NotTheSpeaker
from slotkeeper.locktable.node import Node


def test_seed_343_release_through_a_node_that_knows_nobody_is_not_said_to_be_done(cluster: Cluster) -> None:
    grant = cluster.done(cluster.granting().acquire(want("x", lease_s=60)))
    late = cluster.start("late", reaching_the_database=False)[-1]

    with pytest.raises(LockUnavailable):
        cluster.done(late.release("x", grant.lock.id))

    cluster.ports["late"].network.is_away = False
    cluster.until(lambda: late.known.speaker is not None)
    assert cluster.done(late.release("x", grant.lock.id))
    assert cluster.done(cluster.granting().locks()) == []


def test_seed_100604_nodes_that_begin_together_know_one_another_soon(cluster: Cluster) -> None:
    cluster.kill("a", "b", "c")

    nodes = cluster.start("a", "b", "c")

    cluster.run(cluster.terms.beat_s + 0.5)
    assert [_known(node) >= {"a", "b", "c"} for node in nodes] == [True] * 3


def test_seed_6107_speaker_forgets_a_lock_of_its_own_that_was_released_through_another_node(cluster: Cluster) -> None:
    speaker, other = cluster.granting(), cluster.others()[0]
    lock = cluster.done(speaker.acquire(want("x", lease_s=300, request="r"))).lock
    cluster.done(other.renew("x", lock.id, 300))

    cluster.done(other.release("x", request="r"))

    assert speaker.held.locks() == []
    cluster.ports[speaker.me.node].network.is_away = True
    cluster.until(lambda: cluster.speaker() not in (None, speaker))
    assert cluster.done(cluster.granting().acquire(want("x"))).lock.id != lock.id


def test_seed_2614_grant_that_was_never_answered_comes_back_with_a_greater_fence(cluster: Cluster) -> None:
    speaker, others = cluster.granting(), cluster.others()
    _reach(cluster)
    unanswered = cluster.begin(speaker.acquire(want("x", lease_s=300, request="r")), group=speaker.me.node)
    cluster.until(lambda: unanswered.is_done)
    assert isinstance(unanswered.error, LockUnavailable)

    _reach(cluster, *(node.me.node for node in others))
    cluster.until(lambda: cluster.speaker() not in (None, speaker))
    second = cluster.granting()
    between = cluster.done(second.acquire(want("x", lease_s=300))).lock
    cluster.done(second.release("x", between.id))
    cluster.run(2)
    _reach(cluster, speaker.me.node)
    cluster.until(lambda: cluster.speaker() is speaker)

    assert cluster.done(cluster.granting().acquire(want("x", lease_s=300, request="r"))).lock.fence > between.fence


def test_seed_38473_lock_that_nobody_waits_for_is_left_to_its_lease_where_nobody_can_be_told(cluster: Cluster) -> None:
    speaker, (other, third) = cluster.granting(), cluster.others()
    cut_off = False
    cluster.holds = lambda source, target, message: (lambda: cut_off) if target == speaker.me.node else 0.0
    asked = cluster.begin(other.acquire(want("x", lease_s=30, wait_s=300)), group=other.me.node)
    cluster.run(1.0)
    cluster.ports[speaker.me.node].network.is_away = True
    cluster.until(lambda: asked.is_done)
    assert isinstance(asked.error, NotTheSpeaker)

    other.members.are_known = False  # its own row has not landed, so it did not come to look
    cluster.ports[other.me.node].network.is_away = True
    cluster.cut(other.me.node, speaker.me.node)
    cluster.cut(other.me.node, third.me.node)
    cut_off = True

    cluster.run(60.0)  # and nothing ends with an error that nobody waits for
    assert cluster.done(cluster.granting().locks()) == []


def _reach(cluster: Cluster, *names: str) -> None:
    """Let only these nodes reach the database."""
    for name, port in cluster.ports.items():
        port.network.is_away = name not in names


def _known(node: Node) -> set[str]:
    return {peer.node for peer in node.members.peers}
