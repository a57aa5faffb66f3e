"""Say who may do what (local-world 5).

Who asks is what the kernel says of the other end of the socket, never what the request says. The owner of a job, root
and operators may do everything with it; operators are named in the configuration. In private mode others see that a
job is there and what it holds, but neither its name nor its command.
"""

from __future__ import annotations

import functools
import grp
import os
import pwd
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from makeway.config import Config
from makeway.errors import ConfigError, MakewayError, Problem
from makeway.registry import world_settings
from makeway_local_world.daemon.fairness import Bounds, Share
from makeway_local_world.places import Places
from makeway_local_world.requests import Who


class Forbidden(MakewayError):  # noqa: N818  # an answer, not a fault
    """A user asks for what is not allowed."""


@attrs.frozen(kw_only=True)
class Rules:
    """Who may do what, as configured."""

    system: bool = False
    """Whether several people are served; else only the daemon's own user, and root."""
    operators: tuple[str, ...] = ()
    """User names, and ``@group`` for all members of a group."""
    attributes: tuple[str, ...] = ()
    """Attributes that all users may give jobs; operators give any."""
    private: bool = False
    """Whether names and commands of others' jobs are hidden."""
    share: Share = attrs.field(factory=Share)
    """How much of the daemon one user may have."""
    owner: int = attrs.field(factory=os.geteuid)
    """The daemon's user."""
    web: str = "all"
    """Who may ask for a page: ``all``, ``operators``, or no user (``off``)."""
    web_port: int = 0
    """Where it is served; 0: anywhere."""
    bookings: Bounds = attrs.field(factory=Bounds)
    """What one user may book."""

    def check_operators(self, source: str) -> None:
        """Check that all operators exist.

        :raises ConfigError: names those that do not.
        """
        problems = []
        for name in self.operators:
            try:
                grp.getgrnam(name[1:]) if name.startswith("@") else pwd.getpwnam(name)
            except KeyError:
                what = "group" if name.startswith("@") else "user"
                problems.append(Problem("world.settings.operators", f"no {what} named {name.lstrip('@')!r}"))
        if problems:
            raise ConfigError(source, problems)

    def may_connect(self, uid: int) -> bool:
        """Say whether a user may talk to this daemon at all."""
        return self.system or uid in (self.owner, 0)

    def is_operator(self, uid: int) -> bool:
        """Say whether a user may do everything with all jobs."""
        if uid in (0, self.owner):
            return True
        name = name_of(uid)
        groups = [each[1:] for each in self.operators if each.startswith("@")]
        return name in self.operators or any(_is_member(name, uid, group) for group in groups)

    def port_for(self, uid: int, wanted: int) -> int:
        """Return the port of the page for a user who wants one, or any (0).

        :raises Forbidden: there is to be no page for this user, or the port is not for this user to choose.
        """
        if self.web == "off":
            raise Forbidden("there is no page here: world.settings.web is off")
        if self.web == "operators":
            forbid(self, uid, "see the page")
        if wanted in (0, self.web_port):
            return self.web_port
        if self.web_port:
            raise Forbidden(f"the page is at port {self.web_port}: world.settings.web_port")
        forbid(self, uid, "choose the port of the page")
        return wanted

    def may_change(self, uid: int, owner: str) -> bool:
        """Say whether a user may change a job of `owner`, a user name."""
        return self.is_operator(uid) or name_of(uid) == owner

    def may_see(self, uid: int, owner: str) -> bool:
        """Say whether a user may see names and commands of a job of `owner`."""
        return not self.private or self.may_change(uid, owner)


def forbid(rules: Rules, uid: int, what: str) -> None:
    """Let only operators go on.

    :raises Forbidden: the user is none.
    """
    if not rules.is_operator(uid):
        raise Forbidden(f"only root, the daemon's user and operators may {what}")


def rules_of(config: Config, places: Places, source: str, plugins: Mapping[str, Any] | None = None) -> Rules:
    """Return who may do what, by the settings of the world.

    :raises ConfigError: an operator does not exist.
    """
    settings = world_settings(config, plugins)
    rules = Rules(
        system=places.system,
        operators=tuple(getattr(settings, "operators", ())),
        attributes=tuple(getattr(settings, "attributes", ())),
        private=bool(getattr(settings, "private", False)),
        web=str(getattr(settings, "web", "all")),
        web_port=int(getattr(settings, "web_port", 0)),
        share=_share(settings),
        bookings=_bounds(settings),
    )
    rules.check_operators(source)
    return rules


def _share(settings: Any) -> Share:
    usual = Share()
    return Share(
        connections=getattr(settings, "user_connections", usual.connections),
        requests=getattr(settings, "user_requests", usual.requests),
        jobs=getattr(settings, "user_jobs", usual.jobs),
        storage=getattr(settings, "user_storage", usual.storage >> 20) << 20,
    )


def _bounds(settings: Any) -> Bounds:
    usual = Bounds()
    return Bounds(
        many=getattr(settings, "user_bookings", usual.many),
        longest=getattr(settings, "booking_limit", usual.longest),
        cpus=getattr(settings, "booking_cpus", usual.cpus),
        gpus=getattr(settings, "booking_gpus", usual.gpus),
        memory_mb=getattr(settings, "booking_memory_mb", usual.memory_mb),
        unused=getattr(settings, "booking_unused", usual.unused),
    )


@functools.lru_cache(maxsize=4096)
def name_of(uid: int) -> str:
    """Return the login name of a user, or its number where there is none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


@functools.lru_cache(maxsize=4096)
def _is_member(name: str, uid: int, group: str) -> bool:
    try:
        entry = grp.getgrnam(group)
        return name in entry.gr_mem or pwd.getpwuid(uid).pw_gid == entry.gr_gid
    except KeyError:
        return False


def forget() -> None:
    """Ask the system again who is who; called when the configuration is read again."""
    for known in (name_of, _is_member, home_of, who_is):
        known.cache_clear()


@functools.lru_cache(maxsize=4096)
def home_of(uid: int) -> str:
    """Return the home directory of a user; ``/``: it is not known."""
    try:
        return pwd.getpwuid(uid).pw_dir or "/"
    except KeyError:
        return "/"


@functools.lru_cache(maxsize=4096)
def who_is(uid: int, gid: int) -> Who:
    """Return whose rights a job has that this user submits."""
    name = name_of(uid)
    try:
        gid = pwd.getpwuid(uid).pw_gid
        group = grp.getgrgid(gid).gr_name
    except KeyError:
        group = str(gid)
    return Who(user=name, uid=uid, gid=gid, group=group)


_HIDDEN = ("name", "command", "account", "script", "cwd")


def veiled(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job as others see it in private mode."""
    return {key: "" if key in _HIDDEN else value for key, value in job.items()}


def veil(rules: Rules, uid: int, jobs: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return jobs as a user may see them."""
    return [dict(job) if rules.may_see(uid, str(job["user"])) else veiled(job) for job in jobs]
