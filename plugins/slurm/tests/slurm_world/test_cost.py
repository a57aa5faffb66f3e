"""What looking costs, how often a site lets its users ask, and hints that something happened."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from makeway.config import parse_toml
from makeway.worlds.clock import FakeClock
from makeway_slurm_world.commands.drive import slowed
from makeway_slurm_world.driving.nudge import Nudge
from makeway_slurm_world.talking.cost import Limit, cost, limit_of, told

SDIAG = (Path(__file__).parent / "data" / "22.05" / "sdiag.txt").read_text(encoding="utf-8")
CONFIG = """
node = [{ name = "n1", cpus = 4 }]
partition = [{ name = "low", default = true }]

[policy]
select = "select/cons_tres"

[world]
name = "world/slurm"
settings = { poll = POLL }
"""


# ----------------------------------------------------------------------------------------- cost
def test_what_sdiag_says_of_looking() -> None:
    """The recorded line: REQUEST_JOB_INFO (2003) count:2 ave_time:82, in microseconds."""
    assert cost(SDIAG) == {"reading all jobs": 0.082}
    said = told(SDIAG.replace("ave_time:82 ", "ave_time:73000 "), 1.0)
    assert said == (
        "sdiag: reading all jobs 73.0 ms of the controller's time; with a look every 1 s that is 7.3% of a core"
    )


def test_a_controller_that_has_not_counted_yet() -> None:
    assert told("Remote Procedure Call statistics by message type\n", 1.0) == ""


# ---------------------------------------------------------------------------------------- limits
@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, None),
        ({"SlurmctldParameters": "enable_configless"}, None),
        ({"SlurmctldParameters": "rl_bucket_size=5"}, None),
        ({"SlurmctldParameters": "rl_enable"}, Limit(burst=30, rate=2.0)),
        (
            {"SlurmctldParameters": "idle_on_node_suspend,rl_enable,rl_refill_rate=10,rl_refill_period=2"},
            Limit(burst=30, rate=5.0),
        ),
        ({"SlurmctldParameters": "rl_enable,rl_bucket_size=50,rl_refill_rate=x"}, Limit(burst=50, rate=2.0)),
    ],
)
def test_limits_of_a_site(settings: Mapping[str, str], expected: Limit | None) -> None:
    """Defaults of slurm.conf's page: a bucket of 30, 2 calls a second."""
    assert limit_of(settings) == expected


@pytest.mark.parametrize(("poll", "expected"), [("1.0", 4.0), ("30.0", 30.0)])
def test_looks_keep_to_the_limit(poll: str, expected: float, capsys: pytest.CaptureFixture[str]) -> None:
    """Four calls a look, half of two calls a second: one look in four seconds."""
    config = parse_toml(CONFIG.replace("POLL", poll), "test")
    assert slowed(config, Limit(burst=30, rate=2.0)).world.settings["poll"] == expected
    assert ("every 4 s, not every 1 s" in capsys.readouterr().err) is (poll == "1.0")


def test_without_a_limit_nothing_changes() -> None:
    config = parse_toml(CONFIG.replace("POLL", "0.5"), "test")
    assert slowed(config, None) is config


# ----------------------------------------------------------------------------------------- hints
class Touching(FakeClock):
    """A clock at whose third wait a file is touched."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.waits = 0

    def wait(self, until: float | None) -> None:
        """Let time pass."""
        super().wait(until)
        self.waits += 1
        if self.waits == 3:
            self.path.touch()
            os.utime(self.path, ns=(10**18, 10**18))


def test_a_touch_ends_the_wait_once(tmp_path: Path) -> None:
    path = tmp_path / "nudge"
    clock = Touching(path)
    nudge = Nudge(str(path))
    nudge.wait(clock, 30.0)
    assert clock.now() == pytest.approx(0.6)
    assert nudge.came()
    assert not nudge.came()
    nudge.wait(clock, 30.0)
    assert clock.now() == pytest.approx(30.0)
    assert not nudge.came()


def test_without_a_file_one_wait_is_enough() -> None:
    clock = Touching(Path("/nowhere"))
    Nudge("").wait(clock, 30.0)
    assert (clock.now(), clock.waits) == (30.0, 1)


def test_a_wake_ends_the_wait(tmp_path: Path) -> None:
    class Woken(FakeClock):
        def wait(self, until: float | None) -> None:
            del until
            self.advance(0.05)

    clock = Woken()
    Nudge(str(tmp_path / "nudge")).wait(clock, 30.0)
    assert clock.now() == pytest.approx(0.05)
