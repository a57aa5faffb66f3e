"""Say what each resource manager can do (moab 13): the table of the guide, as data."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from makeway_moab_qos.settings import ResourceManager, Settings

YES, NO, UNKNOWN, OS = "yes", "no", "unknown", "depends on the operating system"
METHODS = ("suspend", "checkpoint", "requeue", "cancel")


@attrs.frozen
class Row:
    """One column of the guide's table."""

    title: str
    suspend: str
    checkpoint: str
    requeue: str
    cancel: str


TABLE: Mapping[str, Row] = {
    "TORQUE": Row("TORQUE 1.2+ / OpenPBS 2.3+", YES, "IRIX only", YES, YES),
    "PBSPRO": Row("PBSPro 5.2", YES, "IRIX only", YES, YES),
    "LL": Row("LoadLeveler 3.1", YES, YES, YES, YES),
    "LSF": Row("LSF 5.2", YES, OS, YES, YES),
    "SGE": Row("SGE 5.3", UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN),
    "SLURM": Row("Slurm", YES, NO, YES, YES),
}
"""The guide's table, and Slurm, which it does not name: ``scontrol`` suspends and requeues, and checkpoints nothing."""
SAME: Mapping[str, str] = {"PBS": "TORQUE", "OPENPBS": "TORQUE", "LOADLEVELER": "LL"}
"""Other spellings of ``TYPE=``."""


def row_of(rm: ResourceManager) -> Row | None:
    """Return the row of a resource manager; None: it is makeway's own or not in the table."""
    word = rm.type.upper()
    return TABLE.get(SAME.get(word, word))


def can(rm: ResourceManager, method: str) -> str:
    """Return YES, NO, or why it is not sure."""
    if method in rm.lacks:
        return NO
    if rm.type.upper() == "NATIVE" and method == "suspend":
        return YES if rm.suspend_url else "only with JOBSUSPENDURL"
    row = row_of(rm)
    said = YES if row is None else str(getattr(row, method))
    if method == "checkpoint" and said != NO and (rm.checkpoint_sig or rm.checkpoint_timeout):
        return YES  # the site says how, or how long it takes
    return said


def checkpoints(settings: Settings) -> bool:
    """Whether every resource manager is known to checkpoint, so that escalation may stop there (5.3, U8).

    Known is one that the table says so of, or that the site has given a signal or a timeout for it. A site
    that names no resource manager says nothing.
    """
    return bool(settings.rm) and all(_known_to_checkpoint(rm) for rm in settings.rm)


def _known_to_checkpoint(rm: ResourceManager) -> bool:
    if can(rm, "checkpoint") != YES:
        return False
    return row_of(rm) is not None or bool(rm.checkpoint_sig or rm.checkpoint_timeout)


def supports(settings: Settings, method: str) -> bool:
    """Whether all resource managers can do it; unknown counts as no, except for cancel."""
    return all(method == "cancel" or can(rm, method) == YES for rm in settings.rm)
