"""`slotkeeper tasks`: a task store as a service, and the commands that ask it."""

from __future__ import annotations

import click

from .commands import LateGroup, example
from .options import OUTPUT, shared

COMMANDS = {
    "add": "Add a task.",
    "claim": "Own one available task for a while.",
    "renew": "Own a task for longer.",
    "done": "Delete a task: its work is done.",
    "release": "Give a task back.",
    "list": "List the tasks of a group.",
    "show": "Show tasks by id.",
    "groups": "List the groups that have tasks.",
    "stats": "Count the tasks of each group.",
    "tail": "Print the tasks of a group as they appear.",
    "serve": "Serve a task store over HTTP until it is stopped.",
    "verify": "Tell whether a journal on disk is whole.",
    "repair": "Make a damaged journal on disk one that opens.",
}
CALLS = ("add", "claim", "renew", "done", "release", "list", "show", "groups", "stats", "tail")
MODULES = {**dict.fromkeys(CALLS, "taskcalls"), "serve": "taskserve", "verify": "taskdisk", "repair": "taskdisk"}


@click.group(
    cls=LateGroup,
    late=COMMANDS,
    modules=MODULES,
    epilog=example(
        "slotkeeper tasks serve --journal disk:tasks",
        "slotkeeper tasks add mail 'to: you'",
        "slotkeeper tasks claim mail --for 60 --owner me",
    ),
)
@shared(OUTPUT)
def tasks() -> None:
    """Add tasks and claim them; serve a task store, and look after its journal."""
