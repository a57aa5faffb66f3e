"""The base of every error that makeway raises on purpose; it imports nothing, so that small programs may raise one."""

from __future__ import annotations


class MakewayError(Exception):
    """Base of every error that makeway raises on purpose; printed without a traceback."""
