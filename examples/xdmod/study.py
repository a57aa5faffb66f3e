"""Replay a real log of a Slurm cluster and compare which jobs had to make way with those that really had to.

    python study.py LOG [--mode MODE ...] [--write-config]

The log is what ``sacct -P`` prints, or the reference data of Open XDMoD (without a header); docs/xdmod.md says what
the modes mean and what such a log does not tell.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from modes import MODES, Assumptions, Outcome
from recorded import Log, derived_config, read_log

from makeway.config import dump_toml
from makeway.errors import MakewayError

USUAL = ("pinned", "submitted", "warm", "free")
"""The modes of the documented table; `single` takes many minutes."""
NEAR = 300.0
"""Seconds within which a loss counts as the one that really happened."""


def row(mode: str, outcome: Outcome, log: Log) -> str:
    """Return one line of the table of docs/xdmod.md."""
    real = {loss.job.id: loss for loss in log.losses}
    named = {loss.job.id for loss in outcome.losses}
    hits = len(named & real.keys())
    near = sum(
        1 for loss in outcome.losses if loss.job.id in real and abs(real[loss.job.id].at - loss.at) <= NEAR
    )
    users = Counter(loss.job.spec.user for loss in log.losses)
    like = sum(min(count, users[user]) for user, count in _users(outcome).items())
    by = Counter(loss.preemptor for loss in outcome.losses).most_common(1)
    most = f"{by[0][0]} ({by[0][1]})" if by else "-"
    return (
        f"| {mode} | {len(named)} | {hits} | {_share(hits, len(named))} | {_share(hits, len(real))} | {near} "
        f"| {like} | {most} |"
    )


def _users(outcome: Outcome) -> Counter[str]:
    return Counter(loss.job.spec.user for loss in outcome.losses)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.2f}" if whole else "-"


HEAD = (
    "| mode | victims | also really preempted | precision | recall | within 5 minutes | of the users hit "
    "| most by |\n|---|---|---|---|---|---|---|---|"
)


def study(log: Log, modes: Sequence[str], longer: float | None) -> list[str]:
    """Return the rows of the table."""
    config = derived_config(log)
    assumed = Assumptions(warm_at=log.complete_from, longer=longer)
    return [row(mode, MODES[mode](log, config, assumed), log) for mode in modes]


def main() -> None:
    """Print the table, or write the derived configuration."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path)
    parser.add_argument(
        "--mode", action="append", choices=sorted(MODES), help="default: those of the documented table"
    )
    parser.add_argument(
        "--scavenger",
        action="append",
        metavar="PARTITION",
        help="one whose jobs may be preempted; default: as logged",
    )
    parser.add_argument("--longer", type=float, help="seconds that the preempted jobs would have run on")
    parser.add_argument("--write-config", type=Path, help="write the derived configuration as TOML and stop")
    given = parser.parse_args()
    try:
        log = read_log(given.log, given.scavenger or ())
    except MakewayError as error:
        raise SystemExit(f"study.py: {error}") from None
    if given.write_config:
        given.write_config.write_text(dump_toml(derived_config(log)), encoding="utf-8")
        return
    print(f"{len(log.jobs)} jobs, {log.rejected} rows unusable, {len(log.losses)} really preempted")
    print(HEAD)
    for line in study(log, given.mode or USUAL, given.longer):
        print(line, flush=True)


if __name__ == "__main__":
    main()
