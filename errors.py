"""The one base error. Each package adds its own below it."""

from __future__ import annotations

from typing import Any


class SlotkeeperError(Exception):
    """Something went wrong in slotkeeper."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or default_message(type(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        # Exception would call the class with its finished message; ours are built from data, so restore that instead.
        return _restored, (type(self), self.args, self.__dict__)


def default_message(error: type[SlotkeeperError]) -> str:
    """Return the class's docstring on one line: what happened and what to do next."""
    return " ".join((error.__doc__ or error.__name__).split())


def _restored(cls: type[SlotkeeperError], args: tuple[Any, ...], state: dict[str, Any]) -> SlotkeeperError:
    error = cls.__new__(cls)
    error.args = args
    error.__dict__.update(state)
    return error
