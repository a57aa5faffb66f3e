"""Nothing is lost, and nothing is started twice, however often daemons, keepers and nurseries are killed (1.2)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROOF = Path(__file__).with_name("proof.py")
USERS = ["", "nobody"]


def prove(kills: int, seed: int, user: str, limit: float) -> dict[str, Any]:
    """Run the proof; skip what this machine cannot do."""
    if user and os.geteuid() != 0:
        pytest.skip("needs root, to become another user")
    command = [sys.executable, str(PROOF), "--kills", str(kills), "--seed", str(seed)]
    command += ["--user", user] if user else ["--cgroups", "auto"]
    if user and not _may_run(user):
        pytest.skip(f"{user} may not read this Python")
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _may_run(user: str) -> bool:
    command = [sys.executable, "-c", "import makeway_local_world.processes.world"]
    try:
        return subprocess.run(command, user=user, cwd="/", capture_output=True, timeout=60).returncode == 0
    except OSError:
        return False


def check(found: dict[str, Any], kills: int) -> None:
    """See that all is well, and that something happened."""
    wrongs = ("lost", "started_twice", "wrong_end", "overlapping", "left")
    assert {name: found[name] for name in wrongs} == {name: [] for name in wrongs}, found
    assert found["kills"]["daemon"] == kills
    assert found["acknowledged"] == found["handed_in"] > kills / 2
    assert found["suspensions"] > 0


@pytest.mark.slow
@pytest.mark.parametrize(("user", "kills"), [("", 40), ("nobody", 20)])
def test_kills(user: str, kills: int) -> None:
    """At random instants, and at each point between transaction and deed."""
    check(prove(kills, 1, user, 1500.0), kills)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(1, 11))
@pytest.mark.parametrize("user", USERS)
def test_a_thousand_kills(user: str, seed: int) -> None:
    """A hundred for each seed."""
    check(prove(100, seed, user, 1500.0), 100)
