"""A deterministic simulator of a cluster of lock nodes under trouble (see `world`)."""
