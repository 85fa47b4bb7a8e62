"""`slotkeeper doctor`: what is the matter with the database, and what to do about it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from ..errors import SlotkeeperError
from .checks import FAIL, Check, consistency_check, examined, fail, ok, round_trip, schema_checks
from .commands import Command, example
from .exits import Exit, code_of
from .opening import opened_store, set_up_logging, settings
from .options import DATABASE, OUTPUT, Choices, shared
from .output import console, emit, printable

if TYPE_CHECKING:
    from ..database import CassandraSettings, SqliteSettings

COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command(
    cls=Command, epilog=example("slotkeeper doctor", "slotkeeper doctor --database cassandra://localhost/slots")
)
@shared(OUTPUT, DATABASE)
@click.pass_context
def doctor(ctx: click.Context) -> None:
    """Check the database: whether it answers, its releases and clocks, the schema, and one write.

    Exit code 0 where nothing failed, warnings or not; else that of the first check that failed.
    """
    from ..database import CassandraSettings

    choices = ctx.ensure_object(Choices)
    found = settings(choices)
    set_up_logging(choices)
    checks = _cassandra(found) if isinstance(found, CassandraSettings) else _sqlite(choices, found)
    done = []
    for check in checks:
        done.append(check)
        if not choices.json:
            _print(check)
    code = next((check.exit_code for check in done if check.status == FAIL), Exit.DONE)
    document = {"database": str(found), "ok": code == Exit.DONE, "checks": [_document(check) for check in done]}
    emit(choices, document, lambda: None)
    ctx.exit(code)


def _sqlite(choices: Choices, found: SqliteSettings) -> Iterator[Check]:
    from .checks_sqlite import steps

    try:
        with opened_store(choices, prepared=True) as store:
            yield from examined(steps(found, store))
    except SlotkeeperError as error:
        yield _closed("file", error)


def _cassandra(found: CassandraSettings) -> Iterator[Check]:
    from ..database.cassandra import CassandraStore
    from .checks_cassandra import cluster_steps

    began = time.perf_counter()
    try:
        cluster = CassandraStore(found, keyspace=False)
    except SlotkeeperError as error:
        yield _closed("reachable", error)
        return
    took_ms = (time.perf_counter() - began) * 1000
    yield ok("reachable", f"{', '.join(found.hosts)}: connected in {took_ms:.0f} ms")
    try:
        yield from examined(cluster_steps(cluster))
    finally:
        cluster.close()
    yield from _tables(found)


def _tables(found: CassandraSettings) -> Iterator[Check]:
    from ..database import KeyspaceMissing, SettingsError, open_store

    try:
        store = open_store(found)
    except (KeyspaceMissing, SettingsError):
        return  # said already
    except SlotkeeperError as error:
        yield _closed("keyspace", error)
        return
    try:
        steps = (
            ("schema", lambda: schema_checks(store)),
            ("consistency", lambda: consistency_check(store)),
            ("round trip", lambda: round_trip(store)),
        )
        yield from examined(steps)
    finally:
        store.close()


def _closed(name: str, error: SlotkeeperError) -> Check:
    return fail(name, str(error), "", code_of(type(error)))


def _print(check: Check) -> None:
    from rich.text import Text

    fix = f" -> {check.fix}" if check.fix else ""
    rest = f" {check.name:<12} {printable(check.message + fix)}"
    console().print(Text.assemble((f"{check.status:<5}", COLOURS[check.status]), rest), soft_wrap=True)


def _document(check: Check) -> dict[str, str]:
    return {"check": check.name, "status": check.status, "message": check.message, "fix": check.fix}
