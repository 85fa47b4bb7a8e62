"""Who may ask for which locks: a file of tokens, each with the beginnings of the names that it stands for.

    {"tokens": [{"name": "ci", "token": "…", "locks": ["ci/", "network/blue"]},
                {"name": "admin", "token_file": "admin.token", "locks": [""]}]}

A name is granted that begins with one of `locks`; the empty beginning grants all. `token_file` is read beside the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ...web.tokens import BadTokenFile, checked_token, read_token


@dataclass(frozen=True, slots=True)
class Permit:
    """What a token stands for: whose it is, the names that it grants, and whether other nodes show it."""

    name: str
    locks: tuple[str, ...] = ()
    is_peer: bool = False

    def allows(self, lock_name: str) -> bool:
        """Tell whether it grants a name."""
        return lock_name.startswith(self.locks)


EVERYBODY = Permit("everybody on this host", ("",), is_peer=True)  # where no token is asked for
PEER = Permit("another node", (), is_peer=True)


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    locks: tuple[str, ...]
    token: str = ""
    token_file: str = ""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    tokens: tuple[_Entry, ...]


def read_permits(path: str | Path) -> dict[str, Permit]:
    """Return the permits that a file has, by their tokens. Raises BadTokenFile, which quotes no token."""
    entries = _read(Path(path)).tokens
    if not entries:
        raise BadTokenFile(f"{path} has no tokens: name one at least.")
    permits: dict[str, Permit] = {}
    for entry in entries:
        token = _token(entry, Path(path))
        if token in permits:
            raise BadTokenFile(f"{path}: {entry.name!r} has the token of {permits[token].name!r}. Give each its own.")
        permits[token] = Permit(entry.name, entry.locks)
    return permits


def with_peers(permits: Mapping[str, Permit], peer_token: str | None) -> dict[str, Permit]:
    """Return permits together with the one of the other nodes. Raises BadTokenFile where a client has their token."""
    if peer_token is None:
        return dict(permits)
    if peer_token in permits:
        raise BadTokenFile(f"The token of the nodes is that of {permits[peer_token].name!r} too. Give each its own.")
    return {**permits, peer_token: PEER}


def allowed(permit: Permit, names: Iterable[str]) -> set[str]:
    """Return those of some names that a permit grants."""
    return {name for name in names if permit.allows(name)}


def _read(path: Path) -> _File:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_File)
    except OSError as error:
        raise BadTokenFile(f"{path} cannot be read: {error.strerror}.") from error
    except (msgspec.MsgspecError, UnicodeError):  # whose messages, and contexts, may quote a token
        raise BadTokenFile(
            f'{path} is no file of tokens. It is JSON: {{"tokens": [{{"name": …, "token": …, "locks": [""]}}]}}.'
        ) from None


def _token(entry: _Entry, path: Path) -> str:
    if bool(entry.token) == bool(entry.token_file):
        raise BadTokenFile(f"{path}: {entry.name!r} needs a token or a token_file, and not both.")
    if entry.token_file:
        return read_token(path.parent / entry.token_file)
    return checked_token(entry.token, f"{path}, {entry.name!r},")
