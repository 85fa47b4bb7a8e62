"""How a semaphore's tokens are spread over its buckets. Arithmetic only; it never changes once a semaphore exists."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from ..database import Key
from ..errors import SlotkeeperError

DEFAULT_BUCKET_SIZE = 100
LARGEST_BUCKET = 250  # a bucket's token rows are read as one slice
LARGEST_SIZE = 2**31 - 1


class BadSize(SlotkeeperError, ValueError):
    """The size or bucket size of a semaphore is out of range: size >= 1, bucket size 1 to 250."""


@dataclass(frozen=True, slots=True)
class BucketRef:
    """Which bucket: the semaphore it is of, its number, and its tokens. `created_ms` tells a semaphore from its namesake."""

    domain_id: UUID
    semaphore: str
    number: int
    tokens: range
    created_ms: int

    @property
    def partition(self) -> Key:
        """The partition key of its rows."""
        return (self.domain_id, self.semaphore, self.number)


def bucket_count(size: int, bucket_size: int) -> int:
    """Return how many buckets hold `size` tokens. Raises BadSize."""
    check(size, bucket_size)
    return -(-size // bucket_size)


def token_range(size: int, bucket_size: int, bucket: int) -> range:
    """Return the tokens of a bucket (buckets count from 0, tokens from 1). Raises BadSize, IndexError."""
    buckets = bucket_count(size, bucket_size)
    if not 0 <= bucket < buckets:
        raise IndexError(f"bucket {bucket} is out of range: size {size} in buckets of {bucket_size} makes {buckets}")
    return range(bucket * bucket_size + 1, min((bucket + 1) * bucket_size, size) + 1)


def balanced(size: int, most: int = DEFAULT_BUCKET_SIZE) -> int:
    """Return the bucket size that splits `size` evenly into as few buckets of at most `most` as hold it.

    101 tokens become 51 + 50, not 100 + 1: a bucket of one would be full while the other is idle. Raises BadSize.
    """
    return -(-size // bucket_count(size, most))


def check(size: int, bucket_size: int) -> None:
    """Raise BadSize for a size or bucket size that no semaphore can have."""
    if not 1 <= size <= LARGEST_SIZE:
        raise BadSize(f"A semaphore's size is between 1 and {LARGEST_SIZE}, not {size}.")
    if not 1 <= bucket_size <= LARGEST_BUCKET:
        raise BadSize(f"A bucket holds between 1 and {LARGEST_BUCKET} tokens, not {bucket_size}.")
