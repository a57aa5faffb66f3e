"""Tell why a job does not run, about when it will, and what another would displace; nothing is changed by that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs

from makeway.config import Config
from makeway.model import JobSpec, JobState, Stay
from makeway.state import State
from makeway_local_world.daemon import wards
from makeway_local_world.daemon.foresight import Foresight, look
from makeway_local_world.daemon.intake import Refusal
from makeway_local_world.daemon.people import who_is
from makeway_local_world.daemon.why import Known, story, victims
from makeway_local_world.processes.ends import End, end_of
from makeway_local_world.requests import Request, specs

if TYPE_CHECKING:
    from makeway_local_world.daemon.service import Caller, Service


_CURIOUS = ("PENDING", "SUSPENDED", "COMPLETING", "RUNNING")
"""States of tasks, the one that people ask about first."""


class Outlook:
    """Looks at what a daemon has, and ahead with copies of its engine."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def why(self, caller: Caller, job_id: str) -> dict[str, Any]:
        """Tell why a job does not run, who did that, what would have to happen, and about when.

        :raises NoJob: there is none.
        """
        names = await self._service.tasks(job_id)
        if names != [job_id]:
            return await self._why_of_array(caller, job_id, names)
        job = await self._service.job(caller, job_id)
        if not self._service.rules.may_see(caller.uid, str(job["user"])):
            raise Refusal(f"job {job_id} belongs to {job['user']}")
        known, state, config = await self._service.ask(lambda: self._known(job))
        lines = await self._service.elsewhere(self._service.past.lines_of, job_id)
        foresight = None
        idle = known.drained is None and not known.in_use
        if job["state"] in ("PENDING", "SUSPENDED") and not job["held"] and idle:
            foresight = await self._look_ahead(config, state, job_id)
        known = attrs.evolve(known, lines=lines, foresight=foresight)
        told = await self._service.elsewhere(story, known)
        expected = None
        if foresight is not None and foresight.starts_at is not None:
            expected = round(foresight.starts_at + known.zero, 3)
        return {
            "job": job,
            "told": told,
            "expected_at": expected,
            "displaced": job.get("displaced"),
            "displaces": [] if foresight is None else [attrs.asdict(each) for each in foresight.takes],
            "decision": None
            if foresight is None or foresight.decision is None
            else foresight.decision.as_dict(),
        }

    async def _why_of_array(self, caller: Caller, array_id: str, names: Sequence[str]) -> dict[str, Any]:
        """Tell how many tasks are in which state, and why the first of those that wait does."""
        states = {
            name: str(await self._service.elsewhere(self._service.past.state_of, name)) for name in names
        }
        first = min(names, key=lambda name: _CURIOUS.index(states[name]) if states[name] in _CURIOUS else 9)
        answer = await self.why(caller, first)
        counts = ", ".join(f"{number} {state.lower()}" for state, number in Counter(states.values()).items())
        return {**answer, "told": [f"array {array_id}: {counts}", *answer["told"]]}

    async def victims(self, caller: Caller, request: Request) -> dict[str, Any]:
        """Tell which jobs a job would displace now, without submitting it."""
        live = self._service.live
        who = who_is(caller.uid, caller.gid)

        def prepared() -> tuple[Known, State, Config, list[JobSpec]]:
            now = max(live.clock.now(), live.engine.ledger.now)
            new = specs(
                attrs.evolve(request, array=None, dependency=None), who, "new", now, live.clock.wall()
            )
            return *self._known({"id": "new", "time_limit": None}), new

        known, state, config, new = await self._service.ask(prepared)
        new = [attrs.evolve(each, submit_at=state.at, begin_at=None) for each in new]
        foresight = await self._look_ahead(config, state, "new", new)
        known = attrs.evolve(known, foresight=foresight)
        return {
            "told": await self._service.elsewhere(victims, known),
            "starts_at": None if foresight.starts_at is None else round(foresight.starts_at + known.zero, 3),
            "displaces": [attrs.asdict(each) for each in foresight.takes],
            "rejected": foresight.rejected,
            "decision": None if foresight.decision is None else foresight.decision.as_dict(),
        }

    async def _look_ahead(
        self, config: Config, state: State, job_id: str, new: Sequence[JobSpec] = ()
    ) -> Foresight:
        return await self._service.elsewhere(look, config, state, job_id, new)

    def _known(self, job: dict[str, Any]) -> tuple[Known, State, Config]:
        """Gather on the engine's thread what there is to say about a job."""
        service = self._service
        live, engine = service.live, service.live.engine
        others = {each["id"]: each for each in service.look()}
        mine = engine.ledger.jobs.get(str(job["id"]))
        stays: Sequence[Stay] = engine.stays(mine) if mine is not None else ()
        ahead: list[str] = []
        if mine is not None and mine.state is JobState.PENDING and not mine.held:
            order = [entry[1].id for entry in engine.queue.ordered()]
            if mine.id in order:
                ahead = list(dict.fromkeys(order[: order.index(mine.id)]))
        drain = wards.read(self._service.places.state)
        stopped = mine is not None and (mine.state is JobState.PENDING or mine.id in engine.in_use.stopped)
        end = self._last_end(job)
        known = Known(
            job=job,
            others=others,
            stays=stays,
            ahead=ahead,
            zero=live.clock.wall() - live.clock.now(),
            waits_for=self._service.waiting.stand(mine.id) if mine is not None else {},
            stays_held=mine is not None and service.verbs.is_held(mine),
            drained=None if drain is None else attrs.asdict(drain),
            in_use=engine.in_use.said(mine) if mine is not None and stopped else (),
            quiet=mine.partition.quiet if mine is not None else 0.0,
            trouble=self._service.trouble,
            failed="" if end is None else end.why,
            untold="" if end is None else end.untold,
            words=engine.policies.vocabulary(),
        )
        state = engine.save()
        return known, attrs.evolve(state, at=max(state.at, engine.ledger.now)), engine.config

    def _last_end(self, job: dict[str, Any]) -> End | None:
        """Return how the last incarnation that is over ended; None: that is not known."""
        last = int(job.get("incarnation") or 0)
        return end_of(self._service.places.state, str(job["id"]), last) if last else None
