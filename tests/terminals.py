"""A shell on a terminal of its own, whose keys a test presses."""

from __future__ import annotations

import os
import pty
import select
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

BOUND_S = 60.0
CTRL_C, CTRL_Z = "\x03", "\x1a"


class Terminal:
    """The keyboard and the screen. `status` is how the shell ended."""

    def __init__(self, pid: int, descriptor: int) -> None:
        self.pid, self._descriptor = pid, descriptor
        self.seen = ""
        self.status: int | None = None

    def press(self, keys: str) -> None:
        """Press keys."""
        os.write(self._descriptor, keys.encode())

    def read(self, text: str | None = None) -> str:
        """Read until a text comes that has not been read yet; without one, until all have left the terminal."""
        deadline, read = time.monotonic() + BOUND_S, ""
        while text is None or text not in read:
            if not select.select([self._descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise AssertionError(f"{text!r} did not come, but {self.seen!r}")
            try:
                piece = os.read(self._descriptor, 1024).decode(errors="replace")
            except OSError:  # the last one has left
                piece = ""
            if not piece:
                assert text is None, f"{text!r} did not come, but {self.seen!r}"
                break
            read += piece
            self.seen += piece
        return read

    def end(self) -> None:
        """Hang up, and wait for the shell."""
        os.close(self._descriptor)
        _, self.status = os.waitpid(self.pid, 0)


@contextmanager
def shell(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> Iterator[Terminal]:
    """Run a bash on a terminal, in the folder of the tests."""
    pid, descriptor = pty.fork()
    if pid == 0:  # pragma: no cover - the other process
        with suppress(OSError):
            os.chdir(Path(__file__).parent)
            os.execvpe("bash", ["bash", "--norc", "--noprofile", *arguments], dict(environment))
        os._exit(127)
    terminal = Terminal(pid, descriptor)
    try:
        yield terminal
    finally:
        terminal.end()
