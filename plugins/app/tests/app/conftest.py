"""Fixtures for tests of the command line: run it, and put made-up distributions on the path."""

from __future__ import annotations

from makeway_testing.command_fixtures import config, install, run, with_jobs, workload

__all__ = ["config", "install", "run", "with_jobs", "workload"]
