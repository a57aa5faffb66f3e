"""What searches for victims: the general search, a selector's own, and a search that has no opinion or says no."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from makeway import registry
from makeway.hookspecs import hookimpl
from makeway.model import Attempt, Blocked, Candidates, Choice, ClusterView, Job, Limits, PreemptMode
from makeway.searching import in_order
from makeway_app.cli import cli
from makeway_app.replay import Options, replay
from makeway_testing import TableRun, cluster, replay_table, tiers
from makeway_testing.builders import config, jobs


class Youngest:
    """Names all jobs of lower tiers, the latest start first."""

    @hookimpl
    def makeway_preempt_candidates(self, preemptor: Job, active: Sequence[Job]) -> Candidates:
        """Sort by start."""
        below = [job for job in active if job.partition.priority_tier < preemptor.partition.priority_tier]
        below.sort(key=lambda job: (-(job.started_at or 0.0), job.index))
        return Candidates(jobs=tuple(below), modes=(PreemptMode.REQUEUE,) * len(below))


class Silent:
    """A search that never has an opinion."""

    @hookimpl
    def makeway_search(self, attempt: Attempt, candidates: Candidates) -> None:
        """Try all and say nothing, so that the next search would see the traces."""
        for job, mode in zip(candidates.jobs, candidates.modes, strict=True):
            attempt.remove(job, mode)


class Refuses:
    """A search that says no."""

    @hookimpl
    def makeway_search(self) -> Blocked:
        """Give a reason."""
        return Blocked(detail="not on a Sunday")


class OnePerUser(Limits):
    """A limit that preempting may lift: one active job per user."""

    @hookimpl
    def makeway_limits(self) -> Limits:
        """Be the limits."""
        return self

    def admit(self, job: Job, view: ClusterView) -> Blocked | None:
        """Count active jobs."""
        taken = job.user in {other.user for other in view.active}
        return Blocked(reason="OnePerUser", liftable=True) if taken else None


JOBS = """
job  partition  submit  nodes  run_time  user  required_nodes
a    low             0      1       100  ann   n1
b    low             1      1       100  bob   n2
h    hi             10      1        10  {}  {}
"""
SITE: dict[str, Any] = {"preempt": "mine", "scheduler": "builtin", "partitions": tiers(low=1, hi=2)}


def played(where: str, given: Mapping[str, Any], user: str = "eve", **changes: Any) -> TableRun:
    """Replay three jobs on two nodes, the last on the node `where`."""
    return replay_table(
        JOBS.format(user, where),
        cluster=cluster(2),
        config=SITE | changes,
        plugins={"mine": Youngest(), **given},
        until=20,
    )


@pytest.fixture
def no_search() -> SimpleNamespace:
    """Return select/linear without its search, as a select plugin of the template is."""
    linear = registry.load("select/linear")
    return SimpleNamespace(makeway_selector=linear.makeway_selector)


def test_a_selector_without_a_search_gets_one(no_search: SimpleNamespace) -> None:
    """The youngest is named first and is enough."""
    run = played("-", {"bare": no_search}, select="bare")
    assert run.victims == ("b",)


def test_who_is_not_needed_is_given_back(no_search: SimpleNamespace) -> None:
    """The job wants n1: b is taken first, does not help, and stays."""
    run = played("n1", {"bare": no_search}, select="bare")
    assert run.victims == ("a",)


class OldestFirst:
    """A search that takes the candidates from behind, in the order that it was given."""

    @hookimpl
    def makeway_search(self, attempt: Attempt, candidates: Candidates) -> Choice | None:
        """Use what the general search is made of."""
        return in_order(attempt, candidates, range(len(candidates.jobs) - 1, -1, -1))


def test_a_search_may_go_by_an_order_of_its_own(no_search: SimpleNamespace) -> None:
    """Any node will do: the policy names `b` first, the search takes `a`."""
    run = played("-", {"bare": no_search, "oldest": OldestFirst()}, select="bare", search="oldest")
    assert run.victims == ("a",)


def test_who_is_not_needed_is_given_back_in_that_order_as_well(no_search: SimpleNamespace) -> None:
    """The job wants n2: a is taken first, does not help, and stays."""
    run = played("n2", {"bare": no_search, "oldest": OldestFirst()}, select="bare", search="oldest")
    assert run.victims == ("b",)


@pytest.mark.parametrize("limited", [False, True])
def test_a_search_without_an_opinion_leaves_it_to_the_selector_s(limited: bool) -> None:
    """Also where a limit concerns the job, and although it has removed candidates from its own attempt."""
    given = {"silent": Silent(), "limit": OnePerUser()}
    run = played("n1", given, user="ann" if limited else "eve", search="silent", plugins=["limit"])
    assert run.victims == ("a",)


def test_a_search_that_says_no_ends_it() -> None:
    """The selector's own is not asked."""
    run = played("n1", {"no": Refuses()}, search="no")
    assert run.victims == ()


def test_search_none_switches_it_off_and_check_says_so(tmp_path: Path) -> None:
    """No job is displaced; `makeway check` warns."""
    assert played("n1", {}, search="search/none").victims == ()
    path = tmp_path / "site.toml"
    path.write_text(
        '[[node]]\nname = "n1"\n[[partition]]\nname = "all"\n'
        '[policy]\npreempt = "preempt/qos"\npreempt_mode = ["requeue"]\nsearch = "search/none"\n'
    )
    shown = CliRunner().invoke(cli, ["check", str(path)]).output
    assert "policy.search" in shown
    assert "preempt/qos never displaces a job" in " ".join(shown.split())


def test_explain_does_not_say_that_removing_all_would_not_help() -> None:
    """It says what the search said, or that the search chose no job."""
    assert "not on a Sunday" in told(Refuses())
    assert "the search chose no job, though removing all candidates would make room" in told(Mute())


class Mute:
    """A search that says no without a reason."""

    @hookimpl
    def makeway_search(self) -> Blocked:
        """Give none."""
        return Blocked()


def told(search: Any) -> str:
    """Return all that was noted about the job that waits."""
    table = jobs(JOBS.format("eve", "n1"))
    site = config(cluster(2), SITE | {"search": "no"})
    options = Options(until=20, traced=lambda _: True, plugins={"mine": Youngest(), "no": search})
    run = replay(site, table, [], options)
    return " ".join(each.detail for each in run.recorder.decisions if each.job == "h")
