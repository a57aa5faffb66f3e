"""Turn the options of one ``sbatch`` call into the request that Slurm makes of them.

slurm-gang-and-select 4.1.1. argparse reads the words: long options, unique beginnings of
them, and short ones with the value attached. Options that do not matter to a scheduler
(``--output``) are accepted and dropped; those that do but are not modelled (``--prefer``) are
refused by name.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from makeway.arrays import parse_array, tasks_of
from makeway.errors import nearest
from makeway.hostlist import expand_hostlist
from makeway.model import Exclusive, JobSpec
from makeway_slurm.readers.sbatch_gpus import RefusedError, gpu_fields
from makeway_slurm.readers.sbatch_values import (
    read_begin,
    read_dependency,
    read_exclusive,
    read_gpus,
    read_layout,
    read_licenses,
    read_limit,
    read_names,
    read_node_file,
    read_nodes,
    read_signal,
    read_sockets,
    read_switches,
)
from makeway_slurm.readers.values import parse_gres, parse_mem_mb

Options = dict[str, Any]

UNMODELLED = (
    "bb", "bbf", "cluster-constraint", "clusters", "core-spec", "cpus-per-gpu",
    "deadline", "delay-boot", "gres-flags", "hint",
    "mem-per-gpu", "network", "ntasks-per-gpu", "overcommit", "power", "prefer", "reboot",
    "segment", "thread-spec", "time-min", "tmp", "tres-per-task", "use-min-nodes",
)  # fmt: skip
"""Long options that change what a scheduler does, and that we do not follow."""

_UNMODELLED_SHORT = {"-M": "--clusters", "-O": "--overcommit", "-S": "--core-spec"}
_IGNORED_WITH_VALUE = (
    "acctg-freq", "comment", "cpu-freq", "export", "export-file", "mail-type", "mail-user",
    "mem-bind", "open-mode", "profile", "wckey",
)  # fmt: skip
_IGNORED_FLAGS = ("get-user-env", "ignore-pbs", "parsable")
_BARE = {"--exclusive": "--exclusive=node", "--nice": "--nice=100"}
"""What an option with an optional value means without one; argparse would take the next word."""

_INHERITED = frozenset(
    """account begin depends_on distribution excluded_nodes hold mcs_label memory_mb_per_node name nice priority
    qos requeue reservation signal time_limit""".split()
)
"""Options of one component of a heterogeneous job that hold for the others, as the page heterogeneous_jobs.html lists
them; and ``--mem``, as sbatch 22.05.8 does (recording het_options_of_others)."""


def parse_sbatch(args: Sequence[str], **base: Any) -> list[JobSpec]:
    """Return one JobSpec for each component, or each task of an array, that `args` describe.

    ``:`` stands between components. Those of a heterogeneous job get the ids ``ID+0``, ``ID+1``, the tasks of an
    array ``ID_0``, ``ID_1``. What follows the options is the
    command. ``--time=UNLIMITED`` and 0 leave the limit to the partition. ``afterok`` is read as
    ``afterany``.

    :param base: fields of JobSpec that the options do not say; at least `id`.
    :raises RefusedError: sbatch itself would not submit the job.
    :raises ValueError: an option is unknown, not modelled, or has a wrong value.
    """
    components = _inheriting([_read_options(words) for words in _components(args)])
    job_id = str(base["id"])
    if any("array" in options for options in components[1:]) or (
        len(components) > 1 and "array" in components[0]
    ):
        raise ValueError("--array: a heterogeneous job cannot be an array")
    if len(components) == 1:
        spec = JobSpec(**{**base, **_fields(components[0], base)})
        return tasks_of(spec, components[0]["array"]) if "array" in components[0] else [spec]
    return [
        JobSpec(
            **{
                **base,
                **_fields(options, base),
                "id": f"{job_id}+{offset}",
                "het_id": job_id,
                "het_offset": offset,
            }
        )
        for offset, options in enumerate(components)
    ]


def _inheriting(components: list[Options]) -> list[Options]:
    """Give each component of a heterogeneous job what the others say and it does not.

    sbatch reads all components twice, and begins the second time with what the last one left: a component has the
    options of those before it, and the first one those of the last.
    """
    inherited: Options = {}
    if len(components) > 1:
        for own in components:
            inherited = _passed_on(inherited | own)
    found: list[Options] = []
    for own in components:
        if found and "memory_mb_per_cpu" in own and "memory_mb_per_node" in inherited:
            raise RefusedError("--mem-per-cpu: sbatch refuses it where --mem of another component holds, too")
        whole = inherited | own
        if "memory_mb_per_cpu" in own:
            whole.pop("memory_mb_per_node", None)
        found.append(whole)
        inherited = _passed_on(inherited | own)
    return [_apart(whole, found) for whole in found]


def _apart(component: Options, components: Sequence[Options]) -> Options:
    """Exclude the nodes that other components require: slurmctld does so when the job is submitted."""
    mine = component.get("required_nodes", ())
    taken = {
        name for other in components if other is not component for name in other.get("required_nodes", ())
    }
    excluded = (*component.get("excluded_nodes", ()), *sorted(taken - set(mine)))
    return component | {"excluded_nodes": tuple(dict.fromkeys(excluded))} if taken else component


def _passed_on(options: Options) -> Options:
    return {key: value for key, value in options.items() if key in _INHERITED}


def _components(args: Sequence[str]) -> list[list[str]]:
    """Split the words at ``:``."""
    parts: list[list[str]] = [[]]
    for word in args:
        if word == ":":
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


# ------------------------------------------------------------------------------- reading words
class _Parser(argparse.ArgumentParser):
    """An argparse parser that raises instead of leaving the program."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(message.removeprefix("argument "))


def _read_options(words: Sequence[str]) -> Options:
    """Return what was given, by the names of `_parser`."""
    filled = [_BARE.get(word, word) for word in words]
    found, unknown = _PARSER.parse_known_args(filled)
    for word in unknown:
        raise ValueError(_unknown_option(word))
    options = {key: value for key, value in vars(found).items() if key != "ignored"}
    options["command"] = tuple(words[len(words) - len(found.command) :])
    return options


def _unknown_option(word: str) -> str:
    """Say what is wrong with a word that no option takes."""
    name = word.partition("=")[0]
    long = _UNMODELLED_SHORT.get(word[:2], name) if not word.startswith("--") else name
    if long.removeprefix("--") in UNMODELLED:
        return f"{long} is not modelled"
    known = [text for action in _PARSER._actions for text in action.option_strings]
    known += [f"--{each}" for each in UNMODELLED]
    return f"unknown option {name!r}{nearest(name, known)}"


def _typed(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Let argparse show the message of a ValueError."""

    def convert(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return convert


def _at_least(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text[:18]) < least:
            raise ValueError(f"got {text!r}; expected a whole number, {least} or more")
        return int(text)

    return read


def _whole(text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,10}", text):
        raise ValueError(f"got {text!r}; expected a whole number")
    return int(text)


def _make_parser() -> _Parser:
    parser = _Parser(prog="sbatch", add_help=False, argument_default=argparse.SUPPRESS)
    _add_shape(parser)
    _add_resources(parser)
    _add_policy(parser)
    _add_ignored(parser)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    return parser


def _add_shape(parser: _Parser) -> None:
    """How many nodes, tasks and CPUs, and how they are laid out."""
    count = _typed(_at_least(1))
    parser.add_argument("-N", "--nodes", type=_typed(read_nodes))
    parser.add_argument("-n", "--ntasks", dest="tasks", type=count)
    parser.add_argument("-c", "--cpus-per-task", dest="cpus_per_task", type=count)
    parser.add_argument("--mincpus", dest="min_cpus_per_node", type=count)
    for name in ("node", "socket", "core"):
        parser.add_argument(f"--ntasks-per-{name}", dest=f"tasks_per_{name}", type=count)
    parser.add_argument("-B", "--extra-node-info", type=_typed(read_sockets))
    parser.add_argument("--sockets-per-node", dest="sockets_per_node", type=count)
    parser.add_argument("--cores-per-socket", dest="cores_per_socket", type=count)
    parser.add_argument("--threads-per-core", dest="threads_per_core", type=count)
    parser.add_argument("-m", "--distribution", type=_typed(read_layout))
    parser.add_argument("--contiguous", action="store_true")
    parser.add_argument("--spread-job", dest="spread", action="store_true")
    wish = ("-s", "--oversubscribe", "--share")
    parser.add_argument(*wish, dest="share", action="store_const", const="share")
    parser.add_argument("--exclusive", dest="share", type=_typed(read_exclusive))


def _add_resources(parser: _Parser) -> None:
    """Which nodes, and what of them."""
    hosts = _typed(lambda text: tuple(expand_hostlist(text)))
    parser.add_argument("-w", "--nodelist", dest="required_nodes", type=hosts)
    parser.add_argument("-F", "--nodefile", dest="required_nodes", type=_typed(read_node_file))
    parser.add_argument("-x", "--exclude", dest="excluded_nodes", type=hosts)
    parser.add_argument("-C", "--constraint", dest="features")
    memory = parser.add_mutually_exclusive_group()
    memory.add_argument("--mem", dest="memory_mb_per_node", type=_typed(parse_mem_mb))
    memory.add_argument("--mem-per-cpu", dest="memory_mb_per_cpu", type=_typed(parse_mem_mb))
    parser.add_argument("--gres", type=_typed(parse_gres))
    parser.add_argument("-G", "--gpus", dest="gres_total", type=_typed(read_gpus))
    for name in ("node", "task", "socket"):
        parser.add_argument(f"--gpus-per-{name}", type=_typed(read_gpus))
    parser.add_argument("-L", "--licenses", type=_typed(read_licenses))


def _add_policy(parser: _Parser) -> None:
    """Who, where, when and how important."""
    parser.add_argument("-p", "--partition", dest="partitions", type=_typed(read_names))
    for short, long in (("-q", "qos"), ("-A", "account")):
        parser.add_argument(short, f"--{long}")
    parser.add_argument("-J", "--job-name", dest="name")
    parser.add_argument("-a", "--array", type=_typed(parse_array))
    parser.add_argument("-t", "--time", dest="time_limit", type=_typed(read_limit))
    parser.add_argument("--nice", type=_typed(_whole))
    parser.add_argument("--priority", type=_typed(_at_least(0)))
    parser.add_argument("-H", "--hold", action="store_true")
    parser.add_argument("--requeue", dest="requeue", action="store_true")
    parser.add_argument("--no-requeue", dest="requeue", action="store_false")
    parser.add_argument("-b", "--begin", type=_typed(read_begin))
    parser.add_argument("--signal", type=_typed(read_signal))
    parser.add_argument("--mcs-label", dest="mcs_label")
    parser.add_argument("--reservation")
    parser.add_argument("--switches", type=_typed(read_switches))
    parser.add_argument("-d", "--dependency", dest="depends_on", type=_typed(read_dependency))


def _add_ignored(parser: _Parser) -> None:
    """Options that do not matter to a scheduler."""
    for short, long in (("-o", "output"), ("-e", "error"), ("-i", "input"), ("-D", "chdir")):
        parser.add_argument(short, f"--{long}", dest="ignored")
    for long in _IGNORED_WITH_VALUE:
        parser.add_argument(f"--{long}", dest="ignored")
    for short, long in (("-Q", "quiet"), ("-v", "verbose"), ("-W", "wait")):
        parser.add_argument(short, f"--{long}", dest="ignored", action="store_true")
    for long in _IGNORED_FLAGS:
        parser.add_argument(f"--{long}", dest="ignored", action="store_true")


# ------------------------------------------------------------------------------- the request
_PLAIN = frozenset(
    """account command contiguous cpus_per_task depends_on distribution excluded_nodes features
    gres_total mcs_label memory_mb_per_cpu memory_mb_per_node min_cpus_per_node name nice partitions
    priority qos required_nodes requeue reservation signal spread tasks_per_core tasks_per_node
    tasks_per_socket time_limit""".split()
)
"""Options whose value is the field of that name."""


def _fields(options: Options, base: Mapping[str, Any]) -> Options:
    """Return the fields of JobSpec that the options set."""
    fields = {key: value for key, value in options.items() if key in _PLAIN}
    if not fields["command"]:
        del fields["command"]
    fields |= _counts(options) | _node_shape(options) | _sharing(options.get("share"))
    if "licenses" in options:
        fields["licenses"], fields["licenses_any"] = options["licenses"]
    fields |= gpu_fields(options, fields)
    if "begin" in options:
        fields["begin_at"] = base.get("submit_at", 0.0) + options["begin"]
    if "switches" in options:
        fields["attributes"] = {**base.get("attributes", {}), **options["switches"]}
    if options.get("hold"):
        fields["priority"] = 0
    return fields


def _counts(options: Options) -> Options:
    """Derive nodes and tasks from one another, as the table in 4.1.1 says.

    More nodes than tasks are not asked for: ``sbatch`` says so and takes as many nodes as there are tasks.
    """
    fields: Options = {}
    tasks, per_node = options.get("tasks"), options.get("tasks_per_node")
    if "nodes" in options:
        fields["min_nodes"], fields["max_nodes"] = [min(each, tasks or each) for each in options["nodes"]]
        if tasks is None and per_node is not None and len(set(options["nodes"])) == 1:
            tasks = fields["min_nodes"] * per_node
    elif tasks is not None and per_node is not None:
        fields["min_nodes"] = -(-tasks // per_node)
    if tasks is not None:
        fields["tasks"] = tasks
    return fields


def _node_shape(options: Options) -> Options:
    """Return what a node must look like; single options win over ``-B``."""
    names = ("sockets_per_node", "cores_per_socket", "threads_per_core")
    fields = dict(zip(names, options.get("extra_node_info", ()), strict=False))
    return fields | {name: options[name] for name in names if name in options}


def _sharing(share: Exclusive | str | None) -> Options:
    """Return the wish of ``-s`` or ``--exclusive``, whichever came last."""
    if share is None:
        return {}
    if isinstance(share, Exclusive):
        return {"exclusive": share}
    return {"oversubscribe": True}


_PARSER = _make_parser()
