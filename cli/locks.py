"""`slotkeeper lock list`, `acquire`, `renew`, `release`, `status` and `run`: what clients do with locks."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from .child import CommandNotExecutable, CommandNotFound, caught
from .commands import Command, example
from .exits import NotHeld, unsettled
from .lockservice import SECONDS, Service, asks_service, opened_client, opened_locks
from .options import DATABASE, OUTPUT, SCOPE, Choices, shared
from .output import emit, print_pairs, print_table, printable, tell

if TYPE_CHECKING:
    from ..locktable import Lock, LockHold
    from ..locktable.node.status import Status
    from .lockrun import Ending

SHOWN = ("--json", "--quiet", "--verbose", "--timeout", "--domain", "--database")
LEASE_S, KILL_AFTER_S = 30.0, 5.0
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

HOLDER = click.option("--holder", metavar="TEXT", help="Who holds it, for people. Without it: you, and this host.")
LEASE = click.option(
    "--lease",
    "lease_s",
    type=SECONDS,
    default=LEASE_S,
    metavar="SECONDS",
    help="It comes free by itself after so long: 30, 1m30s. Without it: 30; 10 minutes at most.",
)
WAIT = click.option(
    "--wait", "wait_s", type=SECONDS, default=0.0, metavar="SECONDS", help="Stand in line so long. Without it: not."
)


@click.command(name="list", cls=Command, epilog=example("slotkeeper lock list", "slotkeeper lock ls --json"))
@asks_service
@shared(OUTPUT, SCOPE, DATABASE, shown=SHOWN)
@click.pass_obj
def list_(choices: Choices, service: Service) -> None:
    """List what is held in the cluster, by name."""
    with opened_locks(choices, service) as client:
        found = client.locks()
    now = time.monotonic()
    emit(choices, {"locks": [_document(lock, now) for lock in found]}, lambda: _print_locks(found, now))


@click.command(
    cls=Command,
    epilog=example("slotkeeper lock acquire network/blue", "slotkeeper lock acquire nightly --wait 1m --lease 5m"),
)
@click.argument("name")
@HOLDER
@WAIT
@LEASE
@asks_service
@shared(OUTPUT, SCOPE, DATABASE, shown=SHOWN)
@click.pass_obj
def acquire(choices: Choices, name: str, holder: str | None, wait_s: float, lease_s: float, service: Service) -> None:
    """Take a lock. Exit code 3: somebody else holds it.

    The fence only grows for a name: what the holder writes elsewhere can carry it, and be refused where a greater one was
    seen. This command does not stay to renew the lease: `renew` does, and `run` stays.
    """
    with opened_locks(choices, service) as client, unsettled(_look(name)):
        lock = client.acquire(name, holder=holder or _who(), wait_s=wait_s, lease_s=lease_s)
    now = time.monotonic()
    pairs = {"id": lock.id, "fence": lock.fence, "lease": _left(lock, now)}
    emit(choices, _document(lock, now), lambda: print_pairs(pairs))


@click.command(cls=Command, epilog=example("slotkeeper lock renew network/blue --id 5c9e0d5a --lease 60"))
@click.argument("name")
@click.option("--id", "lock_id", required=True, metavar="ID", help="The lock's id, as acquire has told it.")
@LEASE
@asks_service
@shared(OUTPUT, SCOPE, DATABASE, shown=SHOWN)
@click.pass_obj
def renew(choices: Choices, name: str, lock_id: str, lease_s: float, service: Service) -> None:
    """Count a lock's lease anew. Exit code 4: it is not held under that id any more."""
    with opened_locks(choices, service) as client, unsettled(_look(name)):
        lock = client.renew(_named(client.locks(), name, lock_id), lease_s)
    now = time.monotonic()
    emit(
        choices,
        _document(lock, now),
        lambda: click.echo(f"cluster lock {printable(name)} renewed for {_left(lock, now)}"),
    )


@click.command(cls=Command, epilog=example("slotkeeper lock release network/blue"))
@click.argument("name")
@click.option("--id", "lock_id", metavar="ID", help="Release it only if it is held under this id.")
@asks_service
@shared(OUTPUT, SCOPE, DATABASE, shown=SHOWN)
@click.pass_obj
def release(choices: Choices, name: str, lock_id: str | None, service: Service) -> None:
    """Give a lock back, be it your own or not. Exit code 4: it is not held.

    Its holder is not told: it learns of it when it renews the lock, and until then goes on as if it held it.
    """
    with opened_locks(choices, service) as client, unsettled(_look(name)):
        lock_id = lock_id or _named(client.locks(), name).id
        if not client.release(name, lock_id):
            raise NotHeld(f"cluster lock {name} is not held under {lock_id}: it was released, or its lease ended")
    released = {"name": name, "id": lock_id, "released": True}
    emit(choices, released, lambda: click.echo(f"cluster lock {printable(name)} released"))


@click.command(cls=Command, epilog=example("slotkeeper lock status", "slotkeeper lock status --url http://n2:8049"))
@asks_service
@shared(OUTPUT, SCOPE, DATABASE, shown=SHOWN)
@click.pass_obj
def status(choices: Choices, service: Service) -> None:
    """Show how a node sees its cluster: who speaks for it, and whether locks can be granted."""
    import msgspec

    with opened_client(choices, service) as client:
        found = client.status()
    emit(choices, msgspec.to_builtins(found), lambda: print_pairs(_pairs(found)))


@click.command(
    cls=Command,
    epilog=example(
        "slotkeeper lock run nightly -- ./backup.sh --full",
        "slotkeeper lock run network/blue --wait 1m --lease 20 -- make deploy",
    ),
)
@click.argument("name")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@HOLDER
@WAIT
@LEASE
@click.option(
    "--kill-after",
    "kill_after_s",
    type=SECONDS,
    metavar="SECONDS",
    help="How long the command has to end when the lock is lost. Without it: 5, or a quarter of a shorter lease.",
)
@asks_service
@shared(OUTPUT, SCOPE, DATABASE, shown=SHOWN)
@click.pass_context
def run(
    ctx: click.Context,
    name: str,
    command: Sequence[str],
    holder: str | None,
    wait_s: float,
    lease_s: float,
    kill_after_s: float | None,
    service: Service,
) -> None:
    """Run a command while a lock is held, and renew the lock as long as it runs.

    Our options stand before the --. The command gets our signals, and its exit code is ours, 128+N where
    signal N killed it. It finds SLOTKEEPER_LOCK_NAME, SLOTKEEPER_LOCK_ID, SLOTKEEPER_LOCK_FENCE and SLOTKEEPER_LOCK_URL in
    its environment. When the lock cannot be renewed, the command and what it has started are asked to end, and killed before
    anybody else can get the lock: exit code 4. They end too when this process is killed. Exit code 3: somebody else holds it.
    """
    choices = ctx.ensure_object(Choices)
    kill_after_s = _kill_after(kill_after_s, lease_s)
    _check(command[0])
    with caught(ENDING, _leave), opened_locks(choices, service) as client:
        hold = client.hold(name, holder=holder or f"{_who()} {os.getpid()}", wait_s=wait_s, lease_s=lease_s)
        try:
            ending = _run(hold, command, kill_after_s, service.told)
        finally:
            _give_back(choices, hold)
    _end(ctx, hold, ending)


def _run(hold: LockHold, command: Sequence[str], kill_after_s: float, told: Mapping[str, str]) -> Ending:
    from .lockrun import run_under

    return run_under(hold, command, kill_after_s, {**os.environ, **told})


def _end(ctx: click.Context, hold: LockHold, ending: Ending) -> None:
    from ..locktable import LockLost
    from .terminal import end_by_key

    if ending.lost:
        raise LockLost(hold.name, hold.id, fence=hold.fence)
    if ending.key is not None:
        end_by_key(ending.key)
    ctx.exit(ending.code)


def _give_back(choices: Choices, hold: LockHold) -> None:
    """Release a lock on every way out. Where nobody can be told, it comes free with its lease."""
    from ..errors import SlotkeeperError
    from ..locktable import LockLost

    with caught(ENDING, lambda number: None):
        try:
            with suppress(LockLost):
                hold.release()
        except SlotkeeperError as error:
            tell(choices, f"the lock was not given back, and comes free with its lease: {error}")


def _leave(number: int) -> None:
    """End by a signal while no command runs: what is held or waited for is given up on the way."""
    raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)


def _kill_after(given_s: float | None, lease_s: float) -> float:
    if given_s is None:
        return min(KILL_AFTER_S, (lease_s or LEASE_S) / 4)
    if given_s > (lease_s or LEASE_S) / 2:
        raise click.UsageError("--kill-after is at most half of the lease: the other half is for renewing it.")
    return given_s


def _check(command: str) -> None:
    """Refuse a command that cannot run before anybody waits for a lock."""
    if shutil.which(command) is not None:
        return
    if os.path.exists(command) and os.sep in command:
        raise CommandNotExecutable(f"{command!r} cannot be run. Check its permissions, and its first line.")
    raise CommandNotFound(f"{command!r} is no command: nothing of that name was found. Check its spelling, and PATH.")


def _named(found: Sequence[Lock], name: str, lock_id: str | None = None) -> Lock:
    locks = [lock for lock in found if lock.name == name]
    if not locks:
        raise NotHeld(f"cluster lock {name} is not held")
    for lock in locks:
        if lock_id in (None, lock.id):
            return lock
    raise NotHeld(f"cluster lock {name} is not held under {lock_id}: it was released, or its lease ended")


def _document(lock: Lock, now: float) -> dict[str, Any]:
    return {
        "name": lock.name,
        "id": lock.id,
        "holder": lock.holder,
        "node": lock.node,
        "fence": lock.fence,
        "acquired_at": lock.acquired_at,
        "expires_in_s": round(lock.left_s(now), 3),
    }


def _print_locks(found: Sequence[Lock], now: float) -> None:
    columns = ("NAME", "HOLDER", "NODE", "ACQUIRED_AT", "#EXPIRES_IN", "#FENCE")
    rows = (
        (lock.name, lock.holder, lock.node, f"{lock.acquired_at:%Y-%m-%dT%H:%M:%SZ}", _left(lock, now), lock.fence)
        for lock in found
    )
    print_table(columns, rows)


def _left(lock: Lock, now: float) -> str:
    from ..locktable.durations import duration

    return duration(round(lock.left_s(now)))


def _pairs(found: Status) -> dict[str, object]:
    speaker = f"{found.speaker.node} ({found.speaker.address})" if found.speaker is not None else "nobody"
    held_up = ", ".join(f"{each.peer.node} ({each.left_s:.0f} s at most)" for each in found.held_up_by)
    return {
        "cluster": found.cluster,
        "node": f"{found.node.node} ({found.node.address})",
        "speaker": speaker + (" (this node)" if found.speaks else ""),
        "epoch": found.epoch,
        "rebuilt": ("yes" if found.rebuilt else f"no, it waits for {held_up}") if found.speaks else "-",
        "members": ", ".join(peer.node for peer in found.members),
        "locks": f"{found.locks} in the cluster, {found.waiting} waiting" if found.speaks else "-",
        "held here": found.held,
        **({"trouble": found.trouble} if found.trouble else {}),
    }


def _who() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in some containers
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def _look(name: str) -> str:
    return f"`slotkeeper lock list` shows what became of {name}"
