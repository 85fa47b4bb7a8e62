"""The command itself: what it knows before it imports anything, and how it ends."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Any, NoReturn

import click

from .. import __version__
from .commands import LateGroup, example
from .exits import end
from .options import DATABASE, OUTPUT, SCOPE, Choices, shared

COMMANDS = {
    "schema": "Create the keyspace and its tables, and bring them up to date.",
    "semaphore": "Create semaphores, acquire and release their slots.",
    "tasks": "Serve a task store, and look after its journal.",
    "lock": "Hold cluster locks, and run the service that grants them.",
    "owner": "Spell owner ids, and tell which bucket they lead to.",
    "demo": "Watch workers share a few slots.",
    "doctor": "Check the database, and say what to do about it.",
    "completion": "Print the script that completes commands in your shell.",
}


class Root(LateGroup):
    """`slotkeeper`. However it ends, its exit code says how."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> NoReturn:
        """Run a command line, then leave the process."""
        args = sys.argv[1:] if args is None else list(args)
        choices, told = Choices(), super().main
        choices.given["json"] = "--json" in args  # for what is wrong before click has read it
        name = prog_name or "slotkeeper"
        end(lambda: told(args, name, complete_var, standalone_mode=False, obj=choices, **extra), choices)


@click.group(
    cls=Root,
    late=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=example(
        "slotkeeper semaphore create gpu --size 2",
        "slotkeeper semaphore acquire gpu --workflow order:42 --run run-1 --hold 7",
        "slotkeeper semaphore holders gpu --json",
    ),
)
@shared(OUTPUT, SCOPE, DATABASE, shown=("--json", "--quiet", "--verbose", "--domain", "--database"))
@click.version_option(__version__, prog_name="slotkeeper")
def slotkeeper() -> None:
    """Bounded slots for workflow engines, kept in Apache Cassandra or in a file.

    The options of a command may stand before it or after it; its own --help shows them all.

    Exit codes: 0 done, 1 unexpected, 2 usage, 3 not acquired, 4 lost, 5 schema, 6 unavailable, 7 outcome unknown,
    130 interrupted.
    """


def run() -> NoReturn:
    """Run the command line of this process."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a name that the locale cannot spell is no reason to fail
    slotkeeper.main()
