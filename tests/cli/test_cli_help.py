"""Help: at once, with nothing imported that it does not need, an example in each, and the names of the variables."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from commandline import Run

from slotkeeper import __version__
from slotkeeper.cli.main import slotkeeper
from slotkeeper.cli.options import DATABASE, OPTIONS, PARTS, TIMEOUT_S, Shared
from slotkeeper.database.settings import VARIABLES, CassandraSettings
from slotkeeper.semaphore.client import TIMEOUT_S as CLIENT_TIMEOUT_S

HEAVY = ("cassandra", "rich", "sqlite3", "asyncio", "msgspec", "slotkeeper.database", "slotkeeper.semaphore")
LOOK = "import sys; from slotkeeper.cli.main import run\ntry: run()\nfinally: print(*sys.modules, file=sys.stderr)"


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of each command and group."""
    yield path
    if isinstance(command, click.Group):
        ctx = click.Context(command)
        for name in command.list_commands(ctx):
            found = command.get_command(ctx, name)
            assert found is not None
            yield from commands(found, (*path, name))


ALL = list(commands(slotkeeper))


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_help_has_an_example_and_one_line_about_itself(path: tuple[str, ...], run: Run) -> None:
    ran = run(*path, "--help")

    assert ran.code == 0
    assert f"Usage: {' '.join(('slotkeeper', *path))}" in ran.out
    assert "Example" in ran.out
    assert "  slotkeeper " in ran.out.split("Example")[1] or "$(slotkeeper " in ran.out


@pytest.mark.parametrize(
    "path",
    [
        (),
        ("semaphore",),
        ("semaphore", "acquire"),
        ("lock", "run"),
        ("lock", "serve"),
        ("schema", "setup"),
        ("doctor",),
    ],
    ids=" ".join,
)
def test_help_imports_neither_a_driver_nor_what_draws_tables(path: tuple[str, ...]) -> None:
    command = [sys.executable, "-c", LOOK, *path, "--help"]
    ran = subprocess.run(command, capture_output=True, text=True, cwd="/", check=True)

    assert set(ran.stderr.split()).isdisjoint(HEAVY)


def test_a_wrong_owner_id_is_told_without_a_driver() -> None:
    command = [sys.executable, "-c", LOOK, "owner", "decode", "007"]
    ran = subprocess.run(command, capture_output=True, text=True, cwd="/", check=False)

    assert ran.returncode == 2
    assert set(ran.stderr.split()).isdisjoint(HEAVY)


def test_the_lines_of_the_main_help_are_those_of_the_commands() -> None:
    for name, line in slotkeeper.late.items():
        command = slotkeeper.get_command(click.Context(slotkeeper), name)
        assert command is not None
        assert command.name == name
        assert line


def test_help_names_the_variables_that_the_settings_read(run: Run) -> None:
    shown = {_name(names): attributes.get("envvar") for names, attributes in OPTIONS[DATABASE]}
    del shown["database"]

    assert shown == {name: list(names) for name, names in VARIABLES.items() if name != "password"}
    assert set(PARTS) == set(shown)
    assert set(PARTS) <= set(CassandraSettings.__dataclass_fields__)
    assert "SLOTKEEPER_LOCAL_DC" in run("semaphore", "list", "--help").out


def _name(names: tuple[str, ...]) -> str:
    name = Shared(list(names), section=DATABASE).name
    assert name is not None
    return name


def test_help_names_the_time_that_the_client_takes() -> None:
    assert TIMEOUT_S == CLIENT_TIMEOUT_S


def test_the_version_is_the_packages(run: Run) -> None:
    assert run("--version").out == f"slotkeeper, version {__version__}\n"


def test_python_m_is_the_same_command(run_process: Run) -> None:
    ran = run_process("owner", "encode", "--workflow", "order:42", "--run", "run-1", "--hold", "7")

    assert (ran.code, ran.out, ran.err) == (0, "8:order:42:run-1:7\n", "")


def test_a_command_that_is_not_there_is_a_usage_error(run: Run) -> None:
    ran = run("semafore")

    assert ran.code == 2
    assert "No such command 'semafore'" in ran.err
    assert ran.out == ""
