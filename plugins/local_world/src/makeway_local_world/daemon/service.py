"""Answer what comes over the socket, in terms of the engine: what `app` offers as routes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import attrs

from makeway.config import parse_toml
from makeway.model import JobState
from makeway.record import Line
from makeway.worlds.events import NodesDrained, NodesUp
from makeway_live.drive import Live
from makeway_live.views import Displacers, Shown
from makeway_local_world import submission
from makeway_local_world.daemon import wards
from makeway_local_world.daemon.bookings import Calendar
from makeway_local_world.daemon.desk import Desk, Unwritten
from makeway_local_world.daemon.intake import Intake, Refusal, Taken
from makeway_local_world.daemon.past import Past
from makeway_local_world.daemon.people import Rules, forget, name_of, rules_of, veil, who_is
from makeway_local_world.daemon.reserve import Reserve
from makeway_local_world.daemon.verbs import Order, Outcome, Verbs
from makeway_local_world.daemon.waiting import Waiting
from makeway_local_world.handed import ranges
from makeway_local_world.places import Places
from makeway_local_world.processes.ends import end_of
from makeway_local_world.processes.saving import words_of
from makeway_local_world.requests import AFTER, Request, parse_after

T = TypeVar("T")
_HAVE = ("RUNNING", "SUSPENDED", "COMPLETING")
"""States in which a job has what it was given."""
_FAILED = ("FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "TIMEOUT")
"""Ends that were neither good nor wanted by a person."""
STOPPED = "stopped by a signal; it keeps its CPUs"
PATIENCE = 1.0
"""Seconds for which a look at the queue waits for the engine; then it shows what was there before."""


@attrs.frozen(kw_only=True)
class Caller:
    """Who asks."""

    uid: int
    gid: int
    control: bool = True
    """Whether the caller may change anything; a page that only shows may not."""

    @property
    def name(self) -> str:
        """The login name."""
        return name_of(self.uid)


class NoJob(Exception):  # noqa: N818  # an answer, not a fault
    """There is no such job."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"there is no job {job_id}")


class Service:
    """One daemon, seen from its socket."""

    def __init__(
        self,
        live: Live,
        places: Places,
        rules: Rules,
        source: str,
        plugins: Mapping[str, Any] | None = None,
    ) -> None:
        self.live = live
        self.plugins = plugins
        """Policies and worlds by name that need no installation."""
        self.places = places
        self.rules = rules
        self.source = source
        """The configuration's file, for people."""
        self.started_at = time.time()
        self.desk = Desk(live)
        self.past = Past(places.state / "journal.db")
        self.displacers = Displacers()
        self.warded = wards.Warded(live.world)
        self.reserve = Reserve(places.state)
        if wards.read(places.state) is not None or self.reserve.why:
            self.warded.drained = live.engine.ledger.all_nodes
        live.world = self.warded
        self.intake = Intake(self.desk, places.state, self.past, lambda: self.rules.share)
        for line in self.past.preemptions():
            self.displacers.heard(Line(line["at"], "preempt", line["job"], line))
        self.waiting = Waiting(
            lambda: self.desk.engine, self.past.state_of, self.past.tasks, lambda command: live.feed(command)
        )
        self.verbs = Verbs(
            lambda: self.desk.engine,
            lambda: self.rules,
            self.waiting.why,
            self.past.state_of,
            lambda job: (self.displacers.of(job) or ("", "", 0.0))[0],
            lambda wall: wall - live.clock.wall() + live.clock.now(),
        )
        self.stepped: Callable[[int], None] = lambda step: None
        """Called on the engine's thread after each step that was written down, with its number."""
        self.trouble = ""
        """Why nothing is started now; empty: all is well. Every command says so."""
        self.troubled: Callable[[], None] = lambda: None
        """Called on the engine's thread when something has gone wrong that stops starts."""
        self.trouble = self.reserve.why
        self.desk.failing = self._failing
        self.desk.after_turn.append(self._heard)
        self.calendar = Calendar(self.desk, places.state, lambda: self.rules, plugins)
        self._warn(live.engine.ledger.jobs)
        self._shown: list[dict[str, Any]] = []
        self._shown_at = 0.0

    # ------------------------------------------------------------------- on the engine's thread
    def _heard(self, lines: Sequence[Line]) -> None:
        for line in lines:
            self.displacers.heard(line)
        self.waiting.heard(lines)
        self.intake.heard(lines)
        self.stepped(self.desk.step)

    def _failing(self, why: str) -> bool:
        """A step could not be written: give room back, and start nothing until there is room again."""
        first, self.trouble = not self.trouble, why
        helped = self.reserve.give(why)
        if first:
            self.troubled()
        return helped

    def look(self) -> list[dict[str, Any]]:
        """Return all live jobs as they are now; called on the engine's thread."""
        jobs = [self._with_reason(job) for job in self._as_shown().jobs()]
        self._shown, self._shown_at = jobs, time.time()
        return jobs

    def _as_shown(self) -> Shown:
        live = self.live
        now = max(live.clock.now(), live.engine.ledger.now)
        zero = live.clock.wall() - live.clock.now()
        return Shown(live.engine, self.displacers, zero, now, live.unwritten, after=AFTER)

    def _with_reason(self, job: dict[str, Any]) -> dict[str, Any]:
        """Let a job that waits for others say so, and one that runs and was stopped by a signal."""
        why = self.waiting.why(job["id"])
        if why is None and job["state"] == "RUNNING" and self.warded.stopped_by_a_signal(job["id"]):
            why = STOPPED
        if job["gres"] and job["state"] in _HAVE:
            job = {**job, "gpus": self.warded.gpus_of(job["id"])}
        return job if why is None else {**job, "reason": why}

    # ----------------------------------------------------------------------------- the queue
    async def ask(self, work: Callable[[], T]) -> T:
        """Have something done on the engine's thread."""
        return await asyncio.wrap_future(self.desk.ask(work))

    async def queue(self, caller: Caller, user: str | None = None) -> dict[str, Any]:
        """Return all live jobs; if the engine is busy for long, as they were a moment ago."""
        stale = False
        try:
            jobs = await asyncio.wait_for(self.ask(self.look), PATIENCE)
        except TimeoutError:
            jobs, stale = self._shown, True
        shown = veil(self.rules, caller.uid, jobs)
        if user is not None:
            shown = [job for job in shown if job["user"] == user]
        at = self._shown_at if stale else time.time()
        return {"at": at, "stale": stale, "sequence": self.desk.step, "trouble": self.trouble, "jobs": shown}

    async def job(self, caller: Caller, job_id: str) -> dict[str, Any]:
        """Return one job, live or ended.

        :raises NoJob: there is none.
        """
        (found,) = await self.jobs(caller, [job_id])
        return found

    async def jobs(self, caller: Caller, job_ids: Sequence[str]) -> list[dict[str, Any]]:
        """Return jobs, live or ended.

        :raises NoJob: one of them is not there.
        """
        live = await self.ask(lambda: self._live(job_ids))
        found = await self.elsewhere(lambda: [live.get(each) or self._ended(each) for each in job_ids])
        for job_id, job in zip(job_ids, found, strict=True):
            if job is None:
                raise NoJob(job_id)
        return veil(self.rules, caller.uid, [job for job in found if job is not None])

    def _live(self, job_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return those of these jobs that have not ended, as they are now; called on the engine's thread."""
        jobs, shown = self.live.engine.ledger.jobs, self._as_shown()
        return {each: self._with_reason(shown.job(jobs[each])) for each in job_ids if each in jobs}

    async def not_ended(self, job_ids: Sequence[str]) -> Sequence[str]:
        """Return which of these jobs are still to be waited for.

        These are all from the first one on that the engine has. Once it has none, those whose end is not written down
        yet: ends are written in their order, so that of one left out before is there as well.
        """
        for at, job_id in enumerate(job_ids):
            if job_id in self.live.engine.ledger.jobs:
                return job_ids[at:]
        return await self.elsewhere(lambda: [each for each in job_ids if self.past.ended_as(each) is None])

    def _ended(self, job_id: str) -> dict[str, Any] | None:
        """Return a job that has ended, with what its last incarnation came to; None: it is unknown."""
        found = self.past.job(job_id)
        return None if found is None else self._with_end(found)

    def _with_end(self, job: dict[str, Any]) -> dict[str, Any]:
        end = (
            end_of(self.places.state, str(job["id"]), int(job["incarnation"])) if job["incarnation"] else None
        )
        if end is None:
            return {
                **job,
                "exit_code": None,
                "exit_signal": None,
                "why": "",
                "cpu_seconds": None,
                "peak_kb": None,
                "gpus": [],
            }
        return {
            **job,
            "exit_code": end.code,
            "exit_signal": end.signal,
            "why": end.why,
            "cpu_seconds": round(end.user_seconds + end.system_seconds, 3),
            "peak_kb": end.peak_kb,
            "gpus": self.warded.site.gpus.named(end.gpus),
        }

    async def elsewhere(self, work: Callable[..., T], *values: Any) -> T:
        """Have something done in a thread of its own, such as reading the journal."""
        return await asyncio.get_running_loop().run_in_executor(None, work, *values)

    async def tasks(self, job_id: str) -> list[str]:
        """Return the jobs that an id stands for: itself, or the tasks of an array.

        :raises NoJob: it stands for none.
        """
        if await self.elsewhere(self.past.state_of, job_id) is not None:
            return [job_id]
        found = await self.elsewhere(self.past.tasks, job_id)
        if not found:
            raise NoJob(job_id)
        return found

    # ------------------------------------------------------------------------------- changes
    async def submit(self, caller: Caller, request: Request) -> Taken:
        """Take a job in."""
        who = who_is(caller.uid, caller.gid)
        if request.priority is not None and not self.rules.is_operator(caller.uid):
            raise Refusal("only operators may give a priority")
        if request.nice < 0 and not self.rules.is_operator(caller.uid):
            raise Refusal("only operators may raise a priority (a negative --nice)")
        if not self.rules.is_operator(caller.uid):
            for name in request.attributes:
                if name not in self.rules.attributes:
                    allowed = ", ".join(self.rules.attributes) or "none"
                    raise Refusal(
                        f"attribute {name}: allowed by world.settings.attributes: {allowed}; operators any"
                    )
        if request.process_nice < 0 and caller.uid != 0:
            raise Refusal("only root may lower the niceness of processes (a negative --process-nice)")
        if request.checkpointable or request.checkpoint_every is not None:
            words = words_of(request.command, request.script)
            why = self.warded.site.saving.refusal(words, request.environment, request.gpus)
            if why:
                raise Refusal(f"--checkpointable: {why}")
        if self.trouble:
            raise Full(self.trouble)
        if request.dependency is not None:
            await self._check_conditions(request.dependency)
        return await self.intake.take(request, who, free=self.rules.is_operator(caller.uid))

    async def _check_conditions(self, text: str, named: str = "--dependency") -> None:
        try:
            afters = parse_after(text)
        except ValueError:
            return  # told with all the others
        for after in afters:
            for job_id in after.jobs:
                try:
                    await self.tasks(job_id)
                except NoJob as error:
                    raise Refusal(f"{named}: {error}") from None

    async def order(self, caller: Caller, order: Order) -> dict[str, Any]:
        """Do what a person asks of jobs."""
        after = dict(order.changes).get("dependency") if order.verb == "update" else None
        if after:
            await self._check_conditions(after, "dependency")
        outcome: Outcome = await self.ask(lambda: self._judge(order, caller))
        if outcome.commands:
            names = [command.job_id for command in outcome.commands]
            refused = await asyncio.wrap_future(
                self.desk.tell(outcome.commands, lambda: self.desk.refusal(outcome.commands))
            )
            outcome.refused.update(refused)
            if refused and not order.jobs:
                outcome.forget(await self.ask(lambda: self._over(refused)))
            await self.ask(lambda: self._warn(names))
            if after is not None:
                await self.ask(lambda: self.waiting.renew(names))
        return outcome.as_dict()

    def _judge(self, order: Order, caller: Caller) -> Outcome:
        """Judge an order; another command is stored at once, for between two steps no job can start."""
        outcome = self.verbs.judge(order, caller.uid, caller.name)
        if order.command:
            for job_id in {submission.stored_as(command.job_id) for command in outcome.commands}:
                submission.rewrite(self.places.state, job_id, order.command)
        return outcome

    async def request(self, caller: Caller, job_id: str, *, failed: bool) -> dict[str, Any]:
        """Return what another submission like that of a job asks for; the client adds the environment.

        :param failed: whether only those tasks are wanted that failed.
        """
        tasks = await self.tasks(job_id)
        kept = await self.elsewhere(submission.kept, self.places.state, tasks[0])
        if kept.uid != caller.uid:
            raise Refusal(f"job {job_id} belongs to {kept.user}; only {kept.user} may do that")
        found = {**kept.asked, "command": list(kept.command), "script": kept.script}
        if failed:
            states = await self.elsewhere(lambda: {each: self.past.state_of(each) for each in tasks})
            tasks = [each for each in tasks if states[each] in _FAILED]
            if not tasks:
                raise Refusal(f"job {job_id}: nothing of it has failed")
        if "array" in found and (failed or tasks == [job_id]):
            _, mark, most = str(found["array"]).partition("%")
            found["array"] = ranges(int(each.rpartition("_")[2]) for each in tasks) + mark + most
        return found

    def _over(self, job_ids: Iterable[str]) -> set[str]:
        """Return those of these jobs that are over, or only have processes left to go."""
        engine = self.live.engine
        jobs = engine.ledger.jobs
        return {each for each in job_ids if each not in jobs or engine.transitions.is_leaving(jobs[each])}

    def _warn(self, job_ids: Iterable[str]) -> None:
        """Tell jobs that get a signal ahead of their time limit which limit that is, lest it was changed."""
        jobs = self.live.engine.ledger.jobs
        for job_id in job_ids:
            job = jobs.get(job_id)
            if job is not None and job.spec.signal is not None and job.state is not JobState.PENDING:
                self.warded.limit(job_id, job.time_limit)

    async def drain(self, caller: Caller, reason: str) -> dict[str, Any]:
        """Start nothing any more; what runs goes on."""
        drain = wards.drained(caller.name, reason)
        await self.elsewhere(wards.write, self.places.state, drain)
        await self.ward()
        return {"drained": attrs.asdict(drain)}

    async def undrain(self) -> dict[str, Any]:
        """Start jobs again."""
        await self.elsewhere(wards.write, self.places.state, None)
        await self.ward()
        return {"drained": None}

    async def mend(self) -> bool:
        """See whether what was wrong is over; say whether it is."""
        if self.desk.live.unwritten is None and await self.elsewhere(self.reserve.take):
            self.trouble = ""
        elif self.reserve.why:
            self.trouble = self.reserve.why
        await self.ward()
        return not self.trouble

    async def ward(self) -> None:
        """Let the engine know whether nodes are drained: by people, or since nothing can be written down."""
        nodes = self.desk.engine.ledger.all_nodes
        closed = bool(self.trouble) or wards.read(self.places.state) is not None
        before, self.warded.drained = self.warded.drained, nodes if closed else 0
        if before != self.warded.drained:
            event = NodesDrained(nodes) if closed else NodesUp(nodes)
            with contextlib.suppress(Unwritten):  # the survey says so once steps can be written again
                await asyncio.wrap_future(self.desk.tell([event], lambda: None))

    async def reload(self, text: str, source: str) -> dict[str, Any]:
        """Go on under another configuration; if it does not fit, nothing changes and the reason is raised.

        :param text: the configuration, as TOML: the client has read it with rights of its own.
        :raises ConfigError, PluginError, PolicyError, JournalError: it cannot take over.
        """
        config = parse_toml(text, source)
        rules = await self.elsewhere(rules_of, config, self.places, source, self.plugins)
        notes = []
        world, before = config.world, self.live.engine.config.world
        if (world.name, world.settings, world.state) != (before.name, before.settings, before.state):
            notes.append("other settings of the world count after a restart: makeway down, makeway up")
        watched, wanted = map(_uses, (self.warded.site.cluster.partitions, config.partition))
        if watched != wanted:
            notes.append("other uses of this machine count after a restart: makeway down, makeway up")
        await self.calendar.reloaded(config, lambda: self.live.reload(config, self.plugins, source=source))
        self.rules, self.source = rules, source
        forget()
        return {"config": source, "notes": notes, "policy": config.policy.preempt}

    async def last(self, caller: Caller, *, terminal: bool) -> str | None:
        """Return the job, or the array, that a user submitted last; None: there is none.

        :param terminal: whether only jobs count that have a terminal, and have not ended.
        """
        if not terminal:
            return await self.elsewhere(self.past.last_of, caller.name)
        jobs = await self.ask(lambda: [job.spec for job in self.live.engine.ledger.jobs.values()])
        mine = [spec.id for spec in jobs if spec.user == caller.name and spec.array_id is None]
        return await self.elsewhere(lambda: next(filter(self._has_terminal, reversed(mine)), None))

    def _has_terminal(self, job_id: str) -> bool:
        try:
            return bool(submission.kept(self.places.state, job_id).asked.get("pty"))
        except submission.SubmissionError:
            return False

    async def history(
        self, caller: Caller, since: float, until: float, user: str | None, limit: int
    ) -> dict[str, Any]:
        """Return jobs that have ended."""

        def look() -> list[dict[str, Any]]:
            return [self._with_end(job) for job in self.past.ended(since, until, user, limit)]

        return {"jobs": veil(self.rules, caller.uid, await self.elsewhere(look))}

    # --------------------------------------------------------------------------------- logs
    async def logs(self, caller: Caller, job_id: str) -> dict[str, Any]:
        """Tell where the output of a job is; the client opens it with rights of its own."""
        tasks = await self.tasks(job_id)
        if tasks != [job_id]:
            return {"job": job_id, "tasks": tasks}
        shown = await self.job(caller, job_id)
        if not self.rules.may_see(caller.uid, str(shown["user"])):
            raise Refusal(f"job {job_id} belongs to {shown['user']}")
        if shown["state"] == "REFUSED":
            raise Refusal(f"job {job_id} was refused and never ran; see makeway why {job_id}")
        stored = await self.elsewhere(submission.where, self.places.state, job_id)
        names = submission.Names(
            job_id=job_id,
            array_id=shown.get("array"),
            array_task=int(job_id.rpartition("_")[2]) if shown.get("array") else None,
            name=str(shown["name"]),
            user=str(shown["user"]),
            node=str(shown["nodes"]) or os.uname().nodename,
            incarnation=int(shown.get("incarnation") or await self.elsewhere(self.past.starts, job_id) or 1),
        )
        output, error = submission.paths(stored, names)
        return {
            "job": job_id,
            "state": shown["state"],
            "ended": shown.get("ended_at") is not None,
            "incarnation": names.incarnation,
            "output": output,
            "error": error,
        }

    # -------------------------------------------------------------------------------- itself
    def about(self) -> dict[str, Any]:
        """Return what the daemon says of itself."""
        config = self.live.engine.config
        drain = wards.read(self.places.state)
        return {
            "pid": os.getpid(),
            "started_at": self.started_at,
            "state": str(self.places.state),
            "socket": str(self.places.socket),
            "system": self.places.system,
            "user": name_of(os.geteuid()),
            "config": self.source,
            "cluster": config.cluster.name,
            "policy": {"preempt": config.policy.preempt, "select": config.policy.select},
            "world": config.world.name,
            "partitions": [partition.name for partition in config.partition],
            "nodes": [[node.name, node.cpus] for node in self.live.engine.ledger.cluster.nodes],
            "gpus": self.warded.gpus(),
            "sequence": self.desk.step,
            "trouble": self.trouble,
            "use": self._use(),
            "drained": None if drain is None else attrs.asdict(drain),
            "cgroups": self.warded.site.cgroups.as_dict(),
        }

    def _use(self) -> dict[str, Any]:
        """Return what shows that a person uses the machine, and for which partitions one does, and since when."""
        partitions = self.live.engine.ledger.cluster.partitions
        sources = {name for each in partitions for name in each.vacate_on_use}
        return {"sources": sorted(sources), "now": self.live.engine.in_use.shown()}

    def close(self) -> None:
        """Take nothing any more."""
        self.intake.close()
        self.past.close()


def _uses(partitions: Iterable[Any]) -> set[tuple[Any, ...]]:
    """Return what counts as use of the machine, by partition."""
    return {(each.name, tuple(each.vacate_on_use), each.quiet) for each in partitions if each.vacate_on_use}


class Full(Exception):  # noqa: N818  # an answer, not a fault
    """Nothing can be written down, so nothing is taken in."""
