"""Commands and groups of our looks: options in sections, an example under each help, and groups that import late."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click


class _Sectioned(click.Command):
    """A help with one section for each kind of options."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own options first, then the shared ones."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for option in (param for param in self.get_params(ctx) if isinstance(param, click.Option)):
            if (record := option.get_help_record(ctx)) is not None:
                sections.setdefault(getattr(option, "section", "Options"), []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


class Command(_Sectioned):
    """A command of its own."""


class Group(_Sectioned, click.Group):
    """A group of commands. Its options are kept for them."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order in which they were written down."""
        return list(self.commands)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, then the commands."""
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


class LateGroup(Group):
    """A group that imports a command when it is called. Until then it knows its name, its one line and its module.

    A module's command has the name that users type, or that and a _, and so has the module, unless `modules` says otherwise.
    """

    def __init__(
        self,
        *args: Any,
        late: Mapping[str, str] | None = None,
        modules: Mapping[str, str] | None = None,
        **attributes: Any,
    ) -> None:
        super().__init__(*args, **attributes)
        self.late, self.modules = late or {}, modules or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order in which they were written down."""
        return list(self.late)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in self.late:
            return None
        module = import_module(f".{self.modules.get(cmd_name, cmd_name)}", __package__)
        command = getattr(module, cmd_name, None) or getattr(module, f"{cmd_name}_")
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each command's one line."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.late.items()))


def example(*lines: str) -> str:
    """Return the end of a help: how the command is called."""
    return "\n".join(["\b", "Example:" if len(lines) == 1 else "Examples:", *(f"  {line}" for line in lines)])
