"""A deterministic simulator of semaphores under trouble (see `world`)."""
