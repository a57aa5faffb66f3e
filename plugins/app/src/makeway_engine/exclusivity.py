"""Keep users and security labels apart: a filter of nodes, not a veto on victims (slurm-preemption 1.10)."""

from __future__ import annotations

from makeway.bitmap import NodeBits
from makeway.config import McsTable
from makeway.model import Exclusive, Job
from makeway_engine.ledger import Ledger

_USER = Exclusive.USER


def node_filter(ledger: Ledger, mcs: McsTable, job: Job, nodes: NodeBits) -> NodeBits:
    """Drop the nodes that other users or other labels keep from `job`."""
    if not ledger.anyone_exclusive and not wants_user(job) and mcs.label == "none":
        return nodes
    nodes = _owners(ledger, job, nodes)
    return nodes if mcs.label == "none" else _labels(ledger, mcs, job, nodes)


def wants_user(job: Job) -> bool:
    """Whether the job keeps its nodes from other users."""
    return job.spec.exclusive is _USER or job.partition.exclusive_user


def _owners(ledger: Ledger, job: Job, nodes: NodeBits) -> NodeBits:
    alone = wants_user(job)
    for other in ledger.active:
        if other.user != job.user and (alone or wants_user(other)):
            nodes &= ~other.nodes
    return nodes


def _labels(ledger: Ledger, mcs: McsTable, job: Job, nodes: NodeBits) -> NodeBits:
    applies = mcs.select == "select" or (
        mcs.select == "ondemandselect" and job.spec.exclusive is Exclusive.MCS
    )
    for other in ledger.active:
        if applies:
            if other.mcs_label != job.mcs_label:
                nodes &= ~other.nodes
        elif other.mcs_label is not None and _label_in_force(mcs, other):
            nodes &= ~other.nodes
    return nodes


def _label_in_force(mcs: McsTable, other: Job) -> bool:
    """Whether a running job's label marks its nodes."""
    return mcs.select == "select" or (
        mcs.select == "ondemandselect" and other.spec.exclusive is Exclusive.MCS
    )


def label_of(
    mcs: McsTable, job_user: str, group: str | None, account: str | None, asked: str | None
) -> str | None:
    """Return the security label of a job, from where the configuration takes it."""
    source = {"user": job_user, "group": group, "account": account, "label": asked}
    label = source.get(mcs.label)
    if mcs.enforced or (mcs.select == "ondemandselect" and label is not None):
        return label
    return label if mcs.select == "select" else None
