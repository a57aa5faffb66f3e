"""Preemption and gang scheduling policies as plugins."""

__version__ = "0.1.0"
"""Of all distributions of this repository: each takes it from here when it is built."""
