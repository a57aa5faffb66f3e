"""Jobs that are saved with their memory when they make way by a checkpoint: real ones, by criu."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from makeway_checkpointable import criu
from makeway_local_world.processes.saving import Saving
from makeway_local_world.processes.settings import Settings

Site = Any
COUNT = """
import os, time
number = 0
while number < 5 or not os.path.exists("finish"):
    number += 1
    print(number, flush=True)
    time.sleep(0.05)
raise SystemExit(7)
"""
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else "python3"


def usable() -> None:
    """Skip where nothing can be saved."""
    try:
        criu.ready()
    except criu.CriuError as error:
        pytest.skip(str(error))


@pytest.fixture
def counting(site: Site) -> Site:
    """Return a site whose urgent jobs checkpoint the others, and a program that counts."""
    usable()
    site.environ["XDG_STATE_HOME"] = str(site.directory / "home")
    (site.directory / "count.py").write_text(COUNT)
    site.config.write_text(site.config.read_text().replace('["suspend", "gang"]', '["checkpoint"]'))
    site.up()
    return site


def start(site: Site, *options: str) -> str:
    words = ("-n", "2", "-o", "out", "--checkpointable", *options, "--", PYTHON, "-I", "count.py")
    job: str = site.submit(*words)
    grows(site)
    return job


def printed(site: Site, name: str = "out") -> list[str]:
    path: Path = site.directory / name
    return path.read_text().split() if path.exists() else []


def grows(site: Site, by: int = 10, name: str = "out") -> None:
    before = len(printed(site, name))
    site.until(lambda: len(printed(site, name)) > before + by, "more output")


def ends_well(site: Site, job: str) -> None:
    """Let it finish: nothing is missing or twice, and nothing of it is left."""
    (site.directory / "finish").touch()
    site.until(lambda: not site.jobs(), "its end")
    (ended,) = (each for each in site.ended() if each["id"] == job)
    assert ended["state"] == "FAILED"  # by the program's own exit status, which is 7
    count = len(printed(site))
    assert printed(site) == [str(each) for each in range(1, count + 1)]
    site.until(lambda: not list((site.directory / "home/makeway-saved").iterdir()), "the images' end")


@pytest.mark.slow
def test_a_victim_leaves_with_its_memory_and_goes_on_where_it_was(counting: Site) -> None:
    site = counting
    job = start(site)
    urgent = site.submit("-p", "urgent", "-n", "2", "--", "sleep", "1000")
    site.until(lambda: site.state_of(urgent) == "RUNNING", "the urgent job")
    assert site.state_of(job) == "PENDING"
    assert "checkpointed" in site.ok("why", job)
    stood = printed(site)
    daemon_dies(site)
    site.up()
    assert printed(site) == stood
    site.ok("cancel", urgent)
    grows(site)
    ends_well(site, job)


@pytest.mark.slow
def test_a_checkpoint_on_demand_and_a_cancel(counting: Site) -> None:
    site = counting
    job = start(site)
    site.ok("checkpoint", job)
    site.until(
        lambda: site.jobs()[job]["requeues"] == 1 and site.state_of(job) == "RUNNING", "a second start"
    )
    grows(site)
    count = len(printed(site))
    assert printed(site)[:count] == [str(each) for each in range(1, count + 1)]
    assert list((site.directory / "home/makeway-saved").iterdir())
    site.ok("cancel", job)
    site.until(lambda: not site.jobs(), "its end")
    site.until(lambda: not list((site.directory / "home/makeway-saved").iterdir()), "the images' end")


@pytest.mark.slow
def test_a_partition_has_its_scripts_saved_too(counting: Site) -> None:
    site = counting
    site.ok("down", "--kill")
    says = "[world.settings]\npartition = { normal = { checkpointable = true } }\n"
    site.config.write_text(site.config.read_text() + says)
    site.up()
    script = site.directory / "job.sh"
    script.write_text(f"#!/bin/sh -e\necho 0 >first\n{PYTHON} -I count.py\n")
    job = site.submit("-n", "2", "-o", "out", str(script))
    other = site.submit("-n", "2", "--no-checkpointable", "-o", "other", "--", "sleep", "1000")
    grows(site)
    urgent = site.submit("-p", "urgent", "-n", "2", "--", "sleep", "1000")
    site.until(lambda: site.state_of(urgent) == "RUNNING", "the urgent job")
    (site.directory / "first").unlink()
    site.ok("hold", job)
    assert "nothing of it is saved" in site.run("restore", other).stderr
    site.ok("restore", job)
    site.ok("cancel", urgent)
    grows(site)
    assert site.state_of(job) == "RUNNING"
    assert not (site.directory / "first").exists()  # the script went on in its last line
    site.ok("cancel", other)
    ends_well(site, job)


@pytest.mark.slow
def test_a_job_that_asks_not_to_be_saved_is_requeued_and_it_is_said(counting: Site) -> None:
    site = counting
    job = site.submit("-n", "2", "--no-checkpointable", "--", "sleep", "1000")
    site.until(lambda: site.jobs()[job].get("obstacle"), "its start")
    urgent = site.submit("-p", "urgent", "-n", "2", "--", "sleep", "1000")
    site.until(lambda: site.state_of(urgent) == "RUNNING", "the urgent job")
    assert "was requeued" in site.ok("why", job)
    assert "it cannot be checkpointed: it has no checkpoint command" in site.ok("why", job)


def daemon_dies(site: Site) -> None:
    (daemon,) = (each for each in site.processes if each.poll() is None)
    os.kill(daemon.pid, signal.SIGKILL)
    daemon.wait()


def kill_keeper(site: Site, job: str) -> None:
    (started,) = (site.state / "run").glob(f"{job}.*/started")
    os.kill(json.loads(started.read_bytes())["pid"], signal.SIGKILL)


@pytest.mark.slow
def test_work_counts_as_lost_from_the_last_save(counting: Site) -> None:
    """Also where keeper and daemon have both gone; what cannot be brought back is lost, and it is said."""
    site = counting
    job = start(site, "--checkpoint-every", "0:01")
    first = site.until(lambda: site.jobs()[job].get("saved"), "a save")
    site.until(lambda: site.jobs()[job]["saved"] > first, "another save")
    kill_keeper(site, job)
    site.until(lambda: site.jobs()[job]["requeues"] == 1 and site.jobs()[job].get("saved"), "its return")
    assert site.jobs()[job]["saved"] > first
    lost = site.jobs()[job].get("lost", 0.0)
    grows(site)
    daemon_dies(site)
    (image,) = (site.directory / "home/makeway-saved").glob("*/image.*")
    kill_keeper(site, job)
    next(image.glob("pages-*.img")).write_bytes(b"")
    site.up()
    site.until(lambda: "damaged: pages-1.img has 0 bytes" in site.ok("why", job), "the reason")
    assert site.jobs()[job]["lost"] > lost + first
    grows(site)
    assert printed(site).count("1") == 2


MOAB = """
PREEMPTPOLICY CHECKPOINT
NODECFG[here] PROCS=2 MEMORY=4000
RMCFG[base] CHECKPOINTTIMEOUT=00:01:00
QOSWEIGHT 1
QOSCFG[high] QFLAGS=PREEMPTOR PRIORITY=1000
QOSCFG[low] QFLAGS=PREEMPTEE PRIORITY=100 JOBFLAGS=RESTARTABLE
"""


@pytest.mark.slow
@pytest.mark.parametrize("saves", [True, False])
def test_moabs_preemptpolicy_checkpoint(counting: Site, saves: bool) -> None:
    """Its victim goes on where it was; one that cannot be saved is requeued, with the reason."""
    site = counting
    site.ok("down", "--kill")
    (site.directory / "moab.cfg").write_text(MOAB)
    site.config.unlink()
    site.ok("import", "moab.cfg", "-o", str(site.config))
    site.config.write_text(site.config.read_text() + '\n[world]\nname = "world/local"\n')
    site.up()
    own = ("--checkpointable",) if saves else ("--no-checkpointable",)
    words = ("-q", "low", "-n", "2", "-o", "out", *own, "--", PYTHON, "-I", "count.py")
    job = site.submit(*words)
    grows(site)
    if not saves:
        site.until(lambda: site.jobs()[job].get("obstacle"), "its obstacle")
    urgent = site.submit("-q", "high", "-n", "2", "--", "sleep", "1000")
    site.until(lambda: site.state_of(urgent) == "RUNNING", "the urgent job")
    told = site.ok("why", job)
    assert "PREEMPTPOLICY CHECKPOINT" in told
    assert ("was checkpointed" in told) is saves
    assert ("was requeued" in told and "it cannot be checkpointed" in told) is not saves
    site.ok("cancel", urgent)
    if saves:
        grows(site)
        ends_well(site, job)


@pytest.mark.slow
def test_what_a_user_may_keep_of_images_is_limited(counting: Site) -> None:
    site = counting
    site.ok("down", "--kill")
    site.config.write_text(site.config.read_text() + "[world.settings]\nuser_images = 1\n")
    site.up()
    job = start(site)
    refused = site.run("checkpoint", job)
    assert refused.exit_code == 0  # it is the save that fails, later on
    site.until(lambda: "allowed: 1" in site.ok("why", job), "the reason")


def machine_fails(site: Site) -> tuple[str, list[str]]:
    """Let an urgent job run that is saved again and again, and end all as a power cut does.

    :returns: its id, and what the other job had printed.
    """
    words = ("-o", "urgent", "--checkpoint-every", "0:01", "--", PYTHON, "-I", "count.py")
    urgent = site.submit("-p", "urgent", "-n", "2", *words)
    site.until(lambda: site.jobs()[urgent].get("saved"), "a save")
    stood = printed(site)
    daemon_dies(site)
    kill_keeper(site, urgent)
    site.until(lambda: not site.left(), "the end of all that ran")
    (path,) = (site.state / "run").glob(f"{urgent}.*/started")
    path.write_text(json.dumps({**json.loads(path.read_bytes()), "boot": "another"}) + "\n")
    return urgent, stood


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a daemon clocks of another boot")
def test_jobs_go_on_after_a_reboot(counting: Site) -> None:
    """One that was checkpointed, and one from its last save: clocks begin anew, and nothing that ran is there."""
    site = counting
    site.ok("down", "--kill")
    site.up(within=("unshare", "--time", "--monotonic=99999", "--boottime=99999"))
    job = start(site)
    urgent, stood = machine_fails(site)
    site.up()
    site.until(lambda: site.state_of(urgent) == "RUNNING", "the urgent job")
    assert "it went back to the queue: the machine went down" in site.ok("why", urgent)
    assert printed(site) == stood
    site.until(lambda: site.jobs()[urgent].get("saved"), "its return")
    grows(site, name="urgent")
    assert printed(site, "urgent").count("1") == 1
    site.ok("cancel", urgent)
    grows(site)
    ends_well(site, job)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a daemon clocks of another boot")
@pytest.mark.parametrize("copied", [True, False])
def test_a_journal_that_a_power_cut_damaged_costs_no_work(counting: Site, copied: bool) -> None:
    """Also without its copy; what waits and was saved goes on, nothing is done twice."""
    site = counting
    site.ok("down", "--kill")
    site.up(within=("unshare", "--time", "--monotonic=99999", "--boottime=99999"))
    job = start(site)
    if copied:
        daemon_dies(site)
        site.up(within=("unshare", "--time", "--monotonic=99999", "--boottime=99999"))
    urgent, stood = machine_fails(site)
    (site.state / "journal.db").write_bytes(os.urandom(8192))
    if not copied:
        (site.state / "journal.backup.db").unlink(missing_ok=True)
    site.up("--recover")
    site.until(lambda: site.state_of(job) == "PENDING", "what became of it")
    assert "the journal was recovered" in site.ok("why", job)
    assert printed(site) == stood  # nothing starts before a person has looked
    site.ok("undrain")
    site.until(lambda: site.state_of(urgent) == "RUNNING", "the urgent job")
    assert "it went back to the queue: the machine went down" in site.ok("why", urgent)
    site.until(lambda: site.jobs()[urgent].get("saved"), "its return")
    grows(site, name="urgent")
    assert printed(site, "urgent").count("1") == 1
    site.ok("cancel", urgent)
    grows(site)
    ends_well(site, job)


def _of_a_later_kernel(site: Site) -> None:
    (manifest,) = (site.directory / "home/makeway-saved").glob("*/image.*/manifest.json")
    known = json.loads(manifest.read_text())
    known["where"]["kernel"] = "99.1.0"
    manifest.write_text(json.dumps(known))


def _with_another_program(site: Site) -> None:
    shutil.copy("/bin/true", site.directory / "new")
    (site.directory / "new").rename(site.directory / "sleeper")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("harm", "why", "state"),
    [
        (_of_a_later_kernel, "image.1: it was saved under kernel 99.1.0, and ", "RUNNING"),
        (_with_another_program, "image.1: ", ""),  # it begins anew as a program that ends at once
    ],
)
def test_what_cannot_be_brought_back_begins_anew_with_the_reason(
    counting: Site, harm: Callable[[Site], None], why: str, state: str
) -> None:
    site = counting
    shutil.copy("/bin/sleep", site.directory / "sleeper")
    job = site.submit("-n", "2", "--checkpointable", "--", "./sleeper", "1000")
    site.until(lambda: list((site.directory / "home/makeway-saved").glob("*/log")), "its start")
    urgent = site.submit("-p", "urgent", "-n", "2", "--", "sleep", "1000")
    site.until(lambda: site.state_of(urgent) == "RUNNING", "the urgent job")
    assert site.jobs()[job]["saved"] > 0.0
    harm(site)
    site.ok("cancel", urgent)
    anew = "it began anew, for what was saved of it cannot be used: "
    site.until(lambda: f"{anew}{why}" in site.ok("why", job), "the reason")
    site.until(lambda: site.state_of(job) == state, "its second start, or its end")


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a small file system")
def test_a_victim_for_whose_image_there_is_no_room_is_requeued(counting: Site) -> None:
    """What was saved before stays, so that it goes on from there."""
    site = counting
    home = site.directory / "home"
    home.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "none", home], check=True)
    try:
        job = start(site, "--checkpoint-every", "0:01")
        site.until(lambda: site.jobs()[job].get("saved"), "a save")
        subprocess.run(
            ["dd", "if=/dev/zero", f"of={home / 'filler'}", "bs=4k"], check=False, capture_output=True
        )
        urgent = site.submit("-p", "urgent", "-n", "2", "--", "sleep", "1000")
        site.until(lambda: site.state_of(urgent) == "RUNNING", "the urgent job")
        assert "No space left on device" in site.ok("why", job)
        assert site.jobs()[job]["saved"] > 0.0
        (home / "filler").unlink()
        site.ok("cancel", urgent)
        grows(site)
        assert printed(site).count("1") == 1
        ends_well(site, job)
    finally:
        site.close()
        subprocess.run(["umount", "-l", home], check=True)


def test_a_job_with_all_gpus_is_saved_where_cuda_checkpoint_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = {"criu": "Version: 4.1", "cuda-checkpoint": "--get-state --action lock"}
    for name, says in tools.items():
        (tmp_path / name).write_text(f"#!/bin/sh\necho '{says}'\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("MAKEWAY_CRIU", str(tmp_path / "criu"))
    monkeypatch.setenv("MAKEWAY_CUDA_CHECKPOINT", str(tmp_path / "cuda-checkpoint"))
    monkeypatch.setattr("makeway_checkpointable.cuda.models", lambda: ["A40", "A40"])
    saving = Saving(Settings(), "1-2")
    assert saving.refusal(["train"], {}, 2) == ""
    assert saving.refusal(["train"], {}, 1).startswith("it cannot leave its GPUs: it has 1 of 2 GPUs")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--", "mpirun", "-n", "4", "solve"], "--checkpointable: mpirun starts its processes by MPI"),
        (
            ["--gpus", "1", "--", "sleep", "5"],
            "--checkpointable: it cannot leave its GPUs: cuda-checkpoint: ",
        ),
        (["--checkpoint-command", "true", "--", "sleep", "5"], "brings a command of its own; leave one out"),
        (["--", "sleep", "5"], "install criu 4.0 or newer"),
    ],
)
def test_what_cannot_be_saved_is_refused_when_it_is_submitted(site: Site, words: list[str], why: str) -> None:
    site.environ["MAKEWAY_CUDA_CHECKPOINT"] = str(site.directory / "none")
    if "install" in why:
        site.environ["MAKEWAY_CRIU"] = str(site.directory / "none")
    else:
        usable()
    site.up()
    result = site.run("submit", "--checkpointable", *words)
    assert result.exit_code != 0
    assert why in result.stderr
