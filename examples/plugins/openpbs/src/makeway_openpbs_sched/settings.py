"""Hold what a site configured, and the choices where OpenPBS's behaviour is inferred (sections 1, 6.3 and 8.2)."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import attrs

from makeway_openpbs_sched.letters import order_of
from makeway_openpbs_sched.levels import levels_of
from makeway_openpbs_sched.limits import limits_of, unknown_attribute
from makeway_openpbs_sched.windows import windows_of

NAME = "openpbs/sched"
PATH = f'policy.settings."{NAME}"'
MIN_TIME = "min_time_since_start"


class Version(enum.Enum):
    """Whose rules count."""

    V19_1 = "19.1"
    """OpenPBS 14.1 to 19.1: no letter D, no rule against escalation."""
    V20_0 = "20.0"
    """Starving jobs, preempt_sort may be unset."""
    V22_05 = "22.05"
    """OpenPBS 22.05 and later."""


class Gate(enum.Enum):
    """What it takes for a search to be made at all (section 2.5)."""

    PLAIN = "plain"
    """Any running job with a lower value."""
    SOURCE = "source"
    """As the source has it: express jobs of a Priority other than 0 may not be seen."""


class Percent(enum.Enum):
    """How the share of time left is computed (section 4.1)."""

    EXACT = "exact"
    SINGLE = "single"
    """In single precision, as the source: sometimes one percent less."""


class WalltimeUsed(enum.Enum):
    """Whether time spent suspended counts as walltime used (section 4.1)."""

    RUNNING = "running"
    """It does not."""
    ELAPSED = "elapsed"


class OverLimit(enum.Enum):
    """What becomes of a suspended job that is over a soft limit by itself (section 5.2)."""

    AS_SOURCE = "as_source"
    """It counts as normal while it is suspended, resumes early, and may be preempted at once."""
    LOOK_AHEAD = "look_ahead"
    """It is judged as if it ran, and so waits below normal jobs."""


class Unsorted(enum.Enum):
    """Which comes first where preempt_sort is unset, to 20.0 (section 1.6)."""

    SOURCE = "source"
    """By value, then the job's place in the server's list."""
    DOCUMENTED = "documented"
    """By value, then the longest running first."""


@attrs.frozen(kw_only=True)
class Fairshare:
    """A user's node of the fairshare tree."""

    share: float = attrs.field(validator=[attrs.validators.ge(0), attrs.validators.le(1)])
    """Of the whole tree, 0 to 1."""
    usage: float = attrs.field(default=0.0, validator=attrs.validators.ge(0))


def _parsed(parse: Callable[[str], object]) -> Any:
    def check(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        del instance
        for at, text in enumerate(value) if isinstance(value, tuple) else [(None, value)]:
            try:
                parse(text)
            except ValueError as error:
                place = attribute.name if at is None else f"{attribute.name}[{at}]"
                raise ValueError(f"{place}: {error}") from None

    return check


def _limits(instance: Any, attribute: attrs.Attribute[Any], value: Mapping[str, object]) -> None:
    del instance
    for key in value:
        if unknown := unknown_attribute(key, ("resources_default.preempt_targets",)):
            raise ValueError(f"{attribute.name}.{unknown}")
    try:
        limits_of(value)
    except ValueError as error:
        raise ValueError(f"{attribute.name}.{error}") from None


def _spans(instance: Any, attribute: attrs.Attribute[Any], value: tuple[tuple[float, ...], ...]) -> None:
    del instance
    for at, span in enumerate(value):
        if len(span) != 2 or not span[0] < span[1]:
            text = f"got {list(span)!r}; allowed: [begin, end], seconds since the start of the replay"
            raise ValueError(f"{attribute.name}[{at}]: {text}")


def _moment(value: Any) -> datetime | None:
    if value is None or isinstance(value, datetime):
        return value
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError(f"start: got {value!r}; allowed: a date and time, as 2026-03-02T00:00:00") from None


@attrs.frozen(kw_only=True)
class Settings:
    """``[policy.settings."openpbs/sched"]``."""

    version: Version = Version.V22_05

    preemptive_sched: bool = True
    """In prime time; at all times if `preemptive_sched_non_prime` is not set."""
    preemptive_sched_non_prime: bool | None = None
    preempt_queue_prio: int = 150
    preempt_prio: str = attrs.field(default="express_queue, normal_jobs", validator=_parsed(levels_of))
    preempt_order: str = attrs.field(default="SCR", validator=_parsed(order_of))
    preempt_sort: str = MIN_TIME
    """Empty: unset, to 20.0 only."""
    preempt_targets_enable: bool = True
    preempt_attempts: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.ge(0))
    )
    """Searches in a cycle; None: no limit."""
    sched_preempt_enforce_resumption: bool = False
    restrict_res_to_release_on_suspend: tuple[str, ...] = ()
    """What a suspended job gives back; empty: all."""
    backfill_depth: int = attrs.field(default=1, validator=attrs.validators.ge(0))
    by_queue: bool = True
    round_robin: bool = False
    help_starving_jobs: bool = True
    """To 20.0 only, as `max_starve`."""
    max_starve: float = attrs.field(default=86400.0, validator=attrs.validators.ge(0))
    """Seconds."""
    server: Mapping[str, Any] = attrs.field(factory=dict, validator=_limits)
    """Attributes of the server: limits (max_run, max_run_res_soft.ncpus, ...), resources_default.preempt_targets."""
    fairshare: Mapping[str, Fairshare] = attrs.field(factory=dict)
    """By user; usage does not grow during the replay."""

    checkpoint_abort: bool = False
    """Whether the MoMs have a checkpoint_abort script: without one the letter C always fails."""
    scheduler_iteration: float = attrs.field(default=600.0, validator=attrs.validators.gt(0))
    """Seconds until the next cycle if nothing happens."""
    prime_time: tuple[str, ...] = attrs.field(default=(), validator=_parsed(windows_of))
    """Hours such as ``Mon-Fri 06:00-17:30``; empty: it is always prime time."""
    start: Any = attrs.field(default=None, converter=_moment)
    """When the replay begins by the site's clock, for workloads without wall-clock times."""
    dedicated_time: tuple[tuple[float, ...], ...] = attrs.field(default=(), validator=_spans)
    """[begin, end] in seconds since the start of the replay."""

    gate: Gate = Gate.PLAIN
    percent: Percent = Percent.EXACT
    walltime_used: WalltimeUsed = WalltimeUsed.RUNNING
    over_limit_resume: OverLimit = OverLimit.AS_SOURCE
    unsorted: Unsorted = Unsorted.SOURCE
    project_limit_by_user: bool = True
    """Whether the server's limit on a resource of a project looks for victims of the same user (section 3.4)."""

    def __attrs_post_init__(self) -> None:
        if self.version is Version.V22_05:
            _of_version("preempt_prio", lambda: levels_of(self.preempt_prio, starving=False))
        if self.version is Version.V19_1:
            _of_version("preempt_order", lambda: order_of(self.preempt_order, deletion=False))
        sorts = (MIN_TIME,) if self.version is Version.V22_05 else (MIN_TIME, "")
        if self.preempt_sort not in sorts:
            unset = "" if len(sorts) == 1 else ", or nothing (unset)"
            raise ValueError(f"preempt_sort: got {self.preempt_sort!r}; allowed: {MIN_TIME}{unset}")

    @property
    def starts_at(self) -> float | None:
        """The beginning of the replay by the site's clock, as if it were UTC; None: not said."""
        moment: datetime | None = self.start
        return None if moment is None else moment.replace(tzinfo=UTC).timestamp()


def _of_version(name: str, check: Callable[[], object]) -> None:
    try:
        check()
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
