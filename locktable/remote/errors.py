"""What a client of the lock service can be told beside what a table says."""

from __future__ import annotations

from ..errors import LockError, LockUnavailable


class ServiceUnreachable(LockUnavailable):
    """No lock node could be asked in time. Nothing was changed; see that one runs there, and try again."""


class LockAccessDenied(LockError):
    """The lock service does not take this token, or not for this name. Nothing was changed; give the right token."""


class BadLockAnswer(LockError):
    """What answers there is no lock service, or one of another version. Correct the URL, or bring both to one version."""


class LockClientClosed(LockError):
    """This client is not open: it was closed, or never opened. Open a new one."""


class ForkedLockClient(LockError):
    """This client was opened before a fork and does not work in the child. Open a new one in the child process."""
