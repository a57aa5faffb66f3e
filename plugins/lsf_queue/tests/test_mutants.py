"""Break the plugin on purpose: each property of `test_properties` notices, and so do the contracts' invariants."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from makeway.errors import MakewayError
from makeway.model import Candidates


def _properties() -> ModuleType:
    """Import the module beside this one."""
    name = "lsf_queue_properties"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name("test_properties.py"))
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


PROPERTIES = _properties()
MANY = settings(
    max_examples=1000,
    deadline=None,
    database=None,
    derandomize=True,
    phases=(Phase.generate,),
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
Patch = tuple[str, str, Any]
"""Module of the plugin, name in it (or in a class of it), and what takes its place."""


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _none_closed(*_: Any, **__: Any) -> int:
    return 0


def _yes(*_: Any, **__: Any) -> bool:
    return True


def _no_list(*_: Any, **__: Any) -> list[Any]:
    return []


def _no_reason(*_: Any, **__: Any) -> str:
    return ""


def _as_taken(prober: Any, free: Any, taken: list[int], *, keeps: bool) -> list[int]:
    del prober, free, keeps
    return taken


def _any_lower(a: Any, b: Any, of_a: Any, of_b: Any, *, exclusive: bool) -> bool:
    del of_a, of_b, exclusive
    return bool(a.priority > b.priority)


def _also_equal(a: Any, b: Any, of_a: Any, of_b: Any, *, exclusive: bool) -> bool:
    del exclusive
    forward = of_a.preemptive and (of_a.targets is None or b.name in of_a.targets)
    backward = of_b.preemptable and (of_b.by is None or a.name in of_b.by)
    return a.name != b.name and a.priority >= b.priority and bool(forward or backward)


def _no_list_of_the_victim(a: Any, b: Any, of_a: Any, of_b: Any, *, exclusive: bool) -> bool:
    del exclusive
    forward = of_a.preemptive and (of_a.targets is None or b.name in of_a.targets)
    return a.name != b.name and a.priority > b.priority and bool(forward or of_b.preemptable)


def _chained(original: Callable[..., Any]) -> Callable[..., Any]:
    """Let A take from C where A takes from B and B from C: the relation is not transitive."""

    def targets(queues: Any, *more: Any) -> Any:
        found = {name: dict(ranks) for name, ranks in original(queues, *more).items()}
        for a, b in itertools.product(found, repeat=2):
            if b in found[a]:
                found[a] |= {c: rank for c, rank in found[b].items() if c not in found[a]}
        return found

    return targets


def _backwards(original: Callable[..., Any]) -> Callable[..., Any]:
    """Sort victims the other way round."""

    def candidates(*arguments: Any) -> Candidates:
        found: Candidates = original(*arguments)
        return attrs.evolve(found, jobs=found.jobs[::-1], modes=found.modes[::-1])

    return candidates


_flips = itertools.count()


def _now_and_then(original: Callable[..., Any]) -> Callable[..., Any]:
    """Answer from what happened before."""

    def candidates(*arguments: Any) -> Candidates:
        found: Candidates = original(*arguments)
        if next(_flips) % 2:
            return found
        return attrs.evolve(found, jobs=found.jobs[::-1], modes=found.modes[::-1])

    return candidates


def _wrapped(wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Any:
    return ("wrapped", wrap)


MUTANTS: Sequence[Any] = [
    # ---- the relation
    pytest.param("test_the_relation", [("relation", "can_preempt", _any_lower)], id="any lower"),
    pytest.param("test_the_relation", [("relation", "can_preempt", _also_equal)], id="equal priorities too"),
    pytest.param(
        "test_the_relation",
        [("relation", "can_preempt", _no_list_of_the_victim)],
        id="PREEMPTABLE list ignored",
    ),
    pytest.param("test_the_relation", [("compiling", "targets_of", _wrapped(_chained))], id="transitive"),
    # ---- gaps
    pytest.param(
        "test_no_job_slips_into_a_gap",
        [("gaps", "may_use", _yes), ("gaps", "not_offered", _none_closed)],
        id="any job uses the slots of suspended jobs",
    ),
    pytest.param(
        "test_no_job_slips_into_a_gap", [("gaps", "may_use", _yes)], id="unrelated higher queues do"
    ),
    # ---- limits
    pytest.param(
        "test_limits_hold",
        [("judging", "blocked", _nothing), ("judging", "closed", _none_closed)],
        id="no limits",
    ),
    pytest.param(
        "test_limits_hold",
        [("sums", "Sums._enter", _nothing)],
        id="no job is counted",
    ),
    # ---- protections
    pytest.param(
        "test_protections_hold", [("protection", "Guard._run_time", _no_reason)], id="run time ignored"
    ),
    pytest.param("test_protections_hold", [("protection", "Guard._count", _no_reason)], id="times ignored"),
    # ---- how many victims
    pytest.param(
        "test_mini_job_takes_no_job_needlessly",
        [("search", "_give_back", _as_taken)],
        id="nothing is given back",
    ),
    pytest.param(
        "test_mini_job_takes_no_job_needlessly", [("search", "_keeps_needless", _yes)], id="MINI_JOB ignored"
    ),
    pytest.param(
        "test_one_slot_victims_are_never_needless",
        [("search", "_keeps_needless", _yes), ("search", "_stays", _yes)],
        id="one-slot victims stay",
    ),
    pytest.param(
        "test_optimal_mini_job_takes_the_fewest",
        [("search", "_fewest", lambda prober, free, costly, taken, exact: taken)],
        id="the first that do, not the fewest",
    ),
    # ---- order
    pytest.param(
        "test_the_order_of_victims", [("plugin", "candidates", _wrapped(_backwards))], id="backwards"
    ),
    pytest.param(
        "test_the_order_of_victims",
        [("relation", "_rank", lambda b, line: (0, 0, 0, b.index))],
        id="no numbers",
    ),
    pytest.param(
        "test_the_order_of_victims",
        [("jobs", "run_time", lambda job, site, now: 0.0)],
        id="no run time",
    ),
    # ---- going on, and the same again
    pytest.param("test_the_relation", [("resume", "Arbiter._resuming", _no_list)], id="no job goes on"),
    pytest.param(
        "test_same_input_same_record", [("plugin", "candidates", _wrapped(_now_and_then))], id="a memory"
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "patches"), MUTANTS)
def test_a_broken_plugin_is_noticed(
    name: str, patches: Sequence[Patch], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The property fails; with the plugin as it is, it holds (`test_properties`)."""
    for module, path, new in patches:
        owner: Any = importlib.import_module(f"makeway_lsf_queue.{module}")
        *inside, last = path.split(".")
        for step in inside:
            owner = getattr(owner, step)
        wanted = new[1](getattr(owner, last)) if isinstance(new, tuple) else new
        monkeypatch.setattr(owner, last, wanted)
    prop = getattr(PROPERTIES, name)
    strategies = {
        "test_mini_job_takes_no_job_needlessly": PROPERTIES.sites(minimal=True),
        "test_optimal_mini_job_takes_the_fewest": PROPERTIES.sites(minimal=True),
    }
    again = given(strategies.get(name, PROPERTIES.sites()), PROPERTIES.contended())(
        prop.hypothesis.inner_test
    )
    with pytest.raises((AssertionError, MakewayError)):
        MANY(again)()


def test_every_property_has_a_mutant() -> None:
    """One that nothing breaks is no property."""
    properties = {name for name in vars(PROPERTIES) if name.startswith("test_")} - {
        "test_works_with_both_selectors"
    }
    assert {mutant.values[0] for mutant in MUTANTS} == properties
