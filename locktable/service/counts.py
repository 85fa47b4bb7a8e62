"""What a lock service counts of what its own clients ask."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Counts:
    """Since the service began. `lost`: renewals that came too late."""

    granted: int = 0
    renewed: int = 0
    released: int = 0
    lost: int = 0
