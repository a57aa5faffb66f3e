"""Let ``python -m makeway`` be the command ``makeway``."""

from __future__ import annotations

from makeway.cli import main

if __name__ == "__main__":
    main()
