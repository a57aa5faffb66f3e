"""Turn events into actions: the one place where state changes.

No clock, no I/O, no chance: a world (`makeway.runners`) says what time it is and what happened.
"""
