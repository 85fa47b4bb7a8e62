"""The journal in a database: a conditional batch adds what callers did, and moves the head row that guards it.

    task_stores      one row a store: the epoch of the one who has it open, and where its records begin
    task_journal     a partition a segment: a head row (epoch, version, last), and behind it the commits, in order
    task_snapshots   a partition a snapshot

Opening takes the next epoch, first in the store's row, then in the head row of the segment that is being written. From then on
every batch of the former writer is refused, whatever it was about to do: it is fenced, and answers no more. Each batch
moves its head row's version, so one whose outcome is unknown is settled by committing it again: it applies only once, and a
late attempt finds the version moved.

It is written over the verb, and so works on Cassandra and on the embedded store alike.
"""

from __future__ import annotations

from .journal import DatabaseJournal

__all__ = ["DatabaseJournal"]
