"""Callers and clients of both faces, against services that fail on purpose."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from eitherface import FACES
from scriptedservice import Script, scripted


@pytest.fixture
def script() -> Iterator[Script]:
    """A service that does what a test says."""
    with scripted() as running:
        yield running


@pytest.fixture(params=FACES)
def face(request: pytest.FixtureRequest) -> str:
    """A face: threads or asyncio."""
    return str(request.param)
