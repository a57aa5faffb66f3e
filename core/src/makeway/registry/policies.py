"""Offer one typed method per hook; every answer is checked at the border."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from makeway import vendors
from makeway.config import Config
from makeway.errors import ConfigError, Finding, PluginError
from makeway.foreign import Dialect
from makeway.model import (
    Attempt,
    Blocked,
    Candidates,
    Check,
    Choice,
    Cluster,
    ClusterView,
    Gang,
    Grouping,
    Job,
    JobSpec,
    ModeFlag,
    Partition,
    Plan,
    PreemptBasis,
    PreemptMode,
    Protection,
    QueueOrder,
    Selector,
    Turns,
    Vocabulary,
)
from makeway.priorities import Prioritizer
from makeway.registry.asking import Call, guarded
from makeway.registry.asking import shown as _shown
from makeway.registry.border import Border, Stops, is_table
from makeway.registry.finding import load_all
from makeway.registry.fitting import manager_of
from makeway.registry.limits import LimitsAsker
from makeway.registry.naming import misplaced, names_in, vendor_of
from makeway.registry.people import People
from makeway.registry.quicker import (
    by_request_of,
    in_vain_of,
    kind_of,
    turns_of,
)
from makeway.registry.tables import structured

DEFAULT_SEARCH = "search/in_order"
"""Used where no plugin in use has a search."""


class Policies(LimitsAsker):
    """The plugins of one run, with one typed method per hook."""

    def __init__(
        self, config: Config, extra: Mapping[str, Any] | None = None, *, trace: bool = False
    ) -> None:
        """Load what `config` names.

        :param extra: plugins by name that need no installation, for tests and scripts.
        :param trace: log every call of a hook and its answer.
        :raises PluginError: if one cannot be loaded or does not fit the contract.
        :raises ConfigError: if a settings table is wrong.
        """
        self.names = names_in(config)
        given = extra or {}
        loaded = {name: (name, *rest) for name, *rest in load_all([n for n in self.names if n not in given])}
        plugins = [(name, given[name], None) if name in given else loaded[name] for name in self.names]
        super().__init__(manager_of(plugins[::-1]), given, trace=trace)
        problems = misplaced(config, self.hooks_of)
        if problems:
            raise ConfigError("config", problems)
        preempts = self.preempt_basis(config.policy.preempt) is not PreemptBasis.NOTHING
        if preempts and not self.implements("makeway_search"):
            plugins += load_all([DEFAULT_SEARCH])
            super().__init__(manager_of(plugins[::-1]), given, trace=trace)
        self._border = Border(self)
        self.order = QueueOrder()
        """What orders the queue."""
        self.order_of = ""
        """The plugin that built it; empty: none did."""
        self.orders = self.names_heads = False
        """Whether it sorts the queue; whether it names what is tried next."""
        self._stops = Stops.NONE
        self.people = People(self)
        """What the plugins say about commands that people give."""
        self._plugins = config, plugins
        self.settings = structured(config, plugins)
        self.vendors = tuple(
            dict.fromkeys(filter(None, (vendor_of(name, plugin) for name, plugin, _ in plugins)))
        )
        """Names of the schedulers as which the plugins decide; the first one leads (`makeway.vendors`)."""

    @property
    def leader(self) -> vendors.Vendor | None:
        """The vendor whose checks and words count; None: none, or it says nothing of itself."""
        return vendors.named(self.vendors[0]) if self.vendors else None

    def anew(self) -> Policies:
        """Return the same plugins with settings of their own, for another engine: some remember things there."""
        twin = copy.copy(self)
        twin._answered, twin._built, twin._limits = {}, {}, ()
        twin._saying = LimitsAsker._saying
        twin._border, twin.people = Border(twin), People(twin)
        twin._stops = Stops.NONE
        twin.settings = structured(*self._plugins)
        return twin

    def hooks_of(self, name: str) -> list[str]:
        """Return the hooks that the plugin `name` implements."""
        plugin = self._manager.get_plugin(name)
        callers = self._manager.get_hookcallers(plugin) or []
        return sorted(caller.name for caller in callers)

    # ----------------------------------------------------------------------------- hooks
    def selector(self, view: ClusterView) -> Selector:
        """Build the selector.

        :raises PluginError: if no plugin offers one.
        """
        found = self.first("makeway_selector", None, view=view)
        if found is None:
            raise PluginError(
                f"none of the plugins in use finds nodes: {', '.join(self.names)}; "
                "policy.select must name one that does, such as 'select/linear'"
            )
        for verb in (
            "placed",
            "released",
            "suspended",
            "resumed",
            "screen",
            "attempt",
            "forecast",
            "possible",
        ):
            if not callable(getattr(found, verb, None)):
                self._blame("makeway_selector", None, f"its selector has no method {verb!r}")
        self.keep(found, "makeway_selector")
        selector: Selector = found
        return selector

    def gang(self, view: ClusterView) -> Gang | None:
        """Build the gang arbiter; None: no job is ever suspended."""
        found: Gang | None = self.first("makeway_gang", None, view=view)
        if found is not None:
            for verb in ("started", "ended", "held", "tick", "before_pass"):
                if not callable(getattr(found, verb, None)):
                    self._blame("makeway_gang", None, f"its arbiter has no method {verb!r}")
            self.keep(found, "makeway_gang")
            taking_turns = ModeFlag.GANG in view.preempt_mode.flags
            self._stops = Stops.ARBITER if taking_turns else Stops.PLANS
        return found

    def priorities(self, view: ClusterView) -> Prioritizer | None:
        """Build what gives jobs their priority; None: they stand in order of submission."""
        hook = "makeway_priority"
        found: Prioritizer | None = self.first(hook, None, view=view)
        if found is not None:
            for verb in ("fresh", "again"):
                if not callable(getattr(found, verb, None)):
                    self._blame(hook, None, f"its prioritizer has no method {verb!r}")
            self.keep(found, hook)
        return found

    def build_queue(self, view: ClusterView) -> None:
        """Let a plugin build what orders the queue, before the first job."""
        hook = "makeway_queue"
        found = self.first(hook, None, view=view)
        self.order, self.order_of = QueueOrder(), ""
        if found is not None:
            if not isinstance(found, QueueOrder):
                self._blame(hook, None, f"returned {_shown(found)}; allowed: a QueueOrder, or None")
            self.keep(found, hook)
            self.order, self.order_of = found, self._answered[hook]
        kind = type(self.order)
        self.orders = kind.sort is not QueueOrder.sort
        self.names_heads = kind.heads is not QueueOrder.heads

    def queue_order(self, pending: Sequence[Job], view: ClusterView) -> Sequence[Job] | None:
        """Order the queue; None: the default order."""
        hook = "makeway_queue"
        answer = self._of_queue("sort", pending, view)
        if answer is None:
            return None
        ordered = self.listed(hook, None, answer)
        if sorted(map(id, ordered)) != sorted(map(id, pending)):
            self._blame(hook, None, "its order leaves jobs out, adds some, or repeats them")
        return ordered

    def next_to_try(self, tried: Sequence[Job], view: ClusterView) -> Sequence[Job] | None:
        """Return what is tried next in a pass, after `tried`; None: there is no opinion."""
        hook = "makeway_queue"
        answer = self._of_queue("heads", tried, view)
        if answer is None:
            return None
        named = self.listed(hook, None, answer)
        for job in named:
            if not isinstance(job, Job) or view.job(job.id) is not job:
                self._blame(hook, None, f"named {_shown(job)}; allowed: jobs of this cluster")
        return named

    def _of_queue(self, method: str, jobs: Sequence[Job], view: ClusterView) -> Any:
        answer = guarded(self, "makeway_queue", None, getattr(self.order, method), jobs, view)
        if self.traced:
            self._show_order(method, jobs, view, answer)
        return answer

    def _show_order(self, method: str, jobs: Sequence[Job], view: ClusterView, answer: Any) -> None:
        """Log one answer."""
        self._log(f"makeway_queue.{method}", self.order_of, {"jobs": jobs}, answer)

    def queue_rank(self) -> Callable[[Job], int | None] | None:
        """Return what ranks jobs for the queue; None: the queue is ordered anew for each pass."""
        rank = self.order.rank
        if rank is None or not self.orders:
            return None
        hook = "makeway_queue"
        if not callable(rank):
            self._blame(hook, None, f"rank is {_shown(rank)}; allowed: a function, or None")
        return self.number_of(self.order_of, hook, rank)

    def turns(self) -> tuple[Turns, Callable[[Job], bool]] | None:
        """Return what names jobs one by one, and the test of those about which others have a say; None: nothing."""
        return turns_of(self, self.order, self.order_of)

    def preemptor_kind(self, view: ClusterView) -> Callable[[Job], Hashable | None] | None:
        """Return what tells jobs apart that may displace different others; None: each is asked about by itself."""
        return kind_of(self, view)

    def by_request(self, view: ClusterView) -> Callable[[Job], bool] | None:
        """Return whether all answers about a pending job depend on its request alone; None: that is known of none."""
        return by_request_of(self, view)

    def in_vain(self) -> Callable[[Job], str | None]:
        """Return what says why a pending job would wait if it were tried now, or None where that is not known."""
        return in_vain_of(self)

    def explain(self, job: Job, view: ClusterView) -> list[Check]:
        """Return the plugins' check lists for a job that waits."""
        hook = "makeway_explain"
        joined: list[Check] = []
        for answer in self.every(hook, job, job=job, view=view, now=view.now):
            checks = self.listed(hook, job, answer)
            if not all(isinstance(check, Check) for check in checks):
                self._blame(hook, job, f"returned {_shown(checks)}; allowed: a sequence of Check")
            joined += checks
        return joined

    def vocabulary(self) -> Vocabulary:
        """Return the words to be shown to people."""
        answer = next((each.vocabulary for each in self._dialects() if each.vocabulary), None)
        if answer is None:
            return (self.leader and self.leader.vocabulary) or Vocabulary()
        return attrs.evolve(
            answer, nouns={vendors.spelled(thing): word for thing, word in answer.nouns.items()}
        )

    def asked(self) -> Callable[[JobSpec, Partition, Cluster], JobSpec] | None:
        """Return what puts the words of jobs into fields of their requests; None: there are no such words."""
        return next((each.asked for each in self._dialects() if each.asked is not None), None)

    def _dialects(self) -> Iterator[Dialect]:
        for dialect in self.every("makeway_dialect", None):
            if not isinstance(dialect, Dialect):
                self._blame("makeway_dialect", None, f"returned {_shown(dialect)}; allowed: a Dialect")
            yield dialect

    def displaces_by(self, view: ClusterView) -> Grouping:
        """Return by what the policy tells preemptors and victims apart; partitions if no plugin says."""
        hook = "makeway_displaces_by"
        answer = self.first(hook, None, view=view)
        if answer is None:
            return Grouping()
        if not isinstance(answer, Grouping):
            self._blame(hook, None, f"returned {_shown(answer)}; allowed: a Grouping")
        return answer

    def findings(self, config: Config, cluster: Cluster) -> list[Finding]:
        """Return what the plugins find wrong or odd about `config`."""
        hook = "makeway_check"
        found: list[Finding] = []
        for answer in self.every(hook, None, config=config, cluster=cluster, settings=self.settings):
            each = self.listed(hook, None, answer)
            if not all(isinstance(finding, Finding) for finding in each):
                self._blame(hook, None, f"returned {_shown(each)}; allowed: findings")
            found += each
        return found

    def candidates(self, preemptor: Job, active: Sequence[Job], view: ClusterView) -> Candidates:
        """Return what `preemptor` may displace; empty if no plugin has an opinion."""
        hook = "makeway_preempt_candidates"
        answer = self.first(hook, preemptor, preemptor=preemptor, active=active, view=view, now=view.now)
        if answer is None:
            return Candidates(note="no plugin names candidates")
        return self._border.candidates(preemptor, answer, active).escalated()

    def modes(self, jobs: Sequence[Job], view: ClusterView) -> Sequence[PreemptMode]:
        """Return how each of `jobs` would make way; without an opinion, the cluster-wide mode."""
        hook = "makeway_preempt_mode"
        answer = self.first(hook, None, jobs=jobs, view=view, now=view.now)
        if answer is None:
            return [view.preempt_mode.action or PreemptMode.OFF for _ in jobs]
        modes = self.listed(hook, None, answer)
        if len(modes) != len(jobs) or not all(isinstance(mode, PreemptMode) for mode in modes):
            self._blame(hook, None, f"returned {_shown(answer)}; allowed: one PreemptMode per job")
        return modes

    def protected(
        self, preemptor: Job, candidates: Sequence[Job], view: ClusterView
    ) -> dict[str, Protection]:
        """Return job id -> why a plugin protects it."""
        hook = "makeway_protect"
        joined: dict[str, Protection] = {}
        answers = self.every(
            hook, preemptor, preemptor=preemptor, candidates=candidates, view=view, now=view.now
        )
        for answer in answers:
            given = answer.items() if isinstance(answer, Mapping) else ()
            why = {job_id: Protection(reason=r) if isinstance(r, str) else r for job_id, r in given}
            sound = is_table(why, Protection) and all(each.reason for each in why.values())
            if not isinstance(answer, Mapping) or not sound:
                text = f"returned {_shown(answer)}; allowed: job id -> reason, or Protection"
                self._blame(hook, preemptor, text)
            for job_id, each in why.items():
                joined.setdefault(job_id, each)
        return joined

    def preempt_basis(self, name: str) -> PreemptBasis:
        """Return what decides which jobs may displace which under the preempt plugin `name`."""
        calls = self._calls["makeway_preempt_candidates"]
        return next((call.basis for call in calls if call.plugin == name), PreemptBasis.OTHER)

    @property
    def selector_searches(self) -> bool:
        """Whether the search that is asked first is the selector's own; known once the selector is built."""
        calls = self._calls["makeway_search"]
        return bool(calls) and self._is_of_selector(calls[0])

    def _is_of_selector(self, call: Call) -> bool:
        return call.of_selector or call.plugin == self._answered.get("makeway_selector")

    def search(
        self, job: Job, begin: Callable[[bool], Attempt], candidates: Candidates, view: ClusterView
    ) -> tuple[Choice | Blocked | None, bool]:
        """Choose the victims of `job`.

        :param begin: begins an attempt with no job removed; True: as the selector makes it, with no limits in it.
        :returns: the choice, or why there is none, or None if no plugin has an opinion; and whether limits have yet
            to judge it.
        """
        hook = "makeway_search"
        for call in self._calls[hook]:
            own = self._is_of_selector(call)
            arguments = {"attempt": begin(own), "candidates": candidates, "view": view, "now": view.now}
            answer = self._ask(call, hook, job, arguments)
            if isinstance(answer, Blocked):
                return answer, own
            if answer is not None:
                return self._border.choice(job, answer, candidates), own
        return None, False

    def not_allowed(self, preemptor: Job, candidates: Candidates, choice: Choice) -> int | None:
        """Return the position of the first victim that the candidates' condition rules out; None: there is none."""
        taken: list[Job] = []
        for at in choice.victims:
            job = candidates.jobs[at]
            if not self._allows(preemptor, candidates, job, taken):
                return at
            taken.append(job)
        return None

    def together(self, preemptor: Job, candidates: Candidates) -> list[tuple[Job, PreemptMode]]:
        """Return the candidates that their condition allows to be displaced one after the other, in order."""
        taken: list[Job] = []
        pairs = []
        for job, mode in zip(candidates.jobs, candidates.modes, strict=True):
            if candidates.allowed_after is None or self._allows(preemptor, candidates, job, taken):
                taken.append(job)
                pairs.append((job, mode))
        return pairs

    def _allows(self, preemptor: Job, candidates: Candidates, job: Job, taken: Sequence[Job]) -> bool:
        allowed = candidates.allowed_after
        assert allowed is not None
        hook = "makeway_preempt_candidates"
        return bool(guarded(self, hook, preemptor, lambda: allowed(job, tuple(taken))))

    def plans(
        self,
        preemptor: Job | None,
        victims: Sequence[Job],
        modes: Sequence[PreemptMode],
        view: ClusterView,
        reasons: Sequence[str] = (),
    ) -> list[Plan]:
        """Return how each victim makes way.

        :param reasons: why each was chosen; empty: nothing was said.
        """
        hook = "makeway_preempt_action"
        reasons = reasons or ("",) * len(victims)
        answer = self.first(
            hook,
            preemptor,
            preemptor=preemptor,
            victims=victims,
            modes=modes,
            reasons=reasons,
            view=view,
            now=view.now,
        )
        if answer is None:
            told = zip(victims, modes, reasons, strict=True)
            plans = [Plan(job=job, mode=mode, reason=reason) for job, mode, reason in told]
            for plan in plans:
                self._border.feasible("makeway_preempt_candidates", plan, plan.mode, self._stops)
            return [plan.escalated() for plan in plans]
        plans = self.listed(hook, preemptor, answer)
        if not all(isinstance(plan, Plan) for plan in plans):
            self._blame(hook, preemptor, f"returned {_shown(plans)}; allowed: one Plan per victim")
        if [id(plan.job) for plan in plans] != list(map(id, victims)):
            self._blame(hook, preemptor, "its plans are not one per victim, in order")
        for plan, mode in zip(plans, modes, strict=True):
            self._border.plan(hook, plan, mode, self._stops)
        if any(reasons):
            plans = [
                attrs.evolve(plan, reason=plan.reason or reason)
                for plan, reason in zip(plans, reasons, strict=True)
            ]
        return [plan.escalated() for plan in plans]
