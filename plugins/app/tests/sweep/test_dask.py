"""``makeway sweep --dask``: a real scheduler with two workers."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from makeway_app.cli import cli

MODES = (
    "--vary",
    "policy.preempt_mode=requeue,'suspend,gang',cancel",
    "--vary",
    "scheduler.type=easy,greedy",
)


def test_without_a_scheduler_there_is_one_clear_error(tmp_path: Path, config: Path) -> None:
    """With the address."""
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    for address in ("tcp://127.0.0.1:9", "nonsense://x"):
        done = CliRunner().invoke(
            cli, ["sweep", str(config), *MODES, "-o", str(tmp_path / "o"), "--dask", address]
        )
        assert done.exit_code == 2, done.output
        assert f"no scheduler answers at {address}" in done.stderr
        assert "Traceback" not in done.output


@pytest.fixture
def scheduler() -> Iterator[Any]:
    """Start a scheduler and two worker processes."""
    distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        yield cluster


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of libraries that distributed brings
def test_a_cluster_does_what_this_computer_does(tmp_path: Path, config: Path, scheduler: Any) -> None:
    """The same table, byte for byte; records come back too."""
    given = ["sweep", str(config), *MODES, "--records"]
    here, there = tmp_path / "here", tmp_path / "there"
    for out, more in ((here, ["--workers", "1"]), (there, ["--dask", scheduler.scheduler_address])):
        done = CliRunner().invoke(cli, [*given, "-o", str(out), *more])
        assert done.exit_code == 0, done.output
    assert (here / "table.csv").read_bytes() == (there / "table.csv").read_bytes()
    for record in (here / "records").iterdir():
        assert record.read_bytes() == (there / "records" / record.name).read_bytes()
    with (there / "table.csv").open() as stream:
        assert len(list(csv.DictReader(stream))) == 6


def test_plugins_in_files_are_refused(tmp_path: Path, config: Path) -> None:
    """The workers do not have them."""
    given = [
        "sweep",
        str(config),
        *MODES,
        "-o",
        str(tmp_path / "o"),
        "--dask",
        "x",
        "--plugin",
        f"preempt/x={config}",
    ]
    done = CliRunner().invoke(cli, given)
    assert done.exit_code == 2
    assert "install the plugin on the workers" in done.stderr
