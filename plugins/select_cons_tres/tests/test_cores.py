"""Which cores of a node are taken: slurm-gang-and-select 4.3.8, rows C05 to C07, C21 to C24."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from makeway_select_cons_tres.assign import _packed
from makeway_select_cons_tres.cores import Picker, Taste, cut
from makeway_select_cons_tres.cpus import Shape
from makeway_select_cons_tres.parameters import Unit
from makeway_select_cons_tres.request import NodeNeed
from makeway_testing.builders import cluster

NEW, OLD = "26.11", "22.05.8"
BOTH = (NEW, OLD)
TWO_BY_FOUR = {"sockets": 2, "cores_per_socket": 4}

CORE_TABLE = [
    ("-n2", "0,4", BOTH),
    ("-n3", "0-1,4", BOTH),
    ("-n5", "0-2,4-5", BOTH),
    ("-n1 -c2", "0-1", BOTH),
    ("-n2 -c2", "0-3", BOTH),
    ("--exclusive", "0-7", BOTH),
    ("-n2 -m block:block", "0-1", BOTH),
    ("-n1 -B 2:1", "0", BOTH),
    ("-n2 --ntasks-per-socket=1", "0,4", BOTH),
    ("-n4 --ntasks-per-socket=2", "0-1,4-5", BOTH),
    ("-N1 --ntasks-per-node=2", "0,4", (OLD,)),
    ("-N1 --ntasks-per-node=2", "0-1", (NEW,)),
    ("-n2 -c3", "0-2,4-6", (OLD,)),
    ("-n2 -c3", "0-5", (NEW,)),
]


def _per_release(rows: list[Any]) -> list[Any]:
    return [
        pytest.param(release, *row[:-1], id=f"{row[0]} on {release}") for row in rows for release in row[-1]
    ]


@pytest.mark.parametrize(("release", "args", "cores"), _per_release(CORE_TABLE))
def test_cores_of_an_empty_node(stage: Callable[..., Any], release: str, args: str, cores: str) -> None:
    """C05: one node of two sockets by four cores."""
    scene = stage(cluster(1, **TWO_BY_FOUR), select_parameters="CR_Core", slurm_release=release)
    scene.submit("x", args)
    assert scene.cores("x") == cores


@pytest.mark.parametrize(
    ("args", "cores"),
    [
        pytest.param("-n2", "0-1", id="block"),
        pytest.param("-n5", "0-4", id="on to the next socket"),
        pytest.param("-n2 --ntasks-per-socket=1", "0,4", id="a limit per socket"),
        pytest.param("-n4 --ntasks-per-socket=2", "0-1,4-5", id="two per socket"),
        pytest.param("-n2 -c3", "0-5", id="cores of a task need not be of one socket"),
    ],
)
def test_cr_cpu_takes_socket_by_socket(stage: Callable[..., Any], args: str, cores: str) -> None:
    """CR_CPU (step 3, block)."""
    scene = stage(cluster(1, **TWO_BY_FOUR), select_parameters="CR_CPU", slurm_release=OLD)
    scene.submit("x", args)
    assert scene.cores("x") == cores


def test_block_takes_the_tightest_socket(stage: Callable[..., Any]) -> None:
    """The socket with the fewest free cores that suffice; where none suffices, the one with most."""
    scene = stage(cluster(1, **TWO_BY_FOUR), select_parameters="CR_CPU")
    scene.submit("a", "-n2")
    assert scene.submit("b", "-n2") == "n1:2-3"
    scene.end("a")
    assert scene.submit("c", "-n5") == "n1:0,4-7"


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        pytest.param(NEW, ["0-1", "2-3", "4-5", "6-7", "0-1", "2-3"], id="trimmed"),
        pytest.param(OLD, ["0,4", "1,5", "2,6", "3,7", "0,4", "1,5"], id="in turn"),
    ],
)
def test_tasks_per_node(stage: Callable[..., Any], release: str, expected: list[str]) -> None:
    """C06: --ntasks-per-node=2 -N5 six times under FORCE."""
    scene = stage(
        cluster(5, **TWO_BY_FOUR),
        select_parameters="CR_Core",
        slurm_release=release,
        preempt_mode="gang",
        partitions={"p": {"default": True, "oversubscribe": "FORCE"}},
    )
    for number, cores in enumerate(expected):
        place = scene.submit(f"j{number}", "--ntasks-per-node=2 -N5")
        assert place == " ".join(f"n{node}:{cores}" for node in range(1, 6))


THREADS = [
    ("-n1", (2, "0"), (1, "0")),
    ("-n2", (2, "0"), (2, "0")),
    ("-n3", (4, "0,4"), (3, "0-1")),
    ("-n4", (4, "0,4"), (4, "0-1")),
    ("-n1 -c3", (4, "0-1"), (3, "0-1")),
    ("-n4 --threads-per-core=1", (8, "0-1,4-5"), (4, "0-3")),
    ("-n2 --ntasks-per-core=1", (4, "0,4"), (2, "0-1")),
]


@pytest.mark.parametrize("unit", ["CR_Core", "CR_CPU"])
@pytest.mark.parametrize(("args", "by_core", "by_cpu"), THREADS, ids=[row[0] for row in THREADS])
def test_threads(
    stage: Callable[..., Any],
    unit: str,
    args: str,
    by_core: tuple[int, str],
    by_cpu: tuple[int, str],
) -> None:
    """C07: two threads per core; CR_Core rounds CPUs up to full cores."""
    scene = stage(cluster(1, threads_per_core=2, **TWO_BY_FOUR), select_parameters=unit, slurm_release=OLD)
    scene.submit("x", args)
    assert (*scene.cpus("x"), scene.cores("x")) == (by_core if unit == "CR_Core" else by_cpu)


@pytest.mark.parametrize("unit", ["CR_Core", "CR_CPU"])
def test_a_core_is_never_split_between_jobs(stage: Callable[..., Any], unit: str) -> None:
    """C07, last row: three jobs of one CPU each."""
    scene = stage(cluster(1, threads_per_core=2, **TWO_BY_FOUR), select_parameters=unit)
    assert [scene.submit(name, "-n1") for name in "abc"] == ["n1:0", "n1:1", "n1:2"]


@pytest.mark.parametrize(
    ("args", "cpus", "cores"), [("-n2", 4, "0,4"), ("-n3", 6, "0-1,4"), ("-n4", 8, "0-1,4-5")]
)
def test_one_task_per_core(stage: Callable[..., Any], args: str, cpus: int, cores: str) -> None:
    """CR_ONE_TASK_PER_CORE, two threads per core (4.3.8, end)."""
    words = "CR_Core,CR_ONE_TASK_PER_CORE"
    scene = stage(cluster(1, threads_per_core=2, **TWO_BY_FOUR), select_parameters=words)
    scene.submit("x", args)
    assert (*scene.cpus("x"), scene.cores("x")) == (cpus, cores)


def test_block_as_the_default(stage: Callable[..., Any]) -> None:
    """CR_CORE_DEFAULT_DIST_BLOCK: -n3 takes cores 0-1 of a node with two threads per core (4.3.8, end)."""
    words = "CR_Core,CR_CORE_DEFAULT_DIST_BLOCK"
    scene = stage(cluster(1, threads_per_core=2, **TWO_BY_FOUR), select_parameters=words)
    scene.submit("x", "-n3")
    assert scene.cores("x") == "0-1"


@pytest.mark.parametrize(
    ("unit", "first", "second"),
    [
        pytest.param(
            "CR_Core_Memory",
            "n1:0-2,4-6 n2:0 n3:0 n4:0 n5:0",
            "n1:3,7 n2:1-5 n3:1 n4:1 n5:1",
            id="CR_Core",
        ),
        pytest.param(
            "CR_CPU_Memory",
            "n1:0-5 n2:0 n3:0 n4:0 n5:0",
            "n1:6-7 n2:1,4-7 n3:1 n4:1 n5:1",
            id="CR_CPU",
        ),
    ],
)
def test_ten_tasks_on_five_nodes(stage: Callable[..., Any], unit: str, first: str, second: str) -> None:
    """-n10 -N5 packs the first node and leaves one core for each of the others (4.3.8, G21)."""
    scene = stage(cluster(5, memory_mb=24000, **TWO_BY_FOUR), select_parameters=unit)
    assert scene.submit("a", "-n10 -N5 --mem=100") == first
    assert scene.submit("b", "-n10 -N5 --mem=100") == second


def test_sockets_are_handed_out_whole(stage: Callable[..., Any]) -> None:
    """G22: CR_Socket, FORCE:2; -n1 three times, then -n5."""
    scene = stage(
        cluster(1, **TWO_BY_FOUR),
        select_parameters="CR_Socket",
        preempt_mode="gang",
        partitions={"p": {"default": True, "oversubscribe": "FORCE:2"}},
    )
    assert [scene.submit(name, "-n1") for name in "abc"] == ["n1:0-3", "n1:4-7", "n1:0-3"]
    assert scene.submit("d", "-n5") == ""
    assert scene.states("a b c d") == "R R S PD"


# ---------------------------------------------------------------------------------------- memory
def test_no_memory_asked_is_all_memory(stage: Callable[..., Any]) -> None:
    """C21: CR_Core_Memory without a default: the second job waits."""
    scene = stage(cluster(1, memory_mb=8000, **TWO_BY_FOUR), select_parameters="CR_Core_Memory")
    scene.submit("a", "-n1")
    assert scene.memory("a") == (8000,)
    assert scene.submit("b", "-n1") == ""


@pytest.mark.parametrize(
    ("args", "cpus", "memory"),
    [
        pytest.param(
            "-n1 --mem-per-cpu=1200", 3, 1200, id="per CPU over the limit: more CPUs, less for each"
        ),
        pytest.param("-n2 --mem-per-cpu=600", 4, 1200, id="two tasks"),
        pytest.param("--mem=1600", 4, 1600, id="per node: more CPUs"),
    ],
)
def test_limit_of_memory_per_cpu(stage: Callable[..., Any], args: str, cpus: int, memory: int) -> None:
    """C23: MaxMemPerCPU=500."""
    partitions = {"p": {"default": True, "max_mem_per_cpu": 500}}
    machine = cluster(1, memory_mb=8000, **TWO_BY_FOUR)
    scene = stage(machine, select_parameters="CR_Core_Memory", partitions=partitions)
    scene.submit("x", args)
    assert (*scene.cpus("x"), *scene.memory("x")) == (cpus, memory)


def test_more_cpus_than_there_are(stage: Callable[..., Any]) -> None:
    """C23, last row: --mem=8000 would need 16 CPUs; the job can never run."""
    partitions = {"p": {"default": True, "max_mem_per_cpu": 500}}
    machine = cluster(1, memory_mb=8000, **TWO_BY_FOUR)
    scene = stage(machine, select_parameters="CR_Core_Memory", partitions=partitions)
    assert scene.submit("x", "--mem=8000") == ""
    assert [problem for job, _, problem in scene.engine.recorder.unrunnable if job == "x"]


@pytest.mark.parametrize(
    ("release", "cores"), [pytest.param(OLD, "0-1,4-5", id="old"), pytest.param(NEW, "0-3", id="new")]
)
def test_cores_for_the_sake_of_memory(stage: Callable[..., Any], release: str, cores: str) -> None:
    """C24: MaxMemPerCPU=500 and --mem=1600 -n1."""
    scene = stage(
        cluster(1, memory_mb=8000, **TWO_BY_FOUR),
        select_parameters="CR_Core_Memory",
        slurm_release=release,
        partitions={"p": {"default": True, "max_mem_per_cpu": 500}},
    )
    scene.submit("x", "--mem=1600 -n1")
    assert scene.cores("x") == cores


def test_memory_per_cpu_limits_the_cpus_of_a_node(stage: Callable[..., Any]) -> None:
    """A node has no more CPUs than its free memory serves (4.3.6)."""
    machine = cluster(2, memory_mb=8000, **TWO_BY_FOUR)
    scene = stage(machine, select_parameters="CR_Core_Memory")
    scene.submit("a", "-n1 --mem=5000 -w n1")
    assert scene.submit("b", "-n6 --mem-per-cpu=1000") == "n2:0-2,4-6"
    assert scene.submit("c", "-n4 --mem-per-cpu=1000") == "n1:1-2,4 n2:3"


def test_limit_of_cpus_per_node_counts_the_own_partition(stage: Callable[..., Any]) -> None:
    """MaxCPUsPerNode counts cores of the partition's jobs only (4.3.6)."""
    partitions = {"p": {"default": True}, "small": {"max_cpus_per_node": 3}}
    scene = stage(cluster(1, **TWO_BY_FOUR), select_parameters="CR_Core", partitions=partitions)
    scene.submit("other", "-n4")
    assert scene.submit("a", "-n2", "small") == "n1:2,6"
    assert scene.submit("b", "-n2", "small") == ""
    assert scene.submit("c", "-n1", "small") == ""  # b is before it
    scene.command("cancel", "b")
    assert scene.where("c") == "n1:3"


@pytest.mark.parametrize(
    ("tasks", "room", "more", "dealt"),
    [
        pytest.param(3, [2, 2], [2, 2], [2, 1], id="one each, then the first is filled"),
        pytest.param(4, [2, 2], [2, 2], [2, 2], id="all of the room"),
        pytest.param(5, [2, 2], [2, 2], None, id="one too many"),
        pytest.param(5, [2, 2], [2, 3], [2, 3], id="rounding leaves room on the second"),
        pytest.param(1, [2, 2], [2, 2], [1, 0], id="fewer tasks than nodes"),
    ],
)
def test_tasks_are_packed(tasks: int, room: list[int], more: list[int], dealt: list[int] | None) -> None:
    """One task on each node first, the others on the first nodes with room (section 4.3.8)."""
    assert _packed(tasks, room, more) == dealt


def test_a_node_with_just_enough_memory_fits(stage: Callable[..., Any]) -> None:
    """8,000 MB less 2,000 are exactly the 6,000 that the third job asks for, as the first one did."""
    scene = stage(cluster(2, memory_mb=8000, **TWO_BY_FOUR), select_parameters="CR_Core_Memory")
    scene.submit("first", "-N1 -n1 --mem=6000 -w n1")
    scene.submit("alike", "-N1 -n1 --mem=6000 -x n1")
    scene.end("alike")
    scene.submit("small", "-N1 -n1 --mem=2000 -w n2")
    scene.submit("third", "-N1 -n1 --mem=6000 -x n1")
    assert scene.nodes("third") == "n2"
    assert scene.submit("fourth", "-N1 -n1 --mem=1 -x n1") == ""


@pytest.mark.parametrize(
    ("need", "cpus", "cores"),
    [
        pytest.param({}, 3, 0b111, id="wherever they are"),
        pytest.param(
            {"tasks_per_socket": 1, "cpus_per_task": 2},
            3,
            0b1_1111,
            id="two of each socket count: one of the next",
        ),
        pytest.param({"tasks_per_socket": 1, "cpus_per_task": 2}, 2, 0b11, id="those of one socket suffice"),
        pytest.param(
            {"tasks_per_socket": 1, "cpus_per_task": 2}, 4, 0b1111_1111, id="all that count: nothing is cut"
        ),
    ],
)
def test_the_first_cores_that_provide_so_many_cpus(need: dict[str, Any], cpus: int, cores: int) -> None:
    """Step 1, two sockets of four cores: cores in excess of a limit per socket provide nothing."""
    shape = Shape(sockets=2, cores_per_socket=4, threads=1)
    assert cut(shape, shape.full, cpus, NodeNeed(unit=Unit.CORE, **need)) == cores


def test_in_one_go_and_step_by_step() -> None:
    """Where no socket has to have anything, cores are the same in one go, whatever is free and wanted."""
    chance = Random(11)
    some = 0
    for _ in range(3_000):
        shape = Shape(chance.choice((1, 2, 4, 8)), chance.choice((1, 4, 10)), chance.choice((1, 2, 4)))
        need = NodeNeed(
            unit=chance.choice((Unit.CORE, Unit.CPU)),
            tasks_per_core=chance.choice((None, None, 1)),
            threads_per_core=chance.choice((None, None, 1)),
        )
        taste = Taste(
            need, False, chance.choice((None, 1, 3, 30)), chance.random() < 0.5, chance.choice((0, 2))
        )
        picker = Picker(taste, [shape], [0])
        free = chance.getrandbits(shape.full.bit_length()) & chance.choice(
            (shape.full, chance.getrandbits(80))
        )
        cpus = chance.choice((1, 2, 3, chance.randint(1, 90)))
        found = picker.in_full(shape, free, cpus)
        assert picker.by_number(shape, free, cpus) == found == picker.pick(0, free, cpus)
        some += found is not None
    assert some > 800


def test_one_core_and_all_cores() -> None:
    """One core is the lowest; all that are idle are taken as they are; a limit leaves the first ones."""
    shape = Shape(2, 4, 1)
    picker = Picker(Taste(NodeNeed(unit=Unit.CORE), False, None, False), [shape], [0])
    assert picker.pick(0, 0b0110_1000, 1) == (1, 0b0000_1000)
    assert picker.pick(0, 0b0110_1000, 3) == (3, 0b0110_1000)
    assert picker.pick(0, 0b0110_1000, 4) is None
    trims = Picker(Taste(NodeNeed(unit=Unit.CORE), False, 2, True), [shape], [0])
    assert trims.pick(0, 0b0111_1000, 2) == (2, 0b0001_1000)
