"""A small cluster with two jobs, of which one displaces the other, and makeway's command line."""

from __future__ import annotations

from makeway_testing.command_fixtures import config, run, with_jobs, workload

__all__ = ["config", "run", "with_jobs", "workload"]
