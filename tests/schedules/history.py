"""What happened in a schedule, in words: `t=0.412 c1 commit #7 grant token 1 -> o2 v12 | applied, answer lost`."""

from __future__ import annotations

from dataclasses import dataclass, field


class Violation(AssertionError):
    """A promise was broken."""


@dataclass(slots=True)
class History:
    """The lines of a schedule."""

    lines: list[str] = field(default_factory=list)

    def note(self, at: float, who: str, text: str) -> None:
        """Write a line down."""
        self.lines.append(f"t={at:<9.4f} {who:<6} {text}")

    def __str__(self) -> str:
        return "\n".join(self.lines)
