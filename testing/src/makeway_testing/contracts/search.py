"""The contract of search strategies: which candidates are taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from hypothesis.strategies import SearchStrategy

from makeway import bitmap
from makeway.model import Blocked, Candidates, Choice, ClusterView, Job, Placement, PreemptMode
from makeway_testing.contracts.decision import DecisionContract
from makeway_testing.contracts.needless import needless, without
from makeway_testing.policies import lower_tiers
from makeway_testing.strategies import Scenario, contended
from makeway_testing.watching import Call, short

_HOOK = "makeway_search"


class SearchContract(DecisionContract):
    """What every plugin under ``policy.search`` promises."""

    hook = _HOOK
    companions: ClassVar[Mapping[str, Any]] = {lower_tiers.NAME: lower_tiers}
    preempt: ClassVar[str] = lower_tiers.NAME
    """Policy whose candidates are searched; unless another is named, lower tiers may be displaced."""
    modes: ClassVar[Sequence[str]] = ("requeue", "cancel", "suspend,gang")
    minimal: ClassVar[bool] = False
    """Whether the search promises that no victim is needless."""
    complete: ClassVar[bool] = True
    """Whether the search finds something whenever taking all candidates would help."""

    def key(self) -> str:
        """Return the key of ``[policy]``."""
        return "search"

    def scenarios(self) -> SearchStrategy[Scenario]:
        """Draw small clusters, several tiers, and up to twelve jobs."""
        return contended([(self.preempt, mode) for mode in self.modes], most_jobs=12)

    def test_choice_or_none(self) -> None:
        """The answer is a Choice with a placement, or None if nothing helps."""

        def check(call: Call) -> str | None:
            answer = call.answer
            if answer is None or (isinstance(answer, Choice) and _is_placement(answer.placement)):
                return None
            return f"it returned {type(answer).__name__} {short(answer)}; allowed: a Choice with a placement"

        self.every(_HOOK, check)

    def test_victims_are_positions(self) -> None:
        """Victims are positions in the candidates, none twice."""

        def check(call: Call) -> str | None:
            victims, size = _victims(call), _size(call)
            for at in victims:
                if type(at) is not int or not 0 <= at < size:
                    return f"victim {at!r} is no position among {size} candidates"
            twice = [at for place, at in enumerate(victims) if at in victims[:place]]
            return f"it took candidate number {twice[0]} twice: {list(victims)}" if twice else None

        self.every(_HOOK, check)

    def test_modes_of_victims(self) -> None:
        """A choice has no modes, or one for each victim that does something."""

        def check(call: Call) -> str | None:
            modes: Sequence[Any] = getattr(call.answer, "modes", ())
            if not modes:
                return None
            if len(modes) != len(_victims(call)):
                return f"{len(_victims(call))} victims, but {len(modes)} modes"
            bad = [mode for mode in modes if not isinstance(mode, PreemptMode) or mode is PreemptMode.OFF]
            return f"a victim's mode is {bad[0]!r}" if bad else None

        self.every(_HOOK, check)

    def test_the_job_fits_without_its_victims(self) -> None:
        """With its victims gone, and no others, the job fits where the placement says."""

        def check(call: Call) -> str | None:
            if not _is_sound(call):
                return None
            choice: Choice = call.answer
            placed = without(call, choice.victims, choice.modes)
            jobs = call.arguments["candidates"].jobs
            taken = [jobs[at].id for at in choice.victims]
            if isinstance(placed, Blocked):
                return f"it took {taken}, but without them the job still does not fit: {placed.reason}"
            if not choice.placement.overlays and not placed.overlays:
                left = _left(call, {id(jobs[at]) for at in choice.victims})
                if left:
                    return f"it took {taken}, but {left} stays on the cores of the placement"
            return None

        self.every(_HOOK, check)

    def test_gives_up_only_when_nothing_helps(self) -> None:
        """It answers None only if the job would not fit with all candidates gone."""

        def check(call: Call) -> str | None:
            if call.answer is not None:
                return None
            placed = without(call, range(_size(call)))
            return "it gave up, but with all candidates gone the job fits" if _is_placement(placed) else None

        if not self.complete:
            self.skip("it does not claim to be complete")
        self.every(_HOOK, check)

    def test_no_needless_victim(self) -> None:
        """No victim of a search that promises it is needless: put back, any single one makes the job not fit."""

        def check(call: Call) -> str | None:
            return needless(call) if _is_sound(call) else None

        if not self.minimal:
            self.skip("it does not claim to be minimal")
        self.every(_HOOK, check)

    def test_random_runs_choose_victims(self) -> None:
        """The random runs put the search to the test: it was asked, and took a victim."""
        self.put_to_the_test(_HOOK, lambda call: bool(_victims(call)), "took a victim")


def _is_placement(value: Any) -> bool:
    return isinstance(value, Placement)


def _victims(call: Call) -> Sequence[Any]:
    return call.answer.victims if isinstance(call.answer, Choice) else ()


def _size(call: Call) -> int:
    candidates: Candidates = call.arguments["candidates"]
    return len(candidates.jobs)


def _is_sound(call: Call) -> bool:
    """Whether the choice can be tried at all; what else is wrong with it other rules say."""
    victims = _victims(call)
    return (
        isinstance(call.answer, Choice)
        and _is_placement(call.answer.placement)
        and all(type(at) is int and 0 <= at < _size(call) for at in victims)
        and len(call.answer.modes) in (0, len(victims))
    )


def _left(call: Call, gone: set[int]) -> str:
    """Name a running job on the cores of the placement that is no victim and shares them with none; or empty."""
    view: ClusterView = call.arguments["view"]
    allocation = call.answer.placement.allocation
    if view.preempt_mode.flags or allocation.shared:
        return ""
    for job in view.active:
        held = job.allocation
        if id(job) in gone or held is None or held.shared or job in view.made_way:
            continue
        if any(_meet(allocation, held, index) for index in bitmap.indices(allocation.nodes & held.nodes)):
            return _name(job)
    return ""


def _name(job: Job) -> str:
    return job.id


def _meet(one: Any, other: Any, node: int) -> bool:
    if one.cores is None or other.cores is None:
        return True
    mine, its = one.cores[one.node_indices.index(node)], other.cores[other.node_indices.index(node)]
    return bool(mine & its)
