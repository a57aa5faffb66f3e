"""Keep the calendar of the machine: which CPUs, GPUs and memory are booked, by which user, and when (local-world 9).

Bookings lie in a file of the state directory, which is written before the engine hears of them. The engine has them as
``limits/bookings``, in the configuration that it goes on under: another one, whenever the calendar changes.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import attrs

from makeway.config import Config
from makeway.errors import MakewayError
from makeway_live.drive import Live
from makeway_local_world.bookings import ATTRIBUTE, NAME, Amount, held_now, there
from makeway_local_world.daemon.desk import Desk
from makeway_local_world.daemon.fairness import Bounds
from makeway_local_world.daemon.intake import Refusal
from makeway_local_world.daemon.people import Rules, name_of
from makeway_local_world.daemon.why import when
from makeway_local_world.keeping.files import store

T = TypeVar("T")

_FILE = "bookings.json"
AHEAD = 31 * 86400.0
"""How far ahead anything may be booked."""
_LATE = 60.0
"""Seconds by which a booking may begin in the past: it begins now."""
_SOON = 0.05
_LOOK = 60.0
"""Seconds between two looks at a calendar that holds anything."""
_DRIFT = 2.0
"""Seconds by which the wall clock may differ from the run's before the engine is told anew."""
_HOUR = 3600.0
_KEYS = {"GPUs": "gpus", "CPUs": "cpus", "MB of memory": "memory_mb"}
"""What is booked, for people -> its field, and the end of its setting."""
_log = logging.getLogger("makeway")


@attrs.frozen(kw_only=True)
class Booking:
    """One entry of the calendar; times are Unix times."""

    id: int
    user: str
    cpus: int
    gpus: int
    memory_mb: int
    start: float
    end: float

    @property
    def amount(self) -> Amount:
        """What is booked."""
        return Amount(self.cpus, self.gpus, self.memory_mb)

    def meets(self, start: float, end: float) -> bool:
        """Whether it has a part of that time."""
        return start < self.end and self.start < end

    @property
    def told(self) -> str:
        """Who has booked until when, for people."""
        return f"booked by {self.user} from {_minute(self.start)}"


def read(state: Path) -> tuple[int, list[Booking]]:
    """Return the next id, and the bookings.

    :raises MakewayError: the file is damaged.
    """
    path = state / _FILE
    try:
        found = json.loads(path.read_text())
        return int(found["next"]), [Booking(**each) for each in found["bookings"]]
    except FileNotFoundError:
        return 1, []
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise MakewayError(
            f"{path}: it cannot be read: {error}; move it away to begin without bookings"
        ) from None


def write(state: Path, following: int, bookings: Iterable[Booking]) -> None:
    """Store the calendar."""
    found = {"next": following, "bookings": [attrs.asdict(each) for each in bookings]}
    store(state / _FILE, json.dumps(found))


def applied(config: Config, bookings: Iterable[Booking], zero: float) -> Config:
    """Return a configuration under which an engine heeds bookings; without any it is `config` itself.

    :param zero: Unix time of the run's instant 0.
    """
    tables = [
        {
            "user": each.user,
            "cpus": each.cpus,
            "gpus": each.gpus,
            "memory_mb": each.memory_mb,
            "start": each.start - zero,
            "end": each.end - zero,
            "told": each.told,
        }
        for each in bookings
    ]
    if not tables:
        return config
    cluster, policy = config.cluster, config.policy
    plugins = policy.plugins if NAME in policy.plugins else (NAME, *policy.plugins)
    return attrs.evolve(
        config,
        cluster=attrs.evolve(cluster, attributes={**cluster.attributes, ATTRIBUTE: tables}),
        policy=attrs.evolve(policy, plugins=plugins),
    )


class Calendar:
    """The bookings of one daemon."""

    def __init__(
        self, desk: Desk, state: Path, rules: Callable[[], Rules], plugins: Mapping[str, Any] | None
    ) -> None:
        """Read them, and have the engine heed them; called on the engine's thread, before its first turn.

        :param state: where they are stored.
        :param rules: says what one user may book.
        :param plugins: policies and worlds by name that need no installation.
        """
        self._desk, self._live = desk, desk.live
        self._state = state
        self._rules = rules
        self._plugins = plugins
        self.config = self._live.engine.config
        """The configuration without bookings."""
        self._next, self._all = read(state)
        self._since = time.time()
        self._zero = 0.0
        """Unix time of the run's instant 0, as the engine was told."""
        self._used: dict[int, float] = {}
        """When a job of its user was last seen in a booking."""
        self._lock = asyncio.Lock()
        self._changed = asyncio.Event()
        if self._all:
            self._tell_engine()

    # ------------------------------------------------------------------- on the engine's thread
    def _tell_engine(self) -> None:
        live: Live = self._live
        self._zero = live.clock.wall() - live.clock.now()
        live.reload(self.within(self.config), self._plugins, source="bookings")
        edges = {
            each for booking in self._all for each in (booking.start - self._zero, booking.end - self._zero)
        }
        for at in (live.clock.now() + _SOON, *edges):
            live.engine.making_way.remember(at)
        live.feed()  # the turn ends at once, and others hear of it

    def within(self, config: Config) -> Config:
        """Return a configuration with what is booked."""
        return applied(config, self._all, self._live.clock.wall() - self._live.clock.now())

    def _there(self) -> Amount:
        return there(self._live.engine.ledger.cluster)

    def _in_use(self) -> dict[str, Amount]:
        return held_now(self._live.engine.ledger)

    async def _ask(self, work: Callable[[], T]) -> T:
        """Have something done on the engine's thread."""
        return await asyncio.wrap_future(self._desk.ask(work))

    # --------------------------------------------------------------------------------- people
    def shown(self) -> dict[str, Any]:
        """Return what is booked, soonest first."""
        machine = self._there()
        return {
            "cpus": machine.cpus,
            "gpus": machine.gpus,
            "memory_mb": machine.memory_mb,
            "bookings": [
                attrs.asdict(each) for each in sorted(self._all, key=lambda each: (each.start, each.id))
            ],
        }

    async def book(self, uid: int, wanted: Amount, start: float, end: float) -> dict[str, Any]:
        """Book something.

        :raises Refusal: it cannot be had, or is more than one user may book.
        """
        async with self._lock:
            now = time.time()
            machine = self._there()
            free = self._rules().is_operator(uid)
            if not wanted.cpus and any(
                wanted
            ):  # the share of the CPUs that belongs to these GPUs, one at least
                share = machine.cpus * wanted.gpus // max(1, machine.gpus)
                most = 0 if free else self._rules().bookings.cpus
                wanted = wanted._replace(cpus=max(1, min(machine.cpus, share, most or share)))
            if now - _LATE <= start < now:
                start = now
            made = Booking(id=self._next, user=name_of(uid), **wanted._asdict(), start=start, end=end)
            self._check(made, machine, now, free=free)
            await self._change([*self._all, made], self._next + 1)
            return attrs.asdict(made)

    def _check(self, made: Booking, machine: Amount, now: float, *, free: bool) -> None:
        if not any(made.amount):
            raise Refusal("name what to book: CPUs, GPUs, memory")
        if made.start < now:
            raise Refusal(f"it would begin at {_minute(made.start)}, which has passed; it is {when(now)}")
        if made.end <= made.start:
            raise Refusal(f"it would end at {_minute(made.end)}, before it begins at {_minute(made.start)}")
        for name, want, have in _each(made.amount, machine):
            if want > have:
                raise Refusal(f"got {_counted(want, name)}; this machine has {have}")
        if made.end > now + AHEAD:
            raise Refusal(f"it would end at {_minute(made.end)}; allowed: within {AHEAD / 86400:.0f} days")
        if not free:
            self._check_bounds(made, self._rules().bookings)
        then = [each for each in self._all if each.meets(made.start, made.end)]
        for name, want, left in _each(made.amount, machine.minus(_peak(then, made))):
            if want > left:
                others = ", ".join(f"{each.told} to {_minute(each.end)}" for each in then[:3])
                raise Refusal(f"got {_counted(want, name)}; {left} can be booked then: {others}")

    def _check_bounds(self, made: Booking, bounds: Bounds) -> None:
        """Refuse what is more than one user may book."""
        own = [each for each in self._all if each.user == made.user]
        if len(own) >= bounds.many:
            raise Refusal(f"you have {len(own)} bookings; world.settings.user_bookings allows {bounds.many}")
        if made.end - made.start > bounds.longest:
            raise Refusal(
                f"got {(made.end - made.start) / _HOUR:.3g} hours;"
                f" world.settings.booking_limit allows {bounds.longest / _HOUR:.3g}"
            )
        then = _peak([each for each in own if each.meets(made.start, made.end)], made).plus(made.amount)
        for name, want, most in _each(then, bounds.amount):
            if most and want > most:
                key = f"world.settings.booking_{_KEYS[name]}"
                raise Refusal(f"you would have {_counted(want, name)} booked at a time; {key} allows {most}")

    async def cancel(self, uid: int, booking_id: str) -> dict[str, Any]:
        """Give a booking back.

        :raises Refusal: there is none, or it is another user's.
        """
        async with self._lock:
            found = next((each for each in self._all if str(each.id) == booking_id), None)
            if found is None:
                raise Refusal(f"there is no booking {booking_id}; see makeway reserve")
            if not self._rules().may_change(uid, found.user):
                raise Refusal(f"booking {booking_id} belongs to {found.user}")
            await self._change([each for each in self._all if each is not found], self._next)
            return attrs.asdict(found)

    async def _change(self, bookings: list[Booking], following: int) -> None:
        """Store another calendar, and have the engine heed it; if that fails, all is as before."""
        before = self._next, self._all
        await asyncio.to_thread(write, self._state, following, bookings)
        self._next, self._all = following, bookings
        try:
            await self._ask(self._tell_engine)
        except Exception:
            self._next, self._all = before
            await asyncio.to_thread(write, self._state, *before)
            raise
        self._changed.set()

    async def reloaded(self, config: Config, reload: Callable[[], Any]) -> None:
        """Go on under another configuration, with what is booked."""
        async with self._lock:
            await self._ask(reload)
            self.config = config
            if self._all:
                await self._ask(self._tell_engine)

    # --------------------------------------------------------------------------------- time
    async def keep(self) -> None:
        """Drop what is over or not used, again and again."""
        while True:
            self._changed.clear()
            try:
                if self._all:
                    await self._look()
            except Exception:
                _log.exception("the calendar could not be looked through")
            pause = self._until_next() if self._all else None
            try:
                await asyncio.wait_for(self._changed.wait(), pause)
            except TimeoutError:
                continue

    def _until_next(self) -> float:
        now, unused = time.time(), self._rules().bookings.unused
        marks = [at for each in self._all for at in (each.start, each.start + unused, each.end) if at > now]
        return max(0.1, min([_LOOK, *(at - now for at in marks)]))

    async def _look(self) -> None:
        async with self._lock:
            now = time.time()
            running = await self._ask(self._in_use)
            left = []
            for each in self._all:
                if self._is_used(each, running):
                    self._used[each.id] = now
                if each.end > now and not self._is_idle(each, now):
                    left.append(each)
            zero = self._live.clock.wall() - self._live.clock.now()
            if len(left) != len(self._all):
                for each in self._all:
                    if each not in left:
                        self._used.pop(each.id, None)
                        _log.info("booking %d of %s is over", each.id, each.user)
                await self._change(left, self._next)
            elif abs(zero - self._zero) > _DRIFT:
                await self._ask(self._tell_engine)

    def _is_used(self, each: Booking, running: dict[str, Amount]) -> bool:
        held = running.get(each.user, Amount())
        return bool(held.gpus if each.gpus else held.cpus)

    def _is_idle(self, each: Booking, now: float) -> bool:
        """Whether no job of its user has been in a booking for so long that it falls back."""
        unused = self._rules().bookings.unused
        since = max(each.start, self._since, self._used.get(each.id, 0.0))
        return bool(unused) and now - since >= unused


def _each(first: Amount, second: Amount) -> list[tuple[str, int, int]]:
    return [(name, getattr(first, key), getattr(second, key)) for name, key in _KEYS.items()]


def _counted(number: int, name: str) -> str:
    return f"{number} {name[:-1] if number == 1 and name.endswith('s') else name}"


def _peak(bookings: list[Booking], made: Booking) -> Amount:
    """Return the most that is booked at any one time of another booking."""
    most = Amount()
    for at in {made.start, *(each.start for each in bookings if each.start > made.start)}:
        then = Amount()
        for each in bookings:
            if each.start <= at < each.end:
                then = then.plus(each.amount)
        most = most.most(then)
    return most


def _minute(at: float) -> str:
    """Return an instant to the minute, with the date if it is not today."""
    then, now = time.localtime(at), time.localtime()
    return time.strftime("%H:%M" if then[:3] == now[:3] else "%F %H:%M", then)
