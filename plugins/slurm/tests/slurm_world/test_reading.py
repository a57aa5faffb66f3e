"""What real daemons printed becomes configuration, jobs and nodes; expectations are read off the recorded texts."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from makeway.model import Exclusive, JobState, SuspendedBy
from makeway.state import read_state, write_state
from makeway_app.replay import Options, replay
from makeway_slurm_world.reading import conf
from makeway_slurm_world.reading.jobs import LiveJob, Zone, counted, held, live_jobs
from makeway_slurm_world.reading.look import Look, Texts, look
from makeway_slurm_world.reading.records import UnreadableError, job_lines, job_record, pairs

RECORDED = Path(__file__).parent / "data" / "22.05"
JOBS = (RECORDED / "job.txt").read_text(encoding="utf-8")
LINE = JOBS.splitlines()[0]


@pytest.fixture
def found(texts: Texts) -> Look:
    return look(texts, ours="makeway")


def test_the_configuration_is_what_somebody_set(found: Look) -> None:
    config = found.config
    assert (config.cluster.name, found.release) == ("trial", "22.05")
    assert [(each.name, each.cpus, each.memory_mb) for each in config.node] == [
        (f"n{number}", 4, 4000) for number in (1, 2, 3, 4)
    ]
    assert [(each.name, each.nodes, each.priority_tier, each.default) for each in config.partition] == [
        ("low", "n[1-4]", 1, True),
        ("high", "n[1-4]", 10, False),
    ]
    assert (config.policy.select, config.policy.select_parameters) == (
        "select/cons_tres",
        ("CR_Core_Memory",),
    )
    assert config.cluster.def_mem_per_cpu == 100
    assert found.unread == ()


def test_every_job_is_there_as_slurm_shows_it(found: Look) -> None:
    jobs = {job.id: job for job in found.jobs}
    assert set(jobs) == {"1", "2", "3", "4_1", "4_2", "4_3", "5", "6", "7+0", "7+1", "9", "11", "12"}
    assert (jobs["1"].state, jobs["1"].ran) == (JobState.SUSPENDED, 2.0)
    assert jobs["2"].spec.exclusive is Exclusive.NODE
    assert jobs["2"].nodes == ("n2", "n3")
    assert (jobs["4_2"].number, jobs["4_2"].spec.array_id, jobs["4_2"].spec.array_limit) == (4, "4", 1)
    assert jobs["4_1"].number == 10
    assert (jobs["5"].spec.name, jobs["5"].held, jobs["5"].spec.requeue) == ("a b=c", True, False)
    assert jobs["5"].spec.partitions == ("high", "low")
    assert (jobs["5"].spec.min_nodes, jobs["5"].spec.max_nodes) == (1, 4)
    assert jobs["6"].spec.depends_on == ("1",)
    assert (jobs["7+1"].spec.het_id, jobs["7+1"].spec.het_offset) == ("7", 1)
    assert jobs["9"].spec.begin_at == 3596.0  # 17:26:57, seen at 16:27:01
    assert (jobs["9"].spec.required_nodes, jobs["9"].spec.excluded_nodes) == (("n2",), ("n1",))
    assert (jobs["11"].spec.contiguous, jobs["11"].spec.memory_mb_per_node, jobs["11"].spec.nice) == (
        True,
        1000,
        5,
    )
    assert (jobs["11"].spec.time_limit, jobs["12"].spec.time_limit) == (86400.0, None)


def test_what_jobs_hold_is_what_slurm_gave_them(found: Look) -> None:
    held = {job.spec.id: job for job in found.state.jobs}
    third = held["3"].allocation
    assert third is not None
    assert (third.nodes, third.cpus, third.cores, third.memory_mb) == (
        "n[1,4]",
        (2, 4),
        ("2-3", "0-3"),
        (100, 200),
    )
    assert held["1"].suspended_by is SuspendedBy.ADMIN
    assert held["3"].started_at == -2.0


def test_the_engine_finds_for_each_job_the_reason_that_slurm_gives(found: Look) -> None:
    """No job starts, as in the recording; jobs behind the first blocked one wait for it (Priority)."""
    config = attrs.evolve(
        found.config, scheduler=attrs.evolve(found.config.scheduler, clockwork={"preset": "ideal"})
    )
    run = replay(config, (), (), Options(begin=found.state, until=0.0))
    reasons = {job.id: job.reason for job in run.engine.ledger.jobs.values() if job.state is JobState.PENDING}
    assert reasons == {job.id: job.reason for job in found.jobs if job.state is JobState.PENDING}


def test_a_saved_state_is_read_again(found: Look) -> None:
    assert read_state(write_state(found.state), "state.json") == found.state


def test_nodes_of_other_reservations_get_no_jobs(texts: Texts) -> None:
    found = look(texts)
    assert found.state.down_nodes == "n[1-2]"
    assert "reservation makeway holds n[1-2]: no job is placed there" in found.warnings


# ---------------------------------------------------------------------------- what people type
def test_a_name_may_hold_anything_but_a_record() -> None:
    named = LINE.replace("JobName=wrap", "JobName=x JobState=RUNNING Priority=7 Nodes=n9 CPU_IDs=0")
    with pytest.raises(UnreadableError, match="looks like a record"):
        job_record(named)
    named = LINE.replace("JobName=wrap", "JobName=x Partition=high NodeList=n9")
    record = job_record(named)
    assert record.name == "x Partition=high NodeList=n9"
    assert (record.fields["Partition"], record.fields["NodeList"]) == ("low", "n1")


def test_a_comment_may_not_pass_for_a_job() -> None:
    fake = LINE.partition(" UserId=")[2]
    with pytest.raises(UnreadableError, match="job 1: its name or comment"):
        job_record(LINE.replace("WorkDir=/tmp", f"WorkDir=/tmp Comment=x UserId={fake}"))


def test_a_job_that_stands_there_twice_is_left_out(texts: Texts) -> None:
    """Somebody wrote a whole line of another job into a comment, behind a line end."""
    found = look(
        attrs.evolve(texts, jobs=texts.jobs + LINE.replace("UserId=root(0)", "UserId=eve(99)") + "\n")
    )
    assert "1" not in {job.id for job in found.jobs}
    assert "a job is left out: 1 is there twice" in found.unread


def test_names_of_several_lines_belong_together() -> None:
    text = LINE.replace("JobName=wrap", "JobName=two\nlines") + "\n" + LINE
    assert [job_record(line).name for line in job_lines(text)] == ["two lines", "wrap"]


def test_pairs_of_a_node_with_blanks_in_its_values() -> None:
    fields = pairs((RECORDED / "node.txt").read_text(encoding="utf-8").splitlines()[0])
    assert (fields["State"], fields["ThreadsPerCore"], fields["RealMemory"]) == ("ALLOCATED", "1", "4000")
    assert pairs("No licenses configured in Slurm.") == {}


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("IDLE", ""),
        ("MIXED+PLANNED", ""),
        ("ALLOCATED+COMPLETING", ""),
        ("IDLE+DRAIN", "drained"),
        ("ALLOCATED+DRAIN", "drained"),
        ("DOWN*", "down"),
        ("IDLE*", "drained"),
        ("UNKNOWN*", "drained"),
        ("DOWN+NOT_RESPONDING", "down"),
        ("IDLE+CLOUD+POWERED_DOWN", "drained"),
    ],
)
def test_states_of_nodes(state: str, expected: str) -> None:
    assert conf.out_of_service(state) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gres:gpu:2", {"gpu": 2}),
        ("gres/gpu:a100:1,gres/nvme", {"gpu": 1, "gpu:a100": 1, "nvme": 1}),
        ("gpu:2(IDX:0-1)", {"gpu": 2}),
        ("gres/gpu=4", {"gpu": 4}),
        ("", {}),
    ],
)
def test_counted_resources(text: str, expected: dict[str, int]) -> None:
    assert counted(text) == expected


def test_records_of_later_releases_are_read() -> None:
    """From 23.02 on there are ReqTRES and AllocTRES, from 23.11 on SubmitLine; Slurm's documentation shows them."""
    line = LINE.replace(
        "TRES=cpu=2,mem=200M,node=1,billing=2", "ReqTRES=cpu=2,mem=200M AllocTRES=cpu=2,mem=200M"
    )
    record = job_record(line.replace(" WorkDir=", " SubmitLine=sbatch -n2 --wrap=x WorkDir="))
    assert (record.fields["NumCPUs"], record.places[0].cpus) == ("2", "2-3")


def test_units_and_defaults_are_taken_off() -> None:
    found = conf.settings(
        "KillWait   = 30 sec\nTopologyPlugin = topology/none\nSlurmctldHost[0] = a\nLicenses = m:2\n"
    )
    assert list(conf.global_lines(found)) == ["KillWait=30", "Licenses=m:2"]


# --------------------------------------------------------------------------------- later releases
LATER = Path(__file__).parent / "data" / "later"
"""Records in the form that sites of 23.02 to 25.05 show in public; names and numbers are made up."""


def _later() -> dict[str, LiveJob]:
    text = (LATER / "job.txt").read_text(encoding="utf-8")
    wall = 1795364700.0  # 2026-11-22T16:25:00 UTC
    found = [live_jobs(job_record(line), Zone(wall=wall), 0.0) for line in job_lines(text)]
    return {job.id: job for jobs in found for job in jobs}


def test_jobs_of_later_releases() -> None:
    jobs = _later()
    assert set(jobs) == {"2302", "2311", "2411", "2505_0", "2505_1", "2505_2"}
    assert [job.id for job in jobs.values() if job.notes] == []
    train, sweep, mpi, task = (jobs[name] for name in ("2302", "2311", "2411", "2505_1"))
    assert (train.spec.gres, train.spec.memory_mb_per_node, train.nodes) == ({"gpu": 2}, 64000, ("g1",))
    assert (train.started_at, train.ran) == (0.0, 121.0)
    assert (sweep.spec.gres, sweep.spec.licenses) == ({"gpu": 4}, {"fs_scratch": 1, "fs_work": 1})
    assert (sweep.spec.min_nodes, sweep.spec.exclusive) == (2, Exclusive.NODE)
    assert [(place.nodes, place.cpus, place.memory_mb) for place in mpi.places] == [
        ("c[1-2]", "0-4", 10240),
        ("c3", "0,6", 4096),
    ]
    assert (mpi.ran, mpi.spec.features, mpi.spec.memory_mb_per_cpu) == (93784.0, "zen4&ib", 2048)
    assert (task.spec.partitions, task.spec.max_nodes, task.spec.array_limit) == (("cpu", "gpu"), 4, 1)


@pytest.mark.parametrize(
    ("shown", "exclusive", "shares"),
    [
        ("OverSubscribe=OK", None, False),
        ("OverSubscribe=NO", Exclusive.NODE, False),
        ("OverSubscribe=USER", Exclusive.USER, False),
        ("OverSubscribe=YES", None, True),
        ("OverSubscribe=NO Exclusive=NO", None, False),
        ("OverSubscribe=NO Exclusive=NODE", Exclusive.NODE, False),
        ("OverSubscribe=OK Exclusive=USER", Exclusive.USER, False),
        ("OverSubscribe=OK Exclusive=MCS", Exclusive.MCS, False),
        ("OverSubscribe=YES Exclusive=NO", None, True),
    ],
)
def test_which_jobs_want_nodes_for_themselves(shown: str, exclusive: Exclusive | None, shares: bool) -> None:
    """As 24.11.5 shows it, and 26.05.5, which has a field of its own for that."""
    assert "OverSubscribe=OK " in LINE
    (job,) = live_jobs(job_record(LINE.replace("OverSubscribe=OK", shown)), Zone(wall=0.0), 0.0)
    assert (job.spec.exclusive, job.spec.oversubscribe) == (exclusive, shares)


def test_what_jobs_of_later_releases_hold() -> None:
    train, mpi = _later()["2302"], _later()["2411"]
    assert held(train, cores=True, memory=True, threads=lambda _: 2).gres == {
        "gpu": (2,),
        "gpu:a100": (2,),
    }
    place = held(mpi, cores=True, memory=True, threads=lambda _: 1)
    assert (place.nodes, place.cpus, place.cores) == ("c[1-3]", (5, 5, 2), ("0-4", "0-4", "0,6"))


def test_nodes_of_later_releases() -> None:
    """Names of a kernel with blanks, watts or none, nodes that came by themselves."""
    found = conf.nodes((LATER / "node.txt").read_text(encoding="utf-8"))
    assert {name: (each["CPUTot"], each["RealMemory"]) for name, each in found.items()} == {
        "g1": ("96", "750000"),
        "c1": ("128", "512000"),
        "c2": ("1", "15988"),
    }
    assert {name: conf.out_of_service(each["State"]) for name, each in found.items()} == {
        "g1": "",
        "c1": "",
        "c2": "drained",
    }


# ----------------------------------------------------------------------------- counted resources
TAIL = " StdErr=/dev/null StdIn=/dev/null StdOut=/dev/null Power="


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        (f"{TAIL} TresPerNode=gres:nic:2 ", {"TresPerNode": "gres:nic:2"}),
        (
            f" Comment=x {TAIL} TresPerJob=gres:gpu:8 TresPerNode=gres:gpu:2",
            {"TresPerJob": "gres:gpu:8", "TresPerNode": "gres:gpu:2"},
        ),
        (f" Comment=TresPerNode=gres:gpu:9 is mine{TAIL} ", {}),
        (" StdOut=/x TresPerNode=gres:gpu:9 Power= TresPerNode=gres:gpu:1 ", {"TresPerNode": "gres:gpu:1"}),
        (f"{TAIL} ", {}),
    ],
)
def test_what_a_job_asks_for_stands_behind_what_people_typed(tail: str, expected: dict[str, str]) -> None:
    """As 22.05.8 prints a job with --gres=nic:2, which was tried."""
    before, mark, _ = LINE.partition(" WorkDir=")
    fields = job_record(f"{before}{mark}/home/ann{tail}").fields
    assert {key: value for key, value in fields.items() if key.startswith("TresPer")} == expected


def test_resources_without_indices_are_counted() -> None:
    """Slurm 22.05.8 prints ``GRES=bandwidth(CNT:2)`` for a job with --gres=bandwidth:2."""
    assert counted("bandwidth(CNT:2)") == {"bandwidth": 2}
    assert counted("gpu:a100:2(IDX:0-1),nic:fast(CNT:3)") == {
        "gpu": 2,
        "gpu:a100": 2,
        "nic": 3,
        "nic:fast": 3,
    }
