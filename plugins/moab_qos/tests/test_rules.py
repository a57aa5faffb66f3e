"""Rules beside the numbered scenarios: context, throttles, weights, capabilities, checkpoint, check list."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from makeway.errors import Finding
from makeway.model import Cluster, JobState, Partition, PreemptMode
from makeway.worlds.events import Command
from makeway_moab_qos.actions import plans
from makeway_moab_qos.capabilities import TABLE, can
from makeway_moab_qos.check import findings
from makeway_moab_qos.closing import _reserved
from makeway_moab_qos.settings import ResourceManager
from makeway_testing import builders

PAIR = ("L(low,4p,q10)", "H(high,4p,q0)")


# ------------------------------------------------------------------------------------ context rules
def test_x1_a_job_becomes_a_preemptor_by_waiting(play: Any) -> None:
    """PREEMPTQTTHRESHOLD: after five minutes in the queue."""
    more = "QOSCFG[med] PREEMPTQTTHRESHOLD=00:05:00"
    assert play("L(low,4p)", "M(med,4p)", more, until=299.0).victims == []
    run = play("L(low,4p)", "M(med,4p)", more, until=301.0)
    assert run.victims == [("L", "requeue")]
    assert run.started("M") == 300.0


def test_x1_expansion_factor(play: Any) -> None:
    """(queue time + limit) / limit reaches 2 after the length of its limit."""
    run = play("L(low,4p)", "M(med,4p,limit=600,run=600)", "QOSCFG[med] PREEMPTXFTHRESHOLD=2", until=700.0)
    assert run.started("M") == 600.0


def test_x3_fairshare_violation(play: Any) -> None:
    """A job whose flags say so is preemptible under PREEMPTFSV."""
    more = "QOSCFG[med] PRIORITY=500 QFLAGS=PREEMPTFSV JOBFLAGS=RESTARTABLE"
    assert play("M(med,4p)", "H(high,4p)", more).victims == []
    assert play("M(med,4p,flags=FSVIOLATION)", "H(high,4p)", more).victims == [("M", "requeue")]


def test_x8_without_c3(play: Any) -> None:
    """IGNOREPREEMPTEEPRIORITY."""
    more = "QOSCFG[high] PRIORITY=1\nIGNOREPREEMPTEEPRIORITY TRUE"
    assert play(*PAIR, more).victims == [("L", "requeue")]


def test_x9_within_a_class(play: Any) -> None:
    """The one that breaks its target gives way to the one that does not."""
    more = "ENABLEFSVIOLATIONPREEMPTION TRUE\nQOSCFG[med] JOBFLAGS=RESTARTABLE"
    assert play("M(med,4p,flags=FSVIOLATION)", "H(high,4p)", more).victims == [("M", "requeue")]


def test_x11_restartpreempt(play: Any) -> None:
    """It may displace restartable jobs that rank lower; in Maui the flag does nothing (Q17)."""
    more = "QOSCFG[med] QFLAGS=RESTARTPREEMPT"
    assert play("L(low,4p)", "M(med,4p)", more).victims == [("L", "requeue")]
    assert play("L(low,4p)", "M(med,4p)", more, maui=True, until=120.0).victims == []


# --------------------------------------------------------------------------------------- throttles
def test_near_completion(play: Any) -> None:
    """Within ten minutes of its limit a job is safe."""
    run = play("L(low,4p,limit=4000,run=4000)", "H(high,4p)", "JOBPREEMPTCOMPLETIONTIME 00:10:00")
    assert run.victims == []
    assert run.code("H", "K13").verdict == "fail"


@pytest.mark.parametrize(
    ("job", "more", "goes"),
    [
        pytest.param("L(low,4p,ran=100)", "", False, id="global"),
        pytest.param("L(low,4p,ran=100)", "QOSCFG[low] PREEMPTMINTIME=60", True, id="QoS over global"),
        pytest.param("L(low,4p,ran=100,minimum=200)", "QOSCFG[low] PREEMPTMINTIME=60", False, id="job first"),
    ],
)
def test_whose_minimum_counts(play: Any, job: str, more: str, goes: bool) -> None:
    """Job, then QoS, then the global one (section 6)."""
    run = play(job, "H(high,4p)", f"JOBPREEMPTMINACTIVETIME 600\n{more}")
    assert bool(run.victims) is goes


def test_most_victims_per_pass(play: Any) -> None:
    """MAXJOBPREEMPTPERITERATION: two of three preemptors have to wait."""
    run = play("a(low,2p) b(low,2p)", "H(high,2p) I(high,2p)", "MAXJOBPREEMPTPERITERATION 1", until=0.5)
    assert len(run.victims) == 1


def test_search_depth_of_a_serial_preemptor(play: Any) -> None:
    """Only the first candidate is looked at, and that one does not suffice for memory."""
    running = "a(low,1p,prio=1,mem=10) b(low,3p,prio=9,mem=4000)"
    waiting = "H(high,1p,mem=4000)"
    assert play(running, waiting, nodes="n1=4//4096").displaced == {"a", "b"}
    assert play(running, waiting, "PREEMPTSEARCHDEPTH 1", nodes="n1=4//4096").victims == []


def test_search_depth_is_for_serial_preemptors_alone(play: Any) -> None:
    """Two candidates are needed for a job of two processors, whatever the depth."""
    running = "a(low,1p,prio=1) b(low,1p,prio=9)"
    assert play(running, "H(high,2p)", "PREEMPTSEARCHDEPTH 1", nodes="n1=2").displaced == {"a", "b"}


# ------------------------------------------------------------------------------------------ weights
@pytest.mark.parametrize(
    ("running", "more", "victim"),
    [
        pytest.param("a(low,1p,prio=900) b(low,3p,prio=30)", "", "b", id="priority per processor"),
        pytest.param(
            "a(low,1p,prio=900) b(low,3p,prio=30)", "PREEMPTPRIOJOBSELECTWEIGHT 0", "a", id="size only"
        ),
        pytest.param(
            "a(low,1p,prio=900) b(low,3p,prio=30)", "PREEMPTPRIOJOBSELECTWEIGHT 256", "b", id="priority"
        ),
        pytest.param("a(low,2p,limit=9000) b(low,2p,limit=36000)", "PREEMPTRTIMEWEIGHT 1", "b", id="longer"),
        pytest.param(
            "a(low,2p,limit=36000) b(low,2p,limit=9000)", "PREEMPTRTIMEWEIGHT -1", "b", id="shorter"
        ),
    ],
)
def test_either_weight_alone_orders_victims(play: Any, running: str, more: str, victim: str) -> None:
    """PREEMPTPRIOJOBSELECTWEIGHT 0 takes the smallest, PREEMPTRTIMEWEIGHT the one with most time left (4.4)."""
    assert play(running, "H(high,1p)", more).displaced == {victim}


# ---------------------------------------------------------------------------------------- checkpoint
LOADL = "PREEMPTPOLICY CHECKPOINT\nRMCFG[base] TYPE=LL CHECKPOINTSIG=SIGUSR1 CHECKPOINTTIMEOUT=60\n"


def test_checkpoint_keeps_the_work(play: Any) -> None:
    """LoadLeveler can: L goes on from where it was."""
    run = play("L(low,4p,q10,run=4000)", "H(high,4p,run=100)", LOADL, until=600.0)
    assert run.victims == [("L", "checkpoint")]
    assert run.moves("L") == ["0 requeue for H", "100 start", "500 complete"]
    assert run.table.history("L").job.lost == 0.0


def test_a_live_world_is_told_how_long_it_may_take(play: Any) -> None:
    """CHECKPOINTTIMEOUT goes with the plan."""
    run = play("L(low,4p,q10,run=4000)", "H(high,4p,run=100)", LOADL, until=50.0)
    (job,) = (each for each in run.table.run.engine.ledger.jobs.values() if each.id == "L")
    (plan,) = plans([job], [PreemptMode.CHECKPOINT], run.table.run.engine.ledger)
    assert plan.within == 60.0


def test_a_checkpoint_that_takes_too_long_ends_in_a_cancel(play: Any) -> None:
    """CHECKPOINTTIMEOUT, then cancel (U12)."""
    run = play("L(low,4p,q10)", "H(high,4p)", LOADL, clock={"checkpoint_time": 90.0}, until=100.0)
    assert run.victims == [("L", "cancel")]
    assert run.started("H") == 60.0
    assert run.state("L") is JobState.PREEMPTED


# -------------------------------------------------------------------------------------- capabilities
@pytest.mark.parametrize(
    ("kind", "method", "answer"),
    [
        ("TORQUE", "suspend", "yes"),
        ("PBS", "checkpoint", "IRIX only"),
        ("LL", "checkpoint", "yes"),
        ("LSF", "checkpoint", "depends on the operating system"),
        ("SGE", "requeue", "unknown"),
        ("", "checkpoint", "yes"),
        ("SLURM", "checkpoint", "no"),
        ("SLURM", "requeue", "yes"),
    ],
)
def test_the_guides_table(kind: str, method: str, answer: str) -> None:
    """Section 13."""
    assert can(ResourceManager(type=kind), method) == answer
    assert len(TABLE) == 6  # the guide's five, and Slurm


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("QOSCFG[a] QFLAGS=PREEMPTEE JOBFLAGS=RESTARTABLE", id="restartable"),
        pytest.param("QOSCFG[a] QFLAGS=PREEMPTEE\nCLASSCFG[c] JOBFLAGS=RESTARTABLE", id="by a class"),
        pytest.param("QOSCFG[a] QFLAGS=PREEMPTEE\nUSERCFG[DEFAULT] JOBFLAGS=RESTARTABLE", id="by users"),
        pytest.param("PREEMPTPOLICY CANCEL\nQOSCFG[a] QFLAGS=PREEMPTEE", id="as asked"),
        pytest.param(
            "PREEMPTPOLICY SUSPEND\nQOSCFG[a] QFLAGS=PREEMPTEE JOBFLAGS=SUSPENDABLE", id="suspended"
        ),
        pytest.param(
            "PREEMPTPOLICY SUSPEND\nRMCFG[b] TYPE=LL\nQOSCFG[a] QFLAGS=PREEMPTEE", id="checkpointed"
        ),
    ],
)
def test_who_is_spared_is_not_said_to_be_cancelled(config_of: Any, text: str) -> None:
    """5.2, 5.3: some rung before CANCEL can be used."""
    assert "is cancelled" not in found(config_of, text)


def test_native_needs_an_url() -> None:
    """5.3."""
    assert can(ResourceManager(type="NATIVE"), "suspend") == "only with JOBSUSPENDURL"
    assert can(ResourceManager(type="NATIVE", suspend_url="exec://x"), "suspend") == "yes"


def found(config_of: Any, text: str) -> str:
    """Return all findings about a moab.cfg, one line each."""
    from makeway.config import build_cluster
    from makeway.settings import structure
    from makeway_moab_qos.settings import Settings

    config = config_of(f"NODECFG[n1] PROCS=4\n{text}")
    table = structure(config.policy.settings["moab/qos"], Settings, "test")
    listed: list[Finding] = findings(build_cluster(config), table)
    return "\n".join(map(str, listed))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        pytest.param("PREEMPTPOLICY CHECKPOINT\nRMCFG[b] TYPE=TORQUE", "IRIX only", id="rm lacks it"),
        pytest.param("PREEMPTPOLICY CANCEL\nRMCFG[b] TYPE=SGE", "unknown", id="unknown cancel"),
        pytest.param("RMCFG[b] TYPE=NATIVE", "needs JOBSUSPENDURL", id="native"),
        pytest.param("RMCFG[b] TYPE=HAL9000", "not in the guide's table", id="another rm"),
        pytest.param("QOSCFG[a] PRIORITY=5", "QOSWEIGHT is not set", id="no weight"),
        pytest.param(
            "CLASSCFG[gold] QDEF=a&\nCLASSCFG[iron] PRIORITY=1\nQOSCFG[a] PRIORITY=1",
            "jobs that name no class are in none of gold, iron",
            id="no default class",
        ),
        pytest.param(
            "QOSCFG[a] QFLAGS=PREEMPTEE",
            "a preempted job of QoS a is cancelled: nothing makes it RESTARTABLE; add JOBFLAGS=RESTARTABLE",
            id="every victim is cancelled",
        ),
        pytest.param(
            "PREEMPTPOLICY SUSPEND\nQOSCFG[a] QFLAGS=PREEMPTEE",
            "nothing makes it SUSPENDABLE or RESTARTABLE; add JOBFLAGS=SUSPENDABLE to QOSCFG[a]",
            id="every victim is cancelled under SUSPEND",
        ),
        pytest.param(
            "QOSCFG[a] QFLAGS=PREEMPTEE JOBFLAGS=SUSPENDABLE",
            "nothing makes it RESTARTABLE",
            id="SUSPENDABLE is of no use under REQUEUE",
        ),
        pytest.param(
            "QOSCFG[a] QFLAGS=PREEMPTOR\nQOSCFG[b] QFLAGS=PREEMPTEE PRIORITY=5",
            "is not above",
            id="priorities",
        ),
        pytest.param("QOSCFG[a] QFLAGS=PREEMPTOR", "GUARANTEEDPREEMPTION is not TRUE", id="no guarantee"),
        pytest.param("QOSCFG[a] QFLAGS=PREEMPTOR", "none is PREEMPTEE", id="no preemptee"),
        pytest.param(
            "JOBPREEMPTMINACTIVETIME 60\nJOBPREEMPTMAXACTIVETIME 30", "no job is eligible", id="throttles"
        ),
        pytest.param("JOBNODEMATCHPOLICY EXACTNODE", "PREEMPTORCENTRIC", id="exact nodes"),
        pytest.param("PREEMPTRTIMEWEIGHT 1", "this is a guess", id="guess"),
        pytest.param("PREEMPTPRIOJOBSELECTWEIGHT 1", "this is a guess", id="guess of the other weight"),
    ],
)
def test_lints(config_of: Any, text: str, word: str) -> None:
    """What `makeway check` says of a moab.cfg."""
    assert word in found(config_of, text)


@pytest.mark.parametrize(
    ("word", "close"),
    [("requeue", "; did you mean 'REQUEUE'?"), ("Suspend", "; did you mean 'SUSPEND'?"), ("HALT", "")],
)
def test_a_method_that_is_not_known(word: str, close: str) -> None:
    """Methods are written in capitals (5.2); only what is one but for its case is guessed."""
    from makeway_moab_qos.settings import Settings

    said = [each.message for each in findings(Cluster(nodes=()), Settings(preempt_policy=word))]
    allowed = "SUSPEND, CHECKPOINT, REQUEUE, CANCEL"
    assert f"PREEMPTPOLICY {word!r} is not known; allowed: {allowed}{close}" in said


def test_a_sound_file_has_no_findings(config_of: Any) -> None:
    """The vendor's recipe."""
    text = """
    GUARANTEEDPREEMPTION TRUE
    NODEACCESSPOLICY SHARED
    PREEMPTPOLICY REQUEUE
    QOSWEIGHT 1
    QOSCFG[high] QFLAGS=PREEMPTOR PRIORITY=1000
    QOSCFG[low] QFLAGS=PREEMPTEE PRIORITY=1 JOBFLAGS=RESTARTABLE
    RMCFG[base] TYPE=TORQUE
    """
    assert found(config_of, text) == ""


# ---------------------------------------------------------------------------------------- check list
def test_the_check_list_is_whole(play: Any) -> None:
    """K01 to K22, in order, all of them, whatever fails first."""
    run = play("M(med,4p)", "H(high,4p)")
    codes = list(dict.fromkeys(check.code for check in run.checks["H"]))
    assert codes == [f"K{number:02}" for number in range(1, 23)]


def test_the_check_list_names_settings(play: Any) -> None:
    """The path of what decided it, so that the line of the file can be shown."""
    run = play(*PAIR, "QOSCFG[high] QFLAGS= PRIORITY=1000")
    assert run.code("H", "K01").setting == 'policy.settings."moab/qos".qos.high.flags'


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("JOBNODEMATCHPOLICY EXACTNODE", "K11"),
        ("NODESETPLUS SPANEVENLY", "K15"),
    ],
)
def test_parameters_that_switch_preemption_off(play: Any, line: str, code: str) -> None:
    """No job is preempted, and the check list says why."""
    run = play(*PAIR, line)
    assert run.victims == []
    assert run.code("H", code).verdict == "fail"


@pytest.mark.parametrize(
    ("more", "verdict"),
    [
        pytest.param("BACKFILLPOLICY FIRSTFIT", "pass", id="as the guide wants"),
        pytest.param("BACKFILLPOLICY PREEMPT", "pass", id="fails in Maui only"),
        pytest.param("BACKFILLPOLICY BESTFIT", "warning", id="another one"),
    ],
)
def test_what_k10_says(play: Any, more: str, verdict: str) -> None:
    """Of a preemptor that another condition keeps from preempting: L ranks higher."""
    run = play("L(low,4p,q10)", "H(high,4p)", f"QOSWEIGHT 0\n{more}")
    assert run.code("H", "K10").verdict == verdict


@pytest.mark.parametrize(
    ("more", "verdict"),
    [
        pytest.param("", "pass", id="neither"),
        pytest.param("JOBNODEMATCHPOLICY EXACTNODE", "fail", id="exact nodes"),
        pytest.param(
            "JOBNODEMATCHPOLICY EXACTNODE\nPREEMPTIONALGORITHM PREEMPTORCENTRIC",
            "pass",
            id="both: from 9.1 on",
        ),
        pytest.param("PREEMPTIONALGORITHM PREEMPTORCENTRIC", "pass", id="the algorithm alone"),
    ],
)
def test_what_k11_says(play: Any, more: str, verdict: str) -> None:
    """Of a preemptor that another condition keeps from preempting: L ranks higher."""
    run = play("L(low,4p,q10)", "H(high,4p)", f"QOSWEIGHT 0\n{more}")
    assert run.code("H", "K11").verdict == verdict


def test_preemptorcentric_allows_exact_nodes(play: Any) -> None:
    """From 9.1 on."""
    more = "JOBNODEMATCHPOLICY EXACTNODE\nPREEMPTIONALGORITHM PREEMPTORCENTRIC"
    assert play(*PAIR, more).victims == [("L", "requeue")]


def test_each_question_is_answered_whatever_else_fails(play: Any) -> None:
    """L ranks higher (K03), is too young (K13) and interactive (K14): all three are said."""
    more = "QOSWEIGHT 0\nJOBPREEMPTMINACTIVETIME 7200\n"
    run = play("L(low,4p,q10,flags=INTERACTIVE)", "H(high,4p)", more)
    assert [run.code("H", code).verdict for code in ("K03", "K13", "K14")] == ["fail", "fail", "fail"]
    assert "L: active for 3600 s, least 7200 s; eligible in 3600 s" in run.code("H", "K13").found


@pytest.mark.parametrize(
    ("more", "code", "key"),
    [
        ("JOBPREEMPTMINACTIVETIME 7200", "K13", "min_active_time"),
        ("JOBPREEMPTMAXACTIVETIME 60", "K13", "max_active_time"),
        ("JOBPREEMPTCOMPLETIONTIME 99:00:00", "K13", "completion_time"),
        ("QOSCFG[low] PREEMPTMINTIME=7200", "K13", "qos.low.preempt_min_time"),
        ("USERCFG[u_H] QLIST=high QDEF=high", "K18", "user.u_H.qlist"),
        ("SYSCFG QLIST=high,low,med", "K18", "system.qlist"),
        ("", "K02", "qos.low.flags"),
        ("", "K03", "qos.high.priority"),
        ("QOSWEIGHT 0", "K03", "weights.queue_time"),
    ],
)
def test_the_setting_that_decided_is_named(play: Any, more: str, code: str, key: str) -> None:
    """So that its line in the file can be shown; M is in the way of a start."""
    run = play("L(low,2p) M(med,2p)", "H(high,4p)", more)
    assert run.code("H", code).setting == f'policy.settings."moab/qos".{key}'


# --------------------------------------------------------------------- why a search takes no job
def told(play: Any, running: str, waiting: str, more: str = "", **words: Any) -> str:
    """Return what is noted of the last attempt of H."""
    return str(play(running, waiting, more, traced="H", **words).decisions[-1].detail)


def test_a_cap_is_named_where_a_search_takes_no_job(play: Any) -> None:
    """33 victims would do, and 32 are allowed (4.1 step 10); nothing is said of room."""
    running = " ".join(f"L{at}(low,1p)" for at in range(33))
    why = told(play, running, "H(high,33p)", nodes="n1=33")
    assert why.endswith("K05 it would take 33 victims, and 32 are allowed")
    why = told(play, running, "H(high,3p)", "MAXJOBPREEMPTPERITERATION 2", nodes="n1=33")
    assert why.endswith("K05 it would take 3 victims, and MAXJOBPREEMPTPERITERATION is 2")


def test_a_node_that_is_being_left_is_named(play: Any) -> None:
    """B would make room, but A is leaving the node and closes it for so long."""
    slow = {"completing_time": 200.0}
    running, waiting = "A(low,2p) B(low,2p)", "H(high,2p) K(high,1p,at=5)"
    why = told(play, running, waiting, "NOWAITPREEMPTION TRUE", clock=slow, until=10.0)
    assert why.endswith("removing all candidates would not make room while job A is leaving n1")


# ------------------------------------------------------------------- both sides of a condition
def test_x9_within_a_class_by_a_soft_limit(play: Any) -> None:
    """With ENABLESPVIOLATIONPREEMPTION, M beyond a soft limit gives way to H, unless H is beyond one, too."""
    more = "ENABLESPVIOLATIONPREEMPTION TRUE\nQOSCFG[med] JOBFLAGS=RESTARTABLE\n"
    jobs = ("M(med,4p,flags=SPVIOLATION)", "H(high,4p)")
    assert play(*jobs, more).victims == [("M", "requeue")]
    assert play(*jobs, more + "USERCFG[u_H] MAXPROC=2,8").victims == []


@pytest.mark.parametrize(
    ("running", "said"),
    [
        pytest.param("L(low,4p,minimum=7200)", False, id="a preemptee that may not go yet"),
        pytest.param("M(med,4p)", True, id="no preemptee"),
    ],
)
def test_k02_is_said_only_where_there_is_no_preemptee(play: Any, running: str, said: bool) -> None:
    """K02 asks whether any job on a feasible node is marked PREEMPTEE (12.1)."""
    run = play(running, "H(high,4p)", traced="H")
    assert run.victims == []
    assert run.decisions
    assert ["K02" in each.detail for each in run.decisions] == [said] * len(run.decisions)


def test_a_search_depth_spares_no_victim_that_a_wide_job_needs(play: Any) -> None:
    """PREEMPTSEARCHDEPTH is about jobs of one processor: two jobs of one processor each leave for two."""
    jobs = ("A(low,1p) B(low,1p)", "H(high,2p)")
    assert play(*jobs, "PREEMPTSEARCHDEPTH 1", nodes="n1=2").displaced == {"A", "B"}


def test_a_job_that_is_put_back_keeps_its_node(play: Any) -> None:
    """With `minimise`, `a` on n1 is put back, so that H takes all of n2 and nothing of n1."""
    running = "a(low,2p,node=n1,prio=10) x(med,2p,node=n1,prio=500) b(low,4p,node=n2,prio=60)"
    run = play(running, "H(high,4p)", nodes="n1=4 n2=4", settings={"minimise": True}, traced="H")
    assert run.displaced == {"b"}
    assert run.decisions[0].placement == "n2"
    assert run.started("H") == 0
    assert run.state("a") is JobState.RUNNING


@pytest.mark.parametrize(
    ("lines", "because"),
    [
        pytest.param(
            "USERCFG[DEFAULT] QDEF=high\nUSERCFG[u_H] QLIST=high",
            "QDEF of user DEFAULT",
            id="the user's list has no default: that of DEFAULT",
        ),
        pytest.param(
            "CLASSCFG[c] QDEF=high QLIST=high", "QDEF of class c", id="a class is called by Moab's word"
        ),
    ],
)
def test_which_default_gave_the_qos(play: Any, lines: str, because: str) -> None:
    """Step 4 of the rules of access (3.3): own default first, then the one of DEFAULT; K18 names it."""
    job = "H(-,4p,class=c)" if "CLASSCFG" in lines else "H(-,4p)"
    run = play("B(med,4p,class=c)" if "CLASSCFG" in lines else "B(med,4p)", job, lines)
    text = run.code("H", "K18").found
    assert f"got high: {because}" in text


@pytest.mark.parametrize(
    ("lines", "who"),
    [
        pytest.param("USERCFG[u_H] JOBFLAGS=PREEMPTOR", "user u_H", id="own"),
        pytest.param("USERCFG[DEFAULT] JOBFLAGS=PREEMPTOR", "user DEFAULT", id="of DEFAULT"),
    ],
)
def test_k01_names_who_gave_the_flag(play: Any, lines: str, who: str) -> None:
    """The credential as the file writes it."""
    run = play("L(low,2p) M(med,2p)", "H(med,4p)", lines)
    assert f"({who})" in run.code("H", "K01").found


def test_k04_lists_preemptees_elsewhere_alone(play: Any) -> None:
    """L sits where H may run; M elsewhere is no preemptee; E elsewhere is one."""
    running = "L(low,1p,node=n1) N(med,3p,node=n1) M(med,2p,node=n2) E(low,2p,node=n2)"
    run = play(running, "H(high,4p,features=a)", nodes="n1=4/a n2=4")
    text = run.code("H", "K04").found
    assert text.endswith("preemptees elsewhere: E")


def test_maui_knows_no_check_of_suspended_jobs(play: Any) -> None:
    """CHECKSUSPENDEDJOBPRIORITY is Moab's alone (7.4): Maui starts M on the node of a suspended job."""
    more = "USERCFG[u_L] PRIORITY=5000\nUSERWEIGHT 1"
    commands = [(0.0, Command("suspend", "L"))]
    jobs = ("L(med,2p,flags=SUSPENDABLE)", "M(med,1p,at=5)")
    moab = play(*jobs, more, commands=commands, until=50.0)
    maui = play(*jobs, more, commands=commands, until=50.0, maui=True, checked=False)
    assert moab.started("M") is None
    assert maui.started("M") is not None


@pytest.mark.parametrize(
    ("limit", "closed"),
    [
        pytest.param(50.0, 0, id="over when the other can start"),
        pytest.param(51.0, 0b011, id="a second too long"),
        pytest.param(None, 0b011, id="without a limit"),
    ],
)
def test_nodes_kept_for_one_that_waits(limit: float | None, closed: int) -> None:
    """7.2: n1 is idle, n2 comes free at 50 and n3 at 90; a job that wants two nodes gets n1 and n2 at 50."""
    partition = Partition(name="batch", nodes=0b111)
    running = [builders.job("1", nodes=[1]), builders.job("2", nodes=[2])]
    view = SimpleNamespace(
        up=0b111, idle=0b001, releases=lambda: [(50.0, 1, running[0]), (90.0, 2, running[1])]
    )
    other = builders.job("3", partition=partition, size=2)
    behind = builders.job("4", partition=partition, time_limit=limit)
    assert _reserved(other, behind, cast(Any, view), 0.0) == closed


def test_who_still_runs_when_a_promise_is_due_counts(play: Any) -> None:
    """7.2: W gets what is free and what `b` gives back at 100, while `a` runs on: nothing is left for N."""
    run = play("a(med,2p) b(med,4p,length=3700)", "W(med,6p,q10) N(med,1p)", nodes="n1=8", until=150.0)
    assert run.started("W") == 100.0
    assert run.started("N") is None


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        pytest.param("", "L: requeue -> cancel: not RESTARTABLE", id="it lacks what the method needs"),
        pytest.param(" JOBFLAGS=RESTARTABLE", "all can make way by requeue, as asked", id="as asked"),
    ],
)
def test_k08_says_why_it_is_another_method(play: Any, flags: str, found: str) -> None:
    """PREEMPTPOLICY REQUEUE: what is not RESTARTABLE is cancelled (5.3); H waits for M as well."""
    more = f"QOSCFG[weak] QFLAGS=PREEMPTEE PRIORITY=100{flags}"
    run = play("L(weak,4p) M(med,4p)", "H(high,8p)", more, nodes="n1=4 n2=4")
    assert run.code("H", "K08").found == found
