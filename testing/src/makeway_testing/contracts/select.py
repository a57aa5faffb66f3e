"""The contract of selectors: nodes and cores, now or later."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import attrs
from hypothesis.strategies import SearchStrategy

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.model import (
    Allocation,
    Attempt,
    Blocked,
    Cluster,
    ClusterView,
    Forecast,
    Job,
    JobState,
    Placement,
    PreemptMode,
    Selector,
    Sharing,
)
from makeway_testing.contracts.decision import DecisionContract
from makeway_testing.failures import BreachError
from makeway_testing.policies import lower_tiers
from makeway_testing.strategies import Scenario, contended
from makeway_testing.watching import Call, plain, short

_HOOK = "makeway_selector"
_MOST_SCREENED = 4


@attrs.frozen(kw_only=True, eq=False)
class Question:
    """What a selector was asked: to place `job` on some of `nodes`."""

    selector: Selector
    job: Job
    nodes: NodeBits
    view: ClusterView

    def attempt(self) -> Attempt:
        """Begin another attempt of the same kind."""
        return self.selector.attempt(self.job, self.nodes, self.view)

    def breach(self, found: str, method: str = "attempt") -> BreachError:
        """Return the error to raise."""
        where = f"{_HOOK} ({method})"
        return BreachError(found, hook=where, job=self.job.id, at=self.view.now)


Rule = Callable[[Question], str | None]


class _Shown:
    """A selector that shows what it is asked; all else it hands on."""

    def __init__(self, inner: Selector, rule: Rule, screened: bool) -> None:
        self._inner = inner
        self._rule = rule
        self._screened = screened
        self._view: ClusterView | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def attempt(self, job: Job, nodes: NodeBits, view: ClusterView) -> Attempt:
        self._view = view
        question = Question(selector=self._inner, job=job, nodes=nodes, view=view)
        found = self._rule(question)
        if found:
            raise question.breach(found)
        return self._inner.attempt(job, nodes, view)

    def screen(self, jobs: Sequence[Job], nodes: NodeBits) -> Sequence[Job]:
        kept = self._inner.screen(jobs, nodes)
        if self._screened and self._view is not None:
            left = set(map(id, kept))
            for job in [job for job in jobs if id(job) not in left][:_MOST_SCREENED]:
                open_to = nodes & job.partition.nodes
                question = Question(selector=self._inner, job=job, nodes=open_to, view=self._view)
                placed = question.attempt().probe()
                if isinstance(placed, Placement):
                    found = f"it was dropped, but can start on {_names(placed.allocation, self._view)}"
                    raise question.breach(found, "screen")
        return kept


class SelectContract(DecisionContract):
    """What every plugin under ``policy.select`` promises."""

    hook = _HOOK
    companions: ClassVar[Mapping[str, Any]] = {lower_tiers.NAME: lower_tiers}
    policies: ClassVar[Sequence[tuple[str, str]]] = (
        ("preempt/none", "off"),
        ("preempt/none", "gang"),
        (lower_tiers.NAME, "requeue"),
        (lower_tiers.NAME, "suspend,gang"),
    )
    """Preempt plugin and cluster-wide mode of the random runs."""
    parameters: ClassVar[Sequence[str]] = ()
    """Parameters of selection (CR_Memory, ...) that random runs have."""

    def key(self) -> str:
        """Return the key of ``[policy]``."""
        return "select"

    def scenarios(self) -> SearchStrategy[Scenario]:
        """Draw small clusters with one to three partitions, and up to eight jobs of all shapes."""
        given: dict[str, Any] = {"select_parameters": ",".join(self.parameters)} if self.parameters else {}
        return contended(self.policies).map(lambda scenario: scenario.with_settings(**given))

    # ------------------------------------------------------------------------------ placements
    def test_it_places_on_nodes_it_was_given(self) -> None:
        """A placement lies on nodes that the attempt was given, in the job's partition and in service."""

        def rule(question: Question) -> str | None:
            placed = question.attempt().probe()
            if not isinstance(placed, Placement):
                return None
            view, job = question.view, question.job
            outside = placed.allocation.nodes & ~job.partition.nodes
            if outside:
                return f"it placed the job on {_nodes(outside, view)}, outside partition {job.partition.name}"
            if placed.allocation.nodes & ~view.up:
                return (
                    f"it placed the job on {_nodes(placed.allocation.nodes & ~view.up, view)}, out of service"
                )
            more = placed.allocation.nodes & ~question.nodes
            return f"it placed the job on {_nodes(more, view)}, which it was not given" if more else None

        self.asked(rule)

    def test_it_gives_what_was_asked(self) -> None:
        """A placement has as many nodes, CPUs per node and CPUs as asked, the required nodes, none of the excluded."""
        self.asked(lambda question: _short_of(question))

    def test_allocations_are_whole(self) -> None:
        """An allocation says the same in all its parts: bitmap, indices, cores, CPUs, memory."""
        self.asked(lambda question: _crooked(question))

    def test_no_core_twice(self) -> None:
        """A job is not placed on the cores of a running job, unless the partition shares them or gang stops one."""
        self.asked(lambda question: _double(question))

    def test_memory_is_respected(self) -> None:
        """Where memory is tracked, running jobs and the new one have no more of it than a node has."""
        self.asked(lambda question: _too_much_memory(question))

    # -------------------------------------------------------------------------------- bookkeeping
    def test_probing_changes_nothing(self) -> None:
        """Probing and simulated removals leave nothing behind: the next attempt finds what the first one found."""

        def rule(question: Question) -> str | None:
            first = plain(question.attempt().probe())
            other = question.attempt()
            for job in question.view.active:
                other.remove(job, PreemptMode.CANCEL)
            other.probe()
            fresh = plain(other.fresh().probe())
            if fresh != first:
                return (
                    f"an attempt found {short(first)}; fresh() of one with jobs removed found {short(fresh)}"
                )
            question.attempt().cover((), ())
            question.selector.forecast(question.job, question.nodes, question.view, ())
            question.selector.possible(question.job, question.view)
            again = plain(question.attempt().probe())
            return None if again == first else f"an attempt found {short(first)}, the next one {short(again)}"

        self.asked(rule)

    def test_everything_is_given_back(self) -> None:
        """Once all jobs are gone, a selector answers as a new one does."""

        def rule(scenario: Scenario) -> None:
            built: list[Call] = []
            run = self.play(scenario, built.append)
            ledger = run.engine.ledger
            calls = [call for call in built if call.hook == _HOOK]
            if not calls or ledger.active or ledger.completing:
                return
            used, new = calls[0].answer, calls[0].ask(view=ledger)
            for history in run.run.recorder.histories.values():
                job = history.job
                asked = [
                    plain(one.attempt(job, job.partition.nodes & ledger.up, ledger).probe())
                    for one in (used, new)
                ]
                if asked[0] != asked[1]:
                    found = f"on the empty cluster it finds {short(asked[0])}, a new one {short(asked[1])}"
                    raise BreachError(found, hook=f"{_HOOK} (released)", job=job.id, at=ledger.now)

        self.hold(rule)

    def test_all_gone_makes_room(self) -> None:
        """With all jobs removed by simulation and all nodes of its partition open, a possible job finds a place."""

        def rule(question: Question) -> str | None:
            view, job = question.view, question.job
            nodes = job.partition.nodes
            if nodes & (~view.up | view.completing) or question.selector.possible(job, view) is not None:
                return None
            attempt = question.selector.attempt(job, nodes, view)
            for active in view.active:
                attempt.remove(active, PreemptMode.CANCEL)
            placed = attempt.probe()
            if isinstance(placed, Placement):
                return None
            return f"with all jobs gone it is still blocked: {placed.reason} {placed.detail}"

        self.asked(rule)

    # ---------------------------------------------------------------------------- what else it says
    def test_answers_are_placements_or_blocked(self) -> None:
        """A probe returns a Placement, or a Blocked with a reason."""

        def rule(question: Question) -> str | None:
            found: Any = question.attempt().probe()
            if isinstance(found, Placement) or (isinstance(found, Blocked) and found.reason.strip()):
                return None
            return f"probe returned {short(found)}; allowed: a Placement, or Blocked with a reason"

        self.asked(rule)

    def test_what_is_placed_is_possible(self) -> None:
        """A job for which there is a place is not called impossible."""

        def rule(question: Question) -> str | None:
            if not isinstance(question.attempt().probe(), Placement):
                return None
            why = question.selector.possible(question.job, question.view)
            return None if why is None else f"there is a place for it, but possible() says {why.reason}"

        self.asked(rule)

    def test_screen_drops_none_that_fits(self) -> None:
        """What `screen` drops could not have started."""
        self.asked(lambda question: None, screened=True)

    def test_forecasts_lie_ahead(self) -> None:
        """A forecast is for now or later, on nodes that the job may use."""

        def rule(question: Question) -> str | None:
            view = question.view
            found: Any = question.selector.forecast(question.job, question.nodes, view, ())
            if found is None:
                return None
            if not isinstance(found, Forecast):
                return f"forecast returned {short(found)}; allowed: a Forecast or None"
            if not math.isfinite(found.at) or found.at < view.now:
                return f"the forecast is for {found.at:g} s, and it is {view.now:g} s"
            outside = found.nodes & ~question.nodes
            return f"the forecast is for {_nodes(outside, view)}, which it was not given" if outside else None

        self.asked(rule)

    def test_random_runs_place_jobs(self) -> None:
        """The random runs put the selector to the test: it was asked, and placed jobs."""
        placed: list[bool] = []

        def rule(question: Question) -> str | None:
            placed.append(isinstance(question.attempt().probe(), Placement))
            return None

        self.asked(rule)
        if not any(placed):
            self.fail(f"asked {len(placed)} times, it placed no job", hook=_HOOK)

    def asked(self, rule: Rule, *, screened: bool = False) -> None:
        """Hold a rule about single questions; the docstring of the calling test says what it is."""

        def replace(hook: str, answer: Any) -> Any:
            return _Shown(answer, rule, screened) if hook == _HOOK and answer is not None else answer

        def played(scenario: Scenario) -> None:
            self.play(scenario, replace=replace)

        self.hold(played)


# ------------------------------------------------------------------------------------- single rules
def _nodes(nodes: NodeBits, view: ClusterView) -> str:
    return ", ".join(view.cluster.nodes[index].name for index in bitmap.indices(nodes))


def _names(allocation: Allocation, view: ClusterView) -> str:
    return _nodes(allocation.nodes, view)


def _short_of(question: Question) -> str | None:
    placed, job, view = question.attempt().probe(), question.job, question.view
    if not isinstance(placed, Placement):
        return None
    held, spec = placed.allocation, job.spec
    count = held.nodes.bit_count()
    if count < job.size:
        return f"it placed the job on {count} nodes; it asks for {job.size}"
    if job.required & ~held.nodes:
        return f"it left out the required {_nodes(job.required & ~held.nodes, view)}"
    if job.excluded & held.nodes:
        return f"it took the excluded {_nodes(job.excluded & held.nodes, view)}"
    cpus = _cpus(held, view.cluster)
    if sum(cpus) < spec.cpus:
        return f"it gives {sum(cpus)} CPUs; the job asks for {spec.cpus}"
    poor = [index for index, got in zip(held.node_indices, cpus, strict=True) if got < spec.min_cpus_per_node]
    if poor:
        return (
            f"{view.cluster.nodes[poor[0]].name} gives fewer CPUs than the {spec.min_cpus_per_node} per node"
        )
    return None


def _cpus(held: Allocation, cluster: Cluster) -> list[int]:
    if held.cpus is not None:
        return list(held.cpus)
    return [cluster.nodes[index].cpus for index in held.node_indices]


def _crooked(question: Question) -> str | None:
    placed, cluster = question.attempt().probe(), question.view.cluster
    if not isinstance(placed, Placement):
        return None
    held = placed.allocation
    indices = list(held.node_indices)
    if indices != sorted(set(indices)) or bitmap.of(indices) != held.nodes:
        return f"its nodes are {bitmap.indices(held.nodes)}, its indices {indices}"
    for name in ("cpus", "cores", "memory_mb"):
        part = getattr(held, name)
        if part is not None and len(part) != len(indices):
            return f"{name} has {len(part)} entries for {len(indices)} nodes"
    for place, index in enumerate(indices):
        node = cluster.nodes[index]
        if held.cores is not None and (not held.cores[place] or held.cores[place] >> node.cores):
            return (
                f"it takes cores {bitmap.indices(held.cores[place])} of {node.name}, which has {node.cores}"
            )
        if held.cpus is not None and not 0 < held.cpus[place] <= node.cpus:
            return f"it takes {held.cpus[place]} CPUs of {node.name}, which has {node.cpus}"
    return None


def _double(question: Question) -> str | None:
    placed, job, view = question.attempt().probe(), question.job, question.view
    if not isinstance(placed, Placement) or placed.overlays or view.preempt_mode.flags:
        return None
    held = placed.allocation
    for other in view.active:
        theirs = other.allocation
        if theirs is None or other.state is not JobState.RUNNING or _shares(job) or _shares(other):
            continue
        for index in bitmap.indices(held.nodes & theirs.nodes):
            if _meet(held, theirs, index):
                return f"it placed the job on cores of {view.cluster.nodes[index].name} that {other.id} has"
    return None


def _shares(job: Job) -> bool:
    """Whether the job's partition, or the job where that may ask for it, lets several have one core."""
    sharing = job.partition.oversubscribe
    return sharing.sharing in (Sharing.YES, Sharing.FORCE) and sharing.count > 1


def _meet(one: Allocation, other: Allocation, node: int) -> bool:
    if one.cores is None or other.cores is None:
        return True
    return bool(one.cores[one.node_indices.index(node)] & other.cores[other.node_indices.index(node)])


def _too_much_memory(question: Question) -> str | None:
    placed, view = question.attempt().probe(), question.view
    if not isinstance(placed, Placement) or placed.allocation.memory_mb is None or placed.overlays:
        return None
    held = placed.allocation
    for index, wanted in zip(held.node_indices, placed.allocation.memory_mb, strict=True):
        node = view.cluster.nodes[index]
        used = sum(
            other.allocation.memory_mb[other.allocation.node_indices.index(index)]
            for other in view.jobs_on(index)
            if other.state is JobState.RUNNING
            and other.allocation is not None
            and other.allocation.memory_mb is not None
        )
        if used + wanted > node.usable_memory_mb:
            return f"{node.name} has {node.usable_memory_mb} MB, {used} are taken, and it gives {wanted} more"
    return None
