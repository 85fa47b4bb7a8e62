"""A leash: what it holds goes when its owner lets go, or dies in whatever way."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

# The shell waits for the end of its input. The kernel closes the owner's end of the pipe even after kill -9.
WAIT_THEN_RUN = 'read -r _; exec "$@"'


class Leash:
    """Run `command` once this object lets go or this process is gone: the way out of a crash is the way out of every run."""

    def __init__(self, command: Sequence[str]) -> None:
        # In a session of its own: a Ctrl-C in the terminal must not end it before what it holds.
        self._shell = subprocess.Popen(
            ["sh", "-c", WAIT_THEN_RUN, "leash", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def let_go(self) -> None:
        """Have the command run, and wait for it."""
        if self._shell.stdin and not self._shell.stdin.closed:
            self._shell.stdin.close()
        self._shell.wait(timeout=60)
