"""Say which parameters of slurm.conf came and went with which release of Slurm.

What 22.05.8 knows was found by starting its slurmctld with each parameter. Releases in which parameters went are
those of SchedMD's release notes; where they are not known, 22.05 is the first that is known to be without.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from makeway_slurm.rules import version

MEASURED = "22.05"
"""The release whose slurmctld was asked."""


@attrs.frozen(kw_only=True)
class Retired:
    """A parameter that Slurm no longer has."""

    name: str
    """As the manual spelled it."""
    gone: str | None = None
    """First release without it; None: not known, `MEASURED` is without it."""
    instead: str = ""
    """What took its place; empty: nothing."""
    ignored: tuple[str, ...] = ()
    """Values that 22.05.8 still takes, and ignores."""

    def is_gone(self, release: str | None) -> bool:
        """Whether `release` is without it; None: the newest."""
        return release is None or version(release) >= version(self.gone or MEASURED)

    def refused(self, value: str) -> bool:
        """Whether slurmctld does not start with it."""
        return value not in self.ignored

    @property
    def sentence(self) -> str:
        """Say when it went, and what took its place."""
        when = f"gone since Slurm {self.gone}" if self.gone else f"no longer known to Slurm {MEASURED}"
        return f"{when}; {self.instead}" if self.instead else when


def _retired(*found: Retired) -> dict[str, Retired]:
    return {each.name.lower(): each for each in found}


RETIRED: Mapping[str, Retired] = _retired(
    Retired(name="AccountingStorageLoc"),
    Retired(name="AccountingStoreJobComment", instead="AccountingStoreFlags=job_comment took its place"),
    Retired(name="CacheGroups"),
    Retired(name="CheckpointType", gone="20.02"),
    Retired(name="DefaultStorageHost", instead="AccountingStorageHost took its place"),
    Retired(name="DefaultStorageLoc"),
    Retired(name="DefaultStoragePass", instead="AccountingStoragePass took its place"),
    Retired(name="DefaultStoragePort", instead="AccountingStoragePort took its place"),
    Retired(name="DefaultStorageType", instead="AccountingStorageType took its place"),
    Retired(name="DefaultStorageUser", instead="AccountingStorageUser took its place"),
    Retired(name="DefMemPerTask", gone="2.0", instead="DefMemPerCPU and DefMemPerNode took its place"),
    Retired(name="DynAllocPort", gone="15.08"),
    Retired(
        name="FastSchedule",
        gone="20.02",
        instead="2 is SlurmdParameters=config_overrides now",
        ignored=("1",),
    ),
    Retired(name="HeartbeatInterval"),
    Retired(name="JobAcctLoc"),
    Retired(name="JobAcctType", instead="JobAcctGatherType took its place"),
    Retired(name="JobCheckpointDir", gone="20.02"),
    Retired(name="KillTree"),
    Retired(name="MaxMemPerTask", gone="2.0", instead="MaxMemPerCPU and MaxMemPerNode took its place"),
    Retired(
        name="MemLimitEnforce", gone="19.05", instead="JobAcctGatherParams=OverMemoryKill took its place"
    ),
    Retired(name="MpichGmDirectSupport"),
    Retired(
        name="SallocDefaultCommand",
        gone="20.11",
        instead="LaunchParameters=use_interactive_step took its place",
    ),
    Retired(name="SchedulerPort"),
    Retired(name="SchedulerRootFilter"),
)
"""Parameters by their name in lower case."""

_NEWER = {
    "": """CertgenParameters CertgenType CertmgrParameters CertmgrType DataParserParameters EpilogTimeout HashPlugin
        HttpParserType JobCompPassScript MaxBatchRequeue MetricsType NamespacePlugin NamespaceType PrologTimeout
        SlurmdPlugstack SuspendExcStates TLSParameters TLSType UrlParserType""",
    "nodename": "CertToken Parameters ResumeTimeout SuspendTime SuspendTimeout Topology",
    "partitionname": """AllowAssocs ExclusiveTopo JobDefaults MaxCPUsPerSocket PowerDownOnIdle
        Topology""",
}
NEWER: Mapping[str, frozenset[str]] = {
    kind: frozenset(names.lower().split()) for kind, names in _NEWER.items()
}
"""Kind of a record, or nothing for plain parameters -> those that 22.05.8 does not know yet, in lower case.

PreemptParameters and a partition's Exclusive, whose releases are known, are not among them."""

NEWER_SELECT_WORDS = frozenset(("enforce_binding_gres", "ll_shared_gres", "multiple_sharing_gres_pj"))
"""Words of SelectTypeParameters that 22.05.8 refuses."""


def is_measured(release: str | None) -> bool:
    """Whether what 22.05.8 does is what `release` does."""
    return release is not None and version(release)[:2] == version(MEASURED)[:2]
