"""Each race that the rules of the rebuild close, played move by move (the former ones were found one by one)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from lockcluster import Cluster, want

from slotkeeper.locktable import Grant, LockHeld, LockUnavailable, NotHeld
from slotkeeper.locktable.node import Node
from slotkeeper.locktable.node.messages import Forget, Item, Rebuild, Release


def trio(cluster: Cluster) -> tuple[Node, Node, Node]:
    """Return the speaker and the other two."""
    speaker = cluster.granting()
    one, other = cluster.others()
    return speaker, one, other


def granted(cluster: Cluster, node: Node, name: str, lease_s: float = 600) -> Grant:
    """Let a client of a node have a lock."""
    grant: Grant = cluster.done(node.acquire(want(name, lease_s=lease_s)))
    return grant


def deposed(cluster: Cluster, speaker: Node) -> Node:
    """Take the database from the speaker until another node grants, and give it back."""
    network = cluster.ports[speaker.me.node].network
    network.is_away = True
    cluster.until(lambda: cluster.speaker() not in (None, speaker))
    network.is_away = False
    return cluster.granting()


def regained(cluster: Cluster, speaker: Node) -> None:
    """Let a speaker lose its seat, and take it again."""
    for name in cluster.nodes:
        cluster.ports[name].network.is_away = True
    cluster.until(lambda: cluster.speaker() is None)
    cluster.ports[speaker.me.node].network.is_away = False
    assert cluster.granting() is speaker


def test_a_rebuild_of_a_table_that_was_lost_meanwhile_changes_nothing(cluster: Cluster) -> None:
    """Generation: the nodes were read, then the speaker lost its seat, and regained it."""
    speaker, one, other = trio(cluster)
    granted(cluster, one, "x")
    granted(cluster, other, "y")
    cluster.kill(speaker.me.node)
    cluster.holds = lambda source, target, message: 3.0 if isinstance(message, Rebuild) else 0.0
    cluster.until(lambda: cluster.speaker() is not None)
    asking = cluster.speaker()
    assert asking is not None
    asked = other if asking is one else one
    cluster.run(0.5)
    first = asking.speaking.rebuilding
    assert first is not None
    cluster.done(asking.answer(Rebuild(epoch=asking.promised, speaker=asked.me)))  # the same epoch: no harm
    assert asking.speaking.rebuilding is first
    cluster.done(asking.speaking.end())
    cluster.holds = lambda source, target, message: 0.0

    cluster.run(3.5)  # the answer to the first rebuild has come by now
    assert first.answered == 0
    after = cluster.granting()

    assert after.speaking.table.epoch == 3
    assert [lock.name for lock in cluster.done(after.locks())] == ["x", "y"]
    with pytest.raises(LockHeld):
        cluster.done(after.acquire(want("x")))


def test_a_grant_made_while_another_rebuild_might_run_is_never_lost(cluster: Cluster) -> None:
    """One rebuild a term: many requests that find the table not rebuilt start no other one."""
    speaker, one, other = trio(cluster)
    granted(cluster, one, "x")
    granted(cluster, other, "z")
    cluster.kill(speaker.me.node)
    cluster.holds = lambda source, target, message: 2.0 if isinstance(message, Rebuild) else 0.0
    cluster.until(lambda: cluster.speaker() is not None)
    for _ in range(5):
        for node in (one, other):
            with pytest.raises(LockUnavailable):
                cluster.done(node.acquire(want("y")))
    after = cluster.granting()
    grant = granted(cluster, after, "y")
    cluster.run(5.0)

    assert sum(isinstance(message, Rebuild) for _, _, message in cluster.said) == 1
    assert grant.lock.id in [lock.id for lock in cluster.done(after.locks())]


def test_a_grant_whose_answer_was_lost_is_found_in_what_its_granter_granted(cluster: Cluster) -> None:
    """Former grants: the answer never reached the asking node, and a repeated request is to find the lock."""
    speaker, one, _ = trio(cluster)
    granted(cluster, speaker, "own", 60)
    cluster.silent.add(speaker.me.node)
    asked = cluster.begin(one.acquire(want("x", lease_s=60, request="r")), group=one.me.node)
    cluster.run(1.0)
    cluster.silent.clear()

    after = deposed(cluster, speaker)

    assert [lock.name for lock in cluster.done(after.locks())] == ["own", "x"]
    assert cluster.done(one.acquire(want("x", request="r", lease_s=60))).again
    with pytest.raises(LockUnavailable):
        cluster.ended(asked)


def test_who_regains_the_seat_reads_what_it_granted_itself(cluster: Cluster) -> None:
    """The same race, where the node loses and regains the speaking itself."""
    speaker, one, other = trio(cluster)
    cluster.silent.add(speaker.me.node)
    cluster.begin(one.acquire(want("x", lease_s=120, request="r")), group=one.me.node)
    cluster.run(1.0)
    cluster.silent.clear()
    cluster.kill(one.me.node, other.me.node)
    deposed_at = cluster.now()

    regained(cluster, speaker)

    assert [lock.name for lock in cluster.done(speaker.node_locks())] == []
    assert cluster.now() > deposed_at + 100  # the other's row has ended: its client may have had the lock for so long


def test_a_lock_released_elsewhere_is_not_brought_back_by_its_holders_node(cluster: Cluster) -> None:
    speaker, one, other = trio(cluster)
    cluster.run(cluster.terms.beat_s)
    grant = granted(cluster, one, "x")
    cluster.done(other.release("x", grant.lock.id))
    cluster.run(1.0)
    cluster.kill(speaker.me.node)

    assert cluster.done(cluster.granting().locks()) == []


def test_a_lock_released_at_a_later_speaker_is_not_brought_back_by_its_granter(cluster: Cluster) -> None:
    speaker, one, _ = trio(cluster)
    granted(cluster, speaker, "own")
    grant = granted(cluster, one, "x")
    after = deposed(cluster, speaker)
    cluster.run(cluster.terms.beat_s)
    assert cluster.done(one.release("x", grant.lock.id))
    cluster.run(1.0)

    assert [lock.name for lock in cluster.done(speaker.node_locks())] == ["own", "own"]
    again = deposed(cluster, after)
    assert [lock.name for lock in cluster.done(again.locks())] == ["own"]


def test_a_rebuild_that_reads_a_node_before_the_word_reaches_it_skips_what_was_released(cluster: Cluster) -> None:
    """Released ids: a node still tells of the lock, and the new speaker has heard already."""
    speaker, one, other = trio(cluster)
    grant = granted(cluster, one, "x")
    cluster.kill(speaker.me.node)
    for node in (one, other):
        cluster.done(
            node.speaking.table.forget("x", grant.lock.id)
        )  # both tables have heard, the holder's memory has not
    assert [lock.id for lock in one.held.locks()] == [grant.lock.id]

    assert cluster.done(cluster.granting().locks()) == []


def test_a_word_that_comes_after_the_rebuild_ends_the_lock_there(cluster: Cluster) -> None:
    """The reverse order: the rebuild has brought the lock back, and then the word arrives."""
    speaker, one, _ = trio(cluster)
    grant = granted(cluster, one, "x")
    cluster.kill(speaker.me.node)
    after = cluster.granting()
    assert [lock.id for lock in cluster.done(after.locks())] == [grant.lock.id]

    cluster.done(after.answer(Forget(items=(Item("x", grant.lock.id),))))

    assert cluster.done(after.locks()) == []
    cluster.done(after.acquire(want("x")))


def test_released_here_lost_and_rebuilt_here_stays_released(cluster: Cluster) -> None:
    """Release records the id too: a stale node brings it back to the very table that released it."""
    speaker, one, other = trio(cluster)
    grant = granted(cluster, one, "x")
    for name in (one.me.node, other.me.node):
        cluster.cut(speaker.me.node, name)
    cluster.done(speaker.answer(Release(asker=other.me, name="x", id=grant.lock.id)))
    cluster.cuts.clear()
    assert [lock.id for lock in one.held.locks()] == [grant.lock.id]

    regained(cluster, speaker)

    assert cluster.done(speaker.locks()) == []


def test_what_was_not_held_at_its_release_does_not_come_back_either(cluster: Cluster) -> None:
    speaker, one, _ = trio(cluster)
    grant = granted(cluster, one, "x")
    after = deposed(cluster, speaker)
    cluster.done(after.speaking.table.release("x", grant.lock.id))

    assert not cluster.done(after.release("x", grant.lock.id))
    regained(cluster, after)

    assert cluster.done(after.locks()) == []


def test_of_two_locks_of_a_name_the_one_granted_later_is_the_holders(cluster: Cluster) -> None:
    """A node has not heard that its client's lock was released, and tells of it beside the one granted since."""
    speaker, one, other = trio(cluster)
    stale = granted(cluster, one, "x", 600).lock
    cluster.done(speaker.release("x", stale.id))
    cluster.run(1.0)
    real = granted(cluster, other, "x", 60).lock
    one.held.add(stale)  # as if the word had been lost
    cluster.kill(speaker.me.node)
    after = cluster.granting()

    assert [lock.id for lock in cluster.done(after.locks())] == [real.id]
    assert cluster.done(other.renew("x", real.id, 60)).lock.id == real.id


def test_a_grant_handed_out_to_nobody_does_not_cost_the_holder_its_lock(cluster: Cluster) -> None:
    speaker, one, _ = trio(cluster)
    real = granted(cluster, one, "x", 60).lock
    granted(cluster, speaker, "own", 60)
    ghost = replace(real, id="ghost", until=real.until + 500, fence=real.fence + 9)
    generation = speaker.speaking.table.generation
    cluster.done(speaker.speaking.table.rebuild(generation, [ghost, *cluster.done(speaker.locks())]))

    after = deposed(cluster, speaker)

    assert [lock.id for lock in cluster.done(after.locks()) if lock.name == "x"] == [real.id]


def test_a_lock_renewed_during_the_rebuild_goes_before_a_stale_one(cluster: Cluster) -> None:
    """Its node was restarted and remembers nothing; its granter does. Another node tells of a lock that was released before."""
    speaker, one, other = trio(cluster)
    stale = granted(cluster, other, "x", 90).lock
    cluster.done(speaker.release("x", stale.id))
    cluster.run(1.0)
    real = granted(cluster, one, "x", 60).lock
    granted(cluster, speaker, "own", 60)
    other.held.add(stale)  # as if the word had been lost
    cluster.kill(one.me.node)
    (again,) = cluster.start(one.me.node)
    network = cluster.ports[speaker.me.node].network
    network.is_away = True
    cluster.until(lambda: cluster.speaker() not in (None, speaker))
    network.is_away = False
    cluster.run(1.0)

    renewed = cluster.done(again.renew("x", real.id, 300))
    after = cluster.granting()

    assert [lock.id for lock in cluster.done(after.locks()) if lock.name == "x"] == [real.id]
    assert cluster.done(again.renew("x", real.id, 300)).lock.fence == renewed.lock.fence


def test_a_stale_lock_is_not_renewed_during_the_rebuild_once_the_later_one_was_told(cluster: Cluster) -> None:
    """An operator released it behind its holder's back, its node has not heard of that, and the name was granted anew."""
    speaker, one, other = trio(cluster)
    stale = granted(cluster, other, "x", 90).lock
    cluster.done(speaker.release("x", stale.id))
    cluster.run(1.0)
    granted(cluster, one, "x", 60)
    granted(cluster, speaker, "own", 60)
    other.held.add(stale)  # as if the word had been lost
    cluster.kill(speaker.me.node)  # it is waited for
    cluster.until(lambda: cluster.speaker() is not None)
    cluster.run(1.0)

    with pytest.raises(NotHeld):
        cluster.done(other.renew("x", stale.id, 300))
