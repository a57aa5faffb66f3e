"""The configuration of a machine that nobody has configured, and the systemd units."""

from __future__ import annotations

import configparser
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest
from click.shell_completion import BashComplete

from makeway.config import dump_toml, parse_toml
from makeway.errors import ConfigError
from makeway.model import JobSpec
from makeway_app.cli import cli
from makeway_app.replay import Options, replay
from makeway_local_world import default
from makeway_local_world.processes.machine import SUBGROUP
from makeway_local_world.requests import MOST_TASKS
from makeway_local_world.units import program, unit

Site = Any
PLAIN = default.Machine(name="tower", cpus=4, memory_mb=16_000)
GPUS = default.Machine(name="tower", cpus=4, memory_mb=16_000, gpus=2)


def _victims(machine: default.Machine, jobs: list[JobSpec]) -> list[tuple[str, str, str]]:
    """Return preemptor, victim and mode of each preemption, in the simulated world."""
    config = default.configuration(machine, world="world/simulated")
    run = replay(config, jobs, (), Options())
    return [(str(each.preemptor), each.victim, each.mode.value) for each in run.recorder.preemptions]


def test_it_reads_back_as_it_was_written() -> None:
    for machine in (PLAIN, GPUS):
        for config in (default.configuration(machine), *(made(machine) for made in default.PRESETS.values())):
            assert parse_toml(dump_toml(config), "default") == config


def test_urgent_jobs_suspend_normal_ones() -> None:
    """Jobs that ask for no memory leave room for one that makes way and one that takes its place."""
    jobs = [
        JobSpec(id="n", tasks=4, run_time=100.0),
        JobSpec(id="u", tasks=4, partitions=("urgent",), submit_at=10.0, run_time=20.0),
    ]
    assert _victims(PLAIN, jobs) == [("u", "n", "suspend")]


def test_in_the_preset_checkpoint_jobs_leave_with_all_that_they_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory and GPUs, too; where there is no criu, it is said at the start."""
    gpu = {"gpu": 2}
    jobs = [
        JobSpec(id="n", tasks=4, gres=gpu, run_time=100.0),
        JobSpec(id="u", tasks=4, gres=gpu, partitions=("urgent",), submit_at=10.0, run_time=20.0),
    ]
    config = default.checkpoint(GPUS, world="world/simulated")
    (found,) = replay(config, jobs, (), Options()).recorder.preemptions
    assert (str(found.preemptor), found.victim, found.mode.value) == ("u", "n", "checkpoint")
    monkeypatch.setenv("MAKEWAY_CRIU", str(tmp_path / "none"))
    (told,) = default.check(default.checkpoint(PLAIN), "it")
    assert told.startswith("no job is saved with its memory, so those that make way begin anew: criu: ")
    assert default.check(default.configuration(PLAIN), "it") == []
    monkeypatch.chdir(tmp_path)
    (tmp_path / "checkpoint").mkdir()  # as many programs have one
    assert default.is_preset(Path("checkpoint"))


def test_urgent_jobs_do_not_displace_each_other() -> None:
    jobs = [
        JobSpec(id=name, tasks=4, partitions=("urgent",), submit_at=at, run_time=20.0)
        for at, name in enumerate("ab")
    ]
    assert _victims(PLAIN, jobs) == []


def test_a_job_that_wants_a_gpu_has_the_last_holder_requeued() -> None:
    """Suspension would free none; one that may not be requeued keeps its GPU."""
    gpu = {"gpu": 1}
    jobs = [
        JobSpec(id="first", gres=gpu, run_time=100.0),
        JobSpec(id="last", gres=gpu, submit_at=5.0, run_time=100.0),
        JobSpec(id="none", submit_at=6.0, run_time=100.0),
        JobSpec(id="u", partitions=("urgent",), gres=gpu, submit_at=10.0, run_time=20.0),
    ]
    assert _victims(GPUS, jobs) == [("u", "last", "requeue")]
    kept = [*jobs[:1], JobSpec(id="last", gres=gpu, submit_at=5.0, run_time=100.0, requeue=False), *jobs[2:]]
    assert _victims(GPUS, kept) == [("u", "first", "requeue")]


def _starts(config: Any, jobs: list[JobSpec]) -> dict[str, float]:
    """Return when each job started, in the simulated world."""
    run = replay(config, jobs, (), Options()).summary()["jobs"]
    return {
        name: next(each["start"] for each in job["intervals"] if each["state"] == "RUNNING")
        for name, job in run.items()
    }


def test_in_a_lab_nobody_waits_behind_the_array_of_another() -> None:
    """One user's 40 tasks of 10 s fill 4 CPUs; another's job comes at 5 s, and starts with the next free CPU.

    The CPUs are free at 10, 20, 30 s and so on. In order of submission, the job would come behind all 40 tasks.
    """
    array = [JobSpec(id=f"a{at}", user="ann", run_time=10.0) for at in range(40)]
    jobs = [*array, JobSpec(id="b", user="bob", submit_at=5.0, run_time=10.0)]
    assert _starts(default.configuration(PLAIN, world="world/simulated"), jobs)["b"] == 100.0
    assert _starts(default.lab(PLAIN, world="world/simulated"), jobs)["b"] == 10.0


def test_in_a_lab_an_array_may_be_as_large_as_anywhere_here() -> None:
    """A sweep of thousands of tasks is a usual thing; Slurm's own limit is a thousand."""
    last = MOST_TASKS - 1
    job = JobSpec(
        id="a", user="ann", array_id="a", array_task=last, attributes={"array_last": last}, run_time=1.0
    )
    assert _starts(default.lab(PLAIN, world="world/simulated"), [job]) == {"a": 0.0}


def test_in_a_lab_a_user_has_half_of_the_gpus() -> None:
    """In both partitions together; what is urgent is limited to half of the CPUs."""
    machine = attrs.evolve(GPUS, cpus=8, gpus=4)
    gpu = {"gpu": 1}
    jobs = [
        *(JobSpec(id=f"a{at}", user="ann", gres=gpu, run_time=100.0) for at in range(3)),
        JobSpec(id="b", user="bob", gres=gpu, run_time=100.0),
        JobSpec(id="u", user="bob", partitions=("urgent",), tasks=4, submit_at=10.0, run_time=100.0),
        JobSpec(id="v", user="bob", partitions=("urgent",), submit_at=20.0, run_time=100.0),
    ]
    found = _starts(default.lab(machine, world="world/simulated"), jobs)
    assert found == {"a0": 0.0, "a1": 0.0, "b": 0.0, "a2": 100.0, "u": 10.0, "v": 110.0}


def test_two_people_of_a_lab_on_two_cpus() -> None:
    """An urgent job stops the one that fills the machine; one that no user may have is refused, and waits for none."""
    jobs = [
        JobSpec(id="anns", user="ann", tasks=2, run_time=120.0),
        JobSpec(id="large", user="bob", partitions=("urgent",), tasks=2, submit_at=5.0, run_time=20.0),
        JobSpec(id="bobs", user="bob", partitions=("urgent",), submit_at=10.0, run_time=20.0),
    ]
    run = replay(default.lab(attrs.evolve(PLAIN, cpus=2), world="world/simulated"), jobs)
    assert [name for name, *_ in run.recorder.unrunnable] == ["large"]
    found = {name: each["intervals"] for name, each in run.summary()["jobs"].items()}
    assert [each["start"] for each in found["bobs"]] == [10.0]
    assert [(each["state"], each["start"]) for each in found["anns"]] == [
        ("RUNNING", 0.0),
        ("SUSPENDED", 10.0),
        ("RUNNING", 30.0),
    ]


def test_times_of_a_lab() -> None:
    """A job that says nothing has a day, an urgent one an hour; a limit beyond the partition's is refused."""
    normal, urgent = default.lab(GPUS).partition
    assert (normal.default_time, normal.max_time) == (86_400.0, 604_800.0)
    assert (urgent.default_time, urgent.max_time) == (3600.0, 14_400.0)


def test_units_keep_jobs_when_the_daemon_ends(tmp_path: Path) -> None:
    """KillMode=process: systemd ends the daemon alone."""
    for system in (False, True):
        parser = configparser.ConfigParser(strict=False, interpolation=None)
        parser.optionxform = str  # type: ignore[assignment,method-assign]
        parser.read_string(unit(system=system, config=tmp_path / "a b.toml"))
        service = parser["Service"]
        assert service["KillMode"] == "process"
        assert service["Delegate"] == "yes"
        assert service["DelegateSubgroup"] == SUBGROUP
        assert (service["OOMPolicy"], service["TasksMax"]) == ("continue", "infinity")
        assert int(service["LimitNOFILE"]) >= 16_384
        # A private view of files, devices or networks would be that of the jobs as well.
        assert not {"ProtectSystem", "ProtectHome", "PrivateTmp", "PrivateDevices"} & set(service)
        assert ("--system" in service["ExecStart"]) is system
        assert service["ExecStart"].endswith(f'"{tmp_path}/a b.toml"')
        assert parser["Install"]["WantedBy"] == ("multi-user.target" if system else "default.target")


def test_the_unit_of_all_is_as_closed_as_the_docs_say(tmp_path: Path) -> None:
    """The figure of systemd-analyze is that of docs/threat-model.md."""
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not here")
    path = tmp_path / "makeway.service"
    path.write_text(unit(system=True, config=None).replace(program(), sys.executable))
    command = [analyze, "security", "--offline=yes", "--no-pager", str(path)]
    told = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    found = re.search(r"exposure level.*: ([0-9.]+)", told.stdout)
    if found is None:
        pytest.skip(f"systemd-analyze does not work here: {told.stderr.strip()[:200]}")
    docs = (Path(__file__).parents[3] / "docs/threat-model.md").read_text()
    assert f"exposure level of {found[1]}" in docs


def test_units_hold_any_path(tmp_path: Path) -> None:
    """Signs that mean something to systemd stand for themselves."""
    text = unit(system=False, config=Path('/a/50%d "x" $HOME\\y.toml'), state=Path("/s/it's"))
    assert '"/a/50%%d \\"x\\" $$HOME\\\\y.toml"' in text
    assert '"--state=/s/it\'s"' in text
    assert 'ExecReload=/usr/bin/env "MAKEWAY_STATE=/s/it\'s" ' in text


@pytest.mark.parametrize("system", [True, False], ids=["system", "user"])
def test_systemd_takes_the_units(tmp_path: Path, system: bool) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not here")
    path = tmp_path / "makeway.service"
    text = unit(system=system, config=tmp_path / "50%d $x.toml", state=tmp_path / "a b")
    path.write_text(text.replace(program(), sys.executable))
    command = [analyze, "verify", "--man=no", *([] if system else ["--user"]), str(path)]
    environ = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    try:
        told = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=60)
    except subprocess.TimeoutExpired:
        pytest.skip("systemd-analyze does not answer here")
    if told.returncode and "makeway.service" not in told.stderr:
        pytest.skip(f"systemd-analyze does not work here: {told.stderr.strip()[:200]}")
    assert told.returncode == 0, told.stderr


def test_the_command_prints_unit_and_configuration_without_a_daemon(site: Site) -> None:
    assert site.ok("up", "--print-unit").startswith("# ~/.config/systemd/user/makeway.service\n")
    assert "[[partition]]" in site.ok("up", "--print-config")
    assert not site.state.exists()


def test_check_tells_people_of_a_lab_what_a_daemon_would_refuse_and_nothing_of_slurm(site: Site) -> None:
    """The preset has no findings; wrong settings of the daemon are found without starting it."""
    site.config.write_text(made := site.ok("up", "--print-config", "lab"))
    assert site.ok("check", str(site.config)).endswith("cluster.toml: nothing to complain about\n")
    site.config.write_text(made.replace("user_bookings = 2", 'user_bookings = "x"\nbookings = 1'))
    told = site.run("check", str(site.config))
    assert told.exit_code == 1
    assert "error: world.settings.user_bookings: got 'x'; allowed: a whole number" in told.stdout
    assert "error: world.settings.bookings: unknown key; did you mean 'booking_gpus'?" in told.stdout


def test_completion_names_jobs_and_partitions_and_is_silent_without_a_daemon(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """click's own, for bash, zsh and fish."""
    monkeypatch.setenv("MAKEWAY_STATE", str(site.state))
    shell = BashComplete(cli, {}, "makeway", "_MAKEWAY_COMPLETE")
    assert shell.get_completions(["cancel"], "") == []
    site.up()
    job = site.submit("--hold", "-J", "train", "--", "true")
    (found,) = shell.get_completions(["cancel"], "")
    assert (found.value, found.help) == (job, "train PENDING")
    assert [each.value for each in shell.get_completions(["submit", "-p"], "u")] == ["urgent"]
    assert "doctor" in [each.value for each in shell.get_completions([], "do")]


def test_shells_read_what_completion_prints(site: Site, tmp_path: Path) -> None:
    """In bash as a person has it; the other shells get the script that click has for them."""
    for name, word in (("zsh", "#compdef makeway"), ("fish", "complete --no-files --command makeway")):
        assert word in site.ok("completion", name)
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    site.up()
    job = site.submit("--hold", "-J", "train", "--", "true")
    (tmp_path / "completion").write_text(site.ok("completion", "bash"))
    (tmp_path / "makeway").write_text(f'#!/bin/sh\nexec {sys.executable} -m makeway "$@"\n')
    (tmp_path / "makeway").chmod(0o755)
    lines = f"""
    PATH={tmp_path}:$PATH
    . {tmp_path}/completion
    COMP_WORDS=(makeway cancel '') COMP_CWORD=2
    _makeway_completion makeway
    echo "${{COMPREPLY[@]}}"
    COMPREPLY=() COMP_WORDS=(makeway submit -p u) COMP_CWORD=3
    _makeway_completion makeway
    echo "${{COMPREPLY[@]}}"
    """
    told = subprocess.run(
        [bash, "--norc", "-c", lines],
        env=site.environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (told.stdout, told.stderr) == (f"{job}\nurgent\n", "")


def test_json_everywhere(site: Site) -> None:
    """Every command has it."""
    site.up()
    job = site.submit("--hold", "--", "true")
    for command in (
        ["queue"],
        ["why", job],
        ["victims"],
        ["logs", job],
        ["history"],
        ["top", "99"],
        ["drain"],
        ["undrain"],
    ):
        result = site.run(*command, "--json")
        assert isinstance(json.loads(result.stdout), dict), command


def test_a_job_that_is_requeued_keeps_its_place_here() -> None:
    """As a key of the configuration that is made, so that whoever wants Slurm's way takes it out."""
    made = default.configuration(default.Machine(name="x", cpus=2, memory_mb=8000, gpus=0))
    assert made.scheduler.rules == {"requeue_keeps_priority": True}


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (
            {"partition": {"long": {"checkpointable": True}}},
            "partition.long: there is none; allowed: normal, urgent",
        ),
        ({"qos": {"low": {"checkpoint_every": "30m"}}}, "qos.low: there is none; allowed: none"),
        ({"partition": 5}, "partition: got 5"),
        ({"partition": {"normal": 5}}, "partition.normal: got 5"),
    ],
)
def test_settings_of_what_there_is_not_are_refused(settings: dict[str, Any], why: str) -> None:
    made = default.configuration(PLAIN)
    with pytest.raises(ConfigError) as error:
        default.check(attrs.evolve(made, world=attrs.evolve(made.world, settings=settings)), "it")
    assert f"world.settings.{why}" in str(error.value)


def test_parts_of_gpus_are_refused_and_gpus_are_counted() -> None:
    """Jobs get whole GPUs; a configuration with more of them than are found says how many."""
    made = default.configuration(default.Machine(name="x", cpus=2, memory_mb=8000, gpus=2))
    assert default.check(made, "it", found=2) == []
    (told,) = default.check(made, "it", found=1)
    assert told.startswith("1 of 2 GPUs are found")
    parts = attrs.evolve(made.node[0], gres={"gpu": 2, "shard": 8})
    with pytest.raises(ConfigError, match=r"node\[0\]\.gres\.shard: got 8; .*allowed: gpu"):
        default.check(attrs.evolve(made, node=(parts,)), "it", found=2)
