"""The vectors are the law: each is obeyed in both directions, and the copies here are the law's own text."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from slotkeeper.owner import FREE, NONE, Owner, OwnerIdError, bucket_of

REPOSITORY = Path(__file__).parents[2]
COPIES = REPOSITORY / "tests" / "vectors"
SHARED = REPOSITORY.parent / "shared" / "vectors"

SHA_256 = {
    "buckets.json": "cfe7a920e7d2b4594fd869972144498f2a22b3b6b262febf62e542ae329a202c",
    "owner_ids.json": "a7f8a71f33c53ed53a4aca64e73bce49fe42193b51b49b406e2c1ca6fe06a85c",
}

OWNER_IDS = json.loads((COPIES / "owner_ids.json").read_text("utf-8"))
BUCKETS = json.loads((COPIES / "buckets.json").read_text("utf-8"))


@pytest.mark.parametrize("name", SHA_256)
def test_the_copy_of_the_vectors_is_the_pinned_one(name: str) -> None:
    assert hashlib.sha256((COPIES / name).read_bytes()).hexdigest() == SHA_256[name]


def test_the_shared_vectors_where_they_are_at_hand_are_the_pinned_ones_too() -> None:
    # Away from them there is nothing to compare: the pinned sums above stand for them.
    at_hand = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in SHARED.glob("*.json")}

    assert at_hand == (SHA_256 if SHARED.is_dir() else {})


@pytest.mark.parametrize("row", OWNER_IDS["valid"], ids=lambda row: ascii(row["owner_id"]))
def test_an_owner_has_the_spelling_of_the_vector(row: dict[str, Any]) -> None:
    assert str(Owner(row["workflow_id"], row["run_id"], row["hold_id"])) == row["owner_id"]


@pytest.mark.parametrize("row", OWNER_IDS["valid"], ids=lambda row: ascii(row["owner_id"]))
def test_the_spelling_of_the_vector_is_read_as_its_owner(row: dict[str, Any]) -> None:
    assert Owner.parse(row["owner_id"]) == Owner(row["workflow_id"], row["run_id"], row["hold_id"])


@pytest.mark.parametrize("row", OWNER_IDS["invalid"], ids=lambda row: ascii(row["owner_id"]))
def test_a_text_that_is_no_owner_id_is_refused_for_the_right_reason(row: dict[str, Any]) -> None:
    with pytest.raises(OwnerIdError) as refused:
        Owner.parse(row["owner_id"])

    assert (refused.value.text, refused.value.reason) == (row["owner_id"], row["why"])
    assert 0 <= refused.value.position <= len(row["owner_id"].encode())


@pytest.mark.parametrize("row", BUCKETS["rows"], ids=lambda row: f"{row['owner_id']!a} of {row['buckets']}")
def test_an_owner_is_in_the_bucket_of_the_vector(row: dict[str, Any]) -> None:
    assert bucket_of(row["owner_id"], row["buckets"]) == row["bucket"]


def test_the_sentinels_are_among_the_valid_vectors() -> None:
    assert {NONE, FREE} <= {row["owner_id"] for row in OWNER_IDS["valid"]}
