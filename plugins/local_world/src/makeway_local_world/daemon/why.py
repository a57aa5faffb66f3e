"""Tell in plain sentences why a job does not run, who did that, and what would have to happen."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from makeway.model import Stay, Vocabulary
from makeway.obstacle import length
from makeway_local_world.daemon.foresight import Foresight, Taken
from makeway_local_world.processes.saving import UNASKED

Job = Mapping[str, Any]
_TROUBLE = ("failed", "not_preempted", "policy_error", "begun_anew")
"""Kinds of lines that say what went wrong."""
_MOST = 8
"""Names that are listed; the rest is counted."""
_HOW = {
    "suspend": "is suspended",
    "requeue": "is requeued and starts again from the beginning",
    "cancel": "is cancelled",
    "checkpoint": "is checkpointed and requeued",
}
_BEEN = {
    "suspend": "was suspended",
    "requeue": "was requeued",
    "cancel": "was cancelled",
    "checkpoint": "was checkpointed",
}


@attrs.frozen(kw_only=True)
class Known:
    """What is known of a job, for `story`."""

    job: Job
    """As the queue shows it, or the journal."""
    others: Mapping[str, Job]
    """All live jobs by id."""
    lines: Sequence[Mapping[str, Any]] = ()
    """Lines of the record about it, and of those in which it displaced others."""
    stays: Sequence[Stay] = ()
    """Why it stays suspended."""
    ahead: Sequence[str] = ()
    """Pending jobs that are tried before it."""
    foresight: Foresight | None = None
    zero: float = 0.0
    """Unix time of the run's instant 0."""
    waits_for: Mapping[str, str] = attrs.field(factory=dict)
    """Conditions on other jobs -> how they stand."""
    stays_held: bool = False
    """Whether a person holds it, beside these."""
    in_use: Sequence[str] = ()
    """Which nodes a person uses, for which it makes way."""
    quiet: float = 0.0
    """Seconds after the last use until it may come back."""
    drained: Mapping[str, Any] | None = None
    trouble: str = ""
    failed: str = ""
    """How its last incarnation ended, if it did not end well."""
    untold: str = ""
    """Why a notice of its last incarnation could not be given."""
    words: Vocabulary = attrs.field(factory=Vocabulary)


def story(known: Known) -> list[str]:
    """Return the sentences."""
    return list(_sentences(known))


def _sentences(known: Known) -> Iterator[str]:
    job = known.job
    name = f" ({job['name']})" if job.get("name") else ""
    yield f"job {job['id']}{name} of {job['user']}: {_state(known)}"
    if known.trouble:
        yield f"nothing is started now: {known.trouble}"
    if job["state"] == "REFUSED":
        yield from (
            f"it was never a job: {line['reason']}" for line in known.lines if line["kind"] == "rejected"
        )
    if job["state"] == "PENDING":
        yield from _pending(known)
    elif job["state"] == "SUSPENDED":
        yield from _suspended(known)
    elif job["state"] == "RUNNING" and job.get("ends_at"):
        yield f"it reaches its time limit at {when(job['ends_at'])}"
    if job.get("obstacle", UNASKED) != UNASKED:
        yield f"it cannot be checkpointed: {job['obstacle']}"
    if job.get("saved"):
        yield f"saved of its work: {job['saved']:.0f} s"
    if job.get("lost"):
        yield f"lost of its work so far: {job['lost']:.0f} s"
    if which := [f"GPU {each['index']} ({each['uuid']})" for each in job.get("gpus", ())]:
        yield f"it {'had' if job.get('ended_at') else 'has'} {_few(which)}"
    if known.failed:
        yield f"its last run: {known.failed}"
    if known.untold:
        yield f"a notice could not be given: {known.untold}"
    yield from _past(known)


def _state(known: Known) -> str:
    job = known.job
    state = str(job["state"]).lower()
    where = f" on {job['nodes']}" if job.get("nodes") else ""
    partition = f", {known.words.noun('partition')} {job['partition']}" if job.get("partition") else ""
    since = {
        "pending": job.get("submitted_at"),
        "running": job.get("started_at"),
        "suspended": job.get("suspended_at"),
    }.get(state, job.get("ended_at"))
    return f"{state}{where}{partition}" + (f", since {when(since)}" if since else "")


def _in_use(known: Known) -> Iterator[str]:
    """Say that a person uses a node of the job, or one on which it could start."""
    if known.in_use:
        yield f"it makes way for people: {'; '.join(known.in_use)}"
        yield f"what has to happen: nobody uses it for {length(known.quiet)}"


# -------------------------------------------------------------------------------------- pending
def _pending(known: Known) -> Iterator[str]:
    job = known.job
    if known.drained is not None:
        reason = f": {known.drained['reason']}" if known.drained.get("reason") else ""
        yield f"the machine is drained by {known.drained['by']} since {when(known.drained['at'])}{reason}"
        yield "what has to happen: makeway undrain"
        return
    if known.waits_for:
        for text, stands in known.waits_for.items():
            yield f"it waits for {text}: {stands}"
        if known.stays_held:
            yield f"then it is held; what has to happen: makeway release {job['id']}"
        return
    if job["held"]:
        yield f"it is held ({job['reason']}); what has to happen: makeway release {job['id']}"
        return
    eligible = job.get("eligible_at")
    if eligible and eligible > time.time():
        yield f"it may not begin before {when(eligible)}"
    if job["reason"] not in ("", "None"):
        yield f"it waits: {job['reason']}"
    yield from _in_use(known)
    by = job.get("displaced")
    if by and by["by"]:
        yield f"it was running, and made way for {_who(known, by['by'])} at {when(by['at'])}"
    found = known.foresight
    if found is None:
        return
    if found.decision is not None:
        yield from _decision(known, found)
    if known.ahead:
        yield f"before it in the queue: {_names(known.ahead)}"
    for check in found.checks:
        yield f"{check.code} {check.verdict}: {check.question} {check.found}"
    yield from _prospects(known, found, "starts")


def _decision(known: Known, found: Foresight) -> Iterator[str]:
    decision = found.decision
    assert decision is not None
    words = known.words
    if decision.outcome == "waits":
        yield f"tried now, it finds: {words.why(decision.reason, decision.detail)}"
        if decision.candidates:
            yield f"it could displace {_names([each for each, _ in decision.candidates])}, and that would not be enough"
    rules: dict[str, list[str]] = {}
    for job_id, rule in decision.protected.items():
        rules.setdefault(rule, []).append(job_id)
    for rule, jobs in rules.items():
        yield f"it may not displace {_names(jobs)}: {rule}"
    holders = [
        f"{_who(known, each['id'])}, {_until(each)}"
        for each in known.others.values()
        if each["state"] == "RUNNING" and each["id"] != known.job["id"]
    ]
    if decision.outcome == "waits" and holders:
        yield f"running now: {_few(holders)}"


def _prospects(known: Known, found: Foresight, verb: str) -> Iterator[str]:
    if found.rejected:
        yield f"it can never run here: {found.rejected}"
        return
    if found.starts_at is None:
        unlimited = [
            each["id"]
            for each in known.others.values()
            if each["state"] in ("RUNNING", "SUSPENDED")
            and each["time_limit"] is None
            and each["id"] != known.job["id"]
        ]
        if unlimited:
            yield f"nobody can say when it {verb}: {_names(unlimited)} {_have(unlimited)} no time limit"
        else:
            yield f"it is not foreseen when it {verb}"
        return
    at = found.starts_at + known.zero
    if at <= time.time() + 1.0:
        yield f"it {verb} at once"
    else:
        after = (
            f", when {_names(found.after)} {'has' if len(found.after) == 1 else 'have'} ended"
            if found.after
            else ""
        )
        yield f"it {verb} at {when(at)} at the latest{after}, unless others come before it"
    for taken in found.takes:
        yield _taking(known, taken)


def _taking(known: Known, taken: Taken) -> str:
    why = f" ({taken.why})" if taken.why else ""
    return f"for that {_who(known, taken.job)} {_HOW.get(taken.how, taken.how)}{why}"


# ------------------------------------------------------------------------------------ suspended
def _suspended(known: Known) -> Iterator[str]:
    job = known.job
    if job["suspended_by"] == "admin":
        yield f"a person suspended it; what has to happen: makeway resume {job['id']}"
        return
    yield from _in_use(known)
    by = job.get("displaced")
    if by and by["by"]:
        yield f"it makes way for {_who(known, by['by'])} since {when(by['at'])}"
    for stay in known.stays if not known.in_use else ():
        names = f": {_few([_who(known, each) for each in stay.holders])}" if stay.holders else ""
        until = f", until {when(stay.until + known.zero)}" if stay.until is not None else ""
        setting = f" [{stay.setting}]" if stay.setting else ""
        yield f"it stays suspended: {stay.why}{names}{until}{setting}"
    if known.foresight is not None:
        yield from _prospects(known, known.foresight, "goes on")
    gpus = ", its open files and its GPUs" if job.get("gpus") else " and its open files"
    yield f"it keeps its memory{gpus} meanwhile"


# ----------------------------------------------------------------------------------------- past
def _past(known: Known) -> Iterator[str]:
    me = known.job["id"]
    lost = [line for line in known.lines if line["kind"] == "preempt" and line["job"] == me]
    took = [line for line in known.lines if line["kind"] == "preempt" and line.get("preemptor") == me]
    for line in lost[-_MOST:]:
        by = f" for {_who(known, line['preemptor'])}" if line.get("preemptor") else ""
        why = f": {line['why']}" if line.get("why") else ""
        yield f"at {when(line['at'] + known.zero)} it {_BEEN.get(line['mode'], line['mode'])}{by}{why} [{line['by']}]"
    for line in took[-_MOST:]:
        yield f"at {when(line['at'] + known.zero)} it displaced {_who(known, line['job'])} by {line['mode']}"
    back = [line for line in known.lines if line["kind"] == "noticed" and line["state"] == "PENDING"]
    for line in back[-_MOST:]:
        yield f"at {when(line['at'] + known.zero)} it went back to the queue: {line['by']}"
    for line in [each for each in known.lines if each["kind"] in _TROUBLE][-_MOST:]:
        yield f"at {when(line['at'] + known.zero)}: {line.get('why') or line.get('reason') or line['kind']}"


def victims(known: Known) -> list[str]:
    """Return the sentences about a job that was never submitted."""
    found = known.foresight
    assert found is not None
    if found.rejected:
        return [f"it could never run here: {found.rejected}"]
    told = []
    if found.decision is not None and found.decision.outcome == "waits":
        told += [text for text in _decision(known, found) if not text.startswith("running")]
    told += list(_prospects(known, found, "starts"))
    if found.starts_at is not None and not found.takes:
        told.append("it displaces no job")
    return told


def _who(known: Known, job_id: str) -> str:
    other = known.others.get(job_id)
    if other is None:
        return f"job {job_id}"
    return f"job {job_id} ({known.words.noun('partition')} {other['partition']}, {other['user']})"


def _until(job: Job) -> str:
    return f"until {when(job['ends_at'])} at the latest" if job.get("ends_at") else "without a time limit"


def _have(names: Sequence[str]) -> str:
    return "has" if len(names) == 1 else "have"


def _names(ids: Sequence[str]) -> str:
    return ("job " if len(ids) == 1 else "jobs ") + _few(ids)


def _few(names: Sequence[str]) -> str:
    more = len(names) - _MOST
    return ", ".join(names[:_MOST]) + (f" and {more} more" if more > 0 else "")


def when(at: float) -> str:
    """Return an instant for people: the time of the day, with the date if it is not today."""
    then, now = time.localtime(at), time.localtime()
    return time.strftime("%H:%M:%S" if then[:3] == now[:3] else "%F %H:%M", then)
