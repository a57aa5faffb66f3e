"""Define what plugins build for a run: selectors and gang arbiters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from makeway.bitmap import NodeBits
from makeway.model.answers import Blocked, Forecast, GangOrder, Stay
from makeway.model.jobs import Job
from makeway.model.values import PreemptMode, Seconds
from makeway.model.views import Attempt, ClusterView


class Selector(Protocol):
    """Finds nodes and cores; built once per run, keeps books from what it is told.

    The engine calls the five notices below exactly when a job starts, ends, or is stopped or
    continued; a selector that derives all from the view may ignore them. Six attributes say what else differs:
    ``suspension_frees_memory = True``: suspended jobs give back their memory, as some schedulers let them;
    ``takes_completing_required = True``: a job may have the nodes that it requires while another is still being
    cleaned from them;
    ``shares_whole_nodes = True``: where jobs share, it counts the jobs of a node, whatever their partitions;
    ``gives_whole_nodes = True``: every job gets all CPUs of its nodes, whatever it asks for;
    ``ignores_time_limits = True``: neither time nor the time limit bears on where a job fits now, and a job that
    wants one node and finds no room finds none after others have started;
    ``only_fills_up = True``: the same holds of a job that wants several nodes.

    A method ``could_run_on(job, nodes)`` may say whether a job could run on some nodes if they were idle. Without it
    the engine begins an attempt and takes all others away.
    """

    def placed(self, job: Job) -> None:
        """Take note that `job` now holds `job.allocation`."""

    def released(self, job: Job) -> None:
        """Take note that `job` gives back `job.allocation` (called while it is still set)."""

    def suspended(self, job: Job) -> None:
        """Take note that `job` was stopped; `job.suspended_by` says by what."""

    def resumed(self, job: Job) -> None:
        """Take note that `job` continues (called while `job.suspended_by` is still set)."""

    def screen(self, jobs: Sequence[Job], nodes: NodeBits) -> Sequence[Job]:
        """Return those of `jobs`, order kept, that might start now on `nodes` without preemption.

        Only a filter to save work: a job that is kept is still attempted.
        """

    def attempt(self, job: Job, nodes: NodeBits, view: ClusterView) -> Attempt:
        """Begin an attempt to place `job` on `nodes`, the nodes that it may use at this instant."""

    def forecast(
        self,
        job: Job,
        nodes: NodeBits,
        view: ClusterView,
        removable: Sequence[tuple[Job, PreemptMode]],
    ) -> Forecast | None:
        """Say when `job` could start on `nodes`; None: not for as long as can be seen.

        First as things stand, then with all of `removable` gone, then as jobs reach their `end_at`.
        """

    def possible(self, job: Job, view: ClusterView) -> Blocked | None:
        """Say why `job` could not run even on the empty cluster with all nodes in service; None: it could."""


class Gang(Protocol):
    """Decides which jobs are active on shared resources; built once per run, keeps its own rows.

    Each call returns orders in the sequence in which they are to be carried out.
    """

    @property
    def next_tick(self) -> Seconds | None:
        """When it wants to be called next; None: not by the clock."""

    def started(self, job: Job, view: ClusterView) -> Sequence[GangOrder]:
        """A job started, or was resumed by a person."""

    def ended(self, job: Job, view: ClusterView) -> Sequence[GangOrder]:
        """A job left its nodes for good, was requeued, or was suspended by a person."""

    def held(self, job: Job, view: ClusterView) -> Sequence[GangOrder]:
        """A person held or released an active job, or suspended one that the arbiter itself had stopped."""

    def tick(self, view: ClusterView) -> Iterable[GangOrder]:
        """`next_tick` has come. Each order is carried out before the next is asked for."""

    def before_pass(self, view: ClusterView) -> Iterable[GangOrder]:
        """A scheduling pass is about to begin. Each order is carried out before the next is asked for."""

    def after_pass(self, view: ClusterView) -> Iterable[GangOrder]:
        """A scheduling pass is over: what pending jobs could use, they have. May be left out.

        Each order is carried out before the next is asked for, so that an iterator sees what it changed.
        """


class TellingGang(Gang, Protocol):
    """A gang that says why suspended jobs stay suspended; for others, what runs on a job's cores is told."""

    def stays(self, job: Job, view: ClusterView) -> Iterable[Stay]:
        """Say why a suspended job is not resumed now, each reason by itself; nothing is decided by it.

        Asked about one job at a time: about one that people want to know of, and about those that are still
        suspended when nothing happens any more.
        """


class QueuedGang(Gang, Protocol):
    """A gang whose suspended jobs wait in the queue beside pending ones, each with a turn of its own.

    For schedulers to which a suspended job is a job that waits to run: what goes on, and what starts, is then
    one order. `QueueOrder.sort` is given the waiting jobs of both kinds.
    """

    def waiting(self, view: ClusterView) -> Sequence[Job]:
        """Return the suspended jobs that want a turn in the pass that begins."""

    def turn(self, job: Job, view: ClusterView) -> Iterable[GangOrder]:
        """The turn of `job` has come: order it to resume, or others to make way for it, or nothing.

        Each order is carried out before the next is asked for. Once a job made way for another, suspended or
        pending, the pass goes through the queue again from its head (scheduler `greedy` only).
        """
