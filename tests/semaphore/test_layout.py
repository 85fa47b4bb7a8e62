"""How tokens are spread over buckets. Nothing stores it, so every version and Cadence itself must compute the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from slotkeeper.semaphore import BadSize
from slotkeeper.semaphore.layout import LARGEST_BUCKET, LARGEST_SIZE, balanced, bucket_count, check, token_range

LAW = json.loads((Path(__file__).parents[1] / "vectors" / "buckets.json").read_text(encoding="utf-8"))
SIZES = st.integers(1, 3000)
BUCKET_SIZES = st.integers(1, LARGEST_BUCKET)


@pytest.mark.parametrize("row", LAW["counts"], ids=str)
def test_bucket_counts_are_those_of_the_law(row: dict[str, int]) -> None:
    assert bucket_count(row["size"], row["bucket_size"]) == row["buckets"]


@pytest.mark.parametrize("row", LAW["token_ranges"], ids=str)
def test_token_ranges_are_those_of_the_law(row: dict[str, int]) -> None:
    tokens = token_range(row["size"], row["bucket_size"], row["bucket"])
    assert (tokens[0], tokens[-1]) == (row["first"], row["last"])


def test_law_has_cases() -> None:
    assert len(LAW["counts"]) >= 4
    assert len(LAW["token_ranges"]) >= 4


@pytest.mark.parametrize(("size", "bucket_size"), [(1, 1), (7, 3), (200, 100), (201, 100), (1000, 250)])
def test_every_token_is_in_exactly_one_bucket_of_cadences_cases(size: int, bucket_size: int) -> None:
    assert all_tokens(size, bucket_size) == list(range(1, size + 1))


@given(SIZES, BUCKET_SIZES)
def test_every_token_is_in_exactly_one_bucket(size: int, bucket_size: int) -> None:
    assert all_tokens(size, bucket_size) == list(range(1, size + 1))


@given(SIZES, BUCKET_SIZES)
def test_no_bucket_is_empty_or_too_large(size: int, bucket_size: int) -> None:
    lengths = [len(token_range(size, bucket_size, bucket)) for bucket in range(bucket_count(size, bucket_size))]
    assert all(length == bucket_size for length in lengths[:-1])
    assert 1 <= lengths[-1] <= bucket_size


@pytest.mark.parametrize("bucket", [-1, 2, 3])
def test_bucket_that_is_not_there_is_an_index_error(bucket: int) -> None:
    with pytest.raises(IndexError, match="out of range"):
        token_range(200, 100, bucket)


@pytest.mark.parametrize("arguments", [(0, 100), (-1, 100), (10, 0), (10, -1), (10, 251), (LARGEST_SIZE + 1, 100)])
def test_sizes_that_cannot_be_are_refused(arguments: tuple[int, int]) -> None:
    calls: list[Any] = [check, bucket_count, lambda size, bucket_size: token_range(size, bucket_size, 0)]
    for call in calls:
        with pytest.raises(BadSize):
            call(*arguments)


def test_largest_semaphore_counts_within_an_int_column() -> None:
    buckets = bucket_count(LARGEST_SIZE, LARGEST_BUCKET)
    assert token_range(LARGEST_SIZE, LARGEST_BUCKET, buckets - 1)[-1] == LARGEST_SIZE == 2**31 - 1


@pytest.mark.parametrize(("size", "bucket_size"), [(1, 1), (99, 99), (100, 100), (101, 51), (200, 100), (201, 67)])
def test_default_split_is_even(size: int, bucket_size: int) -> None:
    assert balanced(size) == bucket_size


@given(SIZES, BUCKET_SIZES)
@example(101, 100)
def test_balanced_split_takes_no_more_buckets_and_none_is_nearly_empty(size: int, most: int) -> None:
    even = balanced(size, most)
    assert even <= most
    assert bucket_count(size, even) <= bucket_count(size, most)
    lengths = [len(token_range(size, even, bucket)) for bucket in range(bucket_count(size, even))]
    assert max(lengths) - min(lengths) <= len(lengths)


def all_tokens(size: int, bucket_size: int) -> list[int]:
    """Return the tokens of all buckets, in order."""
    return [t for bucket in range(bucket_count(size, bucket_size)) for t in token_range(size, bucket_size, bucket)]
