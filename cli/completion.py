"""`slotkeeper completion`: the script that a shell reads."""

from __future__ import annotations

import click

from .commands import Command, example

VARIABLE = "_SLOTKEEPER_COMPLETE"
SHELLS = ("bash", "zsh", "fish", "powershell")


@click.command(
    cls=Command,
    epilog=example(
        'eval "$(slotkeeper completion bash)"     in ~/.bashrc',
        'eval "$(slotkeeper completion zsh)"      in ~/.zshrc',
        "slotkeeper completion fish > ~/.config/fish/completions/slotkeeper.fish",
    ),
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands and options in your shell."""
    from click.shell_completion import get_completion_class

    if (found := get_completion_class(shell)) is None:
        raise click.UsageError(f"This version of click completes nothing in {shell}.")
    click.echo(found(ctx.find_root().command, {}, "slotkeeper", VARIABLE).source())
