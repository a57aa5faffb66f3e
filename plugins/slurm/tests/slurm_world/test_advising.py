"""What a policy would do with the recorded cluster, and that nothing is changed to find out."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest
from click.testing import CliRunner, Result

from makeway.errors import ConfigError
from makeway.model import JobState
from makeway_app.cli import cli
from makeway_slurm_world.advising.advice import advise
from makeway_slurm_world.advising.diary import Diary, between
from makeway_slurm_world.advising.overlay import laid_over, restricted
from makeway_slurm_world.advising.victims import ask_slurm, new_jobs
from makeway_slurm_world.driving.notebook import Notebook
from makeway_slurm_world.reading.look import Texts, look
from makeway_slurm_world.talking.runner import Answer
from makeway_slurm_world.talking.words import Question

REQUEUE = (
    '[policy]\npreempt = "preempt/partition_prio"\npreempt_mode = ["requeue"]\nselect = "select/cons_tres"\n'
)


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.toml"
    path.write_text(REQUEUE, encoding="utf-8")
    return path


def _run(*words: str) -> Result:
    return CliRunner().invoke(cli, ["slurm", *words])


# ------------------------------------------------------------------------------------ read-only
def test_no_command_changes_anything(fake_slurm: Path, policy: Path, tmp_path: Path) -> None:
    """The programs fail on every verb that is not one of a few questions, and write down which."""
    state, config = tmp_path / "state.json", tmp_path / "config.toml"
    assert _run("look", "--save", str(state), "--save-config", str(config)).exit_code == 0
    assert _run("look", "--json").exit_code == 0
    assert _run("advise", str(policy)).exit_code == 0
    diary = tmp_path / "diary"
    followed = _run("advise", str(policy), "--follow", "--every", "1", "--looks", "2", "--diary", str(diary))
    assert followed.exit_code == 0, followed.output
    assert len(diary.read_text().splitlines()) == 1
    assert _run("victims", "--config", str(policy), "12").exit_code == 0
    assert _run("victims", "--", "-p", "high", "-n4").exit_code == 0
    calls = fake_slurm.read_text().splitlines()
    assert len(calls) > 20
    assert not [call for call in calls if call.startswith("forbidden")]
    again = CliRunner().invoke(cli, ["replay", str(config), "--from", str(state), "--until", "1"])
    assert again.exit_code == 0, again.output


# --------------------------------------------------------------------------------------- advice
def test_the_clusters_own_policy_starts_no_job(texts: Texts) -> None:
    """As in the recording."""
    found = look(texts, ours="makeway")
    advice = advise(found.config, found.state)
    assert (advice.starts, advice.displaced, advice.left_out) == ((), (), ())
    assert advice.waits["11"] == "Priority"


def test_a_new_job_of_the_higher_tier_displaces_the_job_on_the_node_it_asks_for(
    texts: Texts, policy: Path
) -> None:
    """n4 is held by job 3 of the lower tier alone, which would be requeued."""
    found = look(texts, ours="makeway")
    new = new_jobs(["-p", "high", "-n4", "-N1", "-w", "n4"], "alice")
    advice = advise(laid_over(found.config, policy), found.state, new).of("new")
    assert [(each.job, each.mode) for each in advice.displaced] == [("3", "requeue")]
    assert [each.nodes for each in advice.starts] == ["n4"]
    # scontrol says RunTime=00:00:02 NumCPUs=6 of it
    assert advice.core_hours == pytest.approx(2 * 6 / 3600)


def test_what_checkpoints_would_save_is_said(fake_slurm: Path, policy: Path) -> None:
    """In words and in JSON; a policy that suspends loses nothing."""
    words = "-p", "high", "-n4", "-N1", "-w", "n4"
    said = _run("victims", "--config", str(policy), "--no-slurm", "--", *words).output
    assert (
        "12 core-seconds of work would be lost; none of it, if these jobs ran under makeway checkpointable"
        in said
    )
    told = json.loads(_run("victims", "--config", str(policy), "--json", "--no-slurm", "--", *words).output)
    (lost,) = [each["core_hours_lost"] for each in told["policy"][0]["makes_way"]]
    assert lost == round(2 * 6 / 3600, 3)
    policy.write_text(REQUEUE.replace("requeue", "suspend"), encoding="utf-8")
    assert "core-hours" not in _run("victims", "--config", str(policy), "--no-slurm", "--", *words).output


def test_a_job_that_the_policy_cannot_have_is_named(texts: Texts, policy: Path) -> None:
    found = look(texts, ours="makeway")
    config = attrs.evolve(
        found.config, partition=tuple(p for p in found.config.partition if p.name != "high")
    )
    advice = advise(config, found.state)
    assert any(text.startswith("job 4_1 is left out: ") and "high" in text for text in advice.left_out)


def test_victims_holds_the_policy_against_slurm(fake_slurm: Path, policy: Path) -> None:
    told = _run("victims", "--config", str(policy), "--json", "--", "-p", "high", "-n4", "-N1", "-w", "n4")
    assert told.exit_code == 0, told.output
    data = json.loads(told.stdout)
    assert data["displaces"] == ["3"]
    assert data["slurm"]["displaces"] == ["3", "10"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["victims", "999"], "no job '999' waits or runs"),
        (["victims", "2"], "job 2 is RUNNING; allowed: a job that waits"),
        (["victims", "--", "--nodse=2"], "did you mean '--nodes'"),
        (["victims"], "name a waiting job"),
        (["advise", "missing.toml"], "missing.toml"),
    ],
)
def test_mistakes_get_one_clear_error(fake_slurm: Path, words: list[str], message: str) -> None:
    told = _run(*words)
    assert told.exit_code == 2
    assert message in told.output
    assert "Traceback" not in told.output


class _Says:
    """Answers with one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.asked: list[Question] = []

    def ask(self, question: Question, *, may_fail: bool = False) -> Answer:
        del may_fail
        self.asked.append(question)
        return Answer(code=0, out="", err=self.text)


def test_the_answer_of_test_only_is_read() -> None:
    """Texts of slurm-live 5."""
    says = _Says(
        "sbatch: Job 6 to start at 2026-11-20T10:00:00 using 8 processors on nodes n[1-2] in partition hi\n"
        "  Preempts: 2,3\n"
    )
    found = ask_slurm(says, ["-n8"], "22.05.8")
    assert (found.nodes, found.partition, found.preempts) == ("n[1-2]", "hi", ("2", "3"))
    assert says.asked[0].words == ("sbatch", "--test-only", "--wrap", "true", "-n8")
    refused = ask_slurm(
        _Says("allocation failure: Invalid partition name specified\n"), ["-p", "x"], "22.05.8"
    )
    assert refused.refused == "allocation failure: Invalid partition name specified"


def test_a_controller_that_may_crash_is_not_asked() -> None:
    says = _Says("")
    assert "may crash" in ask_slurm(says, ["-n8"], "24.11.1").not_asked
    assert not says.asked


def test_options_of_a_script_count_and_the_command_line_wins(tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\n#SBATCH -n 4 -p low  # four\n#SBATCH --time=10\nsrun x\n#SBATCH -n 9\n")
    (spec,) = new_jobs(["-p", "high", str(script)], "alice")
    assert (spec.tasks, spec.partitions, spec.time_limit) == (4, ("high",), 600.0)


# -------------------------------------------------------------------------------------- overlay
def test_a_file_says_only_what_differs(texts: Texts, tmp_path: Path) -> None:
    path = tmp_path / "change.toml"
    path.write_text(REQUEUE + '[[partition]]\nname = "high"\npriority_tier = 3\n[[qos]]\nname = "new"\n')
    config = laid_over(look(texts).config, path)
    assert [(each.name, each.nodes, each.priority_tier) for each in config.partition] == [
        ("low", "n[1-4]", 1),
        ("high", "n[1-4]", 3),
    ]
    assert (config.policy.preempt, config.policy.select_parameters) == (
        "preempt/partition_prio",
        ("CR_Core_Memory",),
    )
    path.write_text('[[partition]]\nname = "hihg"\n')
    with pytest.raises(ConfigError, match="no partition 'hihg'; did you mean 'high'"):
        laid_over(look(texts).config, path)


def test_a_slice_knows_only_its_nodes(texts: Texts) -> None:
    config = look(texts).config
    part = restricted(config, ["n1", "n2"])
    assert [each.name for each in part.node] == ["n1", "n2"]
    assert {each.nodes for each in part.partition} == {"n[1-2]"}
    with pytest.raises(ConfigError, match="no node 'n9'"):
        restricted(config, ["n1", "n9"])


# ---------------------------------------------------------------------------------------- diary
def test_the_diary_tells_what_each_side_did(texts: Texts, policy: Path) -> None:
    """Between two looks Slurm starts job 12 on n1 and requeues job 2; the policy wanted neither."""
    before = look(texts, ours="makeway")
    jobs = []
    for job in before.jobs:
        if job.id == "12":
            job = attrs.evolve(job, state=JobState.RUNNING, nodes=("n1",))
        elif job.id == "2":
            job = attrs.evolve(job, state=JobState.PENDING, restarts=1, nodes=())
        if job.id != "3":
            jobs.append(job)
    after = attrs.evolve(before, jobs=tuple(jobs))
    happened = between(before, after)
    assert happened.started == {"12": "n1"}
    assert happened.displaced == {"2": "requeue"}
    assert happened.ended == ("3",)
    diary = Diary()
    entry = diary.entry(before, advise(before.config, before.state), after)
    assert entry["differ"] == ["12"]
    assert diary.counts["started by slurm alone"] == 1
    assert diary.counts["displaced by slurm"] == 1
    assert diary.counts["started by both"] == 0
    # scontrol says RunTime=00:00:04 NumCPUs=8 of job 2
    assert diary.core_hours == pytest.approx(4 * 8 / 3600)
    assert entry["slurm"]["core_hours_lost"] == round(4 * 8 / 3600, 3)


# ----------------------------------------------------------------------------- name of the lease
LEASED = REQUEUE + '[world.settings]\nreservation = "pilot"\n'


def test_the_lease_has_the_name_that_the_file_gives_it(
    fake_slurm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("makeway_slurm_world.driving.preconditions.getpass.getuser", lambda: "root")
    policy = tmp_path / "policy.toml"
    policy.write_text(LEASED, encoding="utf-8")
    done = _run("drive", str(policy), "--nodes", "n[1-4]", "--dry-run", "--state", str(tmp_path / "state"))
    assert done.exit_code == 0, done.output
    assert "ReservationName=pilot StartTime=now EndTime=now+60" in done.output
    assert "makeway holds n[1-2]" in done.output  # the recorded one is another's then
    assert "ReservationName=makeway" not in done.output
    advice = _run("advise", str(policy))
    assert "reservation makeway holds n[1-2]" in advice.output
    policy.write_text(REQUEUE, encoding="utf-8")
    assert "reservation makeway holds" not in _run("advise", str(policy)).output


def test_a_wrong_setting_is_refused_before_anything_is_asked(fake_slurm: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text(REQUEUE + '[world.settings]\nreservaton = "pilot"\n', encoding="utf-8")
    done = _run("drive", str(policy), "--nodes", "n1", "--state", str(tmp_path / "state"))
    assert done.exit_code == 2
    assert "reservaton" in done.output
    assert "reservation" in done.output
    assert fake_slurm.read_text() == ""


def test_release_finds_the_lease_by_its_notebook(
    fake_slurm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Standing alone, the state directory says which reservation is its own."""
    asked: list[str] = []

    class Back:
        def __init__(self, hand: object, notebook: object, name: str, *_: object, **__: object) -> None:
            asked.append(name)

        def step(self, now: float) -> bool:
            del now
            return True

    monkeypatch.setattr("makeway_slurm_world.commands.release.HandBack", Back)
    Notebook(tmp_path).lease("pilot", "n1")
    assert _run("release", "--state", str(tmp_path)).exit_code == 0
    assert _run("release", "--state", str(tmp_path), "--reservation", "other").exit_code == 0
    assert _run("release", "--state", str(tmp_path / "empty")).exit_code == 0
    assert asked == ["pilot", "other", "makeway"]
