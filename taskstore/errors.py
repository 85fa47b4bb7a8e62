"""What can go wrong with a task store, what it means, and what to do next."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import SlotkeeperError, default_message


class TaskStoreError(SlotkeeperError):
    """Something went wrong with a task store."""


class UpdateError(TaskStoreError):
    """The change was refused, and nothing was changed. The lists say why, all of it: look at the tasks again and decide anew.

    `changes`, `deletes` and `depends` name tasks that do not exist (any more), `owned` those that somebody else owns, and
    `bugs` says what no state of the store would have allowed.
    """

    def __init__(
        self,
        *,
        changes: Sequence[int] = (),
        deletes: Sequence[int] = (),
        depends: Sequence[int] = (),
        owned: Sequence[int] = (),
        bugs: Sequence[str] = (),
    ) -> None:
        self.changes, self.deletes, self.depends = tuple(changes), tuple(deletes), tuple(depends)
        self.owned, self.bugs = tuple(owned), tuple(bugs)
        found = [
            *(f"{what} {_listed(ids)}" for what, ids in self._absent().items() if ids),
            *([f"owned by somebody else: {_listed(self.owned)}"] if self.owned else []),
            *self.bugs,
        ]
        super().__init__(f"Nothing was changed. {'; '.join(found)}.")

    @property
    def has_bugs(self) -> bool:
        """Tell whether the request itself is at fault: it would be refused again."""
        return bool(self.bugs)

    def _absent(self) -> dict[str, tuple[int, ...]]:
        return {
            "to change, but absent:": self.changes,
            "to delete, but absent:": self.deletes,
            "depended on, but absent:": self.depends,
        }


class StoreClosed(TaskStoreError):
    """This task store is not open. Open it, or use it in a with statement."""


class Interrupted(TaskStoreError):
    """This task store was interrupted in the middle of a change, and answers no more. Open it anew: its journal is whole."""


class StoreBusy(TaskStoreError, TimeoutError):
    """The store did not come to this request in time. Nothing was changed; try again."""


class OutcomeUnknown(TaskStoreError):
    """The journal did not say in time whether it has the change. It is in whole or not at all: look before you repeat it."""


class Fenced(TaskStoreError):
    """Another process has opened this journal and taken over. This store answers no more; ask the new one."""


class JournalError(TaskStoreError):
    """The journal could not do what was asked."""


class JournalFailed(JournalError):
    """The journal did not take the change. Nothing was changed; mend what its cause says, and try again."""


class JournalFull(JournalFailed):
    """There is no room for the journal. Nothing was changed; make room and try again."""


class JournalLocked(JournalError):
    """Another process has this journal open. One at a time may; stop it, or name another journal."""

    def __init__(self, where: str, holder: str = "") -> None:
        self.where, self.holder = where, holder
        by = f" ({holder})" if holder else ""
        super().__init__(f"{where}: another process has this journal open{by}. One at a time may.")


class JournalDamaged(JournalError):
    """The journal has lost what it had acknowledged, so it was not opened, and nothing was written to it. Look at the findings,
    bring a copy back, or repair it and lose what they name.
    """

    def __init__(self, where: str, findings: Sequence[str]) -> None:
        self.where, self.findings = where, tuple(findings)
        super().__init__(f"{where} is damaged: {'; '.join(self.findings)}. {default_message(JournalDamaged)}")


class BadJournal(JournalError, ValueError):
    """The journal is named in a way that means none: it is `memory`, `disk:DIR` or `cassandra://HOST/KEYSPACE`."""


class ClaimLost(TaskStoreError):
    """The claim has ended against the worker's will, and the task may be somebody else's by now. Drop what was done for it."""


class Quarantine(TaskStoreError):
    """This task can never be done. A handler that raises it, with the reason, has its task moved to quarantine at once."""


class BadWorker(TaskStoreError, ValueError):
    """A worker is set up in a way that cannot work. Correct what its text names."""


def _listed(ids: Sequence[int]) -> str:
    return ", ".join(map(str, ids))
