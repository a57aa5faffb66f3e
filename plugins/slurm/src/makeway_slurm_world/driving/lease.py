"""The reservation that keeps all others from starting on makeway's nodes (slurm-live 1.2).

It is taken for a minute and renewed after a third of that. If it is not renewed any more, it ends by itself, and Slurm
schedules the nodes again.
"""

from __future__ import annotations

from makeway.hostlist import expand_hostlist
from makeway.model import Seconds
from makeway_slurm_world.driving import orders
from makeway_slurm_world.driving.notebook import Notebook
from makeway_slurm_world.reading.records import pairs
from makeway_slurm_world.talking.runner import Hand, SlurmError
from makeway_slurm_world.talking.words import show


class LeaseError(SlurmError):
    """The lease cannot be had."""


class Lease:
    """One reservation, for as long as it is renewed."""

    def __init__(self, hand: Hand, notebook: Notebook, name: str, nodes: str, seconds: Seconds) -> None:
        self._hand = hand
        self._notebook = notebook
        self.name = name
        self.nodes = nodes
        self.seconds = seconds
        self.renew_at: Seconds = 0.0

    def take(self, now: Seconds) -> None:
        """Take it, or go on with the one that the notebook says is ours.

        :raises LeaseError: the reservation of that name is not ours, or Slurm refuses.
        :raises Away: the controller does not answer.
        """
        there = reservation(self._hand, self.name)
        if there is not None and self._notebook.pages.lease != self.name:
            text = (
                f"there is a reservation {self.name!r} already, on {there.get('Nodes')}, which is not of this state "
                f"directory; end the other makeway, or name another by world.settings.reservation"
            )
            raise LeaseError(text)
        self._notebook.lease(self.name, self.nodes)
        if there is not None and set(expand_hostlist(there.get("Nodes", ""))) == set(
            expand_hostlist(self.nodes)
        ):
            answer = self._hand.tell(orders.renew_lease(self.name, self.seconds))
        elif there is not None:
            self._hand.tell(orders.shrink_lease(self.name, self.nodes))
            answer = self._hand.tell(orders.renew_lease(self.name, self.seconds))
        else:
            answer = self._hand.tell(orders.take_lease(self.name, self.nodes, self.seconds))
        if not answer.good:
            raise LeaseError(f"the lease cannot be had: {answer.text}")
        self.renew_at = now + self.seconds / 3

    def renew(self, now: Seconds) -> str:
        """Renew it if that is due; take it anew if it is gone.

        :returns: what went wrong; empty: nothing.
        :raises Away: the controller does not answer.
        """
        if now < self.renew_at:
            return ""
        answer = self._hand.tell(orders.renew_lease(self.name, self.seconds))
        if not answer.good:
            answer = self._hand.tell(orders.take_lease(self.name, self.nodes, self.seconds))
        if not answer.good:
            return f"the lease cannot be renewed: {answer.text}"
        self.renew_at = now + self.seconds / 3
        return ""


def reservation(hand: Hand, name: str) -> dict[str, str] | None:
    """Return the fields of a reservation; None: there is none of that name."""
    text = hand.ask(show("res")).out
    found = (pairs(line) for line in text.splitlines())
    return next((each for each in found if each.get("ReservationName") == name), None)
