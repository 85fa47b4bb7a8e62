"""A simulator that cannot fail shows nothing: each rule of the lock nodes, taken out, is missed within 20,000 schedules."""

from __future__ import annotations

import pytest
from locksimulator.faults import FAULTS, Fault
from locksimulator.running import first_violation

MOST = 20_000


@pytest.mark.timeout(900)  # one that hides well takes minutes on a busy machine
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_planted_fault_of_lock_nodes_is_found(fault: Fault) -> None:
    violation, run = first_violation(range(MOST), fault)

    assert violation is not None, f"not found in {run} schedules"
    assert violation.count("\n") > 1, "its history is told"
