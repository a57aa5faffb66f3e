"""Let ``python -m makeway_checkpointable`` be the command."""

from __future__ import annotations

from makeway_checkpointable.command import checkpointable

if __name__ == "__main__":
    checkpointable(prog_name="makeway checkpointable")
