"""Every error of a semaphore: what it says, what it carries, and its trip through pickle. Raised, each is elsewhere."""

from __future__ import annotations

import copy
import pickle

import pytest

from slotkeeper import SlotkeeperError, semaphore
from slotkeeper.semaphore import OutcomeUnknown, SemaphoreError, errors
from slotkeeper.semaphore.errors import (
    BadLease,
    BadName,
    BeingDeleted,
    ChangeUnknown,
    HoldUnknown,
    LeaseLost,
    NoSuchSemaphore,
    NotAcquired,
    RowsDisagree,
    SemaphoreExists,
    SemaphoreHeld,
    StaleFence,
    WaitCancelled,
)
from slotkeeper.semaphore.layout import BadSize

OWNER_ID = "2:wf:run-1:7"
DEFINED = [each for each in vars(errors).values() if isinstance(each, type) and each.__module__ == errors.__name__]
MADE: list[SlotkeeperError] = [
    SemaphoreError(),
    BadName("", "a name has 1 to 1000 bytes, this one 0"),
    BadLease("a lease of -1 s"),
    BadSize("a size of 0"),
    NoSuchSemaphore("gpu"),
    SemaphoreExists("gpu", size=3, bucket_size=2),
    SemaphoreHeld("gpu", held=1),
    BeingDeleted("gpu"),
    RowsDisagree("gpu", OWNER_ID),
    StaleFence("gpu", OWNER_ID, fence=5, current=6),
    NotAcquired("gpu", OWNER_ID, waited_s=1.5),
    WaitCancelled("gpu", OWNER_ID),
    LeaseLost("gpu", OWNER_ID, token=2, fence=5),
    OutcomeUnknown(),
    ChangeUnknown(),
    HoldUnknown("gpu", OWNER_ID, wanted="acquire"),
]
EACH = pytest.mark.parametrize("error", MADE, ids=lambda error: type(error).__name__)


def test_every_error_is_here() -> None:
    assert {type(error) for error in MADE} >= set(DEFINED)


@EACH
def test_error_is_exported_and_has_the_one_base(error: SlotkeeperError) -> None:
    assert isinstance(error, SlotkeeperError)
    assert getattr(semaphore, type(error).__name__) is type(error)
    assert type(error).__name__ in semaphore.__all__


@EACH
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_error_pickles_with_all_that_it_carries(error: SlotkeeperError, protocol: int) -> None:
    for again in (pickle.loads(pickle.dumps(error, protocol)), copy.copy(error)):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)


@EACH
def test_error_is_one_line_for_people(error: SlotkeeperError) -> None:
    text = str(error)
    assert text
    assert "\n" not in text
    assert "  " not in text


@EACH
def test_error_names_the_semaphore_and_the_owner_that_it_carries(error: SlotkeeperError) -> None:
    for value in (vars(error).get("semaphore"), vars(error).get("owner_id")):
        assert value is None or value in str(error)


def test_unknown_is_no_unavailable_and_one_class_catches_both_unknowns() -> None:
    for error in (ChangeUnknown(), HoldUnknown("gpu", OWNER_ID, wanted="release")):
        assert isinstance(error, OutcomeUnknown)
        assert isinstance(error, SemaphoreError)


def test_wrong_arguments_are_value_errors() -> None:
    for error in (BadName("", "empty"), BadSize("0"), BadLease("0")):
        assert isinstance(error, ValueError)


def test_counts_are_spelt_as_people_do() -> None:
    assert "1 holder," in str(SemaphoreHeld("gpu", held=1))
    assert "2 holders," in str(SemaphoreHeld("gpu", held=2))
    assert "it holds nothing" in str(StaleFence("gpu", OWNER_ID, fence=5, current=None))
    assert "fence 6" in str(StaleFence("gpu", OWNER_ID, fence=5, current=6))
