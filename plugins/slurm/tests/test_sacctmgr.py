"""QOS and users as sacctmgr writes them: tables, dumps, bad input, and what a replay makes of them."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from makeway.config import Config, QosTable, dump_toml, parse_toml
from makeway.errors import ConfigError
from makeway.model import JobSpec
from makeway.readers.api import Workload
from makeway.readers.mapping import apply_mapping
from makeway_app.cli.inputs import load_config
from makeway_slurm.readers.accounting import Accounting, Association, default_qos, merged
from makeway_slurm.readers.sacctmgr import read_accounting

SLURM = Path(__file__).parent / "data/slurm"
REAL = SLURM / "accounting"
HEAD = "Name|Priority|GraceTime|Preempt|PreemptMode|PreemptExemptTime|Flags\n"
USERS = "Cluster|Account|User|Partition|QOS|Def QOS\n"
CLUSTER = """
    [[node]]
    name = "n[1-4]"
    [[partition]]
    name = "low"
    default = true
    [[partition]]
    name = "gpu"
"""

QOS = (
    QosTable(name="normal"),
    QosTable(
        name="standby",
        priority=1,
        preempt_mode=("requeue",),
        grace_time=90.0,
        flags=("NoReserve", "OverPartQOS"),
    ),
    QosTable(name="low", priority=10, preempt_mode=("cancel",), grace_time=100_000.0),
    QosTable(
        name="high",
        priority=1000,
        preempt=("low", "standby"),
        exempt_time=3600.0,
        flags=("DenyOnLimit",),
    ),
    QosTable(
        name="urgent",
        priority=5000,
        preempt=("high", "low", "normal", "standby"),
        preempt_mode=("requeue", "within"),
        exempt_time=93784.0,
    ),
    QosTable(name="gangy", preempt_mode=("suspend", "gang"), exempt_time=0.0),
    QosTable(name="inside", preempt_mode=("within",)),
    QosTable(name="part_all"),
)
DEFAULTS = {
    "ada": "low",
    "bob": "urgent",
    "bob/astro": "normal",
    "cyd": "standby",
    "cyd/bio/all": "normal",
    "eve": "low",
    "root": "normal",
}
"""Those that the database of the samples gave; dot may use two QOS, neither of them normal."""


def texts(tmp_path: Path, *contents: str | bytes) -> list[Path]:
    """Write files, and return their paths."""
    paths = []
    for at, content in enumerate(contents):
        path = tmp_path / f"a{at or ''}.txt"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        paths.append(path)
    return paths


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Accounting]:
    """Return a function that reads texts as files of accounting."""
    return lambda *contents: read_accounting(texts(tmp_path, *contents))


@pytest.fixture
def problems(tmp_path: Path) -> Callable[..., list[str]]:
    """Return a function that returns what is wrong with texts."""

    def of(*contents: str | bytes) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            read_accounting(texts(tmp_path, *contents))
        return [str(problem) for problem in caught.value.problems]

    return of


Read = Callable[..., Accounting]
Problems = Callable[..., list[str]]


# ------------------------------------------------------------------------------- real files
@pytest.mark.parametrize("name", ["qos.txt", "qos-all.txt"])
def test_qos_of_a_real_database(name: str) -> None:
    found = read_accounting([REAL / name]).qos
    assert tuple(attrs.evolve(table, attributes={}) for table in found) == QOS


def test_limits_of_a_real_database() -> None:
    """Limits and UsageFactor stand in the QOS' attributes, in sacctmgr's words."""
    found = {table.name: table.attributes for table in read_accounting([REAL / "qos-all.txt"]).qos}
    assert found["low"] == {"UsageFactor": "0.500000", "MaxWall": "2-00:00:00"}
    assert {name for name, limits in found.items() if limits} >= {"low"}


@pytest.mark.parametrize("name", ["assoc.txt", "dump.cfg", "tree.txt", "users.txt"])
def test_default_qos_of_a_real_database(name: str) -> None:
    """Each of the four ways to print the associations gives the same."""
    found, warnings = default_qos(read_accounting([REAL / name]), "q")
    if name in ("assoc.txt", "tree.txt"):  # they do not say which account is a user's default
        assert found == {"bob/bio": "urgent"} | {k: v for k, v in DEFAULTS.items() if k != "bob"}
        assert [text.partition(":")[0] for text in warnings] == ["default account not known of bob"]
    else:
        assert (found, warnings) == (DEFAULTS, [])


def test_a_dump_inherits_as_the_database_does() -> None:
    """What stands in no line of a dump is what the table prints: defaults, and lists with + in front."""

    def of(name: str) -> dict[Any, Any]:
        each = read_accounting([REAL / name]).associations
        return {a.key: (a.default_qos, set(a.allowed)) for a in each if a.cluster == "q"}

    assert of("dump.cfg") == of("assoc.txt")


def test_what_is_not_modelled_is_named() -> None:
    assert read_accounting([REAL / "qos-all.txt"]).warnings == ()
    (warning,) = read_accounting([REAL / "dump.cfg"]).warnings
    assert warning.startswith("not modelled, no influence: AdminLevel (dump.cfg:15, 21, 30), Coordinator")


# ------------------------------------------------------------------------------- values
@pytest.mark.parametrize(
    ("cells", "field", "value"),
    [
        pytest.param("||||||", "preempt_mode", None, id="no mode"),
        pytest.param("||||cluster||", "preempt_mode", None, id="cluster"),
        pytest.param("||||OFF||", "preempt_mode", None, id="OFF is the cluster's on a QOS (6.4)"),
        pytest.param("||||within,requeue||", "preempt_mode", ("requeue", "within"), id="within"),
        pytest.param("||||cluster,within||", "preempt_mode", ("within",), id="flags of cluster"),
        pytest.param("||||priority,cancel||", "preempt_mode", ("cancel", "priority"), id="priority"),
        pytest.param("||90||||", "grace_time", 90.0, id="grace time in seconds"),
        pytest.param("||00:01:30||||", "grace_time", 90.0, id="grace time as printed"),
        pytest.param("||1-00:00:00||||", "grace_time", 86400.0, id="grace time with days"),
        pytest.param("||||||", "grace_time", 0.0, id="no grace time"),
        pytest.param("||||||", "exempt_time", None, id="no exempt time"),
        pytest.param("|||||-1|", "exempt_time", None, id="-1 is unset (1.6)"),
        pytest.param("|||||INFINITE|", "exempt_time", None, id="so is INFINITE"),
        pytest.param("|||||00:00:00|", "exempt_time", 0.0, id="0 counts as set (1.6)"),
        pytest.param("|||||5|", "exempt_time", 300.0, id="minutes without a colon (1.6)"),
        pytest.param("|||||1-02:03:04|", "exempt_time", 93784.0, id="exempt time with days"),
        pytest.param("|4294967295|||||", "priority", 4294967295, id="priority"),
        pytest.param("||||||A,B,A", "flags", ("A", "B"), id="flags"),
    ],
)
def test_values_of_a_qos(read: Read, cells: str, field: str, value: object) -> None:
    (table,) = read(f"{HEAD}q{cells}\n").qos
    assert getattr(table, field) == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("q||||kill||", "a.txt:2 PreemptMode: got 'kill'; allowed: ", id="mode"),
        pytest.param("q|-1|||||", "a.txt:2 Priority: got '-1'; expected a whole number", id="priority"),
        pytest.param("q||soon||||", "a.txt:2 GraceTime: got 'soon'; expected a time", id="grace"),
        pytest.param("q||-1||||", "a.txt:2 GraceTime: got '-1'; expected a time, or sec", id="-1"),
        pytest.param("q|||||x|", "a.txt:2 PreemptExemptTime: got 'x'; expected a time", id="exempt"),
        pytest.param("|||||1|", "a.txt:2: a QOS without a name", id="no name"),
        pytest.param("q|1", "a.txt:2: 2 values below 7 columns; a '|' in a value?", id="too few"),
        pytest.param("q|||low|||\nlow|||q|||", "preemption loop: 'q' may preempt itself", id="loop (6.4)"),
        pytest.param("q|||q|||", "a.txt:2 Preempt: preemption loop: 'q'", id="itself (6.4)"),
        pytest.param("low||||||\nq|||lwo|||", "a.txt:3 Preempt: no QOS named 'lwo'; ", id="no such QOS"),
        pytest.param("q|1|||||\nq|2|||||", "a.txt:3 Name: QOS 'q' is there twice", id="twice"),
    ],
)
def test_wrong_values_are_refused_with_file_and_line(problems: Problems, text: str, problem: str) -> None:
    assert problem in problems(HEAD + text + "\n")[0]


def test_all_problems_at_once(problems: Problems) -> None:
    """Of all files."""
    found = problems(f"{HEAD}q|x|y||||\n", USERS + "q|a\n")
    assert [text.partition(" ")[0].rstrip(":") for text in found] == ["a.txt:2", "a.txt:2", "a1.txt:2"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("Nmae|PreemptMode\nq|\n", "no column Name or User", id="no name"),
        pytest.param("q|0|00:00:00||cluster||\n", "if there is no header, leave out -n", id="no header"),
        pytest.param("   Name   Priority \n------\n", "use sacctmgr -P", id="columns by width"),
        pytest.param('{"qos": []}\n', "JSON is not read; expected `sacctmgr -P show qos`", id="JSON"),
        pytest.param("hello\n", "got 'hello'; expected `sacctmgr -P show qos`", id="anything"),
        pytest.param(
            "# slurm.conf\nClusterName=x\nSlurmUser=slurm\n",
            "got 'ClusterName=x'; expected `sacctmgr -P show qos`",
            id="another file that begins with a comment",
        ),
        pytest.param("Name|PreemptMod\nq|\n", "'PreemptMod'; did you mean 'PreemptMode'?", id="typo"),
        pytest.param("Name|Flags|Flags\nq||\n", "column 'Flags' is there twice", id="twice"),
        pytest.param("User|Def Acct|Admin\na|b|c\n", "no column Account, QOS, DefaultQOS", id="no assoc"),
        pytest.param("Name" + "|x" * 1000, "more than 1000 columns", id="too many"),
        pytest.param("", "the file is empty", id="empty"),
        pytest.param(b"Name\0", "the file is binary, not text", id="binary"),
    ],
)
def test_other_texts_are_refused(problems: Problems, text: str | bytes, problem: str) -> None:
    (found,) = problems(text)
    assert problem in found


def test_missing_columns_are_told(read: Read) -> None:
    """A table without lists of QOS to preempt is hardly what was meant."""
    found = read("Name|Priority\nq|3\n")
    assert found.qos == (QosTable(name="q", priority=3),)
    assert found.warnings == (
        "a.txt:1: no column GraceTime, Preempt, PreemptMode, PreemptExemptTime, Flags; defaults count",
    )


def test_unknown_columns_of_newer_releases_are_named(read: Read) -> None:
    found = read(HEAD.strip() + "|Sparkle|Empty\nq|||||||9|\n")
    assert found.warnings == ("not modelled, may matter: Sparkle (a.txt:2)",)


# ------------------------------------------------------------------------------- dumps
@pytest.mark.parametrize(
    ("line", "problem"),
    [
        pytest.param("Usr - 'a'", "got 'Usr'; expected TITLE - 'NAME'", id="title"),
        pytest.param("QOS - 'a':Priority=1", "got 'QOS'; expected TITLE - 'NAME'", id="no dump has QOS"),
        pytest.param("User 'a'", "got 'User'; expected TITLE - 'NAME'", id="no dash"),
        pytest.param("User - 'a", 'a.txt:2 User: got "\'a"; expected a name in quotes', id="quotes"),
        pytest.param("User - 'a':QOS", "got 'QOS'; expected Key='value'", id="no value"),
        pytest.param("User - 'a':QOS='b' c", "expected Key='value', then ':'", id="blank"),
        pytest.param("Parent - 'phys'", "no account 'phys' in the lines above", id="parent"),
        pytest.param("User - 'a':DefaultQS='b'", "no such key; did you mean 'DefaultQOS'?", id="key"),
    ],
)
def test_bad_lines_of_a_dump(problems: Problems, line: str, problem: str) -> None:
    (found,) = problems(f"Cluster - 'q'\n{line}\n")
    assert problem in found


def test_lines_of_a_dump_as_people_write_them(read: Read) -> None:
    """Without quotes, with either kind, with colons in them, comments and blanks."""
    found = read(
        "\n# why\nCluster - q:QOS=normal\nParent - root\n"
        'Account - cs:Description=\'a: "b" # c\':DefaultQOS="low"   # here\n'
        "Parent - cs\n  User - ada : QOS='+low,-normal'  :  Partition=gpu\n"
    )
    assert found.associations == (
        Association(
            cluster="q", account="cs", user="ada", partition="gpu", default_qos="low", allowed=("low",)
        ),
    )


# ------------------------------------------------------------------------------- default QOS
@pytest.mark.parametrize(
    ("default", "allowed", "qos"),
    [
        pytest.param("low", ("normal", "high"), "low", id="the default"),
        pytest.param("", ("low",), "low", id="the only one"),
        pytest.param("", ("low", "normal"), "normal", id="normal"),
        pytest.param("", ("low", "high"), None, id="Slurm refuses the job"),
        pytest.param("", (), None, id="none at all"),
    ],
)
def test_qos_of_a_job_that_names_none(default: str, allowed: tuple[str, ...], qos: str | None) -> None:
    """As measured on Slurm 22.05."""
    each = Association(account="a", user="u", default_qos=default, allowed=allowed)
    assert each.qos == qos


def test_shorter_keys_say_what_longer_ones_would(read: Read) -> None:
    found = read(USERS + "c|a|u||x|x\nc|b|u||x|x\nc|b|u|gpu|x|x\nc|d|v|gpu|x|x\n")
    assert default_qos(found, "c") == ({"u": "x", "v/d/gpu": "x"}, [])


def test_a_single_cluster_is_taken_whatever_its_name(read: Read) -> None:
    found = read(USERS + "c|a|u||x|x\n")
    assert default_qos(found, "other")[0] == {"u": "x"}
    found = read(USERS + "c|a|u||x|x\nd|a|u||y|y\n")
    assert default_qos(found, "d")[0] == {"u": "y"}
    with pytest.raises(ConfigError, match=r"associations of c, d, none of 'other'"):
        default_qos(found, "other")


def test_files_that_disagree(read: Read, problems: Problems) -> None:
    """The same twice is fine."""
    one, other = USERS + "c|a|u||x|x\n", USERS + "c|a|u||y|y\n"
    assert len(read(one, one).associations) == 1
    assert problems(one, other) == ["a1.txt:2 User: 'u' in 'a' is at a.txt:2 User too, and differs"]


def _qos_of(text: str, **fields: Any) -> str | None:
    config = parse_toml(f'{text}\n[[qos]]\nname = "x"\n[[qos]]\nname = "y"\n{CLUSTER}', "test")
    jobs = iter([JobSpec(**({"id": "1", "user": "u"} | fields))])
    (job,) = apply_mapping(Workload(name="t", jobs=jobs), config).jobs
    return job.qos


@pytest.mark.parametrize(
    ("keys", "job", "qos"),
    [
        pytest.param({"u": "x"}, {}, "x", id="user"),
        pytest.param({"u": "x"}, {"qos": "y"}, "y", id="a job's own counts"),
        pytest.param({"u": "x"}, {"qos": "gone"}, None, id="unknown is not unnamed"),
        pytest.param({"u": "x"}, {"user": "v"}, None, id="another user"),
        pytest.param({"u": "x"}, {"account": "a"}, "x", id="any account"),
        pytest.param({"u": "x", "u/a": "y"}, {"account": "a"}, "y", id="account"),
        pytest.param({"u": "x", "u/a": "y"}, {"account": "b"}, "x", id="another account"),
        pytest.param({"u": "x", "u/a": "y"}, {}, "x", id="no account"),
        pytest.param({"u/a/gpu": "x"}, {"account": "a"}, None, id="another partition"),
        pytest.param({"u/a/low": "x"}, {"account": "a"}, "x", id="the default partition"),
        pytest.param({"u/a/gpu": "x"}, {"account": "a", "partitions": ("gpu",)}, "x", id="partition"),
        pytest.param(
            {"u/a": "x", "u/a/gpu": "y"}, {"account": "a", "partitions": ("gpu", "low")}, "x", id="several"
        ),
    ],
)
def test_jobs_get_their_users_default(keys: dict[str, str], job: dict[str, Any], qos: str | None) -> None:
    table = "\n".join(f'"{key}" = "{value}"' for key, value in keys.items())
    assert _qos_of(f"[workload.default_qos]\n{table}", **job) == qos


def test_rules_come_before_defaults() -> None:
    rule = '[[workload.map]]\nuser = ["u"]\nto_qos = "y"'
    assert _qos_of(f'[workload.default_qos]\nu = "x"\n{rule}') == "y"


def test_default_qos_has_to_exist() -> None:
    with pytest.raises(ConfigError, match=r"workload\.default_qos\.u: no QOS named 'z'"):
        _qos_of('[workload.default_qos]\nu = "z"')


# ------------------------------------------------------------------------------- merging
def test_imported_with_accounting() -> None:
    """QOS of the table in their order, none left over without rules, and a lossless round trip."""
    loaded = load_config(SLURM / "qos.conf", None, None, [REAL / "qos.txt", REAL / "users.txt"])
    assert loaded.config.qos == QOS
    assert loaded.config.partition[0].qos == "part_all"
    assert loaded.config.workload.default_qos == DEFAULTS
    assert loaded.places["qos[3].preempt"] == "qos.txt:5 Preempt"
    assert not [text for text in loaded.warnings if "QOS" in text]
    assert parse_toml(dump_toml(loaded.config), "again") == loaded.config


def test_partitions_name_qos_in_any_case(tmp_path: Path) -> None:
    """As measured on Slurm 22.05: accounting holds lower case only."""
    conf = tmp_path / "slurm.conf"
    conf.write_text("ClusterName=q\nNodeName=n1\nPartitionName=p Nodes=n1 QOS=Part_All\n")
    config = load_config(conf, None, None, [REAL / "qos.txt"]).config
    assert config.partition[0].qos == "part_all"
    assert tuple(attrs.evolve(table, attributes={}) for table in config.qos) == QOS


def test_the_config_counts_where_it_describes_a_qos() -> None:
    """One without any rule is only named."""
    config = parse_toml(
        f'[[qos]]\nname = "mine"\n[[qos]]\nname = "low"\n[[qos]]\nname = "high"\npriority = 7\n{CLUSTER}'
        '[workload.default_qos]\nada = "mine"\n',
        "test",
    )
    found = merged(config, read_accounting([REAL / "qos.txt", REAL / "users.txt"]))
    assert [table.name for table in found.config.qos][:3] == ["mine", "low", "high"]
    assert found.config.qos[1] == QOS[2]
    assert found.config.qos[2] == QosTable(name="high", priority=7)
    assert found.config.workload.default_qos == DEFAULTS | {"ada": "mine"}
    assert found.places["qos[1].priority"] == "qos.txt:4 Priority"
    assert not [path for path in found.places if path.startswith("qos[2]")]
    assert [text.partition(";")[0] for text in found.warnings if text.startswith("QOS")] == [
        "QOS high: described by the configuration, which counts"
    ]


def test_default_qos_that_no_file_describes_stands_in() -> None:
    found = merged(parse_toml(CLUSTER, "test"), read_accounting([REAL / "dump.cfg"]))
    names = ("normal", "urgent", "standby", "low")
    assert found.config.qos == tuple(QosTable(name=name) for name in names)
    assert "some users' default, but not described" in found.warnings[-1]


def test_a_loop_through_the_config_is_refused(tmp_path: Path) -> None:
    """The line is that of the accounting file (6.4)."""
    (path,) = texts(tmp_path, HEAD + "a|||b|||\nb||||||\n")
    toml = tmp_path / "c.toml"
    toml.write_text(f'[[qos]]\nname = "b"\npreempt = ["c"]\n[[qos]]\nname = "c"\n{CLUSTER}')
    load_config(toml, None, None, [path])
    path.write_text(HEAD + "c|||b|||\nb||||||\n")
    with pytest.raises(ConfigError) as caught:
        load_config(toml, None, None, [path])
    assert [problem.where for problem in caught.value.problems] == ["qos[0].preempt", "a.txt:2 Preempt"]


# ------------------------------------------------------------------------------- the commands
def test_import_writes_qos(run: Callable[..., Any], tmp_path: Path) -> None:
    toml = tmp_path / "c.toml"
    done = run(
        "import",
        SLURM / "qos.conf",
        "--accounting",
        REAL / "qos-all.txt",
        "--accounting",
        REAL / "dump.cfg",
        "-o",
        toml,
    )
    assert done.status == 0
    assert toml.read_text().startswith("# From qos.conf, qos-all.txt, dump.cfg, by `makeway import`.\n")
    config = parse_toml(toml.read_text(), "c.toml")
    assert tuple(attrs.evolve(table, attributes={}) for table in config.qos) == QOS
    assert config.workload.default_qos == DEFAULTS
    assert "not modelled, may matter" not in done.err
    accounts = {each["Account"] for each in config.cluster.attributes["associations"]}
    assert {"root", "bio"} <= accounts


def test_check_says_where_the_qos_is(run: Callable[..., Any]) -> None:
    done = run("check", SLURM / "qos.conf")
    assert "--accounting qos.txt" in done.out
    done = run("check", SLURM / "qos.conf", "--accounting", REAL / "qos.txt")
    assert "does not hold QOS" not in done.out
    assert "warning: qos.txt:8 PreemptMode: a mode of flags alone does not inherit" in done.out


def test_check_reports_bad_accounting(run: Callable[..., Any], config: Path, tmp_path: Path) -> None:
    (path,) = texts(tmp_path, HEAD + "q|||q|||\n")
    done = run("check", config, "--accounting", path)
    assert done.status == 1
    assert "error: a.txt:2 Preempt: preemption loop: 'q' may preempt itself" in done.out


def test_files_that_cannot_be_read_are_named(run: Callable[..., Any], config: Path) -> None:
    done = run("check", config, "--accounting", "gone.txt")
    assert (done.status, done.out) == (2, "")
    assert "gone.txt: No such file" in done.err


def test_no_accounting_is_overwritten(run: Callable[..., Any], config: Path, tmp_path: Path) -> None:
    (path,) = texts(tmp_path, HEAD)
    done = run("import", config, "--accounting", path, "-o", path)
    assert done.status == 2
    assert path.read_text() == HEAD


@pytest.mark.parametrize("command", ["replay", "explain"])
def test_jobs_without_qos_preempt_by_their_users_default(
    run: Callable[..., Any], tmp_path: Path, command: str
) -> None:
    """The two users' QOS come from a dump, their rules from a table."""
    toml = tmp_path / "c.toml"
    toml.write_text(
        '[[node]]\nname = "n1"\ncpus = 4\n[[partition]]\nname = "p"\n'
        '[policy]\npreempt = "preempt/qos"\npreempt_mode = ["requeue"]\n'
        '[[job]]\nid = 1\nuser = "ada"\nnodes = 1\nrun_time = 100\n'
        '[[job]]\nid = 2\nuser = "bob"\nnodes = 1\nsubmit = 10\nrun_time = 20\n'
    )
    options = ["--job", "2"] if command == "explain" else []
    files = ["--accounting", REAL / "qos.txt", "--accounting", REAL / "dump.cfg"]
    pytest.importorskip("makeway_preempt_qos")
    pytest.importorskip("makeway_select_linear")
    without = run(command, toml, *options)
    done = run(command, toml, *files, *options, "--set", "qos.low.grace_time=0")
    assert (without.status, done.status) == (0, 0)
    if command == "explain":
        assert "which it displaced: none" in without.out
        assert "job 1 " in done.out.partition("which it displaced")[2]
    else:
        assert re.search(r"^preemptions +0$", without.out, re.MULTILINE)
        assert re.search(r"^preemptions +1$", done.out, re.MULTILINE)


@pytest.mark.slow
def test_compared_slurm_conf_gets_accounting_too(run: Callable[..., Any], workload: Path) -> None:
    """Else its jobs would find no QOS there."""
    pytest.importorskip("makeway_preempt_qos")
    pytest.importorskip("makeway_select_cons_tres")
    conf = SLURM / "qos.conf"
    files = ["--accounting", REAL / "qos.txt"]
    done = run(
        "replay", conf, workload, "--map", "user=*:qos=urgent,partition=all", "--compare", conf, *files
    )
    assert done.status == 0, done.err


# ------------------------------------------------------------------------------- any bytes
def _reads(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.txt"
        path.write_bytes(data)
        with contextlib.suppress(ConfigError):
            merged(Config(), read_accounting([path]))


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    _reads(data)


_CELLS = st.sampled_from(
    ["", "q", "r", "1", "-1", "00:01:00", "within", "cluster", "+q", "x|y", "é", "'", '"', "#", ":", " - "]
)


@given(
    st.sampled_from([HEAD, USERS, "Name|Preempt\n", "Cluster - 'q'\nUser - ", "# x\nAccount - 'a':QOS="]),
    st.lists(st.lists(_CELLS, max_size=8), max_size=6),
    st.sampled_from(["|", ":", "='", "'"]),
)
def test_any_table_or_dump_is_read_or_refused(head: str, rows: list[list[str]], between: str) -> None:
    _reads((head + "\n".join(between.join(row) for row in rows)).encode())
