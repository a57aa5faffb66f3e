"""Turn events into actions: the one place where state changes.

No clock, no I/O, no chance: a world (`makeway.worlds`) says what time it is and what happened.
"""
