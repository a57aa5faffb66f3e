"""Fixtures for tests of the command line: run it, and put made-up distributions on the path."""

from __future__ import annotations

from makeway_testing.command_fixtures import install, run

__all__ = ["install", "run"]
