"""What users may do to a machine that they share, and what is for operators only."""

from __future__ import annotations

import os
from typing import Any

import pytest

Site = Any
ANN = 65534
"""A user that every Linux has: nobody."""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root serves several people")
TIERS = """
node = [{ name = "n1", cpus = 4, memory_mb = 8000 }]
partition = [
  { name = "normal", default = true },
  { name = "rq", preempt_mode = ["requeue"] },
  { name = "cx", preempt_mode = ["cancel"] },
  { name = "urgent", priority_tier = 2, preempt_mode = ["off"], max_time = 14400.0 },
]
[cluster]
def_mem_per_cpu = 10
[policy]
select = "select/cons_tres"
select_parameters = ["CR_Core_Memory"]
preempt = "preempt/partition_prio"
preempt_mode = ["suspend", "gang"]
[scheduler]
clockwork = { kill_wait = 1.0 }
[world]
name = "world/local"
"""


@pytest.fixture
def tiers(site: Site) -> Site:
    """Return a site whose partitions make way each in its own manner; its daemon is not yet up."""
    site.config.write_text(TIERS)
    return site


@pytest.mark.parametrize("partition", ["normal", "rq", "cx"])
def test_a_resume_under_an_urgent_job_leaves_the_machine_usable(tiers: Site, partition: str) -> None:
    """Whatever becomes of the victim that its owner resumes, its node is free for the next job."""
    tiers.up()
    victim = tiers.submit("-p", partition, "-n", "4", "--", "sleep", "300")
    tiers.until(lambda: tiers.state_of(victim) == "RUNNING")
    tiers.ok("suspend", victim)
    urgent = tiers.submit("-p", "urgent", "-n", "4", "--", "sleep", "2")
    tiers.until(lambda: tiers.state_of(urgent) == "RUNNING")
    tiers.ok("resume", victim)
    assert tiers.run("wait", urgent).exit_code == 0
    if partition == "rq":
        tiers.until(lambda: tiers.state_of(victim) == "RUNNING", "a second start")
        assert tiers.jobs()[victim]["requeues"] == 1
    tiers.run("cancel", victim)
    tiers.until(lambda: not tiers.jobs(), "an empty machine")
    assert tiers.run("wait", tiers.submit("-n", "4", "--", "true")).exit_code == 0


def test_a_defect_in_the_configuration_of_a_daemon_is_an_error(tiers: Site) -> None:
    """Also where the file names no world, and where it takes over later."""
    wanted = TIERS.replace("[scheduler]\n", "[scheduler]\nrules = { killed_at_resume_keeps_nodes = true }\n")
    for text in (wanted, wanted.partition("[world]")[0]):
        tiers.config.write_text(text)
        result = tiers.run("up", str(tiers.config))
        assert result.exit_code == 2
        assert "scheduler.rules.killed_at_resume_keeps_nodes: got true" in result.stderr
    tiers.config.write_text(TIERS)
    tiers.up()
    for text in (wanted, wanted.partition("[world]")[0]):
        tiers.config.write_text(text)
        result = tiers.run("reload", str(tiers.config))
        assert result.exit_code == 2
        assert "killed_at_resume_keeps_nodes: got true" in result.stderr
