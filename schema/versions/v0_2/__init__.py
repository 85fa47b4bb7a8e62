"""Version 0.2: the journals of task stores."""
