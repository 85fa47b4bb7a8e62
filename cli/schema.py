"""`slotkeeper schema`: the keyspace and its tables."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .commands import Group, example
from .exits import Exit, unsettled
from .opening import cassandra_settings, opened_store, set_up_logging, settings
from .options import DATABASE, OUTPUT, Choices, shared
from .output import emit, local_time, print_pairs, print_table, progress, tell

if TYPE_CHECKING:
    from ..database import CassandraSettings, Store
    from ..schema import KeyspaceReport, Report, Status, Version

URL = "--database cassandra://localhost/slots"
EVERYTHING = (OUTPUT, DATABASE)
AGAIN = "run the command again, it goes on"
FITS = ("current", "newer")


def version(text: str) -> Version:
    """Read a version of the schema."""
    from ..schema import Version

    try:
        return Version.parse(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.group(cls=Group, epilog=example(f"slotkeeper schema setup {URL}"))
@shared(*EVERYTHING, shown=())
def schema() -> None:
    """Create the keyspace and its tables, and bring them up to date."""


@schema.command(
    name="create-keyspace",
    epilog=example(
        f"slotkeeper schema create-keyspace --replication-factor 3 {URL}?local_dc=dc1",
        f"""slotkeeper schema create-keyspace --replication '{{"dc1": 3, "dc2": 3}}' {URL}?local_dc=dc1""",
    ),
)
@click.option(
    "--replication-factor",
    type=click.IntRange(min=1),
    metavar="NUMBER",
    help="How many nodes of the local data centre keep each row. Without it: 1.",
)
@click.option("--replication", metavar="JSON", help="Or how many of each data centre.")
@click.option("--dry-run", is_flag=True, help="Print the CQL, and change nothing.")
@shared(*EVERYTHING)
@click.pass_obj
def create_keyspace(choices: Choices, replication_factor: int | None, replication: str | None, dry_run: bool) -> None:
    """Create a keyspace. One that is there already is left as it is."""
    if replication_factor is not None and replication is not None:
        raise click.UsageError("Give --replication-factor or --replication, not both.")
    found = cassandra_settings(choices)
    set_up_logging(choices)
    with unsettled(AGAIN):
        made = _keyspace(found, replication_factor or 1, _replicas(replication), dry_run)
    for warning in made.warnings:
        tell(choices, f"warning: {warning}")
    emit(choices, _made(made), lambda: _print_made(made))


@schema.command(epilog=example(f"slotkeeper schema setup {URL}", f"slotkeeper schema setup --dry-run {URL}"))
@click.option("--dry-run", is_flag=True, help="Print the CQL, and change nothing.")
@click.option("--force-unlock", is_flag=True, help="First break the lock of a process that died, and say whose it was.")
@shared(*EVERYTHING)
@click.pass_obj
def setup(choices: Choices, dry_run: bool, force_unlock: bool) -> None:
    """Bring the tables into a keyspace. Any number of processes may do it at once; a second run changes nothing."""
    from .. import schema as tables

    if dry_run and not force_unlock:
        _show(choices, _planned(choices), None)
        return
    with opened_store(choices, prepared=False) as store, progress(choices, "setting up") as step, unsettled(AGAIN):
        broken = _unlocked(choices, store, dry_run) if force_unlock else None
        report = tables.setup(store, dry_run=dry_run, terms=tables.Terms(progress=step))
    _show(choices, report, broken)


@schema.command(epilog=example(f"slotkeeper schema update {URL}"))
@click.option("--to", type=version, metavar="VERSION", help="Without it: the newest that this program knows.")
@click.option("--dry-run", is_flag=True, help="Print the CQL, and change nothing.")
@click.option("--force-unlock", is_flag=True, help="First break the lock of a process that died, and say whose it was.")
@shared(*EVERYTHING)
@click.pass_obj
def update(choices: Choices, to: Version | None, dry_run: bool, force_unlock: bool) -> None:
    """Bring older tables up to date."""
    from .. import schema as tables

    with opened_store(choices, prepared=False) as store, progress(choices, "updating") as step, unsettled(AGAIN):
        broken = _unlocked(choices, store, dry_run) if force_unlock else None
        report = tables.update(store, to, dry_run=dry_run, terms=tables.Terms(progress=step))
    _show(choices, report, broken)


@schema.command(epilog=example(f"slotkeeper schema status {URL}"))
@shared(*EVERYTHING)
@click.pass_context
def status(ctx: click.Context) -> None:
    """Show which version is installed, and what was done. Exit code 5: this program cannot work with it."""
    from .. import schema as tables

    choices = ctx.ensure_object(Choices)
    with opened_store(choices, prepared=False) as store:
        found = tables.status(store)
    emit(choices, _status(found), lambda: _print_status(found))
    ctx.exit(Exit.DONE if found.state in FITS else Exit.SCHEMA)


def _replicas(text: str | None) -> dict[str, Any] | None:
    import msgspec

    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise click.BadParameter(f'{error}. It looks like {{"dc1": 3}}.', param_hint="--replication") from error


def _keyspace(
    found: CassandraSettings, factor: int, replication: dict[str, Any] | None, dry_run: bool
) -> KeyspaceReport:
    """Create the keyspace, or tell how. Only who leaves out the data centre needs a database to be told."""
    from ..database import Unavailable
    from ..schema import create_keyspace

    local = {found.local_dc: factor} if found.local_dc else None
    asked = replication if replication is not None else local
    if dry_run and asked is not None:
        planned = _planned_keyspace(found.keyspace, asked)
        with suppress(Unavailable):
            return create_keyspace(found, replication=asked, dry_run=True)
        return planned
    return create_keyspace(found, replication_factor=factor, replication=replication, dry_run=dry_run)


def _planned_keyspace(name: str, asked: dict[str, Any]) -> KeyspaceReport:
    from ..schema import KeyspaceReport, keyspace_statement
    from ..schema.keyspace import ONE_REPLICA, TWO_REPLICAS

    statement = keyspace_statement(name, asked)
    replicas = {centre: str(count) for centre, count in asked.items() if centre != "class"}
    warnings = {"1": ONE_REPLICA, "2": TWO_REPLICAS}
    apply = tuple(text for count, text in warnings.items() if count in replicas.values())
    return KeyspaceReport(name, False, statement, replicas, None, apply, True)


def _made(made: KeyspaceReport) -> dict[str, Any]:
    return {
        "keyspace": made.keyspace,
        "created": made.created,
        "replication": made.replication,
        "statement": made.statement,
        "warnings": made.warnings,
        "dry_run": made.dry_run,
    }


def _print_made(made: KeyspaceReport) -> None:
    if made.dry_run:
        _print_statements((made.statement,))
        return
    replicas = ", ".join(f"{name}: {count}" for name, count in (made.replication or {}).items())
    click.echo(f"{'created' if made.created else 'found'} keyspace {made.keyspace} ({replicas})")


def _planned(choices: Choices) -> Report:
    """Return what a setup would do; where nothing can be asked yet, what it does in an empty database."""
    from ..database import KeyspaceMissing, SqliteSettings, Unavailable
    from ..schema import Report, setup, shipped, statements

    found = settings(choices)
    if not isinstance(found, SqliteSettings) or Path(found.path).exists():
        with suppress(KeyspaceMissing, Unavailable), opened_store(choices, prepared=False) as store:
            return setup(store, dry_run=True)
    tell(choices, "there is no database to ask yet: this is what an empty one gets")
    dialect, keyspace = ("sql", "") if isinstance(found, SqliteSettings) else ("cql", found.keyspace)
    return Report(None, shipped().newest, statements(dialect, keyspace), True)


def _unlocked(choices: Choices, store: Store, dry_run: bool) -> str | None:
    from ..schema import force_unlock

    if dry_run:
        raise click.UsageError("--force-unlock changes the lock: not together with --dry-run.")
    broken = force_unlock(store)
    tell(choices, f"broke the lock of {broken}" if broken else "nobody held the lock")
    return broken


def _show(choices: Choices, report: Report, broken: str | None) -> None:
    emit(choices, _document(report, broken), lambda: _print_report(report))
    if report.dry_run and not report.statements:
        tell(choices, f"there is nothing to do: version {report.after} is installed")


def _document(report: Report, broken: str | None) -> dict[str, Any]:
    return {
        "before": str(report.before) if report.before else None,
        "after": str(report.after) if report.after else None,
        "statements": report.statements,
        "dry_run": report.dry_run,
        "unlocked": broken,
    }


def _print_report(report: Report) -> None:
    if report.dry_run:
        _print_statements(report.statements)
    elif report.before == report.after:
        click.echo(f"the schema is at version {report.after} already")
    else:
        click.echo(f"the schema is at version {report.after}, before: {report.before or 'none'}")


def _print_statements(statements: tuple[str, ...]) -> None:
    for statement in statements:
        click.echo(f"{statement.rstrip().removesuffix(';')};")


def _status(found: Status) -> dict[str, Any]:
    return {
        "state": found.state,
        "installed": str(found.installed) if found.installed else None,
        "min_compatible": str(found.min_compatible) if found.min_compatible else None,
        "expected": str(found.expected),
        "consistency": found.consistency,
        "locked_by": found.locked_by,
        "lock_renewed_ms": found.lock_renewed_ms,
        "history": found.history,
    }


def _print_status(found: Status) -> None:
    advice = {"missing": "run `slotkeeper schema setup`", "older": "run `slotkeeper schema update`"}
    advice |= {"current": "fits", "newer": "fits this program", "too new": "update this program"}
    print_pairs(
        {
            "state": f"{found.state}: {advice[found.state]}",
            "installed": found.installed or "none",
            "expected": found.expected,
            "consistency": found.consistency or "-",
            "locked by": found.locked_by or "nobody",
        }
    )
    if found.history:
        click.echo()
        rows = ((local_time(c.at_ms), c.action, c.before or "-", c.after or "-", c.who) for c in found.history)
        print_table(("time", "change", "before", "after", "by"), rows)
