"""`slotkeeper lock`: cluster locks, and the service that grants them."""

from __future__ import annotations

import click

from .commands import LateGroup, example
from .options import DATABASE, OUTPUT, SCOPE, shared

COMMANDS = {
    "list": "List what is held in the cluster, by name (alias: ls).",
    "acquire": "Take a lock.",
    "renew": "Count a lock's lease anew.",
    "release": "Give a lock back.",
    "run": "Run a command while a lock is held.",
    "status": "Show how a node sees its cluster.",
    "serve": "Run a lock node until it is stopped.",
}
MODULES = dict.fromkeys(COMMANDS, "locks") | {"serve": "lockserve"}
ALIASES = {"ls": "list"}


class Locks(LateGroup):
    """Commands of which one has two names, and cannot be a variable of its own."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        name = ALIASES.get(cmd_name, cmd_name)
        if name == "list":
            from .locks import list_

            return list_
        return super().get_command(ctx, name)


@click.group(
    cls=Locks,
    late=COMMANDS,
    modules=MODULES,
    epilog=example("slotkeeper lock run nightly -- ./backup.sh", "slotkeeper lock list --json"),
)
@shared(OUTPUT, SCOPE, DATABASE, shown=())
def lock() -> None:
    """Hold cluster locks, and run the service that grants them."""
