"""A line costs time in proportion to its length, whatever it holds: regular expressions never go back over it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import attrs
import pytest

from makeway_app.readers.templates import template_in
from makeway_gpu_traces import nodes
from makeway_logs import pbs
from makeway_lsf_queue.reader import grammar as lsf
from makeway_moab_qos import grammar as moab
from makeway_moab_qos.hosts import misread_brackets
from makeway_slurm.readers import association_rows, reservations
from makeway_slurm_world.reading.records import UnreadableError, job_record

LENGTH = 300_000
"""Letters of a line; a reader that looks at each pair of them takes minutes."""
SECONDS = 30.0
END = "\x01"
"""A letter that fits nowhere, so that what came before it is given up."""


@attrs.frozen
class Text:
    """A file that is none."""

    text: str
    name: str = "moab.cfg"

    def beside(self, name: str) -> Text:
        """Return what it includes."""
        return Text("", name)


def _moab(line: str) -> None:
    for entry in moab.parse(Text(line)).entries:
        moab.attributes(entry)


def _associations(line: str) -> None:
    association_rows.read_assoc_mgr([line], association_rows.Rows())


def _lsf(line: str) -> None:
    lsf.logical_lines(line, lsf.Messages("lsb.queues"))


def _record(line: str) -> None:
    spine = "UserId=ann(1) GroupId=ann(1) MCS_label=N/A Priority=1 Nice=0 Account=a JobState=RUNNING "
    for text in (line, f"{spine}MinCPUsNode=1 Comment=a{line}"):
        with contextlib.suppress(UnreadableError):
            job_record(f"JobId=1 JobName=x {text}")


READERS: dict[str, tuple[Callable[[str], object], tuple[tuple[str, str], ...]]] = {
    "moab.cfg": (
        _moab,
        tuple(
            (before, pump)
            for before in ("", "A[", "A[x] ", "A[x] B")
            for pump in ("a", "a.", "a-", "a[", "[", " ", '="', "='", "a=", "1a", "-", " a", "\t[")
        ),
    ),
    "hosts of moab.cfg": (misread_brackets, (("[", "0"), ("[", "0-"), ("[", "-"), ("", "["), ("", "[0"))),
    "templates": (
        lambda line: template_in(line, plain=True),
        (("", "{"), ("", "{{ "), ("", "=$("), ("", "{ "), ("= ", " "), ("", "={a")),
    ),
    "names of nodes": (nodes._NUMBERED.fullmatch, (("", "0"), ("a", "0"), ("", "a0"), ("", "a"))),
    "accounting of PBS": (pbs._PAIR.findall, (("", "a"), ("", "a."), ("", 'a="'), ("", "a='"), ("", "1a"))),
    "scontrol show assoc_mgr": (
        _associations,
        (
            ("", "a"),
            ("", "a/"),
            ("A=b ", "a "),
            ("A=", " a/"),
            ("GrpTRESMins=", "a="),
            ("GrpTRESMins=", "a/"),
        ),
    ),
    "scontrol show reservation": (
        lambda line: reservations.read_scontrol([line]),
        (("", "a"), ("", "a="), ("", "=")),
    ),
    "columns of lsb.queues": (lsf.columns, (("", "("), ("", "(a"), ("", "( "), ("", ")"))),
    "conditions of lsb.queues": (_lsf, (("#if time(", ")"), ("#if time", " "), ("#if time(", "a) "))),
    "records of jobs": (_record, (("", " TresPerJob=a"), ("", " UserId=a"), ("", "a="), ("", "("))),
}


@pytest.mark.parametrize("name", READERS)
def test_a_long_line_costs_its_length(name: str) -> None:
    read, lines = READERS[name]
    for before, pump in lines:
        line = before + pump * (LENGTH // len(pump)) + END
        began = time.process_time()
        read(line)
        took = time.process_time() - began
        assert took < SECONDS, f"{before!r} and {pump!r} again and again: {took:.1f} s"
