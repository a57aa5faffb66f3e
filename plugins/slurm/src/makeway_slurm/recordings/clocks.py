"""Know the clocks of the real Slurm on which the scenarios were played.

They were made to run fast; a replay that is to be held against a recording needs the same clocks.

What the recordings say about the clocks (157 of the oracle, 147 in tests/recordings):

sched_phase
    Looks of the main scheduler: first starts at .25 (26.11: all; 22.05: .25 or .26, later in a run
    up to .31, as each look takes a millisecond). In 22.05 the timeslicer wakes at .24 or .25, just
    before the look, hence 1/128 more there.
pass_on_completion
    A victim's nodes are given away 0.02 to 0.04 s after its kill. Where the rule builtin_raw_order
    holds (22.05 with sched/builtin and a single tier), the preemptor itself is passed over until the
    estimator of sched/builtin has run. It runs each ``bf_interval``, a second here; until then another
    job may take the nodes.
pass_on_own_end
    False. After a job that ended by itself the next one starts at the next look (48 of 49 times in
    26.11 within 0.01 s of .25). Gang resumes, by contrast, come in the instant of the end.
completing_time, batch_host_delay
    0.03 s from a kill to "requeued", or to the start of a preemptor that needs all nodes. Nodes without the batch
    script are clean at once: a look 0.01 s after the kill uses them. The other component of a heterogeneous job has
    left 0.02 to 0.03 s before its leader (three times of three, on both releases). One requeue in ten takes 0.13 s
    (9 of 93), which the recording tells: the attribute "cleaning_times" of the job.
kill_spacing
    Jobs that are killed together leave their nodes in order of submission, a few milliseconds apart
    (3 of 3), and each of them triggers a pass: what waits first takes the first nodes that are clean.
min_kill_delay
    7.4 s: ten jobs that ignore SIGTERM left 7.31 to 7.46 s after their kill, whatever KillWait=1
    says. Three of 18 later ones left after 5.3 s, which the recording tells too.
signal_time
    0.02 s from the SIGTERM of a grace time to the end of a step that dies of it.
requeue_delay
    The recording's 6 s less 0.1: Slurm counts from the whole second in which the job left, so that
    it may start 6 looks after the one that killed it.
bf_phase
    The recording's, if it has phases. Else as the main scheduler; starts of backfill at .24 or .25 in 22.05, .13 to
    .25 in 26.11. The estimator of sched/builtin starts with the controller and then counts seconds by itself: 0.27 to
    0.39 s before a look (four runs of 22.05, median 0.36), if the recording does not tell.
second_phase
    The recording's, if it has phases; delays then count from whole seconds. Else, 22.05: anywhere, but for the few
    hundredths of a second between a look and the starts that clean-ups bring about: a job that started just after a
    look is as old as one that started with it.
first_tick
    The recording's. Without a recording one slice less 0.76 s, as 22.05 nearly always has.
limit_phase
    The sweep comes in the same millisecond as a look, just before it: so what it ends is leaving already when
    others ask for its nodes. Without gang scheduling that is the look of second 25 (eight of eight logs). It counts
    from the controller's start. With gang scheduling that is a slice before the wake-up before second 0, for slices
    of 7 and 25 s (seven of seven logs); for shorter ones limits struck at 83.38, and twice at 143.5 and 173.5: 23.4.
stopped_work_counts
    The harness adds up how long the controller calls a job running, and then tells it to end; one whose processes are
    stopped hears of it when they go on.
run_time
    ``runtime`` less 0.1: median of both releases, -0.14 to -0.06 over all jobs.

Amounts that Slurm counts in whole seconds may come out one second apart from what is modelled (T2
of RELEASES.md). For ``--begin`` that is known beforehand: the controller's second turns at .25 in
26.11 and just after the look, at about .265, in 22.05.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from makeway.config import Config
from makeway.model import Seconds
from makeway_slurm.recordings.recording import Phases, Recording
from makeway_slurm_rules.rules import version

_LIMIT_SWEEP = 30.0
_LIMIT_PHASE, _LIMIT_PHASE_GANG = 25.3, 23.4
_SWEEP_SECOND = 25
_LONG_SLICE = 7.0
_JUST_BEFORE = 0.001
"""By how much the sweep comes before the look of its second."""
IGNORED_KILL = 7.4
_SIGNAL = 0.02
_SECOND = 0.75
_TICK_LEAD = 0.76
_ESTIMATOR_LEAD = 0.36


def harness_clockwork(recording: Recording | None, config: Config) -> dict[str, float | bool]:
    """Return the clocks that a recording ran with, beyond what its slurm.conf says.

    :param recording: None: a run on 22.05 is assumed.
    :param config: what slurm.conf says.
    """
    release = recording.release if recording else "22.05"
    phase = 0.25 + (1 / 128 if version(release) < (23, 11) else 0.0)
    timeslice = _slice(config)
    clocks: dict[str, float | bool] = {
        "sched_phase": phase,
        "submit_delay": 0.0,
        "pass_on_submit": False,
        "pass_on_completion": True,
        "pass_on_own_end": False,
        "bf_phase": phase,
        "limit_sweep": _LIMIT_SWEEP,
        "limit_phase": _LIMIT_PHASE if timeslice is None else _LIMIT_PHASE_GANG,
        "min_kill_delay": IGNORED_KILL,
        "signal_time": _SIGNAL,
        "requeue_delay": (recording.requeue_delay if recording else 6.0) - 0.1,
        "completing_time": 0.005,
        "batch_host_delay": 0.025,
        "kill_spacing": 0.0005,
        "suspend_grace_time": 0.0,
        "stopped_work_counts": True,
    }
    if version(release) < (23, 11):
        clocks["second_phase"] = _SECOND
    if recording is not None and recording.phases is not None:
        clocks |= _recorded_phases(recording, recording.phases)
        sweep = _sweep_second(recording, timeslice)
        if sweep is not None:
            clocks["limit_phase"] = sweep + float(clocks["sched_phase"]) - _JUST_BEFORE
    if config.scheduler.type == "builtin":
        clocks["bf_phase"] = _estimator_phase(recording, float(clocks["sched_phase"]))
    if recording is not None and recording.timeslice and recording.timeslice.ticks:
        clocks["first_tick"] = recording.timeslice.ticks[0]
    elif timeslice is not None:
        clocks["first_tick"] = max(0.0, timeslice - _TICK_LEAD)
    return clocks


def _recorded_phases(recording: Recording, phases: Phases) -> dict[str, float | bool]:
    """Return the clocks of a run that recorded where they stood."""
    clocks: dict[str, float | bool] = {
        "second_phase": phases.second,
        "counts_seconds": True,
        "requeue_delay": recording.requeue_delay,
    }
    if phases.looks:
        clocks["sched_phase"] = _phase(phases.looks)
    if phases.backfills:
        clocks["bf_phase"] = _phase(phases.backfills)
    return clocks


def _sweep_second(recording: Recording, timeslice: Seconds | None) -> int | None:
    """Return in which second of the run the first sweep comes; None: the recording does not tell.

    :param timeslice: length of a turn; None: no gang scheduling.
    """
    if timeslice is None:
        return _SWEEP_SECOND
    if timeslice < _LONG_SLICE or recording.timeslice is None or not recording.timeslice.ticks:
        return None
    return round(recording.timeslice.ticks[0] - 2 * timeslice) % round(_LIMIT_SWEEP)


def _estimator_phase(recording: Recording | None, look: Seconds) -> Seconds:
    """Return when in each second sched/builtin estimates starts; `look`: when it looks."""
    if recording is not None and recording.phases is not None and recording.phases.estimator is not None:
        return recording.phases.estimator
    return (look - _ESTIMATOR_LEAD) % 1.0


def _phase(passes: Sequence[Seconds]) -> Seconds:
    """Return the middle one of the phases in which passes came, each second; the clock drifts by milliseconds.

    Phases around the turn of a second are no distance apart, so that they are measured from the first.
    """
    origin = passes[0]
    apart = statistics.median(_apart(each - origin) for each in passes)
    return (origin + apart) % 1.0


def _apart(seconds: Seconds) -> Seconds:
    """Return how far an instant lies behind or before the nearest full second."""
    return (seconds + 0.5) % 1.0 - 0.5


def _slice(config: Config) -> Seconds | None:
    """Return the length of a turn; None: no gang scheduling."""
    if "gang" not in config.policy.preempt_mode:
        return None
    return float(config.policy.settings.get("gang/timeslice", {}).get("timeslice", 30.0))
