"""What a semaphore is: its name, its size, how its tokens are spread. One row, written once and never changed."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID, uuid5

from ..database import Batch, Port, Refused, Row, Slice, Unavailable, insert
from ..owner import bucket_of
from .errors import BadName, NoSuchSemaphore, SemaphoreExists
from .layout import DEFAULT_BUCKET_SIZE, BucketRef, balanced, bucket_count, check, token_range
from .rows import METADATA, number, text
from .settle import commit_surely

DOMAINS = UUID(
    "6f1d4f0e-8f0e-5c53-9a39-7c1a9f2b6d10"
)  # the namespace of domain names; changing it would lose every semaphore
LONGEST_NAME = 1000  # bytes


@dataclass(frozen=True, slots=True)
class Description:
    """A semaphore as it was created: `size` tokens in buckets of `bucket_size`. `created_ms` is since the epoch."""

    name: str
    domain_id: UUID
    size: int
    bucket_size: int
    created_ms: int

    @property
    def buckets(self) -> int:
        """How many buckets its tokens are spread over."""
        return bucket_count(self.size, self.bucket_size)

    def bucket(self, number: int) -> BucketRef:
        """Name one of its buckets."""
        tokens = token_range(self.size, self.bucket_size, number)
        return BucketRef(self.domain_id, self.name, number, tokens, self.created_ms)

    def bucket_of_owner(self, owner_id: str) -> BucketRef:
        """Name the bucket that an owner belongs to: computed, stored nowhere."""
        return self.bucket(bucket_of(owner_id, self.buckets))

    def bucket_of_token(self, token: int) -> BucketRef:
        """Name the bucket that a token belongs to. Raises IndexError for a token that the semaphore has not."""
        if not 1 <= token <= self.size:
            raise IndexError(f"semaphore {self.name!r} has the tokens 1 to {self.size}, no {token}")
        return self.bucket((token - 1) // self.bucket_size)


def domain_id(domain: str | UUID) -> UUID:
    """Return the id of a domain: a UUID as it is, in text too, and any other name by UUIDv5."""
    if isinstance(domain, UUID):
        return domain
    try:
        return UUID(domain)
    except ValueError:
        return uuid5(DOMAINS, domain)


def checked_name(name: str) -> str:
    """Return a semaphore's name, or raise BadName."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError as error:
        raise BadName(name, f"it has a lone surrogate at character {error.start}") from error
    if not 1 <= size <= LONGEST_NAME:
        raise BadName(name, f"a name has 1 to {LONGEST_NAME} bytes, this one {size}")
    return name


def check_new(name: str, size: int, bucket_size: int | None) -> None:
    """Raise BadName or BadSize for parameters that no semaphore can have."""
    checked_name(name)
    check(size, DEFAULT_BUCKET_SIZE if bucket_size is None else bucket_size)


async def create(
    port: Port, domain: UUID, name: str, size: int, bucket_size: int | None, *, after_ms: int, deadline: float
) -> tuple[Description, bool]:
    """Create a semaphore, or find it there with the same parameters. Tell which.

    Raises SemaphoreExists for other parameters, BadName, BadSize, Unavailable, OutcomeUnknown. `after_ms` is when the last
    semaphore of this name was created, 0 for none: the new one is younger.
    """
    check_new(name, size, bucket_size)
    wanted = balanced(size) if bucket_size is None else bucket_size
    made = Description(name, domain, size, wanted, max(port.wall_ms(), after_ms + 1))
    values = {"size": size, "bucket_size": wanted, "created_time": made.created_ms}
    batch = Batch(METADATA, (domain,), (insert((name,), values, absent=True),))
    outcome = await commit_surely(port, batch, deadline)
    if not isinstance(outcome, Refused):
        return made, True
    (row,) = outcome.rows.values()
    there = described(row)
    if there.size != size or (bucket_size is not None and there.bucket_size != bucket_size):
        raise SemaphoreExists(name, size=there.size, bucket_size=there.bucket_size)
    return there, there == made  # our own row: an earlier attempt had applied


async def read(port: Port, domain: UUID, name: str, deadline: float = float("inf")) -> Description:
    """Read a semaphore's row. Raises NoSuchSemaphore, and Unavailable, at the deadline too."""
    pending = port.begin_read(METADATA, (domain,), (Slice((checked_name(name),)),), serial=True)
    if not await pending.wait(deadline - port.now()):
        raise Unavailable(f"Semaphore {name!r}: the database did not answer in time. Nothing was changed; try again.")
    rows = pending.result()
    if not rows:
        raise NoSuchSemaphore(name)
    return described(rows[0])


async def page(port: Port, domain: UUID, *, after: str | None, limit: int) -> list[Description]:
    """Read the semaphores of a domain behind a name, in the order of their names, at most `limit` of them."""
    rows = await port.read(METADATA, (domain,), (Slice(after=after, limit=limit),), serial=False)
    return [described(row) for row in rows]


def described(row: Row) -> Description:
    """Read a metadata row."""
    domain, name = row["domain_id"], text(row, "semaphore_name")
    size, bucket_size = number(row, "size"), number(row, "bucket_size")
    if not isinstance(domain, UUID) or name is None or size is None or bucket_size is None:
        raise NoSuchSemaphore(name or "")
    return Description(name, domain, size, bucket_size, number(row, "created_time") or 0)
