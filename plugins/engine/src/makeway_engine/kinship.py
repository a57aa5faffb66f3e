"""Ask a policy of priorities about kinds of jobs (`makeway.priorities.KindredPrioritizer`), and check its answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, TypeVar

from makeway.errors import MakewayError
from makeway.model import ClusterView, Job, Seconds
from makeway.priorities import KindredPrioritizer
from makeway.registry import Policies

HOOK = "makeway_priority"
HIGHEST = 2**32 - 1
_VERBS = ("kind_of", "of_some", "ranks", "standings", "leads_among", "ranks_until", "next_after")
T = TypeVar("T")


class Kinship:
    """What is asked of it in one run."""

    def __init__(
        self,
        prioritizer: KindredPrioritizer,
        policies: Policies,
        view: ClusterView,
        given: Collection[str],
    ) -> None:
        """Be there for one run.

        :param given: jobs whose priority was given.
        """
        self._prioritizer = prioritizer
        self._policies = policies
        self._view = view
        self.given = given

    @property
    def now(self) -> Seconds:
        """The present."""
        return self._view.now

    def _ask(self, job: Job | None, call: Callable[..., T], *given: object) -> T:
        try:
            return call(*given)
        except MakewayError:
            raise
        except (Exception, SystemExit) as error:
            raise self._policies.blame(HOOK, job, error) from error

    def kind_of(self, job: Job) -> Hashable:
        """Return what those have in common that keep their order; None: this one may pass anybody."""
        return self._ask(job, self._kind_of, job)

    def _kind_of(self, job: Job) -> Hashable:
        found = self._prioritizer.kind_of(job, self._view)
        hash(found)
        return found

    def priorities(self, jobs: Sequence[Job]) -> Sequence[int]:
        """Return the priorities of some jobs by now."""
        answer: Any = self._ask(None, self._prioritizer.of_some, jobs, self._view)
        if not isinstance(answer, list | tuple) or len(answer) != len(jobs):
            text = f"of_some returned {answer!r:.80}; allowed: one priority per job"
            raise self._policies.fault(HOOK, None, text)
        for job, each in zip(jobs, answer, strict=True):
            if type(each) is not int or not 1 <= each <= HIGHEST:
                raise self._policies.fault(
                    HOOK, job, f"of_some gave it {each!r:.80}; allowed: 1 to {HIGHEST}"
                )
        return answer

    def ranks(self) -> object:
        """Return the same object as long as only age changes priorities."""
        return self._ask(None, self._prioritizer.ranks, self._view)

    def standings(self, jobs: Sequence[Job]) -> Sequence[tuple[float, Seconds] | None]:
        """Return about where jobs stand, and up to when; None: that cannot be said of one."""
        answer: Any = self._ask(None, self._prioritizer.standings, jobs, self._view)
        if not isinstance(answer, list | tuple) or len(answer) != len(jobs):
            text = f"standings returned {answer!r:.80}; allowed: one for each job"
            raise self._policies.fault(HOOK, None, text)
        now = self._view.now
        for job, each in zip(jobs, answer, strict=True):
            if each is not None and not (each[0] == each[0] and each[1] > now):
                text = f"standings gave it {each!r:.80} at {now:g}; allowed: a number and a later instant"
                raise self._policies.fault(HOOK, job, text)
        return answer

    def leads_among(self, jobs: Sequence[Job]) -> Seconds:
        """Return when the first of these jobs may stand behind another one, ranks being the same."""
        return self._instant("leads_among", self._ask(None, self._prioritizer.leads_among, jobs, self._view))

    def ranks_until(self) -> Seconds:
        """Return when `ranks` may change though nothing happens."""
        return self._instant("ranks_until", self._ask(None, self._prioritizer.ranks_until, self._view))

    def next_after(self) -> Seconds:
        """Return when priorities change next."""
        return self._instant("next_after", self._ask(None, self._prioritizer.next_after, self._view))

    def _instant(self, verb: str, answer: Any) -> Seconds:
        now = self._view.now
        if type(answer) not in (int, float) or not answer > now:
            text = f"{verb} returned {answer!r:.80} at {now:g}; allowed: a later instant, in seconds since the start"
            raise self._policies.fault(HOOK, None, text)
        return float(answer)


def kinship_of(prioritizer: object, policies: Policies, view: ClusterView, given: set[str]) -> Kinship | None:
    """Return how to ask it; None: it does not know kinds of jobs."""
    if not all(hasattr(prioritizer, verb) for verb in _VERBS):
        return None
    asked: Any = prioritizer
    return Kinship(asked, policies, view, given)


__all__ = ["HIGHEST", "HOOK", "Kinship", "kinship_of"]
