"""`python -m bench`, in the folder `tests`: measure, print a table, write JSON."""

from __future__ import annotations

import json
import os
import platform
import sys
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from . import suite, tasks
from .figures import Figure, Suite, as_document
from .places import described, file_of_our_own, folder_of_our_own, is_cassandra, is_folder, node_of_our_own, ready
from .run import Run, steps, warm_up
from .table import markdown, table

QUICK_S, QUICK_ROUNDS, QUICK_WARM_S = 0.8, 1, 6.0
WIDTH = 150  # of the table in a file or pipe
FILE = click.Path(dir_okay=False, path_type=Path)


@dataclass(frozen=True, slots=True)
class Choices:
    """What the command line asks for."""

    seconds: float
    rounds: int
    only: str | None
    quick: bool
    long: bool
    warm_s: float


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--database",
    "databases",
    metavar="URL",
    multiple=True,
    help="cassandra://HOST/KEYSPACE, sqlite:///FILE, or tasks:FOLDER for the task store; may be repeated. "
    "Default: a node, a file and a folder of our own.",
)
@click.option("--seconds", default=3.0, show_default=True, help="How long each measurement counts.")
@click.option("--rounds", default=3, show_default=True, help="How often each is measured.")
@click.option("--only", metavar="NAME", help="Only measurements with NAME in their name, and their floors.")
@click.option("--quick", is_flag=True, help="One short round, without growth: a look, not a figure.")
@click.option("--long/--no-long", default=True, show_default=True, help="100,000 cycles on one bucket, and memory.")
@click.option("--warm-up", "warm_s", default=30.0, show_default=True, help="Seconds; a fresh node needs as many.")
@click.option("--json", "json_file", type=FILE, help="Write everything there.")
@click.option("--markdown", "markdown_file", type=FILE, help="Write the table there.")
def main(
    databases: tuple[str, ...],
    seconds: float,
    rounds: int,
    only: str | None,
    quick: bool,
    long: bool,
    warm_s: float,
    json_file: Path | None,
    markdown_file: Path | None,
) -> None:
    """Measure slotkeeper beside its floor: the raw driver, one conditional batch an operation."""
    choices = Choices(seconds, rounds, only, quick, long, warm_s)
    if quick:
        choices = replace(choices, seconds=QUICK_S, rounds=QUICK_ROUNDS, warm_s=min(warm_s, QUICK_WARM_S), long=False)
    with ExitStack() as opened:
        urls = [ready(url) for url in databases] or [
            opened.enter_context(node_of_our_own()),
            opened.enter_context(file_of_our_own()),
            opened.enter_context(folder_of_our_own()),
        ]
        chosen = [suite_ for url in urls if (suite_ := _suite(url, choices)).groups]
        if not chosen:
            raise click.UsageError(f"No measurement has {only!r} in its name.")
        about = _about(chosen, choices)
        run = _measured(chosen, choices)
    about["load_average_after"] = os.getloadavg()
    figures = run.record.figures(chosen)
    Console(width=None if sys.stdout.isatty() else WIDTH).print(table(figures, _caption(about)))
    _write(json_file, json.dumps(as_document(figures, about, run.failures), indent=2))
    _write(markdown_file, markdown(figures))
    _end(figures, run.failures)


def _suite(url: str, choices: Choices) -> Suite:
    whole = _whole(url, choices)
    return whole if choices.only is None else whole.only(choices.only)


def _whole(url: str, choices: Choices) -> Suite:
    if is_folder(url):
        return tasks.local(url, long=choices.long)
    if is_cassandra(url):
        return suite.cassandra(url, long=choices.long, growing=not choices.quick)
    return suite.sqlite(url)


def _measured(chosen: list[Suite], choices: Choices) -> Run:
    run, planned = Run(), steps(chosen, choices.rounds)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("warming up", total=len(planned))
        for suite_ in chosen:
            if not is_folder(suite_.url):
                warm_up(suite_.url, choices.warm_s if is_cassandra(suite_.url) else choices.seconds)
        for step in planned:
            progress.update(bar, description=f"round {step.round + 1}: {step}")
            if not progress.console.is_terminal:
                progress.console.print(f"round {step.round + 1}: {step}")
            run.take(step, choices.seconds)
            progress.advance(bar)
        progress.update(bar, description="measured")
    return run


def _about(chosen: list[Suite], choices: Choices) -> dict[str, object]:
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "databases": [described(each.url) for each in chosen],
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "seconds": choices.seconds,
        "rounds": choices.rounds,
        "quick": choices.quick,
        "load_average_before": os.getloadavg(),
    }


def _caption(about: dict[str, object]) -> str:
    return (
        f"{about['at']}; {'; '.join(about['databases'])}; Python {about['python']}, {about['cores']} cores; "  # type: ignore[arg-type]
        f"median of {about['rounds']} x {about['seconds']} s{' (quick: a look, not a figure)' if about['quick'] else ''}; "
        f"load average {_load(about['load_average_before'])} before, {_load(about['load_average_after'])} after"
    )


def _load(averages: object) -> str:
    assert isinstance(averages, tuple)
    return f"{averages[0]:.1f}"


def _write(file: Path | None, text: str) -> None:
    if file is not None:
        file.write_text(f"{text}\n")


def _end(figures: list[Figure], failures: list[str]) -> None:
    """Say what failed. A target that is missed is a figure like others; a measurement that failed is an error."""
    for failure in failures:
        click.echo(f"failed: {failure}", err=True)
    missed = [figure.line.title for figure in figures if figure.met is False]
    click.echo(f"targets missed: {'; '.join(missed) or 'none'}", err=True)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
