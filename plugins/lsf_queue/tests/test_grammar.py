"""Read LSF's files: scenarios S54 to S58, and the rules of 9.2."""

from __future__ import annotations

from pathlib import Path

import pytest

from makeway.config import dump_toml, parse_toml
from makeway.errors import ConfigError
from makeway.readers.api import Loaded
from makeway_app.readers.foreign import Adapted
from makeway_lsf_queue.dialect import LsbQueuesReader
from makeway_lsf_queue.reader.grammar import Messages, logical_lines, pairs, rows, sections
from makeway_lsf_queue.reader.lsf_conf import lsf_conf
from makeway_lsf_queue.windows import Clock, is_open, windows_of

HOSTS = "Begin Host\nHOST_NAME MXJ JL/U\nh1 2 ()\nh[2-3] 1 -\nEnd Host\n"


def queue(*lines: str, name: str = "q") -> str:
    """Return a Queue section."""
    return "\n".join(["Begin Queue", f"QUEUE_NAME = {name}", *lines, "End Queue", ""])


def read(folder: Path, text: str, clock: Clock | None = None, **beside: str) -> Loaded:
    """Read lsb.queues and files beside it."""
    (folder / "lsb.queues").write_text(text)
    for name, content in {"hosts": HOSTS, **beside}.items():
        (folder / f"lsb.{name}").write_text(content)
    return Adapted(LsbQueuesReader(clock=clock)).read(folder / "lsb.queues")


def lines(text: str, clock: Clock | None = None) -> list[str]:
    """Return the logical lines of a text."""
    return [each.text for each in logical_lines(text, Messages("f"), clock)]


# ------------------------------------------------------------------------------------ scenarios
def test_s54_comments_and_continuation(tmp_path: Path) -> None:
    """9.2 no. 1 and 2."""
    text = queue('PRIORITY = 10 # "x', "PREEMPTION = PREEMPTIVE[a \\", "b+3]", 'DESCRIPTION = "one # two"')
    found = read(tmp_path, text).config.partition[0]
    assert found.priority_tier == 10
    assert found.attributes["PREEMPTION"] == "PREEMPTIVE[a b+3]"
    assert lines("PREEMPTION = PREEMPTIVE[a\\\nb+3]") == ["PREEMPTION = PREEMPTIVE[ab+3]"]
    assert lines('DESCRIPTION = "one # two"') == ['DESCRIPTION = "one']


def test_s55_doubles(tmp_path: Path) -> None:
    """9.2 no. 6 and 8: the first queue of a name, the last key of a name."""
    two = read(tmp_path, queue("PRIORITY = 1") + queue("PRIORITY = 2"))
    assert [(part.name, part.priority_tier) for part in two.config.partition] == [("q", 1)]
    assert any("there already" in text for text in two.warnings)
    twice = read(tmp_path, queue("PRIORITY = 1", "PRIORITY = 2"))
    assert twice.config.partition[0].priority_tier == 2


def test_s56_lines_that_are_ignored(tmp_path: Path) -> None:
    """9.2 no. 6 and 8: three messages, and the queue lives."""
    found = read(tmp_path, queue("PREEMPTIO = X", "no equals sign", "PRIORITY = abc"))
    said = [text for text in found.warnings if text.startswith("lsb.queues:")]
    assert [text.split(":")[1] for text in said] == ["3", "4", "5"]
    assert found.config.partition[0].priority_tier == 1


def test_s57_a_bad_action_drops_the_queue(tmp_path: Path) -> None:
    """9.2 no. 8."""
    found = read(tmp_path, queue("JOB_CONTROLS = PAUSE[SIGSTOP]") + queue(name="other"))
    assert [part.name for part in found.config.partition] == ["other"]
    assert any("queue q is dropped" in text for text in found.warnings)


@pytest.mark.parametrize(("hour", "line"), [(20, "PREEMPTIVE"), (12, None)], ids=["20:00", "12:00"])
def test_s58_conditions(tmp_path: Path, hour: int, line: str | None) -> None:
    """9.2 no. 4."""
    text = queue("PRIORITY = 5", "#if time(18:00-8:00)", "PREEMPTION = PREEMPTIVE", "#else", "#endif")
    found = read(tmp_path, text, Clock.at(hour))
    assert found.config.partition[0].attributes.get("PREEMPTION") == line


# ---------------------------------------------------------------------------------- single rules
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a \\\nb", ["a b"], id="a backslash joins"),
        pytest.param("a # c \\\nb", ["a", "b"], id="a comment ends the line, backslash or not"),
        pytest.param("a\\ b", ["ab"], id="a backslash goes with its blank"),
        pytest.param("a\\xb", ["a\\xb"], id="before others it stays"),
        pytest.param("a\\#b", ["a\\"], id="it protects no hash"),
        pytest.param("a\tb  \n\n  \nc", ["a b", "c"], id="blanks"),
        pytest.param("a \\   \nb", ["a b"], id="trailing blanks go first"),
        pytest.param("# if time(0-1)\na", ["a"], id="a blank after the hash makes it a comment"),
        pytest.param("#IF time(0-1)\na\n#EndIf\nb", ["a", "b"], id="directives in any case"),
        pytest.param("#if time(5-6)\na\n#elif time(0-2)\nb\n#else\nc\n#endif", ["b"], id="elif"),
        pytest.param("#define night time(0-6)\n#if night\na\n#else\nb\n#endif", ["a"], id="define"),
        pytest.param("#if time(5-6)\n#if time(0-1)\na\n#else\nb\n#endif\nc\n#endif\nd", ["d"], id="nested"),
    ],
)
def test_logical_lines(text: str, expected: list[str]) -> None:
    """9.2 no. 1 to 4."""
    assert lines(text) == expected


def test_sections() -> None:
    """9.2 no. 5."""
    messages = Messages("f")
    text = "outside\nBEGIN a\nx=1\nend b\nBegin c\nEnd c\nBegin d\ny=1\nEnd d\nBegin e\nz=1\n"
    found = list(sections(logical_lines(text, messages), messages))
    assert [section.name for section in found] == ["A", "D"]
    assert len(messages.found) == 3, "another name, empty, no end"


def test_pairs_and_rows() -> None:
    """9.2 no. 6 and 7."""
    messages = Messages("f")
    text = "Begin q\nA = (1 2)\nb=-\nC =\nd\nEnd q\nBegin h\nNAME MXJ T\nh1 () (a b)\nh2 1\nh3 - 2\nEnd h\n"
    flat, table = sections(logical_lines(text, messages), messages)
    assert [(pair.key, pair.value) for pair in pairs(flat, messages)] == [("A", "1 2")]
    assert [row for _, row in rows(table, messages)] == [
        {"NAME": "h1", "T": "a b"},
        {"NAME": "h3", "T": "2"},
    ]
    assert len(messages.found) == 3


@pytest.mark.parametrize(
    ("text", "minute", "expected"),
    [
        ("18:00-8:00", Clock.at(20), True),
        ("18:00-8:00", Clock.at(12), False),
        ("20-8", Clock.at(7, 59), True),
        ("5:19-1:8", Clock.at(3, day=6), False),
        ("5:19:00-1:8:30", Clock.at(3, day=6), True),
        ("5:19:00-1:8:30", Clock.at(9, day=1), False),
        ("1-2 5-6", Clock.at(5, 30), True),
    ],
)
def test_windows(text: str, minute: Clock, expected: bool) -> None:
    """9.2 no. 12."""
    windows = windows_of(text)
    assert windows is not None
    assert is_open(windows, minute) is expected


@pytest.mark.parametrize("text", ["", "8", "25-26", "8-9:30", "a-b", "7:1:00-2:00:00"])
def test_bad_windows(text: str) -> None:
    """Both ends have the same fields, and all numbers are in range."""
    assert windows_of(text) is None


def test_lsf_conf_counts_quotes() -> None:
    """9.2, last paragraph."""
    text = "A=\"x # y\" # z\nB=1 \\\n2\n# C=3\nno\nD='q'\n"
    messages = Messages("lsf.conf")
    assert lsf_conf(text, messages) == {"A": "x # y", "B": "1  2", "D": "q"}
    assert messages.found == ["lsf.conf:5: 'no': no '='; the line is ignored"]


# ------------------------------------------------------------------------------------ whole files
def test_everything_beside_it_is_read(tmp_path: Path) -> None:
    """9.1, and the way back through TOML."""
    found = read(
        tmp_path,
        queue("PRIORITY = 40", "RUNLIMIT = 30 2:00", "HOSTS = h1", "NICE = 5"),
        params="Begin Parameters\nPREEMPT_FOR = MINI_JOB\nMAX_PREEMPT_JOBS = 3\nMAX_USER_PRIORITY=9\nEnd Parameters\n",
        users="Begin User\nUSER_NAME MAX_JOBS JL/P\nu@ 3 -\ndefault 5 0.5\nEnd User\n"
        "Begin UserGroup\nGROUP_NAME GROUP_MEMBER USER_SHARES\ng (a b) ()\nEnd UserGroup\n",
        resources="Begin Limit\nNAME = l1\nPER_USER = all\nSLOTS = 4\nEnd Limit\n"
        "Begin Limit\nUSERS QUEUES SLOTS\nu q 3\n(v w) - 5\nEnd Limit\n",
        applications="Begin Application\nNAME = app\nNO_PREEMPT_RUN_TIME = 50%\nEnd Application\n",
    )
    part = found.config.partition[0]
    assert (part.priority_tier, part.default_time, part.max_time, part.nodes) == (40, 1800.0, 7200.0, "h1")
    own = found.config.policy.settings["lsf/queue"]
    assert own["params"] == {"PREEMPT_FOR": "MINI_JOB", "MAX_PREEMPT_JOBS": "3"}
    assert own["users"] == {"u@": {"MAX_JOBS": "3"}, "default": {"MAX_JOBS": "5", "JL/P": "0.5"}}
    assert own["user_groups"] == {"g": ["a", "b"]}
    assert [table.get("SLOTS") for table in own["limits"]] == ["4", "3", "5"]
    assert own["applications"] == {"app": {"NO_PREEMPT_RUN_TIME": "50%"}}
    idle = [text for text in found.warnings if text.startswith("no effect here")]
    assert idle == ["no effect here: NICE (lsb.queues), MAX_USER_PRIORITY (lsb.params)"]
    again = parse_toml(dump_toml(found.config), "again")
    assert again == found.config


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("PRIORITY = 0", "PRIORITY"),
        ("QJOB_LIMIT = many", "QJOB_LIMIT"),
        ("PREEMPTION = PREEMPTIV", "PREEMPTION"),
        ("PREEMPTION = NONPREEMPTIVE", "no longer part of the grammar"),
        ("NO_PREEMPT_INTERVAL = 5%", "NO_PREEMPT_INTERVAL"),
        ("BACKFILL = perhaps", "BACKFILL"),
        ("SLOT_RESERVE = 5", "SLOT_RESERVE"),
    ],
)
def test_bad_values_are_dropped_with_a_message(tmp_path: Path, line: str, part: str) -> None:
    """9.2 no. 8 and 9: the default applies, and file and line are named."""
    found = read(tmp_path, queue(line))
    assert line.split()[0] not in found.config.partition[0].attributes
    assert any(text.startswith("lsb.queues:3: ") and part in text for text in found.warnings)


def test_no_hosts(tmp_path: Path) -> None:
    """There is nothing to run on."""
    with pytest.raises(ConfigError, match="--nodes"):
        read(tmp_path, queue("PRIORITY = 1"), hosts="")


def test_no_queue(tmp_path: Path) -> None:
    """9.1: then there is one named default."""
    found = read(tmp_path, "# nothing\n")
    assert [part.name for part in found.config.partition] == ["default"]


def test_claims() -> None:
    """By name, or by a Queue section."""
    reader = LsbQueuesReader()
    assert reader.claims("lsb.queues", "")
    assert reader.claims("old.txt", "# x\n Begin   Queue\n")
    assert not reader.claims("slurm.conf", "NodeName=n1")
