"""The profile ``maui`` against what Maui 3.3.1 itself did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest

from makeway.config import Config
from makeway.errors import ConfigError
from makeway.foreign import Judgement, Played
from makeway.settings import structure
from makeway_app.readers.commands import commands_of as actions_of
from makeway_app.readers.foreign import FileSource
from makeway_app.replay import Options, replay
from makeway_moab_qos.recorded_commands import commands_of
from makeway_moab_qos.recordings import MauiRecordings, Recorded, oversubscribed

FOLDER = Path(__file__).parent / "recordings"
NOT_IMITATED = {
    **dict.fromkeys(("q5_over_check", "s25_q5_ppt", "s33_frag"), "oversubscribes"),
    **dict.fromkeys(
        ("s2x_cap_33", "s2x_cap_40", "s2x_node_28_resdepth", "s2x_node_33_resdepth"), "table overflows"
    ),
}
"""Recordings of what is no behaviour to copy, and a word of the reason."""


def judged(path: Path) -> Judgement:
    """Play a recording and compare."""
    recorded = MauiRecordings().recorded(FileSource(path))
    assert recorded.unmodelled == ()
    most = 0

    def look(engine: Any) -> None:
        nonlocal most
        nodes = range(len(engine.ledger.cluster.nodes))
        most = max([most, *(len(engine.ledger.jobs_on(index)) for index in nodes)])

    config = structure(recorded.tables, Config, path.name)
    run = replay(config, recorded.jobs, (), Options(until=recorded.until, after_step=look))
    return recorded.judge(Played(summary=run.summary(), most_jobs_on_a_node=most))


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_recording(path: Path) -> None:
    """What was preempted and started in which pass; or the reason why that is no measure."""
    found = judged(path)
    if path.stem in NOT_IMITATED:
        assert NOT_IMITATED[path.stem] in found.not_imitated
    else:
        assert found == Judgement()


def test_a_difference_is_found(tmp_path: Path) -> None:
    """A recording in which another job was preempted does not pass."""
    text = (FOLDER / "c01_basic.json").read_text().replace('"action": "requeue"', '"action": "suspend"')
    path = tmp_path / "other.json"
    path.write_text(text)
    (difference,) = judged(path).differences
    assert difference == ("L", 300.0, "suspend", "requeue")


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """With the keys that are missing."""
    path = tmp_path / "bad.json"
    path.write_text('{"name": "x", "passes": 3, "outcome": {}, "jobs": [{"id": "L"}]}')
    with pytest.raises(ConfigError) as caught:
        MauiRecordings().recorded(FileSource(path))
    assert {problem.where for problem in caught.value.problems} == {"nodes", "qos", "config", "jobs[0]"}


def test_unknown_keys_are_named(tmp_path: Path) -> None:
    """A recording that asks for more than can be played is skipped, not guessed."""
    text = (FOLDER / "c01_basic.json").read_text().replace('"passes"', '"weather": "fine", "passes"', 1)
    path = tmp_path / "odd.json"
    path.write_text(text)
    assert MauiRecordings().recorded(FileSource(path)).unmodelled == ("weather",)


def test_oversubscription_is_seen() -> None:
    """One processor too many, from the second pass on."""
    data = {
        "nodes": {"n1": 2},
        "jobs": [{"id": "a", "tasks": 2}, {"id": "b", "tasks": 1}],
        "outcome": {"started": [{"pass": 1, "job": "a"}, {"pass": 2, "job": "b"}]},
    }
    assert oversubscribed(data) == "3 of 2 processors in pass 2"


def test_oversubscription_of_one_node_is_seen() -> None:
    """The machine has room, the node that both are bound to has not."""
    data = {
        "nodes": {"n1": 2, "n2": 8},
        "jobs": [{"id": "a", "tasks": 2, "hosts": ["n1", "n1"]}, {"id": "b", "tasks": 1, "hosts": ["n1"]}],
        "outcome": {"started": [{"pass": 1, "job": "a"}, {"pass": 2, "job": "b"}]},
    }
    assert oversubscribed(data) == "3 of 2 processors of n1 in pass 2"


def test_commands_act_on_the_first_match() -> None:
    """Q10: an expression is anchored, and only one job is meant."""
    typed = {"actions": [{"pass": 2, "cmd": "mjobctl -R [ab]"}, {"pass": 3, "cmd": "dance"}]}
    tables, unread = commands_of(typed, ["ab", "b", "a"], 60.0)
    assert tables == [{"at": 120.0, "command": "requeue", "job": "b", "value": ""}]
    assert len(unread) == 1


@pytest.mark.parametrize(
    "listed",
    [
        pytest.param([{"pass": 2, "cmd": "mjobctl -s L"}], id="tables"),
        pytest.param([{"iteration": 2, "argv": ["mjobctl", "-s", "L"]}], id="words"),
        pytest.param([[2, "mjobctl -s L"]], id="pairs"),
        pytest.param({"2": ["mjobctl -s L"]}, id="by pass"),
    ],
)
def test_shapes_of_commands(listed: Any) -> None:
    """However they are written down."""
    tables, unread = commands_of({"commands": listed}, ["L"], 60.0)
    assert tables == [{"at": 120.0, "command": "suspend", "job": "L", "value": ""}]
    assert unread == []


# ------------------------------------------------------- variations, expected by section 17
QOS = {
    "high": "PRIORITY=1000 QFLAGS=PREEMPTOR",
    "med": "PRIORITY=500",
    "low": "PRIORITY=100 QFLAGS=PREEMPTEE",
}


def played(tmp_path: Path, jobs: list[dict[str, Any]], **more: Any) -> dict[tuple[int, str, str], str]:
    """Play a scenario in the recordings' format; return what happened by pass and job."""
    data = {"name": "x", "nodes": {"n1": 4}, "config": {}, "passes": 12, "outcome": {}, "jobs": jobs, **more}
    data["qos"] = {**QOS, **more.get("qos", {})}
    path = tmp_path / "x.json"
    path.write_text(json.dumps(data))
    recorded = MauiRecordings().recorded(FileSource(path))
    assert recorded.unmodelled == ()
    config = structure({**recorded.tables, "action": list(recorded.commands)}, Config, path.name)
    run = replay(config, recorded.jobs, actions_of(config, path.name), Options(until=recorded.until))
    assert isinstance(recorded, Recorded)
    found = recorded._replayed(run.summary())
    return {key: word for key, word in found.items() if key[2] != "ends"}


def job(name: str, tasks: int, qos: str, at: int, **more: Any) -> dict[str, Any]:
    """Return one job of a recording."""
    return {"id": name, "tasks": tasks, "qos": qos, "at": at, **more}


def test_there_is_no_cap_on_victims(tmp_path: Path) -> None:
    """64 victims for one preemptor, 16 on each node."""
    nodes = {f"n{at}": 16 for at in range(1, 5)}
    victims = [job(f"v{at:02}", 1, "low", 1) for at in range(64)]
    found = played(tmp_path, [*victims, job("H", 64, "high", 5)], nodes=nodes, passes=6)
    assert {key[1] for key in found if key[2] == "preempted"} == {each["id"] for each in victims}
    assert found[(5, "H", "starts")] == "started"


def test_equal_cost_in_queue_order(tmp_path: Path) -> None:
    """a 10 / 1 and b 20 / 2 cost the same; b ranks higher, started first and is listed first."""
    jobs = [job("a", 1, "low", 1, uprio=10), job("b", 2, "low", 1, uprio=20), job("M", 1, "med", 1)]
    found = played(tmp_path, [*jobs, job("H", 1, "high", 5)], qos={"low": "QFLAGS=PREEMPTEE"}, passes=5)
    assert [key[1] for key in found if key[2] == "preempted"] == ["b"]


def test_undercounted_supply(tmp_path: Path) -> None:
    """Q5: one task of four processors counts as one task of two, which does not cover two tasks."""
    jobs = [job("V", 1, "low", 1, ppt=4), job("H", 2, "high", 5, ppt=2)]
    assert played(tmp_path, jobs) == {(1, "V", "starts"): "started"}


def test_nodes_are_covered_as_well(tmp_path: Path) -> None:
    """4.1 step 6: one task on each of two nodes; v0 alone has the processors, not the nodes."""
    jobs = [job("v0", 2, "low", 1, hosts=["n1"]), job("v1", 2, "low", 1, hosts=["n2"], uprio=10)]
    found = played(tmp_path, [*jobs, job("H", 2, "high", 3, nodes=2)], nodes={"n1": 2, "n2": 2})
    assert {key[1] for key in found if key[2] == "preempted"} == {"v0", "v1"}


def test_backfill_preempts_too(tmp_path: Path) -> None:
    """7.2: H ranks below B, which waits, ends before B can start, and displaces L; under NONE none does."""
    jobs = [
        job("A", 2, "med", 1, dur=3600, limit=3600),
        job("L", 2, "low", 1),
        job("B", 4, "med", 3, uprio=5000),
        job("H", 2, "high", 5, dur=600, limit=600),
    ]
    found = played(tmp_path, jobs, config={"BACKFILLPOLICY": "FIRSTFIT"})
    assert found[(5, "L", "preempted")] == "requeue"
    assert found[(5, "H", "starts")] == "started"
    assert not any(key[0] > 1 for key in played(tmp_path, jobs))


def test_soft_limit_of_one(tmp_path: Path) -> None:
    """X2: M2, started by backfill beyond the soft limit, goes; M1 stays."""
    more: dict[str, Any] = {
        "qos": {"sp": "PRIORITY=500 QFLAGS=PREEMPTSPV"},
        "config": {"BACKFILLPOLICY": "FIRSTFIT"},
    }
    more["extra"] = ["USERCFG[u] MAXJOB=1,2 QLIST=high,med,low,sp"]
    jobs = [job("M1", 2, "sp", 1, user="u"), job("M2", 2, "sp", 2, user="u"), job("H", 2, "high", 5)]
    found = played(tmp_path, jobs, **more)
    assert {key: word for key, word in found.items() if key[2] == "preempted"} == {
        (5, "M2", "preempted"): "requeue"
    }


@pytest.mark.parametrize(("length", "resumes"), [(8, None), (10, 50), (14, 52)])
def test_hold_of_ten_seconds_inclusive(tmp_path: Path, length: int, resumes: int | None) -> None:
    """Q12; freed before the hold is over, L is never resumed. Passes of 2 s; H starts in pass 45."""
    config = {"PREEMPTPOLICY": "SUSPEND", "RMPOLLINTERVAL": "00:00:02"}
    jobs = [job("L", 4, "low", 1), job("H", 4, "high", 2, dur=length, limit=length)]
    found = played(tmp_path, jobs, config=config, passes=80)
    assert next((key[0] for key, word in found.items() if word == "resumed"), None) == resumes


def test_resume_comes_before_the_queue(tmp_path: Path) -> None:
    """43: L goes on before K, which ranks higher."""
    jobs = [job("L", 4, "low", 1), job("H", 4, "high", 3, dur=120, limit=120), job("K", 4, "med", 4)]
    found = played(tmp_path, jobs, config={"PREEMPTPOLICY": "SUSPEND"})
    assert found[(5, "L", "starts")] == "resumed"
    assert not any(key[1] == "K" for key in found)


@pytest.mark.parametrize("policy", ["CHECKPOINT", "CANCEL", "suspend"])
def test_no_escalation(tmp_path: Path, policy: str) -> None:
    """The victim is chosen in each pass, nothing comes of it, and no job starts."""
    jobs = [job("L", 4, "low", 1), job("H", 4, "high", 5)]
    found = played(tmp_path, jobs, config={"PREEMPTPOLICY": policy}, passes=8)
    failed = {(at, "L", "preempted"): "none (failed)" for at in (5, 6, 7, 8)}
    assert found == {(1, "L", "starts"): "started", **failed}


@pytest.mark.parametrize("key", ["commands", "typed by people"])
def test_commands_take_the_first_match(tmp_path: Path, key: str) -> None:
    """Q10: -R [abc] with the first match suspended is refused although others run; -r of a running job too."""
    commands = [
        {"pass": 3, "cmd": "mjobctl -s [abc]"},
        {"pass": 5, "cmd": "mjobctl -R [abc]"},
        {"pass": 6, "cmd": "mjobctl -r b"},
        {"pass": 7, "cmd": "canceljob c"},
    ]
    jobs = [job(name, 1, "med", 1) for name in "abc"]
    found = played(tmp_path, jobs, **{key: commands})
    after = {key: word for key, word in found.items() if key[0] > 1 and key[2] == "preempted"}
    assert after == {(3, "a", "preempted"): "suspend", (7, "c", "preempted"): "cancel"}


@pytest.mark.parametrize(("limit", "starts"), [(36000, False), (1800, True)])
def test_firstfit_respects_the_reservation(tmp_path: Path, limit: int, starts: bool) -> None:
    """52: L may start beside A only if it ends before B can start."""
    jobs = [
        job("A", 1, "med", 1, dur=3600, limit=3600),
        job("B", 4, "med", 3, uprio=50),
        job("L", 3, "low", 3, dur=limit, limit=limit),
    ]
    found = played(tmp_path, jobs, config={"BACKFILLPOLICY": "FIRSTFIT"})
    assert ((3, "L", "starts") in found) is starts


def test_a_waiting_job_is_compared_by_the_pass_before(tmp_path: Path) -> None:
    """C3: B, submitted at 150 s, outranks A's 500 by a minute counted at 240 s, so in pass 5, not 4."""
    mid = {"mid": "PRIORITY=500 QFLAGS=PREEMPTOR:PREEMPTEE"}
    jobs = [job("A", 4, "mid", 1), job("B", 4, "mid", 3)]
    found = played(tmp_path, jobs, qos=mid, config={"QUEUETIMEWEIGHT": "1"}, passes=6)
    assert found[(5, "A", "preempted")] == "requeue"
    assert found[(5, "B", "starts")] == "started"


def test_setspri_beats_the_cap(tmp_path: Path) -> None:
    """12: 1,000,000,005 against a job at 1,000,000,000."""
    low = {"low": "PRIORITY=2000000000 QFLAGS=PREEMPTEE"}
    jobs = [job("L", 4, "low", 1), job("H", 4, "high", 3)]
    plain = played(tmp_path, jobs, qos=low, passes=5)
    assert plain == {(1, "L", "starts"): "started"}
    found = played(tmp_path, jobs, qos=low, passes=5, commands=[{"pass": 4, "cmd": "setspri 5 H"}])
    assert found[(4, "L", "preempted")] == "requeue"


@attrs.frozen
class _File:
    name: str
    text: str = ""


@pytest.mark.parametrize(
    ("name", "head", "ours"),
    [
        pytest.param("a.json", '{"passes": 3, "outcome": {}}', True, id="a recording"),
        pytest.param("a.json", '{"slurm_version": "22.05"}', False, id="one of Slurm's"),
        pytest.param("a.toml", '"passes" "outcome"', False, id="no JSON"),
    ],
)
def test_claims(name: str, head: str, ours: bool) -> None:
    """By name and content."""
    assert MauiRecordings().claims(name, head) is ours


# ------------------------------------------------------------------- what the recordings leave out
@pytest.mark.parametrize(
    ("tasks", "taken"),
    [
        pytest.param(4, True, id="as many tasks as are wanted"),
        pytest.param(2, False, id="fewer, on a node that it has for itself"),
    ],
)
def test_singlejob_counts_tasks(tmp_path: Path, tasks: int, taken: bool) -> None:
    """L frees what it has tasks for (Q5), and the other processors of its node are not idle: it is listed only."""
    found = played(
        tmp_path,
        [job("L", tasks, "low", 1), job("H", 4, "high", 5)],
        config={"NODEACCESSPOLICY": "SINGLEJOB"},
    )
    assert ((5, "L", "preempted") in found) is taken
    assert ((5, "H", "starts") in found) is taken


def test_a_refused_qos_defers_no_job_in_the_simulator(tmp_path: Path) -> None:
    """It falls back to the default, and loading the trace wipes the deferral (section 17), whatever DEFERTIME says."""
    found = played(
        tmp_path,
        [job("J", 1, "high", 2, user="ann")],
        config={"DEFERTIME": "1:00:00"},
        extra=["USERCFG[ann] QDEF=low QLIST=low"],
    )
    assert found == {(2, "J", "starts"): "started"}


def test_a_refused_qos_defers_at_a_real_site(play: Any) -> None:
    """For DEFERTIME from the submission on (3.3 step 5)."""
    more = "USERCFG[ann] QDEF=low QLIST=low&\nDEFERTIME 10:00:00"
    words = {"maui": True, "until": 600.0}
    assert play("", "J(high,1p,user=ann)", more, **words).started("J") is None
    choices = {"defer_refused_qos": False}
    assert play("", "J(high,1p,user=ann)", more, settings=choices, **words).started("J") is not None
