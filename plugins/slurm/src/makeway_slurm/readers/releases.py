"""Say which parameters of slurm.conf came and went with which release of Slurm.

What 22.05.8, 24.11.5 and 26.05.5 know was found by starting their slurmctld with each parameter. Releases in which
parameters came and went are those of SchedMD's release notes; where they are not known, the first of these three that
is without, or else has it, counts.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from makeway_slurm_rules.rules import version

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
    defunct: bool = False
    """Whether slurmctld starts with it all the same, and says in its log that it is defunct."""

    def is_gone(self, release: str | None) -> bool:
        """Whether `release` is without it; None: the newest."""
        return release is None or version(release) >= version(self.gone or MEASURED)

    def refused(self, value: str) -> bool:
        """Whether slurmctld does not start with it."""
        return not self.defunct and value not in self.ignored

    @property
    def sentence(self) -> str:
        """Say when it went, and what took its place."""
        when = f"gone since Slurm {self.gone}" if self.gone else f"no longer known to Slurm {MEASURED}"
        return f"{when}; {self.instead}" if self.instead else when


def _retired(*found: Retired) -> dict[str, Retired]:
    return {each.name.lower(): each for each in found}


RETIRED: Mapping[str, Retired] = _retired(
    Retired(name="AccountingStorageLoc"),
    Retired(name="AccountingStorageUser", gone="25.11", defunct=True),
    Retired(name="AccountingStoreJobComment", instead="AccountingStoreFlags=job_comment took its place"),
    Retired(name="CacheGroups"),
    Retired(name="CheckpointType", gone="20.02"),
    Retired(name="CoreSpecPlugin", gone="24.11", defunct=True),
    Retired(name="DefaultStorageHost", instead="AccountingStorageHost took its place"),
    Retired(name="DefaultStorageLoc"),
    Retired(name="DefaultStoragePass", instead="AccountingStoragePass took its place"),
    Retired(name="DefaultStoragePort", instead="AccountingStoragePort took its place"),
    Retired(name="DefaultStorageType", instead="AccountingStorageType took its place"),
    Retired(name="DefaultStorageUser", instead="AccountingStorageUser took its place"),
    Retired(name="DefMemPerTask", gone="2.0", instead="DefMemPerCPU and DefMemPerNode took its place"),
    Retired(name="DynAllocPort", gone="15.08"),
    Retired(name="ExtSensorsFreq", gone="24.11", defunct=True),
    Retired(name="ExtSensorsType", gone="24.11", defunct=True),
    Retired(
        name="FastSchedule",
        gone="20.02",
        instead="2 is SlurmdParameters=config_overrides now",
        ignored=("1",),
    ),
    Retired(name="GetEnvTimeout", gone="25.05", defunct=True),
    Retired(name="HeartbeatInterval"),
    Retired(name="JobAcctLoc"),
    Retired(name="JobAcctType", instead="JobAcctGatherType took its place"),
    Retired(name="JobCheckpointDir", gone="20.02"),
    Retired(name="JobCredentialPrivateKey", gone="24.11", defunct=True),
    Retired(name="JobCredentialPublicCertificate", gone="24.11", defunct=True),
    Retired(name="KillTree"),
    Retired(name="MaxMemPerTask", gone="2.0", instead="MaxMemPerCPU and MaxMemPerNode took its place"),
    Retired(
        name="MemLimitEnforce", gone="19.05", instead="JobAcctGatherParams=OverMemoryKill took its place"
    ),
    Retired(name="MpichGmDirectSupport"),
    Retired(name="PowerParameters", gone="24.11", defunct=True),
    Retired(name="PowerPlugin", gone="24.11", defunct=True),
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
    "": {
        "23.02": "HashPlugin MaxBatchRequeue SuspendExcStates",
        "24.11": "CertmgrParameters CertmgrType DataParserParameters TLSParameters TLSType",
        "25.05": """CertgenParameters CertgenType EpilogTimeout HealthCheckTimeout LicenseParameters PrologTimeout
            SlurmctldHttpAuthParameters SlurmdHttpAuthParameters""",
        "25.11": "CliFilterParameters HttpParserType JobCompPassScript MetricsType NamespaceType UrlParserType",
        "26.05": "MetricsAuthUsers MetricsParameters",
        "26.11": "NamespacePlugin SlurmdPlugstack",
    },
    "nodename": {
        "24.05": "RestrictedCoresPerGPU",
        "25.05": "Topology",
        "25.11": "Parameters",
        "26.05": "SuspendTime",
        "26.11": "CertToken ResumeTimeout SuspendTimeout",
    },
    "partitionname": {
        "23.02": "MaxCPUsPerSocket PowerDownOnIdle",
        "24.05": "ExclusiveTopo",
        "25.05": "Topology",
        "26.11": "AllowAssocs JobDefaults",
    },
    "poweraction": {"26.05": "PowerAction"},
}
NEWER: Mapping[str, Mapping[str, str]] = {
    kind: {name.lower(): release for release, listed in names.items() for name in listed.split()}
    for kind, names in _NEWER.items()
}
"""Kind of a record, or nothing for plain parameters -> those that 22.05.8 does not know yet, in lower case, with the
first release that does.

PreemptParameters and a partition's Exclusive are not among them: readers of their values know their releases."""

NEWER_SELECT_WORDS = frozenset(("enforce_binding_gres", "ll_shared_gres", "multiple_sharing_gres_pj"))
"""Words of SelectTypeParameters that 22.05.8 refuses."""


def is_measured(release: str | None) -> bool:
    """Whether what 22.05.8 does is what `release` does."""
    return release is not None and version(release)[:2] == version(MEASURED)[:2]


GONE_RECORDS: Mapping[str, str] = {"frontendname": "25.05"}
"""Kind of a record -> first release that does not start with one."""
GONE_SELECTORS: Mapping[str, str] = {"select/cons_res": "23.11"}
"""Value of SelectType -> first release without that plugin, which does not start with it."""
