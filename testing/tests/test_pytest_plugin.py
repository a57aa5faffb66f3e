"""The pytest plugin: fixtures, readable failures, and silence in projects that do not use it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TABLE_TEST = '''
from makeway_testing import one_node

TABLE = """
    job  submit  nodes  run_time
    a         0      1        60
    b        10      1        20
    """


def test_b_waits(replay_table, makeway_timeline, makeway_cluster):
    run = replay_table(TABLE, cluster=makeway_cluster(1))
    assert run.timeline == makeway_timeline("""
         0  a  start
        60  a  complete
        60  b  start
        80  b  complete
        """)


def test_that_fails(replay_table):
    assert replay_table(TABLE).starts("b") == (10.0,)


def test_the_other_fixtures(makeway_config, makeway_job, check_invariants, replay_table):
    assert makeway_config(one_node(cpus=2)).node[0].cpus == 2
    assert makeway_job("7").id == "7"
    assert check_invariants(replay_table(TABLE).engine) == []
'''
CONTRACT_TEST = """
from makeway.hookspecs import hookimpl
from makeway.model import Candidates, PreemptMode
from makeway_testing.contracts import PreemptPolicyContract


class Twice:
    @hookimpl
    def makeway_preempt_candidates(self, preemptor, active):
        lower = [job for job in active if job.partition.priority_tier < preemptor.partition.priority_tier]
        return Candidates(jobs=(*lower, *lower), modes=(PreemptMode.REQUEUE,) * 2 * len(lower))


class TestTwice(PreemptPolicyContract):
    __test__ = True
    plugin = "preempt/twice"
    module = Twice()
"""
SILENT_TEST = """
import sys


def test_nothing_of_makeway_is_there():
    known = {name for name in sys.modules if name.partition(".")[0] in ("makeway", "hypothesis", "attrs")}
    assert known <= {"makeway", "makeway_testing.pytest_plugin"}
"""


def run_pytest(folder: Path, text: str, *options: str) -> str:
    """Run a test file in a project of its own; return what pytest says."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_it.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    # Other plugins that developers have installed are not what this is about.
    off = ("-p", "no:hypothesispytest", "-p", "no:xdist", "-p", "no:anyio")
    environment = {name: value for name, value in os.environ.items() if name != "MAKEWAY_PROFILE"}
    done = subprocess.run(
        [*command, *off, str(folder)],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
        env=environment,
    )
    return done.stdout + done.stderr


@pytest.mark.slow
def test_fixtures_and_what_happened(tmp_path: Path) -> None:
    """Two tests pass; of the one that fails the timeline is shown."""
    said = run_pytest(tmp_path, TABLE_TEST)
    assert "1 failed, 2 passed" in said
    assert "makeway: replay 1" in said
    shown = said.partition("makeway: replay 1")[2]
    assert [line for line in shown.splitlines() if line.startswith("60 ")] == ["60 a complete", "60 b start"]


@pytest.mark.slow
def test_a_broken_rule_is_shown_without_the_way_to_it(tmp_path: Path) -> None:
    """Rule, plugin, hook, job and the table: nothing of the kit's inside."""
    said = run_pytest(tmp_path, CONTRACT_TEST, "-k", "no_candidate_twice")
    assert "1 failed" in said
    report = said.partition("FAILURES")[2].partition("short test summary")[0]
    lines = [line.strip() for line in report.splitlines()]
    assert "preempt/twice breaks a rule of PreemptPolicyContract" in lines
    assert "rule    No candidate is named twice" in lines
    assert "hook    makeway_preempt_candidates" in lines
    assert "run = replay_table(" in lines
    assert not [line for line in lines if "base.py" in line or line.startswith(("def ", ">"))]


def test_it_is_silent_where_it_is_not_used(tmp_path: Path) -> None:
    """Neither the kit nor Hypothesis is imported, and pytest says nothing of makeway."""
    said = run_pytest(tmp_path, SILENT_TEST)
    assert "1 passed" in said
    assert "makeway" not in said
