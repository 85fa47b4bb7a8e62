"""Where things are printed: data on stdout, a table for people or one JSON document for programs; the rest on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from .options import Choices

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

Document = Mapping[str, Any]
UNBOUNDED = 1 << 20  # columns of a file or pipe: cutting a line at 80 would lose data


def encoded(document: Document) -> bytes:
    """Return one JSON document, indented, in UTF-8."""
    import msgspec

    return msgspec.json.format(msgspec.json.encode(document), indent=2)


def emit(choices: Choices, document: Document, for_people: Callable[[], None]) -> None:
    """Print the data of a command: the document for programs, or what `for_people` prints."""
    if choices.json:
        click.echo(encoded(document))
    else:
        for_people()


def tell(choices: Choices, text: str) -> None:
    """Say something beside the data. A program that asked for JSON is told by the document alone."""
    if not (choices.quiet or choices.json):
        click.echo(f"slotkeeper: {printable(text)}", err=True)


def one_line(text: str) -> str:
    """Return a text on one line, without characters that move a terminal's cursor."""
    return printable(" ".join(text.split()))


def printable(text: str) -> str:
    """Return a text with control characters spelled out: a name from the database must not steer a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def print_pairs(pairs: Mapping[str, object]) -> None:
    """Print names and values, one a line."""
    width = max(len(name) for name in pairs)
    for name, value in pairs.items():
        click.echo(f"{name:<{width}}  {printable(str(value))}")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table. Columns whose name starts with `#` are numbers."""
    from rich.text import Text

    table = new_table(columns)
    for row in rows:
        table.add_row(*(Text(printable(str(cell))) for cell in row))
    out = console()
    with out.capture() as captured:
        out.print(table)
    for line in captured.get().splitlines():
        click.echo(line.rstrip(), color=True)  # rich has decided on colours already


def new_table(columns: Sequence[str]) -> Table:
    """Return an empty table of our looks. Columns whose name starts with `#` are numbers."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        right = column.startswith("#")
        table.add_column(column.removeprefix("#"), justify="right" if right else "left", overflow="fold")
    return table


def console(*, stderr: bool = False) -> Console:
    """Return a console of rich, which honours NO_COLOR and FORCE_COLOR."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else UNBOUNDED
    return Console(file=stream, width=width, markup=False, highlight=False, emoji=False)


@contextmanager
def progress(choices: Choices, title: str) -> Iterator[Callable[[str], None]]:
    """Tell of the steps of a longer work, below a spinner where stderr is a terminal."""
    if choices.quiet or choices.json or not sys.stderr.isatty():
        yield lambda step: tell(choices, step)
        return
    with console(stderr=True).status(title):
        yield lambda step: tell(choices, step)


def local_time(ms: int) -> str:
    """Return milliseconds since the epoch as this host's time; a dash where none is kept."""
    from datetime import UTC, datetime

    return f"{datetime.fromtimestamp(ms / 1000, UTC).astimezone():%Y-%m-%d %H:%M:%S}" if ms > 0 else "-"


def counted(number: int, noun: str) -> str:
    """Return `1 slot`, `2 slots`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
