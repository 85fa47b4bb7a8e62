"""The speaker's seat, on every store: one of two gets it, and nothing of a former speaker applies any more."""

from __future__ import annotations

import pytest
from lockseats import BRIEF, Bench

from slotkeeper import schema
from slotkeeper.database import drive
from slotkeeper.locktable.node import Peer, Terms
from slotkeeper.locktable.node.rows import CLUSTERS, HORIZON, NODES, SPEAKER, Seen, horizon_row

OTHER = Peer("far", "i-far", "http://far")


def test_the_code_of_lock_nodes_and_the_schema_name_the_same_tables() -> None:
    assert schema.shipped().known[2].tables == (CLUSTERS, NODES)


def test_of_two_candidates_one_gets_the_seat(bench: Bench) -> None:
    one, other = bench.seat("one"), bench.seat("other")
    for seat in (one, other):
        drive(seat.look())
        assert seat.is_free

    assert [drive(one.take()), drive(other.take())] == [True, False]

    assert one.is_ours
    assert not other.is_ours
    seen = drive(other.look())
    assert seen == Seen(1, 1, Peer("one", "i-one", "http://one"))
    assert not other.is_free


def test_a_renewal_carries_rows_along(bench: Bench) -> None:
    seat = bench.seat("one")
    drive(seat.look())
    drive(seat.take())

    assert drive(seat.extend([horizon_row(OTHER, 60)]))

    row = bench.rows()[HORIZON, OTHER.instance]
    assert (row["node"], row["address"]) == ("far", "http://far")
    assert drive(seat.extend())
    assert bench.rows()[SPEAKER, ""]["version"] == 3


def test_who_resigns_leaves_the_seat_to_the_next_with_the_next_epoch(bench: Bench) -> None:
    one, other = bench.seat("one"), bench.seat("other")
    drive(one.look())
    drive(one.take())

    assert drive(one.resign())

    assert not one.is_ours
    assert drive(other.look()) == Seen(1, 2, None)
    assert drive(other.take())
    assert other.term is not None
    assert other.term.epoch == 2
    assert drive(one.look()) == Seen(2, 3, Peer("other", "i-other", "http://other"))


def test_a_lease_that_is_not_renewed_frees_the_seat_and_keeps_the_epoch(bench: Bench) -> None:
    one, other = bench.seat("one"), bench.seat("other")
    drive(one.look())
    drive(one.take())

    bench.passes(lambda: drive(other.look()).speaker is None)

    assert not one.is_ours  # it stopped trusting itself before the database freed the seat
    assert other.seen.epoch == 1
    assert drive(other.take())
    assert other.term is not None
    assert other.term.epoch == 2


def test_nothing_of_a_former_speaker_applies(bench: Bench) -> None:
    one, other = bench.seat("one"), bench.seat("other", Terms(speaker_lease_s=60))
    drive(one.look())
    drive(one.take())
    late = bench.seat("one", Terms(speaker_lease_s=60))  # the same process, which believes that it has all the time
    late.seen, late.term = one.seen, one.term
    bench.passes(lambda: drive(other.look()).speaker is None)
    drive(other.take())
    assert late.term is not None
    late.term.trusted_until += 3_600

    assert not drive(late.extend([horizon_row(OTHER, 60)]))

    assert (HORIZON, OTHER.instance) not in bench.rows()
    assert late.term is None
    assert drive(other.extend())


def test_a_speaker_that_finds_itself_in_a_seat_it_does_not_trust_takes_it_anew(bench: Bench) -> None:
    seat = bench.seat("one")
    drive(seat.look())
    drive(seat.take())
    seat.leave()

    drive(seat.look())
    assert seat.is_free
    assert drive(seat.take())

    assert seat.term is not None
    assert seat.term.epoch == 2


def test_a_read_from_before_changes_nothing(bench: Bench) -> None:
    seat = bench.seat("one")
    drive(seat.look())
    drive(seat.take())
    known = seat.seen = Seen(5, 9, None)  # as if a later change were known already

    assert drive(seat.look()) == known


@pytest.mark.parametrize("terms", [{"speaker_lease_s": 2}, {"margin_s": 2.0}, {"margin_s": -0.1}])
def test_terms_that_leave_no_time_are_refused(terms: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"speaker's lease|margin"):
        Terms(**terms)  # type: ignore[arg-type]


def test_a_lease_is_trusted_for_less_than_it_surely_lasts() -> None:
    assert BRIEF.surely(BRIEF.speaker_lease_s) == pytest.approx(1.8)
