"""`slotkeeper tasks verify` and `repair`: a journal on disk that nobody has open."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict

import click

from .commands import Command, example
from .exits import Exit
from .options import OUTPUT, Choices, shared
from .output import Document, emit, print_pairs, printable, tell

DIRECTORY = click.argument("directory", type=click.Path(exists=True, file_okay=False))


@click.command(cls=Command, epilog=example("slotkeeper tasks verify /var/lib/tasks"))
@DIRECTORY
@shared(OUTPUT)
@click.pass_context
def verify(ctx: click.Context, directory: str) -> None:
    """Read a journal from end to end, and change nothing.

    Exit code 0 where it is whole, 1 where something that was acknowledged is lost, 3 while a process has it open.
    """
    from ..taskstore.disk import verify as look

    choices, found = ctx.ensure_object(Choices), look(directory)
    if not found.segments:
        tell(choices, f"there is no journal in {directory}: one would begin there")
    emit(choices, {**asdict(found), "whole": found.is_whole}, lambda: _print(asdict(found)))
    ctx.exit(Exit.DONE if found.is_whole else Exit.UNEXPECTED)


@click.command(cls=Command, epilog=example("slotkeeper tasks repair /var/lib/tasks --yes"))
@DIRECTORY
@click.option("--yes", is_flag=True, help="Do not ask.")
@shared(OUTPUT)
@click.pass_context
def repair(ctx: click.Context, directory: str, yes: bool) -> None:
    """Copy a damaged journal's files aside, and leave one that opens, with all that can be read. Says what it drops."""
    from ..taskstore.disk import repair as mend
    from ..taskstore.disk import verify as look

    choices, found = ctx.ensure_object(Choices), look(directory)
    if not (found.is_whole or yes or _confirmed(choices, found.damage)):
        tell(choices, "nothing was changed")
        ctx.exit(Exit.UNEXPECTED)
    done = None if found.is_whole else mend(directory)
    if done is None:
        whole = {"directory": found.directory, "aside": None, "tasks": found.tasks, "damage": (), "dropped": ()}
        emit(choices, {"repaired": False, **whole}, lambda: click.echo("nothing is damaged, and nothing was changed"))
        return
    emit(choices, {"repaired": True, **asdict(done)}, lambda: _print(asdict(done)))


def _confirmed(choices: Choices, damage: Sequence[str]) -> bool:
    if not sys.stdin.isatty():
        raise click.UsageError("Nobody can be asked here: say --yes to repair.")
    for found in damage:
        tell(choices, found)
    return click.confirm("Copy the files aside, and drop what cannot be read?", err=True)


def _print(found: Document) -> None:
    lists = {name: value for name, value in found.items() if isinstance(value, tuple)}
    print_pairs({name: value for name, value in found.items() if name not in lists})
    for name, lines in lists.items():
        for line in lines:
            click.echo(f"{name}: {printable(line)}")
