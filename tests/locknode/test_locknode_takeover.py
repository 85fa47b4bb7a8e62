"""A new speaker grants nothing before the leases of the former ones are known or have ended."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from lockcluster import Cluster, want

from slotkeeper.database import Batch, Outcome
from slotkeeper.database.simulated import Task
from slotkeeper.database.simulated.port import SimulatedPending
from slotkeeper.locktable import Grant, LockHeld, LockUnavailable, NotHeld, NotRebuilt
from slotkeeper.locktable.node import GrantLate, Node, Peer
from slotkeeper.locktable.node.messages import Given, Rebuild
from slotkeeper.locktable.node.rows import CLUSTERS, HORIZON_ROWS


def held_by(cluster: Cluster, name: str, node_name: str, lease_s: float = 30.0) -> Grant:
    """Let a client of a node have a lock."""
    grant: Grant = cluster.done(cluster.nodes[node_name].acquire(want(name, holder=f"of {node_name}", lease_s=lease_s)))
    return grant


def refused_until(cluster: Cluster, name: str, ends_at: float) -> None:
    """Let a lock be asked for again and again, and see that it is not granted before the lease ends."""
    while True:
        for node in list(cluster.nodes.values()):
            try:
                grant = cluster.done(node.acquire(want(name, lease_s=5)))
            except (LockUnavailable, LockHeld):
                continue
            assert cluster.now() >= ends_at, f"{grant} while the former lease runs"
            return
        cluster.run(0.5)


def test_a_lock_outlives_the_speaker_that_granted_it(cluster: Cluster) -> None:
    speaker, other = cluster.granting(), cluster.others()[0]
    grant = held_by(cluster, "x", other.me.node, 60)
    cluster.kill(speaker.me.node)

    after = cluster.granting()

    assert cluster.now() < 10
    (lock,) = cluster.done(after.locks())
    assert (lock.id, lock.fence, lock.holder) == (grant.lock.id, grant.lock.fence, grant.lock.holder)
    with pytest.raises(LockHeld):
        cluster.done(after.acquire(want("x")))
    assert cluster.done(after.acquire(want("y"))).lock.fence > grant.lock.fence


def test_all_killed_and_started_again_grant_nothing_before_the_old_leases_end(cluster: Cluster) -> None:
    speaker, other = cluster.granting(), cluster.others()[0]
    ends = {name: held_by(cluster, name, node.me.node, 120).lock.until for name, node in (("x", speaker), ("y", other))}
    cluster.run(5.0)
    cluster.kill("a", "b", "c")
    cluster.start("a", "b", "c")

    for name, ends_at in ends.items():
        refused_until(cluster, name, ends_at)

    # The rows outlast the leases a little; whoever holds nothing keeps nobody waiting for long.
    assert cluster.now() < max(ends.values()) + cluster.terms.ahead_s + 5


def test_a_cluster_without_leases_is_there_at_once_after_a_restart(cluster: Cluster) -> None:
    cluster.kill("a", "b", "c")
    cluster.start("a", "b", "c")
    began_at = cluster.now()

    cluster.granting()

    assert cluster.now() - began_at < cluster.terms.speaker_lease_s + cluster.terms.beat_s


def test_a_node_that_does_not_answer_holds_the_rebuild_up_until_its_leases_end(cluster: Cluster) -> None:
    speaker, (silent, third) = cluster.granting(), cluster.others()
    ends_at = held_by(cluster, "x", silent.me.node, 60).lock.until
    cluster.cut(silent.me.node, third.me.node)
    cluster.cut(speaker.me.node, silent.me.node)
    cluster.ports[silent.me.node].network.is_away = True
    cluster.kill(speaker.me.node)
    cluster.until(lambda: cluster.speaker() is third)

    status = cluster.done(third.status())
    assert [each.peer for each in status.held_up_by] == [silent.me]
    assert 0 < status.held_up_by[0].left_s <= 60 + cluster.terms.ahead_s + 5
    assert not status.rebuilt
    with pytest.raises(NotRebuilt):
        cluster.done(third.acquire(want("y")))

    refused_until(cluster, "x", ends_at)
    assert cluster.done(third.status()).held_up_by == ()


def test_what_was_told_can_be_renewed_while_another_node_holds_the_rebuild_up(cluster: Cluster) -> None:
    speaker, (lively, third) = cluster.granting(), cluster.others()
    held_by(cluster, "x", speaker.me.node, 300)
    grant = held_by(cluster, "y", lively.me.node, 20)
    cluster.kill(speaker.me.node)
    cluster.until(lambda: cluster.speaker() is not None)
    cluster.run(1.0)

    for _ in range(10):
        renewed = cluster.done(lively.renew("y", grant.lock.id, 20))
        assert renewed.lock.fence == grant.lock.fence
        assert renewed.lasts_s == pytest.approx(20, abs=0.1)
        cluster.run(10.0)

    with pytest.raises(NotRebuilt):
        cluster.done(third.acquire(want("z")))
    with pytest.raises(NotRebuilt):
        cluster.done(lively.renew("x", "not told", 20))
    cluster.granting()
    assert [lock.id for lock in cluster.done(third.locks())] == []  # its renewals have ended by then, as has the other


def test_a_renewal_during_the_rebuild_is_known_after_it(cluster: Cluster) -> None:
    speaker, (lively, _) = cluster.granting(), cluster.others()
    held_by(cluster, "x", speaker.me.node, 30)
    grant = held_by(cluster, "y", lively.me.node, 30)
    cluster.kill(speaker.me.node)
    cluster.until(lambda: cluster.speaker() is not None)
    cluster.run(1.0)
    renewed = cluster.done(lively.renew("y", grant.lock.id, 600))

    after = cluster.granting()

    (lock,) = cluster.done(after.locks())
    assert lock.id == grant.lock.id
    assert lock.until >= renewed.lock.until


def test_a_release_during_the_rebuild_stays_one(cluster: Cluster) -> None:
    speaker, (lively, _) = cluster.granting(), cluster.others()
    held_by(cluster, "x", speaker.me.node, 30)
    grant = held_by(cluster, "y", lively.me.node, 600)
    cluster.kill(speaker.me.node)
    cluster.until(lambda: cluster.speaker() is not None)
    cluster.run(1.0)

    assert cluster.done(lively.release("y", grant.lock.id))
    with pytest.raises(LockUnavailable):
        cluster.done(lively.renew("y", grant.lock.id))
    assert cluster.done(cluster.granting().locks()) == []


def test_a_restarted_node_is_not_its_former_self(cluster: Cluster) -> None:
    speaker, (holder, third) = cluster.granting(), cluster.others()
    ends_at = held_by(cluster, "x", holder.me.node, 60).lock.until
    cluster.kill(holder.me.node)
    (again,) = cluster.start(holder.me.node)
    cluster.kill(speaker.me.node)
    cluster.until(lambda: cluster.speaker() is not None)

    assert again.me.address == holder.me.address
    assert again.me.instance != holder.me.instance
    refused_until(cluster, "x", ends_at)
    assert third.me.node in cluster.nodes


def test_a_paused_speaker_finds_itself_deposed(cluster: Cluster) -> None:
    speaker, (holder, third) = cluster.granting(), cluster.others()
    grant = held_by(cluster, "x", holder.me.node, 120)
    cluster.pause(speaker.me.node, 30.0)
    waiting = cluster.begin(speaker.acquire(want("y", wait_s=1)), group=speaker.me.node)
    cluster.until(lambda: cluster.speaker() in (holder, third), within_s=15)
    after = cluster.granting()
    assert not speaker.speaking.is_trusted

    cluster.run(30.0)

    with pytest.raises(LockUnavailable):
        cluster.ended(waiting)
    assert cluster.granting() is after
    assert [lock.id for lock in cluster.done(speaker.locks())] == [grant.lock.id]


def test_a_speaker_cut_off_from_the_database_and_from_the_next_one_lets_nobody_in_too_early(cluster: Cluster) -> None:
    speaker, (holder, third) = cluster.granting(), cluster.others()
    ends_at = held_by(cluster, "x", speaker.me.node, 60).lock.until
    name = speaker.me.node
    for other in (holder, third):
        cluster.cut(name, other.me.node)
    cluster.ports[name].network.is_away = True
    last_own = cluster.done(speaker.acquire(want("own", lease_s=30))).lock  # it may: its horizon is noted for longer

    cluster.until(lambda: cluster.speaker() in (holder, third))
    with pytest.raises(LockUnavailable):
        cluster.done(speaker.acquire(want("z")))
    del cluster.nodes[name]
    refused_until(cluster, "own", last_own.until)
    refused_until(cluster, "x", ends_at)


def test_when_the_database_is_away_holders_keep_what_they_have_and_all_heals(cluster: Cluster) -> None:
    grant = held_by(cluster, "x", cluster.others()[0].me.node, 120)
    for port in cluster.ports.values():
        port.network.is_away = True
    cluster.until(lambda: cluster.speaker() is None, within_s=cluster.terms.speaker_lease_s)
    for node in cluster.nodes.values():
        with pytest.raises(LockUnavailable):
            cluster.done(node.acquire(want("y")))
    cluster.run(20.0)
    for port in cluster.ports.values():
        port.network.is_away = False

    after = cluster.granting()

    assert [lock.id for lock in cluster.done(after.locks())] == [grant.lock.id]
    cluster.done(after.acquire(want("y")))


def test_fences_grow_across_speakers_and_restarts(cluster: Cluster) -> None:
    fences = []
    for _ in range(4):
        node = cluster.granting()
        grant = cluster.done(node.acquire(want("x", lease_s=1)))
        fences.append(grant.lock.fence)
        cluster.done(node.release("x", grant.lock.id))
        cluster.kill(*list(cluster.nodes))
        cluster.start("a", "b")

    assert fences == sorted(set(fences))
    assert [fence >> 32 for fence in fences] == sorted({fence >> 32 for fence in fences})


def test_a_steady_load_costs_no_transaction_a_grant(cluster: Cluster) -> None:
    speaker, other = cluster.granting(), cluster.others()[0]
    held_by(cluster, "first", other.me.node)
    commits = cluster.ports[speaker.me.node].network.commits
    before, began_at = len(commits), cluster.now()

    for count in range(400):
        grant = held_by(cluster, f"n{count}", other.me.node)
        cluster.done(other.release(grant.lock.name, grant.lock.id))
        cluster.run(0.1)

    beats = (cluster.now() - began_at) / (cluster.terms.beat_s * 0.75)
    assert len(commits) - before <= beats + 10  # renewals, and those of the nodes' rows


def test_more_nodes_than_fit_a_batch_are_noted_in_several(cluster: Cluster) -> None:
    speaker = cluster.granting()
    peers = [Peer(f"n{n}", f"i{n}", "b") for n in range(400)]

    tasks = [cluster.begin(speaker.speaking.election.cover(peer, cluster.now() + 60)) for peer in peers]
    for task in tasks:
        cluster.ended(task)

    assert all(speaker.speaking.horizon.covers(peer.instance, cluster.now() + 59) for peer in peers)
    assert max(len(batch.writes) for batch in cluster.ports[speaker.me.node].network.commits) <= 150
    assert cluster.speaker() is speaker


def test_no_later_write_shortens_a_row_that_was_found(cluster: Cluster) -> None:
    """A short lease through a node must not shorten the row that stands for its long one."""
    speaker, (holder, _) = cluster.granting(), cluster.others()
    ends_at = held_by(cluster, "x", holder.me.node, 300).lock.until
    cluster.kill(speaker.me.node)
    cluster.granting()
    cluster.done(holder.acquire(want("short", lease_s=1)))
    cluster.run(10.0)
    cluster.done(holder.acquire(want("short", lease_s=1)))
    cluster.kill(*list(cluster.nodes))
    cluster.start("d")

    refused_until(cluster, "x", ends_at)


def in_flight(cluster: Cluster, holder: Node, lands: Callable[[], bool]) -> tuple[Node, Task]:
    """Let the speaker grant a lock to a node's client, with an answer that arrives when something holds; and lose its seat."""
    speaker = cluster.granting()
    cluster.holds = lambda source, target, message: lands if target == speaker.me.node else 0.0
    asked = cluster.begin(holder.acquire(want("x", lease_s=60, wait_s=30)), group=holder.me.node)
    cluster.run(1.0)
    assert [lock.name for lock in cluster.done(speaker.node_locks())] == ["x"]
    cluster.ports[speaker.me.node].network.is_away = True
    return speaker, asked


def test_a_grant_of_a_former_speaker_is_not_handed_out_after_the_rebuild(cluster: Cluster) -> None:
    """The answer arrives the moment after its node has told a new speaker that it holds nothing."""
    _, (holder, third) = cluster.granting(), cluster.others()
    cluster.ports[holder.me.node].network.is_away = True
    _, asked = in_flight(cluster, holder, lambda: third.speaking.table.is_rebuilt)

    with pytest.raises(GrantLate):
        cluster.ended(asked)

    assert holder.held.locks() == []
    assert cluster.speaker() is third
    cluster.done(third.acquire(want("x")))


def test_a_grant_of_a_former_speaker_is_not_handed_out_by_the_new_one(cluster: Cluster) -> None:
    """The same, where the node that the answer arrives at speaks by then."""
    _, (holder, third) = cluster.granting(), cluster.others()
    cluster.ports[third.me.node].network.is_away = True
    _, asked = in_flight(cluster, holder, lambda: holder.speaking.table.is_rebuilt)

    with pytest.raises(GrantLate):
        cluster.ended(asked)

    assert holder.held.locks() == []
    assert cluster.speaker() is holder
    cluster.done(holder.acquire(want("x")))


def test_a_grant_whose_client_comes_to_it_in_a_later_term_is_not_handed_out(cluster: Cluster) -> None:
    """The first in line was granted the lock, and did not come to see it before its node lost the seat and regained it."""
    speaker, (other, _) = cluster.granting(), cluster.others()
    first = held_by(cluster, "x", speaker.me.node, 600)
    waiting = cluster.begin(speaker.acquire(want("x", wait_s=300, lease_s=300)), group="client")
    cluster.run(0.5)
    cluster.paused["client"] = cluster.now() + 60
    cluster.done(speaker.release("x", first.lock.id))
    for name in cluster.nodes:
        cluster.ports[name].network.is_away = True
    cluster.until(lambda: cluster.speaker() is None)
    cluster.ports[speaker.me.node].network.is_away = False
    assert cluster.granting() is speaker
    held_by(cluster, "y", speaker.me.node, 600)  # the horizon is far enough for both

    with pytest.raises(GrantLate):
        cluster.ended(waiting)
    assert [lock.name for lock in speaker.held.locks()] == ["y"]
    assert other.me.node in cluster.nodes


def test_a_node_that_stood_still_grants_nothing_before_it_has_looked(cluster: Cluster) -> None:
    """The lease of a lock with a line ends while the speaker stands still: somebody else speaks when it goes on."""
    speaker = cluster.granting()
    held_by(cluster, "x", speaker.me.node, 20)
    waiting = cluster.begin(speaker.acquire(want("x", wait_s=300, lease_s=300, request="r")), group="client")
    cluster.run(0.5)
    cluster.pause(speaker.me.node, 40.0)  # its election, that is, which would have told it; the line goes on
    cluster.run(45.0)

    with pytest.raises(LockUnavailable):
        cluster.ended(waiting)
    assert cluster.done(speaker.speaking.table.granted()) == []


def test_a_grant_that_arrives_after_the_promise_is_dropped(cluster: Cluster) -> None:
    speaker, (holder, third) = cluster.granting(), cluster.others()
    cluster.holds = lambda source, target, message: 3.0 if target == speaker.me.node else 0.0
    asked = cluster.begin(holder.acquire(want("x", lease_s=60)), group=holder.me.node)
    cluster.run(1.0)
    holder.promised = 99  # as if a later speaker had asked it meanwhile

    with pytest.raises(LockUnavailable):
        cluster.ended(asked)
    assert holder.held.locks() == []
    assert isinstance(cluster.done(third.answer(Rebuild(epoch=100, speaker=holder.me))), object)


def test_a_speaker_that_is_asked_by_a_later_one_stops_at_once(cluster: Cluster) -> None:
    speaker, (other, _) = cluster.granting(), cluster.others()
    waiting = cluster.begin(speaker.acquire(want("x", wait_s=60)))
    cluster.ended(waiting)
    line = cluster.begin(speaker.acquire(want("x", wait_s=60)))
    cluster.run(0.1)

    cluster.done(speaker.answer(Rebuild(epoch=7, speaker=other.me)))

    assert not speaker.speaking.is_trusted
    with pytest.raises(NotRebuilt):
        cluster.ended(line, within_s=0.1)


def test_renewals_are_dropped_like_grants_and_a_lost_one_is_told(cluster: Cluster) -> None:
    speaker, (holder, _) = cluster.granting(), cluster.others()
    grant = held_by(cluster, "x", holder.me.node, 30)
    cluster.holds = lambda source, target, message: 1.0 if target == speaker.me.node else 0.0
    asked = cluster.begin(holder.renew("x", grant.lock.id, 60), group=holder.me.node)
    cluster.run(0.5)
    holder.promised = 99

    with pytest.raises(LockUnavailable):
        cluster.ended(asked)
    assert holder.held.locks()[0].until == grant.lock.until
    with pytest.raises(NotHeld):
        cluster.done(speaker.renew("x", "another", 60))


def test_a_repeated_request_finds_its_grant_at_the_next_speaker(cluster: Cluster) -> None:
    """Granted, and the answer lost with the speaker's seat: asked again under its id, it is the same lock, newly fenced."""
    speaker, (holder, third) = cluster.granting(), cluster.others()
    held_by(cluster, "other", speaker.me.node, 300)
    cluster.silent.add(speaker.me.node)
    asked = cluster.begin(holder.acquire(want("x", lease_s=60, request="r1")), group=holder.me.node)
    cluster.until(lambda: asked.is_done)
    with pytest.raises(LockUnavailable):
        cluster.ended(asked)
    cluster.silent.clear()
    (former,) = [lock for lock in cluster.done(speaker.locks()) if lock.name == "x"]
    cluster.ports[speaker.me.node].network.is_away = True
    cluster.until(lambda: cluster.speaker() in (holder, third))
    cluster.ports[speaker.me.node].network.is_away = False
    cluster.granting()

    grant = cluster.done(holder.acquire(want("x", lease_s=60, request="r1")))

    assert (grant.lock.id, grant.again) == (former.id, True)
    assert grant.lock.fence > former.fence
    assert grant.lasts_s <= 60
    assert isinstance(grant, Grant)
    assert not isinstance(grant, Given)


def test_a_renewal_heard_late_brings_no_ended_lease_up_again(cluster: Cluster) -> None:
    """A node stands still while the answer waits at its door. Its client's lease has ended, and another one had the lock."""
    speaker, (holder, third) = cluster.granting(), cluster.others()
    grant = held_by(cluster, "x", holder.me.node, 5)
    asked = cluster.begin(holder.renew("x", grant.lock.id, 30), group=holder.me.node)
    cluster.scheduler.run(most=2)  # the answer is there, and the node does not come to hear it
    cluster.pause(holder.me.node, 40.0)
    later = cluster.done(third.acquire(want("x", wait_s=60)))
    cluster.done(third.release("x", later.lock.id))
    cluster.run(15.0)
    assert asked.is_done
    cluster.kill(speaker.me.node)

    after = cluster.granting()
    cluster.run(cluster.terms.beat_s)  # by then the holder's node knows who speaks

    assert cluster.done(after.locks()) == []
    with pytest.raises(NotHeld):
        cluster.done(holder.renew("x", grant.lock.id, 5))


def test_the_rebuild_reads_what_was_decided_and_is_not_visible_yet(cluster: Cluster) -> None:
    speaker = cluster.granting()

    assert (CLUSTERS, (HORIZON_ROWS,)) in cluster.ports[speaker.me.node].network.serial_reads


def test_a_rebuild_that_saw_the_trust_end_is_over_although_the_seat_is_not_lost(cluster: Cluster) -> None:
    """The node stands still while its renewal is answered: the rebuild wakes up first, and takes the term for over."""
    speaker = cluster.granting()
    ends_at = held_by(cluster, "x", speaker.me.node, 60).lock.until
    cluster.kill(speaker.me.node)  # it is waited for
    cluster.until(lambda: cluster.speaker() is not None)
    after = cluster.speaker()
    assert after is not None
    met: list[Batch] = []

    def stand_still(batch: Batch, pending: SimulatedPending[Outcome]) -> bool:
        if batch.table != CLUSTERS or met:
            return False
        met.append(batch)
        outcome = cluster.store.commit(batch)
        cluster.scheduler.at(cluster.now() + 1.0, lambda *_: pending.answer(outcome))
        cluster.pause(after.me.node, cluster.terms.surely(cluster.terms.speaker_lease_s) - 1.0)
        return True

    cluster.ports[after.me.node].network.instead = stand_still
    cluster.until(lambda: bool(met))
    cluster.run(1.0)

    assert cluster.now() < ends_at - 30
    refused_until(cluster, "x", ends_at)
