"""`slotkeeper owner`: the spelling of owners, and their buckets. Asks no database."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .commands import Group, example
from .options import OUTPUT, Choices, shared
from .output import emit, print_pairs
from .owners import Document, document, hold_id

if TYPE_CHECKING:
    from ..owner import Owner

ENCODED = "8:order:42:run-1:7"


@click.group(cls=Group, epilog=example(f"slotkeeper owner decode {ENCODED}"))
@shared(OUTPUT, shown=())
def owner() -> None:
    """Spell owner ids, and tell which bucket they lead to."""


@owner.command(epilog=example("slotkeeper owner encode --workflow order:42 --run run-1 --hold 7"))
@click.option("--workflow", required=True, metavar="ID", help="Workflow id: any text.")
@click.option("--run", required=True, metavar="ID", help="Run id: any text.")
@click.option("--hold", required=True, type=hold_id, metavar="NUMBER", help="Hold id: a signed 64-bit number.")
@shared(OUTPUT)
@click.pass_obj
def encode(choices: Choices, workflow: str, run: str, hold: int) -> None:
    """Spell the owner id of a workflow, a run and a hold."""
    from ..owner import Owner

    who = Owner(workflow, run, hold)
    emit(choices, _document(who), lambda: click.echo(str(who)))


@owner.command(epilog=example(f"slotkeeper owner decode {ENCODED}"))
@click.argument("owner_id")
@shared(OUTPUT)
@click.pass_obj
def decode(choices: Choices, owner_id: str) -> None:
    """Read an owner id: workflow, run and hold."""
    from ..owner import Owner

    found = _document(Owner.parse(owner_id))
    emit(choices, found, lambda: print_pairs({name: value for name, value in found.items() if name != "owner"}))


@owner.command(
    epilog=example(f"slotkeeper owner bucket {ENCODED} --size 1000", f"slotkeeper owner bucket {ENCODED} --buckets 4")
)
@click.argument("owner_id")
@click.option("--buckets", type=int, metavar="NUMBER", help="How many buckets there are.")
@click.option("--size", type=int, metavar="NUMBER", help="Or: how many slots the semaphore has,")
@click.option("--bucket-size", type=int, metavar="NUMBER", help="and how many of them a bucket, unless evenly split.")
@shared(OUTPUT)
@click.pass_obj
def bucket(choices: Choices, owner_id: str, buckets: int | None, size: int | None, bucket_size: int | None) -> None:
    """Tell which bucket of a semaphore an owner id leads to."""
    from ..owner import Owner, bucket_of

    if (buckets is None) == (size is None) or (bucket_size is not None and size is None):
        raise click.UsageError("Give either --buckets, or --size (with --bucket-size if it was created with one).")
    count = _buckets(size, bucket_size) if size is not None else buckets or 0
    number = bucket_of(str(Owner.parse(owner_id)), count)
    emit(choices, {"owner": owner_id, "bucket": number, "buckets": count}, lambda: click.echo(number))


def _buckets(size: int, bucket_size: int | None) -> int:
    from ..semaphore.layout import balanced, bucket_count

    return bucket_count(size, balanced(size) if bucket_size is None else bucket_size)


def _document(who: Owner) -> Document:
    return {"owner": str(who), **document(str(who)), "reserved": who.reserved}
