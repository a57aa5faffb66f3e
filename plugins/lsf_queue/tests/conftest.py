"""Build a site out of one line per file, run a few jobs, and say where they stand, in LSF's words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from makeway.config import Config
from makeway.model import Exclusive, JobSpec, Seconds
from makeway.readers.api import Loaded
from makeway.record import History
from makeway.worlds.events import Event
from makeway_app.readers.foreign import Adapted
from makeway_app.replay import Options, replay
from makeway_explain.story import Witness
from makeway_lsf_queue.dialect import LsbQueuesReader
from makeway_lsf_queue.vocabulary import WORDS
from makeway_testing import TableRun, replay_table

_QUEUE = re.compile(r"(\S+)\s+(\d+)\s*\{([^}]*)\}\s*(.*)")
_HOST = re.compile(r"(\w+)\((\d+)\)")
_WORDS = {"n", "start", "run", "limit", "user", "group", "host", "app", "we", "mem", "used"}


@attrs.frozen(kw_only=True, eq=False)
class Trial:
    """What came of some jobs; times in minutes."""

    table: TableRun

    def history(self, job: str) -> History:
        """Return what happened to a job."""
        return self.table.history(job)

    def at(self, minute: float) -> dict[str, str]:
        """Return job -> state right after an instant, in LSF's words."""
        now = 60.0 * minute
        states = {}
        for job, history in self.table.run.recorder.histories.items():
            if history.job.spec.submit_at > now:
                continue
            state = history.state
            for each, start, end, _, _ in history.intervals:
                if start <= now < end:
                    state = each
            if now >= history.since:
                state = history.state
            states[job] = WORDS.state(state)
        return states

    def starts(self, job: str) -> list[float]:
        """Return the minutes at which a job started."""
        return [round(at / 60, 4) for at in self.table.starts(job)]

    @property
    def victims(self) -> list[str]:
        """Return what had to make way, in order."""
        return list(self.table.victims)

    def reason(self, job: str) -> str:
        """Return why a job waits in the end, in LSF's words."""
        return WORDS.reason(self.table.reason(job))

    def host(self, job: str) -> str:
        """Return where a job ran last."""
        return self.table.nodes(job)


@attrs.frozen(kw_only=True, eq=False)
class Site:
    """Files of a site, read."""

    imported: Loaded
    changes: Mapping[str, Any] = attrs.field(factory=dict)

    @property
    def warnings(self) -> str:
        """Everything that was said when the files were read."""
        return "\n".join(self.imported.warnings)

    @property
    def config(self) -> Config:
        """The configuration, with the options of the test."""
        config = self.imported.config
        own = {**config.policy.settings["lsf/queue"], **self.changes.get("options", {})}
        policy = attrs.evolve(config.policy, settings={"lsf/queue": own}, **self.changes.get("policy", {}))
        nodes = tuple(
            attrs.evolve(node, **self.changes.get("nodes", {}).get(node.name, {})) for node in config.node
        )
        return attrs.evolve(config, policy=policy, node=nodes)

    def run(
        self, jobs: str, until: float | None = None, commands: str = "", **more: Mapping[str, Any]
    ) -> Trial:
        """Replay jobs such as ``L1 low n=2 start=5 run=60``, one per line or semicolon.

        :param until: stop at this minute.
        :param more: fields of single jobs, by id.
        """
        specs = tuple(_job(text, more) for text in re.split(r"[;\n]", jobs) if text.strip())
        table = replay_table(
            specs,
            config=self.config,
            commands=commands,
            until=None if until is None else 60.0 * until,
            checked=self.changes.get("checked", True),
        )
        return Trial(table=table)

    def stays(self, jobs: str, wanted: str) -> list[tuple[float, float, str, tuple[str, ...]]]:
        """Return why a job stayed suspended: from and to in minutes, the first words, and the holders."""
        specs = [_job(text, {}) for text in re.split(r"[;\n]", jobs) if text.strip()]
        witness = Witness(wanted)
        run = replay(self.config, specs, (), Options(after_step=witness.stepped))
        witness.over(run.ended_at)
        return [
            (each.start / 60, each.end / 60, each.stay.why.partition(":")[0], each.stay.holders)
            for each in witness.stays[wanted]
        ]


def _job(text: str, more: Mapping[str, Mapping[str, Any]]) -> JobSpec:
    name, queue, *words = text.split()
    given = dict(word.partition("=")[::2] for word in words if "=" in word)
    assert set(given) <= _WORDS, given
    attributes: dict[str, Any] = {}
    if "app" in given:
        attributes["application"] = given["app"]
    if "we" in given:
        attributes["estimated_run_time"] = 60.0 * float(given["we"])
    if "used" in given:
        attributes["memory_used_mb"] = int(given["used"])
    own = dict(more.get(name, {}))
    attributes |= own.pop("attributes", {})
    limit = given.get("limit")
    fields: dict[str, Any] = {
        "id": name,
        "partitions": (queue,),
        "user": given.get("user", f"user_{name}"),
        "group": given.get("group"),
        "submit_at": _seconds(given.get("start", "0")),
        "run_time": _seconds(given.get("run", "1000")),
        "time_limit": None if limit is None else _seconds(limit),
        "tasks": int(given.get("n", "1")),
        "required_nodes": tuple(given["host"].split(",")) if "host" in given else (),
        "memory_mb_per_node": int(given["mem"]) if "mem" in given else None,
        "exclusive": Exclusive.NODE if "-x" in words else None,
        "attributes": attributes,
    }
    return JobSpec(**{**fields, **own})


def _seconds(text: str) -> Seconds:
    return 60.0 * float(text)


def _queues(text: str) -> str:
    sections = []
    for each in text.split(";"):
        match = _QUEUE.match(each.strip())
        assert match is not None, each
        name, priority, preemption, rest = match.groups()
        lines = [f"QUEUE_NAME = {name}", f"PRIORITY = {priority}"]
        if preemption.strip():
            lines.append(f"PREEMPTION = {preemption.strip()}")
        lines += [pair.strip() for pair in rest.split("|") if pair.strip()]
        sections.append("Begin Queue\n" + "\n".join(lines) + "\nEnd Queue\n")
    return "\n".join(sections)


def _hosts(text: str, columns: Mapping[str, Mapping[str, str]]) -> str:
    keys = list(dict.fromkeys(key for row in columns.values() for key in row))
    lines = [" ".join(["HOST_NAME", "MXJ", *keys])]
    for name, slots in _HOST.findall(text):
        lines.append(" ".join([name, slots, *(columns.get(name, {}).get(key, "()") for key in keys)]))
    return "Begin Host\n" + "\n".join(lines) + "\nEnd Host\n"


@pytest.fixture
def lsf(tmp_path: Path) -> Callable[..., Site]:
    """Return a function that writes a site's files and reads them.

    ``queues`` is ``name priority {PREEMPTION line} KEY=value | KEY=value; ...``, ``hosts`` is ``h1(2) h2(1)``;
    ``params``, ``files`` (name -> text), ``host_columns``; the rest changes the configuration that was read.
    """

    def make(
        queues: str,
        hosts: str = "h1(1)",
        params: str = "",
        *,
        host_columns: Mapping[str, Mapping[str, str]] | None = None,
        files: Mapping[str, str] | None = None,
        **changes: Any,
    ) -> Site:
        (tmp_path / "lsb.queues").write_text(_queues(queues))
        (tmp_path / "lsb.hosts").write_text(_hosts(hosts, host_columns or {}))
        if params:
            lines = "\n".join(pair.strip() for pair in params.split("|"))
            (tmp_path / "lsb.params").write_text(f"Begin Parameters\n{lines}\nEnd Parameters\n")
        for name, text in (files or {}).items():
            (tmp_path / name).write_text(text)
        reader = Adapted(LsbQueuesReader())
        return Site(imported=reader.read(tmp_path / "lsb.queues"), changes=changes)

    return make


__all__ = ["Event", "Sequence", "Site", "Trial"]
