"""Hold the example of three schedulers to what its page says: one key changed, everything else the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from makeway_app.cli import cli

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "examples" / "three-ways" / "cluster.toml"


def _swf(rows: Iterator[tuple[int, int, int, str]]) -> str:
    """Return rows of submission, run time, cores and queue in MetaCentrum's extension of SWF."""
    lines = []
    for number, (submit, run, cores, queue) in enumerate(rows, 1):
        kilobytes = cores * 1024 * 1024 * 1024
        fields = [number, submit, 0, run, cores, 1, 1024, cores, 2 * run, kilobytes, 1, 1, 1, 1, -1, 1, 1, 1]
        lines.append(" ".join([*map(str, fields), "{1}", queue, f"1:ppn={cores}"]))
    return "\n".join(lines) + "\n"


def _full_machine() -> Iterator[tuple[int, int, int, str]]:
    """Yield jobs of two weeks on every host, then one of two hours that wants 80 cores."""
    yield from ((0, 9000, 80, "q_2w") for _ in range(20))
    yield from ((1, 9000, 12, "q_2w") for _ in range(48))
    yield (1000, 600, 80, "q_2h")


@pytest.mark.parametrize(
    ("preempt", "mode", "lost"),
    [
        ("preempt/partition_prio", "requeue", 1000 * 80),
        ("moab/qos", "requeue", 1000 * 80),
        ("lsf/queue", "suspend", 0),
    ],
)
def test_one_key(tmp_path: Path, preempt: str, mode: str, lost: int) -> None:
    """The urgent job displaces one long job of 80 cores, each scheduler in its way, and starts at once."""
    trace = tmp_path / "jobs.swf"
    trace.write_text(_swf(_full_machine()))
    result = CliRunner().invoke(
        cli, ["replay", str(CONFIG), str(trace), "--set", f"policy.preempt={preempt}", "--json", "-"]
    )
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    taken = [(each["preemptor"], each["mode"]) for each in found["preemptions"]]
    assert taken == [("69", mode)]
    victim = found["jobs"][found["preemptions"][0]["victim"]]
    assert victim["intervals"][0]["cpus"].popitem()[1] == "0-79"
    assert found["metrics"]["core_seconds_lost"] == lost
    runs = [each for each in found["jobs"]["69"]["intervals"] if each["state"] == "RUNNING"]
    assert [(each["start"], each["end"]) for each in runs] == [(1000.0, 1600.0)]


@pytest.mark.parametrize(
    ("preempt", "warnings"),
    [
        ("preempt/partition_prio", 0),
        ("moab/qos", 1),
        ("lsf/queue", 0),
    ],  # Moab's: GUARANTEEDPREEMPTION is not TRUE
)
def test_nothing_to_complain_about(tmp_path: Path, preempt: str, warnings: int) -> None:
    """`makeway check` finds no errors under any of the three, and one warning in all."""
    config = tmp_path / "c.toml"
    config.write_text(
        CONFIG.read_text().replace('preempt = "preempt/partition_prio"', f'preempt = "{preempt}"')
    )
    result = CliRunner().invoke(cli, ["check", str(config)])
    assert result.exit_code == 0, result.output
    assert result.output.count("warning: ") == warnings, result.output
    assert ("GUARANTEEDPREEMPTION" in result.output) is (warnings == 1)
