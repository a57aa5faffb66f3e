"""Go through examples/lsf as a new user would: check, import, replay, explain."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from makeway_app.cli import cli

SITE = Path(__file__).parents[3] / "examples" / "lsf"
JOBS = str(SITE / "jobs.jsonl")


def _makeway(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(cli, [str(each) for each in arguments])
    assert result.exit_code == 0, result.output
    return result


def _summary(config: Path, *more: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_makeway("replay", config, JOBS, "--json", "-", *more).stdout)
    return found


def test_import_loses_nothing(tmp_path: Path) -> None:
    """The site's files and the TOML made of them replay alike, to the last interval; twice imported is the same."""
    made = tmp_path / "cluster.toml"
    _makeway("import", SITE / "lsb.queues", "-o", made)
    assert _summary(made) == _summary(SITE / "lsb.queues")
    text = made.read_text()
    for each in (
        "PREEMPTIVE[short normal+1 long+2]",
        "MAX_RESERVE_TIME[100]",
        "LEAST_RUN_TIME MINI_JOB",
        "long_cap",
    ):
        assert each in text


@pytest.mark.parametrize("of_toml", [False, True])
def test_check_warns_of_the_same(tmp_path: Path, of_toml: bool) -> None:
    """In the words of the files for one, with paths for the other; the reader's own warnings are gone then."""
    made = tmp_path / "cluster.toml"
    _makeway("import", SITE / "lsb.queues", "-o", made)
    said = _makeway("check", made if of_toml else SITE / "lsb.queues").output
    assert "MAX_JOBS of chem counts suspended jobs too; PREEMPT_FOR=GROUP_MAX changes that" in said
    assert "jobs of long may be preempted again and again" in said
    assert ("lsb.users:9" in said) is not of_toml
    for idle in (
        "DESCRIPTION (lsb.queues)",
        "SBD_SLEEP_TIME (lsb.params); jobs",
        "R1M PG (lsb.hosts); a",
    ):
        assert (f"no effect here: {idle}" in said) is not of_toml


def test_replay() -> None:
    """Short takes normal (the shortest run that helps), urgent the higher preference, both by suspension.

    At 600 s job 105 cannot use n01, where a user may have four slots; of the jobs elsewhere that short may take,
    103 has run for the shortest time. At 660 s, 30 s after its submission, urgent takes a job of long: number 2.
    """
    found = _summary(SITE / "lsb.queues")
    taken = [(each["at"], each["preemptor"], each["victim"], each["mode"]) for each in found["preemptions"]]
    assert taken == [(600.0, "105", "103", "suspend"), (660.0, "106", "101", "suspend")]
    ends = {job: each["intervals"][-1]["end"] for job, each in found["jobs"].items()}
    # 103: 480 s before, 3120 s after the 600 s of 105; 101: 660 s before, 6540 s after the 1200 s of 106.
    assert (ends["103"], ends["101"]) == (1200.0 + 3120.0, 1860.0 + 6540.0)


def test_tables_and_explain_speak_lsf() -> None:
    """States, reasons with numbers, the limit and the count."""
    table = _makeway("replay", SITE / "lsb.queues", JOBS, "--bjobs-at", "720").output
    lines = table[table.index("bjobs -u all") : table.index("7 jobs of")].splitlines()
    assert lines[1].split() == "JOBID USER STAT QUEUE FROM_HOST EXEC_HOST JOB_NAME SUBMIT_TIME".split()
    rows = {line.split()[0]: (line, below) for line, below in itertools.pairwise([*lines, ""]) if line}
    # The higher queue first, then what started first; pending jobs last.
    assert [
        line.split()[0] for line in lines[2:] if line[:1].isdigit()
    ] == "106 105 102 103 101 104 107".split()
    assert rows["101"][0].split()[2:6] == ["SSUSP", "long", "-", "8*n02"]
    assert "SUSP_MBD_PREEMPT (0x00000080)" in rows["101"][1]
    assert "RUN" in rows["106"][0]
    assert "PEND_UGRP_PJOB_LIMIT (604)" in rows["107"][1]  # 12 slots, 8 of them taken, 8 wanted
    told = _makeway("explain", SITE / "lsb.queues", JOBS, "--job", "107").output
    assert (
        "MAX_JOBS of group chem in lsb.users is 12; 8 in use (8 suspended), 8 wanted; suspended jobs count"
        in told
    )
    assert "unless PREEMPT_FOR has GROUP_MAX" in told
    lift = 'policy.settings."lsf/queue".params.PREEMPT_FOR="LEAST_RUN_TIME MINI_JOB GROUP_MAX"'
    lifted = _makeway("replay", SITE / "lsb.queues", JOBS, "--bjobs-at", "720", "--set", lift).output
    lines = lifted.splitlines()
    at = next(at for at, line in enumerate(lines) if line.split()[:1] == ["107"])
    assert "PEND_HOST_LESS_SLOTS (1303)" in lines[at + 1], "then only room is short"
