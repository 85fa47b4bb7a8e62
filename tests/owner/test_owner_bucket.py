"""The fingerprint is FarmHash's own, so that whoever asks finds the same bucket."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slotkeeper.owner import NoBucket, OwnerIdError, bucket_of, fingerprint32

GOLDEN = json.loads(Path(__file__).with_name("fingerprint32.json").read_text("utf-8"))["rows"]

high_bytes = st.lists(st.integers(0x80, 0xFF), max_size=30).map(bytes)


@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: f"{len(row['hex']) // 2} bytes")
def test_the_fingerprint_is_the_recorded_one(row: dict[str, object]) -> None:
    assert fingerprint32(bytes.fromhex(str(row["hex"]))) == row["fingerprint32"]


def test_the_record_has_every_length_class_with_high_bytes_in_it() -> None:
    high = [bytes.fromhex(row["hex"]) for row in GOLDEN if max(bytes.fromhex(row["hex"]), default=0) >= 0x80]

    assert {*range(1, 46)} <= {len(data) for data in high}


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="cityhash has no wheel for it: the recorded values stand in")
@settings(deadline=None, max_examples=1000)
@given(st.binary(max_size=300) | st.binary(max_size=30) | high_bytes)
def test_the_fingerprint_is_the_one_of_the_original(data: bytes) -> None:
    from farmhash import Fingerprint32

    assert fingerprint32(data) == Fingerprint32(data)


@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8")), st.integers(1, 2**31 - 1))
def test_a_bucket_is_one_of_the_semaphores(owner_id: str, buckets: int) -> None:
    assert bucket_of(owner_id, buckets) == fingerprint32(owner_id.encode()) % buckets


@pytest.mark.parametrize("buckets", [0, -1])
def test_fewer_buckets_than_one_are_refused(buckets: int) -> None:
    with pytest.raises(NoBucket, match=f"an owner has no bucket among {buckets}") as refused:
        bucket_of("4:wf-1:run-abc:1", buckets)

    assert refused.value.buckets == buckets
    assert isinstance(refused.value, ValueError)


def test_a_text_without_utf_8_bytes_has_no_bucket() -> None:
    with pytest.raises(OwnerIdError, match="wrong at byte 3: lone surrogate"):
        bucket_of("1:a\ud800", 4)
