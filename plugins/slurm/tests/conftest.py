"""Fixtures for tests of Slurm's files at the command line."""

from __future__ import annotations

from makeway_testing.command_fixtures import config, run, workload

__all__ = ["config", "run", "workload"]
