"""Reservations by hand (slurm-priority-and-limits 9), and the files that tell of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from makeway.config import Config, build_cluster
from makeway.errors import ConfigError
from makeway.model import Exclusive, JobSpec
from makeway.settings import structure
from makeway_app.replay import Options, Run, replay
from makeway_slurm.readers.sacctmgr import read_accounting
from makeway_slurm.reservations.tables import reservations_of
from makeway_testing.command_line import Run as CommandLine

NAME = "reservations/slurm"


def site(*tables: Mapping[str, Any], kind: str = "backfill", own: Mapping[str, Any] | None = None) -> Config:
    """Return a cluster of 4 nodes with 4 CPUs, and these reservations."""
    return structure(
        {
            "cluster": {"attributes": {"reservations": list(tables)}},
            "node": [{"name": "n[1-4]", "cpus": 4, "cores_per_socket": 4, "memory_mb": 1000}],
            "partition": [{"name": "main", "default": True, "max_time": 86400.0}],
            "policy": {
                "select": "select/linear",
                "plugins": [NAME],
                "settings": {NAME: dict(own or {})},
            },
            "scheduler": {"type": kind},
        },
        Config,
        "test",
    )


def reserved(name: str = "r", start: float = 100.0, end: float = 160.0, **more: Any) -> dict[str, Any]:
    """Return one table."""
    return {"ReservationName": name, "StartTime": start, "EndTime": end, "Nodes": "ALL", **more}


def job(id: str, at: float, minutes: float, run_time: float = 10.0, **more: Any) -> JobSpec:
    """Return a job on one node."""
    return JobSpec(id=id, submit_at=at, run_time=run_time, time_limit=minutes * 60, **more)


def starts(run: Run) -> dict[str, float | None]:
    """Return when each job first started."""
    return {job_id: history.first_start for job_id, history in run.recorder.histories.items()}


@pytest.mark.parametrize("kind", ["backfill", "easy", "greedy"])
def test_x4_a_window_is_kept_clear_by_time_limits(kind: str) -> None:
    """At 6 a job of a minute starts, one of two waits until 160; at 70 a job of a minute waits until 160."""
    jobs = [job("two", 6, 2), job("one", 6, 1), job("late", 70, 1)]
    found = starts(replay(site(reserved(Flags="MAINT"), kind=kind), jobs))
    assert found == {"two": 160.0, "one": 6.0, "late": 160.0}


def test_jobs_wait_for_a_window_in_its_own_words() -> None:
    """Maintenance of all nodes is named; so is a reservation of some nodes where the others are idle and too few."""
    assert reason_at(50.0, site(reserved(Flags="MAINT"))) == "ReqNodeNotAvail,_Reserved_for_maintenance"
    assert reason_at(50.0, site(reserved())) == "ReqNodeNotAvail,_Reserved_for_maintenance"
    few = site(reserved(Nodes="n[1-2]"))
    assert reason_at(50.0, few) == "ReqNodeNotAvail,_May_be_reserved_for_other_job"
    busy = job("busy", 0, 1, 80.0, exclusive=Exclusive.NODE, required_nodes=("n4",))
    assert reason_at(50.0, few, busy) == "Resources"


def reason_at(at: float, config: Config, *others: JobSpec) -> str:
    """Return why a job on three nodes waits."""
    found: list[str] = []
    jobs = [*others, job("wide", 7, 2, min_nodes=3)]
    look = {at: lambda engine: found.append(engine.ledger.jobs["wide"].reason)}
    run = replay(config, jobs, (), Options(snapshots=look))
    assert starts(run)["wide"] == 160.0
    return found[0]


def test_a_job_in_a_reservation_has_its_nodes_and_time() -> None:
    """It waits for the start, runs on these nodes only, may outlast them by its limit, and is ended at their end."""
    own = reserved(Nodes="n[1-2]", Users="ann")
    inside = job("in", 0, 10, 500.0, user="ann", reservation="r", min_nodes=2, max_nodes=2)
    run = replay(site(own), [inside])
    history = run.recorder.histories["in"]
    assert history.first_start == 100.0
    only = run.summary()["jobs"]["in"]["intervals"][-1]
    assert (only["nodes"], only["end"]) == ("n[1-2]", 160.0)
    assert run.summary()["jobs"]["in"]["final_state"] == "TIMEOUT"


def test_an_overrun_lets_jobs_go_on() -> None:
    """ResvOverRun of a minute: the job that ends 30 s after its reservation completes."""
    inside = job("in", 0, 10, 90.0, reservation="r")
    ended = replay(site(reserved(), own={"overrun": 60.0}), [inside]).summary()["jobs"]["in"]
    assert ended["final_state"] == "COMPLETED"
    assert ended["intervals"][-1]["end"] == 190.0


def test_flex_is_no_border() -> None:
    """A job in a FLEX reservation starts before it and runs on after it, on other nodes too (no. 6)."""
    inside = job("in", 0, 10, 300.0, reservation="r", min_nodes=4, max_nodes=4)
    found = replay(site(reserved(Nodes="n1", Flags="FLEX")), [inside]).summary()["jobs"]["in"]
    assert (found["intervals"][-1]["start"], found["final_state"]) == (0.0, "COMPLETED")


def test_others_are_let_in_by_nobody() -> None:
    """A user not on the list is refused, and a job larger than the reservation once that has begun (no. 5)."""
    table = reserved(Nodes="n[1-2]", Users="ann", Accounts="physics")
    jobs = [
        job("eve", 0, 1, user="eve", reservation="r"),
        job("bob", 0, 1, user="bob", account="Physics", reservation="r"),
        job("early", 0, 1, user="ann", reservation="r", min_nodes=3),
        job("large", 101, 1, user="ann", reservation="r", min_nodes=3),
    ]
    run = replay(site(table), jobs)
    refused = {job_id: why for job_id, _, why in run.recorder.unrunnable}
    assert refused["eve"] == "Access denied to requested reservation (r)"
    assert refused["large"] == "Requested node configuration is not available (reservation r)"
    assert starts(run)["bob"] == 100.0
    assert run.summary()["jobs"]["early"]["final_state"] == "PENDING"


def test_a_maintenance_job_passes_other_reservations() -> None:
    """MAINT passes all others, OVERLAP all but maintenance; any other reservation is heeded (no. 6)."""
    inside = [job("in", 0, 10, 5.0, reservation="mine")]
    for flags, theirs, start in (
        ("MAINT", "", 0.0),
        ("OVERLAP", "", 0.0),
        ("OVERLAP", "MAINT", 160.0),
        ("", "", 160.0),
    ):
        mine = reserved("mine", 0.0, 4000.0, Flags=flags)
        run = replay(site(mine, reserved("theirs", Flags=theirs)), inside)
        assert starts(run)["in"] == start, (flags, theirs)


def test_a_job_whose_reservation_has_gone_waits_for_good() -> None:
    """It came too late; the reason says so (no. 6)."""
    run = replay(site(reserved()), [job("late", 200, 1, reservation="r"), job("other", 201, 1)])
    assert starts(run) == {"late": None, "other": 201.0}
    assert run.engine.ledger.jobs["late"].reason == "Reservation_r_was_deleted"


def test_a_window_comes_again_each_day() -> None:
    """DAILY: a job of three hours passes the second day's window, too."""
    day = 86400.0
    table = reserved(start=0.0, end=3600.0, Flags="DAILY")
    found = starts(replay(site(table), [job("long", day - 3600.0, 180), job("short", day - 3600.0, 30)]))
    assert found == {"long": day + 3600.0, "short": day - 3600.0}


def test_a_reservation_of_any_nodes_keeps_its_time_only() -> None:
    """ANY_NODES: its job runs on four nodes, though it has one, but not before it begins (no. 6)."""
    inside = job("in", 0, 10, 30.0, reservation="r", min_nodes=4, max_nodes=4)
    run = replay(site(reserved(Nodes="n1", Flags="ANY_NODES")), [inside])
    assert starts(run) == {"in": 100.0}


def test_a_job_in_a_reservation_holds_back_its_reservation_alone() -> None:
    """The second job of the reservation lacks room (no. 8): the third waits behind it, others start."""
    table = reserved(start=0.0, end=4000.0, Nodes="n1")
    jobs = [
        job("first", 0, 1, 50.0, reservation="r"),
        job("second", 1, 1, reservation="r"),
        job("third", 1, 1, reservation="r"),
        job("other", 2, 1),
    ]
    found = starts(replay(site(table, kind="builtin"), jobs))
    assert found == {"first": 0.0, "second": 50.0, "third": 60.0, "other": 2.0}


@pytest.mark.parametrize("kind", ["backfill", "builtin", "easy", "greedy"])
@pytest.mark.parametrize(
    ("rules", "starts_at"), [({}, (20.0, 30.0)), ({"reservation_first": False}, (30.0, 20.0))]
)
def test_a_job_in_a_reservation_stands_before_a_higher_tier(
    kind: str, rules: dict[str, bool], starts_at: tuple[float, float]
) -> None:
    """One node is free at 20, and both may use it: the reservation's job goes first (no. 8), by tier the other one."""
    config = site(reserved(start=0.0, end=9000.0, Nodes="n1", Flags="FLEX"), kind=kind)
    high = attrs.evolve(config.partition[0], name="high", default=False, priority_tier=5)
    config = attrs.evolve(
        config,
        partition=(*config.partition, high),
        scheduler=attrs.evolve(config.scheduler, rules=rules),
    )
    full = [
        job("inside", 0, 60, 3000, reservation="r"),
        job("wide", 1, 60, 3000, min_nodes=2, max_nodes=2),
        job("short", 1, 60, 19),
    ]
    waits = [job("higher", 5, 1, partitions=("high",)), job("first", 6, 1, reservation="r")]
    found = starts(replay(config, [*full, *waits]))
    assert (round(found["first"] or 0), round(found["higher"] or 0)) == starts_at


def test_a_floating_reservation_lets_short_jobs_pass() -> None:
    """TIME_FLOAT: it begins a minute from now at any time, so jobs of a minute pass and longer ones never do."""
    table = reserved(start=60.0, end=3660.0, Flags="TIME_FLOAT")
    jobs = [job("short", 500, 1), job("long", 500, 2), job("in", 500, 1, reservation="r")]
    run = replay(site(table), jobs, (), Options(until=5000.0))
    assert starts(run) == {"short": 500.0, "long": None, "in": None}
    assert run.engine.ledger.jobs["in"].reason == "Reservation"


def test_a_reservation_is_purged_when_no_job_uses_it() -> None:
    """PURGE_COMP: gone after so long without a job, five minutes unless it says so."""
    for flags, start in (("PURGE_COMP=00:01:00", 160.0), ("PURGE_COMP", 400.0), ("", 4000.0)):
        table = reserved(end=4000.0, Flags=flags)
        assert starts(replay(site(table), [job("other", 110, 2)])) == {"other": start}, flags


def test_a_reservation_in_use_is_not_purged() -> None:
    """The last of its jobs ends at 150, and a minute later it is gone; a job that asks for it then waits forever."""
    table = reserved(end=4000.0, Flags="PURGE_COMP=00:01:00")
    jobs = [
        job("in", 0, 2, 50.0, reservation="r"),
        job("other", 110, 2),
        job("late", 300, 1, reservation="r"),
    ]
    run = replay(site(table), jobs)
    assert starts(run) == {"in": 100.0, "other": 210.0, "late": None}
    assert run.engine.ledger.jobs["late"].reason == "Reservation_r_was_deleted"


def test_a_magnetic_reservation_draws_those_in_who_may_use_it() -> None:
    """MAGNETIC: Ann starts in it without asking and ends with it; Bob waits until it is over (no. 6)."""
    table = reserved(Users="ann", Flags="MAGNETIC")
    jobs = [job("ann", 110, 10, 500.0, user="ann"), job("bob", 110, 10, user="bob")]
    run = replay(site(table), jobs)
    assert starts(run) == {"ann": 110.0, "bob": 160.0}
    assert run.summary()["jobs"]["ann"]["final_state"] == "TIMEOUT"
    assert run.summary()["jobs"]["ann"]["intervals"][-1]["end"] == 160.0


@pytest.mark.parametrize(
    ("table", "start"),
    [
        (reserved(Users="ann", Flags="MAGNETIC"), 160.0),
        (reserved(end=4000.0, Flags="PURGE_COMP=00:01:00"), 4000.0),
        (reserved(end=300.0, Flags="TIME_FLOAT"), 300.0),
        (reserved(start=20.0, end=60.0, Flags="HOURLY"), 110.0),
    ],
)
def test_flags_known_from_the_manual_may_be_left_out(table: dict[str, Any], start: float) -> None:
    """Without `documented` the window is kept from Ann as from anybody, and does not come again."""
    found = starts(replay(site(table, own={"documented": False}), [job("ann", 110, 600, user="ann")]))
    assert found == {"ann": start}


def test_what_is_not_modelled_is_named(run: CommandLine, tmp_path: Path) -> None:
    """MaxStartDelay and odd flags are warnings of check; a wrong time is an error."""
    conf = tmp_path / "slurm.conf"
    conf.write_text(
        "ClusterName=c\nSlurmctldHost=h\nNodeName=n[1-4]\nPartitionName=p Nodes=ALL Default=YES\n"
    )
    shown = tmp_path / "resv.txt"
    line = "ReservationName=r StartTime=2024-05-01T08:00:00 EndTime=2024-05-01T09:00:00 Nodes=n1 Users=ann"
    shown.write_text(f"{line} Flags=WEEKDAY MaxStartDelay=00:05:00\n")
    done = run("check", conf, "--accounting", shown)
    told = " ".join((done.out + done.err).split())
    assert "r: WEEKDAY is not modelled" in told
    assert "r: MaxStartDelay is not modelled" in told
    with pytest.raises(ConfigError, match="Flags: PURGE_COMP: "):
        reservations_of(build_cluster(site(reserved(Flags="PURGE_COMP=soon"))))


def test_a_preemptor_takes_no_reserved_node() -> None:
    """Victims are not sought on nodes that a window keeps."""
    plain = site(reserved(Nodes="n[1-4]", start=50.0, end=400.0))
    tables = {
        "policy": {
            "select": "select/linear",
            "plugins": [NAME],
            "preempt": "preempt/partition_prio",
            "preempt_mode": ["requeue"],
        },
        "partition": [{"name": "main", "default": True}, {"name": "high", "priority_tier": 2}],
        "node": [{"name": "n[1-4]", "cpus": 4}],
        "cluster": {"attributes": dict(plain.cluster.attributes)},
    }
    jobs = [
        job("low", 0, 0.5, 30.0, min_nodes=4, max_nodes=4),
        job("high", 5, 2, partitions=("high",)),
    ]
    run = replay(structure(tables, Config, "test"), jobs)
    assert starts(run) == {"low": 0.0, "high": 400.0}
    assert run.recorder.histories["low"].preempted == 0


# ------------------------------------------------------------------------------------- reading
SCONTROL = (
    "ReservationName=service StartTime=2024-05-01T08:01:40 EndTime=2024-05-01T08:02:40 Duration=00:01:00 "
    "Nodes=n[1-4] NodeCnt=4 CoreCnt=16 Features=(null) PartitionName=(null) Flags=MAINT,SPEC_NODES,ALL_NODES "
    "TRES=cpu=16 Users=root Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE MaxStartDelay=(null)\n"
)
IN_LINES = SCONTROL.replace(" Nodes=", "\n   Nodes=").replace(" TRES=", "\n   TRES=")
SACCTMGR = (
    "Cluster|Name|NodeNames|TimeStart|TimeEnd|Flags\n"
    "c|service|n[1-4]|2024-05-01T08:01:40|2024-05-01T08:02:40|MAINT\n"
    "c|course|n1|2024-05-02T08:00:00|2024-05-02T09:00:00|\n"
)


@pytest.mark.parametrize("text", [SCONTROL, IN_LINES, SACCTMGR], ids=["one line", "lines", "sacctmgr"])
def test_exports_of_reservations(tmp_path: Path, text: str) -> None:
    """Each of them gives the window of the recorded kind."""
    path = tmp_path / "reservations.txt"
    path.write_text(text)
    first = dict(read_accounting([path]).reservations[0])
    assert first["ReservationName"] == "service"
    assert first["Nodes"] == "n[1-4]"
    assert first["Flags"].startswith("MAINT")
    assert (first["StartTime"], first["EndTime"]) == ("2024-05-01T08:01:40", "2024-05-01T08:02:40")


def test_a_history_without_nodes_is_refused(tmp_path: Path) -> None:
    """The default columns of sacctmgr lack them: the message says which command has them."""
    path = tmp_path / "reservations.txt"
    path.write_text("Cluster|Name|TRES|TimeStart|TimeEnd|UnusedWall\nc|s|cpu=4|2024-05-01|2024-05-02|0\n")
    with pytest.raises(ConfigError, match=r"without NodeNames: got .*format=Name,NodeNames,Start,End,Flags"):
        read_accounting([path])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "Name|NodeNames|Begin|TimeEnd|Flags\nr|n1|a|b|\n",
            r":1: a table of reservations without TimeStart: got",
        ),
        ("Nodes|Start|End\nn1|a|b\n", r":1: a table of reservations without Name: got"),
        (
            "Name|Hosts|From|Until\nr|n1|a|b\n",
            r":1: got 'Name\|Hosts\|From\|Until', which is neither .*Priority.*TimeStart",
        ),
        (
            "Name|Hosts|Flags\nr|n1|MAINT\n",
            r":1: got 'Name\|Hosts\|Flags', which is neither a table of QOS nor",
        ),
    ],
)
def test_unknown_headings_are_one_error(tmp_path: Path, text: str, message: str) -> None:
    """What was seen and what is allowed; such a table was taken for one of QOS without a word."""
    path = tmp_path / "reservations.txt"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        read_accounting([path])
    assert len(caught.value.problems) == 1


def test_a_report_of_sreport_names_reservations_too(tmp_path: Path) -> None:
    """``sreport -P reservation utilization`` heads its columns otherwise than sacctmgr."""
    path = tmp_path / "reservations.txt"
    path.write_text("Name|Nodes|Start|End|Flags\nr|n[1-2]|2024-05-01T08:00:00|2024-05-01T09:00:00|MAINT\n")
    (found,) = read_accounting([path]).reservations
    assert (found["Nodes"], found["StartTime"], found["EndTime"]) == (
        "n[1-2]",
        "2024-05-01T08:00:00",
        "2024-05-01T09:00:00",
    )


def test_a_replay_reads_them_beside_a_log(run: CommandLine, tmp_path: Path) -> None:
    """Dates of the export are those of the log: the long job waits for the end of the window at 160 s."""
    (tmp_path / "slurm.conf").write_text(
        "ClusterName=c\nSlurmctldHost=h\nSelectType=select/linear\nNodeName=n[1-4] CPUs=4\n"
        "PartitionName=main Nodes=n[1-4] Default=YES MaxTime=60\n"
    )
    (tmp_path / "jobs.sacct").write_text(
        "JobID|Submit|Start|End|State|NNodes|NCPUS|Timelimit|Partition|User|Reservation\n"
        "1|2024-05-01T08:00:00|2024-05-01T08:00:00|2024-05-01T08:00:30|COMPLETED|1|4|00:01:00|main|ann|\n"
        "2|2024-05-01T08:00:06|2024-05-01T08:02:40|2024-05-01T08:03:00|COMPLETED|1|4|00:02:00|main|ann|\n"
        "3|2024-05-01T08:00:08|2024-05-01T08:01:40|2024-05-01T08:01:50|COMPLETED|1|4|00:01:00|main|root|service\n"
    )
    (tmp_path / "r.txt").write_text(SCONTROL)
    record = tmp_path / "out.json"
    done = run(
        *("replay", str(tmp_path / "slurm.conf"), str(tmp_path / "jobs.sacct")),
        *("--accounting", str(tmp_path / "r.txt"), "--set", "scheduler.clockwork=ideal"),
        *("--json", str(record)),
    )
    assert done.status == 0, done.err
    jobs = json.loads(record.read_text())["jobs"]
    found = {name: each["intervals"][-1]["start"] for name, each in jobs.items()}
    assert found == {"1": 0.0, "2": 160.0, "3": 100.0}


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"StartTime": 1, "EndTime": 2}, "ReservationName is missing"),
        (reserved(StartTime="soon"), "StartTime: got 'soon'"),
        (reserved(EndTime=50), "EndTime: got 50, which is before StartTime"),
        (reserved(Nodes="m[1-2]"), "Nodes: got 'm1', which is no node"),
        (reserved(Node="n1"), "got 'Node'.*did you mean 'Nodes'"),
        ({"ReservationName": "r", "StartTime": 1, "Nodes": "n1"}, "EndTime and Duration are missing"),
        (5, "got 5; expected a table"),
    ],
)
def test_wrong_tables(table: Any, said: str) -> None:
    """Each is named with its place."""
    with pytest.raises(ConfigError, match=said) as caught:
        reservations_of(build_cluster(site(table)))
    assert caught.value.problems[0].where == "cluster.attributes.reservations[0]"
