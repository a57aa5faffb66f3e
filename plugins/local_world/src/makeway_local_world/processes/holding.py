"""Say what those who work for the hand may ask of it, so that they need not know all of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from makeway.worlds.events import Action
from makeway_local_world.processes.case import Case
from makeway_local_world.processes.news import News
from makeway_local_world.processes.orders import Orders
from makeway_local_world.processes.rundir import Key
from makeway_local_world.processes.site import Site


class Holding(Protocol):
    """Who holds on to the keepers; `makeway_local_world.processes.hand.Hand` is it."""

    site: Site
    cases: dict[Key, Case]
    unreadable: set[Key]
    orders: Orders
    batch: list[Action]

    def tell(self, news: News, /) -> None:
        """Pass on a piece of news."""

    def later(self, seconds: float, what: Callable[[], None]) -> None:
        """Have something called after some time."""

    def refused(self, key: Key, action: Action, why: str, *, retry: bool = True) -> None:
        """An action cannot be done."""

    def done(self, key: Key, action: Action) -> None:
        """An action is done."""

    def watch(self, case: Case) -> None:
        """Hear from its keeper from now on."""

    def let_go(self, case: Case) -> None:
        """Let go of an incarnation that is over."""

    def gone(self, case: Case) -> None:
        """The keeper has ended, or will never be there."""

    def call_again(self, case: Case) -> None:
        """Call a keeper that has hung up and lives."""
