"""`slotkeeper semaphore`: semaphores, and their slots."""

from __future__ import annotations

import sys
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from .commands import Group, example
from .exits import Exit, NotHeld, unsettled
from .opening import opened_client
from .options import DATABASE, OUTPUT, SCOPE, Choices, shared
from .output import counted, emit, local_time, print_pairs, print_table, printable, tell
from .owners import document, named_owner

if TYPE_CHECKING:
    from ..owner import Owner
    from ..semaphore import Client, Description, Holder, Waiting

EVERYTHING = (OUTPUT, SCOPE, DATABASE)
WHO = "--workflow order:42 --run run-1 --hold 7"


@click.group(cls=Group, epilog=example("slotkeeper semaphore list"))
@shared(*EVERYTHING, shown=())
def semaphore() -> None:
    """Create semaphores, acquire and release their slots."""


@semaphore.command(epilog=example("slotkeeper semaphore create gpu --size 2"))
@click.argument("name")
@click.option("--size", type=int, required=True, metavar="NUMBER", help="How many slots it has.")
@click.option(
    "--bucket-size", type=int, metavar="NUMBER", help="How many of them a bucket, 1 to 250. Without it: evenly split."
)
@shared(*EVERYTHING)
@click.pass_obj
def create(choices: Choices, name: str, size: int, bucket_size: int | None) -> None:
    """Create a semaphore. An equal one that is there already is fine."""
    with opened_client(choices) as client, unsettled("create it again, which changes nothing where it is there"):
        made = client.create(name, size, bucket_size)
    emit(choices, _described(made), lambda: click.echo(_sentence(made)))


@semaphore.command(name="list", epilog=example("slotkeeper semaphore list --limit 20 --after gpu"))
@click.option("--limit", type=click.IntRange(min=1), metavar="NUMBER", help="Show no more than so many.")
@click.option("--after", metavar="NAME", help="Start behind this name.")
@shared(*EVERYTHING)
@click.pass_obj
def list_(choices: Choices, limit: int | None, after: str | None) -> None:
    """List the semaphores of a domain, by name."""
    with opened_client(choices) as client:
        found = client.semaphores(after)
        shown = list(islice(found, limit))
        more = limit is not None and next(found, None) is not None
    following = shown[-1].name if more else None
    listed = {"semaphores": [_described(each) for each in shown], "next_after": following}
    emit(choices, listed, lambda: _print_list(shown))
    if following is not None:
        tell(choices, f"there are more: --after {following}")


@semaphore.command(epilog=example("slotkeeper semaphore describe gpu --json"))
@click.argument("name")
@shared(*EVERYTHING)
@click.pass_obj
def describe(choices: Choices, name: str) -> None:
    """Show the size of a semaphore, and how its slots are spread."""
    with opened_client(choices) as client:
        found = client.describe(name)
    emit(choices, _described(found), lambda: print_pairs(_pairs(found)))


@semaphore.command(epilog=example("slotkeeper semaphore delete gpu --yes"))
@click.argument("name")
@click.option("--force", is_flag=True, help="Delete it even while it has holders.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@shared(*EVERYTHING)
@click.pass_context
def delete(ctx: click.Context, name: str, force: bool, yes: bool) -> None:
    """Delete a semaphore."""
    choices = ctx.ensure_object(Choices)
    if not (yes or _confirmed(name)):
        tell(choices, "nothing was deleted")
        ctx.exit(Exit.UNEXPECTED)
    with opened_client(choices) as client, unsettled("it may be half deleted; delete it again, and that goes on"):
        client.delete(name, force=force)
    emit(choices, {"semaphore": name, "deleted": True}, lambda: click.echo(f"deleted {printable(name)}"))


@semaphore.command(
    epilog=example(
        f"slotkeeper semaphore acquire gpu {WHO}",
        "slotkeeper semaphore acquire gpu --owner 8:order:42:run-1:7 --wait 60 --lease 30",
    )
)
@click.argument("name")
@named_owner
@click.option(
    "--wait", "wait_s", type=click.FloatRange(min=0), default=0.0, metavar="SECONDS", help="Stand in line so long."
)
@click.option("--lease", "lease_s", type=int, metavar="SECONDS", help="The slot comes back by itself after so long.")
@shared(*EVERYTHING)
@click.pass_obj
def acquire(choices: Choices, name: str, owner: Owner, wait_s: float, lease_s: int | None) -> None:
    """Take a slot for an owner. Exit code 3: none is free.

    An owner that holds one already gets the same one again. The fence only grows for a slot: what the holder writes
    elsewhere can carry it, and be refused where a greater one was seen. This command does not stay to renew a lease:
    `renew` does.
    """
    from ..semaphore import NotAcquired

    with opened_client(choices) as client, unsettled(_look(name)):
        try:
            hold = client.acquire(name, owner, wait_s=wait_s, lease_s=lease_s)
        except NotAcquired as error:
            raise NotAcquired(name, str(owner), waited_s=wait_s, detail=_full(client, name, owner)) from error
        hold.detach()
    answer = {"semaphore": name, "owner": str(owner), "token": hold.token, "fence": hold.fence, "again": hold.again}
    lease = {} if lease_s is None else {"lease": f"{lease_s} s"}
    emit(
        choices,
        {**answer, "lease_s": lease_s},
        lambda: print_pairs({"token": hold.token, "fence": hold.fence, **lease}),
    )
    if hold.again:
        tell(choices, "the owner held it already")


@semaphore.command(epilog=example(f"slotkeeper semaphore renew gpu {WHO} --lease 30"))
@click.argument("name")
@named_owner
@click.option("--lease", "lease_s", type=int, metavar="SECONDS", help="So long from now. Without it: until released.")
@click.option("--fence", type=int, metavar="NUMBER", help="Renew only the hold that has this fence.")
@shared(*EVERYTHING)
@click.pass_obj
def renew(choices: Choices, name: str, owner: Owner, lease_s: int | None, fence: int | None) -> None:
    """Count an owner's lease anew. Exit code 4: it holds nothing, or not the hold that was meant."""
    with opened_client(choices) as client, unsettled(_look(name)):
        fence = client.renew(name, owner, lease_s=lease_s, fence=fence)
    answer = {"semaphore": name, "owner": str(owner), "fence": fence, "lease_s": lease_s}
    length = "until it is released" if lease_s is None else f"for {lease_s} s"
    emit(choices, answer, lambda: click.echo(f"renewed {printable(name)} {length}"))


@semaphore.command(epilog=example(f"slotkeeper semaphore release gpu {WHO}"))
@click.argument("name")
@named_owner
@click.option("--fence", type=int, metavar="NUMBER", help="Give back only the hold that has this fence.")
@shared(*EVERYTHING)
@click.pass_obj
def release(choices: Choices, name: str, owner: Owner, fence: int | None) -> None:
    """Give an owner's slot back. Exit code 4: it held none, or not the hold that was meant."""
    with opened_client(choices) as client, unsettled(_look(name)):
        if not client.release(name, owner, fence=fence):
            raise NotHeld(f"Semaphore {name!r}, owner {str(owner)!r}: it holds nothing. Nothing was changed.")
    answer = {"semaphore": name, "owner": str(owner), "released": True}
    emit(choices, answer, lambda: click.echo(f"released {printable(name)}"))


@semaphore.command(epilog=example(f"slotkeeper semaphore cancel gpu {WHO}"))
@click.argument("name")
@named_owner
@shared(*EVERYTHING)
@click.pass_obj
def cancel(choices: Choices, name: str, owner: Owner) -> None:
    """Take an owner out of the line, whichever process waits for it. Exit code 4: it does not wait."""
    with opened_client(choices) as client, unsettled(f"`slotkeeper semaphore waiters {name}` shows who waits"):
        if not client.cancel(name, owner):
            raise NotHeld(f"Semaphore {name!r}, owner {str(owner)!r}: it does not stand in line. Nothing was changed.")
    answer = {"semaphore": name, "owner": str(owner), "cancelled": True}
    emit(choices, answer, lambda: click.echo(f"cancelled the wait for {printable(name)}"))


@semaphore.command(epilog=example("slotkeeper semaphore holders gpu", "slotkeeper semaphore holders gpu --json"))
@click.argument("name")
@shared(*EVERYTHING)
@click.pass_obj
def holders(choices: Choices, name: str) -> None:
    """Show who holds which slot, since when, and with which fence."""
    with opened_client(choices) as client:
        size, held = client.describe(name).size, client.holders(name)
    listed = {"semaphore": name, "size": size, "held": len(held), "holders": [_holder(each) for each in held]}
    emit(choices, listed, lambda: _print_holders(size, held))


@semaphore.command(epilog=example("slotkeeper semaphore waiters gpu", "slotkeeper semaphore waiters gpu --json"))
@click.argument("name")
@shared(*EVERYTHING)
@click.pass_obj
def waiters(choices: Choices, name: str) -> None:
    """Show who stands in line, in what order, and since when. Each bucket has a line of its own."""
    with opened_client(choices) as client:
        line = client.waiters(name)
    listed = {"semaphore": name, "waiting": len(line), "waiters": [_waiter(each) for each in line]}
    emit(choices, listed, lambda: _print_waiters(line))


def _described(found: Description) -> dict[str, Any]:
    return {
        "name": found.name,
        "domain_id": found.domain_id,
        "size": found.size,
        "bucket_size": found.bucket_size,
        "buckets": found.buckets,
        "created_ms": found.created_ms,
    }


def _sentence(found: Description) -> str:
    spread = f"{counted(found.size, 'slot')} in {counted(found.buckets, 'bucket')} of {found.bucket_size}"
    return f"{printable(found.name)}: {spread}"


def _pairs(found: Description) -> dict[str, object]:
    named = {name.replace("_", " "): value for name, value in _described(found).items() if name != "created_ms"}
    return {**named, "created": local_time(found.created_ms)}


def _print_list(found: list[Description]) -> None:
    rows = ((each.name, each.size, each.buckets, each.bucket_size, local_time(each.created_ms)) for each in found)
    print_table(("name", "#size", "#buckets", "#bucket size", "created"), rows)


def _holder(each: Holder) -> dict[str, Any]:
    about = {"fence": each.fence, "since_ms": each.since_ms, "bucket": each.bucket, "lease_left_s": each.lease_left_s}
    return {"token": each.token, "owner": each.owner_id, **document(each.owner_id), **about}


def _print_holders(size: int, held: list[Holder]) -> None:
    click.echo(f"{len(held)} of {size} held")
    if held:
        columns = ("#token", "workflow", "run", "#hold", "#fence", "since", "lease left")
        print_table(columns, (_row(each) for each in held))


def _row(each: Holder) -> tuple[object, ...]:
    left = "-" if each.lease_left_s is None else f"{each.lease_left_s} s"
    return (each.token, *_who(each.owner_id), each.fence, local_time(each.since_ms), left)


def _waiter(each: Waiting) -> dict[str, Any]:
    about = {"ticket": each.ticket, "position": each.position, "since_ms": each.since_ms, "bucket": each.bucket}
    return {"owner": each.owner_id, **document(each.owner_id), **about, "client": each.client_id}


def _print_waiters(line: list[Waiting]) -> None:
    click.echo(f"{len(line)} waiting")
    if line:
        columns = ("#bucket", "#position", "workflow", "run", "#hold", "#ticket", "since", "client")
        rows = ((w.bucket, w.position, *_who(w.owner_id), w.ticket, local_time(w.since_ms), w.client_id) for w in line)
        print_table(columns, rows)


def _who(owner_id: str) -> tuple[object, ...]:
    who = document(owner_id)
    return (owner_id, "", "") if who["hold_id"] is None else tuple(who.values())


def _confirmed(name: str) -> bool:
    if not sys.stdin.isatty():
        raise click.UsageError("Nobody can be asked here: say --yes to delete.")
    return click.confirm(f"Delete semaphore {printable(name)}?", err=True)


def _full(client: Client, name: str, owner: Owner) -> str:
    """Say what is in the way. It is read after the refusal, so a slot may be free again by now."""
    found, held = client.describe(name), client.holders(name)
    everywhere = f"{len(held)} of {found.size} held"
    if found.buckets == 1:
        return everywhere
    home = found.bucket_of_owner(str(owner))
    there = sum(each.bucket == home.number for each in held)
    return f"{there} of {len(home.tokens)} held in the owner's bucket {home.number}, in all {everywhere}"


def _look(name: str) -> str:
    return f"`slotkeeper semaphore holders {name}` shows what became of it"
