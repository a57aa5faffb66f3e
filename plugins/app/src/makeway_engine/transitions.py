"""Move jobs from state to state as `makeway_engine.moves` does, and obey the gang arbiter that hears of each move."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from types import GeneratorType
from typing import cast

from makeway.clockwork import Clockwork
from makeway.errors import MakewayError
from makeway.model import (
    Allocation,
    Gang,
    GangOrder,
    GangVerb,
    Job,
    JobState,
    PreemptMode,
    QueuedGang,
    Selector,
    SuspendedBy,
)
from makeway.record import Recorder
from makeway.registry import Policies, guarded
from makeway_engine.forgiving import Forgiveness, ForgivenSelector
from makeway_engine.ledger import Ledger, put
from makeway_engine.making_way import MakingWay
from makeway_engine.moves import Moves
from makeway_engine.priorities import Priorities
from makeway_engine.queue import Queue

_RUNNING = JobState.RUNNING


class Transitions(Moves):
    """The verbs of a run with an arbiter: it is told of moves, and its orders are carried out."""

    def __init__(
        self,
        ledger: Ledger,
        queue: Queue,
        selector: Selector,
        gang: Gang | None,
        policies: Policies,
        recorder: Recorder,
        clockwork: Clockwork,
        forgiveness: Forgiveness,
        *,
        max_requeues: int | None,
        priorities: Priorities,
    ) -> None:
        """Begin with nothing moved.

        :param forgiveness: keeps a run going, where it is on, after selector or arbiter have raised.
        """
        super().__init__(
            ledger,
            queue,
            cast(Selector, ForgivenSelector(selector, forgiveness)),
            gang,
            policies,
            recorder,
            clockwork,
            max_requeues=max_requeues,
            priorities=priorities,
        )
        self.making_way = MakingWay(ledger, policies, self)
        """Has victims leave, those of the arbiter too where they get notice and grace time (rule gang_skips_grace)."""
        self._forgiveness = forgiveness
        self._before_pass = operator.methodcaller("before_pass", ledger)
        self._after_pass = getattr(gang, "after_pass", None)

    def _ask_gang(self, event: str, job: Job) -> Sequence[GangOrder]:
        method = getattr(self.gang, event)
        orders: Sequence[GangOrder] = guarded(self.policies, "makeway_gang", job, method, job, self.ledger)
        return orders

    def tell_gang(self, event: str, job: Job) -> None:
        """Let the arbiter know: started, ended, held."""
        if self.gang is None or job.spec.het_id is not None:
            return
        if self._forgiveness.on:
            self._forgiveness.run(lambda: self.obey(self._ask_gang(event, job)), None, job)
        elif (orders := self._ask_gang(event, job)) != ():
            self.obey(orders)

    def tick(self) -> None:
        """Let the arbiter do what it wanted to do now."""
        gang = self.gang
        if gang is not None:
            self._obey_one_by_one(None, operator.methodcaller("tick", self.ledger), gang)

    def before_pass(self) -> None:
        """Let the arbiter act before a scheduling pass."""
        gang = self.gang
        if gang is not None:
            self._obey_one_by_one(None, self._before_pass, gang)

    def after_pass(self) -> None:
        """Let the arbiter act after a scheduling pass."""
        call = self._after_pass
        if call is not None:
            self._obey_one_by_one(None, call, self.ledger)

    @property
    def takes_queue(self) -> bool:
        """Whether suspended jobs wait in the queue (`makeway.model.QueuedGang`)."""
        return hasattr(self.gang, "turn")

    def waiting(self) -> Sequence[Job]:
        """Return the suspended jobs that want a turn in the queue."""
        gang = cast(QueuedGang, self.gang)
        found = guarded(self.policies, "makeway_gang", None, lambda: tuple(gang.waiting(self.ledger)))
        for job in found:
            if not isinstance(job, Job) or job.state is not JobState.SUSPENDED:
                text = f"lets {job!r:.80} wait for its turn; allowed: suspended jobs"
                raise self.policies.fault("makeway_gang", None, text)
        return cast(Sequence[Job], found)

    def turn(self, job: Job) -> None:
        """Let the arbiter act for a suspended job whose turn in the queue has come."""
        gang = cast(QueuedGang, self.gang)
        self._obey_one_by_one(job, operator.methodcaller("turn", job, self.ledger), gang)

    def _obey_one_by_one(
        self, job: Job | None, call: Callable[..., Iterable[GangOrder]], *given: object
    ) -> None:
        if self._forgiveness.on:
            self._forgiveness.run(lambda: self._obey_each(job, call, *given), None, job)
            return
        try:  # as `guarded` does; most often there is nothing to obey
            answer: object = call(*given)
        except MakewayError:
            raise
        except (Exception, SystemExit) as error:
            raise self.policies.blame("makeway_gang", job, error) from error
        if answer != ():
            self._obey_in_turn(job, answer)

    def _obey_each(self, job: Job | None, call: Callable[..., Iterable[GangOrder]], *given: object) -> None:
        self._obey_in_turn(job, guarded(self.policies, "makeway_gang", job, call, *given))

    def _obey_in_turn(self, job: Job | None, answer: object) -> None:
        """Carry out orders one at a time, so that each is given once those before it have been carried out."""
        if type(answer) is not GeneratorType and not isinstance(answer, Iterable):
            text = f"returned {answer!r:.80}; allowed: a sequence of GangOrder"
            raise self.policies.fault("makeway_gang", None, text)
        orders = iter(answer)
        while True:
            order = guarded(self.policies, "makeway_gang", job, next, orders, None)
            if order is None:
                return
            self.obey((order,))

    def obey(self, orders: Sequence[GangOrder]) -> None:
        """Carry out orders of the arbiter."""
        answer: object = orders
        if not isinstance(answer, Iterable):
            text = f"returned {orders!r:.80}; allowed: a sequence of GangOrder"
            raise self.policies.fault("makeway_gang", None, text)
        for order in orders:
            self._check(order)
            job = order.job
            # The arbiter hears of an end only once the nodes are clean (slurm-gang-and-select 2.3).
            if self.is_leaving(job):
                if order.verb is GangVerb.END:
                    self.not_requeued(job)
                continue
            if order.verb is GangVerb.SUSPEND:
                if job.state is _RUNNING:
                    if order.because_of is not None:
                        self._displaced(order, PreemptMode.SUSPEND)
                    self.suspend(job, SuspendedBy.POLICY)
            elif order.verb is GangVerb.RESUME:
                if job.state is JobState.SUSPENDED:
                    if order.allocation is not None:
                        self._rearrange(order, order.allocation)
                    if job.held and job.suspended_by is SuspendedBy.ADMIN:
                        put(job, priority=self.fresh_priority(job))
                    self.resume(job)
            elif order.verb is GangVerb.MOVE_ON:
                self._move_on(order)
            elif order.verb is GangVerb.END:
                self.kill(job, JobState.CANCELLED, order.why)
            else:
                self._preempt_now(order)

    def _check(self, order: GangOrder) -> None:
        if not isinstance(order, GangOrder):
            raise self.policies.fault("makeway_gang", None, f"ordered {order!r:.80}; allowed: GangOrder")
        if not self.ledger.is_active(order.job) and not self.is_leaving(order.job):
            text = f"ordered {order.verb.value} of a job that is not active"
            raise self.policies.fault("makeway_gang", order.job, text)
        if order.verb is GangVerb.PREEMPT and not order.mode.frees_all:
            text = f"ordered preempt by the mode {order.mode.value}; allowed: checkpoint, requeue, cancel"
            raise self.policies.fault("makeway_gang", order.job, text)

    def _rearrange(self, order: GangOrder, allocation: Allocation) -> None:
        """Let suspended jobs hold other cores of their nodes."""
        moves = ((order.job, allocation), *order.trades)
        for job, new in moves:
            held = job.allocation
            same = held is not None and (held.node_indices, held.cpus) == (new.node_indices, new.cpus)
            if not same or job.state is not JobState.SUSPENDED:
                text = "moved a job that runs, or to other nodes, or changed how much it holds"
                raise self.policies.fault("makeway_gang", job, text)
        for job, _ in moves:
            self.selector.released(job)
        for job, new in moves:
            self.ledger.rearrange(job, new)
            self.selector.placed(job)
            self.selector.suspended(job)

    def _move_on(self, order: GangOrder) -> None:
        """Requeue a suspended job, with its work if it has just been saved."""
        job = order.job
        if job.state is not JobState.SUSPENDED or not job.requeueable:
            text = f"ordered to move on a job that is {job.state.value} or may not be requeued"
            raise self.policies.fault("makeway_gang", job, text)
        if order.mode is PreemptMode.CHECKPOINT:
            self.checkpoint(job)
        self.requeue(job, order.why)

    def _preempt_now(self, order: GangOrder) -> None:
        job = order.job
        if not self.ledger.rule("gang_skips_grace"):
            self.making_way.tell_one(job, order.because_of, order.mode)
            return
        self.ledger.tell_to_leave(job)
        if order.mode is PreemptMode.CHECKPOINT:
            self._displaced(order, PreemptMode.CHECKPOINT)
            self.checkpoint(job)
            self.requeue(job, order.why)
        elif order.mode is PreemptMode.REQUEUE and job.requeueable:
            self._displaced(order, PreemptMode.REQUEUE)
            self.requeue(job, order.why)
        else:
            self._displaced(order, PreemptMode.CANCEL)
            self.kill(job, JobState.PREEMPTED, order.why)

    def _displaced(self, order: GangOrder, mode: PreemptMode) -> None:
        self.displaced(order.job, order.because_of, mode, order.why)
