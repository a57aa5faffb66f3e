"""Give everything back as it was (slurm-live 4.3); each step can be repeated.

It needs the notebook and Slurm, and no engine. While a suspended job is left, the lease stays on its nodes: without
it, Slurm would start others over it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from makeway.hostlist import expand_hostlist, fold_hostlist
from makeway.model import JobState, Seconds
from makeway_slurm_world.driving import orders
from makeway_slurm_world.driving.components import take_back_together
from makeway_slurm_world.driving.eyes import Eyes, in_use
from makeway_slurm_world.driving.lease import reservation
from makeway_slurm_world.driving.notebook import Notebook
from makeway_slurm_world.reading.jobs import LiveJob, Zone
from makeway_slurm_world.talking.runner import Hand
from makeway_slurm_world.talking.words import Order


@attrs.define(eq=False)
class HandBack:
    """One hand-back, from the notebook of a state directory."""

    hand: Hand
    notebook: Notebook
    name: str
    """Of the lease."""
    say: Callable[[str], None]
    """Is told what is done, a line each."""
    requeue: bool = False
    """Whether suspended jobs whose CPUs are in use are requeued; else they are waited for."""
    dry: bool = False
    """Whether orders are only printed: then one pass is all there is."""

    def step(self, now: Seconds) -> bool:
        """Do what can be done now; say whether all is given back.

        :raises Away: the controller does not answer; do it again later.
        """
        there = reservation(self.hand, self.name)
        nodes = expand_hostlist(there.get("Nodes", "")) if there else []
        eyes = Eyes(self.hand, Zone(wall=0.0), frozenset(nodes), self.name, 0.0)
        eyes.look(now)
        for job in list(eyes.jobs.values()):
            self._out_of_lease(job, eyes)
        left = list(self._go_on(eyes))
        for job_id in self.notebook.pages.held:
            if job_id not in eyes.jobs or self._tell(orders.release(job_id)):
                self._forget(self.notebook.released, job_id)
        if there is not None and not self._give_up(eyes, left):
            return self.dry
        if not left:
            for job_id in {*self.notebook.pages.starts, *self.notebook.pages.requests}:
                if job_id not in eyes.jobs:
                    self._forget(self.notebook.forget, job_id)
            if not self.dry:
                self.notebook.lease("", "")
        return not left or self.dry

    def _tell(self, order: Order) -> bool:
        if not self.dry:
            self.say(str(order))
        answer = self.hand.tell(order)
        if not answer.good:
            self.say(f"  {answer.text}")
        return answer.good

    def _forget(self, note: Callable[[str], None], job_id: str) -> None:
        if not self.dry:
            note(job_id)

    def _out_of_lease(self, job: LiveJob, eyes: Eyes) -> None:
        """Take plans back, and give jobs that wait their own request."""
        pages = self.notebook.pages
        ours = job.spec.reservation == self.name
        request = pages.requests.get(job.id)
        if job.state is JobState.PENDING and (ours or request is not None):
            if request is None:
                done = self._tell(orders.leave_lease(job.id))
            elif job.spec.het_id is None:
                done = self._tell(orders.take_back(job.id, request.required, request.count))
            else:
                done = all(
                    self._tell(order) for order in take_back_together(eyes.parts(job), {job.id: request})
                )
            if done:
                self._forget(self.notebook.restored, job.id)
        elif ours and self._tell(orders.leave_lease(job.id)):
            self._forget(self.notebook.started, job.id)

    def _go_on(self, eyes: Eyes) -> Iterator[LiveJob]:
        """Let stopped jobs go on whose CPUs are free; yield those that have to wait."""
        for job_id in self.notebook.pages.suspended:
            job = eyes.jobs.get(job_id)
            if job is None or job.state is not JobState.SUSPENDED:
                self._forget(self.notebook.resumed, job_id)
            elif not in_use(job, eyes):
                if self._tell(orders.resume(job_id)):
                    for part in eyes.parts(job):
                        self._forget(self.notebook.resumed, part.id)
                        eyes.jobs[part.id] = attrs.evolve(part, state=JobState.RUNNING)
                else:
                    yield job
            elif self.requeue:
                parts = eyes.parts(job)
                for part in parts:
                    self._forget(self.notebook.hold, part.id)
                if self._tell(orders.requeue(job_id)):
                    for part in parts:
                        self._forget(self.notebook.resumed, part.id)
                        self._tell(orders.release(part.id))
                        eyes.jobs[part.id] = attrs.evolve(part, state=JobState.PENDING)
                else:
                    yield job
            else:
                yield job

    def _give_up(self, eyes: Eyes, left: list[LiveJob]) -> bool:
        """End the lease, or leave it on the nodes of those that still wait; say whether it is gone."""
        if not left:
            return self._tell(orders.give_up_lease(self.name))
        keep = fold_hostlist({name for job in left for name in job.nodes if name in eyes.nodes})
        if set(expand_hostlist(keep)) != set(eyes.nodes):
            self._tell(orders.shrink_lease(self.name, keep))
        self._tell(orders.renew_lease(self.name, 60.0))
        self.say(
            f"{', '.join(job.id for job in left)}: suspended, and others run on the CPUs; waiting for these"
        )
        return False
