"""`slotkeeper tasks add`, `claim`, `renew`, `done`, `release`, and what there is to see: a task service asked from a shell."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .commands import Command, example
from .exits import NothingToClaim, unsettled
from .options import SECONDS, Choices
from .output import emit, print_pairs, print_table, printable, tell
from .taskservice import (
    Service,
    at_service,
    available,
    document,
    in_brief,
    owner_option,
    owner_or_new,
    pairs,
    print_tasks,
)

if TYPE_CHECKING:
    from ..taskstore import Task
    from ..taskstore.remote import TaskClient

NOT_NEGATIVE = click.FloatRange(min=0)
FOR = click.option("--for", "for_s", type=SECONDS, required=True, metavar="SECONDS", help="For how long to own it.")


@click.command(
    cls=Command,
    epilog=example(
        "slotkeeper tasks add mail 'to: you'",
        "slotkeeper tasks add mail --file letter.bin --key order-7 --after 60",
        "date | slotkeeper tasks add mail -",
    ),
)
@click.argument("group")
@click.argument("data", required=False)
@click.option("--file", metavar="PATH", help="Take the data from a file; from stdin if it is -.")
@click.option("--key", metavar="TEXT", help="Add it once: with the same key again, the first one is told.")
@click.option(
    "--after", "after_s", type=NOT_NEGATIVE, default=0.0, metavar="SECONDS", help="Let it be claimed that much later."
)
@owner_option(required=False)
@at_service
@click.pass_obj
def add(
    choices: Choices,
    service: Service,
    group: str,
    data: str | None,
    file: str | None,
    key: str | None,
    after_s: float,
    owner: str | None,
) -> None:
    """Add a task. Its data is DATA, a file, or what comes on stdin (-)."""
    from ..taskstore import Add

    sent = _data(data, file)
    with service.opened() as client, unsettled(_look(f"list {group} --owned")):
        (task,) = client.update(owner_or_new(owner), adds=[Add(group, sent, after_s=after_s, key=key)])
    emit(choices, document(task), lambda: click.echo(task.id))


@click.command(
    cls=Command,
    epilog=example(
        "slotkeeper tasks claim mail --for 60 --owner me",
        "slotkeeper tasks claim mail parcels --for 60 --wait 600 --json",
    ),
)
@click.argument("groups", nargs=-1, required=True, metavar="GROUP...")
@FOR
@click.option(
    "--wait",
    "wait_s",
    type=NOT_NEGATIVE,
    default=0.0,
    metavar="SECONDS",
    help="Stand in line so long for one to turn up.",
)
@owner_option(required=False)
@at_service
@click.pass_obj
def claim(
    choices: Choices, service: Service, groups: tuple[str, ...], for_s: float, wait_s: float, owner: str | None
) -> None:
    """Own one available task of some groups for a while. Exit code 3: there is none.

    Until its time is over nobody else gets it: only its owner may renew it, end it or give it back, under the id that is
    printed here. After that somebody else may claim it, and this id is gone.
    """
    who = owner_or_new(owner)
    with service.opened() as client, unsettled(_look(f"list {groups[0]} --owned")):
        task = client.claim(who, groups, for_s, wait_s=wait_s)
    if task is None:
        raise NothingToClaim(f"there is nothing to claim in {', '.join(groups)}")
    emit(choices, document(task), lambda: print_pairs(pairs(task)))


@click.command(cls=Command, epilog=example("slotkeeper tasks renew 41 --for 60 --owner me"))
@click.argument("task_id", type=int, metavar="ID")
@FOR
@owner_option(required=True)
@at_service
@click.pass_obj
def renew(choices: Choices, service: Service, task_id: int, for_s: float, owner: str) -> None:
    """Own a task for longer, from now on; it has a new id then. Exit code 4: it is gone, or somebody else's."""
    with service.opened() as client, unsettled(_look(f"show {task_id}")):
        task = client.renew(owner, task_id, for_s)
    emit(choices, document(task), lambda: print_pairs(pairs(task)))


@click.command(cls=Command, epilog=example("slotkeeper tasks done 41 --owner me"))
@click.argument("task_id", type=int, metavar="ID")
@owner_option(required=True)
@at_service
@click.pass_obj
def done(choices: Choices, service: Service, task_id: int, owner: str) -> None:
    """Delete a task: its work is done. Exit code 4: it is gone, or somebody else's, so drop what was done for it."""
    with service.opened() as client, unsettled(_look(f"show {task_id}")):
        client.update(owner, deletes=[task_id])
    emit(choices, {"id": task_id, "done": True}, lambda: click.echo(f"task {task_id} is done"))


@click.command(
    cls=Command,
    epilog=example(
        "slotkeeper tasks release 41 --owner me",
        "slotkeeper tasks release 41 --owner me --after 60 --error 'no answer'",
    ),
)
@click.argument("task_id", type=int, metavar="ID")
@click.option(
    "--after", "after_s", type=NOT_NEGATIVE, default=0.0, metavar="SECONDS", help="Let it be claimed that much later."
)
@click.option("--error", metavar="TEXT", help="What went wrong: then this attempt counts, towards quarantine.")
@owner_option(required=True)
@at_service
@click.pass_obj
def release(choices: Choices, service: Service, task_id: int, after_s: float, error: str | None, owner: str) -> None:
    """Give a task back for others to claim; it has a new id then. Exit code 4: it is gone, or somebody else's."""
    with service.opened() as client, unsettled(_look(f"show {task_id}")):
        task = client.release(owner, task_id, after_s=after_s, error=error)
    emit(choices, document(task), lambda: print_pairs(pairs(task)))


@click.command(
    "list", cls=Command, epilog=example("slotkeeper tasks list mail --limit 20", "slotkeeper tasks list mail --owned")
)
@click.argument("group")
@click.option("--limit", type=click.IntRange(min=1), metavar="NUMBER", help="Show no more than so many.")
@click.option("--owned", is_flag=True, help="Also those that are claimed, or for later.")
@at_service
@click.pass_obj
def list_(choices: Choices, service: Service, group: str, limit: int | None, owned: bool) -> None:
    """List the tasks of a group that can be claimed, the oldest first."""
    with service.opened() as client:
        found = client.group(group, limit, owned=owned)
    emit(choices, {"group": group, "tasks": [document(task) for task in found]}, lambda: print_tasks(found))


@click.command(cls=Command, epilog=example("slotkeeper tasks show 41", "slotkeeper tasks show 41 42 --json"))
@click.argument("ids", nargs=-1, required=True, type=int, metavar="ID...")
@at_service
@click.pass_obj
def show(choices: Choices, service: Service, ids: tuple[int, ...]) -> None:
    """Show tasks by id. One that is gone was changed, claimed or done: no id ever comes back."""
    with service.opened() as client:
        found = client.tasks(ids)
    shown = [document(task) if task is not None else None for task in found]
    emit(choices, {"tasks": shown}, lambda: print_tasks([task for task in found if task is not None]))
    if gone := [str(task_id) for task_id, task in zip(ids, found, strict=True) if task is None]:
        tell(choices, f"gone, or never there: {', '.join(gone)}")


@click.command(cls=Command, epilog=example("slotkeeper tasks groups"))
@at_service
@click.pass_obj
def groups(choices: Choices, service: Service) -> None:
    """List the names of the groups that have tasks."""
    with service.opened() as client:
        found = client.groups()
    emit(choices, {"groups": found}, lambda: click.echo("".join(f"{printable(name)}\n" for name in found), nl=False))


@click.command(cls=Command, epilog=example("slotkeeper tasks stats", "slotkeeper tasks stats --json"))
@at_service
@click.pass_obj
def stats(choices: Choices, service: Service) -> None:
    """Count the tasks of each group: how many can be claimed, are claimed, or are for later."""
    import msgspec

    with service.opened() as client:
        found = client.stats()
    rows = [
        (name, each.size, each.available, each.claimed, each.future, f"{each.oldest_s:.0f} s")
        for name, each in found.groups.items()
    ]
    columns = ("group", "#tasks", "#available", "#claimed", "#for later", "#oldest waits")
    emit(choices, msgspec.to_builtins(found), lambda: print_table(columns, rows))
    tell(choices, f"{found.size} tasks; {found.waiting} claims stand in line; the last id is {found.last_id}")
    if found.failure:
        tell(choices, found.failure)


@click.command(cls=Command, epilog=example("slotkeeper tasks tail mail", "slotkeeper tasks tail mail --last 0 --json"))
@click.argument("group")
@click.option(
    "--last", type=click.IntRange(min=0), default=10, metavar="NUMBER", help="Begin with so many. Without it: 10."
)
@click.option(
    "--every", "every_s", type=SECONDS, default=1.0, metavar="SECONDS", help="How often to look. Without it: 1."
)
@at_service
@click.pass_obj
def tail(choices: Choices, service: Service, group: str, last: int, every_s: float) -> None:
    """Print the tasks of a group as they appear, until Ctrl-C.

    A change, a claim or a release makes a new task, so it shows too; what comes and goes between two looks does not. With
    --json each task is one line.
    """
    with service.opened() as client:
        for task in _appearing(client, group, last, every_s):
            click.echo(_line(choices, task))
            sys.stdout.flush()


def _appearing(client: TaskClient, group: str, last: int, every_s: float) -> Iterator[Task]:
    """Yield the latest tasks of a group, and then each new one: ids only grow, so what is new is above what was seen."""
    there = sorted(client.group(group, owned=True), key=lambda task: task.id)
    seen = there[-1].id if there else client.stats().last_id
    yield from there[len(there) - min(last, len(there)) :]
    while True:
        time.sleep(every_s)
        new = sorted((task for task in client.group(group, owned=True) if task.id > seen), key=lambda task: task.id)
        yield from new
        seen = new[-1].id if new else seen


def _line(choices: Choices, task: Task) -> str | bytes:
    if choices.json:
        import msgspec

        return msgspec.json.encode(document(task))
    return printable(f"{task.id} {available(task)} {task.owner or '-'} {in_brief(task.data)}")


def _data(data: str | None, file: str | None) -> bytes:
    if data is not None and file is not None:
        raise click.UsageError("Give the data once: as DATA, or with --file.")
    if "-" in (data, file):
        return sys.stdin.buffer.read()
    if file is None:
        return (data or "").encode(errors="surrogateescape")  # the bytes that were typed, whatever they are
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise click.UsageError(f"{file} cannot be read: {error.strerror}.") from error


def _look(how: str) -> str:
    return f"it may have happened; look: slotkeeper tasks {how}"
