"""Each behaviour runs on every journal and through both faces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from taskstores import FACES, Hands, MemoryPlace, Place, Tasks, opened

Reopen = Callable[..., Tasks]


@pytest.fixture(params=FACES)
def face(request: pytest.FixtureRequest) -> str:
    """A face: threads or asyncio."""
    return str(request.param)


@pytest.fixture(params=["memory"])
def place(request: pytest.FixtureRequest) -> Place:
    """A place for a journal."""
    return MemoryPlace()


@pytest.fixture
def hands() -> Hands:
    """Clocks that the test moves."""
    return Hands()


@pytest.fixture
def open_tasks(face: str, place: Place, hands: Hands) -> Iterator[Reopen]:
    """A way to open the place's journal: it closes the store that had it before."""
    with ExitStack() as stack:

        def again(**options: Any) -> Tasks:
            stack.close()
            return stack.enter_context(opened(face, place.journal(), **{"clock": hands.clock(), **options}))

        yield again


@pytest.fixture
def tasks(open_tasks: Reopen) -> Tasks:
    """A strict store."""
    return open_tasks()
