"""What a client can be told beside what a store says."""

from __future__ import annotations

from ..errors import StoreBusy, TaskStoreError


class ServiceUnreachable(StoreBusy):
    """The task service could not be asked in time. Nothing was changed; see that it runs there, and try again."""


class AccessDenied(TaskStoreError):
    """The task service does not take this token, or not for that. Nothing was changed; give the right token."""


class BadAnswer(TaskStoreError):
    """What answers there is no task service, or one of another version. Correct the URL, or bring both to one version."""


class ForkedClient(TaskStoreError):
    """This client was opened before a fork and does not work in the child. Open a new one in the child process."""
