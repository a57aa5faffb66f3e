"""Keep the old face of the simulated world, `makeway_app.worlds.simulated`."""

from __future__ import annotations

from collections.abc import Sequence

from makeway.model import Seconds
from makeway.worlds.events import Action
from makeway_app.worlds.simulated import SimulatedWorld


class SimulatedRunner(SimulatedWorld):
    """The simulated world as a runner, which acts rather than performs."""

    def act(self, actions: Sequence[Action], now: Seconds) -> None:
        """Perform `actions`."""
        self.perform(actions, now)


__all__ = ["SimulatedRunner"]
