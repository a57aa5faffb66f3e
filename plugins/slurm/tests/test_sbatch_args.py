"""Options of sbatch: what Slurm makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from makeway.model import Exclusive, JobSpec, UserSignal
from makeway_slurm.readers.sbatch_args import UNMODELLED, parse_sbatch
from makeway_slurm.readers.sbatch_gpus import RefusedError


def one(text: str, **base: Any) -> JobSpec:
    """Return the only job of a command line."""
    (spec,) = parse_sbatch(text.split(), **{"id": "1", **base})
    return spec


def components(text: str) -> list[JobSpec]:
    """Return the components of a command line."""
    return parse_sbatch(text.split(), id="1")


def changed(spec: JobSpec) -> dict[str, Any]:
    """Return the fields that are not as in a job without options."""
    plain = JobSpec(id=spec.id)
    names = [field.name for field in attrs.fields(JobSpec)]
    return {n: getattr(spec, n) for n in names if getattr(spec, n) != getattr(plain, n)}


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        pytest.param("", {}, id="nothing"),
        pytest.param("-N3", {"min_nodes": 3, "max_nodes": 3}, id="-N k"),
        pytest.param("-N 2-4", {"min_nodes": 2, "max_nodes": 4}, id="-N a-b: most is aimed at"),
        pytest.param("-n5", {"tasks": 5}, id="-n alone sets no most"),
        pytest.param("-n5 -c2", {"tasks": 5, "cpus_per_task": 2}, id="-n -c"),
        pytest.param("-N2 -n5", {"min_nodes": 2, "max_nodes": 2, "tasks": 5}, id="-N k -n t"),
        pytest.param("-N3 -n2", {"min_nodes": 2, "max_nodes": 2, "tasks": 2}, id="no more nodes than tasks"),
        pytest.param("-N1-4 -n2", {"max_nodes": 2, "tasks": 2}, id="nor in a range"),
        pytest.param(
            "-N2 --ntasks-per-node=4",
            {"min_nodes": 2, "max_nodes": 2, "tasks": 8, "tasks_per_node": 4},
            id="-N k per node: tasks follow",
        ),
        pytest.param(
            "-N2-3 --ntasks-per-node=4",
            {"min_nodes": 2, "max_nodes": 3, "tasks_per_node": 4},
            id="-N a-b per node: tasks open",
        ),
        pytest.param(
            "-n10 --ntasks-per-node=4",
            {"min_nodes": 3, "tasks": 10, "tasks_per_node": 4},
            id="-n per node: nodes rounded up",
        ),
    ],
)
def test_nodes_and_tasks(line: str, fields: dict[str, Any]) -> None:
    """slurm-gang-and-select 4.1.1, the table."""
    assert changed(one(line)) == fields


@pytest.mark.parametrize(
    ("line", "cpus", "per_node"),
    [
        ("", 1, 1),
        ("-N3", 3, 1),
        ("-n5 -c2", 10, 2),
        ("-N2 --ntasks-per-node=4 -c2", 16, 8),
        ("-N2-3 --ntasks-per-node=4", 8, 4),
        ("-n2 --mincpus=6", 2, 6),
    ],
)
def test_cpus_that_follow(line: str, cpus: int, per_node: int) -> None:
    """Least CPUs of the job and of each node."""
    spec = one(line)
    assert (spec.cpus, spec.cpus_per_node) == (cpus, per_node)


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("-p a,b --qos high -A acct -J me", {"partitions": ("a", "b"), "qos": "high",
                                             "account": "acct", "name": "me"}),
        ("-w n[1-2],n5 -x n9", {"required_nodes": ("n1", "n2", "n5"), "excluded_nodes": ("n9",)}),
        ("-t 5", {"time_limit": 300}),
        ("--time=1:30", {"time_limit": 120}),
        ("--time=0:01", {"time_limit": 60}),
        ("--time=UNLIMITED", {}),
        ("-L foo:2,bar", {"licenses": {"foo": 2, "bar": 1}}),
        ("-L foo:1|bar:1", {"licenses": {"foo": 1, "bar": 1}, "licenses_any": True}),
        ("-C [fa|fb]", {"features": "[fa|fb]"}),
        ("-s", {"oversubscribe": True}),
        ("--share", {"oversubscribe": True}),
        ("--exclusive", {"exclusive": Exclusive.NODE}),
        ("--exclusive -N1", {"exclusive": Exclusive.NODE, "max_nodes": 1}),
        ("--exclusive=user", {"exclusive": Exclusive.USER}),
        ("--exclusive=mcs", {"exclusive": Exclusive.MCS}),
        ("-s --exclusive", {"exclusive": Exclusive.NODE}),
        ("--exclusive -s", {"oversubscribe": True}),
        ("--mem=0", {"memory_mb_per_node": 0}),
        ("--mem 2G", {"memory_mb_per_node": 2048}),
        ("--mem-per-cpu=600", {"memory_mb_per_cpu": 600}),
        ("--ntasks-per-socket=2 --ntasks-per-core=1",
         {"tasks_per_socket": 2, "tasks_per_core": 1}),
        ("-B 2:1", {"sockets_per_node": 2, "cores_per_socket": 1}),
        ("-B *:4:1", {"cores_per_socket": 4, "threads_per_core": 1}),
        ("-B 2:4 --cores-per-socket=8", {"sockets_per_node": 2, "cores_per_socket": 8}),
        ("--sockets-per-node=2 --threads-per-core=1", {"sockets_per_node": 2,
                                                       "threads_per_core": 1}),
        ("-m block:block", {"distribution": "block:block"}),
        ("--distribution=plane=4", {"distribution": "plane=4"}),
        ("--contiguous --spread-job", {"contiguous": True, "spread": True}),
        ("--gres=gpu:a100:2", {"gres": {"gpu": 2, "gpu:a100": 2}}),
        ("--gres=gpu:1,shard:4 --gpus-per-node=1", {"gres": {"gpu": 2, "shard": 4}}),
        ("--gpus=8", {"gres_total": {"gpu": 8}}),
        ("-N2 --gpus-per-task=2",
         {"min_nodes": 2, "max_nodes": 2, "tasks": 2, "gres_total": {"gpu": 4}, "gres_per_task": {"gpu": 2}}),
        ("--gpus=6 --gpus-per-task=2",
         {"tasks": 3, "gres_total": {"gpu": 6}, "gres_per_task": {"gpu": 2}}),
        ("--gpus=6 --gpus-per-node=2", {"min_nodes": 3, "max_nodes": 3, "gres": {"gpu": 2}}),
        ("-n8 --gpus-per-node=2 --gpus-per-task=1",
         {"tasks": 8, "min_nodes": 4, "max_nodes": 4, "tasks_per_node": 2, "gres": {"gpu": 2}}),
        ("-N1 -n4 --gpus-per-task=a100:1",
         {"max_nodes": 1, "tasks": 4, "gres": {"gpu": 4, "gpu:a100": 4}}),
        ("--ntasks-per-node=4 --gpus-per-task=2", {"tasks_per_node": 4, "gres": {"gpu": 8}}),
        ("-n6 --gpus-per-task=2", {"tasks": 6, "gres_total": {"gpu": 12}, "gres_per_task": {"gpu": 2}}),
        ("-n6 --gpus-per-task=2 --gpus=12",
         {"tasks": 6, "gres_total": {"gpu": 12}, "gres_per_task": {"gpu": 2}}),
        ("--sockets-per-node=2 --gpus-per-socket=3",
         {"sockets_per_node": 2, "gres": {"gpu": 6}, "gres_per_socket": {"gpu": 3}}),
        ("--nice", {"nice": 100}),
        ("--nice=-1000", {"nice": -1000}),
        ("--priority=77", {"priority": 77}),
        ("-H", {"priority": 0}),
        ("--requeue", {"requeue": True}),
        ("--no-requeue", {"requeue": False}),
        ("--begin=now", {"begin_at": 0.0}),
        ("--begin=now+2hours", {"begin_at": 7200.0}),
        ("--signal=USR1", {"signal": UserSignal(name="USR1")}),
        ("--signal=B:SIGTERM@300", {"signal": UserSignal(name="TERM", lead=300, batch_only=True)}),
        ("--signal=R:10@30",
         {"signal": UserSignal(name="10", lead=30, borrows_reservation=True)}),
        ("--mcs-label=red --reservation=r", {"mcs_label": "red", "reservation": "r"}),
        ("-d afterany:3:4,afterok:5+1", {"depends_on": ("3", "4", "afterok:5+1")}),
        ("-d after:3+5,aftercorr:4,afternotok:5:6",
         {"depends_on": ("after:3+5", "aftercorr:4", "afternotok:5", "afternotok:6")}),
        ("-d singleton", {"depends_on": ("singleton",)}),
        ("-o /dev/null -D /tmp --mail-type=ALL -Q --parsable", {}),
        ("-N1 job.sh -n2 --exclusive",
         {"max_nodes": 1, "command": ("job.sh", "-n2", "--exclusive")}),
    ],
)  # fmt: skip
def test_other_options(line: str, fields: dict[str, Any]) -> None:
    """Each option by itself; short and long, value attached or apart."""
    assert changed(one(line)) == fields


def test_unique_beginnings_are_understood() -> None:
    """As getopt_long does."""
    assert one("--part=hi --contig").partitions == ("hi",)


def test_begin_counts_from_the_submission() -> None:
    """The base says when that is."""
    assert one("--begin=now+3", submit_at=4.0).begin_at == 7.0


def test_base_fills_in_and_options_win() -> None:
    """Fields of the base hold unless an option says otherwise."""
    spec = one("-J mine", name="theirs", user="bob", run_time=5.0)
    assert (spec.name, spec.user, spec.run_time) == ("mine", "bob", 5.0)


def test_node_file(tmp_path: Path) -> None:
    """Names stand in a file, in any lines."""
    path = tmp_path / "hosts"
    path.write_text("n[1-2]\nn7\n")
    assert one(f"-F {path}").required_nodes == ("n1", "n2", "n7")
    with pytest.raises(ValueError, match="cannot read"):
        one(f"-F {tmp_path / 'none'}")


def test_heterogeneous_job() -> None:
    """Sizes begin anew in each component, QOS and limit do not."""
    line = "-N2 --exclusive -q high -t 1 : -n3 -p b"
    first, second = parse_sbatch(line.split(), id="7", user="u")
    assert (first.id, first.het_id, first.het_offset) == ("7+0", "7", 0)
    assert (second.id, second.het_id, second.het_offset) == ("7+1", "7", 1)
    assert (second.tasks, second.min_nodes, second.exclusive) == (3, 1, None)
    assert (second.qos, second.time_limit, second.partitions) == ("high", 60, ("b",))
    assert second.user == "u"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--partitin=hi", "unknown option '--partitin'; did you mean '--partition'"),
        ("-Z3", "unknown option '-Z3'"),
        ("--array=3-1", "got '3-1'; allowed: indices such as 0-15"),
        ("-a1%0", "got '1%0'; allowed behind %: a number of tasks, 1 or more"),
        ("-a1 -N1 : -N1", "--array: a heterogeneous job cannot be an array"),
        ("--prefr=x", "did you mean '--prefer'"),
        ("-N", "expected one argument"),
        ("-N0", "-N/--nodes: got '0'"),
        ("-N3-2", "got '3-2'"),
        ("-nfour", "-n/--ntasks: got 'four'; expected a whole number, 1 or more"),
        ("-c0", "got '0'"),
        ("-t soon", "expected a time"),
        ("--mem=lots", "expected megabytes"),
        ("--mem=1 --mem-per-cpu=1", "not allowed with"),
        ("-L a,b|c", "not both"),
        ("-w n[2-1]", "runs backwards"),
        ("--exclusive=usr", "did you mean 'user'"),
        ("--begin=tomorrow", "only now"),
        ("--signal=X:USR1", "expected [R|B:]signal"),
        ("-d expand:3", "only after, afterany"),
        ("-m round", "allowed: block"),
        ("-p a,,b", "names separated by commas"),
        ("--nt=3", "ambiguous"),
        ("-B 0", "expected sockets"),
        ("--nice=x", "expected a whole number"),
        ("--gpus-per-socket=2", "--gpus-per-socket needs --sockets-per-node"),
    ],
)
def test_refused(line: str, message: str) -> None:
    """Says which option, what was given and what is allowed."""
    with pytest.raises(ValueError, match=r".") as caught:
        one(line)
    assert message in str(caught.value)


@pytest.mark.parametrize("name", UNMODELLED)
def test_unmodelled_options_are_named(name: str) -> None:
    """Never dropped in silence."""
    with pytest.raises(ValueError, match=f"--{name} is not modelled"):
        one(f"--{name}=1")


def test_the_tasks_of_an_array() -> None:
    """Each becomes a job of its own, in order of the indices."""
    tasks = parse_sbatch("--array=4,0-2:2%3 -n2".split(), id="7", user="u")
    shown = [(task.id, task.array_id, task.array_task, task.array_limit, task.tasks) for task in tasks]
    assert shown == [("7_0", "7", 0, 3, 2), ("7_2", "7", 2, 3, 2), ("7_4", "7", 4, 3, 2)]


def test_components_have_options_of_the_others() -> None:
    """Those of the components before, and the first one those of the last (22.05.8, `scontrol show job`)."""
    first, second, third = components("-n1 : -n2 --exclude=n2 --time=3 : -n3 --nice=7")
    assert [each.excluded_nodes for each in (first, second, third)] == [("n2",)] * 3
    assert [each.time_limit for each in (first, second, third)] == [180.0] * 3
    assert (first.nice, second.nice, third.nice) == (7, 7, 7)
    first, second, third = components("-n1 --nodelist=n4 : -n2 --exclude=n2 : -n3 --exclude=n5")
    assert [each.excluded_nodes for each in (first, second, third)] == [("n5",), ("n2", "n4"), ("n5", "n4")]
    first, second = components("-n1 --nodelist=n3 : -n2 --exclude=n1")
    assert (first.excluded_nodes, second.excluded_nodes) == (("n1",), ("n1", "n3"))
    first, second = components("-n1 --exclude=n1 --exclusive : -n2 --exclude=n2 -c2")
    assert (first.excluded_nodes, second.excluded_nodes) == (("n1",), ("n2",))
    assert (first.cpus_per_task, second.cpus_per_task, second.exclusive) == (1, 2, None)


@pytest.mark.parametrize(
    ("args", "per_node", "per_cpu"),
    [
        pytest.param("-n1 --mem=500 : -n2", [500, 500], [None, None], id="of the first"),
        pytest.param("-n1 : -n2 --mem=300", [300, 300], [None, None], id="of the last"),
        pytest.param("-n1 --mem-per-cpu=700 : -n2", [None, None], [700, None], id="per CPU: its own"),
        pytest.param("-n1 --mem-per-cpu=700 : -n2 --mem=300", [None, 300], [700, None], id="per CPU first"),
    ],
)
def test_memory_of_components(args: str, per_node: list[int | None], per_cpu: list[int | None]) -> None:
    """--mem holds for the others, --mem-per-cpu does not (22.05.8, `scontrol show job`)."""
    specs = components(args)
    assert [each.memory_mb_per_node for each in specs] == per_node
    assert [each.memory_mb_per_cpu for each in specs] == per_cpu


@pytest.mark.parametrize(
    "args", ["-n1 --mem=200 : -n2 --mem-per-cpu=700", "-n1 : -n2 --mem-per-cpu=700 : -n3 --mem=200"]
)
def test_memory_that_sbatch_refuses(args: str) -> None:
    """Also where --mem stands in a later component."""
    with pytest.raises(RefusedError, match="--mem-per-cpu"):
        components(args)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("--gpus-per-task=2", "--gpus or --ntasks"),
        ("--gpus-per-node=2 --gpus-per-task=1", "--gpus or --ntasks"),
        ("--gpus-per-socket=1", "--sockets-per-node"),
        ("-N3 --gpus=2", "fewer than nodes"),
        ("-N3 -n4 --gpus=2", "fewer than nodes"),
    ],
)
def test_gpus_that_sbatch_refuses(line: str, why: str) -> None:
    """Recorded: cons_gpus_per_node and cons_gpus_tasks."""
    with pytest.raises(RefusedError, match=why):
        one(line)
