"""Name limits as Slurm does: ``QOSGrpCpuLimit``, ``AssocMaxCpuPerJobLimit`` (slurm-priority-and-limits 6.2)."""

from __future__ import annotations

from collections.abc import Mapping

_SHORT = {"cpu": "Cpu", "mem": "Mem", "node": "Node", "billing": "Billing"}
_LONG = {"cpu": "CPU", "mem": "Mem", "node": "Node", "billing": "Billing"}
_LEAST = {"cpu": "QOSMinCpuNotSatisfied", "mem": "QOSMinMemory"}


def _word(name: str, words: Mapping[str, str] = _SHORT) -> str:
    if name.startswith("license/"):
        return "License"
    return words.get(name, "GRES")


def of_group(name: str) -> str:
    """Return the end of a reason: ``GrpCpuLimit``."""
    word = _word(name)
    return f"Grp{word}" if word in ("GRES", "Billing", "License") else f"Grp{word}Limit"


def of_group_minutes(name: str) -> str:
    """Return the end of a reason: ``GrpCPUMinutesLimit``."""
    return "GrpCPUMinutesLimit" if name == "cpu" else f"Grp{_word(name, _LONG)}Minutes"


def of_group_run_minutes(name: str) -> str:
    """Return the end of a reason: ``GrpCPURunMinutesLimit``."""
    return "GrpCPURunMinutesLimit" if name == "cpu" else f"Grp{_word(name, _LONG)}RunMinutes"


def of_most(name: str, what: str) -> str:
    """Return the end of a reason: ``MaxCpuPerJobLimit``, ``MaxMemoryPerJob``."""
    if name == "cpu":
        return f"MaxCpu{what}" + ("" if what in ("PerNode", "PerAccount") else "Limit")
    word = "Memory" if name == "mem" else _word(name)
    limit = "Limit" if name == "node" and what in ("PerJob", "PerUser") else ""
    return f"Max{word}{what}{limit}"


def of_run_minutes_each(name: str, what: str) -> str:
    """Return a reason: ``MaxCPURunMinsPerUser``."""
    return f"Max{_word(name, _LONG)}RunMins{what}"


def of_least(name: str) -> str:
    """Return a reason: ``QOSMinCpuNotSatisfied``."""
    return _LEAST.get(name, f"QOSMin{_word(name)}")
