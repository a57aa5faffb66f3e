"""``makeway tune`` on a site whose answer is known by hand.

Every two hours a batch job of 50 minutes has all 4 CPUs, and after 40 minutes an urgent job comes: as configured it
takes the node, and the batch job loses 40 minutes on 4 CPUs, 2.67 core-hours, 12 times a day: 32 a day. A batch job
that must not be touched loses nothing, and the urgent job waits 10 minutes.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from makeway_app.cli.inputs import load_config

Tune = Callable[..., Result]


def answer(tune: Tune, conf: Path, log: Path, *given: object, exit_code: int = 0) -> dict[str, Any]:
    """Return the answer as data."""
    target = conf.parent / "answer.json"
    result = tune(conf, log, "--json", target, *given)
    assert result.exit_code == exit_code, result.output
    found: dict[str, Any] = json.loads(target.read_text())
    return found


def figure(candidate: dict[str, Any], measure: str, of: str = "", stat: str | None = None) -> dict[str, Any]:
    """Return one figure of a candidate."""
    return next(
        each
        for each in candidate["figures"]
        if each["measure"] == measure and each["stat"] == stat and (each["of"] or {}).get("name", "") == of
    )


MODE = ("--only", "batch PreemptMode", "--trials", 4)


def test_the_best_change_is_found_and_told_as_a_difference(tune: Tune, conf: Path, log: Path) -> None:
    """Nothing is lost where batch jobs are not touched; the diff applies, and says what was replayed."""
    found = answer(tune, conf, log, *MODE, "--minimise", "lost-hours", "--keep", "wait[urgent].max<=15min")
    best = next(each for each in found["candidates"] if each["name"] == found["recommended"])
    assert best["changes"] == {"PartitionName=batch PreemptMode": "OFF"}
    today = found["candidates"][0]
    assert figure(today, "lost-hours")["value"] == pytest.approx(32.0, rel=0.05)
    assert figure(best, "lost-hours")["value"] == 0
    assert figure(best, "wait", "urgent", "max")["value"] == pytest.approx(600, abs=65)
    assert (
        "+PartitionName=batch Nodes=n1 PriorityTier=1 Default=YES MaxTime=INFINITE PreemptMode=OFF  # everybody"
        in (best["diff"].splitlines())
    )
    if shutil.which("patch") is not None:
        (conf.parent / "change.diff").write_text(best["diff"])
        subprocess.run(["patch", "-s", "-p0", "-i", "change.diff"], cwd=conf.parent, check=True)
        assert load_config(conf).config.partition[0].preempt_mode == ("off",)


def test_a_limit_decides(tune: Tune, conf: Path, log: Path) -> None:
    """Urgent jobs that must not wait leave nothing better than what is configured; that is no error."""
    found = answer(tune, conf, log, *MODE, "--minimise", "lost-hours", "--keep", "wait[urgent].max<=3min")
    assert found["recommended"] is None
    assert "nothing better was found within your limits" in found["reason"]


def test_what_cannot_be_had_is_said_in_one_sentence(tune: Tune, conf: Path, log: Path) -> None:
    """No setting has urgent jobs start at once and batch jobs never make way."""
    limits = ("--keep", "wait[urgent].max<=3min", "--never", "preempted[batch]")
    result = tune(conf, log, *MODE, *limits)
    assert result.exit_code == 1
    assert "no setting that was tried keeps all limits at once" in result.output


def test_the_replay_is_held_against_the_log_first(tune: Tune, conf: Path, log: Path) -> None:
    """The log has real starts: how far the replay is off is told by partition, above all else."""
    result = tune(conf, log, *MODE)
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert next(line for line in lines if line.startswith("against the log")) == (
        "against the log: 48 jobs compared"
    )
    assert result.output.index("against the log") < result.output.index("as configured")


def test_checkpoints_and_restarts_count(tune: Tune, conf: Path, log: Path) -> None:
    """A checkpoint every 30 minutes leaves 10 of the 40 minutes lost, and 5 to begin again: 15 on 4 CPUs is an hour."""
    costs = ("--checkpoint-every", "batch=30min", "--restart-cost", "ann=5min")
    found = answer(tune, conf, log, *MODE, *costs)
    assert figure(found["candidates"][0], "lost-hours")["value"] == pytest.approx(12.0, rel=0.05)


def test_a_cost_may_be_by_memory(tune: Tune, conf: Path, log: Path) -> None:
    """30 minutes a GiB of 512 MB is 15 minutes: with none of the 40 minutes lost, an hour on 4 CPUs."""
    rows = [
        f"{line}|{'ReqMem' if at == 0 else '512Mn'}" for at, line in enumerate(log.read_text().splitlines())
    ]
    log.write_text("\n".join(rows) + "\n")
    costs = ("--checkpoint-every", "batch=1", "--restart-cost", "ann=30min/GiB")
    found = answer(tune, conf, log, *MODE, *costs)
    assert figure(found["candidates"][0], "lost-hours")["value"] == pytest.approx(12.0, rel=0.05)


def test_who_wins_and_who_loses(tune: Tune, conf: Path, log: Path) -> None:
    """The batch user loses nothing any more, the urgent one waits 10 minutes."""
    result = tune(conf, log, *MODE, "--minimise", "lost-hours")
    assert "user ann: 32" in result.output
    assert "core-hours lost a day less" in result.output
    assert "user olga: 10 min of waiting a job more" in result.output


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--keep", "wait[urgnt].p95<=10min"), "did you mean 'urgent'"),
        (("--never", "preempted[gold]"), "no partition, QOS, account or user 'gold' has jobs in the log"),
        (("--keep", "wait[urgent]<=-5min"), "it can never be reached"),
        (("--keep", "lost-hours<0"), "it can never be reached"),
        (("--keep", "wait>=5min"), "allowed: <="),
        (("--keep", "wait[urgent].p95<=soon"), "got 'soon'; allowed: 10min"),
        (("--minimise", "lost-hour"), "did you mean 'lost-hours'"),
        (("--minimise", "wait.p9x"), "allowed: mean, median, max, p95"),
        (("--never", "wait[urgent]"), "jobs may always wait a moment"),
        (("--only", "GraceTyme"), "no setting has that in its name; did you mean 'GraceTime'?; there are"),
        (("--report", "/nowhere/tune.html"), "/nowhere/tune.html: cannot be written"),
        (("--since", "/nowhere/last.json"), "/nowhere/last.json: cannot be written"),
        (("--checkpoint-every", "batc=5min"), "did you mean 'batch'"),
        (("--restart-cost", "batch=long"), "allowed: [GROUP=]TIME"),
        (("--restart-cost", "batch=9s/TB"), "got /TB; allowed: TIME or TIME/GiB"),
    ],
)
def test_bad_goals_are_one_clear_sentence(
    tune: Tune, conf: Path, log: Path, given: tuple[str, ...], said: str
) -> None:
    """Each names what was given and what is allowed, before anything runs."""
    result = tune(conf, log, *given)
    assert result.exit_code == 2
    assert said in result.output
    assert result.output.startswith("makeway: ")
    assert len(result.output.splitlines()) == 1


def test_a_log_that_is_too_short(tune: Tune, conf: Path, short_log: Path) -> None:
    """Jobs in 13 hours are too few to say anything."""
    result = tune(conf, short_log)
    assert result.exit_code == 2
    assert (
        "the log is too short to say anything: it has jobs in 13 hours, and at least 14 are needed"
        in result.output
    )


def test_a_site_where_no_job_makes_way(tune: Tune, conf: Path, log: Path) -> None:
    """There is nothing to change."""
    conf.write_text(conf.read_text().replace("PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\n", ""))
    result = tune(conf, log)
    assert result.exit_code == 2
    assert "no job makes way here, so there is nothing to change" in result.output


def test_work_lost_with_nodes_counts(tune: Tune, conf: Path, log: Path, tmp_path: Path) -> None:
    """The only node fails for a minute at 4:10: what ran since 4:00 on 4 CPUs is lost, 0.67 core-hours in 2 days."""
    events = tmp_path / "events.txt"
    events.write_text(
        "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\n"
        "site|n1|2025-06-02T04:10:00|2025-06-02T04:11:00|DOWN|power|root\n"
    )
    given = (*MODE, "--minimise", "lost-hours", "--set", "policy.preempt=preempt/none")
    assert "no job makes way" not in tune(conf, log, *given).output
    lost = [
        figure(answer(tune, conf, log, *given, *more)["candidates"][0], "lost-hours")["value"]
        for more in ((), ("--outages", events))
    ]
    assert lost[1] - lost[0] == pytest.approx(4 / 6 / 2, rel=0.15)
