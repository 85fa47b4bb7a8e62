"""Clients and semaphores for a measurement: always new ones, so that none inherits another one's rows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from uuid import uuid4

from slotkeeper import AsyncClient, Client, Owner

DOMAIN = "bench"
TOKENS = 100  # in one bucket, unless a measurement asks for others


def client_of(url: str) -> Client:
    """Return a client with a connection of its own, not open yet."""
    return Client(url, domain=DOMAIN)


def owner(number: int, hold: int = 0) -> Owner:
    """Return an owner as engines have them."""
    return Owner(f"workflow-{number:08d}", "3f0c1f6e-6f3a-4b7e-9a57-0b0a2a6f7c11", hold)


@contextmanager
def fresh(client: Client, tokens: int = TOKENS, bucket_size: int | None = None) -> Iterator[str]:
    """Create a semaphore, in one bucket unless told otherwise; it is deleted at the end."""
    name = f"bench-{uuid4().hex}"
    client.create(name, tokens, bucket_size or tokens)
    yield name
    client.delete(name, force=True)


@asynccontextmanager
async def opened(url: str, tokens: int = TOKENS) -> AsyncIterator[tuple[AsyncClient, str]]:
    """Open a client for tasks and create a semaphore in one bucket."""
    async with AsyncClient(url, domain=DOMAIN) as client:
        name = f"bench-{uuid4().hex}"
        await client.create(name, tokens, tokens)
        yield client, name
        await client.delete(name, force=True)
