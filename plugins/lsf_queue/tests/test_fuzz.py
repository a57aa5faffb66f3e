"""Read any text as a site's files: an answer or a ConfigError, never anything else."""

from __future__ import annotations

import tempfile
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from makeway.config import build_cluster, dump_toml, parse_toml
from makeway.errors import ConfigError
from makeway.settings import structure
from makeway_app.readers.foreign import Adapted
from makeway_lsf_queue.check import findings
from makeway_lsf_queue.dialect import LsbQueuesReader
from makeway_lsf_queue.reader import keywords
from makeway_lsf_queue.reader.tables import SECTIONS
from makeway_lsf_queue.settings import Settings

VALUES = st.one_of(
    st.sampled_from(
        (
            *(
                "",
                "-",
                "()",
                "Y",
                "no",
                "0",
                "-1",
                "3",
                "1e9",
                "9" * 20,
                "50%",
                "0%",
                "h1",
                "h[1-2]",
                "all ~h1",
            ),
            *(
                "PREEMPTIVE",
                "PREEMPTIVE[a b+2]",
                "PREEMPTABLE[",
                "PREEMPTIVE PREEMPTIVE",
                "MAX_RESERVE_TIME[3]",
                "a",
            ),
            *(
                "SUSPEND[x] RESUME[]",
                "TERMINATE[CHKPNT]",
                "PREEMPT",
                "1:30",
                "10 20",
                "1:2:3",
                "(a b)",
                "((",
                "!",
            ),
            *("\\", "#", "b"),
        )
    ),
    st.text(max_size=12),
)
KEYS = st.sampled_from(
    [
        *keywords.QUEUE,
        *keywords.PARAMS,
        *keywords.LIMIT,
        *keywords.USER,
        *keywords.HOST,
        *keywords.APPLICATION,
        "X",
        "=",
    ]
)
LINES = st.one_of(
    st.builds("{} = {}".format, KEYS, VALUES),
    st.builds("{} {}".format, KEYS, VALUES),
    st.builds("QUEUE_NAME = {}".format, st.sampled_from("ab")),
    st.just("HOST_NAME MXJ JL/U\nh1 2 ()\nh2 ! 1"),
    st.builds("#{} time({})".format, st.sampled_from(["if", "elif", "else", "endif", "define n"]), VALUES),
    st.text(max_size=20),
)
PARTS = st.builds(
    lambda name, lines, end: "\n".join([f"Begin {name}", *lines, end]),
    st.sampled_from([*SECTIONS, "Nothing"]),
    st.lists(LINES, max_size=6),
    st.sampled_from(["End", "End Queue", "End Host", ""]),
)
HOSTS = "Begin Host\nHOST_NAME MXJ\nh1 2\nh2 4\nEnd Host\n"
FILES = st.fixed_dictionaries(
    {"lsb.queues": st.lists(PARTS, max_size=4).map("\n".join)},
    optional={
        name: st.lists(PARTS, max_size=2).map("\n".join)
        for name in ("lsb.hosts", "lsb.params", "lsb.users", "lsb.resources", "lsb.applications", "lsf.conf")
    },
)


@pytest.mark.slow
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
@given(FILES)
def test_any_text(files: dict[str, str]) -> None:
    """What comes out is a configuration that can be written, read again and checked."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {"lsb.hosts": HOSTS, **files}.items():
            (Path(folder) / name).write_text(text, encoding="utf-8", errors="replace")
        try:
            found = Adapted(LsbQueuesReader()).read(Path(folder) / "lsb.queues")
        except ConfigError:
            return
    config = parse_toml(dump_toml(found.config), "again")
    assert config == found.config
    own = structure(config.policy.settings["lsf/queue"], Settings, "again")
    assert all(finding.level != "error" for finding in findings(build_cluster(config), own))
