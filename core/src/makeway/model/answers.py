"""Define what policies and selectors answer: placements, candidates, choices, plans, orders."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping, Sequence

import attrs

from makeway.bitmap import NodeBits
from makeway.model.jobs import Allocation, Job
from makeway.model.values import PreemptMode, Seconds, mapping

UNSAVED = "it cannot be checkpointed: {}"


def _joined(*texts: str) -> str:
    return "; ".join(text for text in texts if text)


@attrs.frozen(kw_only=True, eq=False)
class Placement:
    """A place where a job could start now."""

    allocation: Allocation
    """What it would hold."""
    overlays: bool = False
    """Whether it lies on cores of active jobs, which the gang arbiter will stop."""
    why: str = ""
    """How it was found (``idle nodes``, ``shares the nodes of 9``); one phrase for people."""
    alternative: int = 0
    """Which of the job's feature alternatives it serves, in the order written."""


@attrs.frozen(kw_only=True)
class Blocked:
    """Why a job cannot start now, and what stands in its way."""

    reason: str = "Resources"
    """Pending reason in the field's words."""
    resource: str = "nodes"
    """What is short: nodes, cpus, memory, gres, licences."""
    wanted: float = 0
    """How much of `resource` it needs; 0: not said."""
    available: float = 0
    """How much of it there is for this job."""
    detail: str = ""
    """A sentence for people."""
    never: bool = False
    """True: it could not run on the empty cluster either."""
    ask_again_at: Seconds | None = None
    """When a limit may let the job through without any event; None: not known."""
    keeps_nothing: bool = False
    """A limit only: True if backfill plans no start for the job as long as it is in the way, so that others may."""
    reserves: bool = False
    """A limit only: True if backfill keeps nodes for the job from now on, though the limit is in the way."""
    retry_after: Seconds = 0.0
    """With `reserves`: if there is room at once, backfill keeps nodes from so many seconds later on.

    If promises of nodes that it may use come first, it keeps them from when the first of these is over. 0: from now on.
    """
    qos: str = ""
    """With `reserves`: the QOS whose limit it is. Backfill plans later jobs of that QOS no earlier than this one."""
    holds_up: bool = False
    """A limit only: True if the job holds up those behind it, as one does that lacks room."""
    liftable: bool = False
    """A limit only: True if it may be lifted by having active jobs make way, so that preempting is worth trying."""
    before_nodes: bool = False
    """A limit only: True if it is looked at before nodes are.

    A job that it keeps out when it is submitted is then not refused for what no cluster has, but once it is tried.
    """
    at_submission: bool = False
    """A limit only: True if it is the reason of a job from its submission on, before the job has been tried."""
    at_submission_only: bool = False
    """With `before_nodes`: when a job is tried later on, nodes are looked at first."""
    stays: bool = False
    """A limit only: True if a job keeps it as its reason behind another that waits."""
    counted: tuple[tuple[NodeBits, int], ...] = ()
    """A limit on nodes only: nodes that count already, and how many others may be added; empty: it stands.

    The limit lets the job in after all where the nodes that are chosen for it keep to each of these.
    """
    least_nodes: int = 0
    """A limit on what a job has on each node only: it lets the job in after all on so many nodes; 0: it stands."""
    nodes_first: bool = False
    """Whether a job that finds no nodes waits for these, though the limit would keep it out, too."""
    frees: Mapping[str, float] = mapping(eq=False)
    """A limit only: id of each active job whose leaving would help -> how much of `wanted` it gives back.

    0: nothing of that, but of something else that is short as well; infinite: perhaps enough by itself. Empty: it
    is not known which would help, and a search has to try.

    If CPUs are short (`resource`: cpus), those that are idle beyond `available` are no room for the job: a selector
    may lay it over jobs that an arbiter suspends.
    """

    @property
    def depends_on_nodes(self) -> bool:
        """Whether a limit may let the job in after all, by the nodes that are chosen for it."""
        return bool(self.counted or self.least_nodes)

    @property
    def allows_fewest(self) -> bool:
        """Whether a limit on nodes lets the job in on as few as it asks for, and may keep it out on more."""
        return bool(self.counted) and self.wanted <= self.available

    def lets_in(self, nodes: NodeBits) -> bool:
        """Whether a limit that depends on nodes lets the job in after all, if it gets these."""
        among = all((nodes & ~counted).bit_count() <= others for counted, others in self.counted)
        return among and nodes.bit_count() >= self.least_nodes


@attrs.frozen(kw_only=True)
class Window:
    """A time for which nodes are kept from a job."""

    nodes: NodeBits
    """Which nodes it is about."""
    start: Seconds = -math.inf
    """From when on they are kept; the job may not run into it, by its time limit."""
    end: Seconds = math.inf
    """Until when."""
    reason: str = ""
    """Pending reason where it leaves the job idle nodes of its partition only, and too few; empty: the usual one."""

    def closes(self, start: Seconds, length: Seconds) -> bool:
        """Whether a job that starts at `start` and may run for `length` seconds would run into it."""
        return start < self.end and start + length > self.start


@attrs.frozen(kw_only=True)
class NodeSets:
    """In which sets of nodes a job is to be placed."""

    sets: tuple[NodeBits, ...] = ()
    """Bitmaps of nodes, best first; the first in which the job fits is taken. Empty: it has to wait."""
    ask_again_at: Seconds | None = None
    """When there may be further sets without any event; None: not known."""


@attrs.frozen(kw_only=True)
class Overdue:
    """Which running jobs have to end, whatever their time limits say."""

    jobs: Mapping[str, str] = mapping(eq=False)
    """Job id -> why, in words that people can read; each ends as TIMEOUT."""
    ask_again_at: Seconds | None = None
    """When the answer may differ though no job starts; None: not before one does."""


@attrs.frozen(kw_only=True)
class Forecast:
    """When a job could start if jobs end as their limits say."""

    at: Seconds
    """When it could start."""
    nodes: NodeBits
    """Nodes it would take, or that must be kept for it."""
    preempts: bool = False
    """Whether that counts on removing candidates now."""
    eligible: NodeBits = 0
    """Nodes among which it may choose at that instant."""
    spare: int | None = None
    """How many of `eligible` may be in use then without delaying it; None: exactly `nodes` must be kept."""


@attrs.frozen(kw_only=True, eq=False)
class Candidates:
    """The jobs that a pending job may displace, cheapest to lose first."""

    jobs: tuple[Job, ...] = ()
    """The candidates, cheapest to lose first; some of ``active``, none twice."""
    modes: tuple[PreemptMode, ...] = ()
    """How each would make way; parallel to `jobs`."""
    protected: Mapping[str, str] = mapping()
    """Job id -> why it may not be displaced, for `explain`; need not be complete."""
    note: str = ""
    """Why there are none, or what governed the order; for `explain`."""
    ask_again_at: Seconds | None = None
    """When the answer may differ without any event (an exemption ends); None: not known."""
    costs: tuple[Seconds, ...] = ()
    """Seconds of work that each would lose (`Job.cost`), parallel to `jobs`; filled in for records and `explain`."""
    reasons: tuple[str, ...] = ()
    """Why each may be displaced, parallel to `jobs`, for records and `explain`; empty: nothing is said."""
    allowed_after: Callable[[Job, Sequence[Job]], bool] | None = None
    """Whether one of `jobs` may be displaced once others have been; None: each may, whichever others are.

    Called with the candidate and the jobs taken before it, in the order in which they were taken, as often as a
    search needs it; pure. So "as long as its owner is over quota" can be said. Any search keeps to it: a victim for
    which it says no is taken out of the candidates, and victims are sought again.
    """
    reason: str = ""
    """Pending reason, in the policy's own words, if the job has to wait; empty: the one found before."""
    vacated: frozenset[str] = frozenset()
    """Ids of those of `jobs` that have made way already: what they hold may be used, and nothing is done to them."""
    not_for: Mapping[str, str] = mapping()
    """What is short (`Blocked.resource` of a limit) -> why no job is displaced for its sake."""
    rounds: int = 1
    """How many searches may be made in one go where victims turn out not to be able to make way (`Plan.fails`).

    1: if one of them fails, all are left alone and the preemptor waits. More: those that can make way do, those
    that cannot are left out, and others are sought in their place.
    """
    while_waiting: bool = False
    """Whether further victims may be told although some that the preemptor has had told are still leaving."""

    def priced(self, now: Seconds) -> Candidates:
        """Return the same with `costs` as they are now."""
        costs = tuple(job.cost(mode, now) for job, mode in zip(self.jobs, self.modes, strict=True))
        return attrs.evolve(self, costs=costs)

    def escalated(self) -> Candidates:
        """Return the same where what cannot be checkpointed makes way in another mode, with the reason."""
        if PreemptMode.CHECKPOINT not in self.modes:
            return self
        modes = tuple(job.way(mode) for job, mode in zip(self.jobs, self.modes, strict=True))
        if modes == tuple(self.modes):
            return self
        reasons = self.reasons or ("",) * len(modes)
        told = tuple(
            reason if mode is asked else _joined(reason, UNSAVED.format(job.obstacle))
            for job, reason, mode, asked in zip(self.jobs, reasons, modes, self.modes, strict=True)
        )
        return attrs.evolve(self, modes=modes, reasons=told)

    def only(self, positions: Sequence[int]) -> Candidates:
        """Return the same with the jobs at these positions alone, in that order."""
        return attrs.evolve(
            self,
            jobs=tuple(self.jobs[at] for at in positions),
            modes=tuple(self.modes[at] for at in positions),
            reasons=tuple(self.reasons[at] for at in positions) if self.reasons else (),
            costs=tuple(self.costs[at] for at in positions) if self.costs else (),
        )


@attrs.frozen(kw_only=True)
class Protection:
    """Why a job may not be displaced, and for how long."""

    reason: str
    """In words that people can read."""
    until: Seconds | None = None
    """When it ends without any event, so that what waits is tried again then; None: not known."""


@attrs.frozen(kw_only=True, eq=False)
class Choice:
    """What a search found: a placement, and what has to make way for it."""

    placement: Placement
    """Where the job starts once its victims have gone."""
    victims: tuple[int, ...] = ()
    """Positions in the candidates, in the order in which they are to be told."""
    method: str = ""
    """How the search went about it; one phrase for people."""
    considered: int = 0
    """How many candidates it looked at."""
    modes: tuple[PreemptMode, ...] = ()
    """How each victim makes way, parallel to `victims`; empty: as the candidates say."""
    reasons: tuple[str, ...] = ()
    """Why each victim was chosen, parallel to `victims`; empty: as the candidates say (`Candidates.reasons`)."""


@attrs.frozen(kw_only=True)
class Signal:
    """A signal to a job's processes."""

    name: str
    """TERM, CONT, TSTP, USR1, ..."""
    steps_only: bool = True
    """True: the batch shell is not addressed."""


@attrs.frozen(kw_only=True, eq=False)
class Plan:
    """The steps by which one victim makes way.

    What it may ask depends on its mode; anything else is a PolicyError that says what is allowed.

    | | ``suspend`` | ``suspend``, and ``gang`` is a preempt mode | ``checkpoint``, ``requeue``, ``cancel`` |
    |---|---|---|---|
    | what does it | the plan; the arbiter resumes | the arbiter | the plan |
    | `notice`, `grace_time` | no: it stops at once | no | yes; no notice without a grace time |
    | `farewell` | yes | no | yes |
    | `hold_down`, `stop_signal` | yes | no | no |

    The mode ``suspend`` needs an arbiter (`makeway_gang`), and a candidate of that mode: the others free more.
    The mode ``off`` is no plan: say `fails`. Only running victims are sent signals.
    """

    job: Job
    """The victim."""
    mode: PreemptMode
    """What is done in the end."""
    notice: tuple[Signal, ...] = ()
    """Sent at once, when the grace time starts; nothing is sent without a grace time."""
    farewell: tuple[Signal, ...] = ()
    """Sent right before the mode is carried out."""
    grace_time: Seconds = 0.0
    """From notice to action; 0: at once."""
    hold_down: Seconds = 0.0
    """Least time before a suspended victim may resume."""
    within: Seconds = 0.0
    """CHECKPOINT only: longest time that a live world may take to save it, else it goes back to its last checkpoint.

    0: as the world's own settings say."""
    stop_signal: str = ""
    """SUSPEND only: the signal that stops it (TSTP, STOP, ...); empty: whatever the world uses."""
    why: str = ""
    """The rule that chose the mode; for `explain`."""
    reason: str = ""
    """Why the job was chosen: filled in from `Choice.reasons` or `Candidates.reasons` unless the plugin does."""
    fails: bool = False
    """True: what was asked cannot be done; the victim stays, and the record says so. See `Candidates.rounds`."""

    @property
    def because(self) -> str:
        """Why the job was chosen, and which rule chose the mode, in one phrase; empty: nothing is said."""
        return _joined(self.reason, self.why)

    def escalated(self) -> Plan:
        """Return the same, or a plan in another mode where the job cannot be checkpointed, with the reason."""
        mode = self.job.way(self.mode)
        if mode is self.mode:
            return self
        return attrs.evolve(self, mode=mode, why=_joined(self.why, UNSAVED.format(self.job.obstacle)))


@attrs.frozen(kw_only=True)
class Check:
    """One step of a policy's check list for a job that waits (``makeway explain``)."""

    code: str
    """Short and lasting, so that people can look it up: ``K03``."""
    verdict: str
    """pass, fail or warning."""
    question: str
    """What was looked at, as a question."""
    found: str
    """What was found, and what would help."""
    setting: str = ""
    """Path in the config that decided it; empty: none did."""


class GangVerb(enum.Enum):
    """What a gang arbiter orders."""

    SUSPEND = "suspend"
    """Stop a job; it keeps what it holds."""
    RESUME = "resume"
    """Let a stopped job go on."""
    PREEMPT = "preempt"
    """Checkpoint, requeue or kill, as the order's mode says."""
    MOVE_ON = "move on"
    """Requeue a suspended job, which counts as no preemption: it waited long enough to try elsewhere."""
    END = "end"
    """Kill a job, which counts as no preemption: its time is over, and none takes its place.

    One that is leaving its nodes to be requeued is not requeued."""


@attrs.frozen(kw_only=True, eq=False)
class GangOrder:
    """One order of the gang arbiter."""

    verb: GangVerb
    """What is to be done."""
    job: Job
    """The job that it is done to."""
    mode: PreemptMode = PreemptMode.SUSPEND
    """PREEMPT only: how the job makes way; one that frees all."""
    because_of: Job | None = None
    """The job that takes its place; None: none in particular."""
    why: str = ""
    """For `explain` and records; empty: nothing is said."""
    allocation: Allocation | None = None
    """RESUME only: what it holds from now on, as much as before on the same nodes; None: what it holds."""
    trades: tuple[tuple[Job, Allocation], ...] = ()
    """Suspended jobs that change places with it, and what each holds from now on."""


@attrs.frozen(kw_only=True)
class Stay:
    """One reason for which a suspended job is not resumed now; for `explain` and the summary."""

    why: str
    """In words that people can read, the same for as long as it is the same reason: the limit, the hold-down, ..."""
    holders: tuple[str, ...] = ()
    """Ids of the jobs that hold what it needs."""
    until: Seconds | None = None
    """When it ends without any event; None: not known."""
    setting: str = ""
    """Path in the config that decided it; empty: none did."""
