"""A workflow engine in small: threads that acquire a slot, work, and release it, sharing one client."""

from __future__ import annotations

import random
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .visits import Visit

if TYPE_CHECKING:
    from ..owner import Owner
    from ..semaphore import Client, Hold

IDLE, WAITING, WORKING, LEAVING = "idle", "waiting", "working", "leaving"
WORK_S = (0.02, 0.08)
PATIENCE_S = 1.0  # in line, before a worker looks whether it is over


@dataclass(slots=True)
class Worker:
    """What one worker is doing. Only its own thread writes it; who draws it reads."""

    number: int
    state: str = IDLE
    hold: Hold | None = None
    jobs: int = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """A worker's way in, and how long it took."""

    hold: Hold
    waited_ms: float


class Crew:
    """Some workers, and the record of what they did.

    They end when `stop` is called, when `jobs` are done, or when one of them fails; each leaves the slot that it is in.
    """

    def __init__(self, client: Client, semaphore: str, workers: int, *, jobs: int | None = None) -> None:
        self.workers = [Worker(number) for number in range(1, workers + 1)]
        self.visits: list[Visit] = []
        self.failures: list[Exception] = []
        self.semaphore, self._client, self._jobs_left = semaphore, client, jobs
        self._run_id = f"run-{random.randrange(1 << 32):08x}"
        self._over, self._counting = threading.Event(), threading.Lock()
        self._threads = [threading.Thread(target=self._live, args=(worker,)) for worker in self.workers]

    def start(self) -> None:
        """Let them begin."""
        for thread in self._threads:
            thread.start()

    def wait(self, seconds: float) -> bool:
        """Wait a while. Tell whether any of them is still at work."""
        self._over.wait(seconds)
        return any(thread.is_alive() for thread in self._threads) and not self._over.is_set()

    def stop(self) -> None:
        """Let each of them leave, and wait for it. Raises what one of them failed with."""
        self._over.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()
        if self.failures:
            raise self.failures[0]

    def _live(self, worker: Worker) -> None:
        try:
            while self._another_job():
                self._do_job(worker)
        except Exception as error:  # nobody calls a thread, so nobody would see it; `stop` raises it
            self.failures.append(error)
            self._over.set()
        worker.state = IDLE

    def _another_job(self) -> bool:
        with self._counting:
            if self._over.is_set() or self._jobs_left == 0:
                return False
            self._jobs_left = None if self._jobs_left is None else self._jobs_left - 1
            return True

    def _do_job(self, worker: Worker) -> None:
        from ..owner import Owner

        owner = Owner(f"demo:{worker.number}", self._run_id, worker.jobs)
        worker.state = WAITING
        if (entry := self._get_in(owner)) is not None:
            self._be_inside(worker, owner, entry)

    def _get_in(self, owner: Owner) -> Entry | None:
        """Stand in line until a slot is free. None: it is over."""
        from ..semaphore import NotAcquired

        began = time.perf_counter()
        while not self._over.is_set():
            with suppress(NotAcquired):
                hold = self._client.acquire(self.semaphore, owner, wait_s=PATIENCE_S)
                return Entry(hold, (time.perf_counter() - began) * 1000)
        return None

    def _be_inside(self, worker: Worker, owner: Owner, entry: Entry) -> None:
        entered_ns, hold = time.monotonic_ns(), entry.hold
        worker.state, worker.hold = WORKING, hold
        self._over.wait(random.uniform(*WORK_S))
        worker.state, worker.hold = LEAVING, None
        left_ns = time.monotonic_ns()  # before the slot is given back: from then on it may be another's
        self._client.release(self.semaphore, owner, fence=hold.fence)
        worker.jobs += 1
        self.visits.append(Visit(worker.number, hold.token, hold.fence, entered_ns, left_ns, entry.waited_ms))
