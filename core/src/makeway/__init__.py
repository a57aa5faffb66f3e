"""Preemption and gang scheduling policies as plugins."""
