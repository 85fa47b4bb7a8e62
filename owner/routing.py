"""Which bucket of a semaphore an owner is in."""

from __future__ import annotations

from functools import lru_cache

from .errors import NoBucket
from .fingerprint import fingerprint32
from .spelling import utf8


def bucket_of(owner_id: str, buckets: int) -> int:
    """Return the bucket of `owner_id`, from 0 up to `buckets` - 1.

    Never seeded and never changed: a release finds the slot by computing it again, perhaps years later, perhaps in Go.
    Raises NoBucket where `buckets` is less than one.
    """
    if buckets < 1:
        raise NoBucket(buckets)
    return _fingerprint(owner_id) % buckets


@lru_cache(maxsize=4096)
def _fingerprint(owner_id: str) -> int:
    return fingerprint32(utf8(owner_id))  # asked for again at the release, if not before
