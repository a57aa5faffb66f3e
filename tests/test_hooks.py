"""Every hook has a current entry in docs/hooks.md, and the example in its docstring runs."""

from __future__ import annotations

import importlib.util
import inspect
import textwrap
import types
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from makeway import hookspecs, model
from makeway.config import (
    Config,
    NodeTable,
    PartitionTable,
    PolicyTable,
    SchedulerTable,
    WorldTable,
    build_cluster,
)
from makeway.errors import Finding, PluginError
from makeway.foreign import Dialect
from makeway.hookspecs import hookimpl
from makeway.model import JobSpec
from makeway.record import Recorder
from makeway.registry import Policies, build_world
from makeway.state import read_state, write_state
from makeway.worlds.events import Command
from makeway_app.replay import Options, Run, replay
from makeway_engine.engine import Engine

ROOT = Path(__file__).parent.parent
HOOKS = [name for name in vars(hookspecs) if name.startswith("makeway_")]


def generator() -> types.ModuleType:
    """Import the script that writes the page."""
    found = importlib.util.spec_from_file_location("generate_hooks", ROOT / "docs" / "generate_hooks.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_the_page_is_current() -> None:
    """docs/hooks.md is what the hookspecs say; run docs/generate_hooks.py if this fails."""
    assert (ROOT / "docs" / "hooks.md").read_text(encoding="utf-8") == generator().render()


def test_every_hook_has_its_place() -> None:
    """In a group of the page."""
    page = generator()
    grouped = [name for group in page.GROUPS.values() for name in group]
    assert len(grouped) == len(set(grouped))
    assert set(grouped) == set(HOOKS)


@pytest.mark.parametrize("name", HOOKS)
def test_the_docstring_has_the_house_shape(name: str) -> None:
    """Says who calls it, what it returns, what None means, what it may raise, and since when."""
    text = inspect.getdoc(vars(hookspecs)[name]) or ""
    for part in ("alled ", ":raises:", "::\n", ".. versionadded::"):
        assert part in text, f"{name} lacks {part!r}"
    signature = inspect.signature(vars(hookspecs)[name])
    if signature.return_annotation != "None":
        assert ":returns:" in text
    for argument in signature.parameters:
        assert f":param {argument}:" in text, f"{name} does not explain {argument}"


def example(name: str) -> str:
    """Return the code at the end of a hook's docstring."""
    text = inspect.getdoc(vars(hookspecs)[name]) or ""
    code = text.rsplit("::\n", 1)[1].split(".. versionadded::")[0]
    return textwrap.dedent(code)


class Whole:
    """A selector of one node with one place, for the example that names it."""

    def __init__(self, cluster: model.Cluster) -> None:
        self._cluster = cluster
        self._busy = False

    def placed(self, job: model.Job) -> None:
        """Take note."""
        self._busy = True

    def released(self, job: model.Job) -> None:
        """Take note."""
        self._busy = False

    def suspended(self, job: model.Job) -> None:
        """Nothing changes."""

    def resumed(self, job: model.Job) -> None:
        """Nothing changes."""

    def screen(self, jobs: Any, nodes: int) -> Any:
        """Keep all."""
        return jobs

    def possible(self, job: model.Job, view: Any) -> None:
        """Everything is."""

    def forecast(self, job: model.Job, nodes: int, view: Any, removable: Any) -> None:
        """It is not known."""

    def attempt(self, job: model.Job, nodes: int, view: Any) -> Any:
        """Answer by the one place."""
        held = model.Allocation(nodes=1, node_indices=(0,))
        answer = model.Blocked() if self._busy else model.Placement(allocation=held)
        return types.SimpleNamespace(job=job, probe=lambda: answer)


def plugin(name: str, hook: str = "") -> types.ModuleType:
    """Return a plugin made of nothing but the example, of a hook or of a mark for one."""
    module = types.ModuleType("example")
    names = {key: value for key, value in vars(model).items() if not key.startswith("_")}
    module.__dict__.update(
        names,
        attrs=attrs,
        hookimpl=hookimpl,
        alike_by=hookspecs.alike_by,
        Counter=Counter,
        Dialect=Dialect,
        Finding=Finding,
        WholeNodes=Whole,
    )
    exec(example(name), module.__dict__)
    assert hasattr(module, hook or name), f"the example of {name} does not implement it"
    return module


def config(**policy: Any) -> Config:
    """Return one node, a low and a high partition, and the example as a plugin."""
    return Config(
        node=(NodeTable(name="n1"),),
        partition=(
            PartitionTable(name="low", default=True),
            PartitionTable(name="high", priority_tier=2),
        ),
        policy=PolicyTable(**({"plugins": ("example",)} | policy)),
        scheduler=SchedulerTable(type="builtin"),
    )


PREEMPTING: dict[str, Any] = {"preempt": "preempt/partition_prio", "preempt_mode": ("requeue",)}
TWO = (
    JobSpec(id="1", partitions=("low",), run_time=60, user="u"),
    JobSpec(id="2", partitions=("high",), submit_at=10, run_time=20, user="u"),
)


def run(name: str, commands: tuple[tuple[float, Command], ...] = (), **policy: Any) -> Run:
    """Replay a low job and a high one that comes 10 s later, with the example in place."""
    plugins = {"example": plugin(name)}
    return replay(config(**policy), TWO, commands, Options(plugins=plugins))


def starts(result: Run) -> dict[str, float | None]:
    """Return when each job first started."""
    return {job_id: history.first_start for job_id, history in result.recorder.histories.items()}


def test_hook_settings() -> None:
    """The example's key has its default, and takes a value from the config."""
    chosen = config(settings={"example": {"patience": 5.0}})
    module = plugin("makeway_settings")
    result = replay(chosen, TWO, (), Options(plugins={"example": module}))
    assert result.engine.ledger.settings(module.Settings).patience == 5.0


def test_hook_world() -> None:
    """The example's plugin is no world, and the error says so."""
    module = plugin("makeway_world")
    assert module.makeway_world() is None
    chosen = attrs.evolve(config(), world=WorldTable(name="world/none"))
    with pytest.raises(PluginError, match="'world/none' is no world"):
        build_world(chosen, build_cluster(chosen), None, {"world/none": module})


def test_hook_selector() -> None:
    """The example's selector is the one that places."""
    result = run("makeway_selector", select="example", plugins=())
    assert isinstance(result.engine.selector, Whole)
    assert starts(result) == {"1": 0.0, "2": 60.0}


def test_hook_gang() -> None:
    """The example declines, so there is no arbiter."""
    assert run("makeway_gang").engine.gang is None


def test_hook_priority() -> None:
    """What waited longest, at the end of five minutes, goes before what came with the same priority."""
    jobs = (
        JobSpec(id="0", partitions=("low",), run_time=400),
        JobSpec(id="1", partitions=("low",), submit_at=10, run_time=5, priority=150),
        JobSpec(id="2", partitions=("low",), submit_at=100, run_time=5),
        JobSpec(id="3", partitions=("low",), submit_at=200, run_time=5),
    )
    made = {"example": plugin("makeway_priority")}
    result = replay(config(), jobs, (), Options(plugins=made))
    # At 300 s: 2 has 1 + 200, 3 has 1 + 100; the priority that 1 was given stays as it is.
    assert starts(result) == {"0": 0.0, "2": 400.0, "1": 405.0, "3": 410.0}


def test_hook_queue() -> None:
    """Longest wait first: the earlier low job goes before the later high one."""
    jobs = (
        JobSpec(id="0", partitions=("low",), run_time=30),
        JobSpec(id="1", partitions=("low",), submit_at=1, run_time=5),
        JobSpec(id="2", partitions=("high",), submit_at=2, run_time=5),
    )
    result = replay(config(), jobs, (), Options(plugins={"example": plugin("makeway_queue")}))
    assert starts(result) == {"0": 0.0, "1": 30.0, "2": 35.0}
    plain = replay(config(plugins=()), jobs)
    assert starts(plain) == {"0": 0.0, "2": 30.0, "1": 35.0}


class _Ordering(model.QueueOrder):
    """A plugin that is its own order."""

    @hookimpl
    def makeway_queue(self) -> model.QueueOrder:
        """Order."""
        return self


class ShortFirst(_Ordering):
    """Short jobs first, by ranks or by an order made anew for each pass."""

    def __init__(self, *, ranked: bool) -> None:
        self.rank = (lambda job: int((job.time_limit or 0) > 3600)) if ranked else None

    def sort(self, pending: Sequence[model.Job], view: model.ClusterView) -> Sequence[model.Job]:
        """Put them first."""
        return sorted(pending, key=lambda job: (job.time_limit or 0) > 3600)


def test_ranks() -> None:
    """The order that is kept is the one that is made anew."""
    jobs = (
        JobSpec(id="0", partitions=("low",), run_time=30),
        JobSpec(id="1", partitions=("high",), submit_at=1, run_time=5, time_limit=7200),
        JobSpec(id="2", partitions=("low",), submit_at=2, run_time=5, time_limit=3600),
        JobSpec(id="3", partitions=("low",), submit_at=3, run_time=5, time_limit=60),
    )
    for ranked in (True, False):
        result = replay(config(), jobs, (), Options(plugins={"example": ShortFirst(ranked=ranked)}))
        assert starts(result) == {"0": 0.0, "2": 30.0, "3": 35.0, "1": 40.0}
        assert result.engine.queue.ranked is ranked


def test_ranks_give_up() -> None:
    """Once there is a job without a rank, the order is asked for: here, the longest wait first."""

    class Undecided(_Ordering):
        rank = staticmethod(lambda job: None if job.id == "2" else -job.index)

        def sort(self, pending: Sequence[model.Job], view: model.ClusterView) -> Sequence[model.Job]:
            return sorted(pending, key=lambda job: job.submit_at)

    jobs = [
        JobSpec(id="0", partitions=("low",), run_time=5),
        JobSpec(id="1", partitions=("low", "high"), submit_at=1, run_time=30),
        JobSpec(id="2", partitions=("low",), submit_at=2, run_time=5),
        JobSpec(id="3", partitions=("high",), submit_at=3, run_time=5),
    ]
    result = replay(config(), jobs, (), Options(plugins={"example": Undecided()}))
    assert starts(result) == {"0": 0.0, "1": 5.0, "2": 35.0, "3": 40.0}
    assert not result.engine.queue.ranked
    ranked = replay(config(), jobs[:2] + jobs[3:], (), Options(plugins={"example": Undecided()}))
    assert starts(ranked) == {"0": 0.0, "3": 5.0, "1": 10.0}


def test_heads() -> None:
    """The two that have waited longest are tried and no others, though the third would find room before them."""

    class Two(_Ordering):
        def heads(self, tried: Sequence[model.Job], view: model.ClusterView) -> Sequence[model.Job]:
            waiting = [job for job in view.pending if job.eligible_since is not None]
            return () if tried else waiting[:2]

    greedy = attrs.evolve(config(), node=(NodeTable(name="n[1-3]"),), scheduler=SchedulerTable(type="greedy"))
    jobs = [
        JobSpec(id="wide", min_nodes=2, run_time=50),
        JobSpec(id="first", min_nodes=3, run_time=5, submit_at=1),
        JobSpec(id="second", min_nodes=2, run_time=5, submit_at=2),
        JobSpec(id="third", run_time=5, submit_at=3),
    ]
    result = replay(greedy, jobs, (), Options(plugins={"example": Two()}))
    assert starts(result) == {"wide": 0.0, "first": 50.0, "second": 55.0, "third": 55.0}
    plain = replay(attrs.evolve(greedy, policy=PolicyTable()), jobs, (), Options())
    assert starts(plain)["third"] == 3.0


def test_heads_are_asked_for_until_no_new_one_is_named() -> None:
    """Each answer may follow what came of the one before; those tried in this pass are not tried twice."""
    asked: list[tuple[str, ...]] = []

    class OneByOne(_Ordering):
        def heads(self, tried: Sequence[model.Job], view: model.ClusterView) -> list[model.Job]:
            asked.append(tuple(job.id for job in tried))
            waiting = [job for job in view.pending if job not in tried]
            return [*tried, *sorted(waiting, key=lambda job: -job.index)[:1]]

    greedy = attrs.evolve(config(), scheduler=SchedulerTable(type="greedy"))
    jobs = [JobSpec(id=name, run_time=5) for name in ("a", "b")]
    result = replay(greedy, jobs, (), Options(plugins={"example": OneByOne()}))
    assert asked[:3] == [(), ("b",), ("b", "a")]
    assert starts(result) == {"b": 0.0, "a": 5.0}


def test_hook_limits() -> None:
    """No more than ten active jobs per user: the eleventh waits; the job of more than a day is refused."""
    many = attrs.evolve(config(), node=(NodeTable(name="n[1-20]"),))
    jobs = [JobSpec(id=str(at), run_time=50) for at in range(11)]
    result = replay(many, jobs, (), Options(plugins={"example": plugin("makeway_limits")}))
    assert sorted(starts(result).values()) == [0.0] * 10 + [50.0]  # type: ignore[type-var]  # all started
    long = (JobSpec(id="1", run_time=5, time_limit=86401), JobSpec(id="2", run_time=5, time_limit=86400))
    result = replay(config(), long, (), Options(plugins={"example": plugin("makeway_limits")}))
    assert [(job_id, why) for job_id, _, why in result.recorder.unrunnable] == [("1", "longer than a day")]
    assert starts(result)["2"] == 0.0


class _Limiting(model.Limits):
    """A plugin that is its own limits."""

    @hookimpl
    def makeway_limits(self) -> model.Limits:
        """Limit."""
        return self


def test_by_request() -> None:
    """A limit that says it looks at nothing else: of the jobs that wait it is asked about one."""
    greedy = attrs.evolve(
        config(), node=(NodeTable(name="n[1-20]"),), scheduler=SchedulerTable(type="greedy")
    )
    greedy = attrs.evolve(greedy, policy=PolicyTable(select="select/linear", plugins=("example",)))
    jobs = [JobSpec(id=str(at), run_time=50 + at % 2) for at in range(100)]

    class Ten(_Limiting):
        def __init__(self) -> None:
            self.asked = 0

        def admit(self, job: model.Job, view: model.ClusterView) -> model.Blocked | None:
            self.asked += 1
            return model.Blocked() if view.usage("user")[job.user].jobs >= 10 else None

    class Alike(Ten):
        by_request = staticmethod(lambda job: True)

    alike, ten = Alike(), Ten()
    quick, plain = (
        replay(greedy, jobs, (), Options(plugins={"example": each}, keep=False)) for each in (alike, ten)
    )
    assert quick.ended_at == plain.ended_at
    assert alike.asked < ten.asked / 2


def test_hook_preempt_candidates() -> None:
    """Any job may be displaced, so the later job takes the node of the earlier one."""
    chosen = attrs.evolve(
        config(preempt="example", preempt_mode=("requeue",), plugins=()),
        scheduler=SchedulerTable(type="builtin", clockwork={"requeue_delay": 100.0}),
    )
    made = {"example": plugin("makeway_preempt_candidates")}
    result = replay(chosen, TWO, (), Options(plugins=made))
    assert result.recorder.preemptions[0].victim == "1"


def test_kinds() -> None:
    """Those of one user are asked about once: it is the same record as with each asked about by itself."""
    jobs = [
        JobSpec(id=str(at), submit_at=at, run_time=20 + 3 * at, user="u" if at < 11 else "v")
        for at in range(12)
    ]
    greedy = attrs.evolve(
        config(),
        node=(NodeTable(name="n[1-2]"),),
        scheduler=SchedulerTable(type="greedy"),
        policy=PolicyTable(plugins=(), preempt="example", preempt_mode=("requeue",)),
    )
    module = plugin("alike_by", "makeway_preempt_candidates")
    asked: list[str] = []
    candidates = vars(module)["makeway_preempt_candidates"]

    def counted(preemptor: Any, active: Any) -> Any:
        asked.append(preemptor.id)
        return candidates(preemptor, active)

    vars(counted).update(vars(candidates))
    vars(module)["makeway_preempt_candidates"] = hookimpl(counted)
    until = Options(plugins={"example": module}, until=60.0)
    together = replay(greedy, jobs, (), until)
    once = len(asked)
    delattr(vars(module)["makeway_preempt_candidates"], "makeway_kinds")
    apart = replay(greedy, jobs, (), until)
    assert together.recorder.summary(60.0) == apart.recorder.summary(60.0)
    assert together.recorder.metrics.preemptions
    assert 0 < once < len(asked) - once


def test_hook_displaces_by() -> None:
    """Preemptions are counted by account, not by partition."""
    result = run("makeway_displaces_by", **PREEMPTING)
    assert result.recorder.metrics.pairs == {("(none)", "(none)", "requeue"): 1}
    assert result.recorder.grouping.noun == "account"


def test_hook_preempt_mode() -> None:
    """All are suspended, whatever the cluster's mode says."""
    result = run("makeway_preempt_mode")
    job = attrs.evolve(result.recorder.histories["1"].job)
    assert result.engine.ledger.mode_of(job) is model.PreemptMode.SUSPEND


def test_hook_protect() -> None:
    """Within five minutes of its end a job is safe; with a longer limit it is not."""
    near = (attrs.evolve(TWO[0], time_limit=200.0), TWO[1])
    far = (attrs.evolve(TWO[0], time_limit=20000.0), TWO[1])
    made = {"example": plugin("makeway_protect")}
    chosen = config(protect=("example",), plugins=(), **PREEMPTING)
    assert starts(replay(chosen, near, (), Options(plugins=made))) == {"1": 0.0, "2": 60.0}
    assert starts(replay(chosen, far, (), Options(plugins=made))) == {"1": 0.0, "2": 10.0}


def test_hook_search() -> None:
    """One at a time until it fits: the only candidate goes."""
    result = run("makeway_search", search="example", plugins=(), **PREEMPTING)
    assert [entry.victim for entry in result.recorder.preemptions] == ["1"]


def test_hook_preempt_action() -> None:
    """Ten minutes for all: the victim, which needs 60 s, ends by itself before its time is up."""
    result = run("makeway_preempt_action", **PREEMPTING)
    assert starts(result)["2"] == 60.0


def test_commands_are_refused() -> None:
    """Owners may do anything but resume."""
    commands = (
        (5.0, Command("suspend", "1", "u")),
        (6.0, Command("resume", "1", "u")),
        (7.0, Command("resume", "1", None)),
    )
    result = run("makeway_commands", commands)
    assert [reason for _, _, reason in result.recorder.refusals] == ["a user may not resume his own job"]
    assert result.recorder.histories["1"].final_state is model.JobState.COMPLETED


def test_commands_name_jobs() -> None:
    """A list with commas: each job is dealt with by itself; the second one has not come yet."""
    commands = ((5.0, Command("cancel", "1,2")), (6.0, Command("cancel", "2,1")))
    result = run("makeway_commands", commands)
    assert result.recorder.histories["1"].final_state is model.JobState.CANCELLED
    refused = [(at, command.job_id) for at, command, _ in result.recorder.refusals]
    assert refused == [(5.0, "2"), (6.0, "2"), (6.0, "1")]


def test_hook_dialect() -> None:
    """The example hands over words and no readers."""
    dialect = vars(plugin("makeway_dialect"))["makeway_dialect"]()
    assert dialect.vocabulary.nouns == {"partition": "queue"}
    assert (*dialect.configs, *dialect.workloads, *dialect.recordings, dialect.accounting) == (None,)


def test_hook_check() -> None:
    """The partition without nodes is found, and where."""
    empty = (PartitionTable(name="low", default=True), PartitionTable(name="none", nodes=""))
    chosen = attrs.evolve(config(), partition=empty)
    found = Policies(chosen, {"example": plugin("makeway_check")}).findings(chosen, build_cluster(chosen))
    assert [(finding.where, finding.message) for finding in found] == [("partition[1]", "it has no nodes")]


def test_words_of_a_dialect() -> None:
    """Partitions are called queues where things are shown to people."""
    words = Policies(config(), {"example": plugin("makeway_dialect")}).vocabulary()
    assert words.noun("partition") == "queue"
    assert words.noun("node") == "node"


def test_closed_nodes() -> None:
    """Under greedy the wide job that waits keeps the idle node, and the narrow one behind it waits too."""

    class FirstKeeps(_Limiting):
        def closed_nodes(self, job: model.Job, before: Sequence[model.Job], view: model.ClusterView) -> int:
            return before[0].partition.nodes & view.idle if before else 0

    two = attrs.evolve(config(), node=(NodeTable(name="n[1-2]"),), scheduler=SchedulerTable(type="greedy"))
    jobs = (
        JobSpec(id="1", run_time=30),
        JobSpec(id="wide", submit_at=1, min_nodes=2, max_nodes=2, run_time=5),
        JobSpec(id="narrow", submit_at=2, run_time=5),
    )
    kept = replay(two, jobs, (), Options(plugins={"example": FirstKeeps()}))
    assert starts(kept) == {"1": 0.0, "wide": 30.0, "narrow": 35.0}
    free = attrs.evolve(two, policy=attrs.evolve(two.policy, plugins=()))
    assert starts(replay(free, jobs)) == {"1": 0.0, "narrow": 2.0, "wide": 30.0}


def test_reservations() -> None:
    """A job that would run into the closed night waits for its end; one that is over before starts at once."""

    class ClosedNight(_Limiting):
        def reservations(self, job: model.Job, view: model.ClusterView) -> list[model.Window]:
            return [model.Window(nodes=job.partition.nodes, start=72000.0, end=108000.0)]

    jobs = (
        JobSpec(id="long", submit_at=71_000, run_time=5, time_limit=3600),
        JobSpec(id="short", submit_at=71_100, run_time=5, time_limit=60),
    )
    for kind in ("easy", "backfill", "greedy"):
        table = attrs.evolve(config(), scheduler=SchedulerTable(type=kind))
        run = replay(table, jobs, (), Options(plugins={"example": ClosedNight()}))
        assert starts(run) == {"long": 108_000.0, "short": 71_100.0}, kind


def test_node_sets() -> None:
    """Of four nodes the first half is taken as long as the job fits there; wider ones may lie anywhere."""

    class FirstHalf(_Limiting):
        def node_sets(self, job: model.Job, nodes: int, view: model.ClusterView) -> model.NodeSets:
            half = len(view.cluster.nodes) // 2
            return model.NodeSets(sets=(nodes & ((1 << half) - 1), nodes))

    four = attrs.evolve(config(), node=(NodeTable(name="n[1-4]"),))
    jobs = (
        JobSpec(id="pinned", required_nodes=("n3",), run_time=50),
        JobSpec(id="one", submit_at=1, run_time=9),
        JobSpec(id="two", submit_at=2, min_nodes=2, max_nodes=2, run_time=9),
    )
    run = replay(four, jobs, (), Options(plugins={"example": FirstHalf()}))
    nodes = {job_id: job["intervals"][0]["nodes"] for job_id, job in run.summary()["jobs"].items()}
    assert nodes == {"pinned": "n3", "one": "n1", "two": "n[2,4]"}  # n4 alone would be the tightest block


def test_expired() -> None:
    """At midnight what runs is ended, by a timeout; what is over before is not."""

    class Midnight(_Limiting):
        def expired(self, view: model.ClusterView) -> model.Overdue:
            over = {job.id: "it is midnight" for job in view.active} if view.now >= 86400 else {}
            return model.Overdue(jobs=over, ask_again_at=86400.0)

    jobs = (
        JobSpec(id="early", submit_at=85_000, run_time=100),
        JobSpec(id="late", submit_at=86_000, run_time=5000, time_limit=9000),
    )
    run = replay(config(), jobs, (), Options(plugins={"example": Midnight()}))
    found = {
        job_id: (job["final_state"], job["intervals"][-1]["end"])
        for job_id, job in run.summary()["jobs"].items()
    }
    assert found == {"late": ("TIMEOUT", 86_400.0), "early": ("COMPLETED", 85_100.0)}


def test_marks() -> None:
    """A job that has run for an hour when a pass is made is a veteran; a younger one is not."""

    class Veterans(_Limiting):
        def marks(self, view: model.ClusterView) -> dict[str, frozenset[str]]:
            old = [job for job in view.active if job.ran_until(view.now) >= 3600]
            return {job.id: job.marks | {"veteran"} for job in old}

    marked = {}

    def look(engine: Engine) -> None:
        marked.update({job.id: job.marks for job in engine.ledger.active})

    jobs = (JobSpec(id="old", run_time=7200), JobSpec(id="new", submit_at=4000, run_time=10))
    two = attrs.evolve(config(), node=(NodeTable(name="n[1-2]"),))
    replay(two, jobs, (), Options(plugins={"example": Veterans()}, snapshots={4005.0: look}))
    assert marked == {"old": {"veteran"}, "new": frozenset()}


def test_past_time_limit() -> None:
    """A job over its limit waits again instead of ending as TIMEOUT."""

    class Again(_Limiting):
        def past_time_limit(self, job: model.Job, view: model.ClusterView) -> model.Plan:
            return model.Plan(job=job, mode=model.PreemptMode.REQUEUE, why="over its limit")

    jobs = (JobSpec(id="1", run_time=60, time_limit=50),)
    result = replay(config(), jobs, (), Options(plugins={"example": Again()}, until=70.0))
    assert result.recorder.histories["1"].job.restarts == 1
    plain = replay(config(plugins=()), jobs)
    assert plain.recorder.histories["1"].final_state is model.JobState.TIMEOUT


def test_save_and_restore() -> None:
    """What was counted goes by way of JSON to the plugin of the next engine."""

    class Counting(_Limiting):
        def __init__(self, used: dict[str, float]) -> None:
            self.used = used

        def save(self, view: model.ClusterView) -> dict[str, Any]:
            return {"used": dict(self.used)}

        def restore(self, memory: Any, view: model.ClusterView) -> None:
            self.used.update(memory["used"])

    saving, restoring = Counting({"ann": 7.0}), Counting({})
    first = replay(config(), TWO, (), Options(plugins={"example": saving}, until=5.0)).engine
    assert first.policies.save(first.ledger) == {"example": {"used": {"ann": 7.0}}}
    state = read_state(write_state(first.save()), "test")
    settings = config()
    policies = Policies(settings, {"example": restoring})
    assert Engine(settings, Recorder(build_cluster(settings)), policies).adopt(state) == []
    assert restoring.used == {"ann": 7.0}


def test_hook_explain() -> None:
    """The check list of the job that waits says that no node is idle."""
    made = {"example": plugin("makeway_explain")}
    told: list[model.Check] = []

    def ask(engine: Engine) -> None:
        told.extend(engine.policies.explain(engine.ledger.jobs["2"], engine.ledger))

    replay(config(), TWO, (), Options(plugins=made, snapshots={20.0: ask}))
    assert [(check.code, check.verdict, check.found) for check in told] == [("E1", "fail", "none is")]


def test_every_hook_is_tested() -> None:
    """Each hook has a test of its own here."""
    tested = {name for name in globals() if name.startswith("test_hook_")}
    together = {"makeway_commands"}
    for name in HOOKS:
        assert name in together or name.replace("makeway_", "test_hook_") in tested, name
