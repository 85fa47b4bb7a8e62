"""Version 0.3: the clusters of lock nodes."""
