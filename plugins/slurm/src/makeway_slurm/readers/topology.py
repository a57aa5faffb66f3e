"""Turn what a slurm.conf and the files beside it say about switches into ``topology/tree``.

A topology.yaml counts before TopologyPlugin and topology.conf; partitions may go by topologies of their own there.

Section numbers are those of slurm-priority-and-limits.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from makeway.errors import nearest
from makeway_slurm.readers.conf_parts import Record, Setting, SlurmConf
from makeway_slurm.readers.draft import Draft
from makeway_slurm.readers.grammar import read_conf
from makeway_slurm.readers.scheduler import scheduler_options
from makeway_slurm.readers.topologies import FILE as YAML
from makeway_slurm.readers.topologies import Topology

NAME = "topology/tree"
FILE = "topology.conf"
_NONE = ("topology/none", "topology/default", "topology/flat")
_KEYS = {"nodes": "Nodes", "switches": "Switches"}


def wants_file(conf: SlurmConf) -> bool:
    """Whether switches decide and the file itself has none."""
    setting = conf.parameters().get("topologyplugin")
    return setting is not None and setting.value.lower() == NAME and not conf.records("SwitchName")


def read_beside(path: Path) -> Sequence[Setting | Record]:
    """Return the lines of the topology.conf beside a slurm.conf; none if there is no such file.

    :raises ConfigError: it cannot be read.
    """
    beside = path.with_name(FILE)
    if not beside.is_file():
        return ()
    return read_conf(beside).entries


def in_force(draft: Draft) -> bool:
    """Whether switches decide where jobs run."""
    if draft.topologies:
        return any(each.switches for each in _in_use(draft))
    setting = draft.get("TopologyPlugin")
    return setting is not None and setting.value.lower() == NAME and bool(draft.conf.records("SwitchName"))


def read_topology(draft: Draft) -> list[dict[str, str]]:
    """Return the tables of ``cluster.attributes.topology``, and say what is not modelled."""
    if draft.topologies:
        return list(_of_yaml(draft))
    setting = draft.get("TopologyPlugin")
    records = draft.conf.records("SwitchName")
    if setting is None:
        return []
    kind = setting.value.lower()
    if kind in _NONE:
        return []
    if kind != NAME:
        draft.leave_out(f"TopologyPlugin={setting.value}", setting)
        return []
    if not records:
        draft.warn(
            setting, f"switches decide where jobs run, but there is no {FILE} beside it; left out here"
        )
    return [
        {
            "SwitchName": record.name,
            **{_KEYS[each.canonical]: each.value for each in record.settings if each.canonical in _KEYS},
        }
        for record in records
    ]


def _in_use(draft: Draft) -> list[Topology]:
    """Return the topologies of topology.yaml that some partition goes by."""
    named = {setting.value for setting in _named(draft)}
    return [each for each in draft.topologies if each.default or each.name in named]


def _named(draft: Draft) -> list[Setting]:
    found = (record.get("Topology") for record in draft.conf.records("PartitionName"))
    return [setting for setting in found if setting is not None]


def _of_yaml(draft: Draft) -> Iterator[dict[str, str]]:
    """Yield the switches of the trees in use, those that are not the default's with the name of their topology."""
    known = [each.name for each in draft.topologies]
    for setting in _named(draft):
        if setting.value not in known:
            hint = nearest(setting.value, known)
            draft.problems.append(setting.problem(f"{YAML} has no topology {setting.value!r}{hint}"))
    for each in _in_use(draft):
        if each.kind not in ("tree", "flat"):
            draft.leave_out(f"{YAML} {each.kind}", each.at)
        whose = {} if each.default else {"Topology": each.name}
        yield from ({**switch, **whose} for switch in each.switches)


def read_settings(draft: Draft) -> dict[str, Any]:
    """Return the settings that the file states."""
    found: dict[str, Any] = {}
    longest = scheduler_options(draft).get("max_switch_wait")
    if longest is not None:
        found["max_switch_wait"] = float(longest)
    param = draft.get("TopologyParam")
    for word in _words(param):
        if word.lower() == "topooptional":
            found["optional"] = True
        elif param is not None:
            draft.leave_out(f"TopologyParam={word}", param, relevant=word.lower() == "dragonfly")
    return found


def _words(setting: Setting | None) -> list[str]:
    text = setting.value if setting is not None else ""
    return [word.strip() for word in text.split(",") if word.strip()]
