"""A simulator that cannot fail shows nothing: each rule of the protocol, taken out, is missed within 100,000 schedules."""

from __future__ import annotations

import pytest
from simulator.faults import FAULTS, Fault
from simulator.running import first_violation

MOST = 100_000


@pytest.mark.timeout(900)  # one that hides well takes minutes on a busy machine
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_planted_fault_is_found(fault: Fault) -> None:
    violation, run = first_violation(range(MOST), fault)

    assert violation is not None, f"not found in {run} schedules"
    assert violation.count("\n") > 1, "its history is told"
