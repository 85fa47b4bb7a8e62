"""`slotkeeper tasks`: a task store as a service."""

from __future__ import annotations

import click

from .commands import LateGroup, example
from .options import OUTPUT, shared

COMMANDS = {
    "serve": "Serve a task store over HTTP until it is stopped.",
    "verify": "Tell whether a journal on disk is whole.",
    "repair": "Make a damaged journal on disk one that opens.",
}
MODULES = {"serve": "taskserve", "verify": "taskdisk", "repair": "taskdisk"}


@click.group(
    cls=LateGroup, late=COMMANDS, modules=MODULES, epilog=example("slotkeeper tasks serve --journal disk:tasks")
)
@shared(OUTPUT)
def tasks() -> None:
    """Serve a task store, and look after its journal."""
