"""Say who may use a partition, and what is refused at the door (slurm-priority-and-limits 7)."""

from __future__ import annotations

from collections.abc import Iterable

from makeway.model import ClusterView, Job, Partition
from makeway.partition_bounds import NODES, TIME
from makeway_slurm.accounts.usage import UsageBook
from makeway_slurm.limits.settings import Settings

LISTS = ("AllowGroups", "AllowAccounts", "AllowQos", "DenyAccounts", "DenyQos")
"""Keys of a PartitionName line that say who may use it."""
_ACCOUNTS = ("AllowAccounts", "DenyAccounts")
_ALL = ("", "all")
ACCOUNT = "Job's account not permitted to use this partition"
QOS = "Job's QOS not permitted to use this partition"
GROUP = "User's group not permitted to use this partition"


class Door:
    """Which jobs come in where, in one run."""

    def __init__(self, view: ClusterView, settings: Settings, usage: UsageBook) -> None:
        self._settings = settings
        self._usage = usage
        known = (
            usage.tree.accounts if usage.tree is not None and view.rule("unknown_accounts_are_none") else None
        )
        self._lists = {
            (partition.index, key): _names(
                partition.attributes.get(key, ""), known if key in _ACCOUNTS else None
            )
            for partition in view.cluster.partitions
            for key in LISTS
        }
        self._any = {
            partition.index: any(self._lists[partition.index, key] for key in LISTS)
            for partition in view.cluster.partitions
        }

        self.open = frozenset(
            each.index
            for each in view.cluster.partitions
            if not self._any[each.index] and each.max_nodes is None and each.max_time is None
        )
        """Partitions in which all may run, by index."""

    def shut(self, job: Job, partition: Partition) -> str:
        """Return why a job may not run in a partition; empty: it may."""
        flags = job.qos.flags if job.qos is not None else ()
        most, wanted = partition.max_nodes, job.spec.max_nodes
        if most is not None and wanted is not None and wanted > most and "PartitionMaxNodes" not in flags:
            return NODES
        longest = partition.max_time
        limit = job.time_limit if partition is job.partition else job.time_limit_in(partition)
        if (
            longest is not None
            and limit is not None
            and limit > longest
            and "PartitionTimeLimit" not in flags
        ):
            return TIME
        return self.names(job, partition)

    def names(self, job: Job, partition: Partition) -> str:
        """Return which list of a partition keeps a job out by its group, account or QOS; empty: none does."""
        if not self._any[partition.index]:
            return ""
        at = partition.index
        groups = self._lists[at, "AllowGroups"]
        if groups and job.user != "root" and not groups & self._groups(job):
            return GROUP
        return self._of_account(job, partition) or self._of_qos(job, partition)

    def bars_account_alone(self, job: Job, partition: Partition) -> bool:
        """Whether the account of a job that may not run in a partition is all that keeps it out."""
        shut = self.shut(job, partition)
        return shut.startswith(ACCOUNT) and not self._of_qos(job, partition)

    def _of_account(self, job: Job, partition: Partition) -> str:
        at, accounts = partition.index, self._accounts(job)
        allowed, denied = self._lists[at, "AllowAccounts"], self._lists[at, "DenyAccounts"]
        if allowed:
            if not allowed & accounts:
                return f"{ACCOUNT} ({self._allows(partition, 'AllowAccounts')} not {self._own(job)})"
        elif denied & accounts:
            return f"{ACCOUNT} ({self._denies(partition, 'DenyAccounts')} including {self._own(job)})"
        return ""

    def _of_qos(self, job: Job, partition: Partition) -> str:
        at = partition.index
        qos = job.qos.name.lower() if job.qos is not None else ""
        allowed, denied = self._lists[at, "AllowQos"], self._lists[at, "DenyQos"]
        if allowed:
            if qos not in allowed:
                return f"{QOS} ({self._allows(partition, 'AllowQos')} not {qos or 'none'})"
        elif qos in denied:
            return f"{QOS} ({self._denies(partition, 'DenyQos')} including {qos})"
        return ""

    @staticmethod
    def _allows(partition: Partition, key: str) -> str:
        return f"{partition.name} allows {','.join(_words(partition.attributes.get(key, '')))}"

    @staticmethod
    def _denies(partition: Partition, key: str) -> str:
        return f"{partition.name} denies {','.join(_words(partition.attributes.get(key, '')))}"

    def _own(self, job: Job) -> str:
        node = self._usage.association_of(job)
        return node.account if node is not None else (job.account or "none").lower()

    def _groups(self, job: Job) -> frozenset[str]:
        listed: Iterable[str] = job.spec.attributes.get("groups", ())
        own = (job.spec.group,) if job.spec.group is not None else ()
        return frozenset(name.lower() for name in (*listed, *own))

    def _accounts(self, job: Job) -> frozenset[str]:
        """Return the account of a job, and those above it where the release looks there."""
        node = self._usage.association_of(job)
        if node is None:
            return frozenset(filter(None, ((job.account or "").lower(),)))
        return frozenset(
            each.account for each in (node.chain if self._settings.covers_below else node.chain[:1])
        )

    def refused(self, job: Job) -> str:
        """Return why a job is refused at its submission; empty: it is taken."""
        settings = self._settings
        last = job.spec.attributes.get("array_last")
        if last is not None and int(last) >= settings.max_array_size:
            return f"Invalid job array specification: got index {last}; allowed: up to {settings.max_array_size - 1}"
        tree = self._usage.tree
        if settings.associations and job.spec.nice < 0 and job.user != "root":
            return "Invalid --nice value"
        if tree is not None and settings.associations and job.user != "root":
            node = self._usage.association_of(job)
            if node is None:
                return "Invalid account or account/partition combination specified"
            if settings.qos and node.qos and job.qos is not None and job.qos.name not in node.qos:
                return "Invalid qos specification"
        shut = [self.shut(job, partition) for partition in job.partitions]
        return self._by_part_limits(shut)

    def _by_part_limits(self, shut: list[str]) -> str:
        closed = [why for why in shut if why]
        if not closed:
            return ""
        if self._settings.part_limits == "ALL" or (
            self._settings.part_limits == "ANY" and len(closed) == len(shut)
        ):
            return closed[0]
        # 22.05 refuses a wrong group even where one of several partitions would do.
        if not self._settings.groups_wait and GROUP in closed:
            return GROUP if self._settings.part_limits == "ANY" or len(closed) == len(shut) else ""
        return ""


def _words(value: object) -> list[str]:
    words = value.split(",") if isinstance(value, str) else value if isinstance(value, list | tuple) else ()
    return [str(word).strip() for word in words]


def _names(value: object, known: frozenset[str] | None = None) -> frozenset[str]:
    """Return a list of names; none: it is open to all.

    :param known: names that count; None: all do.
    """
    names = frozenset(word.lower() for word in _words(value))
    if any(name in _ALL for name in names):
        return frozenset()
    return names if known is None else names & known
