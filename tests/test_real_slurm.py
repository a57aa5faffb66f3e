"""Play scenarios on a real Slurm, now, and hold the replay against what it did.

Needs Debian's slurmctld, slurmd and slurm-client, gcc, and root (jobs run as several users); set
MAKEWAY_REAL_SLURM=1 to play them, as CI does. A difference counts if two runs show one: on a busy machine the
daemons may be seconds late.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from makeway_slurm.recordings.play import play
from makeway_slurm.recordings.verify import verify_one
from makeway_verify.verdicts import Outcome

HERE = Path(__file__).parent
RUNNER = HERE / "oracle" / "run_oracle.py"
TRIES = 2

SCENARIOS = [
    "pp_cancel_basic",
    "pp_chain_suspend",
    "pp_mode_off_protects",
    "pp_requeue_basic",
    "gang_end_promotes",
    "seed_preempt_suspend_gang_linear",
    "susp_shadow_filler",
    "seed_reorder_2_4_8_default",
]

pytestmark = [
    pytest.mark.real_slurm,
    pytest.mark.slow,
    pytest.mark.skipif(
        os.environ.get("MAKEWAY_REAL_SLURM") != "1", reason="MAKEWAY_REAL_SLURM=1 plays on real daemons"
    ),
]


@pytest.mark.parametrize("name", SCENARIOS)
def test_real_slurm_still_does_what_we_replay(name: str, tmp_path: Path) -> None:
    """Start a throw-away cluster, play the scenario, compare with the replay of what was just recorded."""
    scenario = HERE / "oracle" / "scenarios" / f"{name}.toml"
    result = tmp_path / f"{name}.json"
    for _ in range(TRIES):
        done = subprocess.run(
            [sys.executable, str(RUNNER), str(scenario), "-o", str(result)],
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == 0, done.stderr
        verdict = verify_one(scenario, result, play)
        if verdict.outcome is Outcome.AGREES:
            return
    told = "\n".join(map(str, verdict.comparison.differences))
    assert verdict.outcome is Outcome.AGREES, told or verdict.why
