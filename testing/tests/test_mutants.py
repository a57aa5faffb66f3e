"""The contracts catch policies that are broken on purpose, and name the rule."""

from __future__ import annotations

import datetime
import importlib
import itertools
import time
import unittest
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

import makeway_search_least_disruption as search_least_disruption
from makeway import bitmap
from makeway.foreign import Dialect, ForeignWorkload, Source
from makeway.hookspecs import alike_by, hookimpl
from makeway.model import (
    Allocation,
    Attempt,
    Candidates,
    Choice,
    ClusterView,
    Gang,
    GangOrder,
    GangVerb,
    Job,
    JobSpec,
    Placement,
    PreemptMode,
    QueueOrder,
    Selector,
)
from makeway.registry import load
from makeway_app.worlds.simulated import PacedWorld
from makeway_slurm import gang_timeslice
from makeway_testing.contracts import (
    Contract,
    ContractError,
    GangContract,
    PreemptPolicyContract,
    ProtectContract,
    SearchContract,
    SelectContract,
    WorkloadReaderContract,
    WorldContract,
)


def named(jobs: Sequence[Job], modes: Sequence[PreemptMode] | None = None) -> Candidates:
    """Return candidates that are requeued."""
    listed = modes if modes is not None else (PreemptMode.REQUEUE,) * len(jobs)
    return Candidates(jobs=tuple(jobs), modes=tuple(listed))


def below(preemptor: Job, active: Sequence[Job]) -> list[Job]:
    """Return the jobs of lower tiers: a rule without fault."""
    return [job for job in active if job.partition.priority_tier < preemptor.partition.priority_tier]


# ------------------------------------------------------------------------------ preempt policies
class Sound:
    """Breaks nothing: what the others are measured against."""

    @hookimpl
    def makeway_preempt_candidates(self, preemptor: Job, active: Sequence[Job]) -> Any:
        """Lower tiers, the youngest first."""
        return named(sorted(below(preemptor, active), key=lambda job: (-(job.started_at or 0), job.index)))


class Twice:
    """Names the first candidate twice."""

    @hookimpl
    def makeway_preempt_candidates(self, preemptor: Job, active: Sequence[Job]) -> Any:
        """Break the rule."""
        jobs = below(preemptor, active)
        return named(jobs + jobs[:1])


class Pending:
    """Names jobs that wait themselves."""

    @hookimpl
    def makeway_preempt_candidates(self, preemptor: Job, active: Sequence[Job], view: ClusterView) -> Any:
        """Break the rule."""
        return named([*below(preemptor, active), *(job for job in view.pending if job is not preemptor)])


class Remembered:
    """Names jobs that it saw earlier and that may have ended since."""

    def __init__(self) -> None:
        self._seen: dict[int, Job] = {}

    @hookimpl
    def makeway_preempt_candidates(self, preemptor: Job, active: Sequence[Job]) -> Any:
        """Break the rule."""
        self._seen.update((id(job), job) for job in below(preemptor, active))
        return named(list(self._seen.values()))


class ShortOfModes:
    """Has one mode for all."""

    @hookimpl
    def makeway_preempt_candidates(self, preemptor: Job, active: Sequence[Job]) -> Any:
        """Break the rule."""
        return named(below(preemptor, active), [PreemptMode.REQUEUE])


class DoesNothing:
    """Names candidates to which nothing is done."""

    @hookimpl
    def makeway_preempt_candidates(self, preemptor: Job, active: Sequence[Job]) -> Any:
        """Break the rule."""
        jobs = below(preemptor, active)
        return named(jobs, [PreemptMode.OFF] * len(jobs))


class BareTuple:
    """Answers with jobs where Candidates are wanted."""

    @hookimpl
    def makeway_preempt_candidates(self, preemptor: Job, active: Sequence[Job]) -> Any:
        """Break the rule."""
        return tuple(below(preemptor, active))


class Counting:
    """Turns its order around every other time."""

    def __init__(self) -> None:
        self._asked = itertools.count()

    @hookimpl
    def makeway_preempt_candidates(self, preemptor: Job, active: Sequence[Job]) -> Any:
        """Break the rule."""
        jobs = below(preemptor, active)
        return named(jobs if next(self._asked) % 2 else jobs[::-1])


class LastAsker:
    """Spares jobs that asked before."""

    def __init__(self) -> None:
        self._last = ""

    @hookimpl
    def makeway_preempt_candidates(self, preemptor: Job, active: Sequence[Job]) -> Any:
        """Break the rule."""
        jobs = below(preemptor, active)
        answer = named(jobs if self._last in ("", preemptor.id) else jobs[1:])
        self._last = preemptor.id
        return answer


class SetOrder:
    """Leaves the order to a set of jobs."""

    @hookimpl
    def makeway_preempt_candidates(self, preemptor: Job, active: Sequence[Job]) -> Any:
        """Break the rule."""
        return named(list({*below(preemptor, active)}))


class SetOfIds:
    """Leaves the order to a set of ids."""

    @hookimpl
    def makeway_preempt_candidates(self, preemptor: Job, active: Sequence[Job]) -> Any:
        """Break the rule."""
        jobs = {job.id: job for job in below(preemptor, active)}
        return named([jobs[each] for each in frozenset(jobs)])


class WallClock:
    """Displaces no job in odd seconds of the computer's clock."""

    @hookimpl
    def makeway_preempt_candidates(self, preemptor: Job, active: Sequence[Job]) -> Any:
        """Break the rule."""
        return named(below(preemptor, active) if int(time.time()) % 2 else [])


class Weekday:
    """Displaces no job on Sundays, by the computer's calendar."""

    @hookimpl
    def makeway_preempt_candidates(self, preemptor: Job, active: Sequence[Job]) -> Any:
        """Break the rule."""
        today = datetime.datetime.now(datetime.UTC)
        return named([] if today.weekday() == 6 else below(preemptor, active))


class Mutating:
    """Writes into a job what it found out about it."""

    @hookimpl
    def makeway_preempt_candidates(self, preemptor: Job, active: Sequence[Job]) -> Any:
        """Break the rule."""
        jobs = below(preemptor, active)
        for job in jobs:
            object.__setattr__(job, "marks", job.marks | {f"for {preemptor.id} no. {len(job.marks)}"})
        return named(jobs)


class Position:
    """Spares the job that is listed first."""

    @hookimpl
    def makeway_preempt_candidates(self, preemptor: Job, active: Sequence[Job]) -> Any:
        """Break the rule."""
        return named(below(preemptor, active[1:]))


class Raising:
    """Expects what need not be there."""

    @hookimpl
    def makeway_preempt_candidates(self, preemptor: Job, active: Sequence[Job]) -> Any:
        """Break the rule."""
        limit = preemptor.time_limit
        return named([job for job in below(preemptor, active) if (job.time_limit or 0) > limit])  # type: ignore[operator]  # the defect


class InCircles:
    """Lets any job displace any other."""

    @hookimpl
    def makeway_preempt_candidates(self, active: Sequence[Job]) -> Any:
        """Break the rule."""
        return named(active)


class FirstAlone:
    """The first in the queue, and no other."""

    def __init__(self) -> None:
        self._waiting: dict[int, Job] = {}
        self._named = False

    def forget(self) -> None:
        """No job waits."""
        self._waiting.clear()

    def came(self, job: Job) -> None:
        """One more waits."""
        self._waiting[job.index] = job

    def left(self, job: Job) -> None:
        """One fewer does."""
        del self._waiting[job.index]

    def waits(self, job: Job) -> None:
        """Its reason does not matter."""

    def begin(self, *, alone: bool, every_job: bool) -> bool:
        """Name a job in every pass."""
        self._named = False
        return True

    def next(self) -> Job | None:
        """Name the first."""
        self._named, named = True, self._named
        return None if named else self._waiting[min(self._waiting)]

    def waits_as_before(self, job: Job) -> bool:
        """No job is passed over."""
        return False

    def kind(self, job: Job) -> None:
        """No job is like another."""


class NamesTooFew(Sound):
    """It tries one job in a pass where nothing looks."""

    @hookimpl
    def makeway_queue(self) -> QueueOrder:
        """Order them as they came."""
        return AsTheyCame()


class AsTheyCame(QueueOrder):
    """Orders by submission, and names too few."""

    def sort(self, pending: Sequence[Job], view: ClusterView) -> Sequence[Job]:
        """Order them."""
        return sorted(pending, key=lambda job: job.index)

    def turns(self) -> Any:
        """Break the rule."""
        return FirstAlone()


class ProtectedWithoutReason(Sound):
    """Lists what it protects, without a word."""

    @hookimpl
    def makeway_preempt_candidates(self, preemptor: Job, active: Sequence[Job]) -> Any:
        """Break the rule."""
        lower = below(preemptor, active)
        others = [job.id for job in active if job not in lower]
        return attrs.evolve(named(lower), protected=dict.fromkeys(others, " "))


class NegativeGrace(Sound):
    """Plans a grace time below zero."""

    @hookimpl
    def makeway_preempt_action(self, victims: Sequence[Job], modes: Sequence[PreemptMode]) -> Any:
        """Break the rule."""
        from makeway.model import Plan

        return [Plan(job=job, mode=mode, grace_time=-1.0) for job, mode in zip(victims, modes, strict=True)]


class ForgetsAPlan(Sound):
    """Plans for all victims but the last."""

    @hookimpl
    def makeway_preempt_action(self, victims: Sequence[Job], modes: Sequence[PreemptMode]) -> Any:
        """Break the rule."""
        from makeway.model import Plan

        return [Plan(job=job, mode=mode) for job, mode in zip(victims, modes, strict=True)][:-1]


# ------------------------------------------------------------------------------------- searches
class AllOfOneKind:
    """Says that all preemptors of a partition may displace the same, and spares those of the preemptor's own size."""

    @hookimpl
    @alike_by(lambda view: lambda job: job.partition.name)
    def makeway_preempt_candidates(self, preemptor: Job, active: Sequence[Job]) -> Candidates:
        """Break the rule."""
        return named([job for job in below(preemptor, active) if job.size != preemptor.size])


class TakesAll:
    """Takes all candidates, needed or not."""

    @hookimpl
    def makeway_search(self, attempt: Attempt, candidates: Candidates) -> Any:
        """Break the rule."""
        for job, mode in zip(candidates.jobs, candidates.modes, strict=True):
            attempt.remove(job, mode)
        found = attempt.probe()
        if not isinstance(found, Placement):
            return None
        return Choice(placement=found, victims=tuple(range(len(candidates.jobs))))


class TakesTooFew:
    """Finds a place without all, and forgets to name the last of them."""

    @hookimpl
    def makeway_search(self, attempt: Attempt, candidates: Candidates) -> Any:
        """Break the rule."""
        choice = TakesAll().makeway_search(attempt, candidates)
        return choice and attrs.evolve(choice, victims=choice.victims[:-1])


class Beyond:
    """Takes a candidate that is not there."""

    @hookimpl
    def makeway_search(self, attempt: Attempt, candidates: Candidates) -> Any:
        """Break the rule."""
        choice = TakesAll().makeway_search(attempt, candidates)
        return choice and attrs.evolve(choice, victims=(*choice.victims, len(candidates.jobs)))


class GivesUp:
    """Looks at the first candidate only."""

    @hookimpl
    def makeway_search(self, attempt: Attempt, candidates: Candidates) -> Any:
        """Break the rule."""
        return TakesAll().makeway_search(attempt, named(candidates.jobs[:1], candidates.modes[:1]))


# -------------------------------------------------------------------------------------- selectors
class Faulty:
    """select/linear with one fault; other methods are its own."""

    def __init__(self, inner: Selector) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def attempt(self, job: Job, nodes: int, view: ClusterView) -> Any:
        """Begin an attempt that has the fault."""
        return FaultyAttempt(self._inner.attempt(job, nodes, view), self.changed, view)

    def changed(self, placed: Placement, job: Job, view: ClusterView) -> Placement:
        """Return the placement with the fault."""
        raise NotImplementedError


class FaultyAttempt:
    """An attempt whose placements are changed."""

    def __init__(self, inner: Any, change: Callable[..., Placement], view: ClusterView) -> None:
        self._inner = inner
        self._change = change
        self._view = view

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def fresh(self) -> Any:
        """Begin anew."""
        return FaultyAttempt(self._inner.fresh(), self._change, self._view)

    def probe(self) -> Any:
        """Place the job, with the fault."""
        found = self._inner.probe()
        return self._change(found, self._inner.job, self._view) if isinstance(found, Placement) else found


def on_nodes(nodes: int) -> Placement:
    """Return a placement on whole nodes."""
    return Placement(allocation=Allocation(nodes=nodes, node_indices=tuple(bitmap.indices(nodes))))


class OtherPartition(Faulty):
    """Moves jobs to the first nodes of the cluster, whosever they are."""

    def changed(self, placed: Placement, job: Job, view: ClusterView) -> Placement:
        """Break the rule."""
        return on_nodes(bitmap.full(placed.allocation.nodes.bit_count()))


class BusyNodes(Faulty):
    """Puts jobs where others run."""

    def changed(self, placed: Placement, job: Job, view: ClusterView) -> Placement:
        """Break the rule."""
        busy = [
            other for other in view.active if other.nodes.bit_count() == placed.allocation.nodes.bit_count()
        ]
        same = [other for other in busy if not other.nodes & ~job.partition.nodes]
        return on_nodes(same[0].nodes) if same else placed


class OneNodeLess(Faulty):
    """Gives large jobs a node less than they ask for."""

    def changed(self, placed: Placement, job: Job, view: ClusterView) -> Placement:
        """Break the rule."""
        nodes = placed.allocation.nodes
        return on_nodes(bitmap.first_n(nodes, nodes.bit_count() - 1)) if nodes.bit_count() > 1 else placed


class ProbingBooks(Faulty):
    """Counts its probes, and has no room in every other one."""

    def __init__(self, inner: Selector) -> None:
        super().__init__(inner)
        self._probes = 0

    def changed(self, placed: Placement, job: Job, view: ClusterView) -> Any:
        """Break the rule."""
        from makeway.model import Blocked

        self._probes += 1
        return placed if self._probes % 2 else Blocked()


class NeverGivesBack(Faulty):
    """Forgets that jobs leave: nodes once used stay taken, while others are left."""

    def __init__(self, inner: Selector) -> None:
        super().__init__(inner)
        self._used = 0

    def placed(self, job: Job) -> None:
        """Remember the nodes for ever."""
        self._used |= job.nodes
        self._inner.placed(job)

    def changed(self, placed: Placement, job: Job, view: ClusterView) -> Placement:
        """Break the rule: take nodes that were never used, though these were the better ones."""
        new = job.partition.nodes & view.idle & ~self._used
        size = placed.allocation.nodes.bit_count()
        return on_nodes(bitmap.first_n(new, size)) if new.bit_count() >= size else placed


class ScreensAll(Faulty):
    """Lets no job of more than one node through its screen."""

    def attempt(self, job: Job, nodes: int, view: ClusterView) -> Any:
        """Begin an attempt without a fault."""
        return self._inner.attempt(job, nodes, view)

    def screen(self, jobs: Sequence[Job], nodes: int) -> Sequence[Job]:
        """Break the rule."""
        return [job for job in jobs if job.size == 1]


def selecting(fault: type[Faulty]) -> Any:
    """Return a plugin that selects as select/linear does, but for the fault."""

    class Plugin:
        @hookimpl
        def makeway_selector(self, view: ClusterView) -> Any:
            """Build it."""
            return fault(load("select/linear").makeway_selector(view))

    return Plugin()


# --------------------------------------------------------------------------------------- arbiters
class FaultyGang:
    """gang/timeslice with one fault."""

    def __init__(self, inner: Gang) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @property
    def next_tick(self) -> Any:
        """As the arbiter itself."""
        return self._inner.next_tick


class NeverResumes(FaultyGang):
    """Stops jobs for good."""

    def _but_resumes(self, orders: Iterable[GangOrder]) -> Any:
        return [order for order in orders if order.verb is not GangVerb.RESUME]

    def started(self, job: Job, view: ClusterView) -> Any:
        """Break the rule."""
        return self._but_resumes(self._inner.started(job, view))

    def ended(self, job: Job, view: ClusterView) -> Any:
        """Break the rule."""
        return self._but_resumes(self._inner.ended(job, view))

    def tick(self, view: ClusterView) -> Any:
        """Break the rule."""
        return self._but_resumes(self._inner.tick(view))


class StandsStill(FaultyGang):
    """Gives no job a turn: the first stays until it ends."""

    def tick(self, view: ClusterView) -> Any:
        """Break the rule."""
        return ()


class TicksInThePast(FaultyGang):
    """Wants to have been called a second ago."""

    @property
    def next_tick(self) -> Any:
        """Break the rule."""
        at = self._inner.next_tick
        return None if at is None else at - 60.0


class StopsTwice(FaultyGang):
    """Orders every suspension twice."""

    def started(self, job: Job, view: ClusterView) -> Any:
        """Break the rule."""
        orders = list(self._inner.started(job, view))
        return orders + [order for order in orders if order.verb is GangVerb.SUSPEND]


def arbitrating(fault: type[FaultyGang]) -> Any:
    """Return a plugin that arbitrates as gang/timeslice does, but for the fault."""

    class Plugin:
        @hookimpl
        def makeway_settings(self) -> Any:
            """Name the settings."""
            return gang_timeslice.Settings

        @hookimpl
        def makeway_gang(self, view: ClusterView) -> Any:
            """Build it."""
            return fault(gang_timeslice.Timeslicer(view))

    return Plugin()


# ----------------------------------------------------------------------------------------- vetoes
class NoReason:
    """Protects without a word."""

    @hookimpl
    def makeway_protect(self, candidates: Sequence[Job]) -> Any:
        """Break the rule."""
        return {job.id: "" for job in candidates}


class Strangers:
    """Protects the preemptor."""

    @hookimpl
    def makeway_protect(self, preemptor: Job, candidates: Sequence[Job]) -> Any:
        """Break the rule."""
        return {preemptor.id: "it is important"}


class FirstOnly:
    """Protects the job that is listed first."""

    @hookimpl
    def makeway_protect(self, candidates: Sequence[Job]) -> Any:
        """Break the rule."""
        return {candidates[0].id: "it comes first"}


# ----------------------------------------------------------------------------------------- readers
SAMPLE = "id submit nodes seconds\na 0 1 60\nb 5 2 60\nc 10 1 60\n"


class Reads:
    """Reads a table; what it does with a bad row is up to those below."""

    name = "blanks"

    def claims(self, name: str, head: str) -> bool:
        """Recognise the heading."""
        return head.startswith("id submit nodes")

    def translate(self, source: Source) -> ForeignWorkload:
        """Read it."""
        found = [self.row(line) for line in source.text.splitlines()[1:]]
        return ForeignWorkload(jobs=[job for job in found if job is not None])

    def row(self, line: str) -> JobSpec | None:
        """Read a line."""
        job, submit, nodes, seconds = line.split()
        return JobSpec(id=job, submit_at=float(submit), min_nodes=int(nodes), run_time=float(seconds))


class Drops(Reads):
    """Leaves bad rows out, and says nothing."""

    def row(self, line: str) -> JobSpec | None:
        """Break the rule."""
        try:
            return super().row(line)
        except ValueError:
            return None


class ClaimsAll(Reads):
    """Takes every file for its own."""

    def claims(self, name: str, head: str) -> bool:
        """Break the rule."""
        return True


def reading(reader: type[Reads]) -> Any:
    """Return a plugin that brings a reader."""

    class Plugin:
        @hookimpl
        def makeway_dialect(self) -> Any:
            """Hand it over."""
            return Dialect(workloads=[reader()])

    return Plugin()


# ------------------------------------------------------------------------------------------ worlds
class WorksOn(PacedWorld):
    """Lets suspended jobs work on."""

    def _stop(self, job: Job, now: float, incarnation: int) -> None:
        """Break the rule."""


class NeverCleans(PacedWorld):
    """Kills jobs, and never says that they are gone."""

    def _kill(self, job: Job, now: float, incarnation: int) -> None:
        """Break the rule."""
        process = self.processes.pop(job.id, None)
        if process is not None:
            process.serial = -1


def running(world: type[PacedWorld]) -> Any:
    """Return a plugin that is a world."""

    class Plugin:
        @hookimpl
        def makeway_world(self) -> Any:
            """Offer it."""
            return lambda cluster, settings, state: world(state.clockwork, state.clock)

    return Plugin()


# ------------------------------------------------------------------------------------- what is caught
PREEMPT: list[tuple[Any, str, str]] = [
    (AllOfOneKind, "test_one_kind_has_the_same_candidates", "have the same candidates"),
    (Twice, "test_no_candidate_twice", "No candidate is named twice"),
    (Pending, "test_candidates_are_active", "Every candidate is one of `active`"),
    (Remembered, "test_candidates_are_active", "Every candidate is one of `active`"),
    (ShortOfModes, "test_one_mode_per_candidate", "Every candidate has one mode"),
    (DoesNothing, "test_one_mode_per_candidate", "Every candidate has one mode"),
    (BareTuple, "test_candidates_or_none", "The answer is Candidates"),
    (Counting, "test_same_arguments_same_answer", "gives the same answer"),
    (LastAsker, "test_same_arguments_same_answer", "gives the same answer"),
    (SetOrder, "test_set_order_changes_nothing", "The order in which sets and hashes are walked"),
    (SetOfIds, "test_set_order_changes_nothing", "The order in which sets and hashes are walked"),
    (WallClock, "test_the_clock_changes_nothing", "The computer's clock changes nothing"),
    (Weekday, "test_the_clock_changes_nothing", "The computer's clock changes nothing"),
    (Mutating, "test_arguments_are_left_alone", "A hook changes nothing in what it is given"),
    (Position, "test_order_of_active_jobs", "does not depend on the order in which `active` lists"),
    (NamesTooFew, "test_recording_changes_nothing", "what is spared there changes no decision"),
    (Raising, "test_every_answer_is_accepted", "answered without an exception"),
    (InCircles, "test_runs_come_to_an_end", "Jobs do not displace one another for ever"),
    (ProtectedWithoutReason, "test_protection_has_a_reason", "has a reason in words"),
    (NegativeGrace, "test_one_plan_per_victim", "plans how each victim makes way"),
    (ForgetsAPlan, "test_one_plan_per_victim", "plans how each victim makes way"),
]
OTHERS: list[tuple[type[Contract], Any, str, str]] = [
    (SearchContract, TakesAll(), "test_no_needless_victim", "is needless"),
    (SearchContract, TakesTooFew(), "test_the_job_fits_without_its_victims", "With its victims gone"),
    (SearchContract, Beyond(), "test_victims_are_positions", "Victims are positions"),
    (SearchContract, GivesUp(), "test_gives_up_only_when_nothing_helps", "It answers None only if"),
    (
        *(SelectContract, selecting(OtherPartition)),
        *("test_it_places_on_nodes_it_was_given", "in the job's partition"),
    ),
    (SelectContract, selecting(BusyNodes), "test_no_core_twice", "not placed on the cores of a running job"),
    (SelectContract, selecting(OneNodeLess), "test_it_gives_what_was_asked", "as many nodes"),
    (SelectContract, selecting(ProbingBooks), "test_probing_changes_nothing", "the next attempt finds"),
    (SelectContract, selecting(NeverGivesBack), "test_everything_is_given_back", "as a new one does"),
    (SelectContract, selecting(ScreensAll), "test_screen_drops_none_that_fits", "could not have started"),
    (GangContract, arbitrating(NeverResumes), "test_suspended_jobs_resume", "is resumed"),
    (GangContract, arbitrating(StandsStill), "test_equal_jobs_take_turns", "none waits longer than n - 1"),
    (GangContract, arbitrating(TicksInThePast), "test_the_next_tick_lies_ahead", "never in the past"),
    (GangContract, arbitrating(StopsTwice), "test_orders_fit_the_jobs", "Only running jobs are suspended"),
    (ProtectContract, NoReason(), "test_every_veto_has_a_reason", "Every veto has a reason"),
    (ProtectContract, Strangers(), "test_only_candidates_are_protected", "one of the candidates"),
    (ProtectContract, FirstOnly(), "test_order_of_candidates", "the order in which the candidates"),
    (WorkloadReaderContract, reading(Drops), "test_no_row_is_dropped_in_silence", "none is dropped"),
    (WorkloadReaderContract, reading(Reads), "test_damage_is_an_error_in_words", "nothing but ConfigError"),
    (WorkloadReaderContract, reading(ClaimsAll), "test_it_leaves_others_alone", "files of other kinds"),
    (WorldContract, running(WorksOn), "test_only_running_jobs_end", "none that is suspended"),
    (WorldContract, running(NeverCleans), "test_killed_jobs_are_cleaned_up", "is reported as cleaned"),
]
HOOKS = {
    PreemptPolicyContract: "makeway_preempt_",
    SearchContract: "makeway_search",
    SelectContract: "makeway_selector",
    GangContract: "makeway_gang",
    ProtectContract: "makeway_protect",
    WorkloadReaderContract: "makeway_dialect",
    WorldContract: "makeway_world",
}
WHOLE_RUNS = (
    *("test_set_order_changes_nothing", "test_the_clock_changes_nothing", "test_runs_come_to_an_end"),
    *("test_nothing_forbidden_happens", "test_recording_changes_nothing"),
)
"""Rules about whole runs: no single hook is to blame."""


def contract_of(kind: type[Contract], plugin: Any, trials: int = 10) -> Contract:
    """Return the contract `kind` for a plugin that is not installed; few `trials` to make its finds smaller."""
    more: dict[str, Any] = {"plugin": "testing/mutant", "module": plugin, "trials": trials}
    if kind is SearchContract:
        more["minimal"] = True
    if kind is WorkloadReaderContract:
        more |= {"file_name": "jobs.txt", "sample": SAMPLE, "jobs": 3}
    if kind is GangContract:
        more |= {"settings": {"timeslice": 10.0}, "timeslice": 10.0, "slack": 1}
    found: Contract = type("Mutant", (kind,), more)()
    return found


def caught(kind: type[Contract], plugin: Any, test: str, trials: int = 10) -> ContractError:
    """Run one rule that must be found broken."""
    with pytest.raises(ContractError) as found:
        getattr(contract_of(kind, plugin, trials), test)()
    return found.value


def _check(error: ContractError, kind: type[Contract], test: str, rule: str) -> None:
    broken = error.broken
    assert rule in broken.rule
    assert broken.contract == kind.__name__
    assert broken.plugin == "testing/mutant"
    if test not in WHOLE_RUNS:
        assert broken.hook.startswith(HOOKS[kind])
    text = str(error)
    for fact in (broken.rule, broken.plugin, broken.hook, broken.job, broken.found.splitlines()[0]):
        assert fact in text
    if kind is not WorkloadReaderContract:
        assert "run = replay_table(" in text
        compile(broken.scenario, "<pasted>", "exec")


@pytest.mark.parametrize(
    ("mutant", "test", "rule"), PREEMPT, ids=lambda value: getattr(value, "__name__", "")
)
def test_broken_preempt_policies_are_caught(mutant: Any, test: str, rule: str) -> None:
    """The message names the rule, the plugin, the hook, and shows a scenario."""
    _check(caught(PreemptPolicyContract, mutant(), test), PreemptPolicyContract, test, rule)


@pytest.mark.parametrize(
    ("kind", "plugin", "test", "rule"), OTHERS, ids=[f"{row[0].__name__}-{row[2]}" for row in OTHERS]
)
def test_other_broken_plugins_are_caught(kind: type[Contract], plugin: Any, test: str, rule: str) -> None:
    """The message names the rule, the plugin, the hook, and shows a scenario, or the file."""
    _check(caught(kind, plugin, test), kind, test, rule)


@pytest.mark.parametrize("test", sorted({row[1] for row in PREEMPT}))
def test_a_sound_policy_is_not_caught(test: str) -> None:
    """The rules that catch the mutants leave alone what they are made of."""
    getattr(contract_of(PreemptPolicyContract, Sound()), test)()


def test_minimal_is_only_held_against_who_claims_it() -> None:
    """A search that takes more than it needs breaks no rule unless it promised not to."""
    contract = contract_of(SearchContract, TakesAll())
    type(contract).minimal = False  # type: ignore[attr-defined]  # as its author would have written
    with pytest.raises(unittest.SkipTest):
        contract.test_no_needless_victim()  # type: ignore[attr-defined]  # of this contract


def test_the_search_that_comes_with_makeway_is_sound() -> None:
    """Without a fault of ours none is found."""
    contract_of(SearchContract, search_least_disruption).test_no_needless_victim()  # type: ignore[attr-defined]


@pytest.mark.slow
def test_the_smallest_scenario_can_be_pasted() -> None:
    """It replays, and shows two jobs where two are enough."""
    from makeway_testing import cluster, node, replay_table

    broken = caught(PreemptPolicyContract, Twice(), "test_no_candidate_twice", 400).broken
    plugins = {"testing/mutant": Sound()}

    def replayed(*arguments: Any, **more: Any) -> Any:
        return replay_table(*arguments, **more, plugins=plugins)

    names: dict[str, Any] = {"replay_table": replayed, "cluster": cluster, "node": node}
    exec(broken.scenario, names)
    assert len(names["run"].specs) == 2
    assert names["run"].victims


HASH_ORDER = '''
"""Orders candidates by a set of words, which other processes walk in another order."""

from makeway.hookspecs import hookimpl
from makeway.model import Candidates, PreemptMode


@hookimpl
def makeway_preempt_candidates(preemptor, active):
    words = list({"j1", "j2", "j3", "j4", "j5", "j6", "j7", "j8"})
    lower = [job for job in active if job.partition.priority_tier < preemptor.partition.priority_tier]
    lower.sort(key=lambda job: words.index(job.id) if job.id in words else -1)
    return Candidates(jobs=tuple(lower), modes=(PreemptMode.REQUEUE,) * len(lower))
'''


@pytest.mark.slow
def test_other_processes_are_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A set of constant words is walked alike all through one process, and otherwise in the next."""
    (tmp_path / "hash_order_mutant.py").write_text(HASH_ORDER)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("hash_order_mutant")
    error = caught(PreemptPolicyContract, module, "test_hash_seeds_change_nothing")
    assert "Another process with another PYTHONHASHSEED decides the same" in error.broken.rule
    assert "run = replay_table(" in str(error)
