"""Say what is wrong, where, what is allowed and what was probably meant; never a traceback, never a silent default."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from makeway_app.cli import cli

QUEUES = """\
Begin Queue
QUEUE_NAME = high
PRIORITY = 80
PREEMPTION = PREEMPTIVE[low]
End Queue
Begin Queue
QUEUE_NAME = low
PRIORITY = 20
End Queue
"""
HOSTS = "Begin Host\nHOST_NAME MXJ\nh1 2\nEnd Host\n"
GOOD = {"lsb.queues": QUEUES, "lsb.hosts": HOSTS}


def _run(folder: Path, command: str, files: dict[str, str | bytes], *more: str) -> tuple[int, str]:
    for name, content in {**GOOD, **files}.items():
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    result = CliRunner().invoke(cli, [command, str(folder / "lsb.queues"), *more])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("files", "said"),
    [
        pytest.param(
            {"lsb.queues": QUEUES.replace("PREEMPTION", "PREEMPTON")},
            "lsb.queues:4: PREEMPTON: unknown keyword; the line is ignored; did you mean 'PREEMPTION'?",
            id="keyword of lsb.queues",
        ),
        pytest.param(
            {"lsb.queues": QUEUES.replace("[low]", "[lwo]")},
            "lsb.queues:4: names the queue 'lwo', which does not exist; did you mean 'low'?",
            id="queue in a list",
        ),
        pytest.param(
            {"lsb.queues": QUEUES.replace("[low]", "[low]\nPREEMPTABLE[top]")},
            "lsb.queues:5: 'PREEMPTABLE[top]': no '='; the line is ignored; a value goes on in the next line only",
            id="a wrapped value",
        ),
        pytest.param(
            {"lsb.queues": QUEUES.replace("PREEMPTIVE", "PREEMTIVE")},
            "got 'PREEMTIVE'; allowed: PREEMPTIVE, PREEMPTABLE; did you mean 'PREEMPTIVE'?",
            id="word of PREEMPTION",
        ),
        pytest.param(
            {"lsb.queues": QUEUES.replace("= 20", "= 20\nTERMINATE_WHEN = PREEMT")},
            "got 'PREEMT'; allowed: LOAD PREEMPT WINDOW; did you mean 'PREEMPT'?; queue low is dropped",
            id="word of TERMINATE_WHEN",
        ),
        pytest.param(
            {"lsb.queues": QUEUES.replace("= 20", "= 20\nJOB_CONTROLS = SUSPND[SIGTSTP]")},
            "did you mean 'SUSPEND'?; queue low is dropped",
            id="word of JOB_CONTROLS",
        ),
        pytest.param(
            {"lsb.params": "Begin Parameters\nPREEMPT_FRO = MINI_JOB\nEnd Parameters\n"},
            "lsb.params:2: PREEMPT_FRO: unknown keyword; the line is ignored; did you mean 'PREEMPT_FOR'?",
            id="keyword of lsb.params",
        ),
        pytest.param(
            {"lsb.params": "Begin Parameters\nPREEMPT_FOR = MINIJOB\nEnd Parameters\n"},
            "got 'MINIJOB'; allowed: GROUP_JLP",
            id="word of PREEMPT_FOR",
        ),
        pytest.param(
            {"lsb.params": "Begin Parameters\nDEFAULT_QUEUE = lo\nEnd Parameters\n"},
            "lsb.params:2: DEFAULT_QUEUE: no queue named 'lo'; did you mean 'low'?",
            id="default queue",
        ),
        pytest.param(
            {"lsb.params": "Begin Paramters\nPREEMPT_FOR = MINI_JOB\nEnd Paramters\n"},
            "lsb.params:1: section PARAMTERS is skipped; did you mean 'PARAMETERS'?",
            id="section",
        ),
        pytest.param(
            {"lsb.users": "Begin User\nUSER_NAME MAX_JOBZ\nu 3\nEnd User\n"},
            "lsb.users:2: MAX_JOBZ: unknown column; it is ignored; did you mean 'MAX_JOBS'?",
            id="column",
        ),
        pytest.param(
            {"lsb.users": "Begin User\nUSER_NAME MAX_JOBS\nu many\nEnd User\n"},
            "lsb.users:3: MAX_JOBS: got 'many'; allowed: a whole number from 0 to 2147483646; it is ignored",
            id="number",
        ),
        pytest.param(
            {"lsb.users": "Begin User\nUSER_NAME MAX_JOBS\nu\nEnd User\n"},
            "lsb.users:3: got 1 columns, allowed: 2; the row is ignored",
            id="row",
        ),
        pytest.param(
            {"lsb.resources": "Begin Limit\nSLOTS = 2\nQUEUES = lwo\nEnd Limit\n"},
            "lsb.resources:1: QUEUES names the queue 'lwo', which does not exist; did you mean 'low'?",
            id="queue of a limit",
        ),
        pytest.param(
            {"lsb.resources": "Begin Limit\nSLOTS = 2\nHOSTS = h2\nEnd Limit\n"},
            "lsb.resources:1: HOSTS names the host 'h2', which does not exist",
            id="host of a limit",
        ),
        pytest.param(
            {"lsb.resources": "Begin Limit\nUSERS = u\nEnd Limit\n"},
            "bounds nothing; allowed: SLOTS, SLOTS_PER_PROCESSOR, JOBS, MEM",
            id="limit without a bound",
        ),
        pytest.param(
            {"lsb.queues": QUEUES + "Begin Queue\nQUEUE_NAME = cut\nPRIOR"},
            "lsb.queues:10: section QUEUE does not end; it is rejected",
            id="truncated",
        ),
    ],
)
@pytest.mark.parametrize("command", ["check", "import"])
def test_what_is_ignored_is_named(
    tmp_path: Path, command: str, files: dict[str, str | bytes], said: str
) -> None:
    """The daemons go on without it, and so do we; once, with file and line."""
    code, output = _run(tmp_path, command, files)
    assert code == 0, output
    assert output.count(said) == 1, output


@pytest.mark.parametrize(
    ("files", "said"),
    [
        pytest.param({"lsb.queues": ""}, "lsb.queues: the file is empty", id="empty"),
        pytest.param({"lsb.queues": b"\x8f\x1a\xe2" + b"\0" * 50}, "lsb.queues: ", id="binary"),
        pytest.param({"lsb.hosts": b"\xff\xfe\0"}, "lsb.hosts:1: not UTF-8", id="a binary sibling"),
        pytest.param({"lsb.users": b"Begin User\xff\n"}, "lsb.users:1: not UTF-8", id="another encoding"),
        pytest.param({"lsb.hosts": "# nothing\n"}, "--nodes", id="no hosts"),
    ],
)
@pytest.mark.parametrize("command", ["check", "import"])
def test_what_cannot_be_read_is_an_error(
    tmp_path: Path, command: str, files: dict[str, str | bytes], said: str
) -> None:
    """One message, and an exit status other than 0."""
    code, output = _run(tmp_path, command, files)
    assert code != 0
    assert said in output


def test_hosts_without_lsb_hosts(tmp_path: Path) -> None:
    """The hosts that queues name, not those that they leave out, and a warning that says so."""
    (tmp_path / "lsb.queues").write_text(QUEUES.replace("= 20", "= 20\nHOSTS = h1 h2 ~h9"))
    result = CliRunner().invoke(cli, ["import", str(tmp_path / "lsb.queues")])
    assert result.exit_code == 0, result.output
    assert "lsb.hosts: not there; the hosts are those that queues name" in result.output
    assert [name in result.stdout for name in ('"h1"', '"h2"', '"h9"')] == [True, True, False]


TOML = """\
node = [{ name = "h1", cpus = 2, attributes = { "JL/U" = "%(jlu)s" } }]
partition = [{ name = "low", attributes = { %(attribute)s } }, { name = "high", priority_tier = 80 }]
[policy]
select = "select/cons_tres"
select_parameters = ["CR_Core"]
preempt = "lsf/queue"
preempt_mode = ["suspend"]
[policy.settings."lsf/queue"]
params = { %(params)s }
users = { u = { MAX_JOBS = "%(jobs)s" } }
[scheduler]
type = "greedy"
"""
FINE = {"jlu": "1", "attribute": 'PREEMPTION = "PREEMPTABLE"', "params": "", "jobs": "3"}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"jlu": "x"}, "node h1.attributes.JL/U: got 'x'; allowed: a whole number from 0"),
        ({"jobs": "many"}, "users.u.MAX_JOBS: got 'many'; allowed: a whole number from 0"),
        ({"attribute": 'PREEMPTION = "PREEMPTABEL"'}, "did you mean 'PREEMPTABLE'?"),
        ({"params": 'USE_SUSP_SLOTS = "perhaps"'}, "params.USE_SUSP_SLOTS: got 'perhaps'; allowed: Y or N"),
    ],
)
@pytest.mark.parametrize("command", ["check", "replay"])
def test_wrong_values_in_toml(tmp_path: Path, command: str, wrong: dict[str, str], said: str) -> None:
    """People write TOML themselves: a value that cannot be understood is an error."""
    (tmp_path / "c.toml").write_text(TOML % {**FINE, **wrong})
    (tmp_path / "jobs.jsonl").write_text('{"id": 1, "partition": "low", "run_time": 5}\n')
    arguments = [str(tmp_path / "c.toml"), *([str(tmp_path / "jobs.jsonl")] if command == "replay" else [])]
    result = CliRunner().invoke(cli, [command, *arguments])
    assert result.exit_code != 0
    assert said in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            {"attribute": 'PREEMTION = "PREEMPTABLE"'},
            "PREEMTION has no effect here; did you mean 'PREEMPTION'?",
        ),
        (
            {"params": 'PREEMPT_FRO = "MINI_JOB"'},
            "PREEMPT_FRO has no effect here; did you mean 'PREEMPT_FOR'?",
        ),
    ],
)
def test_unknown_keywords_in_toml(tmp_path: Path, wrong: dict[str, str], said: str) -> None:
    """`makeway check` warns of them."""
    (tmp_path / "c.toml").write_text(TOML % {**FINE, **wrong})
    result = CliRunner().invoke(cli, ["check", str(tmp_path / "c.toml")])
    assert said in result.output


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        (
            {"application": "ofen"},
            "no application profile named 'ofen'; allowed: often; did you mean 'often'?",
        ),
        ({"rusage": "lic=1"}, "attributes.rusage: got 'lic=1'; allowed: a table of resources and amounts"),
        ({"rusage": {"lic": "1"}}, "attributes.rusage: got"),
        ({"mig": -1}, "attributes.mig: got -1; allowed: a number of 0 or more"),
        ({"estimated_run_time": "1:00"}, "attributes.estimated_run_time: got '1:00'"),
    ],
)
def test_jobs_with_wrong_attributes_are_refused(
    lsf: Callable[..., Any], tmp_path: Path, attributes: dict[str, object], said: str
) -> None:
    """As bsub would, and the others run."""
    profile = "Begin Application\nNAME = often\nMAX_JOB_PREEMPT = 2\nEnd Application\n"
    lsf("low 20 {}; high 80 {PREEMPTIVE}", "h1(2)", files={"lsb.applications": profile})
    jobs: list[dict[str, Any]] = [
        {"id": "a", "partition": "low", "run_time": 5, "attributes": attributes},
        {"id": "b", "partition": "low"},
    ]
    (tmp_path / "jobs.jsonl").write_text("\n".join(json.dumps({"run_time": 5, **each}) for each in jobs))
    result = CliRunner().invoke(
        cli, ["replay", str(tmp_path / "lsb.queues"), str(tmp_path / "jobs.jsonl"), "--json", "-"]
    )
    assert result.exit_code == 3, result.output
    assert said in result.output
    assert re.search(r'"final_state": ?"COMPLETED"', result.output)


LISTED = HOSTS.replace("h1 2\n", "h1 2\nh2 2\n")
OPEN = HOSTS.replace("h1 2\n", "h1 2\ndefault 1\n")
GROUP = "Begin HostGroup\nGROUP_NAME GROUP_MEMBER\nold (h1 %s)\nEnd HostGroup\n"


@pytest.mark.parametrize(
    ("files", "said"),
    [
        pytest.param(
            {"lsb.hosts": LISTED.replace("h2", "h[2")},
            "lsb.hosts:4: HOST_NAME: unbalanced '['; the row is ignored",
            id="row: brackets",
        ),
        pytest.param(
            {"lsb.hosts": LISTED.replace("h2", "h@2!")},
            "lsb.hosts:4: HOST_NAME: 'h@2!' is not a host name or range; the row is ignored",
            id="row: no name",
        ),
        pytest.param(
            {"lsb.hosts": LISTED.replace("h2", "h1")},
            "lsb.hosts:4: HOST_NAME h1 is there already; the first row counts, this one is ignored",
            id="row: twice",
        ),
        pytest.param(
            {"lsb.hosts": LISTED + GROUP % "h22"},
            "lsb.hosts:8: old: names the host 'h22', which does not exist; did you mean 'h2'?; it is ignored",
            id="group: unknown",
        ),
        pytest.param(
            {"lsb.hosts": LISTED + GROUP % "h[2"},
            "lsb.hosts:8: old: unbalanced '['; it is ignored",
            id="group: brackets",
        ),
        pytest.param(
            {"lsb.queues": QUEUES.replace("= 20", "= 20\nHOSTS = h11 h1")},
            "lsb.queues:9: HOSTS: names the host 'h11', which does not exist; did you mean 'h1'?; it is ignored",
            id="queue: unknown",
        ),
        pytest.param(
            {"lsb.queues": QUEUES.replace("= 20", "= 20\nHOSTS = h9")},
            "lsb.queues:9: HOSTS: no host is left; queue low is dropped",
            id="queue: nothing is left",
        ),
        pytest.param(
            {"lsb.queues": QUEUES.replace("= 20", "= 20\nHOSTS = h[9-10]"), "lsb.hosts": OPEN},
            "lsb.queues:9: HOSTS: not in lsb.hosts: h[9-10]; its row default is taken",
            id="queue: hosts of the default row",
        ),
        pytest.param(
            {"lsb.users": "Begin User\nUSER_NAME MAX_JOBS\nchem@ 1\nEnd User\n"},
            "lsb.users:3: names the group 'chem', which does not exist",
            id="user: a group that is not there",
        ),
        pytest.param(
            {"lsb.users": "Begin User\nUSER_NAME MAX_JOBS\nu 1\nu 2\nEnd User\n"},
            "lsb.users:4: USER_NAME u is there already; the first row counts, this one is ignored",
            id="user: twice",
        ),
    ],
)
def test_wrong_hosts_are_named_by_file_and_line(
    tmp_path: Path, files: dict[str, str | bytes], said: str
) -> None:
    """Whatever is left goes on."""
    code, output = _run(tmp_path, "check", files)
    assert code == 0, output
    assert f"warning: {said}\n" in output


def test_what_is_left_of_wrong_hosts(tmp_path: Path) -> None:
    """A group and a queue keep the hosts that there are, and a queue without any is gone."""
    hosts = LISTED + GROUP % "h22 ~h3"
    queues = QUEUES.replace("= 20", "= 20\nHOSTS = old h[7-9]") + (
        "Begin Queue\nQUEUE_NAME = odd\nHOSTS = h4\nEnd Queue\n"
    )
    _run(tmp_path, "import", {"lsb.queues": queues, "lsb.hosts": hosts}, "-o", str(tmp_path / "c.toml"))
    made = tomllib.loads((tmp_path / "c.toml").read_text())
    assert [node["name"] for node in made["node"]] == ["h1", "h2"]
    assert {part["name"]: part.get("nodes") for part in made["partition"]} == {"high": None, "low": "h1"}
