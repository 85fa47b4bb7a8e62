"""A task service on a real server, and a client of HTTP that knows nothing of ours."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest
from servedtasks import ServedTasks, served


@pytest.fixture
def service() -> Iterator[ServedTasks]:
    """A service over a store in memory."""
    with served() as service:
        yield service


@pytest.fixture
def http(service: ServedTasks) -> Iterator[httpx2.Client]:
    """A client of it."""
    with httpx2.Client(base_url=service.url, timeout=30.0, trust_env=False) as http:
        yield http
