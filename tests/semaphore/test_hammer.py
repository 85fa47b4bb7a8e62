"""Two real processes of sixteen owners each hammer a semaphore of three, on both stores; and the judge is no fool itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from bench.hammer import Record, Report, Stay, checked, hammer, most_inside

SECONDS = 6.0


def was_hard_and_fair(report: Report) -> None:
    """It was full, many were turned away, and no promise was broken."""
    assert not report.broken, report
    assert report.most_inside == report.size == 3
    assert report.stays > 100
    assert report.refused > report.stays


def test_two_processes_hammer_a_file_and_it_never_has_four_holders(tmp_path: Path) -> None:
    was_hard_and_fair(hammer(f"sqlite:///{tmp_path}/slots.db", seconds=SECONDS))


def test_two_processes_hammer_a_cassandra_and_it_never_has_four_holders(cassandra_url: str) -> None:
    was_hard_and_fair(hammer(cassandra_url, seconds=SECONDS))


def test_two_processes_stand_in_line_and_nobody_is_forgotten(tmp_path: Path) -> None:
    """At the end nobody new comes to wake those who still wait: they must find their slots by themselves."""
    report = hammer(f"sqlite:///{tmp_path}/slots.db", seconds=SECONDS / 2, wait=True)
    assert not report.broken, report
    assert report.most_inside == report.size
    assert report.refused == 0
    assert report.least_stays > 0


# The judge

STAY = Stay("ann", 1, fence=7, entered=1.0, left=2.0, released=True)
NEXT = replace(STAY, owner_id="bob", fence=8, entered=2.0, left=3.0)


def verdict(*stays: Stay, size: int = 1, left: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Judge what one process noted."""
    return checked([Record(list(stays), 0, [])], size, 2, left).broken


def test_judge_lets_one_after_the_other_pass() -> None:
    assert verdict(STAY, NEXT) == ()
    assert most_inside([STAY, NEXT]) == 1


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (replace(NEXT, entered=1.5), "two holders"),
        (replace(NEXT, token=2, entered=1.5), "2 were inside"),
        (replace(NEXT, fence=7), "did not grow"),
        (replace(NEXT, released=False), "somebody else"),
    ],
)
def test_judge_sees_what_is_wrong(second: Stay, reason: str) -> None:
    assert reason in " ".join(verdict(STAY, second))


def test_judge_reports_what_is_left_and_what_went_wrong() -> None:
    assert verdict(STAY, NEXT, left=("ann still holds token 1",)) == ("ann still holds token 1",)
    assert checked([Record([], 0, ["Unavailable: no"])], 1, 2).broken == ("Unavailable: no",)
