"""Tell what has changed since the last advice, for a mail of cron: nothing, most weeks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from email import policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from makeway.errors import ConfigError, Problem
from makeway.model import JobSpec
from makeway.readers.lines import read_text
from makeway_tune import tell
from makeway_tune.answer import Answer, Candidate
from makeway_tune.files import Site
from makeway_tune.goals import Measure

VERSION = 1
_LONGEST = 990
"""Letters of a line of a mail."""


def read_last(path: Path) -> Mapping[str, Any] | None:
    """Return what an earlier run left in a file; None: there was none.

    :raises ConfigError: it was another program that wrote it.
    """
    if not path.exists():
        return None
    try:
        found = json.loads(read_text(path))
        if found["version"] == VERSION and isinstance(found["candidates"][0]["figures"], list):
            return {**found, "until": float(found["until"])}
    except (ValueError, KeyError, IndexError, TypeError):
        pass
    text = "not what `makeway tune --since` leaves there; remove it to begin anew"
    raise ConfigError(str(path), [Problem("", text)])


def since(
    jobs: Sequence[JobSpec], start_wall: float | None, last: Mapping[str, Any] | None, source: str
) -> tuple[tuple[JobSpec, ...], float]:
    """Return the jobs that were submitted since then, and the Unix time of the last submission.

    :raises ConfigError: the log has no dates, or nothing new.
    """
    if start_wall is None:
        raise ConfigError("--since", [Problem("", f"{source} does not say at what date it begins")])
    after = -float("inf") if last is None else last["until"]
    new = tuple(spec for spec in jobs if start_wall + spec.submit_at > after)
    if not new:
        raise ConfigError(source, [Problem("", "no job was submitted since the last advice")])
    return new, start_wall + max(spec.submit_at for spec in new)


def news(found: Answer, site: Site, last: Mapping[str, Any] | None) -> list[str]:
    """Return what is to be told, a sentence each; nothing: all is as it was told last time."""
    return list(_news(found, site, last))


def _news(found: Answer, site: Site, last: Mapping[str, Any] | None) -> Iterator[str]:
    today = found.candidates[0]
    before = {} if last is None else _recommended(last)
    done = bool(before) and _in_force(before["changes"], site)
    if last is not None:
        yield from _moved(today, found, before if done else last["candidates"][0], done=done)
        yield from _limits(today, last["candidates"][0])
    best = tell.recommended(found)
    if best is not None and (not before or dict(best.chosen) != before["changes"]):
        yield f"{tell.verdict(found)}: {tell.changed(best)}"
    elif best is None and before and not done:
        yield f"no longer recommended: {_listed(before['changes'])}; {tell.verdict(found)}"
    elif best is None and last is None:
        yield tell.verdict(found)


def _recommended(last: Mapping[str, Any]) -> Mapping[str, Any]:
    return next((each for each in last["candidates"] if each["name"] == last["recommended"]), {})


def _in_force(changes: Mapping[str, str], site: Site) -> bool:
    now = {each.name: each.now for each in site.knobs}
    return all(now.get(name) == value for name, value in changes.items())


def _listed(changes: Mapping[str, str]) -> str:
    return "; ".join(f"{name} -> {value or 'not set'}" for name, value in changes.items())


def _moved(today: Candidate, found: Answer, told: Mapping[str, Any], *, done: bool) -> Iterator[str]:
    """Yield the figures of the goals that left the interval which was told of them."""
    if done:
        yield f"what was recommended is in force: {_listed(told['changes'])}"
    goals = found.goals
    for measure in dict.fromkeys((*goals.minimise, *(each.measure for each in goals.limits))):
        here, then = today.figures[measure].value, _figure(told, measure)
        if then is None or here != here or then["low"] is None or then["low"] <= here <= then["high"]:
            continue
        low, high = (measure.show(then[key]) for key in ("low", "high"))
        yield f"{measure} was {measure.show(here)}; {low} to {high} was told"


def _figure(told: Mapping[str, Any], measure: Measure) -> Mapping[str, Any] | None:
    key = tell.measure_dict(measure)
    figures: Sequence[Mapping[str, Any]] = told["figures"]
    return next((each for each in figures if {name: each[name] for name in key} == key), None)


def _limits(today: Candidate, then: Mapping[str, Any]) -> Iterator[str]:
    broken = {each.said for each in today.beyond}
    before = set(then["limits_broken"])
    for said in sorted(broken - before):
        yield f"{said} does not hold any more"
    for said in sorted(before - broken):
        yield f"{said} holds again"


def mail(told: Sequence[str], found: Answer, title: str) -> str:
    """Return a mail that says so, with the change if there is one; empty: there is nothing to say."""
    if not told:
        return ""
    # Long lines stay as they are, so that the difference can be read and taken from the file, too.
    message = EmailMessage(policy=policy.default.clone(max_line_length=_LONGEST))
    message["Subject"] = f"makeway tune, {title}: {told[0]}"[:120]
    best = tell.recommended(found)
    change = [best.diff] if best is not None and any(tell.changed(best) in each for each in told) else []
    message.set_content("\n\n".join(["\n".join(told), *change]))
    return message.as_string()
