"""The versions that this program knows, from their folders.

A folder `v0_1` has a `manifest.json`, with the files of each dialect in order, and the tables as that version leaves them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

import msgspec

from ..database import Kind, Table
from . import versions
from .errors import UnknownVersion
from .statement import Statement, split
from .version import Version


class _Columns(msgspec.Struct, forbid_unknown_fields=True):
    partition: dict[str, Kind]
    clustering: dict[str, Kind]
    values: dict[str, Kind]


class _Manifest(msgspec.Struct, rename="pascal", forbid_unknown_fields=True):
    curr_version: str
    min_compatible_version: str
    description: str
    files: dict[str, list[str]]
    tables: dict[str, _Columns]


@dataclass(frozen=True, slots=True)
class Migration:
    """One version: the statements that lead to it from the version before, and the tables as it leaves them."""

    version: Version
    min_compatible: Version
    description: str
    statements: Mapping[str, tuple[Statement, ...]]
    tables: tuple[Table, ...]
    md5: str


@dataclass(frozen=True, slots=True)
class Migrations:
    """All versions that a program knows, oldest first."""

    known: tuple[Migration, ...]

    @property
    def newest(self) -> Version:
        """The version that the program works with."""
        return self.known[-1].version

    def between(self, installed: Version | None, to: Version) -> tuple[Migration, ...]:
        """Return the steps from the installed version (None: an empty keyspace) up to another one."""
        return tuple(m for m in self.known if (installed is None or m.version > installed) and m.version <= to)

    def check_known(self, version: Version) -> Version:
        """Return the version. Raises UnknownVersion for one that the program does not know."""
        known = tuple(migration.version for migration in self.known)
        if version not in known:
            raise UnknownVersion(version, known)
        return version


def load(root: Traversable) -> Migrations:
    """Read the version folders of a directory. Raises ValueError when one of them is wrong."""
    folders = [folder for folder in root.iterdir() if folder.is_dir() and folder.name.startswith("v")]
    found = sorted((_migration(folder) for folder in folders), key=lambda migration: migration.version)
    if not found:
        raise ValueError(f"{root} has no schema version")
    return Migrations(tuple(found))


@cache
def shipped() -> Migrations:
    """Return the versions that come with the program."""
    return load(files(versions))


def _migration(folder: Traversable) -> Migration:
    raw = (folder / "manifest.json").read_bytes()
    manifest = msgspec.json.decode(raw, type=_Manifest)
    version = Version.parse(manifest.curr_version)
    if folder.name != f"v{version.major}_{version.minor}":
        raise ValueError(f"the folder {folder.name} has the manifest of version {version}")
    texts = {
        dialect: [(folder / name).read_text(encoding="utf-8") for name in names]
        for dialect, names in manifest.files.items()
    }
    return Migration(
        version,
        Version.parse(manifest.min_compatible_version),
        manifest.description,
        {dialect: tuple(s for text in parts for s in split(text)) for dialect, parts in texts.items()},
        tuple(Table(name, c.partition, c.clustering, c.values) for name, c in manifest.tables.items()),
        _md5(raw, (text for parts in texts.values() for text in parts)),
    )


def _md5(raw: bytes, texts: Iterable[str]) -> str:
    digest = hashlib.md5(raw, usedforsecurity=False)
    for text in texts:
        digest.update(text.encode())
    return digest.hexdigest()
