"""Preemption and gang scheduling policies as plugins."""

from makeway import moved

moved.install()
