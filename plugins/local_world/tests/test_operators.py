"""What users may do to a machine that they share, and what is for operators only."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from attacks import ANN

from makeway_local_world.commands import client

Site = Any
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


def test_a_refusal_is_told_once(up: Site) -> None:
    """A later command about the job that is done is told so, and one that is refused for another reason tells that."""
    job = up.submit("--hold", "--", "sleep", "60")
    assert up.run("suspend", job).stderr == f"makeway: job {job}: the job is pending\n"
    for change in ("nice=1000", "time=5:00"):
        result = up.run("update", job, change)
        assert (result.exit_code, result.stderr) == (0, ""), change
    assert up.run("release", job).exit_code == 0
    assert "not held" not in up.run("hold", job).stderr


def test_a_cancel_of_a_job_on_its_way_back_to_the_queue_ends_it(site: Site) -> None:
    """By its id, by all, and by `down --kill`; over a crash of the daemon, too."""
    site.config.write_text(TIERS.replace("kill_wait = 1.0", "kill_wait = 30.0"))
    stubborn = ["sh", "-c", "trap : TERM; touch deaf; while [ ! -e go ]; do sleep 0.2; done"]
    deaf = site.directory / "deaf"

    def leaving() -> str:
        victim: str = site.submit("-p", "rq", "-n", "4", "--", *stubborn)
        site.until(deaf.exists)
        deaf.unlink()
        site.submit("-p", "urgent", "-n", "4", "--", "true")
        site.until(lambda: site.state_of(victim) == "COMPLETING")
        return victim

    daemon = site.up()
    victim = leaving()
    assert site.run("cancel", victim).exit_code == 0
    assert "it is completing" in site.run("cancel", victim).stderr
    daemon.send_signal(signal.SIGKILL)
    daemon.wait()
    site.up()
    (site.directory / "go").touch()
    site.until(lambda: not site.jobs(), "an end")
    (row,) = [each for each in site.ended() if each["id"] == victim]
    assert (row["state"], row["requeues"]) == ("CANCELLED", 0)
    (site.directory / "go").unlink()
    leaving()
    site.ok("down", "--kill")


@as_root
def test_what_an_operator_has_held_or_stopped_no_user_lets_go(system: Site) -> None:
    """Nor after a crash; the operator does."""

    def tell(uid: int, verb: str, **more: Any) -> dict[str, Any]:
        return dict(system.ask(uid, "post", "/v1/commands", {"verb": verb, "jobs": [job], **more}))

    body = {"command": ["sleep", "600"], "cwd": "/", "output": "/dev/null"}
    for stop, go in (("hold", "release"), ("suspend", "resume")):
        job = system.ask(ANN, "post", "/v1/jobs", body | {"hold": stop == "hold"})["id"]
        begins = "PENDING" if stop == "hold" else "RUNNING"
        system.until(lambda job=job, begins=begins: system.state_of(job) == begins)
        assert tell(0, stop)["done"] == [job]
        system.processes[-1].send_signal(signal.SIGKILL)
        system.processes[-1].wait()
        system.up("--system")
        for verb, more in ((go, {}), ("update", {"changes": {"priority": "0"}}), ("top", {}), (go, {})):
            tell(ANN, verb, **more)
            assert system.state_of(job) == ("PENDING" if stop == "hold" else "SUSPENDED")
        why = tell(ANN, go)["refused"][job]
        assert "only operators may" in why
        assert tell(0, go)["done"] == [job]
        system.until(lambda job=job: system.state_of(job) == "RUNNING")
        assert tell(ANN, "cancel")["done"] == [job]


@as_root
def test_the_port_of_the_page_is_not_for_users_to_choose(system: Site) -> None:
    """Root listens there; who asks first chooses for all."""
    answer = system.ask(ANN, "post", "/v1/web", {"port": 8181})
    assert answer == "403 only root, the daemon's user and operators may choose the port of the page"
    assert system.ask(ANN, "post", "/v1/web", {"port": True}).startswith("400 ")
    url = system.ask(ANN, "post", "/v1/web", {})["url"]
    assert "the page is at port" in system.ask(0, "post", "/v1/web", {"port": 1})
    assert url.startswith("http://127.0.0.1:")
    system.ok("down")
    settings = "settings = { private = true, web = "
    text = system.config.read_text()
    system.config.write_text(text.replace("settings = { private = true", f'{settings}"operators"'))
    system.up("--system")
    assert "may see the page" in system.ask(ANN, "post", "/v1/web", {})
    assert system.ask(0, "post", "/v1/web", {})["url"]


def test_the_id_of_an_array_names_all_its_tasks(up: Site) -> None:
    """For whatever asks about jobs, or does something to them; refused submissions are not in the history."""
    array = up.submit("--array", "0-1", "--", "sh", "-c", "echo task $SLURM_ARRAY_TASK_ID; exec sleep 600")
    up.until(lambda: {up.state_of(f"{array}_{task}") for task in (0, 1)} == {"RUNNING"})
    assert up.ok("why", array).startswith(f"array {array}: 2 running")
    up.until(lambda: "task 1" in up.ok("logs", array))
    assert f"==> {array}_0 <==" in up.ok("logs", array)
    assert len(up.ok("logs", "--path", array).split()) == 2
    assert "name one of its tasks" in up.run("logs", "-f", array).stderr
    for verb, state in (("suspend", "SUSPENDED"), ("resume", "RUNNING")):
        up.ok(verb, array)
        up.until(lambda state=state: {each["state"] for each in up.jobs().values()} == {state})
    assert up.run("submit", "-n", "999", "--", "true").exit_code == 1
    up.ok("cancel", array)
    assert up.run("wait", array).exit_code != 0
    up.until(lambda: {row["state"] for row in up.ended()} == {"CANCELLED"})


def test_users_ask_for_the_daemon_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it has one that is down, a second daemon of a user's own would share nothing with it."""
    for name in ("MAKEWAY_SOCKET", "MAKEWAY_STATE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: ANN)
    for there, says in ((tmp_path, "ask an administrator"), (tmp_path / "nowhere", "start one: makeway up")):
        monkeypatch.setattr(client, "SYSTEM_STATE", there)
        monkeypatch.setattr(client, "SYSTEM_SOCKET", tmp_path / "not-there" / "socket")
        assert says in str(client.absent(tmp_path / "socket", None))


def test_an_operator_starts_a_job_before_its_turn(up: Site) -> None:
    """If it fits; not what is held, waits for others, runs already, or finds no room (Moab: mjobctl -x)."""
    holder = up.submit("-n", "1", "-t", "10:00", "--", "sleep", "60")
    up.until(lambda: up.state_of(holder) == "RUNNING")
    first = up.submit("-n", "2", "-t", "10:00", "--", "sleep", "60")
    later = up.submit("-n", "1", "-t", "60:00", "--", "sleep", "60")
    held = up.submit("--hold", "--", "sleep", "60")
    after = up.submit("--dependency", f"afterany:{holder}", "--", "sleep", "60")
    time.sleep(0.5)
    assert up.state_of(later) == "PENDING"  # it would delay the first
    for job, why in (
        (first, "there is no room: "),
        (held, "it is held; release it first"),
        (after, "it waits for others: "),
        (holder, "the job is running, not pending"),
    ):
        result = up.run("start", job)
        assert result.exit_code != 0
        assert result.stderr.startswith(f"makeway: job {job}: {why}"), result.stderr
    up.ok("start", later, "--ignore", "limits", "--ignore", "reservations")
    up.until(lambda: up.state_of(later) == "RUNNING")
    assert up.state_of(first) == "PENDING"


@as_root
def test_only_operators_start_jobs(system: Site) -> None:
    """An owner may not, not even its own (Moab: administrators may execute any queued job)."""
    body = {"command": ["sleep", "60"], "cwd": "/", "output": "/dev/null"}
    holder = system.ask(ANN, "post", "/v1/jobs", body | {"tasks": 2})["id"]
    system.until(lambda: system.state_of(holder) == "RUNNING")
    job = system.ask(ANN, "post", "/v1/jobs", body)["id"]
    answer = system.ask(ANN, "post", "/v1/commands", {"verb": "start", "jobs": [job]})
    assert answer["refused"] == {job: "only operators may start a job"}
    assert (
        system.ask(0, "post", "/v1/commands", {"verb": "start", "jobs": [job]})["refused"]
        != answer["refused"]
    )


def test_a_checkpoint_on_demand(up: Site) -> None:
    """The job's own command runs, then it waits, and goes on with what it saved; without a command it runs on."""
    plain = up.submit("-n", "1", "--", "sleep", "60")
    saving = up.submit(
        "-n",
        "1",
        "--checkpoint-command",
        "echo saved > saved",
        "--",
        "sh",
        "-c",
        "echo $MAKEWAY_BEGUN_WITH; sleep 60",
    )
    up.until(lambda: {up.state_of(plain), up.state_of(saving)} == {"RUNNING"})
    result = up.run("checkpoint", plain)
    assert result.exit_code != 0
    assert result.stderr.startswith(f"makeway: job {plain}: it has no checkpoint command")
    time.sleep(1.2)
    up.ok("checkpoint", saving)
    up.until(
        lambda: up.jobs()[saving]["requeues"] == 1 and up.state_of(saving) == "RUNNING", "a second start"
    )
    assert (up.directory / "saved").read_text() == "saved\n"
    up.until(lambda: len(up.ok("logs", saving).split()) == 2, "its second word")
    before, since = map(float, up.ok("logs", saving).split())
    assert before == 0 < since
    assert up.state_of(plain) == "RUNNING"


def test_a_job_that_waits_for_others_can_be_held(up: Site) -> None:
    """It is told so at once, and stays held once its conditions are met; a release before that lets it start."""
    first = up.submit("--hold", "--", "true")
    stays, goes = (up.submit("-d", f"afterok:{first}", "--", "true") for _ in range(2))
    assert up.run("release", stays).stderr.startswith(f"makeway: job {stays}: it waits for others")
    up.ok("hold", stays, goes)
    assert f"then it is held; what has to happen: makeway release {stays}" in up.ok("why", stays)
    up.ok("release", goes)
    up.ok("release", first)
    assert up.run("wait", goes).exit_code == 0
    up.until(lambda: "Dependency" not in up.ok("queue"))
    assert up.jobs()[stays]["held"]
    up.ok("release", stays)
    assert up.run("wait", stays).exit_code == 0


def test_an_order_that_means_no_job_says_so(up: Site) -> None:
    """A partition that there is not is refused."""
    assert up.ok("cancel", "-p", "normal") == "no job fits\n"
    refused = up.run("hold", "-p", "norml")
    told = "makeway: unknown partition 'norml'; allowed: normal, urgent; did you mean 'normal'?\n"
    assert (refused.exit_code, refused.stderr) == (1, told)
