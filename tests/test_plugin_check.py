"""Plugins on disk that misbehave, one way each: `makeway plugins --check` and a replay say which, what and where."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
from click.testing import CliRunner

from makeway import registry
from makeway_app.cli import cli

IMPORTS = """\
import attrs
from makeway.foreign import Dialect; from makeway.hookspecs import hookimpl
from makeway.model import *

"""
NAME = "x/fake"
CONFIG = """
node = [{ name = "n1" }]
partition = [{ name = "low", default = true }, { name = "high", priority_tier = 2 }]
job = [
  { id = "a", run_time = 100.0 },
  { id = "b", run_time = 10.0, submit = 5.0, partition = "high" },
]
[policy]
"""


@attrs.frozen
class Done:
    """What a command came to."""

    status: int
    out: str
    err: str


def run(*arguments: str | Path) -> Done:
    """Run a command as people type it; anything that is not caught fails the test."""
    done = CliRunner().invoke(cli, list(map(str, arguments)), prog_name="makeway", catch_exceptions=False)
    return Done(done.exit_code, done.stdout, done.stderr)


Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return a function that puts a distribution with a plugin on the path."""

    def install_it(
        source: str,
        distribution: str = "makeway-x-fake",
        module: str = "makeway_x_fake",
        requires: str = "makeway>=0.1,<0.2",
        name: str = NAME,
    ) -> Path:
        folder = tmp_path / distribution
        info = folder / f"{distribution.replace('-', '_')}-1.5.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.5\nRequires-Dist: {requires}\n"
        )
        (info / "entry_points.txt").write_text(f"[makeway]\n{name} = {module}\n")
        (folder / f"{module}.py").write_text(source)
        monkeypatch.syspath_prepend(folder)
        monkeypatch.delitem(sys.modules, module, raising=False)
        return folder

    return install_it


def hook(signature: str, *body: str) -> str:
    """Return the source of a plugin with one hook."""
    lines = "".join(f"    {line}\n" for line in body)
    return f"{IMPORTS}@hookimpl\ndef makeway_{signature}:\n{lines}"


def order(body: str) -> str:
    """Return the source of a plugin that orders the queue."""
    kind = f"class Order(QueueOrder):\n    def sort(self, pending, view):\n        {body}\n"
    return f"{IMPORTS}{kind}@hookimpl\ndef makeway_queue(): return Order()\n"


CANDIDATES = "preempt_candidates(preemptor, active)"
LOWER = "jobs = tuple(j for j in active if j.partition.priority_tier < preemptor.partition.priority_tier)"
SELECTOR = f"""{IMPORTS}
class Selector:
    def placed(self, job): pass
    released = suspended = resumed = placed
    def screen(self, jobs, nodes): return jobs
    def possible(self, job, view): return None
    def forecast(self, job, nodes, view, removable): return None
    def attempt(self, job, nodes, view): return Attempt(job, nodes, view)

class Attempt:
    def __init__(self, job, nodes, view):
        self.job, self.nodes, self.view = job, nodes, view
    def remove(self, job, mode): pass
    def fresh(self): return self
    def cover(self, jobs, modes): return None
    def probe(self):
        BODY

def on(*indices):
    return Placement(allocation=Allocation(nodes=sum(1 << i for i in indices), node_indices=indices))

@hookimpl
def makeway_selector():
    return Selector()
"""
SETTINGS = f"""{IMPORTS}
@attrs.frozen
class Settings:
    patience: float
@hookimpl
def makeway_settings():
    return Settings
"""


def plan(how: str) -> str:
    """Return the source of a policy that plans badly."""
    return hook(
        CANDIDATES, LOWER, "return Candidates(jobs=jobs, modes=(PreemptMode.CANCEL,) * len(jobs))"
    ) + (f"@hookimpl\ndef makeway_preempt_action(victims):\n    return {how}\n")


FAULTS = {
    # ---- loading
    "import error": (
        "import no_such_module\n",
        "cannot be imported: ModuleNotFoundError: No module named 'no_such_module' "
        "(makeway-x-fake/makeway_x_fake.py, line 1)",
    ),
    "syntax error": ("def (:\n", "cannot be imported: SyntaxError: invalid syntax"),
    "ends the program": ("raise SystemExit(3)\n", "cannot be imported: SystemExit: 3"),
    "import without end": (
        "while True:\n    pass\n",
        "cannot be imported: did not end within 0.2 s (makeway-x-fake/makeway_x_fake.py, line ",
    ),
    "declares another contract": (
        IMPORTS + "__makeway_contract__ = '>=0.7'\n",
        "is written for contract >=0.7, but this is makeway 0.1.0 with contract 0.1",
    ),
    "misspelt hook": (
        hook("preempt_candidate(active)", "return None"),
        "unknown hook 'makeway_preempt_candidate'; did you mean 'makeway_preempt_candidates'?",
    ),
    "hook without its prefix": (
        IMPORTS + "@hookimpl\ndef protect(candidates):\n    return None\n",
        "unknown hook 'protect'; did you mean 'makeway_protect'?",
    ),
    "misspelt argument": (
        hook("protect(candidate)", "return None"),
        "hook makeway_protect: unknown argument 'candidate'; allowed: preemptor, candidates, view, now; "
        "did you mean 'candidates'?",
    ),
    "unmarked hook": (
        IMPORTS + "def makeway_protect(candidates):\n    return None\n",
        "hook makeway_protect: it is not marked with @hookimpl",
    ),
    "wrapper": (
        IMPORTS + "@hookimpl(wrapper=True)\ndef makeway_protect():\n    return (yield)\n",
        "hook makeway_protect: wrappers of other plugins' answers are not part of the contract",
    ),
    "no hook": ("x = 1\n", "it implements no hook"),
    "class": (
        IMPORTS + "class Policy:\n    @hookimpl\n    def makeway_protect(self, candidates): pass\n"
        "import sys\nsys.modules[__name__] = Policy\n",
        "hook makeway_protect: it is a method that no object is there for",
    ),
    "two misfits": (
        hook("protect(candidate)", "return None") + "@hookimpl\ndef makeway_serch(attempt):\n    pass\n",
        "does not fit the contract: 2 problems: ",
    ),
    "settings without a default": (SETTINGS, "settings without a default: patience"),
    "settings without a type": (
        SETTINGS.replace("patience: float", "patience = attrs.field(default=3)"),
        "settings without a type: patience",
    ),
    "a default of another type": (
        SETTINGS.replace("patience: float", "patience: float = 'long'"),
        "hook makeway_settings: the default of patience: got 'long'; allowed: a number",
    ),
    "settings of another kind": (hook("settings()", "return dict"), "the settings class is no attrs class"),
    "a generator": (
        hook(CANDIDATES, "yield 1"),
        "returned <generator object makeway_preempt_candidates>; allowed: Candidates",
    ),
    # ---- exceptions
    "exception": (
        hook(CANDIDATES, "return active[99]"),
        "hook makeway_preempt_candidates for job 4: raised IndexError: tuple index out of range "
        "(makeway-x-fake/makeway_x_fake.py, line 7, in makeway_preempt_candidates)",
    ),
    "exception in a method": (
        SELECTOR.replace("return jobs", "raise KeyError('x')").replace("BODY", "return Blocked()"),
        "hook makeway_selector: its screen() raised KeyError: 'x' "
        "(makeway-x-fake/makeway_x_fake.py, line 9, in screen)",
    ),
    "exception in a probe": (
        SELECTOR.replace("BODY", "return 1 / 0"),
        "hook makeway_selector for job 1: raised ZeroDivisionError: division by zero",
    ),
    "exit in a hook": (
        hook(CANDIDATES, "raise SystemExit(0)"),
        "hook makeway_preempt_candidates for job 4: raised SystemExit: 0 (makeway-x-fake/makeway_x_fake.py, line 7",
    ),
    # ---- endless loops
    "slow": (
        "from time import thread_time\n"
        + hook(
            CANDIDATES,
            "end = thread_time() + 0.02",
            "while thread_time() < end: pass",
            LOWER,
            "return Candidates(jobs=jobs, modes=(PreemptMode.CANCEL,) * len(jobs))",
        ),
        "ms a call; a replay asks for each job that waits, in each pass, so the check ends here",
    ),
    "endless loop": (
        hook(CANDIDATES, "while True: pass"),
        "hook makeway_preempt_candidates for job 4: did not end within 0.2 s (makeway-x-fake/makeway_x_fake.py, ",
    ),
    "endless loop that catches all": (
        hook(CANDIDATES, "while True:", "    try:", "        len(active)", "    except:", "        pass"),
        "hook makeway_preempt_candidates for job 4: did not end within 0.2 s",
    ),
    "endless loop in a method": (
        SELECTOR.replace("BODY", "while True: pass"),
        "hook makeway_selector for job 1: its probe() did not end within 0.2 s",
    ),
    # ---- wrong answers
    "wrong type": (
        hook(CANDIDATES, "return list(active)"),
        "hook makeway_preempt_candidates for job 4: returned [job 1, job 2, job 3]; allowed: Candidates",
    ),
    "candidate twice": (
        hook(CANDIDATES, "m = PreemptMode.CANCEL", "return Candidates(jobs=(active[0],) * 2, modes=(m, m))"),
        "hook makeway_preempt_candidates for job 4: named job 1 twice",
    ),
    "victim not offered": (
        hook(CANDIDATES, "return Candidates(jobs=(preemptor,), modes=(PreemptMode.CANCEL,))"),
        "hook makeway_preempt_candidates for job 4: named job 4, which is not among the active jobs",
    ),
    "candidates from a generator": (
        hook(CANDIDATES, "return Candidates(jobs=(job for job in active), modes=())"),
        "as jobs; allowed: a tuple",
    ),
    "mode in words": (
        hook(CANDIDATES, "return Candidates(jobs=active[:1], modes=('cancel',))"),
        "named the mode 'cancel'; allowed: a PreemptMode",
    ),
    "depends on earlier calls": (
        IMPORTS
        + "calls = []\n"
        + hook(
            "preempt_candidates(active)",
            "calls.append(1)",
            "jobs = active[:1] if len(calls) % 2 else ()",
            "return Candidates(jobs=jobs, modes=(PreemptMode.CANCEL,) * len(jobs))",
        ),
        "hook makeway_preempt_candidates for job 4: answers the same question in another way when asked again",
    ),
    "protects objects": (
        hook("protect(candidates)", "return {job: 'dear' for job in candidates}"),
        "allowed: job id -> reason",
    ),
    "queue order loses a job": (
        order("return pending[1:]"),
        "hook makeway_queue: its order leaves jobs out, adds some, or repeats them",
    ),
    "victim chosen twice": (
        hook(
            "search(attempt, candidates)",
            "attempt.remove(candidates.jobs[0], candidates.modes[0])",
            "return Choice(placement=Placement(allocation=Allocation(nodes=1, node_indices=(0,))), victims=(0, 0))",
        ),
        "chose a candidate twice",
    ),
    "plan for another job": (
        plan("[Plan(job=attrs.evolve(job), mode=PreemptMode.CANCEL) for job in victims]"),
        "its plans are not one per victim, in order",
    ),
    "plan without a mode": (
        plan("[Plan(job=job, mode='cancel') for job in victims]"),
        "planned the mode 'cancel'; allowed: a PreemptMode",
    ),
    "node outside the partition": (
        SELECTOR.replace("BODY", "return on(*range(4 - self.job.size, 4))"),
        "placed it on n4, outside partition mid",
    ),
    "too few nodes": (SELECTOR.replace("BODY", "return on(0)"), "placed it on 1 nodes; it needs "),
    "overlapping cores": (
        SELECTOR.replace("BODY", "return on(*range(self.job.size))"),
        "hook makeway_selector for job 2: gave it cores of n1 that job 1 holds",
    ),
    "reader of workloads that cannot read": (
        IMPORTS + "class Reader:\n    name = 'mine'\n    def claims(self, name, head): return False\n"
        "@hookimpl\ndef makeway_dialect():\n    return Dialect(workloads=[Reader()])\n",
        "hook makeway_dialect: the reader 'mine' has no method read or translate",
    ),
    "claims fails": (
        IMPORTS + "class Reader:\n    name = 'mine'\n    def claims(self, name, head): return name.stem\n"
        "    def recorded(self, source): pass\n"
        "@hookimpl\ndef makeway_dialect():\n    return Dialect(recordings=[Reader()])\n",
        "hook makeway_dialect: claims() of the reader 'mine' raised AttributeError: 'str' object has no "
        "attribute 'stem' (makeway-x-fake/makeway_x_fake.py, line 7, in claims)",
    ),
    "claims all files": (
        IMPORTS + "class Reader:\n    name = 'all'\n    def claims(self, name, head): return True\n"
        "    def translate(self, source): pass\n"
        "@hookimpl\ndef makeway_dialect():\n    return Dialect(configs=[Reader()])\n",
        "hook makeway_dialect: the reader 'all' claims a file of a kind that none knows",
    ),
}
"""Phrase -> a plugin's source, and a part of what is said about it.

In the scenes jobs 1, 2 and 3 fill all four nodes, so that job 4 is the first one that does not fit.
"""


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_check_finds(fault: str, install: Install) -> None:
    """Without a replay, with the distribution and its version, without a traceback."""
    source, message = FAULTS[fault]
    install(source)
    limit = "0.2" if "end" in fault else "20"  # seconds; a busy machine must not look like an endless loop
    if fault == "slow":
        limit = "1"  # for all that one decision asks; four times that are too long in all
    done = run("plugins", "--check", NAME, "--decision-time-limit", limit)
    assert done.status == 1
    assert message in done.err
    told = [line for line in done.err.splitlines() if line.startswith("makeway: ")]
    assert told
    assert [line for line in told if "plugin 'x/fake' of makeway-x-fake 1.5" not in line] == []
    assert "Traceback" not in done.err
    assert "no fault found" not in done.out


def test_check_finds_a_name_offered_twice(install: Install) -> None:
    """Both are named with their versions."""
    good = hook("protect()", "return None")
    install(good)
    install(good, distribution="makeway-two", module="makeway_two")
    done = run("plugins", "--check", NAME)
    assert done.status == 1
    assert "two distributions offer a plugin named 'x/fake': makeway-two 1.5, makeway-x-fake 1.5" in done.err


def test_check_finds_a_plugin_for_another_contract(install: Install) -> None:
    """By what its distribution requires; it is not even imported."""
    install("raise RuntimeError('imported')", requires="makeway<0.9,>=0.3")
    done = run("plugins", "--check", NAME)
    assert done.status == 1
    assert (
        "plugin 'x/fake' of makeway-x-fake 1.5 requires makeway >=0.3,<0.9, but this is makeway 0.1.0"
        in done.err
    )


@pytest.mark.slow
@pytest.mark.parametrize("requires", ["makeway", "makeway~=0.1.0", "makeway>=0.1a1", "makeway; extra == 'x'"])
def test_other_requirements_are_met(requires: str, install: Install) -> None:
    """Any, compatible ones, and those of an extra."""
    install(hook("protect()", "return None"), requires=requires)
    assert run("plugins", "--check", NAME).status == 0


def test_check_of_an_unknown_name() -> None:
    """What there is, and the nearest."""
    done = run("plugins", "--check", "preempt/non")
    assert done.status == 2
    assert "no plugin named 'preempt/non'; did you mean 'preempt/none'?" in done.err
    assert "; installed: " in done.err


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({each.name for each in registry.installed()}))
def test_our_own_plugins_have_no_fault(name: str) -> None:
    """All that is installed with the developers' tools."""
    done = run("plugins", "--check", name)
    assert (done.status, done.err) == (0, "")
    assert f"{name}: no fault found" in done.out


@pytest.mark.slow
def test_check_says_what_was_not_called_for(install: Install) -> None:
    """So that silence is not taken for proof; and settings come from a configuration."""
    install(hook("dialect()", "return None") + "@hookimpl\ndef makeway_world():\n    return None\n")
    done = run("plugins", "--check", NAME, "--json")
    entry = json.loads(done.out)[0]
    assert entry["faults"] == []
    assert (entry["distribution"], entry["version"]) == ("makeway-x-fake", "1.5")
    assert entry["hooks"] == {"makeway_dialect": 1, "makeway_world": 0}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "untested"),
    [("raise KeyError('x')", False), ("return None", True)],
    ids=["it raises each time", "it names no job"],
)
def test_a_hook_that_raises_was_put_to_the_test(line: str, untested: bool, install: Install) -> None:
    """The fault says so; that it was never called would be false."""
    install(hook(CANDIDATES, line))
    done = run("plugins", "--check", NAME)
    assert ("makeway_preempt_candidates" in done.out.partition("not put to the test")[2]) is untested
    assert ("raised KeyError" in done.err) is not untested


# ----------------------------------------------------------------------------------- in a replay
@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Return a configuration that uses the plugin."""
    path = tmp_path / "cluster.toml"
    path.write_text(CONFIG + f'preempt = "{NAME}"\npreempt_mode = ["requeue"]\n')
    return path


SLOW = hook(CANDIDATES, "for each in range(10 ** 12):", "    each * each")


@pytest.mark.parametrize("how", ["flag", "key", "explain"])
def test_an_endless_decision_ends(how: str, install: Install, config: Path) -> None:
    """The flag and the key set the limit; the message names plugin, distribution, hook and job."""
    install(SLOW)
    by = {
        "flag": ("replay", config, "--decision-time-limit", "0.2"),
        "key": ("replay", config, "--set", "policy.decision_time_limit=0.2"),
        "explain": ("explain", config, "--job", "b", "--decision-time-limit", "0.2"),
    }
    done = run(*by[how])
    assert done.status == 1
    assert done.err.startswith(
        "makeway: plugin 'x/fake' of makeway-x-fake 1.5, hook makeway_preempt_candidates for job b: "
        "did not end within 0.2 s (makeway-x-fake/makeway_x_fake.py, line "
    )


def test_a_limit_changes_no_answer(install: Install, config: Path) -> None:
    """With a limit, and without one, the same comes out; the limit is off unless asked for."""
    install(hook(CANDIDATES, LOWER, "return Candidates(jobs=jobs, modes=(PreemptMode.REQUEUE,) * len(jobs))"))
    plain = run("replay", config)
    assert plain.status == 0
    assert run("replay", config, "--decision-time-limit", "5") == plain


def test_many_short_decisions_are_no_long_one(install: Install, config: Path) -> None:
    """What counts is one call, not how long they take together: a fiftieth of the limit, and more than the limit."""
    install("import time\n" + order("time.sleep(0.06)"))
    text = config.read_text().replace(f'preempt = "{NAME}"', f'plugins = ["{NAME}"]')
    text = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("preempt_mode"))
    jobs = "\n".join(f"[[job]]\nid = 'x{at}'\nsubmit = {at}.5\nrun_time = 3.0" for at in range(60))
    head, _, policy = text.partition("[policy]")
    start = head.index("job = [")
    config.write_text(head[:start] + "[policy]" + policy + jobs)
    done = run("replay", config, "--decision-time-limit", "3")
    assert (done.status, done.err) == (0, "")


@pytest.mark.parametrize("value", ["-1", "nan", "100000"])
def test_a_limit_that_is_none(value: str, config: Path, install: Install) -> None:
    """Said where it stands."""
    install(SLOW)
    done = run("replay", config, "--set", f"policy.decision_time_limit={value}")
    assert done.status == 2
    assert "policy.decision_time_limit" in done.err


# ------------------------------------------------------------------------------------ loose files
@pytest.fixture
def loose(tmp_path: Path) -> Path:
    """Return a file with a policy: lower tiers are cancelled."""
    path = tmp_path / "mine.py"
    cancel = "return Candidates(jobs=jobs, modes=(PreemptMode.CANCEL,) * len(jobs))"
    path.write_text(hook(CANDIDATES, LOWER, cancel))
    return path


@pytest.mark.slow
def test_a_file_is_a_plugin(loose: Path, config: Path) -> None:
    """Without installation: a replay, an explanation and a check."""
    given = ("--plugin", f"{NAME}={loose}")
    done = run("replay", config, *given, "--json", "-")
    assert done.status == 0
    assert [(each["victim"], each["mode"]) for each in json.loads(done.out)["preemptions"]] == [
        ("a", "cancel")
    ]
    assert "job a (partition low) by cancel" in run("explain", config, "--job", "b", *given).out
    done = run("plugins", "--check", NAME, *given)
    assert (done.status, done.err) == (0, "")
    assert "plugin 'x/fake', not installed" in done.out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("import no_such_module", "cannot be imported: ModuleNotFoundError", id="import error"),
        pytest.param("def makeway_protect(): pass", "it is not marked with @hookimpl", id="unmarked"),
        pytest.param("__makeway_contract__ = '>=7'", "is written for contract >=7", id="another contract"),
        pytest.param(None, "no such file", id="no file"),
    ],
)
def test_a_file_that_is_no_plugin(text: str | None, message: str, loose: Path, config: Path) -> None:
    """The name, the file and the cause, in a replay as in a check."""
    if text is None:
        loose.unlink()
    else:
        loose.write_text(f"{text}\n")
    for command in (("replay", config), ("plugins", "--check", NAME)):
        done = run(*command, "--plugin", f"{NAME}={loose}")
        assert done.status in (1, 2)
        assert f"plugin {NAME!r}" in done.err
        assert message in done.err


@pytest.mark.parametrize("value", ["mine.py", "=mine.py", "x/fake="])
def test_a_file_without_a_name(value: str, config: Path) -> None:
    """What is allowed."""
    done = run("replay", config, "--plugin", value)
    assert done.status == 2
    assert "allowed: NAME=FILE" in done.err
