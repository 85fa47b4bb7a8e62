"""What the simulators share: the ground that a schedule stands on, the trouble on the way to a database, running by seed.

`simulator` builds the semaphores' world on it, `locksimulator` the lock nodes'. The scheduler, the port and the store are the
product's own: `slotkeeper.database.simulated`.
"""
