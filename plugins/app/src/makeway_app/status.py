"""Show the queue at an instant as the status command of a scheduler does, or as a plain table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from makeway import bitmap, vendors
from makeway.columns import columns
from makeway.hostlist import fold_hostlist
from makeway.model import ClusterView, Job, JobState, Listing, Seconds, StatusCommand, Vocabulary

COMMAND = "status command"
"""Noun of a `Vocabulary`: what the users of a scheduler without a `StatusCommand` of its own call its table."""
_STATES = {
    JobState.PENDING: "PD",
    JobState.RUNNING: "R",
    JobState.SUSPENDED: "S",
    JobState.COMPLETING: "CG",
}
"""In the order in which `by_partition` sorts them."""
_PLACES = tuple(_STATES)


def commands() -> Mapping[str, tuple[vendors.Vendor, StatusCommand]]:
    """Return name -> the status commands of the vendors that are installed, and whose they are."""
    found = {}
    for vendor in vendors.usable():
        own = vendor.vocabulary.status if vendor.vocabulary is not None else None
        for status in (*((own,) if own is not None else ()), *vendor.tables):
            found[status.name] = (vendor, status)
    return found


def name_of(words: Vocabulary) -> str:
    """Return what the status command of a site is called; ``queue`` if no vendor has a word for it."""
    if words.status is not None:
        return words.status.name
    usual = next(iter(vendors.spellings(COMMAND)), "queue")
    return words.nouns.get(COMMAND, usual)


def default(words: Vocabulary) -> StatusCommand:
    """Return the status command for words that bring none: the plain table, with these words in it."""
    named = COMMAND in words.nouns

    def show(view: ClusterView, at: Seconds) -> Sequence[Listing]:
        return [plain(view, at, view.present if named else by_partition(view.present), words)]

    return StatusCommand(name=name_of(words), show=show)


def printed(status: StatusCommand, view: ClusterView, at: Seconds, instant: str) -> str:
    """Return what a status command prints, below a heading.

    :param instant: `at` as it is shown to people.
    """
    title = f"{status.name} {status.options}".rstrip()
    return "\n".join([f"{title} at {instant}", "\n\n".join(map(_listed, status.show(view, at)))])


def by_partition(jobs: Iterable[Job]) -> Sequence[Job]:
    """Return jobs as a plain table has them."""
    return sorted(
        jobs,
        key=lambda job: (
            # 1. the partitions' names
            _places(job),
            # 2. the state
            _PLACES.index(job.state) if job.state in _STATES else len(_PLACES),
            # 3. the higher priority, then the job table
            -job.priority,
            job.index,
        ),
    )


def plain(view: ClusterView, at: Seconds, jobs: Iterable[Job], words: Vocabulary) -> Listing:
    """Return a table with a row for each job, in the order given and the words of a scheduler."""
    place, node = words.noun("partition").upper(), words.noun("node").upper()
    headings = ("JOBID", place, "NAME", "USER", words.noun("ST"), "TIME", f"{node}S", f"{node}LIST(REASON)")
    rows = tuple(_row(view, job, at, words) for job in jobs)
    return Listing(headings=headings, rows=rows, right=frozenset(headings[:-1]), gap=1)


def _row(view: ClusterView, job: Job, at: Seconds, words: Vocabulary) -> tuple[str, ...]:
    allocation = job.allocation
    if allocation is None:
        size, where = job.size, f"({words.reason(job.reason)})"
    else:
        names = [view.cluster.nodes[index].name for index in bitmap.indices(allocation.nodes)]
        size, where = len(names), fold_hostlist(names)
        why = words.suspension(job.state, job.suspended_by, job.marks)
        where += f" ({why})" if why else ""
    state = words.state(job.state, job.suspended_by, held=job.held)
    if state == job.state.value:
        state = _STATES.get(job.state, state)
    ran = _minutes(job.ran_until(at))
    return (job.id, _places(job), job.spec.name, job.user, state, ran, str(size), where)


def _places(job: Job) -> str:
    return job.partition.name if job.allocation else ",".join(p.name for p in job.partitions)


def _minutes(seconds: Seconds) -> str:
    """Return a time that is as short as it can be: 0:27, 1:02:03, 1-02:03:04."""
    days, rest = divmod(int(seconds + 1e-6), 86400)
    hours, rest = divmod(rest, 3600)
    if days:
        return f"{days}-{hours:02}:{rest // 60:02}:{rest % 60:02}"
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


def _listed(listing: Listing) -> str:
    right = [at for at, heading in enumerate(listing.headings) if heading in listing.right]
    headings, *rows = columns([listing.headings, *listing.rows], right, gap=listing.gap)
    lines = [listing.title] if listing.title else []
    lines.append(headings)
    for at, row in enumerate(rows):
        lines += [row, *(f"  {note}" for note in listing.notes.get(at, ()))]
    return "\n".join([*lines, *([listing.footer] if listing.footer else [])])
