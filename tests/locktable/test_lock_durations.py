"""Durations, as Go spells and reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotkeeper.locktable import BadLockRequest
from slotkeeper.locktable.durations import duration, parse_duration

SPELLED = [
    (30.0, "30s"),
    (29.9, "29.9s"),
    (0.5, "500ms"),
    (0.0015, "1.5ms"),
    (0.000_002, "2µs"),
    (0.000_000_7, "700ns"),
    (0.0, "0s"),
    (90.0, "1m30s"),
    (60.0, "1m0s"),
    (3600.0, "1h0m0s"),
    (5400.25, "1h30m0.25s"),
    (-1.5, "-1.5s"),
]


@pytest.mark.parametrize(("seconds", "text"), SPELLED)
def test_durations_are_spelled_and_read(seconds: float, text: str) -> None:
    assert duration(seconds) == text
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("", 0), ("0", 0), ("+5s", 5), ("1.5h", 5400), (".5s", 0.5), ("1.s", 1), ("1h1h", 7200), ("3us", 3e-6), ("-0", 0)],
)
def test_other_spellings_are_read_too(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["30", "s", "1d", "1s ", " 1s", "1 s", "--1s", "1e3s", "٣s", "1s1", "9" * 70 + "s", "nans"]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(BadLockRequest, match="is no duration"):
        parse_duration(text)


def test_a_duration_beyond_counting_is_refused() -> None:
    with pytest.raises(BadLockRequest, match="longer"):
        parse_duration("9999999999999h")


@given(st.integers(-(10**15), 10**15))
def test_a_duration_comes_back(nanoseconds: int) -> None:
    assert round(parse_duration(duration(nanoseconds / 1e9)) * 1e9) == round(nanoseconds / 1e9 * 1e9)
