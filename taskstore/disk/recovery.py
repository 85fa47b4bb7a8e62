"""What a directory holds: the records in order, what was dropped, and what is damaged. Reads only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..record import Record, decode
from .files import LOCK, WORKING
from .reading import LOG, SNAPSHOT, Head, Piece, checksum, number_of, read

ASIDE = "aside-"


@dataclass(slots=True)
class Found:
    """A directory as it was found. `told` loses nothing that was acknowledged; `damage` does.

    `number`, `sequence` and `crc` say where it ends; `spent` are files that are not needed any more.
    """

    directory: Path
    journal: str = ""
    number: int = 0
    sequence: int = 0
    crc: int = 0
    segments: int = 0
    records: int = 0
    told: list[str] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)
    spent: list[Path] = field(default_factory=list)


def look(directory: Path, take: Callable[[Record], None], *, born: bool) -> Found:
    """Read everything, and give `take` each record in order, as far as nothing is damaged."""
    found = Found(directory)
    logs, snapshots = _files(found)
    if not logs and not snapshots:
        if born:
            found.damage.append(f"{directory} has had a journal, and no file of it is left")
        return found
    first = _read_snapshots(found, snapshots, take)
    found.spent += [path for number, path in logs.items() if number < first]
    _check_complete(found, [number for number in logs if number >= first], first)
    pieces = _pieces([logs[number] for number in sorted(logs) if number >= first])
    for piece, following, is_last in pieces:
        if found.damage:
            return found
        _check_beginning(found, piece)
        if following is not None:
            _check_middle(found, piece, following)
        elif is_last:
            _check_last(found, piece)
        _take(found, piece, take)
    return found


def _files(found: Found) -> tuple[dict[int, Path], dict[int, Path]]:
    """Return segments and snapshots by number."""
    kinds: dict[str, dict[int, Path]] = {LOG: {}, SNAPSHOT: {}}
    for path in sorted(found.directory.iterdir()):
        if path.suffix == WORKING:
            found.told.append(f"{path.name}: left over by a process that died before it was ready; not needed")
            found.spent.append(path)
        elif path.suffix in kinds and path.name.split(".")[0].isdecimal():
            kinds[path.suffix][number_of(path)] = path
        elif path.name != LOCK and not path.name.startswith(ASIDE):
            found.told.append(f"{path.name}: no file of a journal; left alone")
    return kinds[LOG], kinds[SNAPSHOT]


def _pieces(paths: list[Path]) -> Iterator[tuple[Piece, Head | None, bool]]:
    """Read segment after segment, each with what the following one says of its end, and whether it is the last."""
    following: Piece | None = read(paths[0]) if paths else None
    for index, path in enumerate(paths):
        piece = following or read(path)
        following = read(paths[index + 1]) if index + 1 < len(paths) else None
        head = following.head if following is not None else None
        if head is None or piece.head is None or head.journal != piece.head.journal:
            yield piece, None, following is None
            continue
        if head.sequence < piece.sequence:
            piece = read(path, head.sequence)  # what lies behind was given up, and never acknowledged
        yield piece, head, False


def _read_snapshots(found: Found, snapshots: dict[int, Path], take: Callable[[Record], None]) -> int:
    """Take the newest snapshot in. Return the number of the segment that goes on from there."""
    if not snapshots:
        return 1
    newest = max(snapshots)
    found.spent += [path for number, path in snapshots.items() if number < newest]
    piece = read(snapshots[newest])
    if (why := _broken_snapshot(piece, newest)) is not None:
        found.damage.append(f"{piece.name} {why}")
        return newest
    assert piece.head is not None
    found.journal, found.sequence, found.crc = piece.head.journal, piece.head.sequence, piece.head.crc
    _give(found, piece, take)
    return newest


def _broken_snapshot(piece: Piece, number: int) -> str | None:
    if piece.size == 0:
        return "is empty"
    if piece.head is None:
        return "has no head that can be read"
    if piece.broken_at is not None:
        return f"cannot be read from byte {piece.broken_at} of {piece.size} on"
    if piece.end is None:
        return f"breaks off after {len(piece.frames)} records"
    whole = (piece.end.count, piece.end.crc) == (len(piece.frames), checksum([frame.crc for frame in piece.frames]))
    return None if whole and piece.head.number == number else "has another checksum than it says"


def _check_complete(found: Found, numbers: list[int], first: int) -> None:
    last = max(numbers, default=first - 1)
    missing = sorted(set(range(first, last + 1)) - set(numbers)) or ([] if numbers else [first])
    found.damage += [f"segment {number:010d}{LOG} is missing" for number in missing]


def _check_beginning(found: Found, piece: Piece) -> None:
    head, number = piece.head, number_of(piece.path)
    found.number = number
    if head is None:
        found.damage.append(f"{piece.name} has no head that can be read, of {piece.size} bytes")
        return
    if found.segments == 0 and not found.journal:
        found.journal = head.journal
    if (head.journal, head.number) != (found.journal, number):
        found.damage.append(f"{piece.name} is segment {head.number} of the journal {head.journal}: not of this one")
    elif (head.sequence, head.crc) != (found.sequence, found.crc):
        found.damage.append(
            f"{piece.name} goes on behind record {head.sequence}, but {found.sequence} is the last before"
        )


def _check_middle(found: Found, piece: Piece, following: Head) -> None:
    if (piece.sequence, piece.crc) != (following.sequence, following.crc):
        at = piece.size if piece.broken_at is None else piece.broken_at
        found.damage.append(_acknowledged(piece, at, following.sequence))


def _check_last(found: Found, piece: Piece) -> None:
    """Tell a torn tail, which nobody was told of, from the loss of what had been acknowledged."""
    if piece.end is not None and piece.end.following:
        found.damage.append(f"segment {piece.end.following:010d}{LOG} is missing: {piece.name} says that it follows")
    elif piece.broken_at is not None and piece.lost_to > piece.sequence:
        found.damage.append(_acknowledged(piece, piece.broken_at, piece.lost_to))
    elif piece.broken_at is not None:
        found.told.append(
            f"{piece.name}: {piece.size - piece.broken_at} bytes at byte {piece.broken_at} are the torn end of a"
            " change that was never acknowledged; dropped"
        )


def _acknowledged(piece: Piece, at: int, last: int) -> str:
    return (
        f"{piece.name} cannot be read from byte {at} of {piece.size} on: records {piece.sequence + 1}"
        f" to {max(last, piece.sequence + 1)} had been acknowledged"
    )


def _take(found: Found, piece: Piece, take: Callable[[Record], None]) -> None:
    if found.damage:
        return
    found.segments += 1
    _give(found, piece, take)
    found.sequence, found.crc = piece.sequence, piece.crc


def _give(found: Found, piece: Piece, take: Callable[[Record], None]) -> None:
    """Hand a file's records over. One that is whole but does not fit what came before is damage too."""
    try:
        for frame in piece.frames:
            take(decode(frame.payload))
    except (ValueError, KeyError) as error:
        found.damage.append(f"{piece.name} has a record that does not follow from those before it ({error})")
    found.records += len(piece.frames)
