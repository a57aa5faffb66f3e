"""Read LSF's ``lsb.acct``: a JOB_FINISH for each job that has ended.

Fields are separated by blanks, texts stand in quotes, and what is unknown is ``""``, 0 or -1. Their order is that of
IBM's reference of lsb.acct; what comes after the fields that are read has grown with each release. Run limits are not
among them: those of queues hold. Other events, such as those of reservations, are left out.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from makeway.obstacle import counted
from makeway.readers.api import ReadOptions, Workload
from makeway.readers.lines import Line, shown
from makeway_logs.rows import LATEST, BadRowError, Ended, read_accounting

_FIELD = re.compile(r'"((?:[^"]|"")*)"(?=\s|$)|(\S+)')
_FINISH = "JOB_FINISH"
_EVENT, _END, _ID, _PROCESSORS, _SUBMIT, _BEGIN, _START, _USER, _QUEUE = 0, 2, 3, 6, 7, 8, 10, 11, 12
_RES_REQ = 13
_ONE_HOST = re.compile(r"\bspan\s*\[\s*hosts\s*=\s*1\s*\]")
_MEMORY = re.compile(
    r"\brusage\s*\[[^\]]*\bmem\s*=\s*([0-9]{1,12})(?:\.[0-9]+)?\s*([KMGT]?)B?\b", re.IGNORECASE
)
_TILE = re.compile(r"\bspan\s*\[\s*ptile\s*=\s*0*([1-9][0-9]{0,8})\s*\]")
_ANY_TYPE = re.compile(r"\bselect\s*\[\s*\(?\s*type\s*==?\s*(any|local)\s*\)?\s*\]")
_WHOLE_MEMORY = re.compile(r"\brusage\s*\[\s*mem\s*=\s*[0-9.]+\s*[KMGT]?B?\s*\]", re.IGNORECASE)
_POLICY = "lsf/queue"
"""The policy that understands RES_REQ as a whole."""
_UNITS = {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024 * 1024}
_ASKED_HOSTS = 22
"""How many hosts were asked for; their names follow, then how many it ran on, and those."""
_RUSAGE = 19
"""Fields of resource usage."""
_DONE = 64


@attrs.define(kw_only=True)
class LsbAcctReader:
    """Reads lsb.acct, all of it before the first job."""

    name: str = "lsb.acct"
    reads_machine_only: bool = True

    def claims(self, path: Path, head: str) -> bool:
        """Recognise ``"JOB_FINISH" "10.1" 1717200000``, or another event of the same shape in a file of that name."""
        first = next((line for line in head.splitlines() if line.strip()), "")
        event = re.match(r'"([A-Z_]+)" "[0-9.]+" [0-9]+ ', first)
        return event is not None and (event[1] == _FINISH or path.name.startswith("lsb.acct"))

    def read(self, path: Path, options: ReadOptions) -> Workload:
        """Read `path`.

        :raises ConfigError: it cannot be read.
        """
        mine = options.config.policy.preempt == _POLICY
        return read_accounting(path, options, functools.partial(_jobs, understood=mine))


def _jobs(lines: Iterator[Line], workload: Workload, *, understood: bool) -> Iterator[Ended]:
    others, more, first = 0, 0, ""
    for number, line in lines:
        fields = [(text or bare).replace('""', '"') for text, bare in _FIELD.findall(line)]
        if not line.lstrip().startswith('"'):
            workload.reject(number, f'got {shown(line)}; allowed: "JOB_FINISH" "10.1" ...')
            continue
        if fields[_EVENT] != _FINISH:
            others += 1
            continue
        try:
            found = _ended(number, fields)
            if not understood and _says_more(found.said.get("res_req", "")):
                more += 1
                first = first or f"{workload.name}:{number}: job {found.id}: {shown(found.said['res_req'])}"
            yield found
        except BadRowError as reason:
            job = fields[_ID] if len(fields) > _ID else ""
            workload.reject(number, str(reason), job, usual=reason.usual)
    if others:
        workload.notes.append(f"{counted(others, 'event')} other than JOB_FINISH left out")
    if more:
        text = (
            f"{first}: of RES_REQ only span[hosts=1], span[ptile=] and rusage[mem=] count without {_POLICY}"
        )
        workload.notes.append(f"{text}; {counted(more, 'job')} with more")


def _says_more(asked: str) -> bool:
    """Whether RES_REQ says more than what becomes fields of the job."""
    for known in (_ONE_HOST, _TILE, _ANY_TYPE, _WHOLE_MEMORY):
        asked = known.sub(" ", asked)
    return bool(asked.strip())


def _ended(number: int, fields: Sequence[str]) -> Ended:
    if len(fields) <= _ASKED_HOSTS:
        raise BadRowError(f"{len(fields)} fields; allowed: more than {_ASKED_HOSTS}, as JOB_FINISH has")
    at = _ASKED_HOSTS + 1 + _number(fields, _ASKED_HOSTS, "numAskedHosts")
    hosts = _number(fields, at, "numExHosts")
    at += 1 + hosts
    if len(fields) <= at + 3 + _RUSAGE + 6:
        raise BadRowError("the row breaks off")
    status, name = _number(fields, at, "jStatus"), fields[at + 2]
    after = at + 4 + _RUSAGE
    project, index = fields[after + 1], _number(fields, after + 6, "idx")
    start = _number(fields, _START, "startTime")
    submit, end = _number(fields, _SUBMIT, "submitTime"), _number(fields, _END, "event time")
    if not submit or end < max(submit, start):
        raise BadRowError(f"it is submitted at {submit}, started at {start} and over at {end}, in no order")
    job = str(_number(fields, _ID, "jobId"))
    begin = _number(fields, _BEGIN, "beginTime")
    asked = fields[_RES_REQ].strip()
    memory, tile = _MEMORY.search(asked), _TILE.search(asked)
    processors = _number(fields, _PROCESSORS, "numProcessors") or 1
    return Ended(
        line=number,
        id=f"{job}[{index}]" if index else job,
        order=(int(job), index),
        user=fields[_USER] or "unknown",
        account=project if project not in ("", "default") else None,
        name=name,
        queue=fields[_QUEUE],
        submit=float(submit),
        begin=float(begin) if begin else None,
        start=float(start) if start else None,
        end=float(end),
        run=float(end - start) if start else 0.0,
        cpus=processors,
        nodes=1 if tile is None else math.ceil(processors / int(tile[1])),
        tasks_per_node=None if tile is None else min(processors, int(tile[1])),
        state="COMPLETED" if status == _DONE else "FAILED" if start else "CANCELLED",
        array=(job, index) if index else None,
        max_nodes=1 if _ONE_HOST.search(asked) else None,
        memory_mb=None if memory is None else math.ceil(int(memory[1]) * _UNITS[memory[2].upper()]),
        said={"res_req": asked} if asked else {},
    )


def _number(fields: Sequence[str], at: int, name: str) -> int:
    text = fields[at] if at < len(fields) else ""
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise BadRowError(f"{name}, field {at + 1}: got {shown(text)}; allowed: a whole number")
    value = int(text)
    if value > LATEST and name.lower().endswith("time"):
        raise BadRowError(f"{name}, field {at + 1}: got {text}; allowed: seconds since 1970")
    return value
