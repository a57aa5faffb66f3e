"""The arbiter that comes with makeway keeps the contract of gang arbiters."""

from __future__ import annotations

from makeway_testing.contracts import GangContract
from makeway_testing.strategies import STRICT_RULES


class TestTimeslice(GangContract):
    """Slurm's defects switched off: what excuses them is stated, and tested, elsewhere."""

    __test__ = True
    plugin = "gang/timeslice"
    settings = {"timeslice": 10.0}  # noqa: RUF012 - written as a plugin's author would
    config = {"rules": STRICT_RULES}  # noqa: RUF012 - as above
    timeslice = 10.0
    slack = 1  # the first holder is promoted by an event, and cycled once more (slurm-gang-and-select 3.3)
