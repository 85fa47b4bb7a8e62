"""Real processes: killed under load, taken over by the next one, stopped in order."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from eventually import until
from servingprocess import serving

from slotkeeper import schema
from slotkeeper.database import open_store

WORKERS = 6
ENOUGH = 40  # answered changes, before it is killed


class Worker:
    """Adds, changes and deletes tasks of its own, and knows which of them are certain."""

    def __init__(self, url: str, name: str) -> None:
        self.there: dict[int, str] = {}  # tasks that are answered for
        self.gone: set[int] = set()  # ids that are no more
        self.unsure: set[int] = set()  # named in the request that had no answer
        self.answered = 0
        self._name, self._url = name, url
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def join(self) -> None:
        """Wait until it has lost its service."""
        self._thread.join(60.0)
        assert not self._thread.is_alive()

    def _work(self) -> None:
        with httpx2.Client(base_url=self._url, timeout=30.0, trust_env=False) as http:
            try:
                while True:
                    self._change(http)
            except httpx2.HTTPError:
                return

    def _change(self, http: httpx2.Client) -> None:
        """Add one, change the oldest, and delete the one after: a whole transaction."""
        data = f"{self._name} {self.answered}"
        mine = list(self.there)
        changed, deleted = next(iter(mine[:1]), None), next(iter(mine[5:6]), None)
        body: dict[str, Any] = {"clientid": self._name, "adds": [{"group": self._name, "data": data}]}
        if changed is not None:
            body["updates"] = [{"id": changed, "data": f"{data} changed"}]
        if deleted is not None:
            body["deletes"] = [deleted]
        self.unsure = {task_id for task_id in (changed, deleted) if task_id is not None}
        said = http.post("/update", json=body)
        assert said.status_code == 200, said.text
        for task_id in self.unsure:
            del self.there[task_id]
        self.gone |= self.unsure
        self.there |= {task["id"]: task["data"] for task in said.json()["tasks"]}
        self.unsure = set()
        self.answered += 1


@contextmanager
def load(url: str) -> Iterator[list[Worker]]:
    """Let workers work until their service is gone."""
    workers = [Worker(url, f"worker {number}") for number in range(WORKERS)]
    try:
        yield workers
    finally:
        for worker in workers:
            worker.join()


def kept(url: str) -> dict[int, str]:
    """Return all tasks that a service has."""
    with httpx2.Client(base_url=url, timeout=30.0, trust_env=False) as http:
        groups = http.get("/groups").json()
        tasks = [task for group in groups for task in http.get(f"/group/{group}").json()]
    return {task["id"]: task["data"] for task in tasks}


def check(workers: list[Worker], found: dict[int, str]) -> None:
    """Check that everything that was answered is there, and nothing that was answered as gone."""
    for worker in workers:
        assert worker.answered > 0
        certain = {task_id: data for task_id, data in worker.there.items() if task_id not in worker.unsure}
        assert {task_id: found.get(task_id) for task_id in certain} == certain
        assert worker.gone.isdisjoint(found)
        # Of the request without an answer, either all is there or nothing.
        assert len(worker.unsure & set(found)) in (0, len(worker.unsure))


@pytest.fixture
def disk(tmp_path: Path) -> str:
    """A journal on disk."""
    return f"disk:{tmp_path / 'tasks'}"


@pytest.fixture(scope="module")
def keyspace_url(cassandra_url: str) -> str:
    """A keyspace with the tables."""
    with closing(open_store(cassandra_url)) as store:
        schema.setup(store)
    return cassandra_url


@pytest.fixture
def rows(keyspace_url: str) -> str:
    """A journal in Cassandra."""
    return f"{keyspace_url}#{uuid4()}"


@pytest.fixture(params=["disk", "cassandra"])
def journal(request: pytest.FixtureRequest) -> str:
    """A journal that outlives its process."""
    return str(request.getfixturevalue("disk" if request.param == "disk" else "rows"))


def answered(workers: list[Worker]) -> int:
    """Return how many changes each worker has an answer to, at least."""
    return min(worker.answered for worker in workers)


def test_everything_answered_survives_a_kill_under_load(journal: str) -> None:
    with serving(journal) as first, load(first.url) as workers:
        until(lambda: answered(workers) >= ENOUGH // WORKERS)
        first.popen.send_signal(signal.SIGKILL)

    with serving(journal) as second, load(second.url) as more:
        found = kept(second.url)
        until(lambda: answered(more) >= 2)
        second.popen.send_signal(signal.SIGKILL)

    check(workers, found)
    with serving(journal) as third:
        again = kept(third.url)
    ids = {task_id for worker in workers for task_id in worker.gone | set(worker.there)}
    assert ids.isdisjoint(task_id for worker in more for task_id in worker.there)  # no id ever comes back
    check(more, again)


def test_the_second_service_on_one_journal_takes_over_and_the_first_says_so(rows: str) -> None:
    add = {"clientid": 7, "adds": [{"group": "g"}]}
    with serving(rows) as first, httpx2.Client(base_url=first.url, trust_env=False, timeout=30.0) as http:
        assert http.post("/update", json=add).status_code == 200
        with serving(rows) as second, httpx2.Client(base_url=second.url, trust_env=False, timeout=30.0) as other:
            assert len(other.get("/group/g").json()) == 1
            for path, body in (("/update", add), ("/claim", {"clientid": 7, "group": "g", "duration": 1000})):
                said = http.post(path, json=body)
                assert (said.status_code, said.json()["type"]) == (503, "urn:slotkeeper:problem:fenced")
            for path in ("/readyz", "/groups"):
                assert http.get(path).json()["type"] == "urn:slotkeeper:problem:fenced"
            assert http.get("/healthz").status_code == 200

            assert other.get("/readyz").status_code == 200
            assert len(other.post("/update", json=add).json()["tasks"]) == 1
            assert len(other.get("/group/g").json()) == 2
            assert first.end(signal.SIGTERM) == 0
            assert second.end(signal.SIGTERM) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order_with_waits_answered(disk: str, number: signal.Signals) -> None:
    wait = {"clientid": 7, "group": "none", "duration": 1, "wait": 60_000}
    with serving(disk) as process, httpx2.Client(base_url=process.url, trust_env=False, timeout=30.0) as http:
        said: list[httpx2.Response] = []
        waiting = threading.Thread(target=lambda: said.append(http.post("/claim", json=wait)))
        waiting.start()
        until(lambda: httpx2.get(f"{process.url}/stats", trust_env=False).json()["waiting"] == 1)

        assert process.end(number) == 0

        waiting.join(60.0)
        assert said[0].json() == {"tasks": None, "error": None}


def test_an_opportunistic_service_that_ends_in_order_has_written_everything_down(disk: str) -> None:
    with serving(disk, "--opportunistic", "--lag", "30") as first, load(first.url) as workers:
        until(lambda: answered(workers) >= ENOUGH // WORKERS)
        assert httpx2.get(f"{first.url}/stats", trust_env=False).json()["strict"] is False
        assert first.end(signal.SIGTERM) == 0

    with serving(disk) as second:
        assert second.told["strict"] is True
        check(workers, kept(second.url))


def test_one_process_at_a_time_has_a_directory_open(disk: str) -> None:
    with serving(disk), pytest.raises(AssertionError, match="ended with 3"), serving(disk):
        pass
