"""Find the QoS of a job, and its flags (moab 1 and 3.3).

Flags are unions: what was asked for, what its user, group, account, class and QoS add, and what the scheduler
marked. No credential takes away what another one gave.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from makeway.model import Cluster, ClusterView, Grouping, Job, Qos
from makeway_moab_qos.settings import Credential, ListMode, Settings, path

NONE = Credential()
DEFAULT = "DEFAULT"
QOS_GIVES = ("PREEMPTOR", "PREEMPTEE")
"""Flags of a QoS that become flags of its jobs."""
_IN_ORDER = ("user", "group", "account", "klass")


@attrs.frozen(kw_only=True)
class Access:
    """Which QoS a job gets, and why."""

    qos: str | None
    requested: str | None
    allowed: tuple[str, ...] | None
    """None: no list says anything, so all are."""
    because: str
    setting: str = ""

    @property
    def refused(self) -> bool:
        """Whether the job asked for a QoS that it may not use."""
        return self.requested is not None and self.requested != self.qos


def settings_of(view: ClusterView) -> Settings:
    """Return the settings in force."""
    return view.settings(Settings)


def names_of(job: Job) -> Mapping[str, str | None]:
    """Return the names of the job's credentials, but its QoS."""
    return {
        "user": job.user,
        "group": job.spec.group,
        "account": job.account,
        "klass": job.partition.name,
    }


def credential(settings: Settings, kind: str, name: str | None) -> Credential:
    """Return what is configured for one credential."""
    table: Mapping[str, Credential] = getattr(settings, kind)
    return table.get(name, NONE) if name is not None else NONE


# ------------------------------------------------------------------------------------------- QoS
def access(job: Job, view: ClusterView) -> Access:
    """Resolve the QoS of a job; it stays the same for as long as the job is in its partition."""
    settings = settings_of(view)
    known: dict[tuple[str, str], Access] = settings.memo.setdefault("access", {})
    key = (job.id, job.partition.name)
    found = known.get(key)
    if found is None:
        found = known[key] = resolve(job, settings, view.cluster)
    return found


def resolve(job: Job, settings: Settings, cluster: Cluster) -> Access:
    """Follow section 3.3, steps 1 to 5."""
    requested = job.spec.qos
    lists = list(_lists(job, settings))
    members = [name for name, each in settings.qos.items() if job.user in each.members]
    if not any(credential.qlist or credential.qdef for _, _, credential in lists) and not (
        members or settings.system.qlist or settings.system.qdef
    ):
        return Access(
            qos=requested, requested=requested, allowed=None, because="no list of QoS says anything"
        )
    allowed = _allowed(lists, settings.system, members)
    default, because, setting = _default(lists, settings, allowed, cluster)
    if requested is not None and requested in allowed:
        return Access(
            qos=requested,
            requested=requested,
            allowed=tuple(allowed),
            because="as requested",
            setting=_granted(requested, lists, settings),
        )
    return Access(qos=default, requested=requested, allowed=tuple(allowed), because=because, setting=setting)


def may_use(name: str, klass: str, settings: Settings) -> bool:
    """Whether some user may run jobs of a class in a QoS (3.3): by a list of the class, or any other list."""
    own = settings.klass.get(klass, NONE)
    if not _names(own):
        own = settings.klass.get(DEFAULT, NONE)
    others = (settings.user, settings.group, settings.account)
    granting = [own, settings.system, *(each for table in others for each in table.values())]
    if own.mode is not ListMode.OR and _names(own):
        return name in _names(own)
    members = [each for each in settings.qos.values() if each.members]
    if not (members or any(map(_names, granting))):
        return True
    return any(name in _names(each) for each in granting) or bool(settings.qos.get(name, NONE).members)


def _granted(name: str, lists: list[tuple[str, str, Credential]], settings: Settings) -> str:
    """Return where a QoS is allowed."""
    for kind, index, each in lists:
        if name in each.qlist:
            return path(kind, index, "qlist")
        if name == each.qdef:
            return path(kind, index, "qdef")
    if name in _names(settings.system):
        return path("system", "qlist" if name in settings.system.qlist else "qdef")
    return path("qos", name, "members")


def _lists(job: Job, settings: Settings) -> Iterator[tuple[str, str, Credential]]:
    """Yield kind, index and credential of the four; DEFAULT stands in for an empty list."""
    for kind, name in names_of(job).items():
        own = credential(settings, kind, name)
        if own.qlist or own.qdef:
            yield kind, name or "", own
        else:
            yield kind, DEFAULT, credential(settings, kind, DEFAULT)


def _names(credential: Credential) -> list[str]:
    """Return the list of a credential; its default is always in it."""
    names = [*credential.qlist]
    if credential.qdef is not None:
        names.append(credential.qdef)
    return list(dict.fromkeys(names))


def _allowed(lists: list[tuple[str, str, Credential]], system: Credential, members: list[str]) -> list[str]:
    allowed = _names(system)
    strict = system.mode is ListMode.AND and bool(allowed)
    if not strict:
        for _, _, each in lists:
            if each.mode is ListMode.OR:
                allowed += _names(each)
        allowed += members
    first = not strict
    for kind in ("klass", "account", "group", "user"):
        for found, _, each in lists:
            if found == kind and each.mode is ListMode.AND and _names(each):
                names = _names(each)
                allowed = names if first else [name for name in allowed if name in names]
                first = False
    for kind in _IN_ORDER:
        for found, _, each in lists:
            if found == kind and each.mode is ListMode.ONLY and _names(each):
                return list(dict.fromkeys(_names(each)))
    return list(dict.fromkeys(allowed))


def _default(
    lists: list[tuple[str, str, Credential]],
    settings: Settings,
    allowed: list[str],
    cluster: Cluster,
) -> tuple[str | None, str, str]:
    """Return the default QoS (step 4), which rule chose it, and where that is set."""
    for kind, index, each in lists:
        others = [(index, each)]
        if index != DEFAULT:
            others.append((DEFAULT, credential(settings, kind, DEFAULT)))
        for name, one in others:
            if one.qdef is not None and one.qdef in allowed:
                word = "class" if kind == "klass" else kind
                return one.qdef, f"QDEF of {word} {name}", path(kind, name, "qdef")
    if settings.system.qdef is not None and settings.system.qdef in allowed:
        return settings.system.qdef, "QDEF of the system", path("system", "qdef")
    order = [qos.name for qos in cluster.qos]
    ranked = sorted(allowed, key=lambda name: order.index(name) if name in order else len(order))
    if ranked:
        return ranked[0], "the first QoS that is allowed", ""
    return None, "no QoS is allowed", ""


def qos_name(job: Job, view: ClusterView) -> str | None:
    """Return the name of the QoS in force."""
    return access(job, view).qos


def qos_of(job: Job, view: ClusterView) -> Credential:
    """Return the QoS in force: as configured for Moab, else what ``[[qos]]`` says of it."""
    known: dict[tuple[str, str], Credential] = settings_of(view).memo.setdefault("qos_of", {})
    key = (job.id, job.partition.name)
    found = known.get(key)
    if found is None:
        name = qos_name(job, view)
        found = known[key] = by_name(name, view) if name is not None else NONE
    return found


def by_name(name: str, view: ClusterView) -> Credential:
    """Return a QoS by name."""
    settings = settings_of(view)
    own = settings.qos.get(name)
    if own is not None:
        return own
    table: dict[str, Credential] = settings.memo.setdefault("qos", {})
    if name not in table:
        found = view.cluster.qos_named(name)
        table[name] = _translated(found, view) if found is not None else NONE
    return table[name]


def _translated(qos: Qos, view: ClusterView) -> Credential:
    """Read a QoS that is only described in ``[[qos]]``."""
    flags = tuple(sorted(flag for flag in qos.flags if flag in QOS_GIVES))
    if settings_of(view).choices.derive_flags and not _moab_flags(view):
        if qos.preempt:
            flags += ("PREEMPTOR",)
        if any(qos.name in other.preempt for other in view.cluster.qos):
            flags += ("PREEMPTEE",)
    return Credential(priority=qos.priority, flags=flags)


def displaces_by(view: ClusterView) -> Grouping | None:
    """Return the QoS in force as what tells preemptors and victims apart; None: there are none, classes do."""
    if not (view.cluster.qos or settings_of(view).qos):
        return None
    return Grouping("QoS", lambda job: qos_name(job, view) or "(none)")


def _moab_flags(view: ClusterView) -> bool:
    named = any(flag in qos.flags for qos in view.cluster.qos for flag in QOS_GIVES)
    return named or any(each.flags for each in settings_of(view).qos.values())


# ----------------------------------------------------------------------------------------- flags
def flags(job: Job, view: ClusterView) -> frozenset[str]:
    """Return the effective flags of a job."""
    settings = settings_of(view)
    known: dict[tuple[str, str], tuple[frozenset[str], frozenset[str]]] = settings.memo.setdefault(
        "flags", {}
    )
    key = (job.id, job.partition.name)
    found = known.get(key)
    if found is None:
        found = known[key] = (_own(job), frozenset(_given(job, view)))
    own, given = found
    if settings.maui and job.preemptions and "PREEMPTEE" in own:
        own -= {"PREEMPTEE"}  # Q18: a displaced job loses its own flag
    if job.spec.requeue is False:
        given -= {"RESTARTABLE"}  # the job says so itself
    marked = job.marks & {"PREEMPTEE", "BACKFILL", "SPVIOLATION", "FSVIOLATION"}
    return own | given | marked if marked else own | given


def _own(job: Job) -> frozenset[str]:
    more = {"RESTARTABLE"} if job.spec.requeue else set()
    if not job.spec.batch:
        more.add("INTERACTIVE")
    return job.spec.flags | more if more else job.spec.flags


def _given(job: Job, view: ClusterView) -> Iterator[str]:
    for _, _, given in origins(job, view):
        yield from given


def origins(job: Job, view: ClusterView) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield who gives the job which flags: the words, the path in the config, the flags."""
    settings = settings_of(view)
    for kind, name in names_of(job).items():
        own = credential(settings, kind, name)
        index = name or DEFAULT
        if not own.jobflags:
            own, index = credential(settings, kind, DEFAULT), DEFAULT
        if own.jobflags:
            word = "class" if kind == "klass" else kind
            yield f"{word} {index}", path(kind, index, "jobflags"), own.jobflags
    qos, name = qos_of(job, view), qos_name(job, view) or ""
    given = tuple(flag for flag in qos.flags if flag in QOS_GIVES)
    if given:
        yield f"QoS {name}", path("qos", name, "flags"), given
    if qos.jobflags and not settings.maui:
        yield f"QoS {name}", path("qos", name, "jobflags"), qos.jobflags
