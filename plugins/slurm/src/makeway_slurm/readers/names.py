"""List the parameters of slurm.conf: a typing error is not the same as what is not modelled.

Names are those of slurm.conf(5) from 20.11 to 26.05; those that went before are in `releases`. Spelling is the
manual's; comparison ignores case.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Mapping

MODELLED = frozenset(
    """AccountingStorageEnforce AuthInfo ClusterName CompleteWait DefMemPerCPU DefMemPerNode DependencyParameters
    EnforcePartLimits JobAcctGatherFrequency JobAcctGatherParams JobAcctGatherType
    JobRequeue KillWait Licenses MaxArraySize MaxBatchRequeue MaxMemPerCPU MaxMemPerNode
    MCSParameters MCSPlugin MessageTimeout MinJobAge OverTimeLimit PreemptExemptTime PreemptMode
    FairShareDampeningFactor PreemptParameters PreemptType PriorityCalcPeriod PriorityDecayHalfLife
    PriorityFavorSmall PriorityFlags PriorityMaxAge PriorityType PriorityUsageResetPeriod PriorityWeightAge
    PriorityWeightAssoc PriorityWeightFairshare PriorityWeightJobSize PriorityWeightPartition PriorityWeightQOS
    PriorityWeightTRES
    ResumeProgram ResumeTimeout ResvOverRun SchedulerParameters SchedulerTimeSlice SchedulerType
    SelectType SelectTypeParameters
    SlurmctldParameters SuspendExcNodes SuspendExcParts SuspendProgram SuspendTime TaskPlugin
    TopologyParam TopologyPlugin""".split()
)
"""Parameters that the reader turns into configuration."""

RELEVANT = frozenset(
    """AllowSpecResourcesUsage BatchStartTimeout BurstBufferType CliFilterParameters CliFilterPlugins
    DefCpuPerGPU DefMemPerGPU DisableRootJobs
    FederationParameters HealthCheckInterval HealthCheckProgram InactiveLimit JobSubmitPlugins
    MaxJobCount MaxNodeCount MaxTasksPerNode
    LicenseParameters NodeFeaturesPlugins PriorityParameters
    PrioritySiteFactorParameters PrioritySiteFactorPlugin RebootProgram RequeueExit
    RequeueExitHold ResumeFailProgram ResumeRate
    SuspendExcStates SuspendRate
    SuspendTimeout VSizeFactor""".split()
)
"""Parameters that can change which job runs when, and that are not modelled."""

PLUMBING = frozenset(
    """AccountingStorageBackupHost AccountingStorageExternalHost AccountingStorageHost
    AccountingStorageParameters AccountingStoragePass AccountingStoragePort
    AccountingStorageTRES AccountingStorageType AccountingStoreFlags
    AcctGatherEnergyType AcctGatherFilesystemType
    AcctGatherInfinibandType AcctGatherInterconnectType AcctGatherNodeFreq AcctGatherProfileType
    AuthAltParameters AuthAltTypes AuthType BackupAddr BackupController BcastExclude
    BcastParameters CertgenParameters CertgenType CertmgrParameters CertmgrType
    CommunicationParameters ControlAddr ControlMachine CpuFreqDef CpuFreqGovernors
    CredType CryptoType DataParserParameters DebugFlags EioTimeout Epilog EpilogMsgTime
    EpilogSlurmctld EpilogTimeout FirstJobId
    GpuFreqDef GresTypes GroupUpdateForce GroupUpdateTime HashPlugin HealthCheckNodeState HealthCheckTimeout
    HttpParserType InteractiveStepOptions JobCompHost JobCompLoc JobCompParams JobCompPass JobCompPassScript JobCompPort
    JobCompType JobCompUser JobContainerType
    JobFileAppend KeepAliveTime KillOnBadExit LaunchParameters LaunchType LogTimeFormat MailDomain
    MailProg MaxDBDMsgs MaxJobId MaxStepCount MetricsAuthUsers MetricsParameters MetricsType MpiDefault MpiParams
    NamespacePlugin NamespaceType PlugStackConfig PluginDir PrEpParameters PrEpPlugins PrivateData
    ProctrackType Prolog PrologEpilogTimeout PrologFlags PrologSlurmctld PrologTimeout
    PropagatePrioProcess PropagateResourceLimits PropagateResourceLimitsExcept ReconfigFlags
    ResvEpilog ResvProlog ReturnToService RoutePlugin SbcastParameters
    SchedulerAuth ScronParameters SlurmSchedLogFile
    SlurmSchedLogLevel SlurmUser SlurmctldAddr SlurmctldDebug SlurmctldHost SlurmctldHttpAuthParameters
    SlurmctldLogFile
    SlurmctldPidFile SlurmctldPlugstack SlurmctldPort SlurmctldPrimaryOffProg
    SlurmctldPrimaryOnProg SlurmctldSyslogDebug SlurmctldTimeout SlurmdDebug SlurmdHttpAuthParameters
    SlurmdLogFile
    SlurmdParameters SlurmdPidFile SlurmdPlugstack SlurmdPort SlurmdSpoolDir SlurmdSyslogDebug
    SlurmdTimeout SlurmdUser SrunEpilog SrunPortRange SrunProlog StateSaveLocation SwitchParameters
    SwitchType TCPTimeout TaskEpilog TaskPluginParam TaskProlog TLSParameters TLSType TmpFS
    TrackWCKey TreeWidth UnkillableStepProgram UnkillableStepTimeout UrlParserType UsePAM
    WaitTime X11Parameters""".split()
)
"""Parameters of daemons, logs, accounting and launch: no influence on a replay."""

NODE_MODELLED = frozenset(
    """Boards CPUs CoresPerSocket Feature Features Gres MemSpecLimit NodeName Procs RealMemory
    Sockets SocketsPerBoard State ThreadsPerCore Weight""".split()
)
NODE_RELEVANT = frozenset(
    """CoreSpecCount CpuSpecList Parameters RestrictedCoresPerGPU ResumeTimeout SuspendTime SuspendTimeout
    Topology""".split()
)
NODE_PLUMBING = frozenset("""BcastAddr CertToken CpuBind NodeAddr NodeHostname Port Reason TmpDisk""".split())

PARTITION_MODELLED = frozenset(
    """AllowAccounts AllowGroups AllowQos DenyAccounts DenyQos
    Default DefaultTime DefMemPerCPU DefMemPerNode Exclusive ExclusiveUser GraceTime LLN
    MaxCPUsPerNode MaxMemPerCPU MaxMemPerNode MaxNodes MaxTime MinNodes Nodes OverSubscribe
    OverTimeLimit PartitionName PreemptMode Priority PriorityJobFactor PriorityTier QOS
    ResumeTimeout SelectTypeParameters Shared State SuspendTime Topology TRESBillingWeights""".split()
)
PARTITION_RELEVANT = frozenset(
    """AllowAssocs AllocNodes Alternate DefCpuPerGPU DefMemPerGPU DisableRootJobs
    ExclusiveTopo JobDefaults MaxCPUsPerSocket
    PowerDownOnIdle ReqResv RootOnly SuspendTimeout""".split()
)
PARTITION_PLUMBING = frozenset("CpuBind Hidden".split())

NODESET_KEYS = frozenset(("Feature", "NodeSet", "Nodes"))
DOWN_KEYS = frozenset(("DownNodes", "Reason", "State"))
FRONTEND_KEYS = frozenset(
    """AllowGroups AllowUsers DenyGroups DenyUsers FrontendAddr FrontendName Port Reason
    State""".split()
)
POWER_KEYS = frozenset(("Location", "PowerAction", "Program"))
SWITCH_KEYS = frozenset("BlockName BlockSizes LinkSpeed Nodes SwitchName Switches".split())

RECORDS = {
    name.lower(): name
    for name in (
        "BlockName",
        "DownNodes",
        "FrontendName",
        "NodeName",
        "NodeSet",
        "PartitionName",
        "PowerAction",
        "SwitchName",
    )
}
"""Kind of a record -> the manual's spelling of the key that begins it."""


@functools.cache
def by_lower(names: frozenset[str]) -> dict[str, str]:
    """Return lower case -> the manual's spelling; not to be changed by the caller."""
    return {name.lower(): name for name in sorted(names)}


def guess(key: str, known: Mapping[str, str]) -> str:
    """Return ``; did you mean 'X'?`` for a key in any case, or an empty string."""
    close = difflib.get_close_matches(key.lower(), sorted(known), n=1)
    return f"; did you mean {known[close[0]]!r}?" if close else ""
