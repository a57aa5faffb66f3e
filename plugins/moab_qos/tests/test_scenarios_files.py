"""Scenarios 58 to 69: manual operations, files, times, wallclock violations."""

from __future__ import annotations

from typing import Any

import pytest

from makeway.model import JobState
from makeway.worlds.events import Command
from makeway_moab_qos.times import seconds

ALONE = "L(med,4p,user=ann,flags=SUSPENDABLE+RESTARTABLE)"


# ----------------------------------------------------------------------------------------- manual
def test_58_an_owner_suspends(play: Any) -> None:
    """Neither flags of preemption nor priority are looked at."""
    run = play(ALONE, commands=[(0.0, Command("suspend", "L", "ann"))])
    assert run.state("L") is JobState.SUSPENDED
    assert run.refusals() == []


def test_59_a_stranger_is_refused(play: Any) -> None:
    """Nothing happens to L."""
    run = play(ALONE, commands=[(0.0, Command("cancel", "L", "eve"))])
    assert run.state("L") is JobState.RUNNING
    assert run.refusals() == ["eve is neither the owner of the job nor an administrator"]


def test_60_an_owner_may_not_resume(play: Any) -> None:
    """An administrator may, even in hold-down."""
    commands = [
        (0.0, Command("suspend", "L", "ann")),
        (1.0, Command("resume", "L", "ann")),
        (2.0, Command("resume", "L", "root")),
    ]
    run = play(ALONE, commands=commands, until=3.0, checked=False)
    assert run.refusals() == ["its owner may not resume a job; an administrator may"]
    assert run.moves("L") == ["0 suspend", "2 resume"]


@pytest.mark.parametrize(
    ("command", "job", "state"),
    [("requeue", "W", "idle"), ("resume", "L", "running"), ("start", "L", "running")],
)
def test_61_wrong_state(play: Any, command: str, job: str, state: str) -> None:
    """Refused, with the state as the reason."""
    run = play(ALONE, "W(med,4p)", commands=[(0.5, Command(command, job))])
    assert len(run.refusals()) == 1
    assert run.refusals()[0].startswith(f"the job is {state};")


def test_62_throttles_do_not_bind_people(play: Any) -> None:
    """L has run for 5 s."""
    run = play(
        "L(low,4p,ran=5)", "", "JOBPREEMPTMINACTIVETIME 600", commands=[(0.0, Command("requeue", "L"))]
    )
    assert run.table.history("L").job.restarts == 1


def test_manual_suspend_is_not_escalated(play: Any) -> None:
    """A job that is not SUSPENDABLE is not cancelled in its place (2.1)."""
    run = play("L(med,4p)", commands=[(0.0, Command("suspend", "L"))])
    assert run.state("L") is JobState.RUNNING
    assert "not SUSPENDABLE" in run.refusals()[0]


@pytest.mark.parametrize(
    ("value", "refused"),
    [
        ("", "PolicyLimit"),
        ("ignorersv", "PolicyLimit"),
        ("ignorepolicies", ""),
        ("haste", "got 'haste'; allowed"),
    ],
)
def test_start_may_ignore_policies(play: Any, value: str, refused: str) -> None:
    """-x -w flags=ignorepolicies: beyond the limit of one job (2.1)."""
    commands = [(0.5, Command("start", "W", None, value))]
    run = play("L(med,1p,user=ann)", "W(med,1p,user=ann)", "USERCFG[ann] MAXJOB=1", commands=commands)
    assert run.started("W") == (None if refused else 0.5)
    assert [refused in reason for reason in run.refusals()] == ([True] if refused else [])


@pytest.mark.parametrize(("value", "starts"), [("ignorepolicies", None), ("ignorersv", 0.5)])
def test_start_may_ignore_reservations(play: Any, value: str, starts: float | None) -> None:
    """-x -w flags=ignorersv: on a node that is reserved for others."""
    commands = [(0.5, Command("start", "W", None, value))]
    run = play("", "W(med,1p,account=sat)", "SRCFG[r] HOSTLIST=n1 ACCOUNTLIST=jup", commands=commands)
    assert run.started("W") == starts


def test_levels(play: Any) -> None:
    """Level 3 may only look (section 11)."""
    commands = [(0.0, Command("cancel", "L", "looker")), (0.5, Command("cancel", "L", "helper"))]
    run = play(ALONE, "", "ADMIN2 helper\nADMIN3 looker", commands=commands)
    assert run.refusals() == ["looker is an administrator of level 3, who may look but not cancel"]
    assert run.state("L") is JobState.CANCELLED


def test_owners_may_resume_in_maui(play: Any) -> None:
    """Q11."""
    commands = [(0.0, Command("suspend", "L", "ann")), (1.0, Command("resume", "L", "ann"))]
    run = play(ALONE, commands=commands, until=2.0, maui=True, checked=False)
    assert run.refusals() == []


# --------------------------------------------------------------------------------- files and times
def test_63_comment_continuation_case(settings_of: Any) -> None:
    """A note after a value, a line that goes on, a name in lower case."""
    found = settings_of("preemptpolicy SUSPEND # note\nQOSCFG[low] QFLAGS=PREEMPTEE \\\n  PRIORITY=100\n")
    assert found["preempt_policy"] == "SUSPEND"
    assert found["qos"]["low"] == {"flags": ["PREEMPTEE"], "priority": 100.0}


def test_64_values_are_case_sensitive(read: Any, play: Any) -> None:
    """``preemptor`` is no flag; the check guesses."""
    line = "QOSCFG[high] QFLAGS=preemptor"
    assert any("did you mean 'PREEMPTOR'" in warning for warning in read(line).warnings)
    assert play("L(low,4p,q10)", "H(high,4p)", line).victims == []


def test_65_repeated_qflags_replace(settings_of: Any) -> None:
    """low is no preemptee any more."""
    found = settings_of("QOSCFG[low] QFLAGS=PREEMPTEE\nQOSCFG[low] QFLAGS=NOBF\n")
    assert found["qos"]["low"]["flags"] == ["NOBF"]


def test_66_repeated_jobflags_accumulate(settings_of: Any) -> None:
    """Both count."""
    found = settings_of("CLASSCFG[c] JOBFLAGS=RESTARTABLE\nCLASSCFG[c] JOBFLAGS=SUSPENDABLE\n")
    assert found["klass"]["c"]["jobflags"] == ["RESTARTABLE", "SUSPENDABLE"]


def test_67_the_vendors_slip(read: Any, play: Any) -> None:
    """PREEMPTIONPOLICY is ignored, with a warning."""
    line = "PREEMPTIONPOLICY SUSPEND"
    assert any("PREEMPTPOLICY is meant" in warning for warning in read(line).warnings)
    assert play("L(low,4p,q10)", "H(high,4p)", line).victims == [("L", "requeue")]


@pytest.mark.parametrize(
    ("text", "moab", "maui"),
    [("300", 300, 300), ("5:00", 300, 18000), ("00:05:00", 300, 300), ("1:00:00:00", 86400, 86400)],
)
def test_68_times(read: Any, text: str, moab: float, maui: float) -> None:
    """Two fields are where the two differ; the check says so."""
    assert (seconds(text), seconds(text, maui=True)) == (moab, maui)
    found = read(f"JOBPREEMPTMINACTIVETIME {text}")
    assert found.tables["policy"]["settings"]["moab/qos"]["min_active_time"] == moab
    assert any("Maui would read 5 hours" in warning for warning in found.warnings) is (text == "5:00")


def test_69_wallclock_violation(play: Any) -> None:
    """L is requeued rather than cancelled, for no job in particular."""
    running = "L(low,4p,limit=3700,run=90000)"
    run = play(running, "", "WCVIOLATIONACTION PREEMPT", until=200.0)
    assert run.victims == [("L", "requeue")]
    assert run.table.run.recorder.preemptions[0].preemptor is None
    assert play(running, "", "", until=200.0).state("L") is JobState.TIMEOUT
