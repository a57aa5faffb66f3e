"""What hooks are given cannot be changed by them, and each key of a policy names plugins of its kind."""

from __future__ import annotations

import copy
import json
import pickle
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import pytest

from makeway import model
from makeway.errors import ConfigError
from makeway.hookspecs import hookimpl
from makeway.model import (
    Allocation,
    Candidates,
    ClusterView,
    Job,
    JobSpec,
    ReadOnly,
    read_only,
)
from makeway_testing import one_node, replay_table

VALUES = [
    cls
    for cls in vars(model).values()
    if isinstance(cls, type) and attrs.has(cls) and not cls.__name__.endswith("Draft")
]
"""All but drafts, and what a plugin itself lets stand or fall."""


@pytest.mark.parametrize("cls", VALUES, ids=lambda cls: cls.__name__)
def test_every_mapping_of_a_value_is_read_only(cls: type[Any]) -> None:
    """Whatever makes the value, and of whatever."""
    fields = [field for field in attrs.fields(cls) if re.match(r"Mapping\b", str(field.type)) and field.init]
    plain = [field.name for field in fields if field.converter is not read_only]
    assert not [name for name in plain if (cls.__name__, name) != ("Cover", "blockers")]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        setattr(object.__new__(cls), attrs.fields(cls)[0].name, 1)


def test_a_read_only_mapping() -> None:
    """It is as good as a dict to code that only reads: JSON, copies, other processes."""
    table = {"n": 1, "more": [{"deep": 2}]}
    kept = JobSpec(id="1", attributes=table).attributes
    table["n"] = 5
    assert (kept["n"], json.dumps(kept)) == (1, '{"n": 1, "more": [{"deep": 2}]}')
    assert pickle.loads(pickle.dumps(kept)) == copy.deepcopy(kept) == kept
    assert isinstance(pickle.loads(pickle.dumps(kept)), ReadOnly)
    assert read_only(kept) is kept
    changes: list[Callable[[Any], Any]] = [
        lambda it: it.__setitem__("n", 1),
        lambda it: it.__delitem__("n"),
        lambda it: it.update(n=1),
        lambda it: it.setdefault("x", 1),
        lambda it: it.pop("n"),
        lambda it: it.popitem(),
        lambda it: it.clear(),
        lambda it: it.__ior__({}),
        lambda it: it["more"][0].__setitem__("deep", 3),
        lambda it: it["more"].append(3),
    ]
    for change in changes:
        with pytest.raises((TypeError, AttributeError)):
            change(kept)


class Looking:
    """Looks at all that candidates' hooks are given."""

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}

    @hookimpl
    def makeway_preempt_candidates(
        self, preemptor: Job, active: Sequence[Job], view: ClusterView
    ) -> Candidates:
        held = active[0].allocation
        assert isinstance(held, Allocation)
        self.found |= {
            "spec.attributes": active[0].spec.attributes,
            "spec.licenses": active[0].spec.licenses,
            "allocation.licenses": held.licenses,
            "cluster.attributes": view.cluster.attributes,
            "cluster.licenses": view.cluster.licenses,
            "node.gres": view.cluster.nodes[0].gres,
            "partition.attributes": view.cluster.partitions[0].attributes,
            "license_holders": view.license_holders,
            "license_holders of one": view.license_holders["matlab"],
            "usage": view.usage("user"),
            "usage of one": view.usage("user")["user"].licenses,
        }
        for name, value in (("active", active), ("pending", view.pending), ("present", view.present)):
            assert type(value) is tuple, name
        return Candidates(protected={"low": "so"})


def test_a_plugin_changes_nothing_that_it_looks_at() -> None:
    """Each mapping that can be reached from a hook's arguments refuses."""
    looking = Looking()
    jobs = """
    job   partition  submit  cpus  run_time  licenses
    low   low             0     4        60  {matlab=1}
    high  hi             10     4        20  -
    """
    config = {"partitions": {"low": {}, "hi": {"priority_tier": 2}}, "preempt": "preempt/mine"}
    run = replay_table(
        jobs,
        cluster=one_node(cpus=4),
        config=config | {"preempt_mode": "requeue", "licenses": {"matlab": 1}},
        plugins={"preempt/mine": looking},
    )
    assert run.victims == ()
    assert len(looking.found) == 11
    for name, value in looking.found.items():
        assert isinstance(value, Mapping), name
        changed: Any = value
        with pytest.raises(TypeError):
            changed["x"] = 1


class Each:
    """Implements one hook."""

    def __init__(self, hook: str) -> None:
        def answer() -> None:
            return None

        answer.__name__ = hook
        setattr(self, hook, hookimpl(answer))


OFFERS = {
    "select": "makeway_selector",
    "preempt": "makeway_preempt_candidates",
    "priority": "makeway_priority",
    "gang": "makeway_gang",
    "search": "makeway_search",
    "protect": "makeway_protect",
}


@pytest.mark.parametrize("key", [*OFFERS, "plugins"])
@pytest.mark.parametrize("kind", [*OFFERS, "world"])
def test_a_key_takes_plugins_of_its_kind(key: str, kind: str) -> None:
    """All others are errors that name the key where they belong."""
    hook = OFFERS.get(kind, "makeway_world")
    config: dict[str, Any] = {key: ["x/mine"] if key in ("protect", "plugins") else "x/mine"}
    fits = kind == key or (key == "plugins" and kind != "world")

    def play() -> None:
        replay_table("job  run_time\na  1", config=config, plugins={"x/mine": Each(hook)})

    if fits:
        if key != "select":  # whose answer is no opinion, which no run can do without
            play()
        return
    place = "world.name" if kind == "world" else f"policy.{kind}"
    with pytest.raises(ConfigError, match=f"policy.{key}: 'x/mine' .*; it belongs in {place}$"):
        play()
