"""Run makeway's command line within a test."""

from __future__ import annotations

from makeway_testing.command_fixtures import run

__all__ = ["run"]
