"""Ctrl-C in a thread that leads: Python raises it behind any call, and so at any moment of the engine's work."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

import pytest

import slotkeeper.semaphore
from slotkeeper import Client, schema
from slotkeeper.database import Batch, Outcome
from slotkeeper.database.sqlite import SqliteStore
from slotkeeper.semaphore import NotAcquired

ENGINE = str(Path(slotkeeper.semaphore.__file__).parent)
PATIENCE_S = 0.05
SOON_S = 5.0  # whoever does not know of its own call any more finds out after ten


class Interrupter:
    """Raises KeyboardInterrupt behind one of the calls that the engine makes, counted from when it is armed."""

    def __init__(self, after: int) -> None:
        self._left, self._armed, self.has_struck = after, False, False

    def arm(self) -> None:
        """Begin to count."""
        self._armed = not self.has_struck

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Count, from when it is armed until the end."""
        sys.setprofile(self._see)
        try:
            yield
        finally:
            sys.setprofile(None)
            self._armed = False

    def _see(self, frame: FrameType, event: str, _: object) -> None:
        if self._armed and event in ("call", "c_return") and frame.f_code.co_filename.startswith(ENGINE):
            self._left -= 1
            if self._left == 0:
                self._armed, self.has_struck = False, True
                sys.setprofile(None)
                raise KeyboardInterrupt


class Armed:
    """A store that arms an interrupter with the first commit."""

    def __init__(self, store: SqliteStore, arm: Callable[[], None]) -> None:
        self._store, self._arm = store, arm

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def commit_begun(self, batch: Batch) -> Future[Outcome]:
        answer = self._store.commit_begun(batch)
        self._arm()
        return answer


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "slots.db")
    schema.setup(store)
    yield store
    store.close()


def test_waiter_that_is_interrupted_at_any_moment_leaves_no_row_and_a_bucket_that_works(store: SqliteStore) -> None:
    with Client(store) as holder:
        holder.create("s", 1)
        for after in range(1, 2_000, 3):
            interrupter = Interrupter(after)
            with Client(Armed(store, interrupter.arm)) as client:  # type: ignore[arg-type] # a store in all but name
                hold = holder.acquire("s", "1:w:r:0")
                began = time.monotonic()
                with interrupter.watching(), suppress(KeyboardInterrupt, NotAcquired):
                    client.acquire("s", "1:w:r:1", wait_s=PATIENCE_S)
                assert time.monotonic() - began < SOON_S, after
                assert holder.waiters("s") == [], after
                hold.release()
                assert client.acquire("s", "1:w:r:1", wait_s=0).release(), after
            if not interrupter.has_struck:
                break
        assert after > 100, "it is interrupted behind every third call, until it has left the line"
