"""The grammar of moab.cfg and what each parameter becomes (moab 9 and 10)."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from makeway.config import build_cluster, dump_toml, parse_toml
from makeway.errors import ConfigError
from makeway.foreign import LeftOut
from makeway.hostlist import expand_hostlist
from makeway.settings import structure
from makeway_app.cli.inputs import check_plugins
from makeway_app.readers.foreign import Adapted
from makeway_moab_qos import times
from makeway_moab_qos.check import findings
from makeway_moab_qos.dialect import MoabReader
from makeway_moab_qos.hosts import matching
from makeway_moab_qos.parameters import CREDENTIAL_ATTRIBUTES, PLAIN, WEIGHTS
from makeway_moab_qos.settings import Settings


# ---------------------------------------------------------------------------------------- grammar
@pytest.mark.parametrize(
    ("text", "policy"),
    [
        pytest.param("PREEMPTPOLICY SUSPEND", "SUSPEND", id="plain"),
        pytest.param("preemptpolicy\tSUSPEND", "SUSPEND", id="any case, a tab"),
        pytest.param("PREEMPTPOLICY=SUSPEND", "SUSPEND", id="the sign is a blank"),
        pytest.param("   PREEMPTPOLICY   SUSPEND  # why", "SUSPEND", id="leading blanks, a comment"),
        pytest.param("PREEMPTPOLICY \\\n   SUSPEND", "SUSPEND", id="a line that goes on"),
        pytest.param("PREEMPTPOLICY[0] SUSPEND", "SUSPEND", id="index 0 is the global one"),
        pytest.param("PREEMPTPOLICY CANCEL\nPREEMPTPOLICY SUSPEND", "SUSPEND", id="the last one counts"),
        pytest.param("#PREEMPTPOLICY SUSPEND\nLOGLEVEL 3", None, id="a comment"),
        pytest.param("PREEMPTPOLICY suspend", None, id="values are case-sensitive"),
        pytest.param("PREEMPTPOLICY\x07SUSPEND", "SUSPEND", id="unprintable characters are blanks"),
    ],
)
def test_lines(settings_of: Any, text: str, policy: str | None) -> None:
    """Parameter, index, value, comment, continuation."""
    assert settings_of(text).get("preempt_policy") == policy


def test_include_comes_last(read: Any) -> None:
    """The included text is appended, so that its settings win."""
    found = read("#INCLUDE more.cfg\nPREEMPTPOLICY CANCEL\n", more_cfg="PREEMPTPOLICY SUSPEND")
    assert found.tables["policy"]["settings"]["moab/qos"]["preempt_policy"] == "SUSPEND"
    assert found.places['policy.settings."moab/qos".preempt_policy'] == "more.cfg:1"


def test_includes_in_a_circle(read: Any) -> None:
    """An error, not an endless loop."""
    with pytest.raises(ConfigError, match="included files"):
        read("#INCLUDE a.cfg", a_cfg="#INCLUDE a.cfg")


def test_maui_wants_the_first_column_and_the_case(settings_of: Any, read: Any) -> None:
    """Q21 and Q14."""
    text = "  PREEMPTPOLICY SUSPEND\nbackfillpolicy NONE\nQUEUETIMEWEIGHT 3\n"
    found = settings_of(text, maui=True)
    assert "preempt_policy" not in found
    assert "backfill_policy" not in found
    assert found["weights"] == {"queue_time": 3.0}
    warnings = "\n".join(read(text, maui=True).warnings)
    assert "first column" in warnings
    assert "compares the case" in warnings


def test_attributes_add_and_take_away(settings_of: Any) -> None:
    """``+=`` and ``-=``, and quoted values."""
    text = "QOSCFG[a] MEMBERULIST=ann,bob\nQOSCFG[a] MEMBERULIST+=eve MEMBERULIST-='bob'\n"
    assert settings_of(text)["qos"]["a"]["members"] == ["ann", "eve"]


@pytest.mark.parametrize("flags", ["PREEMPTOR:NOBF", "PREEMPTOR,NOBF", "PREEMPTOR|NOBF"])
def test_flag_lists(settings_of: Any, flags: str) -> None:
    """Colon, comma and vertical bar."""
    assert settings_of(f"QOSCFG[a] QFLAGS={flags}")["qos"]["a"]["flags"] == ["PREEMPTOR", "NOBF"]


def test_maui_finds_flags_by_substring(settings_of: Any) -> None:
    """Q15."""
    found = settings_of("QOSCFG[a] QFLAGS=XPREEMPTORY", maui=True)
    assert found["qos"]["a"]["flags"] == ["PREEMPTOR"]


@pytest.mark.parametrize(
    ("text", "mode", "names"),
    [
        ("QDEF=high&", "and", ()),
        ("QDEF=high^", "only", ()),
        ("QLIST=a,b QDEF=a", "or", ("a", "b")),
        ("QDEF=a& QLIST=b", "or", ("b",)),
    ],
)
def test_marks_on_lists(settings_of: Any, text: str, mode: str, names: tuple[str, ...]) -> None:
    """A mark on QDEF governs the whole list; a later QLIST overrides it (3.3)."""
    found = settings_of(f"USERCFG[u] {text}")["user"]["u"]
    assert found.get("mode", "or") == mode
    assert tuple(found.get("qlist", ())) == names


@pytest.mark.parametrize(
    ("line", "word"),
    [
        pytest.param("BACKFILLDEPTH many", "allowed: a whole number", id="no number"),
        pytest.param("GUARANTEEDPREEMPTION perhaps", "allowed: TRUE, FALSE", id="no boolean"),
        pytest.param("JOBRETRYTIME soon", "allowed: [[[DD:]HH:]MM:]SS", id="no time"),
        pytest.param("USERCFG[u] QFLAGS=PREEMPTOR", "JOBFLAGS is meant", id="QFLAGS on a user"),
        pytest.param("SRCFG[r] OWNER=PLANET:jup", "allowed: KIND:name", id="no owner"),
        pytest.param(
            "USERCFG PRIORITY=5", "USERCFG has no index; it is read as USERCFG[DEFAULT]", id="no index"
        ),
        pytest.param("SRCFG[r] PERIOD=MONTH", "allowed: DAY, WEEK, INFINITY", id="no period"),
        pytest.param("SRCFG[r] DAYS=MON,XYZ", "allowed: MON, TUE", id="no day"),
        pytest.param("SRCFG[r] STARTTIME=noon", "SRCFG[r] STARTTIME: got 'noon'", id="no time of day"),
        pytest.param("QOSCFG[q] PRIORITY", "cannot read 'PRIORITY'", id="no attribute"),
    ],
)
def test_what_cannot_be_read_leaves_the_default(read: Any, line: str, word: str) -> None:
    """With a warning that names the line."""
    assert any(word in warning and warning.startswith("moab.cfg:1") for warning in read(line).warnings)


def test_unknown_parameters_are_named_in_one_warning(read: Any) -> None:
    """Sorted, attributes with their parameter."""
    found = read("FOO 1\nBAR 2\nQOSCFG[q] WEATHER=fine\nLOGLEVEL 3\n")
    assert "not modelled, and ignored: BAR, FOO, QOSCFG WEATHER" in found.warnings
    assert found.idle == (LeftOut(name="LOGLEVEL", places=("moab.cfg:4",)),)


def test_a_slip_is_guessed_in_the_one_warning(read: Any) -> None:
    """Only where the names are much alike."""
    (warning,) = read("BACKFILPOLICY NONE\nQOSCFG[q] QFLAG=PREEMPTEE\nFSACTIVE 1\n").warnings
    assert "BACKFILPOLICY (moab.cfg:1; did you mean BACKFILLPOLICY?)" in warning
    assert "QOSCFG QFLAG (moab.cfg:2; did you mean QFLAGS?)" in warning
    assert "FSACTIVE," in warning


def test_a_value_that_cannot_be_read_names_the_attribute(read: Any) -> None:
    """Parameter, index and attribute."""
    (warning, *_) = read("QOSCFG[a] PRIORITY=high").warnings
    assert warning == "moab.cfg:1: QOSCFG[a] PRIORITY: got 'high'; allowed: a number; the default counts"


def test_a_time_that_cannot_be_read_is_complained_about_once(read: Any) -> None:
    """Not as one that Maui would read in another way."""
    (warning,) = read("JOBRETRYTIME 5:").warnings
    assert "got '5:'" in warning


def test_lists_that_name_an_unknown_qos(read: Any) -> None:
    """With the nearest that there is."""
    warnings = read("QOSCFG[high] PRIORITY=1\nUSERCFG[u] QDEF=hihg&\n").warnings
    assert warnings == (
        "moab.cfg:2: USERCFG[u] names QoS 'hihg', which no QOSCFG line describes; did you mean 'high'?",
    )


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("USERESERVED:chem", ["USERESERVED:chem"]),
        ("NOBF:USERESERVED:chem", ["NOBF", "USERESERVED:chem"]),
        ("USERESERVED:NOBF", ["USERESERVED", "NOBF"]),
        ("USERESERVED", ["USERESERVED"]),
    ],
)
def test_reservations_within_flags(settings_of: Any, text: str, flags: list[str]) -> None:
    """The colon both separates flags and names the reservation; a known flag is a flag."""
    assert settings_of(f"QOSCFG[a] QFLAGS={text}")["qos"]["a"]["flags"] == flags


@pytest.mark.parametrize(
    ("text", "mode"), [("25", "target"), ("25+", "floor"), ("25.0-", "ceiling"), ("25^", "ceiling")]
)
def test_fairshare_targets(settings_of: Any, text: str, mode: str) -> None:
    """A mark says what the number is."""
    found = settings_of(f"USERCFG[u] FSTARGET={text}")["user"]["u"]
    assert (found["fs_target"], found["fs_mode"]) == (25.0, mode)


def test_maui_has_no_throttles(read: Any) -> None:
    """Moab's keys are unknown there (section 6)."""
    found = read("JOBPREEMPTMINACTIVETIME 600", maui=True)
    assert "min_active_time" not in found.tables["policy"]["settings"]["moab/qos"]


# ----------------------------------------------------------------------------------- every parameter
_SAMPLES = {"time": "600", "boolean": "TRUE", "integer": "7", "number": "2.5", "names": "ann,bob"}
_SAMPLES |= {"indexed": "3", "indexed names": "a,b"}
_WORDS = {"PREEMPTPOLICY": "CANCEL", "RESERVATIONPOLICY": "NEVER", "BACKFILLPOLICY": "NONE"}
_WORDS |= {"BFPRIORITYPOLICY": "DURATION", "WCVIOLATIONACTION": "PREEMPT"}
_WORDS |= {"JOBNODEMATCHPOLICY": "EXACTNODE", "NODEACCESSPOLICY": "SINGLEJOB"}
_WORDS |= {"JOBPRIOACCRUALPOLICY": "ALWAYS", "FSPOLICY": "DEDICATEDPS", "NODESETPOLICY": "ONEOF"}


@pytest.mark.parametrize("name", PLAIN)
def test_every_plain_parameter_is_read(config_of: Any, name: str) -> None:
    """It becomes a setting that the config accepts, and none is left over in the warnings."""
    parameter = PLAIN[name]
    value = _SAMPLES.get(parameter.kind, _WORDS.get(name, "WORD"))
    config = config_of(f"NODECFG[n1] PROCS=4\n{name} {value}\n")
    assert parameter.key in config.policy.settings["moab/qos"]


@pytest.mark.parametrize("name", WEIGHTS)
def test_every_weight_and_cap_is_read(settings_of: Any, name: str) -> None:
    """A cap stands beside its weight."""
    found = settings_of(f"{name} 5\n{name.removesuffix('WEIGHT')}CAP 9\n")["weights"]
    assert found[WEIGHTS[name]] == 5.0
    assert found["caps"] == {WEIGHTS[name]: 9.0}


@pytest.mark.parametrize("name", CREDENTIAL_ATTRIBUTES)
def test_every_credential_attribute_is_read(settings_of: Any, name: str) -> None:
    """On a QoS, where all of them may stand."""
    form, key = CREDENTIAL_ATTRIBUTES[name]
    value = {"number": "5", "time": "60", "limit": "1,2", "names": "ann", "list": "q", "target": "5"}.get(
        form, "NOBF"
    )
    assert key in settings_of(f"QOSCFG[q] {name}={value}")["qos"]["q"]


def test_resource_manager_admins_and_system(settings_of: Any) -> None:
    """RMCFG, ADMINCFG, SYSCFG."""
    found = settings_of(
        "RMCFG[base] TYPE=TORQUE SUSPENDSIG=19 CHECKPOINTSIG=SIGUSR1 CHECKPOINTTIMEOUT=00:01:00\n"
        "ADMINCFG[2] USERS=ann,bob\nSYSCFG QDEF=low QLIST=low,high\n"
    )
    (rm,) = found["rm"]
    assert (rm["type"], rm["suspend_sig"], rm["checkpoint_timeout"]) == ("TORQUE", "19", 60.0)
    assert found["admin2"] == ["ann", "bob"]
    assert found["system"]["qlist"] == ["low", "high"]


@pytest.mark.parametrize(
    ("text", "maui", "said"),
    [
        pytest.param("[General]\nLevel=3\n", True, "no parameter of Maui's", id="another kind of file"),
        pytest.param("hello: world\n", False, "no parameter of Moab's", id="no file of Moab's"),
        pytest.param("# PREEMPTPOLICY REQUEUE\n", True, "no parameter of Maui's", id="comments alone"),
        pytest.param(
            "preemptpolicy REQUEUE\n", True, "preemptpolicy (maui.cfg:1) is not", id="in lower case"
        ),
        pytest.param(
            "  PREEMPTPOLICY REQUEUE\n", True, "no parameter of Maui's", id="not in the first column"
        ),
    ],
)
def test_a_file_without_a_parameter_is_none_of_ours(read: Any, text: str, maui: bool, said: str) -> None:
    """Whatever its name is."""
    with pytest.raises(ConfigError, match=re.escape(said)):
        read(text, maui=maui)


@pytest.mark.parametrize("maui", [False, True])
@pytest.mark.parametrize("attribute", ["MAXPROC[USER:ann]=8", "MAXNODE[GROUP]=2", "MAXIJOB=3", "MAX.NODE=16"])
def test_limits_that_are_not_modelled_are_named_with_their_line(
    read: Any, attribute: str, maui: bool
) -> None:
    """A limit of one user within a class, and others of the kind; what stands beside it is read."""
    found = read(f"CLASSCFG[c] {attribute} MAXJOB=5\n", maui=maui)
    name = attribute.partition("=")[0]
    (warning,) = found.warnings
    assert warning == (
        f"{'maui' if maui else 'moab'}.cfg:1: CLASSCFG[c] {name if maui else name.upper()}: "
        "such a limit is not modelled; jobs start that it would keep waiting"
    )
    assert found.tables["policy"]["settings"]["moab/qos"]["klass"]["c"] == {"max_job": [5]}


@pytest.mark.parametrize("maui", [False, True])
@pytest.mark.parametrize("attribute", ["MAXNODE[USER]=2,4", "MAXNODEPERUSER=2,4"])
def test_limits_for_each_user_are_read(read: Any, attribute: str, maui: bool) -> None:
    """Moab writes the index, Maui's users the longer word; both have a soft and a hard limit."""
    found = read(f"CLASSCFG[c] {attribute} MAXJOB=5\n", maui=maui)
    assert not found.warnings
    klass = found.tables["policy"]["settings"]["moab/qos"]["klass"]["c"]
    assert klass == {"max_job": [5], "max_node_per_user": [2, 4]}


# -------------------------------------------------------------------------------------------- hosts
RACK = tuple(f"compute-{rack}-{slot}" for rack in (1, 2) for slot in range(16))


@pytest.mark.parametrize(
    ("text", "whole", "names"),
    [
        pytest.param("compute-1-3", False, "compute-1-3", id="a name"),
        pytest.param(
            "compute-1-[2-4],compute-2-0", False, "compute-1-[2-4],compute-2-0", id="a range, a name"
        ),
        pytest.param("ALL", False, "compute-1-[0-15],compute-2-[0-15]", id="all"),
        pytest.param("^compute-1-[0-13]", False, "compute-1-[0-1,3,10-15]", id="0, 1 or 3 at that place"),
        pytest.param("^compute-1-[0-13]", True, "compute-1-[0-1,3]", id="to the end of the name"),
        pytest.param("^compute-1-[0-13]$", False, "compute-1-[0-1,3]", id="with the end written"),
        pytest.param("compute-.*-1[0-2]", False, "compute-[1-2]-[10-12]", id="any rack"),
        pytest.param("compute-1-[[:digit:]]$", False, "compute-1-[0-9]", id="a class of characters"),
        pytest.param(
            "compute-(1|2)-0$ compute-1-(1,7|8)$", False, "compute-1-[0,8],compute-2-0", id="blanks"
        ),
    ],
)
def test_hosts_of_a_list(text: str, whole: bool, names: str) -> None:
    """Names, ranges and POSIX regular expressions, worked out by hand."""
    assert set(matching(text, RACK, whole=whole)) == set(expand_hostlist(names))


def test_a_host_list_may_hold_a_regular_expression(config_of: Any) -> None:
    """The nodes it names are found when the reservation is used."""
    text = "SRCFG[r] HOSTLIST=^compute-1-[0-13] USERLIST=ann\n"
    config = config_of(text, tables={"node": [{"name": name, "cpus": 1} for name in RACK]})
    (standing,) = structure(config.policy.settings["moab/qos"], Settings, "moab.cfg").standing
    assert standing.hosts == "^compute-1-[0-13]"
    found = [str(finding) for finding in findings(build_cluster(config), Settings(standing=(standing,)))]
    assert any("[0-13] is part of a regular expression" in each for each in found)
    assert any("the nodes named are compute-1-[0-1,3,10-15]" in each for each in found)


@pytest.mark.parametrize(
    ("hosts", "said"),
    [
        ("^compute-(1", "'^compute-(1' is no regular expression"),
        ("compute-[1-", "compute-[1-"),
        ("*compute", "'*compute' is no regular expression"),
    ],
)
def test_a_host_list_that_cannot_be_read_is_an_error_at_once(tmp_path: Path, hosts: str, said: str) -> None:
    """Not after the first jobs: the line is named when the file is read."""
    file = tmp_path / "maui.cfg"
    file.write_text(f"BACKFILLPOLICY FIRSTFIT\nSRCFG[r] HOSTLIST={hosts}\n")
    nodes = {"node": [{"name": "compute-1-0", "cpus": 4}]}
    imported = Adapted(MoabReader()).read(file, nodes)
    with pytest.raises(ConfigError, match=re.escape(said)) as caught:
        check_plugins(imported.config, str(file), places=imported.places)
    assert [problem.where for problem in caught.value.problems] == ["maui.cfg:2"]


def test_a_host_list_that_names_no_node_is_warned_about(config_of: Any) -> None:
    """With the nearest name that there is."""
    config = config_of("SRCFG[r] HOSTLIST=n1,node9\n", tables={"node": [{"name": "node1"}, {"name": "n1"}]})
    settings = structure(config.policy.settings["moab/qos"], Settings, "moab.cfg")
    (finding,) = [each for each in findings(build_cluster(config), settings) if "HOSTLIST" in each.message]
    assert "no node is named by 'node9'" in finding.message
    assert "did you mean 'node1'?" in finding.message


# -------------------------------------------------------------------------------------------- times
@given(st.integers(0, 10**8))
def test_times_read_back(count: int) -> None:
    """Days, hours, minutes and seconds name every whole second."""
    minutes, second = divmod(count, 60)
    hours, minute = divmod(minutes, 60)
    day, hour = divmod(hours, 24)
    assert times.seconds(f"{day}:{hour:02}:{minute:02}:{second:02}") == count


@pytest.mark.parametrize(("text", "value"), [("12", 12), ("0x1F", 31), ("017", 15), ("-3", -3), ("0", 0)])
def test_integers(text: str, value: int) -> None:
    """Decimal, hexadecimal, octal."""
    assert times.integer(text) == value


@given(st.text(max_size=200))
def test_no_text_is_too_odd(text: str) -> None:
    """Whatever a file holds, it is read or complained about, and never crashes."""
    from makeway_moab_qos.reader import translate

    class _Source:
        name = "moab.cfg"

        def __init__(self) -> None:
            self.text = text.replace("#INCLUDE", "")

        def beside(self, name: str) -> _Source:
            raise ConfigError(name, [])

    with contextlib.suppress(ConfigError):
        translate(_Source(), maui=False)


# --------------------------------------------------------------------------------------- the whole
SITE = """
PREEMPTPOLICY SUSPEND
QOSWEIGHT 1
QOSCFG[high] QFLAGS=PREEMPTOR PRIORITY=1000
QOSCFG[low] QFLAGS=PREEMPTEE
CLASSCFG[special] QDEF=high&
CLASSCFG[batch] JOBFLAGS=SUSPENDABLE
"""


def test_import_writes_what_it_reads_back(config_of: Any) -> None:
    """TOML and back gives an equal config."""
    config = config_of(SITE, tables={"node": [{"name": "n1", "cpus": 4}]})
    assert parse_toml(dump_toml(config), "again") == config


def test_nodes_are_asked_for(tmp_path: Path) -> None:
    """A moab.cfg does not say which nodes there are."""
    path = tmp_path / "moab.cfg"
    path.write_text(SITE)
    reader = Adapted(MoabReader())
    with pytest.raises(ConfigError, match="--nodes"):
        reader.read(path)
    imported = reader.read(path, {"node": [{"name": "n[1-4]", "cpus": 8}]})
    assert [table.name for table in imported.config.partition] == ["special", "batch", "DEFAULT"]
    with pytest.raises(
        ConfigError, match=r"--nodes node\[0\].gres.gpu: got 4096; allowed: 0 to 1024 on a node"
    ):
        reader.read(path, {"node": [{"name": "n[1-4]", "cpus": 8, "gres": {"gpu": 4096}}]})


def test_a_negative_depth_is_named(tmp_path: Path) -> None:
    """The default counts."""
    path = tmp_path / "moab.cfg"
    path.write_text(f"{SITE}RESERVATIONDEPTH -4\n")
    found = Adapted(MoabReader()).read(path, {"node": [{"name": "n[1-4]", "cpus": 8}]})
    text = "RESERVATIONDEPTH: got '-4'; allowed: a whole number, 0 or more; the default counts"
    assert [warning for warning in found.warnings if warning.endswith(text)]
    assert "reservation_depth" not in found.config.policy.settings["moab/qos"]


@pytest.mark.parametrize(
    ("name", "head", "ours"),
    [
        ("moab.cfg", "", True),
        ("maui.cfg", "", True),
        ("site.cfg", "QOSCFG[high] PRIORITY=1", True),
        ("slurm.conf", "ClusterName=x\nNodeName=n1", False),
        ("lsb.queues", "Begin Queue\nEnd Queue", False),
    ],
)
def test_claims(name: str, head: str, ours: bool) -> None:
    """By name, or by a parameter that no other has."""
    assert MoabReader().claims(name, head) is ours


# ------------------------------------------------------------------------------ jobs without a class
CLASSES = ("CLASSCFG[gold] QDEF=high&", "CLASSCFG[iron] QDEF=low&")


def default_class(read: Any, *lines: str) -> str:
    """Return the class of jobs that name none."""
    (found,) = [each["name"] for each in read("\n".join(lines)).tables["partition"] if each.get("default")]
    return str(found)


def test_jobs_without_a_class_are_in_none(read: Any) -> None:
    """Whatever the order of the lines: no class binds them, and the file says so."""
    assert default_class(read, *CLASSES) == default_class(read, *reversed(CLASSES)) == "DEFAULT"
    assert default_class(read, "QOSCFG[high] PRIORITY=1") == "batch"


def test_defaultclass_names_the_class_of_jobs_without_one(read: Any) -> None:
    """RMCFG DEFAULTCLASS, with or without a CLASSCFG line of its own."""
    assert default_class(read, *CLASSES, "RMCFG[base] TYPE=PBS DEFAULTCLASS=iron") == "iron"
    assert default_class(read, *CLASSES, "RMCFG[base] DEFAULTCLASS=plain") == "plain"


def test_what_stands_behind_an_at_belongs_to_the_type_alone(settings_of: Any) -> None:
    """RMCFG TYPE=PBS@host names a host; an URL keeps its own."""
    (rm,) = settings_of("RMCFG[base] TYPE=PBS@head JOBSUSPENDURL=exec://bin/stop@once\n")["rm"]
    assert (rm["type"], rm["suspend_url"]) == ("PBS", "exec://bin/stop@once")


def test_a_last_line_that_goes_on_is_read(settings_of: Any) -> None:
    """The file ends behind the backslash."""
    assert settings_of("PREEMPTPOLICY \\\n  SUSPEND \\")["preempt_policy"] == "SUSPEND"


@pytest.mark.parametrize("name", ["CONSUMEDWEIGHT", "REMAININGWEIGHT", "PERCENTWEIGHT"])
def test_weights_without_effect_in_maui(name: str, config_of: Any) -> None:
    """Each of the three is named if it is set, in Maui alone, and none is otherwise (section 17)."""

    def said(text: str, *, maui: bool) -> int:
        config = config_of(text, maui=maui)
        settings = structure(config.policy.settings["moab/qos"], Settings, "test")
        found = findings(build_cluster(config), settings)
        return sum("have no effect in Maui" in each.message for each in found)

    nodes = "NODECFG[n1] PROCS=4\n"
    assert said(f"{nodes}USAGEWEIGHT 1\n{name} 100\n", maui=True) == 1
    assert said(f"{nodes}USAGEWEIGHT 1\n{name} 100\n", maui=False) == 0
    assert said(f"{nodes}QUEUETIMEWEIGHT 1\n", maui=True) == 0
