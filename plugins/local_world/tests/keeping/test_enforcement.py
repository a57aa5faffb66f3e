"""What the kernel enforces where this machine delegates it, and what is said where it does not (cgroup v2)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from makeway.model import JobState
from makeway_local_world import doctor
from makeway_local_world.keeping.cgroups import Cgroup
from makeway_local_world.processes.ends import end_of
from makeway_local_world.processes.machine import CONTROLLERS, Cgroups, turn_on


def _needs(rig: Any, controller: str) -> None:
    """Skip where the kernel does not limit this."""
    rig.settings["cgroups"] = "auto"
    found = Cgroups.find(f"test-{os.getpid()}")
    found.remove()
    if controller not in found.controllers:
        pytest.skip(f"{controller}: {found.why_not or found.why_unlimited.get(controller)}")


def test_limits_of_a_job() -> None:
    """Memory, processes, a share of the CPUs and the cores themselves, as cgroup-v2 writes them."""
    every = Cgroups("/base", frozenset(CONTROLLERS))
    assert every.limits(100, 2, [0, 3], 50, swap=False) == {
        "memory.max": "104857600",
        "memory.swap.max": "0",
        "pids.max": "50",
        "cpu.weight": "200",
        "cpuset.cpus": "0,3",
    }
    assert every.limits(0, 500, [], 0, swap=True) == {"cpu.weight": "10000"}
    assert Cgroups("/base").limits(100, 2, [0, 3], 50, swap=False) == {}
    assert every.path_of("7", 2) == "/base/7.2"
    assert Cgroups().path_of("7", 2) is None


def test_a_cgroup_is_made_with_its_limits(tmp_path: Path) -> None:
    """Limits hold for job and helpers; the keeper is beside the job, so that freezing stops the job alone."""
    cgroup = Cgroup(str(tmp_path / "1.1"))
    assert cgroup.make({"memory.max": "5", "pids.max": "6"}) == []
    assert (tmp_path / "1.1/memory.max").read_text() == "5"
    assert (tmp_path / "1.1/pids.max").read_text() == "6"
    assert Path(cgroup.beside).is_dir()
    assert cgroup.freeze()
    assert (tmp_path / "1.1/job/cgroup.freeze").read_text() == "1"
    assert not (tmp_path / "1.1/beside/cgroup.freeze").exists()
    cgroup.kill()
    assert (tmp_path / "1.1/cgroup.kill").read_text() == "1"


def test_all_in_a_cgroup_are_killed_by_kernels_that_cannot(tmp_path: Path) -> None:
    """Before 5.14 there is no cgroup.kill: what is in it is looked at, and killed one by one."""
    with subprocess.Popen(["sleep", "600"]) as child:
        for part in (".", "job", "beside"):
            (tmp_path / part / "cgroup.kill").mkdir(parents=True)
        (tmp_path / "job/cgroup.procs").write_text(f"{child.pid}\n4194305\n")
        Cgroup(str(tmp_path)).kill()
        assert child.wait(60) == -signal.SIGKILL


def test_controllers_are_turned_on_where_they_are(tmp_path: Path) -> None:
    """Above and below; what is missing is named with its reason."""
    base = tmp_path / "jobs"
    base.mkdir()
    (tmp_path / "cgroup.controllers").write_text("cpu memory hugetlb\n")
    found, why = turn_on(str(base), str(tmp_path))
    assert found == ["memory", "cpu"]
    assert why == dict.fromkeys(("pids", "cpuset"), "its controller is not delegated")
    assert (base / "cgroup.subtree_control").read_text() == "+cpu"
    assert turn_on(str(base), str(tmp_path / "gone"))[0] == []


@pytest.mark.parametrize("name", CONTROLLERS)
def test_doctor_says_what_is_not_enforced(name: str) -> None:
    """Each by itself, with its reason, and as broken where people share the machine and have no cgroups at all."""
    about = Cgroups("/base", frozenset(CONTROLLERS) - {name}, why_unlimited={name: "because"}).as_dict()
    found = {each.about: each for each in doctor._cgroups({"cgroups": about}, shared=True)}
    assert {each for each in found if found[each].level != "ok"} == {name}
    assert found[name].text.endswith(": because")
    (nothing,) = doctor._cgroups({"cgroups": Cgroups(why_not="read-only").as_dict()}, shared=True)
    assert (nothing.level, "read-only" in nothing.text) == ("bad", True)


def test_a_job_over_its_memory(rig: Any) -> None:
    """The kernel kills it, not others, and it ends OUT_OF_MEMORY."""
    _needs(rig, "memory")
    hog = "import time\nheld = []\nwhile True:\n    held.append(bytearray(1 << 20))\n"
    rig.submit("1", sys.executable, "-S", "-c", hog, spec={"memory_mb_per_node": 100, "tasks": 1})
    rig.until(j1="GONE")
    found = rig.turn(lambda: end_of(rig.folder, "1", 1))
    assert (found.oom_kills > 0, found.signal, found.state) == (True, signal.SIGKILL, JobState.OUT_OF_MEMORY)
    assert rig.ended_as("1")[-1] == "OUT_OF_MEMORY"


def test_a_command_beside_a_job_over_its_memory(rig: Any) -> None:
    """What its end asks for is held to the same limit."""
    _needs(rig, "memory")
    hog = f"{sys.executable} -S -c 'held = [bytearray(1 << 20) for _ in range(1 << 20)]'; echo $? >{rig.folder}/said"
    rig.submit("1", "true", spec={"memory_mb_per_node": 100, "tasks": 1}, on_end=hog)
    rig.until(j1="GONE")
    assert (rig.folder / "said").read_text() == "137\n"


def test_a_job_with_too_many_processes(rig: Any) -> None:
    """Its forks fail beyond max_processes; those of others do not."""
    _needs(rig, "pids")
    rig.settings["max_processes"] = 20
    bomb = (
        "import os, time\nmade = 0\ntry:\n    while made < 1000:\n        if os.fork() == 0:\n"
        "            time.sleep(1000)\n        made += 1\nexcept BlockingIOError:\n    pass\n"
        f"open({str(rig.folder / 'made')!r}, 'w').write(str(made))\n"
    )
    rig.submit("1", sys.executable, "-S", "-c", bomb)
    rig.until(j1="GONE")
    assert 10 <= int((rig.folder / "made").read_text()) <= 20


def test_a_job_cannot_leave_its_cores(rig: Any) -> None:
    """It may ask for all of them, and gets its own."""
    _needs(rig, "cpuset")
    rig.settings["bind"] = True
    cores = len(os.sched_getaffinity(0))
    if cores < 2:
        pytest.skip("one core is all there is")
    rig.config = rig.config.replace("cpus = 4", f"cpus = {cores}")
    text = f"os.sched_setaffinity(0, range({cores})); print(len(os.sched_getaffinity(0)))"
    rig.submit(
        "1", sys.executable, "-S", "-c", f"import os; {text}", spec={"tasks": 1}, output=str(rig.folder / "o")
    )
    rig.until(j1="GONE")
    assert (rig.folder / "o").read_text() == "1\n"
