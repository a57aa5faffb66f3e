"""Have jobs make way for a person who uses a node of theirs, and let them come back once it is quiet."""

from __future__ import annotations

from makeway.bitmap import NodeBits
from makeway.devices import holds_gpus
from makeway.model import Job, JobState, PreemptBasis, PreemptMode, SuspendedBy
from makeway.record import Recorder
from makeway.worlds.events import NodesQuiet, NodesUsed
from makeway_engine.commands import Commands
from makeway_engine.in_use import InUse
from makeway_engine.ledger import Ledger, put
from makeway_engine.reports import Reports
from makeway_engine.transitions import Transitions


class Vacating:
    """Has jobs make way for people, and lets those go on that were stopped for them."""

    def __init__(
        self,
        in_use: InUse,
        ledger: Ledger,
        transitions: Transitions,
        commands: Commands,
        reports: Reports,
        recorder: Recorder,
    ) -> None:
        self._in_use = in_use
        self._ledger = ledger
        self._transitions = transitions
        self._commands = commands
        self._reports = reports
        self._recorder = recorder

    def used(self, event: NodesUsed) -> None:
        """A person uses nodes."""
        in_use, name = self._in_use, event.partition
        if name not in in_use.vacates:
            self._reports.no_news(event, f"partition {name} does not make way for people who use its nodes")
            return
        news = event.nodes & in_use.vacates[name] & ~in_use.nodes(name)
        if not news:
            return
        in_use.begin(name, news, event.why)
        self._changed("used", name, news, event.why)
        for job in tuple(self._ledger.active):
            if job.partition.name == name and job.nodes & news and self._ledger.is_active(job):
                self._send_away(job)

    def quiet(self, event: NodesQuiet) -> None:
        """Nodes are no longer in use by people."""
        in_use, name = self._in_use, event.partition
        news = event.nodes & in_use.nodes(name)
        if not news:
            return
        in_use.end(name, news)
        self._changed("quiet", name, news, "")
        self.go_on()

    def go_on(self) -> None:
        """Let those go on of whose nodes none is in use any more, and forget those that stand still no more."""
        for job_id in sorted(self._in_use.stopped):
            job = self._ledger.active_job(job_id)
            if job is None or job.state is not JobState.SUSPENDED:
                self._in_use.stopped.discard(job_id)
            elif not job.nodes & self._in_use.nodes(job.partition.name):
                self._in_use.stopped.discard(job_id)
                self._commands.let_go_on(job)

    def _changed(self, state: str, partition: str, nodes: NodeBits, why: str) -> None:
        self._ledger.reopened()
        self._transitions.changed = True
        told = {"why": why} if why else {}
        self._recorder.note(
            "use",
            "",
            self._ledger.now,
            state=state,
            nodes=self._recorder.node_list(nodes),
            partition=partition,
            **told,
        )

    def _send_away(self, job: Job) -> None:
        """Have a job make way in its own mode; one that would not for others, or that another stopped, stands still."""
        mode, why = self._mode_of(job), "; ".join(self._in_use.said(job))
        if mode is PreemptMode.SUSPEND and job.requeueable and holds_gpus(job):
            mode = PreemptMode.REQUEUE  # its memory there would stay
        if mode.frees_all:
            self._transitions.making_way.tell_one(job, None, mode, why)
            return
        for part in tuple(self._ledger.components(job)):
            if self._ledger.is_active(part) and part.suspended_by is not SuspendedBy.ADMIN:
                self._in_use.stopped.add(part.id)
                self._stop(part, why)

    def _mode_of(self, job: Job) -> PreemptMode:
        """Return how a job makes way; where no policy reads what its partition says, this does."""
        setting = job.partition.preempt_mode
        if self._ledger.preempt_basis is PreemptBasis.NOTHING and setting is not None:
            return setting.action or PreemptMode.OFF
        return self._ledger.mode_of(job)

    def _stop(self, job: Job, why: str) -> None:
        transitions = self._transitions
        if job.state is JobState.RUNNING:
            transitions.displaced(job, None, PreemptMode.SUSPEND, why)
            transitions.suspend(job, SuspendedBy.ADMIN)
        else:  # the arbiter must not let it go on
            transitions.selector.resumed(job)
            put(job, suspended_by=SuspendedBy.ADMIN)
            transitions.selector.suspended(job)
        transitions.tell_gang("ended", job)
