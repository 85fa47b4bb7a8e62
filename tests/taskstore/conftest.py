"""Each behaviour runs on every journal and through both faces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from taskstores import FACES, DiskPlace, Hands, MemoryPlace, Place, Tasks, opened

Reopen = Callable[..., Tasks]


@pytest.fixture(params=FACES)
def face(request: pytest.FixtureRequest) -> str:
    """A face: threads or asyncio."""
    return str(request.param)


@pytest.fixture(params=["memory", "disk"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A place for a journal."""
    return MemoryPlace() if request.param == "memory" else DiskPlace(tmp_path / "journal")


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
