"""Say what another release of a scheduler changes in a log, and which of its rules do it.

Two runs that differ by release differ by many rules. They are switched one after the other, in the order in which
releases brought or dropped them, first what the release reads otherwise. Where a run tells the same before and
after some of them, these are taken to change nothing; else they are halved until single ones are left. So the
changes of all rules named add up to the whole.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
from rich.text import Text

from makeway import registry
from makeway.config import Config
from makeway.errors import ConfigError, Problem
from makeway.history import History, Interval, Preemption
from makeway.metrics import tidy
from makeway.model import JobState, Seconds
from makeway.obstacle import counted
from makeway.record import Recorder
from makeway.settings import unstructure
from makeway.vendors import Vendor, of_releases
from makeway_app.cli.changes import parts_of, split
from makeway_app.cli.processes import cores, side_by_side

KEY = "release"
"""Key of ``--compare`` that reads CONFIG once more, as another release would."""
ONLY_SIMULATED = "is for the simulated world; leave out --world"
_NAMED = 5
"""Jobs that are named of each kind of change."""
_ALIVE = (JobState.RUNNING, JobState.SUSPENDED)

Fate = tuple[Seconds | None, int, str]
"""First start, what all runs and stops and the end come to, and the final state."""


def release_of(text: str) -> tuple[str | None, str]:
    """Return the release that ``--compare`` names, and the keys beside it; None: it names none.

    :raises ConfigError: no release is known that is called so.
    """
    parts = [(split(part)[0].strip(), part) for part in parts_of(text)]
    named = [split(part)[2].strip().strip("\"'") for key, part in parts if key == KEY]
    keys = "; ".join(part for key, part in parts if key != KEY)
    if not named:
        return None, keys
    vendor = of_releases()
    if vendor is None:
        raise ConfigError(f"--compare {text}", [Problem("", registry.missing("--release"))])
    try:
        return vendor.stated(named[-1]), keys
    except ValueError as error:
        raise ConfigError(f"--compare {text}", [Problem("", str(error))]) from None


# ------------------------------------------------------------------------------- what is kept of a run
class Story:
    """Keeps when each job ran and which made way for which, as an archive; it says the same for two runs alike."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.fates: dict[str, Fate] = {}
        self.ways: dict[str, Counter[tuple[str, str]]] = {}
        """Victim -> preemptors with the mode, and how often."""
        self._places: dict[str, int] = {}

    def ended(self, history: History, recorder: Recorder) -> None:
        """Take a job that has ended."""
        self._take(history, history.ended_at, history.intervals)

    def preempted(self, entry: Preemption) -> None:
        """Take a preemption."""
        self.ways.setdefault(entry.victim, Counter())[entry.preemptor or "", entry.mode.value] += 1

    def finish(self, recorder: Recorder) -> None:
        """Take those that have not ended when the run is over."""
        for history in recorder.histories.values():
            if history.final_state is None:
                now = (history.state, history.since, history.since, history.allocation, 0)
                self._take(history, None, [*history.intervals, now])

    def _take(self, history: History, ended_at: Seconds | None, intervals: Sequence[Interval]) -> None:
        spans = [
            (state.value, tidy(start), tidy(end)) for state, start, end, *_ in intervals if state in _ALIVE
        ]
        state = history.final_state.value if history.final_state is not None else ""
        told = zlib.crc32(repr((spans, state, ended_at is not None and tidy(ended_at))).encode())
        self.fates[history.job.id] = (history.first_start, told, state)
        self._places[history.job.id] = history.number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Story) and (self.fates, self.ways) == (other.fates, other.ways)

    __hash__ = None  # type: ignore[assignment]

    def in_order(self, jobs: set[str]) -> list[str]:
        """Return jobs in the order of their submission."""
        return sorted(jobs, key=lambda job: (self._places.get(job, len(self._places)), job))


# ------------------------------------------------------------------------------- the steps between
@attrs.frozen
class Step:
    """What is switched from one run to the next."""

    name: str
    """Name of a rule; empty: what the release reads otherwise."""
    text: str
    config: Config
    """Of the run that comes after it."""


def steps(vendor: Vendor, before: Config, after: Config) -> list[Step]:
    """Return what leads from one configuration to the same one under another release, in the order of releases."""
    old, new = (_rules(vendor, each) for each in (before, after))
    differ = [rule for rule in vendor.changes if old[rule] != new[rule]]
    config = _switched(after, {rule: old[rule] for rule in differ})
    same = attrs.evolve(after, scheduler=before.scheduler)
    keys = list(_keys(unstructure(before), unstructure(same)))
    read = ", ".join([key for key in keys if not key.startswith(_ASIDE)] or keys)
    found = [Step("", f"what the release reads otherwise ({read})", config)] if read else []
    for rule in differ:
        config = _switched(config, {rule: new[rule]})
        turn = "new" if new[rule] else "gone"
        text = f"{vendor.changes[rule]}, {turn}: {vendor.rules[rule]} [{rule}]"
        found.append(Step(rule, text, config))
    return found


def _rules(vendor: Vendor, config: Config) -> dict[str, bool]:
    of_release = vendor.in_force(config.scheduler) if vendor.in_force is not None else {}
    return {**of_release, **config.scheduler.rules}


def _switched(config: Config, rules: Mapping[str, bool]) -> Config:
    scheduler = attrs.evolve(config.scheduler, rules={**config.scheduler.rules, **rules})
    return attrs.evolve(config, scheduler=scheduler)


_ASIDE = "cluster.attributes."
"""What readers note for checks and plugins: it is named where nothing else differs."""


def _keys(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Yield the keys whose values differ, with the new value if it is a word or a number."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in dict.fromkeys((*before, *after)):
            yield from _keys(before.get(key), after.get(key), f"{path}.{key}" if path else str(key))
    elif before != after:
        plain = isinstance(after, str | int | float)
        yield f"{path}={after}" if plain else path


def telling(
    found: Sequence[Step], first: Story, last: Story, play: Callable[[Config], Story]
) -> list[tuple[Step, Story, Story]]:
    """Return the steps that change something, each with the runs before and after it.

    :param first: the run before all steps; `last`: the run after all of them.
    :param play: replays a configuration; called in processes of their own.
    :raises ConfigError: a process was killed.
    """
    stories = {0: first, len(found): last}
    spans = [(0, len(found))] if first != last else []
    while middles := [(low + high) // 2 for low, high in spans if high - low > 1]:
        configs = [found[middle - 1].config for middle in middles]
        stories |= dict(zip(middles, _played(configs, play), strict=True))
        cut = (part for low, high in spans for part in _halves(low, high))
        spans = [(low, high) for low, high in cut if stories[low] != stories[high]]
    return [(found[high - 1], stories[low], stories[high]) for low, high in spans]


def _halves(low: int, high: int) -> Iterator[tuple[int, int]]:
    middle = (low + high) // 2
    yield from ((low, middle), (middle, high)) if high - low > 1 else ((low, high),)


def _played(configs: Sequence[Config], play: Callable[[Config], Story]) -> list[Story]:
    """Replay each configuration in a process of its own."""
    with side_by_side(lambda at: play(configs[at]), len(configs), cores(), f"--compare {KEY}") as done:
        found = dict(done)
    return [found[at] for at in range(len(configs))]


# ------------------------------------------------------------------------------- what people are told
@attrs.frozen
class Between:
    """Two runs of one log that differ by release."""

    name: str
    """What the second run is called."""
    before: Config
    after: Config
    first: Story
    last: Story

    def told(self, play: Callable[[Config], Story]) -> Text:
        """Return what the second release changes, and which of its rules do it.

        :param play: replays a configuration; called in processes of their own.
        :raises ConfigError: a process was killed.
        """
        vendor = of_releases()
        assert vendor is not None  # or no release could have been read
        was, becomes = (_release(vendor, each) for each in (self.before, self.after))
        found = steps(vendor, self.before, self.after)
        which = telling(found, self.first, self.last, play)
        heading = f"{self.name}: {vendor.title} {becomes} in place of {was}"
        return _told(heading, len(found) - len(which), which, (self.first, self.last))


def _release(vendor: Vendor, config: Config) -> str:
    newest = vendor.releases[1] if vendor.releases is not None else ""
    return vendor.release_of(config.scheduler) or newest


def _told(
    heading: str, idle: int, which: Sequence[tuple[Step, Story, Story]], ends: tuple[Story, Story]
) -> Text:
    """Return it as text.

    :param idle: number of steps that change nothing.
    :param which: those that do.
    """
    before, after = ends
    jobs = len(before.fates.keys() | after.fates.keys())
    no_more = (
        f"{counted(idle, 'difference')} between them {'changes' if idle == 1 else 'change'} nothing here"
    )
    if not which:
        return Text(f"{heading}: what becomes of {counted(jobs, 'job')} is the same; {no_more}")
    changes = _changes(before, after)
    changed = sum(len(names) for _, names in changes)
    lines = [f"{heading}: {changed:,} of {counted(jobs, 'job')} fare otherwise", *_listed(changes)]
    for step, was, becomes in which:
        lines += [f"because of {step.text}", *_listed(_changes(was, becomes))]
    return Text("\n".join([*lines, no_more] if idle else lines))


def _changes(before: Story, after: Story) -> list[tuple[str, list[str]]]:
    """Return kinds of change, each with its jobs in order of submission; each job stands in the first that fits."""
    kinds: dict[str, list[str]] = {}
    for job in after.in_order(before.fates.keys() | after.fates.keys()):
        kind = _change(before, after, job)
        if kind:
            of = before if kind == _NO_LONGER else after
            kinds.setdefault(kind, []).append(_shown(job, of) if kind in _MAKING_WAY else job)
    return [(kind, kinds[kind]) for kind in _KINDS if kind in kinds]


_NEWLY, _NO_LONGER, _OTHERWISE = "make way only now", "no longer make way", "make way otherwise"
_EARLIER, _LATER, _REST = "start earlier", "start later", "run otherwise"
_MAKING_WAY = (_NEWLY, _NO_LONGER, _OTHERWISE)
_KINDS = (*_MAKING_WAY, _EARLIER, _LATER, _REST)


def _change(before: Story, after: Story, job: str) -> str:
    """Return the kind of change; empty: there is none."""
    was, becomes = before.ways.get(job), after.ways.get(job)
    if was != becomes:
        return _NEWLY if was is None else _NO_LONGER if becomes is None else _OTHERWISE
    old, new = before.fates.get(job), after.fates.get(job)
    if old == new:
        return ""
    starts = [math.inf if fate is None or fate[0] is None else fate[0] for fate in (old, new)]
    return _EARLIER if starts[1] < starts[0] else _LATER if starts[1] > starts[0] else _REST


def _shown(job: str, of: Story) -> str:
    """Return a victim with the first job that it makes way for."""
    names = [name for name in dict.fromkeys(preemptor for preemptor, _ in of.ways[job]) if name]
    more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
    return f"{job} for {names[0]}{more}" if names else job


def _listed(changes: Sequence[tuple[str, Sequence[str]]]) -> Iterator[str]:
    for kind, names in changes:
        more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
        yield f"  {len(names):,} {kind}: {', '.join(names[:_NAMED])}{more}"
