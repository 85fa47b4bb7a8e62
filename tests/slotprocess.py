"""Processes that use slots: `python -m slotprocess FACE URL NAME OWNER [LEASE]` does what its stdin says, a word a line.

    acquire -> {"did": "acquire", "fence": 17, "at": 12.5}      at: time.monotonic, the same clock in all processes of a host

What goes wrong is named: {"did": "release", "error": "LeaseLost", ...}. So no side guesses how long the other takes.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from slotkeeper.semaphore import AsyncClient, Client, Hold, LeaseLost, StaleFence

BOUND_S = 60.0


class Process:
    """A process beside the test's own."""

    def __init__(self, popen: subprocess.Popen[str]) -> None:
        self.popen = popen

    def tell(self, word: str) -> None:
        """Tell it what to do, without waiting for it."""
        assert self.popen.stdin is not None
        self.popen.stdin.write(word + "\n")
        self.popen.stdin.flush()

    def hear(self) -> dict[str, Any]:
        """Wait for the next thing that it has done."""
        assert self.popen.stdout is not None
        line = self.popen.stdout.readline()
        assert line, f"the process ended with {self.popen.wait()}: {self._last_words()}"
        heard: dict[str, Any] = json.loads(line)
        return heard

    def _last_words(self) -> str:
        assert self.popen.stderr is not None
        return self.popen.stderr.read()

    def does(self, word: str) -> dict[str, Any]:
        """Tell it what to do, and wait until it is done."""
        self.tell(word)
        return self.hear()

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self.popen.send_signal(number)


@contextmanager
def process(face: str, url: str, name: str, owner: object, lease_s: int | None = None) -> Iterator[Process]:
    """Start a process that is ready to be told what to do, and is gone at the end."""
    arguments = [face, url, name, str(owner), *([str(lease_s)] if lease_s else [])]
    with subprocess.Popen(
        [sys.executable, "-m", "slotprocess", *arguments],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]),
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as popen:
        try:
            started = Process(popen)
            assert started.hear()["did"] == "start"
            yield started
        finally:
            popen.kill()


def say(did: str, **what: object) -> None:
    """Tell the test."""
    print(json.dumps({"did": did, "at": time.monotonic(), **what}), flush=True)


class Worker:
    """What a process of threads can do."""

    def __init__(self, client: Client, name: str, owner: str, lease_s: int | None) -> None:
        self.client, self.name, self.owner, self.lease_s = client, name, owner, lease_s
        self.hold: Hold | None = None

    def do(self, word: str) -> dict[str, object]:
        """Do what a word says."""
        if word == "acquire":
            self.hold = self.client.acquire(self.name, self.owner, wait_s=BOUND_S, lease_s=self.lease_s)
            return {"fence": self.hold.fence, "token": self.hold.token}
        assert self.hold is not None
        match word:
            case "release":
                return {"released": self.hold.release()}
            case "release by fence":
                return {"released": self.client.release(self.name, self.owner, fence=self.hold.fence)}
            case "renew":
                return {"fence": self.client.renew(self.name, self.owner, lease_s=self.lease_s, fence=self.hold.fence)}
            case "lost":
                return {"lost": self.hold.lost.wait(5)}
        raise ValueError(word)


def in_threads(url: str, name: str, owner: str, lease_s: int | None) -> None:
    """Do what stdin says, through a Client."""
    with Client(url) as client:
        worker = Worker(client, name, owner, lease_s)
        say("start")
        for line in sys.stdin:
            word, began = line.strip(), time.monotonic()
            try:
                if word == "work":
                    _work(client, name, owner)
                say(word, began=began, **worker.do(word))
            except (LeaseLost, StaleFence) as error:
                say(word, error=type(error).__name__)
            except KeyboardInterrupt:
                say("interrupted")
                return


def _work(client: Client, name: str, owner: str) -> None:
    """Hold a slot until interrupted."""
    with client.hold(name, owner) as hold:
        say("work", fence=hold.fence)
        time.sleep(BOUND_S)


async def in_tasks(url: str, name: str, owner: str, _: int | None) -> None:
    """Wait for a slot, and hold it, until interrupted."""
    async with AsyncClient(url) as client:
        say("start")
        await asyncio.to_thread(sys.stdin.readline)
        async with client.hold(name, owner) as hold:
            say("work", fence=hold.fence)
            await asyncio.sleep(BOUND_S)


def main() -> None:
    """Run the face that the command line names."""
    face, url, name, owner, *rest = sys.argv[1:]
    lease_s = int(rest[0]) if rest else None
    if face == "threads":
        in_threads(url, name, owner, lease_s)
        return
    try:
        asyncio.run(in_tasks(url, name, owner, lease_s))
    except KeyboardInterrupt:
        say("interrupted")


if __name__ == "__main__":
    main()
