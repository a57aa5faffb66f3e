"""Tell values that change nothing from those that may: defaults, and parameters that others switch off.

Defaults are those that ``scontrol show config`` of 22.05.8 prints for a file without them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from makeway_slurm.readers.conf_parts import Setting
from makeway_slurm.readers.values import parse_time

Get = Callable[[str], Setting | None]

_DEFAULTS = """
    AccountingStorageEnforce=none AllowAccounts=ALL AllowGroups=ALL AllowQos=ALL AllocNodes=ALL
    AllowSpecResourcesUsage=NO BatchStartTimeout=10 CompleteWait=0 CoreSpecCount=0
    DisableRootJobs=NO EnforcePartLimits=NO FairShareDampeningFactor=1 HealthCheckInterval=0 InactiveLimit=0
    MaxArraySize=1001 MaxJobCount=10000 MaxTasksPerNode=512 PowerDownOnIdle=NO PriorityFavorSmall=NO
    PrioritySiteFactorPlugin=site_factor/none PriorityUsageResetPeriod=NONE
    PriorityWeightAge=0 PriorityWeightAssoc=0 PriorityWeightFairshare=0
    PriorityWeightJobSize=0 ReqResv=NO ResumeRate=300 ResumeTimeout=60 ResvOverRun=0 RootOnly=NO SuspendRate=60
    SuspendTime=-1 SuspendTimeout=30 TopologyPlugin=topology/none VSizeFactor=0
"""
_TIMES = "PriorityCalcPeriod=5 PriorityDecayHalfLife=7-0 PriorityMaxAge=7-0"
DEFAULTS: Mapping[str, str] = {
    key.lower(): value for key, _, value in (pair.partition("=") for pair in (_DEFAULTS + _TIMES).split())
}
"""Parameter in lower case -> its default, as it would be written."""
_IS_TIME = frozenset(pair.partition("=")[0].lower() for pair in _TIMES.split())
_SAME = {
    "yes": "1",
    "true": "1",
    "no": "0",
    "false": "0",
    "infinite": "-1",
    "unlimited": "-1",
    "none": "none",
}
_EMPTY = frozenset(("", "(null)"))

FACTORS = frozenset(
    "PriorityParameters PrioritySiteFactorParameters PrioritySiteFactorPlugin".lower().split()
)
"""Parameters of priority/multifactor that are not modelled, in lower case."""
_POWER = """ResumeFailProgram ResumeRate ResumeTimeout SuspendExcNodes SuspendExcParts SuspendExcStates SuspendRate
    SuspendTime SuspendTimeout"""
_NEEDS: Mapping[str, str] = {
    **dict.fromkeys(_POWER.lower().split(), "suspendprogram"),
    "healthcheckinterval": "healthcheckprogram",
    "prioritymaxage": "priorityweightage",
    "resumeprogram": "suspendtime",
    "suspendprogram": "suspendtime",
    "topologyparam": "topologyplugin",
}
"""Parameter -> the one without which it does nothing, or whose default switches it off."""


def is_default(setting: Setting) -> bool:
    """Whether a value is the one that counts without the parameter."""
    key, value = setting.canonical, setting.value.strip()
    if value.lower() in _EMPTY:
        return True
    default = DEFAULTS.get(key)
    if default is None:
        return False
    if key in _IS_TIME:
        try:
            return parse_time(value) == parse_time(default)
        except ValueError:
            return False
    return _plain(value) == _plain(default)


def is_switched_off(key: str, get: Get, *, multifactor: bool) -> bool:
    """Whether a parameter does nothing because of another one's value.

    :param get: the simple parameters of the file.
    :param multifactor: whether priority/multifactor is in force.
    """
    if key in FACTORS and not multifactor:
        return True
    needed = _NEEDS.get(key)
    if needed is None:
        return False
    switch = get(needed)
    return switch is None or is_default(switch)


def _plain(text: str) -> str:
    word = text.lower()
    word = _SAME.get(word, word)
    return str(int(word)) if word.isascii() and word.isdigit() else word
