"""What the reference's tests pin of its lock table, and a few things that they leave open, on both faces."""

from __future__ import annotations

import doctest

from slotkeeper import locktable


def test_the_package_tells_a_story_that_runs() -> None:
    results = doctest.testmod(locktable)
    assert results.attempted > 0
    assert results.failed == 0
