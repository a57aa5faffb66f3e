"""sched_config, what qmgr prints, and the four commands on them (section 6)."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from makeway.errors import ConfigError, Problem
from makeway.foreign import ForeignConfig
from makeway_openpbs_sched.reader import SchedConfigReader

SITE = Path(__file__).parent / "site"
ON = "preemptive_sched: true ALL\n"


@attrs.frozen
class Files:
    """Files of a site, as the core hands them over."""

    texts: Mapping[str, str]
    name: str = "sched_config"

    @property
    def text(self) -> str:
        """All of it."""
        if self.name not in self.texts:
            raise ConfigError(
                self.name, [Problem("", f"cannot be read: No such file or directory: {self.name}")]
            )
        return self.texts[self.name]

    def beside(self, name: str) -> Files:
        """Another file of the same folder."""
        return Files(self.texts, name)


def read(sched_config: str = ON, qmgr: str | None = "") -> ForeignConfig:
    """Read two files; None: there is no second."""
    texts = {"sched_config": sched_config} | ({} if qmgr is None else {"qmgr.txt": qmgr})
    return SchedConfigReader().translate(Files(texts))


def settings(sched_config: str = ON, qmgr: str | None = "") -> dict[str, Any]:
    """Return the plugin's own settings as read."""
    found: dict[str, Any] = read(sched_config, qmgr).tables["policy"]["settings"]["openpbs/sched"]
    return found


# ------------------------------------------------------------------------------ sched_config (6.1)
@pytest.mark.parametrize(
    ("text", "prime", "non_prime"),
    [
        ("preemptive_sched: true ALL", True, None),
        ("preemptive_sched: True", True, None),
        ("preemptive_sched: 1 all", True, None),
        ("preemptive_sched: 0", False, None),
        ("preemptive_sched: true prime\npreemptive_sched: false non_prime", True, False),
        ("preemptive_sched: true PRIME\npreemptive_sched: false NON_PRIME", True, False),
        ("preemptive_sched: false\npreemptive_sched: true", True, None),
        ("  preemptive_sched :  'true'  all", True, None),
        ("preemptive_sched: \\\n true", True, None),
        ("preemptive_sched: true none", False, None),
        ("# preemptive_sched: true", False, None),
        ("* preemptive_sched: true", False, None),
    ],
)
def test_the_switch(text: str, prime: bool, non_prime: bool | None) -> None:
    """Prime words, comments, quotes, continued lines, later lines over earlier ones; off without a line."""
    found = settings(text)
    assert found["preemptive_sched"] is prime
    assert found.get("preemptive_sched_non_prime") is non_prime


def test_no_line_is_off_and_said() -> None:
    """1.2: whatever the shipped file has."""
    assert any("no line preemptive_sched, so preemption is off" in text for text in read("").warnings)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("preemptive_sched: yes", "got 'yes'; allowed: true, false, or a number"),
        ("preemptive_sched: true prim", "'prim' is none of prime, non_prime, all, none"),
        ("preempt_attempts: many", "preempt_attempts: got 'many'; allowed: a whole number"),
        ("max_starve: a while", "max_starve: 'while' is none of prime"),
        ("max_starve: long", "max_starve: got 'long'; allowed: HH:MM:SS"),
    ],
)
def test_wrong_values(line: str, said: str) -> None:
    """With file and line; words that OpenPBS would silently take as true are refused."""
    with pytest.raises(ConfigError) as caught:
        read(f"{ON}{line}\n")
    assert f"sched_config:2: {said}" in str(caught.value) or said in str(caught.value)
    assert "sched_config:2" in str(caught.value)


def test_all_that_is_not_modelled_is_named_in_one_warning() -> None:
    """And what is a slip, a relic or broken is told apart."""
    text = (
        f"{ON}job_sort_key: 'ncpus HIGH' ALL\nnode_sort_key: 'x LOW'\npreempt_starving: true\n"
        "by_queu: true\nnonsense line\n"
    )
    warnings = read(text).warnings
    unmodelled = [each for each in warnings if each.startswith("not modelled")]
    assert unmodelled == [
        "not modelled, no effect here: job_sort_key (sched_config), node_sort_key (sched_config)"
    ]
    assert "sched_config:4: preempt_starving is older than preempt_order and has no effect" in warnings
    assert (
        "sched_config:5: unknown option 'by_queu', skipped as OpenPBS does; did you mean 'by_queue'?"
        in warnings
    )
    assert any("sched_config:6: skipped as OpenPBS does" in each for each in warnings)


# -------------------------------------------------------------------------------- versions (1.1)
OLD = f"{ON}preempt_prio: 'starving_jobs, normal_jobs'\npreempt_order: 'SCR 50 R'\npreempt_queue_prio: 100\n"


@pytest.mark.parametrize("word", ["ALL", "none", "non_prime"])
def test_a_prime_word_is_ignored_where_there_is_no_such_form(word: str) -> None:
    """6.1: preempt_order is no prime option."""
    assert settings(f"{ON}preempt_order: 'R' {word}\n")["preempt_order"] == "R"


def test_parameters_in_sched_config_are_of_19_1() -> None:
    """Effective, and said."""
    found = settings(OLD)
    assert (found["version"], found["preempt_queue_prio"]) == ("19.1", 100)
    assert (found["preempt_prio"], found["preempt_order"]) == ("starving_jobs, normal_jobs", "SCR 50 R")
    assert any(
        "counts only up to 19.1, so the rules of 19.1 are taken" in each for each in read(OLD).warnings
    )


def test_they_are_without_effect_since_20_0() -> None:
    """Where the scheduler's attributes are known; a notice names them."""
    qmgr = 'set sched default preempt_order = "S"\n'
    found = settings(OLD, qmgr)
    assert (found["version"], found["preempt_order"]) == ("22.05", "S")
    assert "preempt_prio" not in found
    assert any("without effect here" in each for each in read(OLD, qmgr).warnings)


# ------------------------------------------------------------------------------------ qmgr (6.2)
@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ('set sched preempt_order = "SCR 80 SC"', "preempt_order", "SCR 80 SC"),
        ("set sched default preempt_order = R", "preempt_order", "R"),
        ("set sched preempt_queue_prio = 120", "preempt_queue_prio", 120),
        ("set sched preempt_targets_enable = False", "preempt_targets_enable", False),
        ("unset sched preempt_sort", "preempt_sort", ""),
        ("set server backfill_depth = 0", "backfill_depth", 0),
        ('set server max_run = "[u:PBS_GENERIC=2]"', "server", {"max_run": "[u:PBS_GENERIC=2]"}),
        (
            "set server restrict_res_to_release_on_suspend = ncpus\n"
            "set server restrict_res_to_release_on_suspend += mem",
            "restrict_res_to_release_on_suspend",
            ["ncpus", "mem"],
        ),
        (
            "set server restrict_res_to_release_on_suspend = ncpus,mem\n"
            "set server restrict_res_to_release_on_suspend -= mem",
            "restrict_res_to_release_on_suspend",
            ["ncpus"],
        ),
    ],
)
def test_what_qmgr_prints(line: str, key: str, value: object) -> None:
    """With and without the scheduler's name, quoted or not, and by steps."""
    assert settings(ON, line)[key] == value


def test_other_schedulers_are_named() -> None:
    """Only the default one is modelled."""
    found = read(ON, "create sched night\nset sched night preempt_order = R\n")
    assert "not modelled, no effect here: scheduler night (qmgr.txt)" in found.warnings
    assert "preempt_order" not in found.tables["policy"]["settings"]["openpbs/sched"]


def test_queues_and_vnodes() -> None:
    """Types, Priority, limits, walltimes, default queue; states, memory, counted resources, bound vnodes."""
    tables = read(
        ON,
        """
        create queue r
        set queue r queue_type = Route
        create queue workq
        set queue workq queue_type = Execution
        set queue workq Priority = -5
        set queue workq resources_max.walltime = 24:00:00
        create queue big
        set queue big max_run_res_soft.ncpus = [u:PBS_GENERIC=8]
        set server default_queue = big
        create node n1
        set node n1 resources_available.ncpus = 4
        set node n1 resources_available.mem = 8gb
        set node n1 resources_available.ngpus = 2
        create node n2
        set node n2 state = offline,down
        set node n2 queue = big
        """,
    ).tables
    assert tables["node"] == [
        {"name": "n1", "cpus": 4, "memory_mb": 8192, "gres": {"ngpus": 2}},
        {"name": "n2", "cpus": 1, "up": False},
    ]
    assert tables["partition"] == [
        {"name": "workq", "nodes": "n1", "max_time": 86400.0, "attributes": {"Priority": -5}},
        {
            "name": "big",
            "nodes": "n2",
            "default": True,
            "attributes": {"max_run_res_soft.ncpus": "[u:PBS_GENERIC=8]"},
        },
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("set queue q Priority = high", "qmgr.txt:1: Priority: got 'high'; allowed: a whole number"),
        ("set sched preempt_queue_prio = x", "qmgr.txt:1: preempt_queue_prio: got 'x'"),
        ("set sched preempt_targets_enable = maybe", "qmgr.txt:1: preempt_targets_enable: got 'maybe'"),
        ("frobnicate", "qmgr.txt:1: got 'frobnicate'; allowed: lines as qmgr prints them"),
    ],
)
def test_wrong_lines_of_qmgr(line: str, said: str) -> None:
    """With file and line."""
    with pytest.raises(ConfigError) as caught:
        read(ON, line)
    assert said in str(caught.value)


def test_without_qmgr_it_says_what_is_unknown() -> None:
    """A queue workq, and no vnodes."""
    found = read(ON, None)
    assert found.tables["partition"] == [{"name": "workq", "default": True}]
    assert "node" not in found.tables
    assert any("there is no qmgr.txt beside sched_config" in each for each in found.warnings)


@pytest.mark.parametrize(
    ("text", "scheduler"),
    [("", "greedy"), ("strict_ordering: true ALL\n", "easy"), ("strict_ordering: false\n", "greedy")],
)
def test_strict_ordering(text: str, scheduler: str) -> None:
    """With backfilling it is EASY, without it strict order."""
    assert read(ON + text).tables["scheduler"]["type"] == scheduler
    none = read(ON + "strict_ordering: true\n", "set server backfill_depth = 0\n")
    assert none.tables["scheduler"]["type"] == "builtin"


@pytest.mark.parametrize(
    ("name", "head", "claimed"),
    [
        ("sched_config", "", True),
        ("old.conf", "# x\npreemptive_sched: true ALL\n", True),
        ("slurm.conf", "PreemptType=preempt/qos\n", False),
        ("moab.cfg", "PREEMPTPOLICY REQUEUE\n", False),
    ],
)
def test_what_is_claimed(name: str, head: str, claimed: bool) -> None:
    """By name, or by an option that no other file has."""
    assert SchedConfigReader().claims(name, head) is claimed


# ------------------------------------------------------------------------------- the commands
def makeway(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the console command."""
    command = [sys.executable, "-m", "makeway", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a folder with a site's files."""
    shutil.copytree(SITE, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_import_writes_what_replays_the_same(site: Path) -> None:
    """The TOML and the site's own files come to one result."""
    done = makeway(site, "import", "sched_config", "-o", "site.toml")
    assert done.returncode == 0, done.stderr
    written = tomllib.loads((site / "site.toml").read_text())
    assert written["policy"]["settings"]["openpbs/sched"]["preempt_order"] == "SR 50 S"
    own = makeway(site, "replay", "sched_config", "jobs.toml")
    toml = makeway(site, "replay", "site.toml", "jobs.toml")
    assert own.returncode == toml.returncode == 0, own.stderr + toml.stderr
    assert own.stdout == toml.stdout
    assert re.search(r"^express +workq +suspend +2$", own.stdout, re.MULTILINE)


def test_check_names_lines(site: Path) -> None:
    """What is odd in qmgr.txt is reported with its line, and Slurm's checks are left out."""
    with (site / "qmgr.txt").open("a") as file:
        file.write('set sched default preempt_order = "SR 50"\nset queue express Priority = 1010\n')
    done = makeway(site, "check", "sched_config")
    assert done.returncode == 0, done.stdout
    last = len((site / "qmgr.txt").read_text().splitlines())
    assert f"warning: qmgr.txt:{last - 1}: it ends in a percent: jobs with 50 % or less" in done.stdout
    assert "Priority 1010 lifts the jobs of express above the level before" in done.stdout
    assert "slurm" not in done.stdout


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            'set sched preempt_order = "SCR SC"',
            "qmgr.txt:{}: preempt_order: got 'SC' in 'SCR SC'; allowed here",
        ),
        (
            'set sched preempt_prio = "nrmal_jobs"',
            "qmgr.txt:{}: preempt_prio: got 'nrmal_jobs'; allowed: express_queue",
        ),
        ("set queue express max_run = 4", "qmgr.txt:{}: max_run: got '4'; allowed: [u:NAME=n]"),
        ("set queue express Priority = 2000", "got 2000; allowed: a whole number from -1024 to 1023"),
        ("set server restrict_res_to_release_on_suspend = ncpsu", "no resource 'ncpsu'; allowed: "),
    ],
)
@pytest.mark.parametrize("command", ["check", "replay"])
def test_what_is_wrong_is_one_clear_error(site: Path, command: str, line: str, said: str) -> None:
    """On each command; no traceback."""
    with (site / "qmgr.txt").open("a") as file:
        file.write(f"{line}\n")
    words = ["replay", "sched_config", "jobs.toml"] if command == "replay" else ["check", "sched_config"]
    done = makeway(site, *words)
    assert done.returncode != 0
    said = said.format(len((site / "qmgr.txt").read_text().splitlines()))
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_explain_says_why_victims_could_not_make_way(tmp_path: Path) -> None:
    """Scenario S12: both are told, one after the other."""
    (tmp_path / "site.toml").write_text(
        """
        node = [{ name = "n1", cpus = 2 }]
        partition = [{ name = "workq", default = true }, { name = "express", attributes = { Priority = 200 } }]
        job = [
          { id = "J1", cpus = 1, run_time = 100, requeue = false },
          { id = "J2", submit = 2, cpus = 1, run_time = 100, requeue = false },
          { id = "E1", partition = "express", submit = 5, cpus = 1, run_time = 10 },
        ]
        scheduler = { type = "greedy" }
        [policy]
        select = "openpbs/vnodes"
        preempt = "openpbs/sched"
        preempt_mode = ["suspend"]
        settings."openpbs/sched".preempt_order = "CR"
        """
    )
    done = makeway(tmp_path, "explain", "site.toml", "--job", "E1")
    why = "C refused: there is no checkpoint_abort script; R refused: Rerunable = n; preempt_order CR"
    said = done.stdout.partition("which it told to make way in vain\n")[2].splitlines()[:2]
    assert said == [f"  5 s: job {victim} (queue workq): {why}" for victim in ("J2", "J1")]


def test_check_knows_the_attributes_of_queues(tmp_path: Path) -> None:
    """One that is spelled otherwise would be without effect."""
    (tmp_path / "site.toml").write_text(
        """
        node = [{ name = "n1", cpus = 2 }]
        partition = [{ name = "express", default = true, attributes = { priority = 200 } }]
        policy = { select = "openpbs/vnodes", preempt = "openpbs/sched", preempt_mode = ["suspend"] }
        """
    )
    done = makeway(tmp_path, "check", "site.toml")
    message = "priority: no such attribute is modelled; did you mean 'Priority'?"
    assert f"warning: partition[0].attributes: {message}" in done.stdout


def test_explain_goes_through_the_list(site: Path) -> None:
    """Why a normal job waits: every running job is at its level."""
    (site / "wait.toml").write_text(
        """
        job = [
          { id = "1", user = "a", partition = "workq", cpus = 4, run_time = 1000, time_limit = 2000 },
          { id = "2", user = "b", partition = "workq", submit = 5, cpus = 4, run_time = 10, time_limit = 20 },
        ]
        """
    )
    done = makeway(site, "explain", "sched_config", "wait.toml", "--job", "2")
    assert done.returncode == 0, done.stderr
    assert "B03 pass" in done.stdout
    assert "98000 (normal_jobs); those who run have 98000 to 98000" in done.stdout
    assert "B04 fail    does any job of lower value run? 0 of 1" in done.stdout
    assert "its preemption value is 98000 (normal_jobs), and no running job is beneath" in done.stdout


# --------------------------------------------------------------------------------------- TORQUE's
TORQUE = """
round_robin: False\tall
by_queue: True\t\tprime
by_queue: True\t\tnon_prime
strict_fifo: false\tALL
fair_share: false\tALL
help_starving_jobs\ttrue\tALL
sort_queues\ttrue\tALL
load_balancing: false\tALL
sort_by: shortest_job_first\tALL
log_filter: 256
dedicated_prefix: ded
max_starve: 24:00:00
half_life: 24:00:00
unknown_shares: 10
sync_time: 1:00:00
"""


def test_a_file_of_torques_is_told_in_one_sentence() -> None:
    """Its scheduler never preempts, and most of its options are not OpenPBS's."""
    found = read(TORQUE, None)
    (warning,) = found.warnings
    assert warning.startswith("sched_config is TORQUE's, whose pbs_sched never preempts")
    assert found.tables["policy"]["settings"]["openpbs/sched"]["preemptive_sched"] is False


def test_a_file_of_openpbs_is_not_taken_for_torques() -> None:
    """One option that TORQUE never had will do."""
    assert not any("TORQUE" in text for text in read(f"{TORQUE}{ON}", None).warnings)
