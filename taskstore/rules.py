"""What each operation comes to: pure functions from a state to a record and an answer, or to every reason why not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from .errors import UpdateError
from .group import Dice
from .operations import Claim, Release, Renew, Update
from .record import Keyed, Record
from .state import State
from .task import Add, Change, Task

SECOND_NS = 1_000_000_000
LATEST_NS = 2**63 - 1
MOST_ERROR = 4_096  # characters of a task's error that are kept


@dataclass(frozen=True, slots=True)
class Terms:
    """What a store does with a task that was claimed `most_attempts` times in vain: it goes to the group's quarantine."""

    most_attempts: int | None = None
    quarantine: str = "/quarantine"

    def wants(self, task: Task) -> bool:
        """Tell whether a task belongs in quarantine, and is not there."""
        most = self.most_attempts
        return most is not None and task.attempt >= most and not task.group.endswith(self.quarantine)


def update(state: State, op: Update, now_ns: int) -> tuple[Record | None, list[Task]]:
    """Return the record of an update and its new tasks: adds, then changes. Raises UpdateError with all that is broken."""
    if len(op.deletes) == 1 and not op.adds and not op.changes and not op.depends and _is_text(op.owner):
        gone = state.tasks.get(op.deletes[0])
        if gone is not None and (gone.available_at_ns <= now_ns or gone.owner == op.owner):
            return Record(now_ns, state.last_id, op.deletes), []  # the commonest one: nothing else can be wrong with it
    if (
        op.changes
        or op.deletes
        or op.depends
        or not op.adds
        or not _is_text(op.owner)
        or not all(map(_is_plain, op.adds))
    ):
        _check(state, op, now_ns)
    return _updated(state, op, now_ns)


def _is_plain(add: Add) -> bool:
    """Tell at a glance that nothing can be wrong with an add. Most are so."""
    group = add.group
    if type(group) is not str or not group or not group.isascii() or type(add.data) is not bytes:
        return False
    at_ns, after_s = add.available_at_ns, add.after_s
    return add.key is None and type(at_ns) is int and at_ns == 0 and type(after_s) is float and after_s == 0.0


def _check(state: State, op: Update, now_ns: int) -> None:
    tasks, owned = state.tasks, list[int]()
    changed = [change.id for change in op.changes]
    for task_id in (*changed, *op.deletes):
        task = tasks.get(task_id)
        if task is not None and task.available_at_ns > now_ns and task.owner != op.owner:
            owned.append(task_id)
    bugs, absent = _bugs(state, op, now_ns), [[i for i in ids if i not in tasks] for ids in (changed, op.deletes)]
    depends = [i for i in op.depends if i not in tasks]
    if bugs or owned or depends or absent[0] or absent[1]:
        raise UpdateError(changes=absent[0], deletes=absent[1], depends=depends, owned=owned, bugs=bugs)


def _updated(state: State, op: Update, now_ns: int) -> tuple[Record | None, list[Task]]:
    last_id, answer, came, keyed = state.last_id, list[Task](), list[Task](), list[Keyed]()
    for add in op.adds:
        known = state.keys.get(add.key) if add.key is not None else None
        if known is not None:
            answer.append(known.task)
            continue
        last_id += 1
        task = Task(last_id, add.group, op.owner, _available(add, now_ns), add.data)
        came.append(task)
        answer.append(task)
        if add.key is not None:
            keyed.append(Keyed(add.key, now_ns, task))
    for change in op.changes:
        last_id += 1
        task = _changed(state.tasks[change.id], change, last_id, op.owner, now_ns)
        came.append(task)
        answer.append(task)
    gone = (*(change.id for change in op.changes), *op.deletes)
    if not came and not gone:
        return None, answer  # all of it was added before
    return Record(now_ns, last_id, gone, tuple(came), tuple(keyed)), answer


def claim(state: State, op: Claim, now_ns: int, terms: Terms, dice: Dice) -> tuple[Record | None, Task | None]:
    """Return the record of a claim and the task, two Nones where nothing is available, or a record that only sets aside
    a task that has failed too often: then ask again. Raises UpdateError.
    """
    if op.depends or not op.groups or not _is_text(op.owner):
        _check_claim(state, op)
    task = _picked(state, op.groups, now_ns, dice)
    if task is None:
        return None, None
    new_id = state.last_id + 1
    if terms.wants(task):
        return Record(now_ns, new_id, (task.id,), (_aside(task, new_id, now_ns, terms),)), None
    until = _later(now_ns, op.for_ns)
    claimed = Task(
        new_id, task.group, op.owner, until, task.data, task.claims + 1, task.attempt + 1, task.error
    )  # fmt: skip
    return Record(now_ns, new_id, (task.id,), (claimed,)), claimed


def _check_claim(state: State, op: Claim) -> None:
    absent = [task_id for task_id in op.depends if task_id not in state.tasks]
    bugs = _owner_bugs(op.owner) + ([] if op.groups else ["a claim names no group"])
    if absent or bugs:
        raise UpdateError(depends=absent, bugs=bugs)


def _picked(state: State, groups: Sequence[str], now_ns: int, dice: Dice) -> Task | None:
    """Pick from the groups that have something, each as likely as the other, however much it has."""
    if len(groups) == 1:
        group = state.groups.get(groups[0])
        return group.pick(now_ns, dice) if group is not None else None
    known = [state.groups[name] for name in dict.fromkeys(groups) if name in state.groups]
    ready = [group for group in known if (first := group.first_at_ns()) is not None and first <= now_ns]
    return ready[int(dice() * len(ready))].pick(now_ns, dice) if ready else None


def renew(state: State, op: Renew, now_ns: int) -> tuple[Record, Task]:
    """Return the record of a renewal and the task under its new id. Raises UpdateError."""
    task, new_id = _own(state, op.owner, op.task_id), state.last_id + 1
    until = _later(now_ns, op.for_ns)
    renewed = Task(new_id, task.group, op.owner, until, task.data, task.claims, task.attempt, task.error)
    return Record(now_ns, new_id, (task.id,), (renewed,)), renewed


def release(state: State, op: Release, now_ns: int, terms: Terms) -> tuple[Record, Task]:
    """Return the record of a release and the task under its new id. Raises UpdateError."""
    task, new_id = _own(state, op.owner, op.task_id), state.last_id + 1
    failed = op.error is not None
    attempt = task.attempt if failed else max(0, task.attempt - 1)
    at = _later(now_ns, op.after_ns)
    # Nobody owns what waits for its next attempt: the one that gave it back has no more say in it than others.
    error = _kept_error(op.error) if op.error is not None else task.error
    given_back = Task(
        new_id, task.group, "" if op.after_ns > 0 else op.owner, at, task.data, task.claims, attempt, error
    )
    if failed and terms.wants(given_back):
        given_back = _aside(given_back, new_id, now_ns, terms)
    return Record(now_ns, new_id, (task.id,), (given_back,)), given_back


def _own(state: State, owner: str, task_id: int) -> Task:
    task = state.tasks.get(task_id)
    if task is None:
        raise UpdateError(changes=[task_id])
    if task.owner != owner:
        raise UpdateError(owned=[task_id])
    return task


def _aside(task: Task, new_id: int, now_ns: int, terms: Terms) -> Task:
    """Return a task as it goes to quarantine: there for anybody to look at."""
    error = task.error or f"claimed {task.attempt} times, and never finished or given back"
    return Task(new_id, task.group + terms.quarantine, "", now_ns, task.data, task.claims, task.attempt, error)


def _changed(task: Task, change: Change, new_id: int, owner: str, now_ns: int) -> Task:
    return Task(
        new_id,
        task.group if change.group is None else change.group,
        owner,
        _available(change, now_ns),
        task.data if change.data is None else change.data,
        task.claims,
        task.attempt if change.attempt is None else change.attempt,
        task.error if change.error is None else _kept_error(change.error),
    )


def _later(now_ns: int, by_ns: int) -> int:
    at_ns = now_ns + by_ns if by_ns > 0 else now_ns
    return at_ns if at_ns < LATEST_NS else LATEST_NS


def _available(asked: Add | Change, now_ns: int) -> int:
    if asked.after_s > 0:
        return now_ns + int(asked.after_s * SECOND_NS)
    return asked.available_at_ns if asked.available_at_ns > 0 else now_ns


def _kept_error(error: str) -> str:
    return error[:MOST_ERROR]


# --- what no state allows -------------------------------------------------------------------------------------------------


def bugs_of(op: Update) -> list[str]:
    """Return what is wrong with an update whatever the state is: for who cannot even spell it."""
    return _bugs(State(), op, now_ns=0)


def _bugs(state: State, op: Update, now_ns: int) -> list[str]:
    bugs = _owner_bugs(op.owner)
    if not op.adds and not op.changes and not op.deletes:
        bugs.append("an update that adds, changes and deletes nothing")
    for add in op.adds:
        bugs += _add_bugs(add, now_ns)
    for change in op.changes:
        bugs += _change_bugs(change, now_ns)
    if len(op.changes) + len(op.deletes) > 1:
        named = Counter(change.id for change in op.changes) + Counter(op.deletes)
        bugs += [f"task {task_id} is named {times} times" for task_id, times in named.items() if times > 1]
    if op.adds:
        bugs += _key_bugs(state, op.adds)
    return bugs


def _owner_bugs(owner: object) -> list[str]:
    return [] if _is_text(owner) else [f"an owner is a string, not {owner!r:.40}"]


def _add_bugs(add: Add, now_ns: int) -> list[str]:
    bugs = _time_bugs(add, now_ns)
    if not _is_text(add.group) or not add.group:
        bugs.append(f"a group is a string that is not empty, not {add.group!r:.40}")
    if not isinstance(add.data, bytes):
        bugs.append(f"data is bytes, not {type(add.data).__name__}")
    if add.key is not None and (not _is_text(add.key) or not add.key):
        bugs.append(f"a key is a string that is not empty, not {add.key!r:.40}")
    return bugs


def _change_bugs(change: Change, now_ns: int) -> list[str]:
    bugs = _time_bugs(change, now_ns)
    if change.group is not None and (not _is_text(change.group) or not change.group):
        bugs.append(f"a group is a string that is not empty, not {change.group!r:.40}")
    if change.data is not None and not isinstance(change.data, bytes):
        bugs.append(f"data is bytes, not {type(change.data).__name__}")
    if change.attempt is not None and not _is_number(change.attempt, 2**31 - 1):
        bugs.append(f"an attempt is a number from 0 up, not {change.attempt!r:.40}")
    if change.error is not None and not _is_text(change.error):
        bugs.append(f"an error is a string, not {change.error!r:.40}")
    return bugs


def _time_bugs(asked: Add | Change, now_ns: int) -> list[str]:
    at, after = asked.available_at_ns, asked.after_s
    if not isinstance(at, int) or isinstance(at, bool) or at > LATEST_NS:
        return [f"available_at_ns is nanoseconds since the epoch in 63 bits, not {at!r:.40}"]
    if not isinstance(after, int | float) or not isfinite(after) or now_ns + after * SECOND_NS > LATEST_NS:
        return [f"after_s is a number of seconds, not {after!r:.40}"]
    return ["available_at_ns and after_s are both given"] if at > 0 and after > 0 else []


def _key_bugs(state: State, adds: Sequence[Add]) -> list[str]:
    keyed = [add for add in adds if add.key is not None]
    bugs = ["two adds have one key"] if len(keyed) > len({add.key for add in keyed}) else []
    for add in keyed:
        known = state.keys.get(add.key or "")
        if known is not None and (known.task.group, known.task.data) != (add.group, add.data):
            bugs.append(f"the key {add.key!r:.60} was used for another task, {known.task.id}")
    return bugs


def _is_text(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        return value.isascii() or bool(value.encode())
    except UnicodeEncodeError:  # half of a surrogate pair
        return False


def _is_number(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most
