"""What a node does with each request: here, handed over, refused, unreachable, and when nobody speaks."""

from __future__ import annotations

from typing import Any

import pytest
from lockcluster import Cluster, want

from slotkeeper.locktable import (
    AlreadyReleased,
    BadLockRequest,
    LimitReached,
    LockHeld,
    LockUnavailable,
    NoName,
    NotHeld,
    NotRebuilt,
    NotTheSpeaker,
    TakenOver,
)
from slotkeeper.locktable.node import NodeLeaving, NoSpeaker, Unreachable
from slotkeeper.locktable.node.messages import (
    Acquire,
    Done,
    Forget,
    Given,
    Item,
    Listed,
    ListLocks,
    ListNode,
    Refusal,
    Release,
    Renew,
)


def heard(cluster: Cluster, kind: type[Any]) -> int:
    """Count the messages of a kind."""
    return sum(isinstance(message, kind) for _, _, message in cluster.said)


def alone(cluster: Cluster) -> None:
    """Let nobody speak: the database is away for all, and the trust has ended."""
    for port in cluster.ports.values():
        port.network.is_away = True
    cluster.until(lambda: cluster.speaker() is None)


# --- acquire ------------------------------------------------------------------------------------------------------------


def test_the_speaker_grants_to_its_own_clients_and_remembers_it(cluster: Cluster) -> None:
    speaker = cluster.granting()

    grant = cluster.done(speaker.acquire(want("x", holder="h", lease_s=10)))

    assert (grant.lock.node, grant.lock.holder, grant.lasts_s) == (speaker.me.node, "h", 10)
    assert speaker.held.locks() == [grant.lock]
    assert heard(cluster, Acquire) == 0


def test_another_node_hands_over_once_and_remembers_it_before_the_client_is_told(cluster: Cluster) -> None:
    speaker, other = cluster.granting(), cluster.others()[0]

    grant = cluster.done(other.acquire(want("x", holder="h", lease_s=10)))

    assert grant.lock.node == other.me.node
    assert other.held.locks() == [grant.lock]
    assert speaker.held.locks() == []
    assert heard(cluster, Acquire) == 1
    assert speaker.speaking.horizon.covers(other.me.instance, grant.lock.until)


@pytest.mark.parametrize("handed", [False, True])
def test_a_held_lock_is_refused_with_its_holder(cluster: Cluster, handed: bool) -> None:
    speaker, other = cluster.granting(), cluster.others()[0]
    grant = cluster.done(speaker.acquire(want("x", holder="h")))

    with pytest.raises(LockHeld, match=f"lock x is held by h on {speaker.me.node} until") as caught:
        cluster.done((other if handed else speaker).acquire(want("x")))

    assert caught.value.lock.id == grant.lock.id
    assert caught.value.ahead == 0


def test_waiters_of_all_nodes_stand_in_one_line(cluster: Cluster) -> None:
    nodes = list(cluster.nodes.values())
    first = cluster.done(nodes[0].acquire(want("x")))
    line = []
    for count, node in enumerate((*nodes, *nodes)):
        line.append(cluster.begin(node.acquire(want("x", holder=str(count), wait_s=60)), group=node.me.node))
        cluster.run(0.1)
    before = first.lock
    for count, (task, node) in enumerate(zip(line, (*nodes, *nodes), strict=True)):
        cluster.done(nodes[0].release("x", before.id))
        grant = cluster.ended(task, within_s=1.0)
        assert grant.lock.holder == str(count)
        assert grant.lock.node == node.me.node
        assert grant.lock.fence > before.fence
        assert grant.waited_s > 0
        before = grant.lock


def test_a_wait_ends_when_it_was_to_end(cluster: Cluster) -> None:
    other = cluster.others()[0]
    cluster.done(other.acquire(want("x", lease_s=60)))
    began_at = cluster.now()

    with pytest.raises(LockHeld):
        cluster.done(other.acquire(want("x", wait_s=7)))

    assert cluster.now() - began_at == pytest.approx(7, abs=0.1)


def test_a_wait_at_another_node_ends_when_somebody_else_speaks(cluster: Cluster) -> None:
    """The speaker has vanished without a word, and nothing tells the node that waits in its line."""
    speaker, (other, third) = cluster.granting(), cluster.others()
    cluster.done(other.acquire(want("x", lease_s=600)))
    waiting = cluster.begin(other.acquire(want("x", wait_s=600)), group=other.me.node)
    cluster.run(1.0)
    for node in (other, third):
        cluster.cut(speaker.me.node, node.me.node)
    cluster.ports[speaker.me.node].network.is_away = True

    with pytest.raises(LockUnavailable):
        cluster.ended(waiting, within_s=15)


def test_a_request_that_is_no_proper_one_is_refused_where_it_is_made(cluster: Cluster) -> None:
    other = cluster.others()[0]

    with pytest.raises(NoName, match="a lock needs a name"):
        cluster.done(other.acquire(want("")))
    with pytest.raises(BadLockRequest):
        cluster.done(other.acquire(want("x" * 300)))
    with pytest.raises(BadLockRequest):
        cluster.done(other.renew("x", "id", float("nan")))
    assert heard(cluster, Acquire) + heard(cluster, Renew) == 0


def test_a_node_that_was_handed_a_request_and_does_not_speak_says_who_does(cluster: Cluster) -> None:
    speaker, (other, third) = cluster.granting(), cluster.others()
    said = f"{speaker.me.node} speaks for the cluster: ask again"

    for message in (
        Acquire(asker=third.me, request=want("x")),
        Renew(asker=third.me, name="x", id="i", lease_s=1),
        Release(asker=third.me, name="x", id="i"),
        ListLocks(),
    ):
        answer = cluster.done(other.answer(message))
        assert isinstance(answer, Refusal)
        error = answer.raised(0)
        assert isinstance(error, NotTheSpeaker)
        assert str(error) == said
    assert heard(cluster, Acquire) == 0


def test_two_nodes_that_disagree_answer_ask_again_and_make_no_ring(cluster: Cluster) -> None:
    _, (other, third) = cluster.granting(), cluster.others()
    other.known = type(other.known)(99, None, third.me)

    with pytest.raises(NotTheSpeaker, match="ask again"):
        cluster.done(other.acquire(want("x")))

    assert heard(cluster, Acquire) == 1


def test_an_unreachable_speaker_is_told_as_such(cluster: Cluster) -> None:
    speaker, (other, _) = cluster.granting(), cluster.others()
    cluster.cut(speaker.me.node, other.me.node)

    with pytest.raises(Unreachable, match=f"node at {speaker.me.node} did not answer"):
        cluster.done(other.acquire(want("x")))
    with pytest.raises(Unreachable):
        cluster.done(other.locks())


def test_nobody_grants_when_nobody_speaks(cluster: Cluster) -> None:
    alone(cluster)
    for node in cluster.nodes.values():
        node.known = type(node.known)(node.known.epoch)
        for asked in (node.acquire(want("x")), node.renew("x", "id"), node.locks()):
            with pytest.raises(NoSpeaker, match="No node is known to speak"):
                cluster.done(asked)


def test_a_request_handed_over_to_a_speaker_without_a_table_is_to_be_repeated(cluster: Cluster) -> None:
    speaker, other = cluster.granting(), cluster.others()[0]
    cluster.done(speaker.speaking.table.drop())

    with pytest.raises(NotRebuilt, match="not rebuilt from the nodes yet"):
        cluster.done(other.acquire(want("x")))


def test_a_node_that_has_not_started_or_stops_takes_no_requests(cluster: Cluster) -> None:
    other = cluster.others()[0]
    cluster.done(other.stop())

    for asked in (other.acquire(want("x")), other.renew("x", "id")):
        with pytest.raises(NodeLeaving):
            cluster.done(asked)


def test_a_lock_that_nobody_waited_for_is_given_back(cluster: Cluster) -> None:
    """The client left while it stood in the speaker's line, and named no request id to ask again under."""
    speaker, other = cluster.granting(), cluster.others()[0]
    held = cluster.done(speaker.acquire(want("x")))
    waiting = cluster.begin(other.acquire(want("x", wait_s=60)), group=other.me.node)
    kept = cluster.begin(other.acquire(want("y", wait_s=60, request="r")), group=other.me.node)
    cluster.ended(kept)
    cluster.run(1.0)
    cluster.scheduler.cancel(waiting, RuntimeError("the client is gone"))
    cluster.run(1.0)

    cluster.done(speaker.release("x", held.lock.id))

    cluster.run(1.0)
    assert [lock.name for lock in cluster.done(speaker.locks())] == ["y"]


def test_a_request_repeated_through_another_node_gets_the_same_lock(cluster: Cluster) -> None:
    _, (other, third) = cluster.granting(), cluster.others()
    grant = cluster.done(other.acquire(want("x", request="r", lease_s=60)))
    cluster.run(10.0)

    again = cluster.done(third.acquire(want("x", request="r", lease_s=60)))

    assert (again.lock.id, again.again) == (grant.lock.id, True)
    assert again.lasts_s == pytest.approx(50, abs=0.1)
    assert third.held.locks()[0].id == grant.lock.id


def test_errors_of_the_speaker_come_back_as_they_were(cluster: Cluster) -> None:
    speaker, (other, third) = cluster.granting(), cluster.others()
    cluster.done(speaker.acquire(want("x")))
    first = cluster.begin(other.acquire(want("x", wait_s=60, request="r")), group=other.me.node)
    cluster.run(0.1)
    second = cluster.begin(third.acquire(want("x", wait_s=60, request="r")), group=third.me.node)
    with pytest.raises(TakenOver):
        cluster.ended(first)
    cluster.done(third.release("x", request="r"))
    with pytest.raises(AlreadyReleased):
        cluster.ended(second)
    with pytest.raises(AlreadyReleased):
        cluster.done(third.acquire(want("x", request="r")))
    answer = Refusal.of(LimitReached("locks", 3), 0)
    assert isinstance(answer.raised(0), LockUnavailable)
    assert "There are 3 locks already" in str(answer.raised(0))


# --- renew --------------------------------------------------------------------------------------------------------------


def test_a_renewal_through_any_node_counts_the_lease_anew_and_is_remembered_there(cluster: Cluster) -> None:
    speaker, (other, third) = cluster.granting(), cluster.others()
    grant = cluster.done(other.acquire(want("x", lease_s=20)))
    cluster.run(10.0)

    for node in (other, third, speaker):
        renewed = cluster.done(node.renew("x", grant.lock.id, 60))
        assert renewed.lasts_s == 60
        assert renewed.lock.fence == grant.lock.fence
        assert [lock.until for lock in node.held.locks()] == [renewed.lock.until]
        assert speaker.speaking.horizon.covers(node.me.instance, renewed.lock.until)
        cluster.run(1.0)


@pytest.mark.parametrize("handed", [False, True])
def test_a_lost_lock_cannot_be_renewed(cluster: Cluster, handed: bool) -> None:
    speaker, other = cluster.granting(), cluster.others()[0]
    node = other if handed else speaker
    grant = cluster.done(node.acquire(want("x", lease_s=2)))
    cluster.run(3.0)

    with pytest.raises(NotHeld):
        cluster.done(node.renew("x", grant.lock.id))


# --- release ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("handed", [False, True])
def test_a_release_frees_the_lock_once(cluster: Cluster, handed: bool) -> None:
    speaker, other = cluster.granting(), cluster.others()[0]
    node = other if handed else speaker
    grant = cluster.done(node.acquire(want("x")))

    assert cluster.done(node.release("x", grant.lock.id))

    assert node.held.locks() == []
    assert not cluster.done(node.release("x", grant.lock.id))
    assert cluster.done(node.acquire(want("x"))).lock.id != grant.lock.id


def test_a_release_through_a_third_node_is_heard_by_the_holders(cluster: Cluster) -> None:
    _, (holder, third) = cluster.granting(), cluster.others()
    cluster.run(cluster.terms.beat_s)  # everybody knows by now who is up
    grant = cluster.done(holder.acquire(want("x", lease_s=600)))

    assert cluster.done(third.release("x", grant.lock.id))
    cluster.run(1.0)

    assert holder.held.locks() == []
    assert heard(cluster, Forget) == 2


def test_a_release_by_the_requests_id_gives_the_lock_and_the_place_in_line_up(cluster: Cluster) -> None:
    speaker, (holder, third) = cluster.granting(), cluster.others()
    cluster.done(holder.acquire(want("x", lease_s=600, request="r")))
    line = cluster.begin(third.acquire(want("x", wait_s=60, request="s")), group=third.me.node)
    cluster.run(0.1)

    cluster.done(third.release("x", request="s"))
    with pytest.raises(AlreadyReleased):
        cluster.ended(line)
    assert cluster.done(holder.release("x", request="r"))
    assert holder.held.locks() == []
    assert cluster.done(speaker.locks()) == []


def test_a_release_that_does_not_reach_the_speaker_is_one_all_the_same(cluster: Cluster) -> None:
    speaker, (holder, third) = cluster.granting(), cluster.others()
    grant = cluster.done(holder.acquire(want("x", lease_s=600)))
    cluster.cut(speaker.me.node, holder.me.node)

    assert cluster.done(holder.release("x", grant.lock.id))
    assert holder.held.locks() == []
    cluster.kill(speaker.me.node)

    after = cluster.granting()
    assert after in (holder, third)
    assert cluster.done(after.locks()) == []


def test_a_release_while_nobody_speaks_is_one_all_the_same(cluster: Cluster) -> None:
    _, (holder, _) = cluster.granting(), cluster.others()
    grant = cluster.done(holder.acquire(want("x", lease_s=600, request="r")))
    alone(cluster)

    assert cluster.done(holder.release("x", grant.lock.id, request="r"))
    for port in cluster.ports.values():
        port.network.is_away = False

    assert cluster.done(cluster.granting().locks()) == []


@pytest.mark.parametrize("handed", [False, True])
def test_a_release_at_a_speaker_without_a_table_is_one_all_the_same(cluster: Cluster, handed: bool) -> None:
    speaker, (holder, third) = cluster.granting(), cluster.others()
    node = holder if handed else speaker
    grant = cluster.done(node.acquire(want("x", lease_s=600)))
    cluster.done(speaker.speaking.table.drop())

    assert cluster.done(node.release("x", grant.lock.id))
    cluster.run(1.0)

    cluster.kill(speaker.me.node)
    cluster.until(lambda: cluster.speaker() in (holder, third))
    after = cluster.granting()
    assert cluster.done(after.locks()) == []


def test_a_release_of_what_is_not_held_is_told_as_such(cluster: Cluster) -> None:
    for node in cluster.nodes.values():
        assert not cluster.done(node.release("x", "nothing"))
        assert not cluster.done(node.release("x", request="nothing"))


# --- lists, forgetting, status ------------------------------------------------------------------------------------------


def test_every_node_lists_what_is_held(cluster: Cluster) -> None:
    speaker, (other, _) = cluster.granting(), cluster.others()
    locks = [cluster.done(node.acquire(want(name))).lock for name, node in (("b", speaker), ("a", other))]

    for node in cluster.nodes.values():
        listed = cluster.done(node.locks())
        assert [lock.id for lock in listed] == [locks[1].id, locks[0].id]
        assert all(lock.left_s(cluster.now()) == pytest.approx(30, abs=0.1) for lock in listed)


def test_a_node_lists_what_it_holds_and_what_it_granted(cluster: Cluster) -> None:
    speaker, (other, third) = cluster.granting(), cluster.others()
    own, others = (cluster.done(node.acquire(want(name))).lock.id for name, node in (("x", speaker), ("a", other)))

    assert [lock.id for lock in cluster.done(speaker.node_locks())] == [own, others, own]
    assert [lock.id for lock in cluster.done(other.node_locks())] == [others]
    assert cluster.done(third.node_locks()) == []
    listed = cluster.done(other.answer(ListNode()))
    assert isinstance(listed, Listed)
    assert [told.lock.id for told in listed.locks] == [others]


def test_a_node_forgets_what_it_is_told_to(cluster: Cluster) -> None:
    speaker, (other, _) = cluster.granting(), cluster.others()
    grant = cluster.done(other.acquire(want("x", lease_s=600, request="r")))
    item = Item("x", grant.lock.id)

    for node in (other, speaker):
        assert isinstance(cluster.done(node.answer(Forget(items=(item,)))), Done)

    assert cluster.done(other.node_locks()) == cluster.done(speaker.locks()) == []
    cluster.done(other.acquire(want("x")))


def test_a_node_tells_how_it_sees_the_cluster(cluster: Cluster) -> None:
    speaker, (other, _) = cluster.granting(), cluster.others()
    cluster.run(cluster.terms.beat_s)
    cluster.done(other.acquire(want("x")))
    cluster.begin(speaker.acquire(want("x", wait_s=60)))
    cluster.run(0.1)

    seen, own = cluster.done(other.status()), cluster.done(speaker.status())

    assert (seen.speaker, seen.epoch, seen.speaks, seen.rebuilt, seen.held) == (speaker.me, 1, False, False, 1)
    assert (own.speaks, own.rebuilt, own.locks, own.waiting, own.held_up_by) == (True, True, 1, 1, ())
    assert 0 < own.trusted_s <= cluster.terms.surely(cluster.terms.speaker_lease_s)
    assert {peer.node for peer in own.members} == {"a", "b", "c"}
    assert {peer.address for peer in seen.members} == {"a", "b", "c"}


def test_a_dead_node_leaves_the_members_by_itself(cluster: Cluster) -> None:
    speaker, (other, _) = cluster.granting(), cluster.others()
    cluster.kill(other.me.node)
    cluster.run(cluster.terms.member_ttl_s * 1.5)

    assert other.me not in cluster.done(speaker.status()).members


def test_an_answer_says_the_epoch_that_it_was_given_under(cluster: Cluster) -> None:
    speaker, other = cluster.granting(), cluster.others()[0]

    answer = cluster.done(speaker.answer(Acquire(asker=other.me, request=want("x", lease_s=9))))

    assert isinstance(answer, Given)
    assert (answer.epoch, answer.told.left_s, answer.lasts_s) == (1, 9, 9)
