"""Let ``python -m makeway`` be the command ``makeway``, which the distribution `makeway` brings."""

from __future__ import annotations

import importlib
import importlib.util
import sys


def main() -> None:
    """Run the command; without it, say who brings it."""
    if importlib.util.find_spec("makeway_app") is None:
        sys.exit(
            "makeway: the distribution makeway brings the command, and it is not installed: pip install makeway"
        )
    importlib.import_module("makeway_app.start").main()


if __name__ == "__main__":
    main()
