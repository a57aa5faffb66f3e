"""Draw random small clusters, policies and workloads, for Hypothesis (``pip install makeway[dev]``).

Everything is drawn small, so that jobs meet, and from few values, so that instants coincide::

    @given(scenarios())
    def test_nothing_forbidden_happens(scenario):
        scenario.replay()
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
from hypothesis import strategies as st

from makeway import vendors
from makeway.config import PRIORITIES, Config, NodeTable
from makeway.model import Exclusive, JobSpec
from makeway_testing import builders
from makeway_testing.builders import Machine
from makeway_testing.scenario import TableRun, replay_table

POLICIES: tuple[tuple[str, str], ...] = (
    ("preempt/none", "off"),
    ("preempt/none", "gang"),
    ("preempt/partition_prio", "suspend,gang"),
    ("preempt/partition_prio", "requeue"),
    ("preempt/partition_prio", "cancel"),
    ("preempt/partition_prio", "requeue,gang"),
    ("preempt/partition_prio", "cancel,gang"),
)
"""Preempt plugin and cluster-wide mode."""
SHARING = ("NO", "EXCLUSIVE", "FORCE:1", "FORCE:2", "FORCE:3", "YES:2")
PARTITION_MODES = (None, None, None, "off", "suspend", "requeue", "cancel")
SCHEDULERS = ("builtin", "easy", "backfill")
_EXCUSING = ("stale_shadows", "resume_runs_beside", "linear_suspend_frees_memory")
STRICT_RULES = {name: False for name in _EXCUSING if name in vendors.rule_names()}
"""Without the defects of Slurm that excuse a broken invariant, as far as they are known: makeway-slurm brings some."""
MEMORY_MB = 1000
TIMESLICE = 10.0
_DELAYS: Mapping[str, tuple[float, ...]] = {
    "completing_time": (0.0, 3.0),
    "kill_wait": (0.0, 30.0),
    "message_timeout": (0.0, 10.0),
    "limit_sweep": (0.0, 30.0),
    "requeue_delay": (5.0, 20.0),
    "bf_interval": (0.0, 15.0),
    "first_tick": (1.0, 12.0),
}
"""Delays that are changed now and then, and to what."""
_GRAIN = 5
"""Instants are multiples of this."""


@attrs.frozen(kw_only=True, repr=False)
class Scenario:
    """Everything that one replay needs."""

    machine: Machine = ()
    """Its nodes; with a whole configuration as settings, these say which."""
    settings: Mapping[str, Any] | Config
    """Flat, as for `makeway_testing.builders.config`; or a whole configuration."""
    specs: tuple[JobSpec, ...]
    commands: str = ""
    until: float | None = None
    """Stop at this instant; None: when nothing happens any more."""

    @classmethod
    def of(
        cls,
        jobs: str | Sequence[JobSpec],
        *,
        cluster: Machine | None = None,
        config: Mapping[str, Any] | Config | None = None,
        commands: str = "",
        until: float | None = None,
    ) -> Scenario:
        """Write one down, with the arguments of `replay_table`."""
        return cls(
            machine=cluster or builders.one_node(),
            settings=config or {},
            specs=tuple(builders.jobs(jobs) if isinstance(jobs, str) else jobs),
            commands=commands,
            until=until,
        )

    def replay(self, **more: Any) -> TableRun:
        """Replay it, with all invariants checked; `more` as for `replay_table`."""
        given: dict[str, Any] = {"commands": self.commands, "until": self.until, **more}
        return replay_table(self.specs, cluster=self.machine, config=self.settings, **given)

    def with_settings(self, **more: Any) -> Scenario:
        """Return the same with other settings."""
        if isinstance(self.settings, Config):
            raise TypeError("a whole configuration is changed with attrs.evolve")
        return attrs.evolve(self, settings={**self.settings, **more})

    def __repr__(self) -> str:
        """Show what is not a default, so that a failing case can be read."""
        jobs = "\n".join(f"    {_short(spec)}" for spec in self.specs)
        lines = "\n".join(f"    {line.strip()}" for line in self.commands.splitlines())
        nodes = ", ".join(f"{table.name} ({table.cpus} CPUs)" for table in self.machine)
        settings = self.settings if isinstance(self.settings, Config) else dict(self.settings)
        return f"{nodes}\n{settings}\n{jobs}\n{lines}"


def _short(spec: JobSpec) -> str:
    """Return what a job asks for beyond the defaults."""
    fields = attrs.asdict(spec, recurse=False, filter=lambda field, value: value != field.default)
    return ", ".join(f"{key}={value!r}" for key, value in fields.items() if value not in ({}, ()))


def instants(most: int) -> st.SearchStrategy[float]:
    """Draw an instant or a length of time, of few different ones."""
    return st.integers(0, most // _GRAIN).map(lambda steps: float(steps * _GRAIN))


@st.composite
def machines(draw: st.DrawFn, most_nodes: int = 5) -> Machine:
    """Draw nodes n1, n2, ...; now and then of two kinds."""
    size = draw(st.integers(1, most_nodes))
    cpus = draw(st.sampled_from((1, 2, 4)))
    if size > 1 and draw(st.integers(0, 4)) == 0:
        cut = draw(st.integers(1, size - 1))
        heavier = draw(st.sampled_from((1, 5)))
        return builders.cluster(
            [
                builders.node(_hosts(1, cut), cpus=cpus, memory_mb=MEMORY_MB),
                builders.node(_hosts(cut + 1, size), cpus=4, memory_mb=MEMORY_MB, weight=heavier),
            ]
        )
    return builders.cluster(size, cpus=cpus, memory_mb=MEMORY_MB)


def _hosts(first: int, last: int) -> str:
    return f"n{first}" if first == last else f"n[{first}-{last}]"


def size_of(machine: Machine) -> int:
    """Return the number of nodes."""
    names = builders.config(machine).node
    return len(builders.build_cluster(builders.config(names)).nodes)


@st.composite
def partitions(draw: st.DrawFn, size: int, *, gang: bool = False) -> dict[str, dict[str, Any]]:
    """Draw one to three partitions over a cluster of `size` nodes, mostly of different tiers."""
    tables: dict[str, dict[str, Any]] = {}
    names = ("a", "b", "c")[: draw(st.sampled_from((1, 2, 2, 3, 3)))]
    ranks = draw(st.sampled_from(((1, 2, 3), (3, 2, 1), (1, 3, 2), (1, 1, 2), (2, 2, 1))))
    for name, tier in zip(names, ranks, strict=False):
        first = draw(st.integers(1, size)) if draw(st.integers(0, 3)) == 0 else 1
        mode = draw(st.sampled_from(PARTITION_MODES))
        tables[name] = {
            "nodes": _hosts(first, size),
            "priority_tier": tier,
            "oversubscribe": draw(st.sampled_from(SHARING)),
            "grace_time": draw(st.sampled_from((0.0, 0.0, 10.0, 60.0))),
        }
        if mode is not None and (mode != "suspend" or gang):
            tables[name]["preempt_mode"] = mode
    return tables


@st.composite
def settings(
    draw: st.DrawFn,
    size: int,
    policies: Sequence[tuple[str, str]] = POLICIES,
    schedulers: Sequence[str] = SCHEDULERS,
) -> dict[str, Any]:
    """Draw a whole flat configuration for a cluster of `size` nodes."""
    preempt, mode = draw(st.sampled_from(policies))
    found: dict[str, Any] = {
        "preempt": preempt,
        "preempt_mode": mode,
        "timeslice": TIMESLICE,
        "partitions": draw(partitions(size, gang="gang" in mode)),
        "scheduler": draw(st.sampled_from(schedulers)),
        "clockwork": draw(clockworks(gang="gang" in mode)),
        "priority": draw(st.sampled_from(PRIORITIES)),
        "enforce_time_limits": draw(st.booleans()),
        "rules": draw(st.sampled_from(({}, STRICT_RULES))),
    }
    if draw(st.integers(0, 3)) == 0:
        found["select_parameters"] = "CR_Memory"
    if preempt != "preempt/none":
        found |= draw(_preemption())
    return found


@st.composite
def clockworks(draw: st.DrawFn, *, gang: bool = False) -> dict[str, Any]:
    """Draw a preset with some delays changed.

    :param gang: without a delay, a job that gang requeues the moment it starts would start and be
        requeued at one instant for ever.
    """
    found: dict[str, Any] = {"preset": draw(st.sampled_from(("ideal", "ideal", "slurm")))}
    for name, values in _DELAYS.items():
        if draw(st.integers(0, 4)) == 0:
            found[name] = draw(st.sampled_from(values))
    if gang and found["preset"] == "ideal":
        found.setdefault("requeue_delay", 5.0)
    return found


@st.composite
def _preemption(draw: st.DrawFn) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if draw(st.integers(0, 3)) == 0:
        found["exempt_time"] = draw(instants(60))
    if draw(st.integers(0, 3)) == 0:
        found["youngest_first"] = True
    if draw(st.integers(0, 5)) == 0:
        found["min_exempt_priority"] = 100
    return found


@st.composite
def qos(draw: st.DrawFn) -> dict[str, dict[str, Any]]:
    """Draw three QOS, of which some may preempt others."""
    tables: dict[str, dict[str, Any]] = {}
    for name, below in (("low", ()), ("mid", ("low",)), ("high", ("low", "mid"))):
        allowed = [other for other in below if draw(st.integers(0, 3))]
        tables[name] = {"priority": draw(st.sampled_from((0, 1, 10))), "preempt": ",".join(allowed)}
        mode = draw(st.sampled_from((None, None, None, "requeue", "cancel")))
        if mode is not None:
            tables[name]["preempt_mode"] = mode
        if draw(st.integers(0, 4)) == 0:
            tables[name]["grace_time"] = 10.0
        if not tables[name]["preempt"]:
            del tables[name]["preempt"]
    return tables


@st.composite
def workloads(
    draw: st.DrawFn, size: int, names: Sequence[str], most_jobs: int = 8, *, qos: Sequence[str] = ()
) -> tuple[JobSpec, ...]:
    """Draw jobs for the partitions `names` of a cluster of `size` nodes, in order of submission.

    :param qos: their QOS are drawn from these; empty: they have none.
    """
    count = draw(st.integers(1, most_jobs))
    submissions = sorted(draw(st.lists(instants(60), min_size=count, max_size=count)))
    specs = tuple(draw(_jobs(f"j{at + 1}", at, submissions[at], size, names)) for at in range(count))
    if not qos:
        return specs
    return tuple(attrs.evolve(spec, qos=draw(st.sampled_from(tuple(qos)))) for spec in specs)


@st.composite
def _jobs(
    draw: st.DrawFn, id: str, before: int, submit_at: float, size: int, names: Sequence[str]
) -> JobSpec:
    run_time = draw(st.sampled_from((0.0, 5.0, 10.0, 20.0, 20.0, 40.0, 40.0, 60.0)))
    tried = draw(st.permutations(list(names)))[: draw(st.sampled_from((1, 1, 1, 2)))]
    more: dict[str, Any] = {}
    if draw(st.booleans()):
        more["time_limit"] = max(5.0, run_time + draw(st.sampled_from((-5.0, 0.0, 5.0, 30.0))))
    if before and draw(st.integers(0, 7)) == 0:
        more["depends_on"] = (f"j{draw(st.integers(1, before))}",)
    if draw(st.integers(0, 7)) == 0:
        more["begin_at"] = submit_at + draw(instants(30))
    if draw(st.integers(0, 5)) == 0:
        more["priority"] = draw(st.sampled_from((50, 100, 200)))
    if draw(st.integers(0, 5)) == 0:
        more["requeue"] = False
    if draw(st.integers(0, 5)) == 0:
        more["oversubscribe"] = True
    if draw(st.integers(0, 7)) == 0:
        more["exclusive"] = draw(st.sampled_from((Exclusive.NODE, Exclusive.USER)))
    if draw(st.integers(0, 5)) == 0:
        more["memory_mb_per_node"] = draw(st.sampled_from((300, 600)))
    if draw(st.integers(0, 7)) == 0:
        more["required_nodes"] = (f"n{draw(st.integers(1, size))}",)
    more["on_term"] = draw(st.sampled_from(("default", "default", "default", "exit", "ignore")))
    more["steps"] = draw(st.booleans())
    return JobSpec(
        id=id,
        user=draw(st.sampled_from(("ann", "bob"))),
        partitions=tuple(tried),
        submit_at=submit_at,
        run_time=run_time,
        min_nodes=draw(st.integers(1, size)),
        **more,
    )


@st.composite
def commands(draw: st.DrawFn, specs: Sequence[JobSpec], size: int, most: int = 4) -> str:
    """Draw what people and nodes do."""
    lines = []
    for _ in range(draw(st.integers(0, most))):
        at = draw(instants(100)) + draw(st.sampled_from((0.0, 2.0)))
        verbs = ("suspend", "resume", "requeue", "cancel", "hold", "release", "priority")
        word = draw(st.sampled_from((*verbs, "down", "drain", "up")))
        about = draw(st.sampled_from([spec.id for spec in specs]))
        if word in ("down", "drain", "up"):
            about = f"n{draw(st.integers(1, size))}"
        value = f" {draw(st.sampled_from((0, 1, 150)))}" if word == "priority" else ""
        lines.append(f"{at:g} {word} {about}{value}")
    return "\n".join(lines)


@st.composite
def scenarios(
    draw: st.DrawFn,
    policies: Sequence[tuple[str, str]] = POLICIES,
    schedulers: Sequence[str] = SCHEDULERS,
    *,
    most_jobs: int = 8,
    with_commands: bool = False,
    with_qos: bool = False,
) -> Scenario:
    """Draw everything that a replay needs; every job has a run time, so that each replay ends."""
    machine = draw(machines())
    size = size_of(machine)
    chosen = draw(settings(size, policies, schedulers))
    if with_qos:
        chosen["qos"] = draw(qos())
    names = sorted(chosen["partitions"])
    specs = draw(workloads(size, names, most_jobs, qos=sorted(chosen.get("qos", ()))))
    done = draw(commands(specs, size)) if with_commands else ""
    return Scenario(machine=machine, settings=chosen, specs=specs, commands=done)


@st.composite
def contended(
    draw: st.DrawFn,
    policies: Sequence[tuple[str, str]] = POLICIES,
    schedulers: Sequence[str] = SCHEDULERS,
    *,
    most_jobs: int = 8,
    with_qos: bool = False,
    sharing: Sequence[str] = ("NO", "NO", "NO", "EXCLUSIVE", "FORCE:1", "FORCE:2", "YES:2"),
) -> Scenario:
    """Draw everything that a replay needs, so that jobs are in one another's way from the start.

    Few nodes, partitions of different tiers mostly over all of them, jobs that run long; the first ones are in the
    lowest tier, with the QOS that others may preempt.
    """
    base = draw(scenarios(policies, schedulers, most_jobs=1))
    assert isinstance(base.settings, Mapping)
    size = size_of(base.machine)
    names = ("a", "b", "c")[: draw(st.sampled_from((2, 2, 3)))]
    tables = {
        name: {
            "nodes": _hosts(draw(st.sampled_from((1, 1, 1, size))), size),
            "priority_tier": tier,
            "oversubscribe": draw(st.sampled_from(sharing)),
            "grace_time": draw(st.sampled_from((0.0, 0.0, 0.0, 10.0))),
        }
        for tier, name in enumerate(names, 1)
    }
    chosen: dict[str, Any] = {**base.settings, "partitions": tables}
    if with_qos:
        chosen["qos"] = {"low": {}, "mid": {"preempt": "low"}, "high": {"priority": 9, "preempt": "low,mid"}}
    count = draw(st.integers(3, most_jobs))
    ranks = draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    specs = []
    for at, rank in enumerate([0, 0, *ranks[2:]]):
        spec = draw(_jobs(f"j{at + 1}", at, 5.0 * at, size, names))
        specs.append(
            attrs.evolve(
                spec,
                partitions=(names[min(rank, len(names) - 1)],)
                if draw(st.integers(0, 5))
                else spec.partitions,
                qos=("low", "mid", "high")[rank] if with_qos else None,
                run_time=draw(st.sampled_from((20.0, 40.0, 60.0))),
                depends_on=(),
                begin_at=None,
            )
        )
    return Scenario(machine=base.machine, settings=chosen, specs=tuple(specs))


@st.composite
def waves(draw: st.DrawFn, policies: Sequence[tuple[str, str]], *, with_qos: bool = False) -> Scenario:
    """Draw urgent jobs that come one after the other and displace long ones each time, seconds or hours apart.

    A policy that decides by what it did before has to remember it here.
    """
    policy, mode = draw(st.sampled_from(policies))
    size = draw(st.integers(1, 3))
    unit = draw(st.sampled_from((1.0, 10.0, 100.0, 1000.0)))
    shares = {"oversubscribe": "FORCE:1"} if "gang" in mode else {}
    settings: dict[str, Any] = {
        "partitions": {"a": {"priority_tier": 1, **shares}, "b": {"priority_tier": 2, **shares}},
        "preempt": policy,
        "preempt_mode": mode,
    }
    if with_qos:
        settings["qos"] = {"low": {}, "high": {"priority": 9, "preempt": "low"}}
    users = st.sampled_from(("ann", "bob"))
    longs = [(0.0, 200.0 * unit, "a", "low") for _ in range(size)]
    at, shorts = 0.0, []
    for _ in range(draw(st.integers(4, 7))):
        at += unit * draw(st.integers(2, 9))
        shorts.append((at, unit * draw(st.integers(1, 4)), "b", "high"))
    specs = [
        JobSpec(
            id=f"j{number}",
            user=draw(users),
            partitions=(partition,),
            qos=qos if with_qos else None,
            submit_at=submit,
            run_time=run,
        )
        for number, (submit, run, partition, qos) in enumerate([*longs, *shorts], 1)
    ]
    machine = tuple(NodeTable(name=f"n{number}", cpus=1) for number in range(1, size + 1))
    return Scenario(machine=machine, settings=settings, specs=tuple(specs), until=100.0 * unit)


@st.composite
def queues(draw: st.DrawFn) -> Scenario:
    """Draw plain jobs that come faster than they go, on few nodes, without preemption."""
    size = draw(st.integers(2, 5))
    names = ("a", "b")[: draw(st.sampled_from((1, 1, 2)))]
    nices = draw(st.sampled_from(((0,), (0, 0, 7, 40))))
    specs = []
    at = 0.0
    for number in range(draw(st.integers(6, 24))):
        at += draw(st.sampled_from((0.0, 1.0, 5.0, 10.0)))
        specs.append(
            JobSpec(
                id=f"j{number + 1}",
                user=draw(st.sampled_from(("ann", "bob", "cyd"))),
                partitions=(draw(st.sampled_from(names)),),
                submit_at=at,
                min_nodes=draw(st.integers(1, size)),
                nice=draw(st.sampled_from(nices)),
                run_time=draw(st.sampled_from((5.0, 20.0, 40.0, 60.0))),
                time_limit=60.0,
            )
        )
    chosen = {
        "preempt": "preempt/none",
        "preempt_mode": "off",
        "scheduler": draw(st.sampled_from(("builtin", "greedy", "easy"))),
        "clockwork": {"preset": "ideal"},
        "partitions": {name: {"priority_job_factor": at} for at, name in enumerate(names)},
    }
    machine = builders.cluster(size)
    return Scenario(machine=machine, settings=chosen, specs=tuple(specs))
