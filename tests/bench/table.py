"""The table for people."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table

from .figures import Figure, Line

VERDICTS = {True: "[green]met[/green]", False: "[red]missed[/red]", None: ""}


def table(figures: Iterable[Figure], caption: str) -> Table:
    """Lay the figures out, one a line, each beside what it is compared with."""
    laid = Table(caption=caption, caption_justify="left")
    laid.add_column("")
    laid.add_column("figure", justify="right", no_wrap=True)
    laid.add_column("beside", justify="right", no_wrap=True)
    laid.add_column("of")
    laid.add_column("ratio", justify="right", no_wrap=True)
    laid.add_column("target")
    laid.add_column("")
    database = None
    for figure in figures:
        if figure.database != database:
            database = figure.database
            laid.add_section()
            laid.add_row(f"[bold]{database}[/bold]")
        laid.add_row(*_cells(figure))
    return laid


def markdown(figures: Iterable[Figure]) -> str:
    """Lay the figures out for docs/performance.md."""
    rows = ["| | figure | beside | of | ratio | target | |", "|---|---:|---:|---|---:|---|---|"]
    database = None
    for figure in figures:
        if figure.database != database:
            database = figure.database
            rows.append(f"| **{database}** | | | | | | |")
        *cells, _ = _cells(figure)
        verdict = {True: "met", False: "**missed**", None: ""}[figure.met]
        rows.append(f"| {' | '.join((*cells, verdict))} |")
    return "\n".join(rows)


def _cells(figure: Figure) -> tuple[str, ...]:
    unit, target = figure.line.unit, figure.line.target
    of = "" if target is None or not target.of_value else f" {unit}"
    return (
        figure.line.title,
        f"{number(figure.value)} {unit}",
        "" if figure.floor is None else number(figure.floor),
        _beside(figure.line),
        "" if figure.ratio is None else f"{figure.ratio:.2f}",
        "" if target is None else f"{target}{of}",
        VERDICTS[figure.met],
    )


def _beside(line: Line) -> str:
    if line.floor is None:
        return ""
    name, reading = line.floor
    return name if reading in ("cycles", "p50", "p99", "rate", "transactions") else f"{name}, {reading}"


def number(value: float) -> str:
    """Spell a number with three digits that mean something."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else "0" if value == 0 else f"{value:.2f}"
