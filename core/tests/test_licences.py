"""Licences are a limit at the admission hook (slurm-preemption 1.11), shared by the Slurm-like selectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from makeway.errors import InvariantError
from makeway.hookspecs import hookimpl
from makeway.model import Blocked, ClusterView, Job, JobSpec, JobState, Limits
from makeway.registry import Policies
from makeway_app.replay import Options, replay
from makeway_explain.story import Witness, explain
from makeway_testing import TableRun, builders, check_invariants, cluster, replay_table, tiers

CONS: dict[str, Any] = {
    "select": "select/cons_tres",
    "select_parameters": "CR_Core",
    "preempt": "preempt/partition_prio",
    "preempt_mode": "requeue",
    "partitions": tiers(low=1, hi=2),
    "licenses": {"lic": 1, "other": 2},
}
LINEAR = {key: value for key, value in CONS.items() if key != "select_parameters"} | {
    "select": "select/linear"
}


def spec(name: str, partition: str, at: float, run_time: float = 100.0, **more: Any) -> JobSpec:
    """Return a job of one whole node."""
    return JobSpec(
        id=name,
        partitions=(partition,),
        submit_at=at,
        run_time=run_time,
        **{"min_nodes": 1, "tasks": 4, **more},
    )


def table(config: Mapping[str, Any], *specs: JobSpec, nodes: int = 2, **more: Any) -> TableRun:
    """Replay jobs on so many nodes of 4 CPUs."""
    return replay_table(specs, cluster=cluster(nodes), config=dict(config), **more)


HOLDER = spec("holder", "low", 0.0, licenses={"lic": 1})
WANTS = spec("wants", "hi", 10.0, 20.0, licenses={"lic": 1})


# ----------------------------------------------------------------------------------- the hook
@pytest.mark.parametrize("config", [CONS, LINEAR], ids=["cons_tres", "linear"])
def test_the_hook_is_not_called_where_no_job_wants_a_licence(
    config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It costs nothing: not one call, though jobs wait and search; one job with a licence brings it back."""
    calls: list[str] = []
    admit = Policies.admit

    def counted(self: Policies, job: Job, view: ClusterView) -> Blocked | None:
        calls.append(job.id)
        return admit(self, job, view)

    monkeypatch.setattr(Policies, "admit", counted)
    plain = [spec("a", "low", 0.0), spec("b", "low", 0.0), spec("c", "hi", 5.0), spec("d", "low", 6.0)]
    run = table(config, *plain)
    assert run.victims
    assert calls == []
    table(config, *plain, spec("e", "low", 7.0, licenses={"lic": 1}))
    assert set(calls) == {"e"}


class Few(Limits):
    """At most one job of the account ``few`` runs; one that runs would give it back, wherever it is."""

    def __init__(self, *, knows: bool = True) -> None:
        self.knows = knows
        self.asked: list[str] = []
        self.concerns = lambda job: job.account == "few"

    @hookimpl
    def makeway_limits(self) -> Limits:
        """Be the limits."""
        return self

    def admit(self, job: Job, view: ClusterView) -> Blocked | None:
        """Count them."""
        self.asked.append(job.id)
        running = [each for each in view.active if each.state is JobState.RUNNING]
        holders = {each.id: 1.0 for each in running if each.account == "few"}
        if not holders:
            return None
        frees = holders if self.knows else {}
        return Blocked(reason="Few", wanted=1, available=0, liftable=True, frees=frees)


def test_a_limit_of_a_plugin_is_about_some_jobs_only() -> None:
    """Jobs that it is not about are not shown to it."""
    few = Few()
    config = {**CONS, "plugins": ["x/few"]}
    specs = (spec("a", "low", 0.0), spec("b", "low", 1.0, account="few"), spec("c", "hi", 2.0))
    table(config, *specs, plugins={"x/few": few})
    assert set(few.asked) == {"b"}


class _Every(Limits):
    """Lets all in."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    @hookimpl
    def makeway_limits(self) -> Limits:
        """Be the limits."""
        return self

    def admit(self, job: Job, view: ClusterView) -> Blocked | None:
        """Take note of them."""
        self.asked.append(job.id)
        return None


def test_nor_are_they_where_another_limit_is_about_all() -> None:
    """Each limit is asked about those that it is about."""
    few, every = Few(), _Every()
    config = {**CONS, "plugins": ["x/few", "x/every"]}
    specs = (spec("a", "low", 0.0), spec("b", "low", 1.0, account="few"), spec("c", "hi", 2.0))
    table(config, *specs, plugins={"x/few": few, "x/every": every})
    assert set(few.asked) == {"b"}
    assert set(every.asked) == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("knows", "victims"),
    [
        pytest.param(True, ("holder",), id="it says which would help"),
        pytest.param(False, (), id="it does not: Slurm's search looks at nodes only"),
    ],
)
def test_the_search_of_cons_tres_takes_jobs_that_a_limit_names(knows: bool, victims: tuple[str, ...]) -> None:
    """The holder is on another node than the preemptor takes, and in no other job's way otherwise."""
    specs = (spec("holder", "low", 0.0, account="few"), spec("wants", "hi", 10.0, account="few"))
    run = table({**CONS, "plugins": ["x/few"]}, *specs, plugins={"x/few": Few(knows=knows)})
    assert run.victims == victims


# ------------------------------------------------------------------------------------- Slurm
def test_explain_names_licence_and_count() -> None:
    """The reason is Slurm's; how many there are, and why no job is displaced for them, stands beside it."""
    config = builders.config(cluster(2), CONS)
    witness = Witness("wants")
    options = Options(traced=witness.concerns, after_step=witness.stepped)
    run = replay(config, [HOLDER, WANTS], (), options)
    text = "\n".join(explain(run, witness))
    assert "10 s to 100 s: Licenses" in text
    assert "Licenses: 1 of licence lic wanted, 0 of 1 free, 1 in use" in text
    assert "licences are no reason to preempt without reclaim_licenses" in text


RECLAIM = {"reclaim_licenses": True}


@pytest.mark.parametrize(
    ("config", "victims"),
    [
        pytest.param(CONS, (), id="cons_tres"),
        pytest.param(CONS | RECLAIM, ("holder",), id="cons_tres, reclaim_licenses"),
        pytest.param(LINEAR | RECLAIM, (), id="linear, reclaim_licenses: ends the attempt"),
        pytest.param(CONS | {"search": "search/least_disruption"}, (), id="fewest victims"),
        pytest.param(
            CONS | RECLAIM | {"search": "search/least_disruption"},
            ("holder",),
            id="fewest victims, reclaim_licenses",
        ),
    ],
)
def test_whose_licence_is_taken(config: dict[str, Any], victims: tuple[str, ...]) -> None:
    """slurm-preemption 1.11: a second node is idle, so that no job would have to leave but for the licence."""
    run = table(config, HOLDER, WANTS)
    assert run.victims == victims
    assert run.starts("wants") == ((10.0,) if victims else (100.0,))


def test_the_victims_give_all_that_is_short() -> None:
    """Two licences are short, each held by another; a job that holds neither stays."""
    config = CONS | RECLAIM
    specs = (
        spec("none", "low", 0.0),
        spec("one", "low", 0.0, licenses={"lic": 1}),
        spec("two", "low", 0.0, licenses={"other": 2}),
        spec("wants", "hi", 10.0, 20.0, licenses={"other": 1, "lic": 1}, required_nodes=("n4",)),
    )
    run = table(config, *specs, nodes=4)
    assert run.victims == ("one", "two")
    assert run.starts("wants") == (10.0,)


def test_suspended_jobs_keep_their_licences() -> None:
    """slurm-preemption 5.3: the victim of another job is stopped; what it holds is not there for a third."""
    config = CONS | {"preempt_mode": "suspend,gang"}
    other = spec("other", "hi", 5.0, 50.0)
    run = table(config, HOLDER, other, WANTS, nodes=1)
    assert run.starts("other") == (5.0,)
    assert run.starts("wants") == (150.0,)  # 5 s, 50 s stopped, 95 s


def test_components_share_what_is_there() -> None:
    """Two components want the only licence: the job waits, rather than take it twice."""
    parts = [spec(f"h+{at}", "low", 0.0, het_id="h", het_offset=at, licenses={"lic": 1}) for at in range(2)]
    run = table(CONS, *parts, until=500.0)
    assert run.starts("h+0") == run.starts("h+1") == ()


def test_one_of_several_is_taken() -> None:
    """``lic:1|other:1`` takes what there is, and gives it back."""
    either = {"lic": 1, "other": 1}
    specs = [spec(f"j{at}", "low", 0.0, 50.0, licenses=either, licenses_any=True) for at in range(4)]
    run = table(CONS, *specs, nodes=4)
    assert [run.starts(f"j{at}") for at in range(4)] == [(0.0,), (0.0,), (0.0,), (50.0,)]


def test_no_command_makes_licences() -> None:
    """A start that ignores limits needs its licences all the same."""
    run = table(CONS, HOLDER, WANTS, commands="20 start wants ignore-limits", until=50.0)
    assert run.starts("wants") == ()
    assert run.reason("wants") == "Licenses"


# ---------------------------------------------------------------------------------- the check
def test_a_licence_in_use_twice_is_noticed() -> None:
    """Rule 2 holds for licences as for memory; a job that took one behind the books' back."""
    run = table(CONS, HOLDER, spec("free", "low", 0.0), until=5.0)
    free, holder = run.engine.ledger.jobs["free"], run.engine.ledger.jobs["holder"]
    assert holder.allocation is not None
    object.__setattr__(free, "allocation", holder.allocation.__class__(**_fields(free), licenses={"lic": 1}))
    with pytest.raises(InvariantError, match="2 of licence lic in use, of which there are 1"):
        check_invariants(run.engine)


def _fields(job: Job) -> dict[str, Any]:
    allocation = job.allocation
    assert allocation is not None
    return {
        name: getattr(allocation, name) for name in ("nodes", "node_indices", "cpus", "cores", "memory_mb")
    }


@pytest.mark.parametrize("config", [CONS, LINEAR], ids=["cons_tres", "linear"])
@pytest.mark.parametrize(
    ("wanted", "either", "reason"),
    [
        pytest.param({"lic": 2}, False, "2 of licence lic wanted, of which the cluster has 1", id="too many"),
        pytest.param(
            {"none": 1}, False, "1 of licence none wanted, of which the cluster has none", id="unknown"
        ),
        pytest.param(
            {"lic": 2, "other": 3}, True, "2 of licence lic wanted, of which the cluster has 1", id="neither"
        ),
        pytest.param({"lic": 2, "other": 2}, True, "", id="the other one will do"),
    ],
)
def test_more_licences_than_there_are_can_never_be_had(
    config: dict[str, Any], wanted: dict[str, int], either: bool, reason: str
) -> None:
    """The job is refused, as by sbatch, and does not wait for ever, nor does any job make way for it."""
    asks = spec("asks", "hi", 10.0, 20.0, licenses=wanted, licenses_any=either)
    run = table(config, HOLDER, asks)
    assert {job: why for job, _, why in run.run.recorder.unrunnable} == ({"asks": reason} if reason else {})
    assert run.victims == ()
