"""Run the suite: ``python -m benchmarks``."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from suite import main

main()
