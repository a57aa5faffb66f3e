"""Hold what is known of suspended jobs at once to naming all candidates and choosing among them (lsf 3.4, 5.3)."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections import Counter
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import attrs
import pytest

from makeway.bitmap import NodeBits
from makeway.model import Blocked, Candidates, Choice, Job, Placement
from makeway_app.replay import Options, replay
from makeway_engine.ledger import Ledger
from makeway_engine.placing.probe import Prober
from makeway_engine.placing.search import Search
from makeway_engine.view_without import ViewWithout
from makeway_lsf_queue import admission, victims
from makeway_lsf_queue.compiling import site_of
from makeway_lsf_queue.limits import Counts
from makeway_lsf_queue.requested import compiled
from makeway_lsf_queue.survey import survey_of


def _beside(name: str) -> ModuleType:
    """Import the module beside this one."""
    own = f"lsf_queue_{name}"
    if own not in sys.modules:
        spec = importlib.util.spec_from_file_location(own, Path(__file__).with_name(f"{name}.py"))
        assert spec is not None
        assert spec.loader is not None
        sys.modules[own] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[own]


SITES: Any = _beside("test_resting")


def _told(candidates: Candidates, choice: Choice) -> list[object]:
    """Return who makes way, how, and where the job starts."""
    modes = choice.modes or [candidates.modes[at] for at in choice.victims]
    held = choice.placement.allocation
    who = [candidates.jobs[at].id for at in choice.victims]
    return [who, list(modes), held.node_indices, held.cpus, held.cores, held.memory_mb]


@pytest.mark.slow
def test_both_hooks_come_to_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """On forty sites, whenever it is known; where it is not, the search goes on as if nobody had looked."""
    seen = Counter[str]()
    at_once = Search.at_once

    def compared(self: Search, job: Job, allowed: NodeBits) -> tuple[Candidates, Choice] | None:
        found = at_once(self, job, allowed)
        candidates = self._order.candidates(job)
        plain = self.choose(job, allowed, candidates)[0] if candidates.jobs else None
        survey_of(site_of(self._ledger), self._ledger).not_at_once = None
        anew = self.choose(job, allowed, candidates)[0] if candidates.jobs else None
        if isinstance(plain, Choice):
            assert isinstance(anew, Choice)
            assert _told(candidates, plain) == _told(candidates, anew)
        else:
            assert not isinstance(anew, Choice)
        if found is None:
            seen["not known"] += 1
            return None
        assert isinstance(plain, Choice)
        assert _told(*found) == _told(candidates, plain)
        assert candidates.ask_again_at is None
        assert candidates.rounds == 1
        assert not candidates.not_for
        seen["victims" if found[1].victims else "nobody"] += 1
        return found

    monkeypatch.setattr(Search, "at_once", compared)
    for seed in range(40):
        chance = Random(5000 + seed)
        replay(SITES._site(chance), SITES._jobs(chance, 60), (), Options(keep=False))
    assert seen["not known"] > 50
    assert seen["victims"] > 20
    assert seen["nobody"] > 1


@pytest.mark.slow
def test_suspended_candidates_are_those_of_the_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept while the same jobs are suspended is what looking at them again comes to."""
    seen = Counter[str]()

    def compared(site: Any, preemptor: Job, view: Any) -> Any:
        found = suspended_candidates(site, preemptor, view)
        anew = victims._all_stopped(survey_of(site, view), preemptor, view)
        assert (() if found is None else found.jobs) == anew.jobs
        if found is not None:
            assert (found.modes, found.left_out) == (anew.modes, anew.left_out)
            seen["kept" if kept.get(id(found)) is found else "new"] += 1
            seen["left out"] += bool(found.left_out)
            kept[id(found)] = found
        return found

    kept: dict[int, Any] = {}
    suspended_candidates = victims.suspended_candidates
    monkeypatch.setattr(importlib.import_module("makeway_lsf_queue.search"), "suspended_candidates", compared)
    for seed in range(40):
        chance = Random(5000 + seed)
        replay(SITES._site(chance), SITES._jobs(chance, 60), (), Options(keep=False))
    assert seen["kept"] > 50
    assert seen["new"] > 50
    assert seen["left out"] > 0


def test_limits_and_closed_hosts_are_those_without_the_suspended(monkeypatch: pytest.MonkeyPatch) -> None:
    """On forty sites, what is known of them is what the hooks say of the cluster without these jobs."""
    seen = Counter[str]()
    known = admission.closed_once_stopped

    def compared(site: Any, job: Job, view: Ledger, stopped: victims.Stopped) -> NodeBits | None:
        found = known(site, job, view, stopped)
        without: Any = ViewWithout(view, stopped.pairs)
        limit = admission.blocked(job, without)
        if found is None:
            seen["not known"] += 1
        elif limit is not None:
            assert found == admission.ALL
            seen["kept out"] += 1
        else:
            assert found == admission.full_hosts(job, without)
            request = compiled(admission.counted(site, view), job)
            first = None if request is None else request.first()
            assert first is None or first.limit.counts is Counts.JOBS
            seen["a limit on jobs" if first is not None else "nothing"] += 1
            seen["closed"] += bool(found)
        return found

    monkeypatch.setattr(admission, "closed_once_stopped", compared)
    for seed in range(40):
        chance = Random(5000 + seed)
        replay(SITES._site(chance), SITES._jobs(chance, 60), (), Options(keep=False))
    assert all(seen[each] > 5 for each in ("not known", "kept out", "a limit on jobs", "nothing", "closed"))


def test_a_place_beside_closed_hosts_is_that_of_an_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """The selector is asked without an attempt for the hosts that are left, with the same answer."""
    seen = Counter[str]()
    on = Prober._on

    def compared(self: Prober, job: Job, nodes: NodeBits) -> Placement | Blocked:
        found = on(self, job, nodes)
        plain = self.look(self._selector.attempt(job, nodes, self._ledger))
        assert attrs.asdict(found) == attrs.asdict(plain)
        left = job.partition.nodes & ~nodes
        seen[f"{type(found).__name__} beside {'some' if left else 'no'} hosts"] += 1
        return found

    monkeypatch.setattr(Prober, "_on", compared)
    for seed in range(20):
        chance = Random(6000 + seed)
        replay(SITES._site(chance), SITES._jobs(chance, 60), (), Options(keep=False))
    assert min(seen.values()) > 20
    assert len(seen) == 4
