"""Which bucket of a semaphore an owner is in."""

from __future__ import annotations

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
    return fingerprint32(utf8(owner_id)) % buckets
