"""The election on a schedule: outcomes that nobody tells, attempts that land late, and trust that ends in time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from lockcluster import Cluster, want

from slotkeeper.database import Batch, Outcome, Unknown
from slotkeeper.database.simulated.port import SimulatedPending
from slotkeeper.locktable import LockUnavailable
from slotkeeper.locktable.node.rows import CLUSTERS

Instead = Callable[[Batch, SimulatedPending[Outcome]], bool]


def first_commits(cluster: Cluster, name: str, *ways: str) -> list[Batch]:
    """Let a node's next changes of the speaker row go these ways, and return those that went so."""
    met: list[Batch] = []

    def instead(batch: Batch, pending: SimulatedPending[Outcome]) -> bool:
        if batch.table != CLUSTERS or len(met) == len(ways):
            return False
        way = ways[len(met)]
        met.append(batch)
        if way in ("applied unheard", "applied untold"):
            cluster.store.commit(batch)
        if way in ("lost untold", "applied untold"):
            pending.answer(Unknown(TimeoutError("nobody knows"), answered=True))
        if way == "silence":
            cluster.scheduler.at(cluster.now() + 60.0, lambda *_: cluster.store.commit(batch))
        return True

    cluster.ports[name].network.instead = instead
    return met


def prepared(cluster: Cluster, *ways: str) -> list[Batch]:
    """Start a node whose first changes of the speaker row go these ways."""
    cluster.start("a")
    return first_commits(cluster, "a", *ways)


def test_a_lone_node_speaks_at_once_and_goes_on(empty: Cluster) -> None:
    (node,) = empty.start("a")

    assert empty.granting() is node
    assert empty.now() < 1.0
    empty.run(60.0)
    assert empty.granting() is node
    assert node.speaking.seat.seen.epoch == 1


@pytest.mark.parametrize("way", ["applied untold", "lost untold"])
def test_an_unknown_outcome_of_taking_the_seat_is_settled_by_the_same_batch(empty: Cluster, way: str) -> None:
    met = prepared(empty, way)

    node = empty.granting()

    assert node.speaking.seat.seen.epoch == 1
    sent = [batch for batch in empty.ports["a"].network.commits if batch.table == CLUSTERS]
    assert sent[0] == sent[1] == met[0]


@pytest.mark.parametrize("way", ["applied untold", "lost untold"])
def test_an_unknown_outcome_of_a_renewal_ends_no_term(empty: Cluster, way: str) -> None:
    (node,) = empty.start("a", "b")[:1]
    speaker = empty.granting()
    met = first_commits(empty, speaker.me.node, way, way)

    empty.run(12.0)

    assert len(met) == 2
    assert empty.speaker() is speaker
    assert speaker.speaking.seat.seen.epoch == 1
    assert node.known.epoch == 1


def test_trust_is_counted_from_the_first_of_several_attempts(empty: Cluster) -> None:
    prepared(empty, "lost untold", "lost untold", "lost untold")

    node = empty.granting()

    assert empty.now() > 0.3
    term = node.speaking.seat.term
    assert term is not None
    assert term.trusted_until == empty.terms.surely(6)


def test_a_silent_database_ends_the_trust_before_the_seat_is_free(empty: Cluster) -> None:
    first, second = empty.start("a", "b")
    speaker = empty.granting()
    other = second if speaker is first else first
    ways = ["silence"] * 100
    first_commits(empty, speaker.me.node, *ways)

    lost_after = empty.until(lambda: not speaker.speaking.is_trusted)
    assert lost_after <= empty.terms.speaker_lease_s - 1
    taken_after = empty.until(lambda: empty.speaker() is other)
    assert other.speaking.seat.seen.epoch == 2
    assert taken_after <= empty.terms.speaker_lease_s + empty.terms.beat_s

    empty.run(90.0)  # the attempts of the former speaker land by now, late
    assert empty.speaker() is other
    assert other.speaking.seat.seen.epoch == 2


def test_an_attempt_to_take_the_seat_that_lands_late_makes_nobody_speak(empty: Cluster) -> None:
    prepared(empty, "silence")
    node = empty.granting()  # by a later attempt: the first was given up
    assert empty.now() >= empty.terms.surely(6)
    epoch = node.speaking.seat.seen.epoch

    empty.run(90.0)

    assert empty.speaker() is node
    assert node.speaking.seat.seen.epoch == epoch


def test_a_late_take_that_applies_is_no_term_and_is_taken_over_anew(empty: Cluster) -> None:
    empty.start("a")
    empty.ports["a"].network.instead = lambda batch, pending: _late(empty, batch)

    empty.until(lambda: (empty.nodes["a"].known.epoch or 0) >= 1)
    assert empty.speaker() is None  # the seat is ours, by a take whose answer never came: nobody trusts it
    empty.ports["a"].network.instead = lambda batch, pending: False

    assert (empty.granting().speaking.seat.seen.epoch or 0) >= 2


def _late(empty: Cluster, batch: Batch) -> bool:
    empty.scheduler.at(empty.now() + 5.0, lambda *_: empty.store.commit(batch))
    return True


def test_who_speaks_no_more_answers_those_who_wait(empty: Cluster) -> None:
    empty.start("a")
    node = empty.granting()
    empty.done(node.acquire(want("x", lease_s=300)))
    waiting = empty.begin(node.acquire(want("x", wait_s=300)))
    empty.run(1.0)
    empty.ports["a"].network.is_away = True

    with pytest.raises(LockUnavailable, match="not rebuilt"):
        empty.ended(waiting, within_s=empty.terms.speaker_lease_s)


def test_what_troubles_the_election_is_told(empty: Cluster) -> None:
    empty.start("a")
    node = empty.granting()
    assert empty.done(node.status()).trouble == ""

    empty.ports["a"].network.is_away = True
    empty.run(5.0)
    assert "could not be reached" in empty.done(node.status()).trouble

    empty.ports["a"].network.is_away = False
    empty.run(5.0)
    assert empty.done(node.status()).trouble == ""
