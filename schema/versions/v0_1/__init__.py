"""Version 0.1: semaphores and their tokens."""
