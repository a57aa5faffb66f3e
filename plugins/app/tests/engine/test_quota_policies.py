"""What policies with quotas need: usage per entity, candidates on condition, a reason for every victim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from makeway.errors import PolicyError
from makeway.hookspecs import hookimpl
from makeway.model import (
    Attempt,
    Blocked,
    Candidates,
    Choice,
    ClusterView,
    Job,
    JobState,
    Limits,
    Placement,
    Plan,
    PreemptMode,
    Usage,
)
from makeway.usage import used_by
from makeway_app.replay import Options, replay
from makeway_engine.engine import Engine
from makeway_testing import cluster, one_node, replay_table, tiers
from makeway_testing.builders import config, jobs

QUOTA = 2


class Quota:
    """Jobs of users over their quota of two CPUs may be displaced, as long as they are over it."""

    def __init__(self, **more: Any) -> None:
        self.more = more

    @hookimpl
    def makeway_preempt_candidates(
        self, preemptor: Job, active: Sequence[Job], view: ClusterView
    ) -> Candidates:
        """The youngest first, each with the reason."""
        usage = view.usage("user")
        over = sorted(
            (job for job in active if usage[job.user].cpus > QUOTA and job.user != preemptor.user),
            key=lambda job: (-(job.started_at or 0.0), job.index),
        )

        def still_over(job: Job, taken: Sequence[Job]) -> bool:
            gone = sum(used_by(each, view.cluster).cpus for each in taken if each.user == job.user)
            return usage[job.user].cpus - gone > QUOTA

        reasons = tuple(f"{job.user} holds {usage[job.user].cpus} CPUs of {QUOTA}" for job in over)
        given = {"reasons": reasons, "allowed_after": still_over, **self.more}
        return Candidates(jobs=tuple(over), modes=(PreemptMode.REQUEUE,) * len(over), **given)


class TakesAll:
    """A search that takes all, whatever the condition."""

    @hookimpl
    def makeway_search(self, attempt: Attempt, candidates: Candidates) -> Choice | None:
        """In the order of the candidates."""
        for job, mode in zip(candidates.jobs, candidates.modes, strict=True):
            attempt.remove(job, mode)
        found = attempt.probe()
        if not isinstance(found, Placement):
            return None
        return Choice(placement=found, victims=tuple(range(len(candidates.jobs))))


TABLE = """
job  submit  nodes  run_time  user
a         0      1       100  ann
b         1      1       100  ann
c         2      1       100  ann
d         3      1       100  bob
e         4      1       100  bob
h        10      {}      10  eve
"""


def victims(wanted: int, search: str | None, quota: Quota | None = None) -> tuple[str, ...]:
    """Return what eve's job of so many nodes displaces; ann holds three nodes of one CPU, bob two."""
    run = replay_table(
        TABLE.format(wanted),
        cluster=cluster(5, cpus=1),
        config={"preempt": "mine", "scheduler": "builtin", "search": search} if search else SITE,
        plugins={"mine": quota or Quota(), "all": TakesAll()},
        until=10,
    )
    return run.victims


SITE: dict[str, Any] = {"preempt": "mine", "scheduler": "builtin"}
SEARCHES = [None, "search/in_order", "search/least_disruption", "all"]


@pytest.mark.parametrize("search", SEARCHES)
def test_candidates_are_taken_as_long_as_the_condition_holds(search: str | None) -> None:
    """Ann is over by one CPU: one of her jobs may go, and no second; bob is not over."""
    assert victims(1, search) == ("c",)
    assert victims(2, search) == ()


def test_a_condition_that_fails_is_blamed_on_the_policy() -> None:
    """The plugin that named the candidates."""
    broken = Quota(allowed_after=lambda job, taken: 1 / 0)
    with pytest.raises(PolicyError, match=r"'mine', hook makeway_preempt_candidates.*ZeroDivisionError"):
        victims(1, None, broken)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"allowed_after": 3}, "gave 3 as allowed_after"),
        ({"reasons": ("one",)}, "3 jobs but the reasons"),
        ({"reasons": (1, 2, 3)}, "3 jobs but the reasons"),
    ],
)
def test_wrong_answers_are_refused(more: dict[str, Any], said: str) -> None:
    """With what was given."""
    with pytest.raises(PolicyError, match=said):
        victims(1, None, Quota(**more))


# ------------------------------------------------------------------------------------- reasons
class Explains(TakesAll):
    """A search with reasons of its own."""

    @hookimpl
    def makeway_search(self, attempt: Attempt, candidates: Candidates) -> Choice | None:
        """The first alone."""
        attempt.remove(candidates.jobs[0], candidates.modes[0])
        found = attempt.probe()
        assert isinstance(found, Placement)
        return Choice(placement=found, victims=(0,), reasons=("it is nearest",))


class Acts:
    """An action that is told the reasons."""

    def __init__(self) -> None:
        self.told: list[Sequence[str]] = []

    @hookimpl
    def makeway_preempt_action(
        self, victims: Sequence[Job], modes: Sequence[PreemptMode], reasons: Sequence[str]
    ) -> list[Plan]:
        """Note them."""
        self.told.append(reasons)
        return [Plan(job=job, mode=mode, why="at once") for job, mode in zip(victims, modes, strict=True)]


@pytest.mark.parametrize(
    ("quota", "further", "why"),
    [
        (Quota(), (), "ann holds 3 CPUs of 2"),
        (Quota(), ("acts",), "ann holds 3 CPUs of 2; at once"),
        (Quota(), ("explains",), "it is nearest"),
        (Quota(reasons=()), (), "no reason given"),
    ],
)
def test_every_victim_has_a_reason(quota: Quota, further: tuple[str, ...], why: str) -> None:
    """The search's, else the candidates'; the action is told, and adds its own."""
    acts = Acts()
    run = replay_table(
        TABLE.format(1),
        cluster=cluster(5, cpus=1),
        config=SITE | {"plugins": list(further)},
        plugins={"mine": quota, "acts": acts, "explains": Explains()},
        until=10,
    )
    assert [each.why for each in run.run.recorder.preemptions] == [why]
    assert [tuple(each) for each in acts.told] == ([("ann holds 3 CPUs of 2",)] if "acts" in further else [])


# --------------------------------------------------------------------------------------- usage
KINDS = ("user", "account", "group", "partition", "qos", ("user", "partition"))


def test_usage_is_what_the_active_jobs_hold() -> None:
    """After every step, for every kind, suspended jobs counted and left out, against a plain sum."""
    looked = 0

    def check(engine: Engine) -> None:
        nonlocal looked
        view = engine.ledger
        for running in (False, True):
            for by in KINDS:
                usage = view.usage(by, running=running).items()
                found = {key: (each.jobs, each.cpus, each.nodes) for key, each in usage}
                assert found == plain(view, by, running=running)
                looked += 1

    table = """
    job  partition  submit  cpus  run_time  user  account
    a    low             0     2        50  ann   x
    b    low             1     2        50  bob   -
    c    hi             10     3        10  ann   x
    d    hi             12     1        10  cid   y
    e    low            15     4        10  bob   x
    """
    site = config(
        one_node(cpus=4),
        {
            "preempt": "preempt/partition_prio",
            "preempt_mode": ["suspend", "gang"],
            "select": "select/cons_tres",
            "select_parameters": ["CR_Core"],
            "partitions": {
                "low": {"priority_tier": 1, "oversubscribe": "FORCE:1", "default": True},
                "hi": {"priority_tier": 2, "oversubscribe": "FORCE:1"},
            },
        },
    )
    run = replay(site, jobs(table), [], Options(after_step=check))
    assert run.recorder.preemptions
    assert looked > 50


def plain(view: Any, by: Any, *, running: bool) -> dict[Any, tuple[int, int, int]]:
    """Sum by hand."""
    sums: dict[Any, tuple[int, int, int]] = {}
    for job in view.active:
        if running and job.state is not JobState.RUNNING:
            continue
        values = {
            "user": job.user,
            "account": job.account,
            "group": job.spec.group,
            "partition": job.partition.name,
            "qos": job.qos.name if job.qos else None,
        }
        key = values[by] if isinstance(by, str) else tuple(values[each] for each in by)
        count, cpus, nodes = sums.get(key, (0, 0, 0))
        sums[key] = count + 1, cpus + sum(job.allocation.cpus), nodes + len(job.allocation.node_indices)
    return sums


class PerUser(Limits):
    """At most two CPUs per user, counted without those that made way."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int]] = []

    @hookimpl
    def makeway_limits(self) -> Limits:
        """Be the limits."""
        return self

    def admit(self, job: Job, view: ClusterView) -> Blocked | None:
        """Note what is seen."""
        cpus = view.usage("user")[job.user].cpus
        self.seen.append((job.id, cpus))
        return Blocked(reason="QOSMaxCpuPerUserLimit", liftable=True) if cpus + job.spec.cpus > 2 else None


def test_a_limit_sees_the_usage_without_those_who_would_make_way() -> None:
    """Ann's third CPU is let through once the victim's two are thought away."""
    limit = PerUser()
    run = replay_table(
        """
        job  partition  submit  cpus  run_time  user
        a    low             0     2        50  ann
        h    hi              5     1        10  ann
        """,
        cluster=one_node(cpus=4),
        config={
            "preempt": "mine",
            "select": "select/cons_tres",
            "search": "search/in_order",
            "scheduler": "greedy",
            "plugins": ["limit"],
            "partitions": tiers(low=1, hi=2),
        },
        plugins={"mine": Lower(), "limit": limit},
        until=5,
    )
    assert run.victims == ("a",)
    assert ("h", 2) in limit.seen
    assert ("h", 0) in limit.seen


class Lower:
    """All of a lower tier are requeued."""

    @hookimpl
    def makeway_preempt_candidates(self, preemptor: Job, active: Sequence[Job]) -> Candidates:
        """In table order."""
        below = tuple(
            job for job in active if job.partition.priority_tier < preemptor.partition.priority_tier
        )
        return Candidates(jobs=below, modes=(PreemptMode.REQUEUE,) * len(below))


def test_usage_of_an_unknown_name_is_empty_and_of_no_kind_an_error() -> None:
    """The nearest kind is named."""
    run = replay_table("job submit cpus run_time\na 0 1 10\n", cluster=one_node(cpus=1), until=1)
    view = run.run.engine.ledger
    assert view.usage("user")["nobody"] == Usage()
    assert "nobody" not in view.usage("user")
    with pytest.raises(ValueError, match=r"'uesr'.*did you mean 'user'"):
        view.usage("uesr")
