"""Every error of the database: one base, a default message that says what to do, and a trip through pickle."""

from __future__ import annotations

import copy
import pickle

import pytest

from slotkeeper import SlotkeeperError, database
from slotkeeper.database import DatabaseError, SettingsError, StatementRejected, TableMissing, errors

ERRORS = [each for each in vars(errors).values() if isinstance(each, type) and each.__module__ == errors.__name__]


@pytest.mark.parametrize("error", ERRORS)
def test_error_is_ours_and_in_the_package(error: type[DatabaseError]) -> None:
    assert issubclass(error, SlotkeeperError)
    assert issubclass(error, DatabaseError)
    assert getattr(database, error.__name__) is error
    assert error.__name__ in database.__all__


@pytest.mark.parametrize("error", ERRORS)
def test_error_says_what_happened_in_one_line(error: type[DatabaseError]) -> None:
    text = str(error())

    assert text == " ".join((error.__doc__ or "").split())
    assert text.endswith(".")
    assert "\n" not in text


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_error_pickles_with_its_message_and_its_notes(error: type[DatabaseError], protocol: int) -> None:
    for original in (error(), error("The disk is full: é.")):
        original.add_note("while testing")

        again = pickle.loads(pickle.dumps(original, protocol))

        assert type(again) is error
        assert (str(again), again.args, again.__notes__) == (str(original), original.args, original.__notes__)
        assert str(copy.copy(original)) == str(original)


def test_error_that_is_special_is_caught_as_what_it_is_a_case_of() -> None:
    assert issubclass(TableMissing, StatementRejected)
    assert issubclass(SettingsError, ValueError)
