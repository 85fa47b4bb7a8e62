"""Who asks for a slot, how that is spelled, and which bucket it leads to.

An *owner* is one hold of one run of one workflow. It is stored as its owner_id, which counts the bytes of the workflow
id, so that no id, whatever colons it has, can look like another:

    >>> from slotkeeper.owner import Owner, bucket_of
    >>> owner = Owner("order:42", "run-1", 7)
    >>> str(owner)
    '8:order:42:run-1:7'
    >>> Owner.parse("8:order:42:run-1:7") == owner
    True
    >>> bucket_of(str(owner), 4)
    1

What is promised:

- one spelling: equal owners have the same owner_id, byte for byte, and any other text is refused, with the byte where
  it is wrong and the reason. Cassandra compares bytes: a second spelling would be a second owner, with a second slot;
- one bucket: an owner_id leads to the same bucket in every process, every version and the Go reference, as the bucket
  is nowhere stored. What breaks this promise is another number of buckets: a semaphore never changes its own;
- nobody is nobody: `NONE`, `FREE` and the rest of the reserved family are owners that slotkeeper's own rows name. They
  parse like any other, and `owner_id_to_store` refuses them, so that no hold is stored that reads as a free slot.

It does no I/O, keeps no state, and imports nothing but the standard library.
"""

from __future__ import annotations

from .errors import NoBucket, OwnerFieldError, OwnerIdError, OwnerTooLong, ReservedOwner
from .fingerprint import fingerprint32
from .identity import FREE, NONE, RESERVED_RUN_ID, Owner, owner_id_to_store
from .routing import bucket_of

__all__ = [
    "FREE",
    "NONE",
    "RESERVED_RUN_ID",
    "NoBucket",
    "Owner",
    "OwnerFieldError",
    "OwnerIdError",
    "OwnerTooLong",
    "ReservedOwner",
    "bucket_of",
    "fingerprint32",
    "owner_id_to_store",
]
