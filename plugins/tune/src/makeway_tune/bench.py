"""Do what the studio is asked for: replays with other settings and stories of jobs, each in a process of its own.

A process leaves files in the bench's folder: what its replay came to, its record as a page beside the site as
configured, a story, or why there is none.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import multiprocessing
import signal
import threading
from collections.abc import Iterator, Mapping
from multiprocessing.sharedctypes import RawArray
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from makeway import registry
from makeway.config import Config
from makeway.errors import ConfigError, MakewayError, Problem, nearest
from makeway.readers.api import Loaded
from makeway_app.archive import JsonArchive
from makeway_app.cli.asked import Asked
from makeway_app.cli.inputs import check_plugins, with_actions
from makeway_app.cli.loose import load_files
from makeway_app.cli.meter import FIELDS, Gauge
from makeway_app.cli.records import Keeper
from makeway_app.cli.request import CONFIGURED, in_world
from makeway_app.cli.running import warmed_up, watched
from makeway_app.readers.commands import commands_with
from makeway_app.replay import Options, Run, replay
from makeway_app.report import short_name, signed
from makeway_engine.engine import Engine
from makeway_explain.story import Witness, explain
from makeway_report import interval
from makeway_report.page import write
from makeway_sweep.work import ByJob, keep_jobs
from makeway_tune.facts import Costs, Facts, facts_of, value
from makeway_tune.files import Chosen, Site
from makeway_tune.goals import RATES, WAIT, Measure
from makeway_tune.log import Group, Log
from makeway_tune.sure import change, draws
from makeway_tune.tell import measures_of_group, words_of

_PROCESSES = multiprocessing.get_context("spawn")
_GROUPS, _JOBS = 12, 8
_MOST = 26
"""Runs, and stories, that a bench keeps."""


@attrs.define(eq=False)
class Work:
    """A replay or a story that was asked for."""

    name: str
    chosen: Chosen
    gauge: Gauge
    job: str = ""
    """Of a story; empty: it is a replay."""
    process: Any = None
    """None: it waits for its turn."""


@attrs.define(eq=False)
class Bench:
    """What was asked for, and what came of it."""

    asked: Asked
    site: Site
    log: Log
    leader: str
    """``policy.preempt`` of the configuration as it stands, whose words are the site's."""
    folder: Path
    workers: int
    _works: dict[str, Work] = attrs.field(factory=dict)
    _lock: threading.RLock = attrs.field(factory=threading.RLock)

    # ------------------------------------------------------------------------------ asked
    def replayed(self, values: Mapping[str, str]) -> str:
        """Replay with some settings changed; return the name of the run, which may be there already.

        :raises ConfigError: there is no such setting or value.
        """
        known = {each.name: each for each in self.site.knobs}
        for name, text in values.items():
            if name not in known:
                raise ConfigError("settings", [Problem("", f"no setting {name!r}{nearest(name, known)}")])
            allowed = (known[name].now, *known[name].values)
            if text not in allowed:
                shown = ", ".join(each or "not set" for each in allowed)
                raise ConfigError(name, [Problem("", f"got {text!r}; allowed: {shown}")])
        chosen = self.site.chosen(values)
        with self._lock:
            runs = [each for each in self._works.values() if not each.job]
            for each in runs:
                if each.chosen == chosen:
                    return each.name
            return self._add(short_name(len(runs)), chosen, "", len(runs))

    def told(self, run: str, job: str) -> str:
        """Tell the story of a job under the settings of a run; return the name of the story.

        :raises ConfigError: there is no such run or job.
        """
        with self._lock:
            of = self._works.get(run)
            if of is None or of.job:
                raise ConfigError("run", [Problem("", f"there is no run {run!r}")])
            if job not in self.log.at:
                raise ConfigError(
                    "job", [Problem("", f"no job {job!r} in the log{nearest(job, self.log.at)}")]
                )
            name = f"{run}-{self.log.at[job]}"
            if name in self._works:
                return name
            stories = sum(bool(each.job) for each in self._works.values())
            return self._add(name, of.chosen, job, stories)

    def _add(self, name: str, chosen: Chosen, job: str, so_far: int) -> str:
        if so_far >= _MOST:
            text = f"there are {_MOST} already; begin anew: makeway studio"
            raise ConfigError("runs" if not job else "stories", [Problem("", text)])
        self._works[name] = Work(name, chosen, Gauge(name, RawArray("d", FIELDS), 0), job)
        self.look()
        return name

    def look(self) -> None:
        """Begin what waits, as there is room."""
        with self._lock:
            running = sum(
                each.process is not None and each.process.is_alive() for each in self._works.values()
            )
            for each in self._works.values():
                if each.process is None and running < self.workers:
                    running += 1
                    task = _Task(
                        asked=self.asked,
                        site=self.site,
                        leader=self.leader,
                        log=self.log,
                        folder=self.folder,
                        name=each.name,
                        chosen=each.chosen,
                        job=each.job,
                    )
                    each.process = _PROCESSES.Process(
                        target=_work, args=(task, each.gauge.numbers), daemon=True
                    )
                    each.process.start()

    def stop(self) -> None:
        """End what runs."""
        with self._lock:
            for each in self._works.values():
                if each.process is not None and each.process.is_alive():
                    each.process.terminate()
                    each.process.join()

    # ------------------------------------------------------------------------------ shown
    def state(self) -> dict[str, Any]:
        """Return all of it, in values that JSON has."""
        self.look()
        with self._lock:
            return {
                "runs": [self._run(each) for each in self._works.values() if not each.job],
                "stories": {
                    each.name: {
                        "run": each.name.partition("-")[0],
                        "job": each.job,
                        **self._came(each, "txt"),
                    }
                    for each in self._works.values()
                    if each.job
                },
            }

    def _run(self, work: Work) -> dict[str, Any]:
        found = self._came(work, "run")
        return {
            "name": work.name,
            "said": "; ".join(self.site.words(work.chosen)) or "as configured",
            "diff": self.site.diff(work.chosen),
            **{key: each for key, each in found.items() if key != "text"},
            **(json.loads(found["text"]) if found["state"] == "done" else {}),
        }

    def _came(self, work: Work, kind: str) -> dict[str, Any]:
        done, wrong = (self.folder / f"{work.name}.{ending}" for ending in (kind, "wrong"))
        if done.exists():
            return {"state": "done", "text": done.read_text(encoding="utf-8")}
        if wrong.exists():
            return {"state": "failed", "why": wrong.read_text(encoding="utf-8")}
        if work.process is None:
            return {"state": "waits"}
        if not work.process.is_alive():
            # It may have written its file since we looked.
            if done.exists() or wrong.exists():
                return self._came(work, kind)
            return {"state": "failed", "why": "its process ended without a word"}
        gauge = work.gauge
        return {
            "state": "runs",
            "share": gauge.share,
            "told": f"{gauge.date}, {gauge.jobs}" if gauge.runs else "",
        }

    def page(self, name: str) -> Path | None:
        """Return the page of a run; None: there is none."""
        with self._lock:
            work = self._works.get(name)
        found = self.folder / f"{name}.html"
        return found if work is not None and not work.job and found.exists() else None


# ------------------------------------------------------------------------------- in the process
@attrs.frozen(kw_only=True, eq=False)
class _Task:
    """What a process is to do."""

    asked: Asked
    site: Site
    leader: str
    log: Log
    folder: Path
    name: str
    chosen: Chosen
    job: str

    def leave(self, ending: str, text: str) -> None:
        """Leave a file that appears whole."""
        part = self.folder / f"{self.name}.{ending}.part"
        part.write_text(text, encoding="utf-8")
        part.replace(self.folder / f"{self.name}.{ending}")


def _work(task: _Task, numbers: Any) -> None:
    """Do it; whatever goes wrong is left as text."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the studio's, which ends this process
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with task.site.placed(task.chosen) as (path, accounting), contextlib.redirect_stderr(io.StringIO()):
            asked = attrs.evolve(task.asked, config=path, accounting=accounting)
            loaded = asked.load()
            config = with_actions(in_world(asked.changed(loaded.config), None), asked.actions)
            config, _ = registry.translated(config, task.leader)
            check_plugins(config, str(task.site.path), load_files(asked.plugin_files))
            gauge = Gauge(task.name, numbers, 0)
            if task.job:
                _tell(task, asked, loaded, config, gauge)
            else:
                _replay(task, asked, loaded, config, gauge)
    except MakewayError as error:
        task.leave("wrong", str(error))
    except Exception as error:
        task.leave("wrong", f"internal error, please report it: {type(error).__name__}: {error}")


def _replay(task: _Task, asked: Asked, loaded: Loaded, config: Config, gauge: Gauge) -> None:
    with JsonArchive() as archive:
        keeper = Keeper(archive=archive)

        def started(engine: Engine) -> None:
            keep_jobs(engine)
            gauge.started(engine)

        options = Options(archive=archive, keep=False, started=started)
        run = _run(asked, loaded, config, gauge, options, keeper)
        metrics = run.recorder.metrics
        keeper.write_record(task.folder / f"{task.name}.json", run, dict(run.engine.metrics()))
    records = [(task.folder / f"{task.name}.json", f"{task.name}: {'; '.join(task.site.words(task.chosen))}")]
    today = task.folder / "A.json"
    if task.chosen and today.exists():
        records.insert(0, (today, f"A: {CONFIGURED}"))
    text: list[str] = []
    write(records, text.append)
    task.leave("html", "".join(text))
    facts = facts_of(task.log, ByJob.of(metrics), Costs())
    kept = task.folder / "A.npz"
    before = None
    if not task.chosen:
        with kept.with_suffix(".part").open("wb") as part:
            np.savez(part, **attrs.asdict(facts))
        kept.with_suffix(".part").replace(kept)
    elif kept.exists():
        with np.load(kept) as arrays:
            before = Facts(**arrays)
    shown = {"figures": list(_figures(task.log, facts, before)), "jobs": _jobs(task.log, facts)}
    task.leave("run", json.dumps(shown))


def _tell(task: _Task, asked: Asked, loaded: Loaded, config: Config, gauge: Gauge) -> None:
    witness = Witness(task.job, native=loaded.reader is None)
    options = Options(
        traced=witness.concerns,
        decided=witness.decided,
        after_step=witness.stepped,
        started=gauge.started,
    )
    run = _run(asked, loaded, config, gauge, options, None)
    task.leave("txt", "\n\n".join(explain(run, witness, loaded.places)))


def _run(
    asked: Asked, loaded: Loaded, config: Config, gauge: Gauge, options: Options, keeper: Keeper | None
) -> Run:
    request = asked.request(loaded)
    with watched(request, config, gauge) as workload:
        config, _ = warmed_up(config, asked.warm_up, workload.start_wall)
        cluster = None if keeper is None else keeper.begin(config, CONFIGURED, workload)
        commands = commands_with(config, str(loaded.path), workload)
        options = attrs.evolve(options, until=asked.until, plugins=request.plugins)
        return replay(config, workload.jobs, commands, options, cluster)


def _figures(log: Log, facts: Facts, before: Facts | None) -> Iterator[dict[str, Any]]:
    """Yield figures of a run, and between what their changes lie.

    :param before: of the site as configured; None: it is that, or was not done yet.
    """
    drawings = None if before is None else draws(log, 0)
    every = [(f"{stat} wait", Measure(what=WAIT, stat=stat)) for stat in ("mean", "p95")]
    every += [(words_of(what), Measure(what=what)) for what in RATES]
    listed = [("all jobs", words, measure) for words, measure in every]
    for name in log.names("partition")[:_GROUPS]:
        listed += [(name, *each) for each in measures_of_group(Group("partition", name))]
    for group, words, measure in listed:
        found = value(measure, log, facts)
        if math.isnan(found):
            continue
        shown = {"group": group, "figure": words, "value": found, "shown": measure.show(found)}
        if before is not None and drawings is not None:
            moved = change(measure, log, [before], [facts], drawings)
            if not math.isnan(moved.high) and any((moved.low, moved.value, moved.high)):
                shown["between"] = [signed(measure.show, each) for each in (moved.low, moved.high)]
                shown["way"] = interval.way(moved.value, differs=moved.differs)
        yield shown


def _jobs(log: Log, facts: Facts) -> list[dict[str, Any]]:
    """Return the jobs that waited longest and lost most."""
    waits = np.nan_to_num(facts.waits)
    places = [*np.argsort(-waits, kind="stable")[:_JOBS], *np.argsort(-facts.lost, kind="stable")[:_JOBS]]
    show = Measure(what=WAIT, stat="max").show
    return [
        {
            "job": log.jobs[at].id,
            "user": log.jobs[at].user,
            "partition": (log.jobs[at].partitions or (log.default,))[0],
            "wait": show(float(waits[at])),
            "lost": f"{facts.lost[at]:,.1f}",
            "hits": int(facts.hits[at]),
        }
        for at in dict.fromkeys(int(each) for each in places)
        if waits[at] or facts.lost[at]
    ]
