"""Hold replays of the Open XDMoD log against the preemptions that really happened.

Prints tables for docs/xdmod.md. Each mode takes more of the log as given, so that less is tested:

free       jobs come when they were submitted and start anywhere
warm       the same, from an instant on, with the jobs that ran then on their nodes
pinned     every job starts when and where it did
submitted  the same, but jobs that may preempt come when they were submitted
single     each decision by itself, from the real state of the machine
prompt     only decisions for jobs that really started at once
"""

from __future__ import annotations

import argparse
import datetime
import json
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import attrs
from modes import MODES, WORKLOADS, Assumptions, Outcome
from recorded import SCAVENGER, SOON, Log, Loss, Recorded, derived_config, kind_of, read_log

from makeway.cli.changes import change
from makeway.config import Config, dump_toml
from makeway.hostlist import fold_hostlist
from makeway.model import JobSpec, Seconds

PARAMETERS = {"select/linear": (), "select/cons_tres": ("CR_Core",)}
WINDOW_BEGINS = "2016-12-30T00:00:00"
"""The log holds the jobs that ended from here on."""
HEADINGS = (
    *("mode", "selection", "assumed", "victims", "right", "precision", "recall"),
    *("in time: P / R", "user and partition: P / R", "node: P / R"),
)


# --------------------------------------------------------------------------------------- comparing
def hits(found: Sequence[Loss], real: Sequence[Loss], alike: Callable[[Loss, Loss], bool]) -> int:
    """Count losses that have a counterpart, one that is alike at about the same time; each counts once."""
    left = sorted(real, key=lambda loss: loss.at)
    matched = 0
    for loss in sorted(found, key=lambda loss: loss.at):
        for other in left:
            if abs(other.at - loss.at) <= SOON and alike(loss, other):
                left.remove(other)
                matched += 1
                break
    return matched


def same_job(one: Loss, other: Loss) -> bool:
    """Say whether it is the very job."""
    return one.job.id == other.job.id


def same_owner(one: Loss, other: Loss) -> bool:
    """Say whether user and partition agree."""
    return (one.job.spec.user, one.job.partition) == (other.job.spec.user, other.job.partition)


def same_node(one: Loss, other: Loss) -> bool:
    """Say whether they ran on a common node."""
    return not one.nodes.isdisjoint(other.nodes)


def row(mode: str, selection: str, note: str, outcome: Outcome) -> str:
    """Return precision and recall as a row of a table."""
    found, real = outcome.losses, outcome.expected
    right = len({loss.job.id for loss in found} & {loss.job.id for loss in real})
    counts = [hits(found, real, alike) for alike in (same_job, same_owner, same_node)]
    pairs = [f"{_share(count, len(found))} / {_share(count, len(real))}" for count in counts]
    shares = (_share(right, len(found)), _share(right, len(real)))
    return table_row((mode, selection, note, str(len(found)), f"{right} of {len(real)}", *shares, *pairs))


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.2f}" if whole else "-"


def table_row(cells: Iterable[str]) -> str:
    """Return a row of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def table_head(headings: Sequence[str]) -> str:
    """Return the first two lines of a Markdown table."""
    return f"{table_row(headings)}\n|{'---|' * len(headings)}"


def preemptors(losses: Iterable[Loss]) -> str:
    """Count losses by the partition that took the place."""
    counts = Counter(loss.preemptor or "not known" for loss in losses)
    return ", ".join(f"{name} {number}" for name, number in counts.most_common()) or "none"


def start_rows(log: Log, outcome: Outcome, since: Seconds) -> Iterator[tuple[str, ...]]:
    """Say by how much starts since an instant differ from the real ones."""
    for name, scavenger in ((SCAVENGER, True), ("others", False)):
        jobs = [job for job in log.started if job.scavenger == scavenger and job.start >= since]
        apart = sorted(abs(outcome.starts[job.id] - job.start) for job in jobs if job.id in outcome.starts)
        if apart:
            median, late = statistics.median(apart), apart[len(apart) * 9 // 10]
            yield name, str(len(apart)), f"{median:,.0f} s", f"{late:,.0f} s"


# ------------------------------------------------------------------------------------------- facts
def facts(log: Log) -> Iterator[tuple[str, str]]:
    """Say what the log shows by itself."""
    yield "jobs, rows that cannot be used", f"{len(log.jobs):,}, {log.rejected}"
    yield "jobs that never started", f"{len(log.jobs) - len(log.started):,}"
    yield "nodes seen", str(len(log.cpus))
    yield "preempted", str(len(log.losses))
    yield f"partition that began on a victim's node within {SOON:g} s", preemptors(log.losses)
    taken = [(loss, _rivals(log, loss)) for loss in log.losses if log.prompt_successor(loss.job) is not None]
    several = [(loss, rivals) for loss, rivals in taken if len(rivals) > 1]
    sizes = [len(rivals) for _, rivals in several]
    first = sum(rivals[0] is loss.job for loss, rivals in several)
    yield "jobs that may preempt and started at once", str(len(log.prompt))
    yield "preempted jobs whose place such a job took", str(len(taken))
    yield "of these, with other scavenger jobs on nodes that it could use", str(len(several))
    yield "scavenger jobs on such nodes, median", f"{statistics.median(sizes):g}"
    yield "the victim was the first submitted of them", f"{first} of {len(several)}"
    yield "expected right by pure chance", f"{sum(1 / size for size in sizes):.1f} of {len(several)}"


def _rivals(log: Log, loss: Loss) -> Sequence[Recorded]:
    """Return whom the job that took the place could have displaced, in order of submission."""
    taker = log.prompt_successor(loss.job)
    if taker is None:
        return ()
    usable = {node for job in log.started if kind_of(job) == kind_of(taker) for node in job.nodes}
    return [job for job in log.running(loss.at) if job.scavenger and not usable.isdisjoint(job.nodes)]


# ---------------------------------------------------------------------------------------- workload
def native(spec: JobSpec) -> str:
    """Return a job as a line of makeway's own format."""
    keys = ("id", "user", "account", "qos", "run_time", "time_limit", "min_nodes", "max_nodes", "tasks")
    table = {key: getattr(spec, key) for key in keys}
    table |= {"partition": spec.partitions[0], "submit": spec.submit_at, "begin": spec.begin_at}
    for key in ("required_nodes", "excluded_nodes"):
        table[key] = fold_hostlist(getattr(spec, key)) or None
    return json.dumps({key: value for key, value in table.items() if value is not None})


# -------------------------------------------------------------------------------------------- main
def configured(base: Config, selection: str, changes: Sequence[str]) -> Config:
    """Return `base` with a selection and the changes of the command line."""
    policy = attrs.evolve(base.policy, select=selection, select_parameters=PARAMETERS[selection])
    config = attrs.evolve(base, policy=policy)
    for text in changes:
        config = change(config, text)
    return config


def assumptions(given: argparse.Namespace, log: Log) -> tuple[Assumptions, str]:
    """Return what is assumed, and how the tables call it."""
    begin = datetime.datetime.fromisoformat(given.warm_at).replace(tzinfo=datetime.UTC)
    longer = None if given.longer == "limit" else float(given.longer)
    assumed = Assumptions(
        longer=longer, constrained=not given.anywhere, warm_at=begin.timestamp() - log.start_wall
    )
    notes = [f"{longer:g} s longer"] if longer is not None else []
    notes += ["any node"] if given.anywhere else []
    return assumed, ", ".join([*notes, *given.changes]) or "-"


def show(given: argparse.Namespace, log: Log) -> None:
    """Print the tables; rows of the first come as they are found."""
    base = derived_config(log)
    assumed, note = assumptions(given, log)
    outcomes: list[tuple[tuple[str, ...], Outcome]] = []
    say(table_head(HEADINGS))
    for mode in given.mode or ("pinned", "submitted", "single", "prompt"):
        for selection in given.select or PARAMETERS:
            outcome = MODES[mode](log, configured(base, selection, given.changes), assumed)
            outcomes.append(((mode, selection, note), outcome))
            say(row(mode, selection, note, outcome))
    say("", table_head((*HEADINGS[:3], "preemptions by the preemptor's partition")))
    say(*(table_row((*run, preemptors(outcome.losses))) for run, outcome in outcomes))
    say("", table_head((*HEADINGS[:3], "partition", "jobs", "start apart, median", "nine in ten")))
    for run, outcome in outcomes:
        say(*(table_row((*run, *cells)) for cells in start_rows(log, outcome, assumed.warm_at)))


def say(*lines: str) -> None:
    """Print lines at once."""
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("log", type=Path, help="xdmod-pozidriv.sacct.gz")
    parser.add_argument("--config", action="store_true", help="print the derived cluster as TOML and stop")
    parser.add_argument("--facts", action="store_true", help="print what the log shows by itself and stop")
    parser.add_argument("--workload", choices=WORKLOADS, help="print the jobs of a mode and stop")
    parser.add_argument("--mode", action="append", choices=MODES)
    parser.add_argument("--select", action="append", choices=PARAMETERS)
    parser.add_argument(
        "--longer", default="limit", metavar="SECONDS", help="how much longer victims would have run"
    )
    parser.add_argument("--anywhere", action="store_true", help="jobs may use nodes of any size")
    parser.add_argument("--warm-at", default=WINDOW_BEGINS, metavar="TIME")
    parser.add_argument(
        "--set",
        dest="changes",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change the configuration",
    )
    given = parser.parse_args()
    log = read_log(given.log)
    if given.config:
        sys.stdout.write(dump_toml(derived_config(log)))
    elif given.facts:
        say(table_head(("fact", "figure")), *(table_row(pair) for pair in facts(log)))
    elif given.workload:
        jobs = WORKLOADS[given.workload](log, assumptions(given, log)[0])
        say(*(native(spec) for spec in jobs))
    else:
        show(given, log)


if __name__ == "__main__":
    main()
