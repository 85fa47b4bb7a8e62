"""What slotkeeper costs, each figure beside its floor of the same run: `python -m bench` in the folder `tests`.

The floor is what an acquire costs elsewhere: the raw driver, one conditional batch an operation. A *cycle* is an acquire and a
release, so the floor in cycles is half its transactions. A figure is the median of some rounds, and a ratio is the median of
the ratios of each round: the machine's mood changes between rounds, and less within one.
"""
