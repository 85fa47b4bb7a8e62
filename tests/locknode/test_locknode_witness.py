"""A speaker that dies holds nobody up: another node, its witness, tells what the clients of the dead one hold."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from lockcluster import Cluster, want

from slotkeeper.database import Slice
from slotkeeper.locktable import Grant, LockHeld, LockUnavailable, NotRebuilt
from slotkeeper.locktable.node import Node, Outdated
from slotkeeper.locktable.node.messages import Copy, Done, Recall, Refusal
from slotkeeper.locktable.node.rows import CLUSTERS, Witnessed, horizon_key


def row_names(cluster: Cluster, node: Node) -> Witnessed | None:
    """Return whom an instance's horizon row names."""
    rows = cluster.store.read(CLUSTERS, ("c",), (Slice(horizon_key(node.me.instance)),), serial=True)
    return Witnessed.of(rows[0]) if rows else None


def granted(cluster: Cluster, node: Node, name: str, lease_s: float = 300) -> Grant:
    """Let a client of a node have a lock."""
    grant: Grant = cluster.done(node.acquire(want(name, lease_s=lease_s)))
    return grant


def witnessed(cluster: Cluster, lease_s: float = 300) -> tuple[Node, Node, Node, Grant]:
    """Let a client of the speaker have x, and return the speaker, its witness, the third node and the grant."""
    speaker = cluster.granting()
    grant = granted(cluster, speaker, "x", lease_s)
    cluster.until(lambda: row_names(cluster, speaker) is not None, within_s=10)
    peer = cluster.done(speaker.status()).witness
    assert peer is not None
    witness = cluster.nodes[peer.node]
    (third,) = [node for node in cluster.nodes.values() if node not in (speaker, witness)]
    return speaker, witness, third, grant


def grants_soon(cluster: Cluster) -> Node:
    """Wait for a node that grants: no longer than the speaker's lease and two seconds."""
    cluster.until(
        lambda: (node := cluster.speaker()) is not None and node.speaking.table.is_rebuilt,
        within_s=cluster.terms.speaker_lease_s + 2.25,
    )
    return cluster.granting()


def in_copies(cluster: Cluster, speaker: Node, witness: Node) -> dict[str, float]:
    """Return until when the locks last that a witness knows of."""
    names = row_names(cluster, speaker)
    assert names is not None
    return {lock.id: lock.until for lock in witness.copies.of(names.copy)}


@pytest.mark.parametrize("after_s", [0.0, 0.7, 1.3, 1.9])
def test_long_leases_through_a_dead_speaker_keep_nobody_else_waiting(cluster: Cluster, after_s: float) -> None:
    speaker, _, _, grant = witnessed(cluster)
    cluster.run(after_s)
    cluster.kill(speaker.me.node)

    after = grants_soon(cluster)

    assert granted(cluster, after, "y").lock.fence > grant.lock.fence
    assert cluster.done(after.status()).held_up_by == ()
    with pytest.raises(LockHeld) as refused:
        cluster.done(after.acquire(want("x")))
    assert refused.value.lock.id == grant.lock.id


def test_what_a_witness_told_is_renewed_and_released_through_any_node(cluster: Cluster) -> None:
    speaker, witness, third, grant = witnessed(cluster, 30)
    cluster.kill(speaker.me.node)
    grants_soon(cluster)

    for _ in range(4):
        cluster.done(third.renew("x", grant.lock.id, 30))
        cluster.run(20)
        with pytest.raises(LockHeld):
            cluster.done(witness.acquire(want("x")))
    assert cluster.done(witness.release("x", grant.lock.id))

    assert granted(cluster, third, "x").lock.fence > grant.lock.fence


def test_what_a_witness_told_ends_with_its_lease(cluster: Cluster) -> None:
    speaker, witness, _, grant = witnessed(cluster, 30)
    cluster.kill(speaker.me.node)
    grants_soon(cluster)

    taken = cluster.done(witness.acquire(want("x", wait_s=60)))

    assert grant.lock.until <= cluster.now() < grant.lock.until + 1
    assert taken.lock.fence > grant.lock.fence


def test_speaker_after_speaker_dies_and_nobody_waits_for_their_leases(cluster: Cluster) -> None:
    speaker, _, _, grant = witnessed(cluster)
    cluster.kill(speaker.me.node)
    second = grants_soon(cluster)
    cluster.until(lambda: row_names(cluster, second) is not None, within_s=10)
    own = granted(cluster, second, "y")
    cluster.kill(second.me.node)

    last = grants_soon(cluster)

    assert [lock.id for lock in cluster.done(last.locks())] == [grant.lock.id, own.lock.id]


def test_where_the_witness_dies_too_the_leases_are_waited_for(cluster: Cluster) -> None:
    speaker, witness, third, grant = witnessed(cluster, 60)
    cluster.kill(speaker.me.node, witness.me.node)
    cluster.until(lambda: cluster.speaker() is third)
    cluster.run(5)
    with pytest.raises(NotRebuilt):
        cluster.done(third.acquire(want("y")))

    cluster.granting()

    assert cluster.now() >= grant.lock.until


def test_where_the_witness_was_restarted_the_leases_are_waited_for(cluster: Cluster) -> None:
    speaker, witness, _, grant = witnessed(cluster, 60)
    cluster.kill(speaker.me.node, witness.me.node)
    cluster.start(witness.me.node)

    cluster.granting()

    assert cluster.now() >= grant.lock.until


@pytest.mark.parametrize("again", [True, False])
def test_a_witness_that_dies_is_replaced(cluster: Cluster, again: bool) -> None:
    speaker, witness, third, grant = witnessed(cluster)
    former = row_names(cluster, speaker)
    cluster.kill(witness.me.node)
    if again:
        cluster.start(witness.me.node)
    cluster.until(lambda: row_names(cluster, speaker) not in (None, former), within_s=20)
    cluster.kill(speaker.me.node)

    after = grants_soon(cluster)

    assert [lock.id for lock in cluster.done(after.locks())] == [grant.lock.id]
    assert third.me.node in cluster.nodes


@pytest.mark.parametrize("how", ["paused", "dead", "silent"])
def test_a_witness_that_fails_costs_the_speakers_clients_a_moment_and_the_row_names_it_no_more(
    cluster: Cluster, how: str
) -> None:
    speaker, witness, third, _ = witnessed(cluster)
    cluster.cut(speaker.me.node, third.me.node)  # nobody else will do
    if how == "paused":
        cluster.pause(witness.me.node, 60)
    elif how == "dead":
        cluster.kill(witness.me.node)
    else:
        cluster.silent.add(witness.me.node)
    began_at = cluster.now()

    grant = granted(cluster, speaker, "y", 60)

    assert cluster.now() - began_at < cluster.terms.witness_s + 0.5
    assert row_names(cluster, speaker) is None
    cluster.kill(speaker.me.node)
    with pytest.raises(LockUnavailable):
        cluster.done(third.acquire(want("y")))
    cluster.cuts.clear()
    cluster.granting()
    assert cluster.now() >= grant.lock.until


def test_renewals_and_releases_reach_the_copy(cluster: Cluster) -> None:
    speaker, witness, third, grant = witnessed(cluster, 60)
    other = granted(cluster, speaker, "y", 60)
    assert in_copies(cluster, speaker, witness).keys() == {grant.lock.id, other.lock.id}

    renewed = cluster.done(speaker.renew("x", grant.lock.id, 300))
    assert in_copies(cluster, speaker, witness)[grant.lock.id] >= renewed.lock.until
    cluster.done(third.release("x", grant.lock.id))
    cluster.run(1.0)
    cluster.done(speaker.release("y", other.lock.id))
    cluster.run(1.0)

    assert in_copies(cluster, speaker, witness) == {}
    cluster.kill(speaker.me.node)
    after = grants_soon(cluster)
    assert cluster.done(after.locks()) == []


def test_nothing_is_answered_before_the_witness_has_it(cluster: Cluster) -> None:
    speaker, witness, _, _ = witnessed(cluster)
    cluster.holds = lambda source, target, message: 0.5 if isinstance(message, Copy) else 0.0
    asked = cluster.begin(speaker.acquire(want("y", lease_s=300)), group=speaker.me.node)
    cluster.run(0.25)
    assert not asked.is_done
    cluster.kill(speaker.me.node)

    after = grants_soon(cluster)

    assert [lock.name for lock in cluster.done(after.locks())] == [
        "x",
        "y",
    ]  # it may have been answered, for all we know
    assert witness.me.node in cluster.nodes


def test_a_witness_that_gave_its_word_confirms_nothing_to_an_older_speaker(cluster: Cluster) -> None:
    speaker, witness, third, _ = witnessed(cluster)
    refused = cluster.done(witness.answer(Recall(epoch=99, speaker=third.me, copy="another")))
    assert isinstance(refused, Refusal)
    assert "does not have that copy" in str(refused.raised(0))

    with pytest.raises(LockUnavailable):
        cluster.done(speaker.acquire(want("y")))

    assert [lock.name for lock in speaker.held.locks()] == ["x"]
    assert not speaker.speaking.is_trusted
    late = cluster.done(witness.answer(Copy(asker=speaker.me, epoch=1, copy="c", held=(), begins=True)))
    assert isinstance(late, Refusal)
    assert isinstance(late.raised(0), Outdated)


def test_a_speaker_that_stands_still_is_not_waited_for_and_answers_nobody_when_it_goes_on(cluster: Cluster) -> None:
    speaker, _, _, grant = witnessed(cluster)
    asked = cluster.begin(speaker.acquire(want("y", lease_s=300)), group=speaker.me.node)
    cluster.scheduler.run(most=2)
    cluster.pause(speaker.me.node, 30)
    after = grants_soon(cluster)
    taken = outcome_of(cluster, lambda: after.acquire(want("y", wait_s=1)))

    cluster.run(30)

    assert asked.is_done
    assert isinstance(asked.error, LockUnavailable)
    assert [lock.name for lock in speaker.held.locks()] == ["x"]
    assert cluster.done(speaker.renew("x", grant.lock.id, 300)).lock.id == grant.lock.id
    assert taken is not None


def outcome_of(cluster: Cluster, asked: Callable[[], object]) -> object:
    """Return what is granted, or who has it."""
    try:
        return cluster.done(asked())  # type: ignore[arg-type]
    except LockHeld as error:
        return error.lock


def test_grants_through_a_former_speaker_rely_on_no_witness(cluster: Cluster) -> None:
    """It was taken over, and then its clients are granted locks by its successor: its old copy knows nothing of these."""
    speaker, witness, third, _ = witnessed(cluster, 600)
    network = cluster.ports[speaker.me.node].network
    network.is_away = True
    cluster.until(lambda: cluster.speaker() not in (None, speaker))
    after = cluster.granting()
    network.is_away = False
    cluster.until(lambda: speaker.known.speaker is not None and speaker.known.speaker.instance == after.me.instance)

    late = granted(cluster, speaker, "late", 60)

    assert row_names(cluster, speaker) is None
    last = third if after is witness else witness
    cluster.kill(speaker.me.node, after.me.node)
    cluster.until(lambda: cluster.speaker() is last)
    cluster.granting()
    assert cluster.now() >= late.lock.until


def test_who_regains_the_seat_relies_on_no_former_copy(cluster: Cluster) -> None:
    speaker, _, _, _ = witnessed(cluster, 600)
    former = row_names(cluster, speaker)
    for name in cluster.nodes:
        cluster.ports[name].network.is_away = True
    cluster.until(lambda: cluster.speaker() is None)
    for name in cluster.nodes:
        if name != speaker.me.node:
            cluster.cut(speaker.me.node, name)
    cluster.ports[speaker.me.node].network.is_away = False
    assert cluster.granting() is speaker
    assert row_names(cluster, speaker) == former

    granted(cluster, speaker, "late")

    assert row_names(cluster, speaker) is None


def test_what_a_stopped_node_leaves_is_told_to_the_witness_before_its_row_goes(cluster: Cluster) -> None:
    speaker, witness, third, grant = witnessed(cluster)
    left = granted(cluster, third, "left")
    cluster.ended(cluster.begin(third.stop(), group=third.me.node))
    cluster.kill(third.me.node, speaker.me.node)

    assert grants_soon(cluster) is witness
    assert [lock.id for lock in cluster.done(witness.locks())] == [left.lock.id, grant.lock.id]


def test_a_lone_node_has_no_witness(empty: Cluster) -> None:
    empty.start("a")
    node = empty.granting()
    granted(empty, node, "x")
    empty.run(10)

    assert empty.said == []
    assert row_names(empty, node) is None
    assert node.speaking.witnesses == []
    assert repr(node.speaking.witness) == "<Witness None, 0 locks to tell>"


def test_many_locks_are_told_in_pieces_and_many_grants_in_one(cluster: Cluster) -> None:
    speaker = cluster.granting()
    cluster.cut(*(node.me.node for node in cluster.others()))
    for node in cluster.others():
        cluster.cut(speaker.me.node, node.me.node)
    locks = [granted(cluster, speaker, f"n{number}").lock for number in range(1100)]
    cluster.cuts.clear()
    cluster.until(lambda: row_names(cluster, speaker) is not None)
    before = len([message for _, _, message in cluster.said if isinstance(message, Copy)])
    tasks = [cluster.begin(speaker.acquire(want(f"m{n}", lease_s=300)), group=speaker.me.node) for n in range(50)]
    more = [cluster.ended(task).lock for task in tasks]
    copies = [message for _, _, message in cluster.said if isinstance(message, Copy)]

    assert max(len(message.held) for message in copies) == 500
    assert len(copies) - before < 10
    cluster.kill(speaker.me.node)
    after = grants_soon(cluster)
    assert {lock.id for lock in cluster.done(after.locks())} == {lock.id for lock in (*locks, *more)}


def test_a_stopping_node_is_no_witness(cluster: Cluster) -> None:
    other = cluster.others()[0]
    message = Copy(asker=cluster.granting().me, epoch=1, copy="c", held=(), begins=True)
    assert isinstance(cluster.done(other.answer(message)), Done)
    other.takes_requests = False

    assert isinstance(cluster.done(other.answer(message)), Refusal)
