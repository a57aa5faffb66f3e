"""Give jobs their priorities: as a policy says (`makeway_priority`), else by their order of submission."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, cast

from makeway.model import ClusterView, Job, Seconds
from makeway.priorities import Occasion, Priority
from makeway.registry import Policies, guarded
from makeway_engine.forgiving import Forgiveness
from makeway_engine.ledger import Ledger
from makeway_engine.queue import Queue

HOOK = "makeway_priority"
HIGHEST = 2**32 - 1
"""The highest priority that there is."""
_FIRST = 4294901759
"""The first priority that priority/basic hands out."""
_TINY = 1e-6
_NEVER = -1


class Priorities:
    """What gives priorities in one run, and which jobs were given theirs by others."""

    def __init__(
        self,
        policies: Policies,
        ledger: Ledger,
        queue: Queue,
        forgiveness: Forgiveness,
        plain: Callable[[Job], int] | None = None,
    ) -> None:
        """Be there for one run.

        :param plain: computes priorities that never change (``scheduler.priority_weights``); None: jobs that no
            policy gives one stand in order of submission.
        """
        self._policies = policies
        self._ledger = ledger
        self._active = ledger.jobs_active.by_id
        self._view = cast(ClusterView, ledger)
        self._queue = queue
        self.prioritizer = policies.priorities(self._view)
        self._forgiveness = forgiveness
        self._plain = plain
        self.lowest = _FIRST
        self._array: tuple[str, int] | None = None
        """The array whose tasks are being submitted, and `lowest` since then.

        Tasks that no other job comes between share a number (slurm-priority-and-limits 8 no. 3).
        """
        self.given: set[str] = set()
        """Jobs whose priority was given with the job or by a person: it is not worked out anew."""
        self._rested_at = _NEVER
        """What the ledger had freed when all were worked out while no job ran; none has come since."""

    @property
    def watcher(self) -> Callable[[], None] | None:
        """What is called at the start and the end of each pass (`WatchfulPrioritizer`); None: nothing."""
        prioritizer: Any = self.prioritizer
        if not getattr(prioritizer, "watches", False):
            return None
        look, view = prioritizer.look, self._view
        return lambda: guarded(self._policies, HOOK, None, lambda: look(view))

    # ------------------------------------------------------------------------- single jobs
    def first(self, job: Job) -> int:
        """Return the priority of a job that is submitted."""
        self._rested_at = _NEVER
        if job.spec.priority is not None:
            if job.spec.priority:
                self.given.add(job.id)
            return job.spec.priority
        if self.prioritizer is not None:
            return self._asked(job, Occasion.SUBMITTED)
        if self._plain is not None:
            return self._by_place(job)
        array = job.spec.array_id
        if array is None or self._array != (array, self.lowest):
            self.lowest -= 1
            self._array = (array, self.lowest) if array is not None else None
        return self.lowest + 1 - job.spec.nice

    def _by_place(self, job: Job) -> int:
        """Return the priority where no plugin gives one, the nice value taken off (recorded: queue_nice_released)."""
        if self._plain is not None:
            return max(1, self._plain(job) - job.spec.nice)
        return self.below() - job.spec.nice

    def fresh(self, job: Job, occasion: Occasion) -> int:
        """Return the priority of a job that is not among the eligible ones at this moment."""
        self.given.discard(job.id)
        self._rested_at = _NEVER
        if self.prioritizer is not None:
            return self._asked(job, occasion)
        return self._by_place(job)

    def renewed(self, job: Job) -> int:
        """Return the priority of a job that waits and is released though it is not held.

        Where the order of submission counts alone the nice value is not taken off (recorded: queue_nice_not_held).
        """
        if self.prioritizer is not None or self._plain is not None:
            return self.fresh(job, Occasion.RELEASED)
        self.given.discard(job.id)
        self._rested_at = _NEVER
        return self.below()

    def below(self) -> int:
        """Hand out a priority below all others (priority/basic, slurm-gang-and-select 5.1)."""
        self.lowest -= 1
        return self.lowest + 1

    def _asked(self, job: Job, occasion: Occasion) -> int:
        prioritizer = self.prioritizer
        assert prioritizer is not None
        call = functools.partial(prioritizer.fresh, (job,), occasion, self._view)
        if not self._forgiveness.on:
            return self._queue.set_priority(job, self._checked(job, call))
        usual: Priority = job.priority or 1
        return self._queue.set_priority(
            job, self._forgiveness.run(lambda: self._checked(job, call), usual, job)
        )

    def _checked(self, job: Job, call: Callable[[], Any]) -> Priority:
        answer: Any = guarded(self._policies, HOOK, job, call)
        if not isinstance(answer, list | tuple) or len(answer) != 1:
            raise self._policies.fault(
                HOOK, job, f"fresh returned {answer!r:.80}; allowed: one priority per job"
            )
        if answer[0] is None:
            return job.priority or 1
        return self._valid(job, answer[0])

    def _valid(self, job: Job, found: Any) -> Priority:
        values = found.values() if isinstance(found, Mapping) else (found,)
        if not values or not all(type(each) is int and 1 <= each <= HIGHEST for each in values):
            text = f"gave it the priority {found!r:.80}; allowed: 1 to {HIGHEST}, or one for each partition"
            raise self._policies.fault(HOOK, job, text)
        return cast(Priority, found)

    # ------------------------------------------------------------------------------ all jobs
    @property
    def next_at(self) -> Seconds | None:
        """When all priorities are due, as long as that can make a difference; None: not by themselves.

        While no job runs they are once: what has been used only fades from then on.
        """
        prioritizer = self.prioritizer
        if prioritizer is None or not self._queue.entries:
            return None
        if not self._active:
            return prioritizer.next_at if self._rested_at != self._ledger.freed else None
        return prioritizer.next_at

    def due(self, now: Seconds) -> bool:
        """Whether all priorities have to be worked out anew."""
        at = self.prioritizer.next_at if self.prioritizer is not None else None
        return at is not None and at <= now + _TINY

    def again(self) -> bool:
        """Work all priorities out anew; say whether any job now stands elsewhere in the queue."""
        prioritizer, ledger = self.prioritizer, self._ledger
        assert prioritizer is not None
        if self.given:
            self.given.intersection_update(ledger.jobs)
        given = self.given
        jobs = [job for job in self._queue.waiting.values() if job.priority and job.id not in given]
        answer: Any = guarded(self._policies, HOOK, None, lambda: prioritizer.again(jobs, self._view))
        self._rested_at = _NEVER if self._active else ledger.freed
        if not isinstance(answer, Mapping):
            text = f"again returned {answer!r:.80}; allowed: job id -> priority"
            raise self._policies.fault(HOOK, None, text)
        at = prioritizer.next_at
        if at is not None and at <= ledger.now:
            text = f"its next_at is {at!r:.80} after it was asked at {ledger.now:g}; allowed: a later instant, or None"
            raise self._policies.fault(HOOK, None, text)
        found = {}
        for job_id, priority in answer.items():
            job = ledger.jobs.get(job_id)
            if job is None:
                text = f"again named job {job_id!r:.40}, which is neither pending nor active"
                raise self._policies.fault(HOOK, None, text)
            found[job] = (
                priority if type(priority) is int and 1 <= priority <= HIGHEST else self._valid(job, priority)
            )
        return self._queue.renew(found)

    # ------------------------------------------------------------------------------ adoption
    def save(self) -> dict[str, Any]:
        """Return what a look at the jobs does not tell, for `restore`."""
        return {
            "lowest_priority": self.lowest,
            **(
                {"array": self._array[0]} if self._array is not None and self._array[1] == self.lowest else {}
            ),
            "given_priority": sorted(self.given & self._ledger.jobs.keys()),
            **({"rested_at": self._rested_at} if self._rested_at == self._ledger.freed else {}),
        }

    def restore(self, memory: Mapping[str, Any]) -> None:
        """Go on where another engine stood."""
        self.lowest = memory["lowest_priority"]
        self._array = (memory["array"], self.lowest) if "array" in memory else None
        self.given = set(memory.get("given_priority", ()))
        self._rested_at = memory.get("rested_at", _NEVER)
