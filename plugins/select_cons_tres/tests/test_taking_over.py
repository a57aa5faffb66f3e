"""New books, filled from the jobs that are there."""

from __future__ import annotations

from makeway.config import parse_toml
from makeway.model import JobSpec, JobState, SuspendedBy
from makeway.state import Held, Standing, State
from makeway_app.replay import Options, replay

CONFIG = """
node = [{ name = "n1", cpus = 4 }]
partition = [{ name = "p" }]

[policy]
select = "select/cons_tres"
select_parameters = ["CR_Core"]
"""


def _job(name: str, cores: str, started: float, stopped: float | None = None) -> Standing:
    return Standing(
        spec=JobSpec(id=name, tasks=2, submit_at=started),
        state=JobState.RUNNING if stopped is None else JobState.SUSPENDED,
        started_at=started,
        suspended_at=stopped,
        suspended_by=None if stopped is None else SuspendedBy.ADMIN,
        allocation=Held(nodes="n1", cpus=(2,), cores=(cores,)),
    )


def test_who_started_over_a_stopped_job_keeps_his_cores() -> None:
    """A person stopped `under` at -8, and `over` started on its cores at -5: all four are in use."""
    jobs = (
        _job("under", "0-1", -9.0, stopped=-8.0),
        _job("other", "2-3", -7.0),
        _job("over", "0-1", -5.0),
        Standing(spec=JobSpec(id="waits", tasks=1)),
    )
    run = replay(parse_toml(CONFIG, "test"), (), (), Options(begin=State(jobs=jobs), until=1.0))
    waits = run.engine.ledger.jobs["waits"]
    assert (waits.state, waits.reason) == (JobState.PENDING, "Resources")
