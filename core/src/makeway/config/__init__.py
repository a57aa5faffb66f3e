"""Hold a configuration as it is written, and build the cluster that it describes.

The classes here mirror the TOML file table by table; `makeway.settings` structures them strictly. Readers of
foreign files produce the same classes, so that ``makeway import`` is a matter of writing them out.
"""

from __future__ import annotations

from makeway.config.building import build_clockwork, build_cluster, short_name
from makeway.config.checking import validate
from makeway.config.tables import (
    PRIORITIES,
    SELECT_WORDS,
    USE_SOURCES,
    ClusterTable,
    Config,
    FailureTable,
    JournalTable,
    MappingRule,
    McsTable,
    NodeTable,
    OutageTable,
    PartitionTable,
    PolicyTable,
    QosTable,
    SchedulerTable,
    StayOnTable,
    WorkloadTable,
    WorldTable,
)
from makeway.config.text import dump_toml, parse_toml, without_none
from makeway.config.words import parse_mode, parse_select_parameters

__all__ = [
    "PRIORITIES",
    "SELECT_WORDS",
    "USE_SOURCES",
    "ClusterTable",
    "Config",
    "FailureTable",
    "JournalTable",
    "MappingRule",
    "McsTable",
    "NodeTable",
    "OutageTable",
    "PartitionTable",
    "PolicyTable",
    "QosTable",
    "SchedulerTable",
    "StayOnTable",
    "WorkloadTable",
    "WorldTable",
    "build_clockwork",
    "build_cluster",
    "dump_toml",
    "parse_mode",
    "parse_select_parameters",
    "parse_toml",
    "short_name",
    "validate",
    "without_none",
]
