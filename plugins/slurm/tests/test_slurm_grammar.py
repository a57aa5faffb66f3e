"""slurm.conf as text: lines, quotes, includes, DEFAULT records, and bad input."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makeway.errors import ConfigError, Problem
from makeway_slurm.readers import grammar as slurm_grammar
from makeway_slurm.readers.conf_parts import RECORD_KINDS, Record, Setting, SlurmConf
from makeway_slurm.readers.grammar import parse_conf, read_conf


def pairs(conf: SlurmConf) -> list[tuple[str, str]]:
    """Return the simple parameters as canonical key and value."""
    return [(each.canonical, each.value) for each in conf.entries if not isinstance(each, Record)]


def problems_of(text: str | bytes) -> list[tuple[str, str]]:
    """Return the problems of a text as place and message."""
    with pytest.raises(ConfigError) as caught:
        parse_conf(text)
    return [(each.where, each.message) for each in caught.value.problems]


def written(directory: Path, **files: str) -> Path:
    """Write ``name="text"`` as name.conf, and return the path of slurm.conf."""
    for name, text in files.items():
        (directory / f"{name}.conf").write_text(text, encoding="utf-8")
    return directory / "slurm.conf"


# ------------------------------------------------------------------------------- lines
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("A=1", [("a", "1")], id="one"),
        pytest.param("A=1 B=2\tC=3", [("a", "1"), ("b", "2"), ("c", "3")], id="several on a line"),
        pytest.param("  A = 1  ", [("a", "1")], id="blanks around the sign"),
        pytest.param("A=x=1,y=2", [("a", "x=1,y=2")], id="signs in the value"),
        pytest.param('A="b c" D="" ', [("a", "b c"), ("d", "")], id="quotes"),
        pytest.param('A=b"c"d', [("a", 'b"c"d')], id="quotes inside a word"),
        pytest.param("A=1 # B=2", [("a", "1")], id="comment"),
        pytest.param("A=1#2", [("a", "1")], id="comment without a blank"),
        pytest.param(r"A=1\#2 # 3", [("a", "1#2")], id="escaped hash"),
        pytest.param(r"A=1\\#2", [("a", r"1\\")], id="escaped backslash, then a comment"),
        pytest.param("A=1,\\\n2", [("a", "1,2")], id="continuation"),
        pytest.param("A=1 \\\n  B=2 \\ \n C=3", [("a", "1"), ("b", "2"), ("c", "3")], id="blanks"),
        pytest.param("A=1 \\ # why\nB=2", [("a", "1"), ("b", "2")], id="continued after a comment"),
        pytest.param("# no \\\nA=1", [("a", "1")], id="a comment does not continue"),
        pytest.param("A=1\\", [("a", "1")], id="nothing left to continue with"),
        pytest.param("\n\n \t\nA=1\n\n", [("a", "1")], id="blank lines"),
        pytest.param("A=1\r\nB=2 \\\r\nC=3\r\n", [("a", "1"), ("b", "2"), ("c", "3")], id="CRLF"),
        pytest.param(b"\xef\xbb\xbfA=1", [("a", "1")], id="byte order mark"),
        pytest.param("A=dépôt", [("a", "dépôt")], id="UTF-8 value"),
        pytest.param(b"A=1 # d\xe9p\xf4t", [("a", "1")], id="other encoding in a comment"),
        pytest.param("", [], id="empty"),
        pytest.param("# nothing\n", [], id="comment only"),
    ],
)
def test_parameters(text: str | bytes, expected: list[tuple[str, str]]) -> None:
    assert pairs(parse_conf(text)) == expected


def test_each_setting_knows_its_place() -> None:
    conf = parse_conf("\nSchedulerTimeSlice=30 \\\n  \\\n PreemptMode=OFF\n# x\nA=1", "my.conf")

    assert [each.where for each in conf.entries] == [
        "my.conf:2 SchedulerTimeSlice",
        "my.conf:4 PreemptMode",
        "my.conf:6 A",
    ]


def test_keys_ignore_case_and_the_last_one_wins() -> None:
    conf = parse_conf("PreemptMode=OFF\nA=1\npreemptMODE=CANCEL")

    assert conf.parameters()["preemptmode"].value == "CANCEL"
    (duplicate,) = conf.duplicates()
    assert duplicate.problem() == Problem(
        "slurm.conf:1 PreemptMode", "given again at slurm.conf:3, which wins with 'CANCEL'"
    )


def test_repeatable_parameters_are_no_duplicates() -> None:
    conf = parse_conf("SlurmctldHost=a\nSlurmctldHost=b")

    assert conf.duplicates() == ()
    assert [each.value for each in conf.repeated("SlurmctldHost")] == ["a", "b"]


# ------------------------------------------------------------------------------- records
def test_defaults_apply_to_later_records_of_their_kind() -> None:
    conf = parse_conf("""
        PartitionName=early Nodes=n0
        PartitionName=DEFAULT PriorityTier=1 GraceTime=10
        PartitionName=low Nodes=n1
        partitionname=default GRACETIME=20
        PartitionName=high Nodes=n2 prioritytier=2
        NodeName=n[0-2]
    """)

    table = {
        each.name: {s.canonical: (s.value, s.line, s.inherited) for s in each.settings}
        for each in conf.records("PartitionName")
    }
    assert table == {
        "early": {"nodes": ("n0", 2, False)},
        "low": {
            "nodes": ("n1", 4, False),
            "prioritytier": ("1", 3, True),
            "gracetime": ("10", 3, True),
        },
        "high": {
            "nodes": ("n2", 6, False),
            "prioritytier": ("2", 6, False),
            "gracetime": ("20", 5, True),
        },
    }
    (node,) = conf.records("nodename")
    assert (node.name, node.settings) == ("n[0-2]", ())


def test_default_lines_stay_visible_among_the_entries() -> None:
    conf = parse_conf("NodeName=DEFAULT CPUs=4\nNodeName=n1")

    assert [each.is_default for each in conf.entries if isinstance(each, Record)] == [True, False]


def test_record_is_asked_by_key_in_any_case() -> None:
    (record,) = parse_conf("NodeSet=ns1 Feature=gpu").records("nodeset")

    feature = record.get("FEATURE")
    assert feature is not None
    assert feature.value == "gpu"
    assert record.get("Nodes") is None
    assert record.where == "slurm.conf:1 NodeSet=ns1"


def test_record_may_follow_parameters_on_their_line() -> None:
    conf = parse_conf("ClusterName=c NodeName=n1 CPUs=2")

    assert pairs(conf) == [("clustername", "c")]
    assert [each.name for each in conf.records("NodeName")] == ["n1"]


def test_key_given_twice_on_a_record_line() -> None:
    conf = parse_conf("NodeName=n1 CPUs=2 cpus=4")

    (record,) = conf.records("NodeName")
    assert [each.value for each in record.settings] == ["4"]
    assert [each.lost.value for each in conf.duplicates()] == ["2"]


# ------------------------------------------------------------------------------- includes
def test_include_reads_in_place_relative_to_the_including_file(tmp_path: Path) -> None:
    sub = tmp_path / "sub"
    sub.mkdir()
    written(sub, nodes='Include "more nodes.conf"\nNodeName=n2\n')
    (sub / "more nodes.conf").write_text("NodeName=n1")
    path = written(tmp_path, slurm="A=1\ninclude sub/nodes.conf # here\nNodeName=n3")

    conf = read_conf(path)

    assert [each.name for each in conf.records("NodeName")] == ["n1", "n2", "n3"]
    assert conf.records("NodeName")[1].file == f"{tmp_path}/sub/nodes.conf"


def test_include_takes_absolute_paths_and_the_cluster_name(tmp_path: Path) -> None:
    written(tmp_path, c1="A=1")

    conf = parse_conf(f"ClusterName=c1\nInclude {tmp_path}/%c.conf")

    assert pairs(conf) == [("clustername", "c1"), ("a", "1")]


def test_defaults_reach_into_and_out_of_includes(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        slurm="NodeName=DEFAULT CPUs=1\nInclude nodes.conf\nNodeName=n2",
        nodes="NodeName=n1\nNodeName=DEFAULT CPUs=2",
    )

    cpus = [each.get("CPUs") for each in read_conf(path).records("NodeName")]

    assert [each.value for each in cpus if each] == ["1", "2"]


def test_one_file_may_be_included_twice(tmp_path: Path) -> None:
    path = written(tmp_path, slurm="Include a.conf\nInclude a.conf", a="A=1")

    assert len(read_conf(path).entries) == 2


def test_circular_includes_are_one_error_that_names_the_chain(tmp_path: Path) -> None:
    path = written(tmp_path, slurm="Include a.conf\n", a="\nInclude b.conf", b="Include slurm.conf")

    with pytest.raises(ConfigError) as caught:
        read_conf(path)

    (problem,) = caught.value.problems
    names = [f"{tmp_path}/{each}.conf" for each in ("slurm", "a", "b", "slurm")]
    assert problem.where == f"{tmp_path}/b.conf:1 Include"
    assert problem.message == f"includes run in a circle: {' -> '.join(names)}"


def test_bad_includes_are_placed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    path = written(
        tmp_path,
        slurm="""
            Include none.conf
            Include .
            Include pipe
            Include
            Include = a.conf
            Include=a.conf
            Include a.conf b.conf
            Include %c.conf
            Include ""
        """,
    )

    with pytest.raises(ConfigError) as caught:
        read_conf(path)

    lines = [each.where.removeprefix(f"{path}:") for each in caught.value.problems]
    assert lines == [f"{number} Include" for number in range(2, 11)]
    messages = [each.message.replace(f"{tmp_path}/", "") for each in caught.value.problems]
    assert messages[0] == "cannot read 'none.conf': No such file or directory"
    assert messages[2] == "'pipe' is not a regular file"


def test_includes_that_multiply_are_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm_grammar, "MAX_FILES", 20)
    files = {f"f{n}": f"Include f{n + 1}.conf\nInclude f{n + 1}.conf" for n in range(30)}
    path = written(tmp_path, slurm="Include f0.conf", f30="A=1", **files)

    with pytest.raises(ConfigError) as caught:
        read_conf(path)

    assert [each.message for each in caught.value.problems] == [
        "too many includes; the limit is 20 files, 40 deep"
    ]


def test_deep_includes_are_stopped(tmp_path: Path) -> None:
    files = {f"f{n}": f"Include f{n + 1}.conf" for n in range(60)}
    path = written(tmp_path, slurm="Include f0.conf", **files)

    with pytest.raises(ConfigError, match="too many includes"):
        read_conf(path)


def test_text_without_a_directory_includes_no_relative_file() -> None:
    ((where, message),) = problems_of("Include a.conf")

    assert where == "slurm.conf:1 Include"
    assert "relative" in message


# ------------------------------------------------------------------------------- bad input
@pytest.mark.parametrize(
    ("text", "where", "complaint"),
    [
        pytest.param("A=1\njunk", ":2", "got 'junk'; expected Key=Value", id="no sign"),
        pytest.param("A B=1", ":1", "got 'A'; expected Key=Value", id="blank in a key"),
        pytest.param("A=b c", ":1", "got 'c'; expected Key=Value (a value with", id="needs quotes"),
        pytest.param("=1", ":1", "no key before '='", id="empty key"),
        pytest.param("A=1 =2", ":1", "no key before '='", id="empty key later"),
        pytest.param("Ä=1", ":1", "'Ä' is not a key", id="not a key"),
        pytest.param("A+=1", ":1 A", "got 'A+='; only '=' is read", id="operator"),
        pytest.param("A=", ":1 A", 'no value; for an empty one write A=""', id="no value"),
        pytest.param('A="b c', ":1 A", "unbalanced quotes", id="open quote"),
        pytest.param('A="b#c"', ":1 A", "'#' begins a comment even there", id="hash in quotes"),
        pytest.param('A=b"c', ":1 A", "unbalanced quotes in 'b\"c'", id="stray quote"),
        pytest.param('A="b d"c', ":1 A", "got 'c' right after the closing quote", id="glued"),
        pytest.param("A=1\n\x01=2", ":2", "U+0001", id="control character"),
        pytest.param(b"A=\xff", ":1", "byte 0xff is not UTF-8 text", id="not UTF-8"),
        pytest.param("A=\ud800", ":1", "U+D800", id="lone surrogate"),
        pytest.param("A=1\n\nB=\0", ":3", "a NUL byte; this is not a text file", id="NUL"),
        pytest.param("A=1".encode("utf-16"), "", "UTF-16 text; save it as UTF-8", id="UTF-16"),
        pytest.param("\nA=" + "x" * 1_000_000, ":2", "a line of 1,000,002", id="huge line"),
        pytest.param("A=1\\\n" * 300_000, ":1", "at most 1,000,000", id="huge continued line"),
        pytest.param('NodeName=""', ":1 NodeName", "the name is empty", id="record without a name"),
        pytest.param(
            "NodeName=n1 CPUs=1 \\\n PartitionName=p",
            ":2 PartitionName",
            "begins a record of its own; put it on a line after NodeName",
            id="two records on a line",
        ),
    ],
)
def test_bad_input_is_placed(text: str | bytes, where: str, complaint: str) -> None:
    ((place, message),) = problems_of(text)

    assert place == f"slurm.conf{where}"
    assert complaint in message


def test_all_problems_come_at_once_in_file_order(tmp_path: Path) -> None:
    path = written(tmp_path, slurm="junk\nInclude a.conf\nA=\nB=1", a="\n=2")

    with pytest.raises(ConfigError) as caught:
        read_conf(path)

    assert str(caught.value).replace(f"{tmp_path}/", "") == (
        "slurm.conf: 3 problems\n"
        "  slurm.conf:1: got 'junk'; expected Key=Value\n"
        "  a.conf:2: got '=2'; no key before '='\n"
        '  slurm.conf:3 A: no value; for an empty one write A=""'
    )


def test_unreadable_files_are_config_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm_grammar, "MAX_BYTES", 1000)
    path = written(tmp_path, slurm="A=1")
    for bad, complaint in [
        (tmp_path, "Is a directory"),
        (tmp_path / "none", "No such file or directory"),
        (path / "below", "Not a directory"),
        (tmp_path / ("x" * 5000), "File name too long"),
        (Path("a\0b"), "null"),
        (Path("/dev/zero"), "goes beyond 1,000 bytes in all"),
    ]:
        with pytest.raises(ConfigError, match=complaint):
            read_conf(bad)

    def refuse(*_: object) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(slurm_grammar, "_read_bytes", refuse)
    with pytest.raises(ConfigError, match="cannot read it: Permission denied"):
        read_conf(path)


fragments = st.lists(
    st.sampled_from(
        [
            *(b"A", b"=", b'"', b"#", b"\\", b"\n", b"\r", b" ", b"\t", b"+", b"%c", b"1"),
            *(b"NodeName", b"DEFAULT", b"n[1-2]", b"Include ", b"Include"),
            *(b"\xff", b"\0", b"\xef\xbb\xbf", b"\x01"),
        ]
    ),
    max_size=40,
).map(b"".join)


def outcome(
    read: Callable[[], SlurmConf],
) -> tuple[tuple[Setting | Record, ...], tuple[Problem, ...]]:
    """Return the entries or the problems that reading ends with; any other exception is a bug."""
    try:
        conf = read()
    except ConfigError as error:
        return (), error.problems
    conf.parameters()
    conf.duplicates()
    return conf.entries, ()


@given(st.binary(max_size=200) | fragments)
def test_any_bytes_are_read_or_are_a_config_error(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "slurm.conf")
        path.write_bytes(data)
        entries, problems = outcome(lambda: read_conf(path))
        assert all(each.file == str(path) for each in entries)
        assert all(each.where.startswith(directory) for each in problems)
        "".join(map(str, problems)).encode()


@given(st.text(max_size=100) | fragments.map(lambda data: data.decode("latin-1")))
def test_any_text_is_read_or_is_a_config_error(text: str) -> None:
    _, problems = outcome(lambda: parse_conf(text))
    lines = [int(each.where.split(":")[1].split()[0]) for each in problems]
    assert lines == sorted(lines)


plain_values = st.text(
    alphabet=st.characters(codec="utf-8", exclude_categories=("C", "Z"), exclude_characters='"\\#'),
    min_size=1,
)
plain_keys = st.from_regex(r"[A-Za-z0-9_.]{1,8}", fullmatch=True).filter(
    lambda key: key.lower() not in {"include", *RECORD_KINDS}
)


@given(st.lists(st.tuples(plain_keys, plain_values, st.sampled_from([" ", "\n", " \\\n"]))))
def test_what_is_written_is_read(given_pairs: list[tuple[str, str, str]]) -> None:
    text = "".join(f"{key}={value}{gap}" for key, value, gap in given_pairs)

    assert pairs(parse_conf(text)) == [(key.lower(), value) for key, value, _ in given_pairs]
