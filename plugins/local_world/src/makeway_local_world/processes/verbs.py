"""Ask keepers for what an action says, and understand their answers."""

from __future__ import annotations

import signal as signals
import time
from collections.abc import Callable
from typing import Any

from makeway.model import JobState, SuspendedBy
from makeway.worlds.events import Action, Checkpoint, Kill, Resume, SendSignal, Start, Suspend
from makeway_local_world.keeping import proc
from makeway_local_world.keeping.cgroups import Cgroup
from makeway_local_world.processes import leftovers, news
from makeway_local_world.processes.case import Case
from makeway_local_world.processes.holding import Holding
from makeway_local_world.processes.machine import memory_available

ANSWER = 5.0
"""Seconds that a keeper has beyond what it was asked for; then it is continued, and after as many again killed."""
START_LIMIT = 60.0
"""Seconds that a start may take; orders about the job wait for it."""
_GO_ON = 2.0
"""Seconds that a keeper may take to continue a tree."""
_PAUSE = 0.001
"""Seconds between two looks whether all of a job is frozen."""
NO_GPU_FREED = "suspend frees no GPU; use requeue or checkpoint"


class Verbs:
    """What is asked of keepers."""

    def __init__(self, hand: Holding) -> None:
        self._hand = hand

    def _ask(self, case: Case, action: Action, within: float, do: str, **what: Any) -> None:
        """Ask a keeper for something that it is to have done within so many seconds."""
        serial = action.serial
        case.asked[serial] = action
        case.ask(do, id=serial, **what)
        self._watch(case, within, lambda: serial in case.asked)

    def watch_start(self, case: Case) -> None:
        """See that a start comes to something: its owner may stop its keeper, or have it open what never opens."""
        tries = case.tries
        self._watch(case, START_LIMIT, lambda: case.start is not None and case.tries == tries)

    def _watch(self, case: Case, within: float, waits: Callable[[], bool]) -> None:
        """Do as root what a keeper does not do in time: its owner, whose rights it has, may stop it.

        It is continued first; then it is killed with its job, so that nothing others wait for rests on it.
        """

        def late() -> bool:
            return self._hand.cases.get(case.key) is case and waits()

        def go_on() -> None:
            if late():
                case.signal_keeper(signals.SIGCONT)
                self._hand.later(ANSWER, kill)

        def kill() -> None:
            if late():
                case.forced = "its keeper did not answer"
                leftovers.kill_all(case)

        self._hand.later(within + ANSWER, go_on)

    # ---------------------------------------------------------------------------------- kill
    def kill(self, case: Case, action: Kill) -> None:
        """SIGCONT and SIGTERM, after the grace SIGKILL; settled once the keeper has ended."""
        case.killed = True
        if case.cgroup is not None:
            case.cgroup.thaw()  # what is frozen hears of no SIGTERM
        grace = 0.0 if action.forced else self._hand.site.kill_wait
        within = grace + self._hand.site.settings.on_end_limit
        becomes = action.becomes.value if action.becomes is not None else None
        words = {"why": action.why, "grace": grace, "forced": action.forced, "becomes": becomes}
        self._ask(case, action, within, "kill", **words)

    def stuck(self, case: Case, told: dict[str, Any]) -> None:
        """SIGKILL does not help, or the owner may not send it; the keeper goes on trying, and the daemon helps."""
        leftovers.kill_all(case, keeper=False)
        who = ", ".join(f"{name} ({pid})" for pid, name, _ in told["left"]) or "a process"
        waiting = sum(1 for _, _, state in told["left"] if state == "D")
        why = f"cannot be killed: {who}" + (
            f", {waiting} of them waiting for a device (D)" if waiting else ""
        )
        action = self._hand.orders.under_way(case.key[0])
        if isinstance(action, Kill):
            case.asked.pop(action.serial, None)
            self._hand.refused(case.key, action, why)

    # ------------------------------------------------------------------------------- suspend
    def suspend(self, case: Case, action: Suspend) -> None:
        """Notice, then stop; unless stopping would not give what it is for."""
        if case.state == "stopped":
            self._hand.done(case.key, action)
            return
        settings = self._hand.site.settings
        why = self._no_use_of_stopping(case, action)
        if (
            why
            and (settings.gpu_victims if case.gpus else settings.memory_short) == "requeue"
            and case.requeueable
        ):
            self._make_way(case, action, why)
            return
        if why:
            self._hand.refused(case.key, action, why, retry=not case.gpus)
            return
        number = getattr(signals, f"SIG{action.signal}", 0) if action.signal else 0
        delay, limit = self._hand.site.stop_delay, settings.stop_limit
        self._ask(case, action, max(delay, 1.0) + limit, "stop", delay=delay, limit=limit, signal=int(number))

    def _no_use_of_stopping(self, case: Case, action: Suspend) -> str:
        """Say why stopping a job would not free what it is stopped for; empty: it would."""
        settings = self._hand.site.settings
        if action.job.suspended_by is SuspendedBy.ADMIN:
            return ""  # a person's wish
        if case.gpus and settings.gpu_victims != "suspend":
            return NO_GPU_FREED
        wanted = sum(_memory_of(each) for each in self._hand.batch if _rests_on(each, action.serial))
        if not wanted or settings.memory_short == "ignore":
            return ""
        free = memory_available(swap=settings.swap_counts)
        if wanted <= free:
            return ""
        held = case.resident_mb()
        return f"it keeps {held} MB of memory; {wanted} MB are wanted, {free} MB are free"

    def _make_way(self, case: Case, action: Suspend, why: str) -> None:
        """Let a job go back to the queue instead of standing still; settled once it is gone."""
        case.asked[action.serial] = action
        self._send_back(case, action.serial, f"requeued instead of suspended: {why}", why)

    def send_back(self, case: Case, why: str) -> None:
        """Let a job go back to the queue, of this world's own accord."""
        self._send_back(case, 0, f"requeued: {why}", why)

    def out_of_memory(self, case: Case, why: str) -> None:
        """End a job that has more memory than it was given, as the kernel would: at once."""
        case.gives_way = why
        case.ask("kill", id=0, why=why, grace=0.0, forced=True, becomes=JobState.OUT_OF_MEMORY.value)
        self._watch(case, self._hand.site.settings.on_end_limit, lambda: True)

    def _send_back(self, case: Case, serial: int, text: str, why: str) -> None:
        case.gives_way = text
        if case.cgroup is not None:
            case.cgroup.thaw()
        grace = self._hand.site.kill_wait
        case.ask("kill", id=serial, why=why, then=text, grace=grace, becomes=JobState.PENDING.value)
        self._watch(case, grace + self._hand.site.settings.on_end_limit, lambda: True)

    # -------------------------------------------------------------------------------- others
    def go_on(self, case: Case, action: Resume) -> None:
        """Continue what was stopped, on the cores that it has."""
        site = self._hand.site
        cores = site.cores_of(action.job)
        if case.cgroup is not None:
            case.cgroup.limit(site.cgroups.binding(cores))
            case.cgroup.thaw()
        self._ask(case, action, _GO_ON, "continue", cores=cores)

    def signal(self, case: Case, action: SendSignal) -> None:
        """Send a signal to the job, or to its first process only."""
        number = getattr(signals, f"SIG{action.signal}", None)
        if number is None and action.signal.isdigit():
            number = int(action.signal)
        if number is None:
            self._hand.refused(case.key, action, f"there is no signal {action.signal!r}", retry=False)
            return
        ahead = action.job.spec.signal
        its_own = ahead is not None and ahead.batch_only and ahead.name == action.signal
        leader_only = its_own or self._hand.site.leader_only(case.key[0])
        self._ask(case, action, _GO_ON, "signal", signal=int(number), leader_only=leader_only)

    def warn(self, job_id: str, limit: float | None) -> None:
        """Move the signal ahead of a job's time limit, since that limit is another now."""
        for case in list(self._hand.cases.values()):
            if case.key[0] == job_id:
                case.ask("warn", id=0, ahead=self._hand.site.ahead(job_id, limit))

    def checkpoint(self, case: Case, action: Checkpoint) -> None:
        """Run the job's checkpoint command, with a time limit."""
        if case.obstacle:
            self._hand.refused(case.key, action, f"it cannot be checkpointed: {case.obstacle}", retry=False)
            return
        limit = action.within or self._hand.site.settings.checkpoint_limit
        self._ask(case, action, limit, "checkpoint", limit=limit)

    # ------------------------------------------------------------------------------- answers
    def answered(self, case: Case, told: dict[str, Any]) -> None:
        """Understand what a keeper says to an action."""
        if told.get("say") == "looked":
            self._looked(case, told)
            return
        action = case.asked.pop(told.get("id", 0), None)
        if action is None:
            return
        if told.get("say") == "unknown":
            self._hand.refused(case.key, action, f"its keeper is of another version: {told.get('why')}")
        elif isinstance(action, Suspend):
            self._stopped(case, action, told)
        elif isinstance(action, Resume):
            case.state = "running"
            case.stopped_by_others = False
            self._hand.done(case.key, action)
        elif isinstance(action, Checkpoint):
            self._saved(case, action, told)
        else:
            self._hand.done(case.key, action)

    def _stopped(self, case: Case, action: Suspend, told: dict[str, Any]) -> None:
        if told["ok"] and case.cgroup is not None:
            self._freeze(case, case.cgroup, action)
        elif told["ok"]:
            self._stands(case, action)
        elif told.get("ended"):
            case.asked[action.serial] = action  # settled with the end, which is on its way
        else:
            who = ", ".join(f"{name} ({pid})" for pid, name, _ in told["left"])
            limit = self._hand.site.settings.stop_limit
            self._hand.refused(case.key, action, f"still running after {limit:g} s: {who}")

    def _stands(self, case: Case, action: Suspend) -> None:
        case.state = "stopped"
        case.stopped_by_others = False
        self._hand.done(case.key, action)

    def _freeze(self, case: Case, cgroup: Cgroup, action: Suspend) -> None:
        """Stop the job by the kernel's freezer, of which its owner has no say."""
        deadline = time.monotonic() + self._hand.site.settings.stop_limit
        taken = cgroup.freeze()

        def look() -> None:
            if self._hand.cases.get(case.key) is not case:
                return  # it has ended, and its end has settled this
            if taken and cgroup.frozen():
                self._stands(case, action)
            elif taken and time.monotonic() < deadline:
                self._hand.later(_PAUSE, look)
            else:
                cgroup.thaw()
                case.ask("continue", id=0)
                left = ", ".join(f"{each.name} ({each.pid})" for each in proc.below(case.pid))
                limit = self._hand.site.settings.stop_limit
                self._hand.refused(case.key, action, f"still running after {limit:g} s: {left}")

        look()

    def _saved(self, case: Case, action: Checkpoint, told: dict[str, Any]) -> None:
        if told["ok"]:
            self._hand.tell(news.Saved(case.key, float(told["ran"])))
            self._hand.done(case.key, action)
            return
        output = str(told.get("output", "")).splitlines()
        why = f"checkpoint command: {told.get('why')}" + (f": {output[-1]}" if output else "")
        self._hand.refused(case.key, action, why)

    def _looked(self, case: Case, told: dict[str, Any]) -> None:
        """Compare how a job stands with what was asked for; others may have a hand in it."""
        if self._hand.orders.under_way(case.key[0]) is not None or case.killed:
            return
        if case.state == "running" and told["state"] == "running":
            case.stopped_by_others = bool(told["stopped"])


def _rests_on(action: Action, serial: int) -> bool:
    return isinstance(action, Start) and serial in action.after


def _memory_of(action: Action) -> int:
    """Return the memory in MB that a start asks for; 0: it does not say."""
    assert isinstance(action, Start)
    allocation, spec = action.allocation, action.job.spec
    if spec.memory_mb_per_node is None and spec.memory_mb_per_cpu is None:
        return 0
    if allocation is not None and allocation.memory_mb is not None:
        return sum(allocation.memory_mb)
    return (spec.memory_mb_per_node or 0) * spec.min_nodes or (spec.memory_mb_per_cpu or 0) * spec.cpus
