"""The simulated world keeps the contract of runners."""

from __future__ import annotations

from collections.abc import Mapping

from makeway.hookspecs import hookimpl
from makeway.runners.api import RunnerFactory
from makeway_app.runners.simulated import SimulatedRunner
from makeway_testing.contracts import RunnerContract


class Simulated:
    """Offers the world that makeway runs in by itself."""

    @hookimpl
    def makeway_runners(self) -> Mapping[str, RunnerFactory]:
        """List it."""
        return {"simulated": SimulatedRunner}


class TestSimulated(RunnerContract):
    """It agrees with itself, too."""

    __test__ = True
    plugin = "runner/simulated"
    module = Simulated()
