"""docs/cli.md and the examples of the helps: what they show, the command takes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
from commandline import Run

from slotkeeper.cli.exits import Exit
from slotkeeper.cli.main import slotkeeper
from slotkeeper.cli.options import DATABASE, OPTIONS

PAGE = Path(__file__).parents[2].joinpath("docs/cli.md").read_text(encoding="utf-8")
LINES = re.findall(r"^slotkeeper .+$", PAGE, re.MULTILINE)


def parsed(line: str) -> list[str]:
    """Read a command line as far as its command; return the command's path. Raises UsageError."""
    path, command, args = [], slotkeeper, shlex.split(line)[1:]
    found: click.Command = command
    while isinstance(found, click.Group):
        name = args.pop(0)
        path.append(name)
        below = found.get_command(click.Context(found), name)
        assert below is not None, line
        found = below
    found.make_context(path[-1], args, resilient_parsing=True)
    needed = [param.opts[0] for param in found.params if param.required and param.opts[0].startswith("-")]
    assert all(name in line for name in needed), line
    return path


@pytest.mark.parametrize("line", LINES)
def test_every_command_line_of_the_page_can_be_typed(line: str) -> None:
    assert parsed(line)


def test_the_page_has_an_example_of_every_command() -> None:
    shown = {tuple(parsed(line)) for line in LINES}

    for name in slotkeeper.late:
        found = slotkeeper.get_command(click.Context(slotkeeper), name)
        assert found is not None
        ctx = click.Context(found)
        below = [(name, each) for each in found.list_commands(ctx)] if isinstance(found, click.Group) else [(name,)]
        assert set(below) <= shown


def test_the_page_has_every_exit_code_and_variable() -> None:
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)} == set(Exit)
    variables = {name for _, attributes in OPTIONS[DATABASE] for name in attributes["envvar"]}
    assert {name for name in variables if f"`{name}`" not in PAGE} == set()


@pytest.mark.parametrize(
    ("command", "fields"),
    [
        (("semaphore", "create", "gpu", "--size", "1"), "| `create`, `describe` | "),
        (("semaphore", "acquire", "gpu", "--owner", "1:w:r:1"), "| `acquire` | "),
        (("semaphore", "release", "gpu", "--owner", "1:w:r:1"), "| `release` | "),
        (("semaphore", "delete", "gpu", "--yes"), "| `delete` | "),
        (("schema", "setup"), "| `setup`, `update` | "),
        (("owner", "decode", "1:w:r:1"), "`encode` and `decode`: "),
        (("owner", "bucket", "1:w:r:1", "--buckets", "4"), "`bucket`: "),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, tuple) else "",
)
def test_the_documents_have_the_fields_that_the_page_names(run: Run, command: tuple[str, ...], fields: str) -> None:
    run("semaphore", "create", "gpu", "--size", "1")
    if "release" in command:
        run("semaphore", "acquire", "gpu", "--owner", "1:w:r:1")

    told = run(*command, "--json").json

    line = PAGE.split(fields)[1].split("\n")[0].split(". ")[0]
    assert set(re.findall(r"`(\w+)`", line)) == set(told)
