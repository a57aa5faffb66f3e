"""Give jobs their priorities: as a policy says (`makeway_priority`), else by their order of submission."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from makeway.errors import MakewayError
from makeway.model import ClusterView, Job, JobState, Seconds
from makeway.priorities import LeisurelyPrioritizer, Occasion, OrderlyPrioritizer, Priority
from makeway.registry import Policies, guarded
from makeway_engine.forgiving import Forgiveness
from makeway_engine.kinship import HIGHEST, HOOK, Kinship, kinship_of
from makeway_engine.ledger import Ledger
from makeway_engine.queue import Queue

_FIRST = 4294901759
"""The first priority that priority/basic hands out."""
_TINY = 1e-6
_ONLY_INT = {int}
_PENDING = JobState.PENDING
_FEW = 4
_NEVER = -1
_SPARE = 1000
"""Jobs that have left and are kept in mind, before they are swept out."""


class Priorities:
    """Who gives priorities in one run, and whose were given by somebody else."""

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
        self._ask_ahead = getattr(self.prioritizer, "steady_until", None)
        self._plain = plain
        self.by_turn = plain is None and self.prioritizer is None
        """Whether each job gets a priority one lower than the last one's."""
        self.lowest = _FIRST
        self._array: tuple[str, int] | None = None
        """The array whose tasks are being submitted, and `lowest` since then.

        Tasks that nobody comes between share a number (slurm-priority-and-limits 8 no. 3).
        """
        self.given: set[str] = set()
        """Jobs whose priority was given with the job or by a person: it is not worked out anew."""
        self.steady_until: Seconds | None = None
        """Up to this instant working them out changes no order, as long as nothing happens; None: not known."""
        self._leisurely = cast(LeisurelyPrioritizer, self.prioritizer)
        """The same, where it is one."""
        self.at_leisure = False
        """Whether priorities are worked out only when an order decides something."""
        self.owed: dict[str, Job] = {}
        """Jobs that were submitted, and whose priority nobody has worked out yet; some have started since."""
        self._orderly = cast(OrderlyPrioritizer, self.prioritizer)
        """The prioritizer, where it keeps those who wait in line."""
        self._keeps_line = False
        """Whether it does."""
        self._line: set[str] = set()
        """Those who are in it, of all who wait and may be tried; some have started since. Empty: there is none."""
        self._rough = False
        """Whether priorities say who stands before whom, and no more."""
        self._rested_at = _NEVER
        """What the ledger had freed when all were worked out while nobody ran; nobody has come since."""

    @property
    def looks_ahead(self) -> bool:
        """Whether a plugin can tell for how long working priorities out changes nothing."""
        return self._ask_ahead is not None

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
        if self.at_leisure:
            self._leisurely.note(job, self._view)
            self.owed[job.id] = job
            return 1
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
        """Hand out a priority below all others (priority/basic, spec slurm-gang-and-select 5.1)."""
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

        While nobody runs they are once: what has been used only fades from then on.
        """
        prioritizer, steady = self.prioritizer, self.steady_until
        if prioritizer is None or not self._queue.entries:
            return None
        if not self._active:
            return prioritizer.next_at if self._rested_at != self._ledger.freed else None
        if steady == math.inf:
            return None
        at = prioritizer.next_at
        if at is None or steady is None or steady < at:
            return at
        return steady

    def look_ahead(self, jobs: Sequence[Job]) -> None:
        """Find out for how long working them out would change nothing that matters, from this instant on.

        :param jobs: the eligible ones, as they stand in line; none where nobody has room, whoever stands first.
        """
        ask = self._ask_ahead
        if ask is None or self._queue.ranked:
            return
        answer: Any = guarded(self._policies, HOOK, None, lambda: ask(jobs, self._view))
        if answer is not None and (type(answer) not in (int, float) or answer != answer):
            text = f"steady_until returned {answer!r:.80}; allowed: seconds since the start, or None"
            raise self._policies.fault(HOOK, None, text)
        self.steady_until = answer

    def due(self, now: Seconds) -> bool:
        """Whether all priorities have to be worked out anew."""
        at = self.prioritizer.next_at if self.prioritizer is not None else None
        return at is not None and at <= now + _TINY

    def again(self) -> bool:
        """Work all priorities out anew; say whether anybody now stands elsewhere in the queue."""
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

    # --------------------------------------------------------------------------- at leisure
    def be_leisurely(self) -> bool:
        """Work priorities out only when `settle` says so from now on, if whoever gives them can; say whether it is so.

        Until then a job that is submitted has the priority 1.
        """
        found: Any = getattr(self.prioritizer, "at_leisure", False)
        self.at_leisure = found is True and not self._queue.ranked
        self._keeps_line = hasattr(self.prioritizer, "beside")
        return self.at_leisure

    def kinship(self) -> Kinship | None:
        """Return how to ask about kinds of jobs, if whoever gives priorities knows them; while at leisure."""
        return (
            kinship_of(self.prioritizer, self._policies, self._view, self.given) if self.at_leisure else None
        )

    def settle(self, *, roughly: bool = False, due: bool | None = None) -> bool:
        """Work out what was put off up to now; say whether anybody stands elsewhere who had a priority before.

        :param roughly: it is enough to know who stands before whom.
        :param due: whether all priorities have to be worked out; None: that is not known.
        """
        queue, owed, given = self._queue, self.owed, self.given
        waiting = queue.waiting
        if due is None:
            due = self.due(self._ledger.now)
        if due and not self._active:
            self._rested_at = self._ledger.freed
        orderly = roughly and self._keeps_line and not given
        line = self._line
        if orderly and line and self._settle_beside(line, due=due):
            return False
        line.clear()
        every = due or self._rough
        if every:
            if given:
                given.intersection_update(self._ledger.jobs)
                jobs = [job for job in waiting.values() if job.priority and job.id not in given]
            else:
                jobs = [job for job in waiting.values() if job.priority]
        else:
            jobs = [job for job in owed.values() if waiting.get(job.id) is job and job.priority]
        answer = self._asked_late(jobs)
        self._rough = False
        if not jobs:
            owed.clear()
            return False
        moved = queue.renew_all(jobs, answer, owed, just_now=due and self._is_of_now)
        owed.clear()
        if orderly and every:
            there = [job for _, job, _ in queue.entries]
            self._blamed(lambda: self._orderly.line_up(there, self._view))
            line.update([job.id for job in there])
        return moved

    def _asked_late(self, jobs: Sequence[Job]) -> Sequence[Priority]:
        """Return the priorities of jobs as of now."""
        answer: Any = self._blamed(lambda: self._leisurely.current(jobs, self._view))
        if jobs:
            self._check("current", jobs, answer)
        return cast(Sequence[Priority], answer)

    @property
    def _is_of_now(self) -> bool:
        """Whether priorities were last worked out for this very instant."""
        return self._leisurely.worked_out_at >= self._ledger.now - _TINY

    def stands(self) -> bool:
        """Whether those who wait surely stand as they did; then those who came are put among them."""
        line = self._line
        return bool(line) and not self.given and self._settle_beside(line, due=False)

    def _settle_beside(self, line: set[str], *, due: bool) -> bool:
        """Let those who came stand among those whose order is as before; False: all have to be worked out."""
        arrivals = self._queue.arrivals
        jobs = [job for _, job, _ in arrivals if job.id not in line and job.state is _PENDING]
        try:
            answer: Any = self._orderly.beside(jobs, self._view)
        except MakewayError:
            raise
        except (Exception, SystemExit) as error:
            raise self._policies.blame(HOOK, None, error) from error
        if answer is None:
            return False
        self._check("beside", jobs, answer)
        self._rough = True
        if due and len(arrivals) > 1 and self._is_of_now:
            return False  # those who arrived are put in order if anybody's priority has changed
        for job, priority in zip(jobs, answer, strict=True):
            self._queue.move(job, priority)
            line.add(job.id)
        self.owed.clear()  # who may not be tried yet comes into line when he may
        return True

    @property
    def unsettled(self) -> bool:
        """Whether somebody who came has no place yet among those who wait."""
        return bool(self.owed or ((self._line or self._rough) and self._queue.arrivals))

    def leave_line(self) -> None:
        """Forget who stands where: hardly anybody waits."""
        self._line.clear()

    def be_exact(self) -> None:
        """Work out priorities that say no more than who stands before whom."""
        if self._rough:
            self.settle()

    def _blamed(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except MakewayError:
            raise
        except (Exception, SystemExit) as error:
            raise self._policies.blame(HOOK, None, error) from error

    def _check(self, method: str, jobs: Sequence[Job], answer: Any) -> None:
        """Find priorities wrong that a method returned, or the instant that it left."""
        if not isinstance(answer, list | tuple) or len(answer) != len(jobs):
            text = f"{method} returned {answer!r:.80}; allowed: one priority per job"
            raise self._policies.fault(HOOK, None, text)
        if len(jobs) < _FEW:
            for job, each in zip(jobs, answer, strict=True):
                if type(each) is not int or not 1 <= each <= HIGHEST:
                    self._valid(job, each)
        elif set(map(type, answer)) != _ONLY_INT or min(answer) < 1 or max(answer) > HIGHEST:
            for job, each in zip(jobs, answer, strict=True):
                self._valid(job, each)
        at = self._leisurely.next_at
        if at is not None and at <= self._ledger.now:
            asked = f"after it was asked at {self._ledger.now:g}; allowed: a later instant, or None"
            raise self._policies.fault(HOOK, None, f"its next_at is {at!r:.80} {asked}")

    def look_at_first(self, jobs: Sequence[Job]) -> None:
        """Find out for how long the first of these jobs stays before all others."""
        try:
            answer: Any = self._leisurely.leads_until(jobs, self._view)
        except MakewayError:
            raise
        except (Exception, SystemExit) as error:
            raise self._policies.blame(HOOK, None, error) from error
        if answer is not None and (type(answer) not in (int, float) or answer != answer):
            text = f"leads_until returned {answer!r:.80}; allowed: seconds since the start, or None"
            raise self._policies.fault(HOOK, None, text)
        self.steady_until = answer

    def forget_owed(self) -> None:
        """Forget those who wait no longer, now and then."""
        owed, waiting = self.owed, self._queue.waiting
        if not waiting:
            owed.clear()
        elif len(owed) > 2 * len(waiting) + _SPARE:
            self.owed = {job_id: job for job_id, job in owed.items() if waiting.get(job_id) is job}

    # ------------------------------------------------------------------------------ adoption
    def hand_over(self) -> dict[str, Any]:
        """Return what a look at the jobs does not tell, for `take_over`."""
        return {
            "lowest_priority": self.lowest,
            **(
                {"array": self._array[0]} if self._array is not None and self._array[1] == self.lowest else {}
            ),
            "given_priority": sorted(self.given & self._ledger.jobs.keys()),
            **({"rested_at": self._rested_at} if self._rested_at == self._ledger.freed else {}),
        }

    def take_over(self, memory: Mapping[str, Any]) -> None:
        """Go on where another engine stood."""
        self.lowest = memory["lowest_priority"]
        self._array = (memory["array"], self.lowest) if "array" in memory else None
        self.given = set(memory.get("given_priority", ()))
        self._rested_at = memory.get("rested_at", _NEVER)
