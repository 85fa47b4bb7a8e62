"""The horizon's bookkeeping: what a row must last for, and what is written when."""

from __future__ import annotations

import pytest

from slotkeeper.database import Row, Verb
from slotkeeper.locktable.node import Peer, Terms
from slotkeeper.locktable.node.horizon import Horizon, Rides
from slotkeeper.locktable.node.rows import Witnessed, horizon_key

TERMS = Terms(margin_s=0.5, ahead_s=1.0)
A, B = Peer("a", "ia", "http://a"), Peer("b", "ib", "http://b")


def row(peer: Peer, ttl_s: int) -> Row:
    """Return a horizon row as it is read."""
    return {"instance": peer.instance, "node": peer.node, "address": peer.address, "ttl(node)": ttl_s}


def ttls(rides: Rides) -> dict[object, int | None]:
    """Return the TTL of each row written."""
    return {write.key[1]: write.ttl_s for write in rides.writes if write.verb is Verb.INSERT}


def test_a_row_outlasts_the_lease_by_the_database_count() -> None:
    horizon = Horizon(TERMS)
    horizon.need(A, 130.0)

    rides = horizon.rides(100.0, 100)

    assert ttls(rides) == {"ia": 33}  # 30 s of lease, 1 ahead, 1 for whole seconds, the margin, rounded up
    assert not horizon.covers("ia", 130.0)
    horizon.applied(rides)
    assert horizon.covers("ia", 131.0)
    assert not horizon.covers("ia", 131.6)
    assert not horizon.covers("ib", 0.0)


def test_what_is_noted_far_enough_is_not_written_again() -> None:
    horizon = Horizon(TERMS)
    horizon.need(A, 130.0)
    horizon.applied(horizon.rides(100.0, 100))

    horizon.need(A, 130.5)
    assert not horizon.is_asked
    assert horizon.rides(101.0, 100) == Rides()
    horizon.need(A, 131.3)
    assert not horizon.is_asked  # nobody waits for it, but it goes with the next renewal
    assert ttls(horizon.rides(101.0, 100)) == {"ia": 33}


def test_a_found_row_is_never_written_to_end_sooner() -> None:
    """Whoever wrote it may have granted a lease to the very end of it, and not all have told what they hold."""
    horizon = Horizon(TERMS)
    horizon.find([row(A, 100)], began_at=50.0, now=50.2)
    assert horizon.ends_at("ia") == 151.2
    assert horizon.covers("ia", 148.5)

    horizon.need(A, 148.6)

    assert ttls(horizon.rides(51.0, 100)) == {"ia": 102}  # 101 would do for what was asked


def test_found_rows_of_the_silent_are_not_prolonged() -> None:
    horizon = Horizon(TERMS)
    horizon.find([row(A, 100), row(B, 3)], began_at=50.0, now=50.0)

    assert horizon.rides(51.0, 100) == Rides()
    horizon.lose("ib")
    assert horizon.peers == [A]


def test_the_urgent_are_written_first() -> None:
    horizon = Horizon(TERMS)
    horizon.need(A, 130.0)
    horizon.applied(horizon.rides(100.0, 100))
    horizon.need(A, 131.3)
    horizon.need(B, 120.0)

    assert list(ttls(horizon.rides(101.0, 1))) == ["ib"]


def test_a_row_goes_only_with_or_after_all_that_was_due() -> None:
    horizon = Horizon(TERMS)
    horizon.need(A, 130.0)
    horizon.need(B, 130.0)
    horizon.applied(horizon.rides(100.0, 100))
    horizon.need(A, 160.0)  # a lock of B's clients is told by A from now on
    horizon.let_go("ib")

    one = horizon.rides(101.0, 1)
    assert [write.verb for write in one.writes] == [Verb.INSERT]
    assert horizon.has_left("ib")
    assert not horizon.is_gone("ib")

    both = horizon.rides(101.0, 100)
    assert [(write.verb, write.key) for write in both.writes] == [
        (Verb.INSERT, horizon_key("ia")),
        (Verb.DELETE, horizon_key("ib")),
    ]
    horizon.applied(both)
    assert horizon.is_gone("ib")
    assert not horizon.is_asked


def test_a_lease_that_ended_while_it_waited_is_written_all_the_same() -> None:
    horizon = Horizon(TERMS)
    horizon.need(A, 90.0)

    assert ttls(horizon.rides(100.0, 100)) == {"ia": 1}


def test_a_new_term_knows_nothing_of_the_one_before() -> None:
    horizon = Horizon(TERMS)
    horizon.need(A, 130.0)
    horizon.let_go("ib")

    horizon.clear()

    assert (horizon.peers, horizon.is_asked, horizon.has_left("ib")) == ([], False, False)
    assert repr(horizon) == "<Horizon of 0 instances>"


@pytest.mark.parametrize("ttl_s", [1, 6, 600])
def test_a_found_row_is_trusted_for_less_than_it_may_last(ttl_s: int) -> None:
    horizon = Horizon(TERMS)
    horizon.find([row(A, ttl_s)], began_at=10.0, now=11.0)

    assert horizon.covers("ia", 10.0 + ttl_s - 1.5)
    assert not horizon.covers("ia", 10.0 + ttl_s - 1.4)
    assert horizon.ends_at("ia") == 11.0 + ttl_s + 1


W, V = Witnessed("copy", "http://w"), Witnessed("other", "http://v")


def named(rides: Rides) -> dict[object, object]:
    """Return the witness that each row written names."""
    return {write.key[1]: write.values["witness"] for write in rides.writes if write.verb is Verb.INSERT}


def test_each_row_says_whether_there_is_a_witness() -> None:
    """A cell left out would stay what it was."""
    horizon = Horizon(TERMS)
    horizon.need(A, 130.0)
    horizon.need(B, 130.0)
    horizon.name_witness("ia", W)

    rides = horizon.rides(100.0, 100)

    assert named(rides) == {"ia": "copy http://w", "ib": None}
    assert horizon.witness_of("ia") is None
    horizon.applied(rides)
    assert horizon.witness_of("ia") == W


def test_a_witness_found_later_goes_with_the_next_renewal_and_one_that_failed_at_once() -> None:
    horizon = Horizon(TERMS)
    horizon.need(A, 130.0)
    horizon.applied(horizon.rides(100.0, 100))

    horizon.name_witness("ia", W)
    assert not horizon.is_asked
    assert horizon.covers("ia", 130.0)
    horizon.applied(horizon.rides(101.0, 100))
    assert horizon.covers("ia", 131.0)  # not noted for less than before
    horizon.name_witness("ia", None)

    assert horizon.is_asked
    assert not horizon.covers("ia", 130.0)
    horizon.applied(horizon.rides(102.0, 100))
    assert horizon.covers("ia", 131.0)
    assert horizon.rides(103.0, 100) == Rides()


def test_a_witness_that_fails_while_its_name_is_on_its_way_is_written_over() -> None:
    horizon = Horizon(TERMS)
    horizon.need(A, 130.0)
    horizon.applied(horizon.rides(100.0, 100))
    horizon.name_witness("ia", W)
    on_its_way = horizon.rides(101.0, 100)

    horizon.name_witness("ia", None)
    assert not horizon.covers("ia", 130.0)
    horizon.applied(on_its_way)
    assert not horizon.covers("ia", 130.0)
    horizon.name_witness("ia", V)
    assert not horizon.covers("ia", 130.0)
    horizon.applied(horizon.rides(102.0, 100))

    assert horizon.covers("ia", 130.0)
    assert horizon.witness_of("ia") == V


def test_a_name_that_did_not_get_there_is_not_relied_upon_and_written_again() -> None:
    horizon = Horizon(TERMS)
    horizon.need(A, 130.0)
    horizon.applied(horizon.rides(100.0, 100))
    horizon.name_witness("ia", W)
    horizon.rides(101.0, 100)  # nobody knows what became of it

    assert horizon.witness_of("ia") is None
    assert named(horizon.rides(102.0, 100)) == {"ia": "copy http://w"}
    horizon.name_witness("ia", None)
    assert horizon.is_asked
    assert named(horizon.rides(103.0, 100)) == {"ia": None}


def test_a_found_row_that_names_a_witness_covers_nothing_new() -> None:
    horizon = Horizon(TERMS)
    horizon.find([{**row(A, 100), "witness": str(W)}], began_at=50.0, now=50.0)

    assert horizon.witness_of("ia") == W
    assert horizon.rides(50.0, 100) == Rides()
    assert not horizon.covers("ia", 60.0)
    horizon.need(A, 60.0)

    rides = horizon.rides(51.0, 100)
    assert (ttls(rides), named(rides)) == ({"ia": 102}, {"ia": None})
    horizon.applied(rides)
    assert horizon.covers("ia", 60.0)


def test_a_retired_row_goes_after_what_covers_its_leases_and_may_come_again() -> None:
    horizon = Horizon(TERMS)
    horizon.find([row(A, 100)], began_at=50.0, now=50.0)
    horizon.need(B, 140.0)
    horizon.retire("ia")

    assert [write.key[1] for write in horizon.rides(50.0, 1).writes] == ["ib"]
    rides = horizon.rides(50.0, 100)
    assert [(write.verb, write.key[1]) for write in rides.writes] == [(Verb.INSERT, "ib"), (Verb.DELETE, "ia")]
    horizon.need(A, 60.0)  # it is alive, and asks
    assert not horizon.covers("ia", 60.0)
    horizon.applied(rides)

    assert not horizon.covers("ia", 60.0)
    assert ttls(horizon.rides(51.0, 100)) == {"ia": 12}
    horizon.retire("ia")
    assert ttls(horizon.rides(51.0, 100)) == {"ia": 12}  # what is needed stays


def test_a_retired_row_that_is_needed_before_it_went_ends_no_sooner() -> None:
    horizon = Horizon(TERMS)
    horizon.find([row(A, 100)], began_at=50.0, now=50.0)
    horizon.retire("ia")
    horizon.need(A, 60.0)

    assert ttls(horizon.rides(51.0, 100)) == {"ia": 102}
    horizon.retire("ib")  # it has none
    horizon.lose("ia")
    assert [peer.instance for peer in horizon.peers] == ["ia"]


def test_a_retired_row_that_went_is_not_known_any_more() -> None:
    horizon = Horizon(TERMS)
    horizon.find([row(A, 100)], began_at=50.0, now=50.0)
    horizon.retire("ia")
    horizon.applied(horizon.rides(50.0, 100))

    assert horizon.peers == []
    assert not horizon.is_asked
