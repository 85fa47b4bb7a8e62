"""Files that are there whole or not at all, and a directory that one process has."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import JournalFailed, JournalFull, JournalLocked

LOCK, WORKING = "lock", ".working"
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def sorted_errors(what: str) -> Iterator[None]:
    """Turn the operating system's errors into ours."""
    try:
        yield
    except OSError as error:
        raise failed(what, error) from error


def failed(what: str, error: OSError) -> JournalFailed:
    """Return our error for one of the operating system's, after which nothing was changed."""
    if error.errno in FULL:
        return JournalFull(f"There is no room: {what}: {error.strerror}. Nothing was changed; make room and try again.")
    return JournalFailed(f"{what}: {error.strerror or error}. Nothing was changed.")


def write_all(file: int, data: bytes | memoryview) -> None:
    """Write everything, however the system cuts it up."""
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable."""
    file = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def create(path: Path, parts: Iterable[bytes]) -> int:
    """Make a file whose name appears only once its content is durable. Return it, open for more."""
    working = path.with_name(path.name + WORKING)
    file = os.open(working, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        for part in parts:
            write_all(file, part)
        os.fsync(file)
        os.rename(working, path)
        sync_directory(path.parent)
    except BaseException:
        os.close(file)
        working.unlink(missing_ok=True)
        raise
    return file


def remove(paths: Iterable[Path], directory: Path) -> None:
    """Delete files; those that are gone already are fine."""
    for path in paths:
        path.unlink(missing_ok=True)
    sync_directory(directory)


class DirectoryLock:
    """The right to a directory, held until it is given back or the process ends. It remembers that a journal was born here."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._file = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = self._read()
            os.close(self._file)
            raise JournalLocked(str(directory), holder) from error
        self.born = "born" in self._read()

    def claim(self) -> None:
        """Write down who has it, and that there is a journal."""
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"process {os.getpid()}, born\n".encode(), 0)
        os.fsync(self._file)
        self.born = True

    def release(self) -> None:
        """Give it back."""
        os.close(self._file)

    def _read(self) -> str:
        return os.pread(self._file, 200, 0).decode(errors="replace").strip()
