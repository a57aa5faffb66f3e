"""The plugin keeps the contracts of preempt policies, selectors and readers of configurations."""

from __future__ import annotations

import attrs
from hypothesis import strategies as st

from makeway.config import Config, validate
from makeway.model import JobSpec
from makeway.settings import structure
from makeway_moab_qos.reader import translate
from makeway_testing.contracts import ConfigReaderContract, PreemptPolicyContract, SelectContract
from makeway_testing.strategies import Scenario

QOS = ("high", "med", "low", "mid", "soft")
LINES = """\
QOSWEIGHT 1
QUEUETIMEWEIGHT 1
QOSCFG[high] QFLAGS=PREEMPTOR PRIORITY=1000
QOSCFG[med] PRIORITY=500
QOSCFG[mid] QFLAGS=PREEMPTOR,PREEMPTEE PRIORITY=300 JOBFLAGS=RESTARTABLE
QOSCFG[low] QFLAGS=PREEMPTEE PRIORITY=100 JOBFLAGS=RESTARTABLE
QOSCFG[soft] QFLAGS=PREEMPTEE PRIORITY=50 JOBFLAGS=SUSPENDABLE
"""
CHOICES = (
    "PREEMPTPOLICY SUSPEND",
    "PREEMPTPOLICY CANCEL",
    "RESERVATIONPOLICY NEVER",
    "RESERVATIONPOLICY HIGHEST",
    "BACKFILLPOLICY NONE",
    "JOBPREEMPTMINACTIVETIME 20",
    "NODEALLOCATIONPOLICY FIRSTAVAILABLE",
    "FSPOLICY DEDICATEDPS\nFSINTERVAL 00:00:20\nFSDEPTH 3\nFSDECAY 0.5\nFSUSERWEIGHT 10\n"
    "USERCFG[DEFAULT] FSTARGET=50",
)


@attrs.frozen
class Text:
    """A moab.cfg that is no file."""

    text: str
    name: str = "moab.cfg"

    def beside(self, name: str) -> Text:
        """There are no others."""
        raise AssertionError(name)


@st.composite
def sites(draw: st.DrawFn) -> Scenario:
    """Draw one to three nodes, some policies, and up to eight jobs of several QOS."""
    nodes = [
        f"NODECFG[n{at}] PROCS={draw(st.integers(2, 8))} MEMORY=4000" for at in range(draw(st.integers(1, 3)))
    ]
    more = draw(st.lists(st.sampled_from(CHOICES), unique=True, max_size=3))
    tables = dict(translate(Text("\n".join([LINES, *nodes, *more])), maui=False).tables)
    tables["scheduler"] = {**tables["scheduler"], "clockwork": {"requeue_delay": 1.0}}
    config = structure(tables, Config, "moab.cfg")
    validate(config, "moab.cfg")
    instants = sorted(draw(st.lists(st.integers(0, 60), min_size=1, max_size=8)))
    specs = [
        JobSpec(
            id=f"j{number}",
            user=draw(st.sampled_from(("ann", "bob"))),
            qos=draw(st.sampled_from(QOS)),
            submit_at=float(at),
            run_time=float(draw(st.integers(1, 100))),
            tasks=draw(st.integers(1, 6)),
        )
        for number, at in enumerate(instants, 1)
    ]
    return Scenario(settings=config, specs=tuple(specs), until=20_000.0)


class TestContract(PreemptPolicyContract):
    """QOS that preempt one another, from a moab.cfg."""

    __test__ = True
    plugin = "moab/qos"

    def scenarios(self) -> st.SearchStrategy[Scenario]:
        """Draw small sites."""
        return sites()


class TestTasks(SelectContract):
    """The selector of tasks, under the same policies."""

    __test__ = True
    plugin = "moab/tasks"

    def scenarios(self) -> st.SearchStrategy[Scenario]:
        """Draw small sites."""
        return sites()


class TestReader(ConfigReaderContract):
    """A site's ``moab.cfg``."""

    __test__ = True
    plugin = "reader/moab"
    file_name = "moab.cfg"
    sample = LINES + "NODECFG[n1] PROCS=4 MEMORY=4000\n"
    strange = "NOSUCHPARAMETER"
    strange_lines = "NOSUCHPARAMETER 3"
