"""A process beside ours that ends a process group when its keeper is gone, killed or stopped, and its time is over.

It is told on stdin until when (time.monotonic, which all processes of a host share) the group may run, and `done` at the
end. Whatever became of the keeper, the kernel closes the pipe, and the clock goes on. This file is its whole program: it
imports nothing of ours, so that it starts fast and fails for nothing.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress

FOREVER_S = 3600.0


class Watchdog:
    """The keeper's end: `until` moves the end of the group's time, `close` calls it off."""

    def __init__(self, group: int, kill_after_s: float, until: float) -> None:
        self._told = until
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, str(group), repr(kill_after_s), repr(until)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # what a terminal sends to us must not reach it
        )

    def until(self, moment: float) -> None:
        """Let the group run until another moment."""
        if moment != self._told:
            self._told = moment
            self._say(f"{moment!r}\n")

    def close(self) -> None:
        """Leave the group alone from now on."""
        self._say("done\n")
        if self._process.stdin is not None:
            with suppress(OSError):  # it was killed, with a line of ours unread
                self._process.stdin.close()
        self._process.wait()

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):  # somebody has killed it: then we are alone, as most keepers are
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()


def watch(group: int, kill_after_s: float, until: float) -> None:
    """Read until when the group may run. End it when the pipe has closed without a `done`, or the time is over."""
    left = b""
    while (now := time.monotonic()) < until:
        if not select.select([0], [], [], min(until - now, FOREVER_S))[0]:
            continue
        if not (read := os.read(0, 4096)):  # the keeper is dead
            end(group, min(until, time.monotonic() + kill_after_s))
            return
        *lines, left = (left + read).split(b"\n")
        if b"done" in lines:
            return
        until = float(lines[-1]) if lines else until
    end(group, 0.0)  # the keeper is stopped, or so slow that it comes to the same


def end(group: int, kill_at: float) -> None:
    """Ask a group to end, and make it end."""
    with suppress(OSError):  # nobody is left of it
        os.killpg(group, signal.SIGTERM)
        os.killpg(group, signal.SIGCONT)  # a stopped one hears nothing
        while time.monotonic() < kill_at:
            time.sleep(0.02)
            os.killpg(group, 0)
        os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    watch(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]))
