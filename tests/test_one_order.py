"""The order of candidates is said in one place: what a policy changes there decides every run, watched or not."""

from __future__ import annotations

from typing import Any

import pytest

from makeway.config import Config
from makeway.model import Job, JobSpec
from makeway.settings import structure
from makeway_app.replay import Options, replay
from makeway_slurm_rules import preemption

WAYS: tuple[dict[str, Any], ...] = (
    {"keep": False},
    {"sink": lambda line: None},
    {"traced": lambda job: True},
)


def _site() -> Config:
    qos = [{"name": "normal"}, {"name": "urgent", "preempt": ["normal"]}]
    policy = {
        "select": "select/cons_tres",
        "select_parameters": ["CR_Core_Memory"],
        "preempt": "preempt/qos",
        "preempt_mode": ["requeue"],
    }
    tables = {
        "node": [{"name": "n[1-3]", "cpus": 4, "memory_mb": 8000}],
        "partition": [{"name": "main", "default": True}],
        "qos": qos,
        "policy": policy,
    }
    return structure(tables, Config, "test")


def _job(name: str, at: float, qos: str) -> JobSpec:
    return JobSpec(id=name, qos=qos, submit_at=at, run_time=3000.0, cpus_per_task=4, memory_mb_per_node=500)


JOBS = [
    _job("old", 0.0, "normal"),
    _job("mid", 500.0, "normal"),
    _job("new", 1000.0, "normal"),
    _job("now", 1100.0, "urgent"),
]


def _victims(**more: Any) -> list[str]:
    gone: list[str] = []

    def look(engine: Any) -> None:
        gone.extend(job.id for job in engine.ledger.jobs.values() if job.restarts and job.id not in gone)

    replay(_site(), JOBS, (), Options(after_step=look, **more))
    return gone


@pytest.mark.parametrize("way", WAYS, ids=["bare", "recorded", "traced"])
def test_the_order_of_the_policy_decides(monkeypatch: pytest.MonkeyPatch, way: dict[str, Any]) -> None:
    """Of three jobs of one size the first goes; where those that began last go first, the last one."""
    assert _victims(**way) == ["old"]

    def last_first(jobs: list[Job], *_: object) -> list[Job]:
        return sorted(jobs, key=lambda job: -(job.started_at or 0.0))

    monkeypatch.setattr(preemption, "ordered", last_first)
    assert _victims(**way) == ["new"]


@pytest.mark.parametrize("way", WAYS, ids=["bare", "recorded", "traced"])
def test_a_job_that_the_policy_protects_stays(monkeypatch: pytest.MonkeyPatch, way: dict[str, Any]) -> None:
    """A job that is taken from the candidates is displaced in no run."""
    overlapping = preemption._overlapping

    def spared(jobs: list[Job], *rest: Any) -> list[Job]:
        return [job for job in overlapping(jobs, *rest) if job.id != "old"]

    monkeypatch.setattr(preemption, "_overlapping", spared)
    assert _victims(**way) == ["mid"]
