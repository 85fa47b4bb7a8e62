"""Owners are values, and some of them are nobody."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import pytest

from slotkeeper.owner import (
    FREE,
    NONE,
    RESERVED_RUN_ID,
    NoBucket,
    Owner,
    OwnerFieldError,
    OwnerIdError,
    ReservedOwner,
    owner_id_to_store,
)

OWNER = Owner("order:42", "run-1", 7)
RESERVED = [NONE, FREE, *(str(Owner("", RESERVED_RUN_ID, hold_id)) for hold_id in (-3, -1000, -1249, -(2**63)))]


def test_owners_compare_and_hash_by_content() -> None:
    assert Owner("order:42", "run-1", 7) == OWNER
    assert {OWNER: 1}[Owner("order:42", "run-1", 7)] == 1
    assert OWNER not in {Owner("order:42", "run-1", 8), Owner("order:42", "run-2", 7), Owner("order", "42:run-1", 7)}


def test_an_owner_never_changes() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        OWNER.hold_id = 8  # type: ignore[misc]
    assert not hasattr(OWNER, "__dict__")


def test_an_owner_shows_its_fields() -> None:
    assert repr(OWNER) == "Owner(workflow_id='order:42', run_id='run-1', hold_id=7)"


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_an_owner_pickles(protocol: int) -> None:
    assert pickle.loads(pickle.dumps(OWNER, protocol)) == OWNER
    assert copy.deepcopy(OWNER) == OWNER


@pytest.mark.parametrize(
    "error",
    [
        OwnerIdError("2:wf", 4, "no separator after the workflow id"),
        ReservedOwner(NONE),
        OwnerFieldError("hold_id", 2**63, "overflows int64"),
        NoBucket(0),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_pickles_with_its_data(error: Exception) -> None:
    again = pickle.loads(pickle.dumps(error))

    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


@pytest.mark.parametrize("owner_id", RESERVED)
def test_an_owner_of_our_own_rows_is_reserved_and_reads_back(owner_id: str) -> None:
    owner = Owner.parse(owner_id)

    assert owner.reserved
    assert str(owner) == owner_id


@pytest.mark.parametrize("owner_id", RESERVED)
def test_a_reserved_owner_is_never_stored(owner_id: str) -> None:
    for spelled in (owner_id, Owner.parse(owner_id)):
        with pytest.raises(ReservedOwner, match="reserved for slotkeeper's own rows") as refused:
            owner_id_to_store(spelled)
        assert refused.value.text == owner_id


@pytest.mark.parametrize(
    "owner",
    [
        OWNER,
        Owner("", RESERVED_RUN_ID, 0),
        Owner("", RESERVED_RUN_ID, 1),
        Owner("wf", RESERVED_RUN_ID, -1),
        Owner("", RESERVED_RUN_ID.upper(), -1),
        Owner("", "", -1),
    ],
    ids=str,
)
def test_any_other_owner_is_stored_as_it_is_spelled(owner: Owner) -> None:
    assert not owner.reserved
    assert owner_id_to_store(owner) == str(owner)
    assert owner_id_to_store(str(owner)) == str(owner)


def test_a_text_that_is_no_owner_id_is_never_stored() -> None:
    with pytest.raises(OwnerIdError, match="leading zeros in the hold id"):
        owner_id_to_store("0::30000000-0000-f000-f000-000000000000:-01")


def test_the_sentinels_are_what_their_owners_are_spelled_as() -> None:
    assert (str(Owner("", RESERVED_RUN_ID, -1)), str(Owner("", RESERVED_RUN_ID, -2))) == (NONE, FREE)
