"""`slotkeeper demo`: workers that share a few slots, and the proof that never more were inside."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from .commands import Command, example
from .crew import Crew
from .exits import Exit
from .opening import embedded_client, opened_client
from .options import DATABASE, OUTPUT, SCOPE, Choices, shared
from .output import counted, emit, print_pairs
from .stage import watch
from .visits import check, percentile

if TYPE_CHECKING:
    from ..semaphore import Client

SECONDS = 5.0
Summary = dict[str, Any]


@click.command(
    cls=Command,
    epilog=example("slotkeeper demo", "slotkeeper demo --workers 50 --slots 5 --database cassandra://localhost/slots"),
)
@click.option("--workers", type=click.IntRange(1, 1000), default=12, show_default=True, metavar="NUMBER")
@click.option("--slots", type=click.IntRange(1, 250), default=3, show_default=True, metavar="NUMBER")
@click.option(
    "--seconds", type=click.FloatRange(min=0, min_open=True), metavar="NUMBER", help=f"Without it: {SECONDS:g}."
)
@click.option("--jobs", type=click.IntRange(min=1), metavar="NUMBER", help="Or: until so many jobs are done.")
@shared(OUTPUT, SCOPE, DATABASE)
@click.pass_context
def demo(ctx: click.Context, workers: int, slots: int, seconds: float | None, jobs: int | None) -> None:
    """Watch workers share a few slots, and see it checked that never more were inside.

    A workflow engine in small: each worker acquires a slot, works, and releases it, over and over. It runs on a file of its
    own that is deleted at the end, unless a database is named by an option; the environment alone does not name it.
    Exit code 1: the check failed.
    """
    choices = ctx.ensure_object(Choices)
    if seconds is None and jobs is None:
        seconds = SECONDS
    with _place(choices) as client:
        crew = Crew(client, f"demo-{secrets.token_hex(4)}", workers, jobs=jobs)
        summary = _run(choices, client, crew, slots, seconds)
    emit(choices, summary, lambda: _print(summary))
    ctx.exit(Exit.DONE if summary["ok"] else Exit.UNEXPECTED)


@contextmanager
def _place(choices: Choices) -> Iterator[Client]:
    """Open the database that an option names, or a file for this demo alone."""
    if {"database", "hosts"} & choices.given.keys():
        with opened_client(choices) as client:
            yield client
        return
    with TemporaryDirectory(prefix="slotkeeper-demo-") as folder, embedded_client(f"{folder}/demo.db") as client:
        yield client


def _run(choices: Choices, client: Client, crew: Crew, slots: int, seconds: float | None) -> Summary:
    """Let a crew work on a semaphore of its own."""
    client.create(crew.semaphore, slots, bucket_size=slots)
    try:
        crew.start()
        try:
            took_s = watch(choices, crew, slots, seconds)
        finally:
            crew.stop()
        return _summary(crew, slots, took_s, len(client.holders(crew.semaphore)))
    finally:
        client.delete(crew.semaphore, force=True)


def _summary(crew: Crew, slots: int, took_s: float, left_held: int) -> Summary:
    visits = crew.visits
    found = check(visits, slots)
    return {
        "workers": len(crew.workers),
        "slots": slots,
        "jobs": len(visits),
        "seconds": round(took_s, 3),
        "jobs_per_s": round(len(visits) / took_s, 1),
        "waited_ms": _percentiles([visit.waited_ms for visit in visits]),
        "most_inside": found.most_inside,
        "left_held": left_held,
        "violations": found.violations,
        "ok": not found.violations and left_held == 0,
    }


def _percentiles(values: list[float]) -> dict[str, float]:
    return {f"p{percent}": round(percentile(values, percent), 2) for percent in (50, 99)}


def _print(summary: Summary) -> None:
    waited = summary["waited_ms"]
    print_pairs(
        {
            "jobs": f"{summary['jobs']} in {summary['seconds']:.1f} s, {summary['jobs_per_s']:g} a second",
            "wait for a slot": f"p50 {waited['p50']:.0f} ms, p99 {waited['p99']:.0f} ms",
            "most inside": f"{summary['most_inside']} of {counted(summary['slots'], 'slot')}",
            "left held": summary["left_held"],
        }
    )
    for violation in summary["violations"]:
        click.echo(f"VIOLATION: {violation}")
    verdict = "never more inside than slots, no slot with two holders, none left held"
    click.echo(f"check passed: {verdict}" if summary["ok"] else "check FAILED")
