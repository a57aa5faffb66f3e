"""What is varied, what a run is known by, and that jobs and configurations travel."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

from makeway.config import Config, parse_toml
from makeway.errors import ConfigError
from makeway.model import NOTHING, JobSpec
from makeway_sweep.plan import axes_of, identified, product, reading_key


def variants_of(config: Path, *vary: str) -> tuple[Config, ...]:
    """Return the configurations of a sweep."""
    base = parse_toml(config.read_text(), str(config))
    return tuple(each.config for each in product(base, axes_of(vary)).variants)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        pytest.param("a.b=1,2,3", ("1", "2", "3"), id="plain"),
        pytest.param("a.b='suspend,gang',requeue", ("'suspend,gang'", "requeue"), id="quoted"),
        pytest.param('a.b=["suspend", "gang"],off', ('["suspend", "gang"]', "off"), id="in brackets"),
        pytest.param("a.b=,1", ("", "1"), id="the default"),
        pytest.param("a.b={x=1, y=2}", ("{x=1, y=2}",), id="a table"),
    ],
)
def test_values_are_separated_by_commas(text: str, values: tuple[str, ...]) -> None:
    """Those within quotes and brackets belong to a value."""
    (axis,) = axes_of([text])
    assert (axis.key, axis.values) == ("a.b", values)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        pytest.param(["a.b"], "allowed: KEY=A,B,C", id="no values"),
        pytest.param(["=1,2"], "allowed: KEY=A,B,C", id="no key"),
        pytest.param(["a=1,1"], "'1' is given twice", id="a value twice"),
        pytest.param(["a=1", "a=2"], "a is varied twice", id="a key twice"),
        pytest.param(["a='x,y"], "is a quote or bracket open?", id="an open quote"),
    ],
)
def test_what_is_no_variation_is_refused(given: list[str], told: str) -> None:
    """With what would be."""
    with pytest.raises(ConfigError, match="--vary") as error:
        axes_of(given)
    assert told in str(error.value)


def test_all_combinations_in_the_order_given(config: Path) -> None:
    """The last key changes fastest."""
    found = variants_of(config, "scheduler.type=easy,greedy", "partition.high.priority_tier=2,3")
    tiers = [(each.scheduler.type, each.partition[1].priority_tier) for each in found]
    assert tiers == [("easy", 2), ("easy", 3), ("greedy", 2), ("greedy", 3)]


def test_runs_are_known_by_all_that_decides_them(config: Path) -> None:
    """Configuration, workload, and where the replay stops; alike ones have one identity."""
    base = parse_toml(config.read_text(), str(config))
    variants = product(base, axes_of(["scheduler.type=easy,greedy"])).variants
    known = [each.identity for each in identified(variants, "w", {}, None, None)]
    assert len(set(known)) == 2
    assert known == [each.identity for each in identified(variants, "w", {}, None, None)]
    others = [
        *identified(variants, "other", {}, None, None),
        *identified(variants, "w", {}, 10.0, None),
        *identified(variants, "w", {}, None, 1),
    ]
    assert not {each.identity for each in others} & set(known)


@pytest.mark.parametrize(
    ("vary", "ways"),
    [
        pytest.param("policy.preempt_mode=requeue,suspend", 1, id="a policy: no"),
        pytest.param("partition.high.priority_tier=2,3", 1, id="a tier: no"),
        pytest.param("node[0].cpus=4,8", 2, id="the size of nodes: yes"),
        pytest.param("workload.cpus_per_node=1,2", 2, id="how rows are read: yes"),
    ],
)
def test_a_workload_is_read_again_only_where_that_matters(config: Path, vary: str, ways: int) -> None:
    """Else the parsed jobs are shared; of a foreign reader it is not known what it looks at."""
    found = variants_of(config, vary)
    assert len({reading_key(each, alike=True) for each in found}) == ways
    assert len({reading_key(each, alike=False) for each in found}) == 2


def test_jobs_travel_between_processes() -> None:
    """Read-only mappings too, which Python alone does not pickle; the empty one stays the same object."""
    job = JobSpec(id="1", gres={"gpu": 2}, attributes=NOTHING)
    again = pickle.loads(pickle.dumps(job))
    assert again == job
    assert again.licenses is NOTHING
    assert copy.deepcopy(job) == job
