"""Plugins that misbehave: each one clear error that names plugin, hook and job."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from makeway import bitmap
from makeway.errors import ConfigError, PluginError, PolicyError
from makeway.hookspecs import alike_by, hookimpl
from makeway.model import (
    Allocation,
    Blocked,
    Candidates,
    Choice,
    Commands,
    GangOrder,
    GangVerb,
    Job,
    Limits,
    Placement,
    Plan,
    PreemptMode,
    QueueOrder,
)
from makeway_testing import TableRun, cluster, replay_table, tiers

JOBS = """
    job   partition  submit  nodes  run_time
    low   low             0      1       100
    next  low             0      1       100
    high  hi             10      1        20
"""
BASE: dict[str, Any] = {"scheduler": "builtin", "partitions": tiers(low=1, hi=2)}
PREEMPTING = BASE | {"preempt": "preempt/partition_prio", "preempt_mode": "requeue"}
NAME = "x/bad"


def answering(hook: str, answer: Callable[..., Any]) -> Any:
    """Return a plugin whose `hook` is `answer`, which names the arguments it wants."""
    return type("Bad", (), {hook: staticmethod(hookimpl(answer))})()


def play(plugin: Any, config: Mapping[str, Any], jobs: str = JOBS, **more: Any) -> TableRun:
    """Replay with the plugin in place; `config` names it."""
    return replay_table(jobs, config=config, plugins={NAME: plugin}, **more)


def blamed(hook: str, answer: Callable[..., Any], config: Mapping[str, Any]) -> PolicyError:
    """Return the one error that comes of it."""
    with pytest.raises(PolicyError) as caught:
        play(answering(hook, answer), config)
    assert caught.value.plugin == NAME
    assert caught.value.hook == hook
    assert f"plugin {NAME!r}, hook {hook}" in str(caught.value)
    return caught.value


def boom() -> Any:
    """Fail."""
    raise RuntimeError("out of ideas")


USED_AS: dict[str, dict[str, Any]] = {
    "makeway_selector": BASE | {"select": NAME},
    "makeway_gang": BASE | {"gang": NAME},
    "makeway_priority": BASE | {"priority": NAME},
    "makeway_queue": BASE | {"plugins": [NAME]},
    "makeway_limits": BASE | {"plugins": [NAME]},
    "makeway_preempt_candidates": BASE | {"preempt": NAME, "preempt_mode": "requeue"},
    "makeway_preempt_mode": PREEMPTING
    | {"plugins": [NAME], "preempt": "x/first", "preempt_mode": "requeue,gang"},
    "makeway_protect": PREEMPTING | {"protect": [NAME]},
    "makeway_search": PREEMPTING | {"search": NAME},
    "makeway_preempt_action": PREEMPTING | {"plugins": [NAME], "preempt": "x/first"},
    "makeway_commands": BASE | {"plugins": [NAME]},
}
"""Hook -> a configuration in which the plugin is asked."""
ABOUT = {
    "makeway_preempt_candidates": "next",
    "makeway_protect": "high",
    "makeway_search": "high",
    "makeway_preempt_action": "high",
}
"""Hooks that are about one job, and which it is here."""


def first() -> Any:
    """Return a plugin that lets any job preempt any other but has no opinion on how."""

    def candidates(preemptor: Job, active: Sequence[Job]) -> Candidates:
        mine = preemptor.partition.priority_tier
        jobs = tuple(job for job in active if job.partition.priority_tier < mine)
        return Candidates(jobs=jobs, modes=(PreemptMode.REQUEUE,) * len(jobs))

    return answering("makeway_preempt_candidates", candidates)


def asked(hook: str, answer: Callable[..., Any]) -> PolicyError:
    """Replay with `hook` answered by `answer`, in a configuration in which it is asked."""
    jobs = JOBS
    if hook == "makeway_preempt_mode":
        # Only gang asks: a low job that starts under a shadow.
        partitions = {
            "low": {"oversubscribe": "FORCE:2"},
            "hi": {"oversubscribe": "FORCE:2", "priority_tier": 2},
        }
        config = USED_AS[hook] | {"partitions": partitions}
        jobs = """
            job   partition  submit  nodes  run_time
            high  hi              0      1       100
            low   low            10      1       100
        """
    else:
        config = USED_AS[hook]
    plugin = answering(hook, answer)
    with pytest.raises(PolicyError) as caught:
        replay_table(
            jobs,
            config=config,
            plugins={NAME: plugin, "x/first": first()},
            commands="5 suspend low" if hook == "makeway_commands" else "",
        )
    assert (caught.value.plugin, caught.value.hook) == (NAME, hook)
    return caught.value


@pytest.mark.parametrize("hook", USED_AS)
def test_a_plugin_that_raises(hook: str) -> None:
    """The run ends; the error says what was raised, and about which job."""
    error = asked(hook, boom)
    assert "raised RuntimeError: out of ideas" in error.message
    assert error.job == ABOUT.get(hook)
    assert isinstance(error.__cause__, RuntimeError)


@pytest.mark.parametrize(
    "nonsense",
    [7, object(), [object()], {"low": 7}],
    ids=["a number", "an object", "a list", "a table"],
)
@pytest.mark.parametrize("hook", USED_AS)
def test_a_plugin_that_answers_nonsense(hook: str, nonsense: object) -> None:
    """Whatever it is, the plugin is blamed, never makeway."""
    error = asked(hook, lambda: nonsense)
    assert error.job == ABOUT.get(hook)


# -------------------------------------------------------------------------------- wrong candidates
def test_a_victim_that_was_not_offered() -> None:
    """A job that has ended is no candidate."""
    seen: list[Job] = []

    def stale(active: Sequence[Job]) -> Candidates:
        seen.extend(active)
        return Candidates(jobs=tuple(seen[:1]), modes=(PreemptMode.REQUEUE,))

    with pytest.raises(PolicyError) as caught:
        play(
            answering("makeway_preempt_candidates", stale),
            BASE | {"preempt": NAME, "preempt_mode": "requeue"},
            """
            job   partition  submit  nodes  run_time
            low   low             0      1        10
            next  low             0      1       100
            high  low             1      1        20
            """,
        )
    assert "not among the active jobs" in str(caught.value)


def test_a_candidate_named_twice() -> None:
    """Each job at most once."""

    def twice(active: Sequence[Job]) -> Candidates:
        return Candidates(jobs=(active[0],) * 2, modes=(PreemptMode.REQUEUE,) * 2)

    error = blamed("makeway_preempt_candidates", twice, USED_AS["makeway_preempt_candidates"])
    assert error.message == "named job low twice"
    assert error.job == "next"


def test_more_candidates_than_modes() -> None:
    """One mode per job."""

    def halves(active: Sequence[Job]) -> Candidates:
        return Candidates(jobs=tuple(active), modes=())

    error = blamed("makeway_preempt_candidates", halves, USED_AS["makeway_preempt_candidates"])
    assert error.message == "1 jobs but 0 modes"


# ------------------------------------------------------------------------------- wrong placements
def place(indices: Sequence[int]) -> Placement:
    """Return a placement on the nodes of these indices."""
    return Placement(allocation=Allocation(nodes=bitmap.of(list(indices)), node_indices=tuple(indices)))


class Selector:
    """Finds always the same."""

    def __init__(self, found: Any) -> None:
        self.found = found

    def placed(self, job: Job) -> None:
        """Ignore it."""

    released = suspended = resumed = placed

    def screen(self, jobs: Sequence[Job], nodes: int) -> Sequence[Job]:
        """Keep all."""
        return jobs

    def attempt(self, job: Job, nodes: int, view: object) -> Any:
        """Begin."""
        selector = self

        class Attempt:
            def probe(self) -> Any:
                return selector.found

            def remove(self, job: Job, mode: PreemptMode) -> None:
                pass

            def fresh(self) -> Any:
                return self

            def cover(self, jobs: object, modes: object) -> None:
                return None

        found = Attempt()
        found.job = job  # type: ignore[attr-defined]  # as short as can be
        return found

    def forecast(self, *arguments: object) -> None:
        """See nothing."""

    def possible(self, job: Job, view: object) -> Blocked | None:
        """Believe in everything."""
        return None


@pytest.mark.parametrize(
    ("found", "message"),
    [
        pytest.param(place([2]), "outside partition", id="outside the partition"),
        pytest.param(place([0, 1]), "not in service", id="a node that is down"),
        pytest.param(place([]), "it needs 1", id="no nodes"),
        pytest.param(
            Placement(allocation=Allocation(nodes=1, node_indices=(0, 0))),
            "differ from their indices",
            id="a node twice",
        ),
        pytest.param(place([40]), "does not exist", id="a node that does not exist"),
        pytest.param(
            Placement(allocation=Allocation(nodes=1, node_indices=(1,))),
            "differ from their indices",
            id="bits and indices differ",
        ),
        pytest.param("n1", "its probe() returned 'n1'", id="no placement at all"),
    ],
)
def test_wrong_placements(found: Any, message: str) -> None:
    """Outside, down, too few, twice."""
    with pytest.raises(PolicyError) as caught:
        play(
            answering("makeway_selector", lambda: Selector(found)),
            {"select": NAME, "partitions": {"low": {"nodes": "n[1-2]"}}, "scheduler": "builtin"},
            """
            job  partition  submit  nodes  run_time
            low  low             1      1       100
            """,
            cluster=cluster(3),
            commands="0 drain n2",
        )
    assert (caught.value.plugin, caught.value.hook) == (NAME, "makeway_selector")
    assert caught.value.job == "low"
    assert message in caught.value.message


def test_overlapping_jobs_are_found() -> None:
    """Two jobs on one node that does not share: found when the second one would start."""
    with pytest.raises(PolicyError) as caught:
        play(answering("makeway_selector", lambda: Selector(place([0]))), BASE | {"select": NAME})
    assert (caught.value.plugin, caught.value.hook, caught.value.job) == (NAME, "makeway_selector", "next")
    assert caught.value.message == "gave it cores of n1 that job low holds"


def test_overlapping_cores_are_found() -> None:
    """Single cores count, where both say which they hold; half a node each is no overlap."""

    def halves(first: int, second: int) -> Any:
        cores = iter((first, second))

        class Halves(Selector):
            def attempt(self, job: Job, nodes: int, view: object) -> Any:
                held = Allocation(nodes=1, node_indices=(0,), cores=(next(cores, 0),))
                self.found = Placement(allocation=held)
                return super().attempt(job, nodes, view)

        return answering("makeway_selector", lambda: Halves(None))

    two = "\n".join(JOBS.splitlines()[:4])
    with pytest.raises(PolicyError, match="for job next: gave it cores of n1 that job low holds"):
        play(halves(0b0011, 0b0110), BASE | {"select": NAME}, two)
    run = play(halves(0b0011, 0b1100), BASE | {"select": NAME}, two)
    assert run.starts("next") == (0.0,)


def test_a_selector_without_its_methods() -> None:
    """Said before the first event."""
    error = blamed("makeway_selector", lambda: object(), USED_AS["makeway_selector"])
    assert "has no method" in error.message


# ----------------------------------------------------------------------------------- wrong choices
@pytest.mark.parametrize(
    ("victims", "message"),
    [
        pytest.param((5,), "chose candidate number 5 of 1", id="no candidate's number"),
        pytest.param((0, 0), "chose a candidate twice", id="twice"),
        pytest.param((-1,), "chose candidate number -1 of 1", id="counted from the end"),
    ],
)
def test_wrong_choices(victims: tuple[int, ...], message: str) -> None:
    """Positions in the candidates, none twice."""
    error = blamed(
        "makeway_search",
        lambda: Choice(placement=place([0]), victims=victims),
        PREEMPTING | {"search": NAME},
    )
    assert (error.job, error.message) == ("high", message)


def test_plans_for_others_than_the_victims() -> None:
    """One per victim, in order."""

    def no_victim(victims: Sequence[Job]) -> list[Plan]:
        return []

    error = asked("makeway_preempt_action", no_victim)
    assert "not one per victim" in error.message


def test_a_negative_grace_time() -> None:
    """Time does not run backwards."""

    def hurried(victims: Sequence[Job]) -> list[Plan]:
        return [Plan(job=job, mode=PreemptMode.CANCEL, grace_time=-1.0) for job in victims]

    error = asked("makeway_preempt_action", hurried)
    assert error.message == "planned a grace_time of -1.0; allowed: 0 or more seconds"
    assert error.job == "low"


class _Order(QueueOrder):
    """Orders as it is told."""

    def __init__(self, sort: Callable[[Sequence[Job]], Any], rank: Any = None) -> None:
        self.said, self.rank = sort, rank

    def sort(self, pending: Sequence[Job], view: Any) -> Any:
        """Say that."""
        return self.said(pending)


class _Heads(QueueOrder):
    """Names what it is told to."""

    def __init__(self, said: Callable[[], Any]) -> None:
        self.said = said

    def heads(self, tried: Sequence[Job], view: Any) -> Any:
        """Say that."""
        return self.said()


def test_a_queue_order_that_loses_a_job() -> None:
    """All entries, each once."""
    order = _Order(lambda pending: pending[:1])
    error = blamed("makeway_queue", lambda: order, BASE | {"plugins": [NAME]})
    assert "leaves jobs out" in error.message


@pytest.mark.parametrize("said", [boom, lambda: 7, lambda: [object()]], ids=["raises", "a number", "a list"])
def test_heads_that_are_none(said: Callable[[], Any]) -> None:
    """Jobs of this cluster, in a sequence."""
    blamed("makeway_queue", lambda: _Heads(said), BASE | {"plugins": [NAME], "scheduler": "greedy"})


@pytest.mark.parametrize(
    ("rank", "message"),
    [
        (5, "rank is 5; allowed: a function, or None"),
        (lambda job: "first", "its function returned 'first'; allowed: a whole number or None"),
        (lambda job: boom(), "raised RuntimeError: out of ideas"),
    ],
)
def test_a_wrong_queue_rank(rank: Any, message: str) -> None:
    """A function of a job, and whole numbers from it."""
    order = _Order(lambda pending: None, rank)
    error = blamed("makeway_queue", lambda: order, BASE | {"plugins": [NAME]})
    assert message in error.message


class _Wrong(Limits):
    """Says the same whatever it is asked."""

    def __init__(self, said: Callable[[], Any]) -> None:
        self.said = said


QUESTIONS = {
    "validate": 2,
    "admit": 2,
    "closed_nodes": 3,
    "reservations": 2,
    "node_sets": 3,
    "expired": 1,
    "marks": 1,
}
"""What limits may say, and with how many arguments."""


@pytest.mark.parametrize("said", [boom, lambda: object(), lambda: [7]], ids=["raises", "object", "list"])
@pytest.mark.parametrize("method", QUESTIONS)
def test_limits_that_answer_nonsense(method: str, said: Callable[[], Any]) -> None:
    """The plugin is blamed, and the method named unless it raised."""
    kind = type("Wrong", (_Wrong,), {method: lambda self, *given: self.said()})
    error = blamed("makeway_limits", lambda: kind(said), BASE | {"plugins": [NAME]})
    assert ("raised RuntimeError" if said is boom else f"its {method}() returned ") in error.message


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (lambda view: 5, "returned 5; allowed: a function of a job, or None"),
        (
            lambda view: lambda job: [job],
            "its function returned [job next]; allowed: something hashable or None",
        ),
        (lambda view: lambda job: boom(), "raised RuntimeError: out of ideas"),
    ],
)
def test_a_wrong_preemptor_kind(kind: Callable[[Any], Any], message: str) -> None:
    """A function of a job, and something hashable from it."""
    module = answering("makeway_preempt_candidates", alike_by(kind)(lambda active: Candidates()))
    jobs = """
        job    partition  submit  nodes  run_time
        first  batch           0      1       100
        other  batch           0      1        50
        next   batch           5      2       100
    """
    settings = {"preempt": NAME, "preempt_mode": "requeue", "scheduler": "greedy"}
    with pytest.raises(PolicyError) as caught:
        replay_table(jobs, cluster=cluster(2), config=settings, plugins={NAME: module})
    assert (caught.value.plugin, caught.value.hook) == (NAME, "makeway_preempt_candidates")
    assert message in caught.value.message


# ----------------------------------------------------------------------------------- wrong commands
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (5, "returned 5; allowed: Commands, or None"),
        (Commands(names=lambda *_: 7), "returned 7; allowed: a sequence"),  # type: ignore[arg-type]
        (Commands(names=lambda *_: [7]), "returned [7]; allowed: ids of jobs"),
        (Commands(refuses=lambda *_: True), "returned True; allowed: a reason"),  # type: ignore[arg-type]
        (Commands(refuses=lambda *_: boom()), "raised RuntimeError: out of ideas"),
    ],
)
def test_wrong_rules_about_commands(given: Any, message: str) -> None:
    """A value of the contract, and from its functions what it says."""
    with pytest.raises(PolicyError) as caught:
        replay_table(
            JOBS,
            config=BASE | {"plugins": [NAME]},
            plugins={NAME: answering("makeway_commands", lambda: given)},
            commands="5 suspend low",
        )
    assert (caught.value.plugin, caught.value.hook) == (NAME, "makeway_commands")
    assert message in caught.value.message


# -------------------------------------------------------------------------------------- wrong gang
class Arbiter:
    """Orders always the same."""

    next_tick = None

    def __init__(self, orders: Any) -> None:
        self.orders = orders

    def started(self, job: Job, view: object) -> Any:
        """Give the order."""
        return self.orders(job) if callable(self.orders) else self.orders

    def ended(self, job: Job, view: object) -> Any:
        """Give the order."""
        return self.started(job, view)

    def held(self, job: Job, view: object) -> Any:
        """Give none."""
        return ()

    def tick(self, view: object) -> Any:
        """Give none."""
        return ()

    before_pass = after_pass = tick


@pytest.mark.parametrize(
    ("orders", "message"),
    [
        pytest.param(7, "", id="no sequence"),
        pytest.param(["suspend"], "ordered 'suspend'; allowed: GangOrder", id="a word"),
        pytest.param(
            lambda job: [GangOrder(verb=GangVerb.RESUME, job=attrs.evolve(job))],
            "not active",
            id="a job of its own making",
        ),
    ],
)
def test_wrong_orders(orders: Any, message: str) -> None:
    """Orders are about active jobs."""
    error = blamed("makeway_gang", lambda: Arbiter(orders), BASE | {"gang": NAME})
    assert message in error.message


# ------------------------------------------------------------------------------------ wrong loading
def test_a_misspelt_hook() -> None:
    """Named, with the nearest one."""
    plugin = answering("makeway_preempt_candidate", lambda: None)
    with pytest.raises(PluginError) as caught:
        play(plugin, BASE | {"plugins": [NAME]})
    assert "unknown hook 'makeway_preempt_candidate'" in str(caught.value)
    assert "did you mean 'makeway_preempt_candidates'?" in str(caught.value)


def test_an_unknown_argument() -> None:
    """A hook takes what its specification names."""
    plugin = answering("makeway_protect", lambda victims: None)
    with pytest.raises(PluginError) as caught:
        play(plugin, PREEMPTING | {"protect": [NAME]})
    assert NAME in str(caught.value)
    assert "victims" in str(caught.value)


@attrs.frozen
class Settings:
    """One key."""

    patience: float = 60.0


@pytest.mark.parametrize(
    ("table", "message"),
    [
        pytest.param({"patience": "long"}, "got 'long'; allowed: a number", id="another type"),
        pytest.param({"patiance": 1.0}, "did you mean 'patience'?", id="unknown key"),
    ],
)
def test_wrong_settings(table: Mapping[str, Any], message: str) -> None:
    """Path, value, and what is allowed."""
    plugin = answering("makeway_settings", lambda: Settings)
    with pytest.raises(ConfigError) as caught:
        play(plugin, BASE | {"plugins": [NAME], "settings": {NAME: table}})
    assert f'policy.settings."{NAME}".' in str(caught.value)
    assert message in str(caught.value)


def test_settings_for_a_plugin_without() -> None:
    """They would be ignored."""
    plugin = answering("makeway_limits", lambda: None)
    with pytest.raises(ConfigError) as caught:
        play(plugin, BASE | {"plugins": [NAME], "settings": {NAME: {"a": 1}}})
    assert f"plugin {NAME!r} has no settings" in str(caught.value)


@pytest.mark.parametrize("made", [boom, lambda: 7, lambda: dict], ids=["raises", "7", "a class"])
def test_a_settings_class_that_is_none(made: Callable[[], Any]) -> None:
    """The plugin is named."""
    with pytest.raises(PluginError) as caught:
        play(answering("makeway_settings", made), BASE | {"plugins": [NAME]})
    assert NAME in str(caught.value)


# ------------------------------------------------------------------------- distributions on disk
Install = Callable[[str, str, str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return a function that puts a distribution with the plugin x/fake on the path."""

    def install_it(distribution: str, module: str, source: str) -> None:
        folder = tmp_path / distribution
        info = folder / f"{distribution.replace('-', '_')}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[makeway]\nx/fake = {module}\n")
        (folder / f"{module}.py").write_text(source)
        monkeypatch.syspath_prepend(folder)
        monkeypatch.delitem(sys.modules, module, raising=False)

    return install_it


USES_FAKE = BASE | {"plugins": ["x/fake"]}


def test_a_distribution_that_cannot_be_imported(install: Install) -> None:
    """Name, distribution, version, and the cause."""
    install("makeway-x-fake", "fake_broken", "import no_such_module\n")
    with pytest.raises(PluginError) as caught:
        replay_table(JOBS, config=USES_FAKE)
    assert "plugin 'x/fake' of makeway-x-fake 1.0 cannot be imported" in str(caught.value)
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


def test_a_name_that_two_distributions_offer(install: Install) -> None:
    """Both are named with their versions."""
    install("makeway-one", "fake_one", "")
    install("makeway-two", "fake_two", "")
    with pytest.raises(PluginError) as caught:
        replay_table(JOBS, config=USES_FAKE)
    assert "makeway-one 1.0, makeway-two 1.0" in str(caught.value)


def test_a_name_that_no_plugin_offers() -> None:
    """What is installed and the nearest; packages of strangers are not guessed."""
    with pytest.raises(PluginError) as caught:
        replay_table(JOBS, config=PREEMPTING | {"preempt": "preempt/partition_pro"})
    message = str(caught.value)
    assert "no plugin named 'preempt/partition_pro'" in message
    assert "did you mean 'preempt/partition_prio'?" in message
    assert "makeway-preempt-partition-pro" not in message
    assert "its own documentation says which package brings it" in message


def test_a_distribution_that_works(install: Install) -> None:
    """As a stranger would write it."""
    source = (
        "from makeway.hookspecs import alike_by, hookimpl\n"
        "@hookimpl\n"
        "def makeway_protect(candidates):\n"
        "    return {job.id: 'is dear to us' for job in candidates}\n"
    )
    install("makeway-x-fake", "fake_kind", source)
    assert replay_table(JOBS, config=PREEMPTING | {"protect": ["x/fake"]}).victims == ()


# ---------------------------------------------------------------------------------- which to blame
def silent() -> Any:
    """Pass."""
    return None


def nothing() -> dict[str, Any]:
    """Say nothing about any job."""
    return {}


@pytest.mark.parametrize("answer", [boom, lambda: 7], ids=["raises", "answers nonsense"])
@pytest.mark.parametrize("first", [True, False], ids=["asked first", "asked last"])
def test_the_one_that_answered_is_blamed(answer: Callable[..., Any], first: bool) -> None:
    """Not the other one, which implements the same hook and passes."""
    hook = "makeway_preempt_candidates"
    plugins = {"x/good": answering(hook, silent), NAME: answering(hook, answer)}
    names = [NAME, "x/good"] if first else ["x/good", NAME]
    with pytest.raises(PolicyError) as caught:
        replay_table(JOBS, config=PREEMPTING | {"plugins": names}, plugins=plugins)
    assert (caught.value.plugin, caught.value.job) == (NAME, "next")


def test_the_one_that_joined_nonsense_is_blamed() -> None:
    """Where all are asked, too."""
    hook = "makeway_protect"
    plugins = {
        "x/good": answering(hook, nothing),
        NAME: answering(hook, lambda: {"low": 7}),
        "x/fine": answering(hook, nothing),
    }
    config = PREEMPTING | {"plugins": ["x/good", NAME, "x/fine"]}
    with pytest.raises(PolicyError) as caught:
        replay_table(JOBS, config=config, plugins=plugins)
    assert caught.value.plugin == NAME


def test_a_hook_that_ends_the_program() -> None:
    """It would look as if all were well."""

    def leave() -> Any:
        sys.exit(0)

    error = asked("makeway_preempt_candidates", leave)
    assert error.message.startswith("raised SystemExit: 0")
    assert error.job == "next"


def named(**values: Any) -> Callable[..., Candidates]:
    """Return an answer that names the first active job, with other values in place of some."""

    def answer(active: Sequence[Job]) -> Candidates:
        sound: dict[str, Any] = {"jobs": tuple(active[:1]), "modes": (PreemptMode.REQUEUE,)}
        return Candidates(**sound | {key: made(active) for key, made in values.items()})

    return answer


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param(named(jobs=iter), "as jobs; allowed: a tuple", id="an iterator of jobs"),
        pytest.param(named(modes=lambda _: None), "gave None as modes; allowed: a tuple", id="no modes"),
        pytest.param(
            named(ask_again_at=lambda _: "soon"),
            "wants to be asked again at 'soon'; allowed: seconds since the start, or None",
            id="again in words",
        ),
        pytest.param(
            named(jobs=lambda _: (7,)), "named 7, which is not among the active jobs", id="a number"
        ),
    ],
)
def test_odd_candidates(answer: Callable[..., Any], message: str) -> None:
    """The right class with the wrong things in it."""
    error = asked("makeway_preempt_candidates", answer)
    assert message in error.message
    assert error.job == "next"


def test_an_answer_that_cannot_be_looked_at() -> None:
    """Whatever looking at it raises, the plugin is blamed."""

    class Odd(tuple[Job, ...]):
        def __iter__(self) -> Any:
            raise LookupError("nothing here")

    error = asked("makeway_preempt_candidates", named(jobs=Odd))
    assert "nothing here" in error.message
    assert error.job == "next"
