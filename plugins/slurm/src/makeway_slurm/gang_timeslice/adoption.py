"""Write the rows of the timeslicer down, and read them back (docs/adoption.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from makeway.model import Job, Partition, Seconds
from makeway_slurm.gang_timeslice.row import Row
from makeway_slurm.gang_timeslice.rows import GangPartition, Member, Place


@attrs.frozen(kw_only=True)
class Rows:
    """All rows as they were handed over."""

    partitions: dict[str, GangPartition]
    members: dict[str, tuple[Member, GangPartition]]
    doomed: list[Member]
    now: Seconds
    exact: bool
    """Whether all jobs are as they were then."""


def to_plain(
    partitions: Iterable[GangPartition],
    members: Mapping[str, tuple[Member, GangPartition]],
    doomed: Iterable[Member],
    now: Seconds,
) -> dict[str, Any]:
    """Return all rows, in values that JSON has."""
    return {
        "partitions": {each.name: _partition_to_plain(each) for each in partitions},
        "members": {job_id: member.job.state.value for job_id, (member, _) in members.items()},
        "doomed": [member.job.id for member in doomed],
        "now": now,
    }


def from_plain(
    plain: Mapping[str, Any],
    jobs: Mapping[str, Job],
    partitions: Mapping[str, Partition],
    empty: Mapping[str, Row],
) -> Rows:
    """Return the rows that `to_plain` made plain; without jobs and partitions that are not there any more.

    :param jobs: active jobs and those that are leaving, by id.
    :param partitions: of the cluster, by name.
    :param empty: a new row for each of them.
    """
    seated: dict[str, tuple[Member, GangPartition]] = {}
    found: dict[str, GangPartition] = {}
    told = plain["partitions"]
    for name, table in told.items():
        if name not in partitions:
            continue
        home = found[name] = GangPartition(name, partitions[name].priority_tier, empty[name])
        for job_id, running, place, held in table["queue"]:
            job = jobs.get(job_id)
            if job is not None:
                allocation = job.allocation if held else None
                member = Member(job, running=running, place=Place(place), held=allocation)
                home.append(member, asked=False)
                seated[job_id] = member, home
    states = plain["members"]
    members = {job_id: seated[job_id] for job_id in states if job_id in seated}
    same_tiers = all(name in found and found[name].tier == table["tier"] for name, table in told.items())
    same_jobs = all(
        job_id in members and members[job_id][0].job.state.value == was for job_id, was in states.items()
    )
    for name, home in found.items():
        _recall(home, told[name], members)
    return Rows(
        partitions=found,
        members=members,
        doomed=[members[job_id][0] for job_id in plain["doomed"] if job_id in members],
        now=plain["now"],
        exact=same_tiers and same_jobs,
    )


def _partition_to_plain(partition: GangPartition) -> dict[str, Any]:
    return {
        "tier": partition.tier,
        "queue": [
            [job_id, member.running, member.place.value, member.held is not None]
            for job_id, member in partition.jobs.items()
        ],
        "shadows": list(partition.shadows),
        "active_count": partition.active_count,
        "settled": partition.settled,
        "changed": partition.changed,
        "row": partition.row.to_plain(),
    }


def _recall(
    home: GangPartition, table: Mapping[str, Any], members: Mapping[str, tuple[Member, GangPartition]]
) -> None:
    home.shadows = {job_id: members[job_id][0] for job_id in table["shadows"] if job_id in members}
    home.active_count = table["active_count"]
    home.settled = table["settled"]
    home.changed = table["changed"]
    home.row.recall(table["row"])
