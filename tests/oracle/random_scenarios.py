"""Make random scenarios for a real Slurm, each by its seed (formats: FORMAT.md).

Sites come in two kinds. Ordinary ones look like what most clusters run: like nodes, one or two partitions, time
limits, perhaps preemption by partition or QOS. Exotic ones add all else that makeway models: unlike nodes, weights,
features, GPUs, overlapping partitions, sharing, licences, heterogeneous jobs, dependencies, commands of people,
reservations, nodes that fail and come back.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

TIMESLICE = 7
_UNFIT_FOR_SUBMISSION = 6
"""Second of a slice whose end is too near the turn for anything to be submitted."""
_QOS = ("low", "mid", "high")

Table = dict[str, Any]


def scenario(seed: int, *, exotic: bool = False) -> Table:
    """Return the scenario of `seed`, as a scenario file says it."""
    return _Site(seed, exotic).scenario()


def write(table: Table) -> str:
    """Return a scenario as TOML, a job a line."""
    plain = {key: value for key, value in table.items() if not isinstance(value, (dict, list))}
    lines = [f"{key} = {_value(value)}" for key, value in plain.items()]
    for key in ("tags", "job", "action", "table"):
        if table.get(key):
            lines += [f"{key} = [", *(f"  {_value(each)}," for each in table[key]), "]"]
    cluster = dict(table["cluster"])
    conf = cluster.pop("slurm_conf")
    lines += ["", "[cluster]"]
    for key, value in cluster.items():
        if isinstance(value, list):
            lines += [f"{key} = [", *(f"  {_value(each)}," for each in value), "]"]
        else:
            lines.append(f"{key} = {_value(value)}")
    return "\n".join([*lines, 'slurm_conf = """', conf.strip(), '"""', ""])


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(each)}" for key, each in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_value, value)) + "]"
    return str(value)


class _Site:
    """One site, and the jobs of some seconds."""

    def __init__(self, seed: int, exotic: bool) -> None:
        self.seed = seed
        self.exotic = exotic
        self.draw = random.Random(f"{seed}-{exotic}")
        draw = self.draw
        self.linear = draw.random() < 0.4
        self.memory = draw.random() < 0.5
        self.backfill = draw.random() < 0.6
        self.preempt = draw.choice(("none", "partition_prio", "partition_prio", "qos"))
        self.mode = draw.choice(("SUSPEND,GANG", "REQUEUE", "CANCEL")) if self.preempt != "none" else "OFF"
        if self.preempt == "none" and exotic and draw.random() < 0.4:
            self.mode = "GANG"
        self.nodes = self._nodes()
        self.names = [name for node in self.nodes for name in _names(node["name"])]
        self.gpus = any("gres" in node for node in self.nodes)
        self.licences = exotic and draw.random() < 0.3
        self.reserved = self.maybe(0.3)
        self.fails = self.maybe(0.3)
        self.partitions = list(self._partitions())

    def maybe(self, share: float) -> bool:
        """Whether something comes to pass; of ordinary sites never."""
        return self.exotic and self.draw.random() < share

    # ------------------------------------------------------------------------- the cluster
    def _nodes(self) -> list[Table]:
        draw = self.draw
        groups = draw.randint(2, 3) if self.maybe(0.5) else 1
        gpus = self.maybe(0.3)
        nodes: list[Table] = []
        first = 1
        for _ in range(groups):
            count = draw.randint(1, 3) if groups > 1 else draw.randint(2, 5)
            sockets, cores = draw.choice(((1, 4), (2, 2), (2, 4), (1, 8)))
            threads = 2 if self.maybe(0.2) else 1
            node: Table = {
                "name": f"n[{first}-{first + count - 1}]",
                "cpus": sockets * cores * threads,
                "sockets": sockets,
                "cores_per_socket": cores,
                "threads_per_core": threads,
                "real_memory": draw.choice((8000, 16000, 24000)),
            }
            if groups > 1:
                node["features"] = [draw.choice(("big", "ib"))]
                if self.maybe(0.3):
                    node["weight"] = draw.choice((1, 5))
            if gpus and (groups == 1 or draw.random() < 0.7):
                node["gres"] = f"gpu:{draw.choice((1, 2, 4))}"
            nodes.append(node)
            first += count
        return nodes

    def _partitions(self) -> Iterator[tuple[str, list[str], str]]:
        draw = self.draw
        count = draw.randint(1, 2) if self.preempt != "partition_prio" else draw.randint(2, 3)
        tiers = draw.sample((1, 2, 3), count) if self.preempt == "partition_prio" else [1] * count
        for at in range(count):
            nodes = list(self.names)
            if self.maybe(0.4) and len(nodes) > 2:
                nodes = sorted(draw.sample(nodes, len(nodes) - 1), key=lambda name: int(name[1:]))
            words = [f"PriorityTier={tiers[at]}", f"OverSubscribe={self._sharing()}"]
            if self.maybe(0.25):
                words.append(f"DefaultTime={draw.choice((1, 2))}")
            if self.preempt == "partition_prio" and self.maybe(0.3):
                words.append(f"PreemptMode={draw.choice(self._partition_modes())}")
            if self.mode != "OFF" and "SUSPEND" not in self.mode and self.maybe(0.2):
                words.append("GraceTime=6")
            if not at:
                words.append("Default=YES")
            yield f"p{at + 1}", nodes, " ".join(words)

    def _partition_modes(self) -> Sequence[str]:
        return (
            ("OFF", "REQUEUE", "CANCEL", "SUSPEND") if "GANG" in self.mode else ("OFF", "REQUEUE", "CANCEL")
        )

    def _sharing(self) -> str:
        if self.maybe(0.5):
            return self.draw.choice(("NO", "YES", "YES:2", "FORCE:1", "FORCE:2", "FORCE:3", "EXCLUSIVE"))
        return "FORCE:1" if "GANG" in self.mode else "NO"

    def conf(self) -> str:
        """Return the lines of slurm.conf."""
        draw = self.draw
        lines = [
            f"SchedulerType=sched/{'backfill' if self.backfill else 'builtin'}",
            f"SelectType=select/{'linear' if self.linear else 'cons_tres'}",
        ]
        unit = "CR_Memory" if self.linear else draw.choice(("CR_Core", "CR_CPU")) + "_Memory" * self.memory
        if self.memory or not self.linear:
            lines.append(f"SelectTypeParameters={unit}")
        lines += [f"PreemptType=preempt/{self.preempt}"] if self.preempt != "none" else []
        lines += [f"PreemptMode={self.mode}"] if self.mode != "OFF" else []
        lines += [f"SchedulerTimeSlice={TIMESLICE}"] if "GANG" in self.mode else []
        if self.preempt != "none" and self.maybe(0.25):
            lines.append("PreemptExemptTime=00:00:06")
        if self.memory and draw.random() < 0.7:
            lines.append("DefMemPerCPU=1000")
        if self.maybe(0.15):
            lines += ["PriorityType=priority/multifactor", "PriorityWeightQOS=10000"]
        lines += [
            f"PartitionName={name} Nodes={','.join(nodes)} {words}" for name, nodes, words in self.partitions
        ]
        return "\n".join(lines)

    def qos(self) -> list[Table]:
        """Return the QOS, where they decide what preempts."""
        if self.preempt != "qos":
            return []
        tables: list[Table] = []
        for at, name in enumerate(_QOS):
            table: Table = {"name": name, "priority": 10 ** (at + 1)}
            if at:
                table["preempt"] = list(_QOS[:at])
            if self.maybe(0.2) and "SUSPEND" not in self.mode:
                table["grace_time"] = 6
            tables.append(table)
        return tables

    # ---------------------------------------------------------------------------- the jobs
    def jobs(self) -> list[Table]:
        """Return the jobs in order of submission."""
        draw = self.draw
        count = draw.randint(5, 9)
        instants = sorted(self._instant() for _ in range(count))
        return [self._job(number + 1, at) for number, at in enumerate(instants)]

    def _instant(self) -> int:
        while True:
            at = self.draw.randint(0, 12)
            if "GANG" not in self.mode or at % TIMESLICE != _UNFIT_FOR_SUBMISSION:
                return at

    def _job(self, number: int, at: int) -> Table:
        draw = self.draw
        args = self._args(number)
        if self.backfill and self.maybe(0.07):
            # sbatch refuses --mem-per-cpu behind another component's --mem.
            args += [":", *(word for word in self._args(number) if not word.startswith("--mem"))]
        job: Table = {"at": at, "name": f"j{number}", "runtime": draw.randint(3, 12), "args": args}
        if self.maybe(0.2):
            # Nodes that fail here leave the processes that ignore SIGTERM, so that no launch finds the node clean.
            kinds = ("default", "exit") if self.fails else ("default", "exit", "ignore")
            job |= {"step": True, "on_term": draw.choice(kinds)}
        return job

    def _args(self, number: int) -> list[str]:
        draw = self.draw
        name, nodes, _ = draw.choice(self.partitions)
        args = ["-p", name, *self._shape(len(nodes))]
        if self.preempt == "qos":
            args.append(f"--qos={draw.choice(_QOS)}")
        if draw.random() < 0.4:
            args.append(f"--time={draw.choice((1, 1, 2, 5))}")
        if (self.memory and draw.random() < 0.6) or self.maybe(0.1):
            args.append(draw.choice(("--mem=2000", "--mem=6000", "--mem-per-cpu=1000", "--mem-per-cpu=2000")))
        if draw.random() < 0.15:
            args.append("--exclusive")
        elif self.maybe(0.25):
            args.append("--oversubscribe")
        args += self._exotic_args(number, nodes)
        return args

    def _exotic_args(self, number: int, nodes: Sequence[str]) -> Iterator[str]:
        draw = self.draw
        features = {word for node in self.nodes for word in node.get("features", ())}
        if features and self.maybe(0.2):
            yield f"--constraint={draw.choice(sorted(features))}"
        if self.maybe(0.1):
            yield f"--nodelist={draw.choice(nodes)}"
        elif self.maybe(0.1):
            yield f"--exclude={draw.choice(nodes)}"
        if self.gpus and draw.random() < 0.5:
            yield self._gpus()
        if self.licences and draw.random() < 0.4:
            yield f"--licenses=lic:{draw.randint(1, 3)}"
        if self.maybe(0.1):
            yield f"--begin=now+{draw.randint(3, 8)}"
        if number > 1 and self.maybe(0.1):
            yield f"--dependency=afterany:{draw.randint(1, number - 1)}"
        if self.maybe(0.15):
            yield f"--nice={draw.choice((10, 100, 5000))}"
        if self.maybe(0.1):
            yield "--no-requeue"
        if self.reserved and draw.random() < 0.2:
            yield "--reservation=r1"

    def _gpus(self) -> str:
        draw = self.draw
        if self.linear or draw.random() < 0.5:
            return f"--gres=gpu:{draw.randint(1, 2)}"
        return draw.choice(
            ("--gpus=1", "--gpus=2", "--gpus-per-node=1", "--gpus-per-node=2", "--gpus-per-task=1")
        )

    def _shape(self, nodes: int) -> list[str]:
        draw = self.draw
        most = max(1, nodes)
        kind = draw.randrange(6 if self.exotic else 4)
        if kind == 0:
            return [f"-N{draw.randint(1, most)}"]
        if kind == 1:
            return [f"-n{draw.randint(1, 8)}"]
        if kind == 2:
            count = draw.randint(1, most)
            return [f"-N{count}", f"-n{count * draw.randint(1, 3)}"]
        if kind == 3:
            return ["-n1", f"-c{draw.randint(1, 4)}"]
        if kind == 4:
            return [f"-N{draw.randint(1, most)}", f"--ntasks-per-node={draw.randint(1, 3)}"]
        return [f"-N1-{most}"]

    # -------------------------------------------------------------------------- the whole
    def actions(self, jobs: Sequence[Table]) -> list[Table]:
        """Return what people do, half a second off all looks."""
        draw = self.draw
        actions: list[Table] = []
        if self.maybe(0.3):
            name = draw.choice(jobs)["name"]
            at = draw.randint(5, 12) + 0.5
            first, second = draw.choice((("suspend", "resume"), ("hold", "release"), ("cancel", "")))
            if first == "cancel":
                actions.append({"at": at, "command": ["scancel", f"<{name}>"]})
            else:
                actions.append({"at": at, "command": ["scontrol", first, f"<{name}>"]})
                actions.append({"at": at + draw.randint(3, 6), "command": ["scontrol", second, f"<{name}>"]})
        actions += self._reservation() if self.reserved else ()
        actions += self._failure() if self.fails else ()
        return sorted(actions, key=lambda action: action["at"])

    def _reservation(self) -> Iterator[Table]:
        """Yield how nodes are reserved for a while, half of the time beside the jobs that run there."""
        draw = self.draw
        at, begin = draw.choice((0.5, 3.5, 6.5)), draw.randint(8, 16)
        nodes = draw.sample(self.names, draw.randint(1, max(1, len(self.names) // 2)))
        words = [
            "ReservationName=r1",
            "Users=alice",
            f"Nodes={','.join(nodes)}",
            f"StartTime=<+{begin}>",
            f"EndTime=<+{begin + draw.randint(5, 15)}>",
        ]
        flags = [flag for flag in ("IGNORE_JOBS", "MAINT") if draw.random() < 0.5]
        words += [f"Flags={','.join(flags)}"] if flags else []
        yield {"at": at, "command": ["scontrol", "create", "reservation", *words]}
        if draw.random() < 0.2:
            yield {"at": begin + 2.5, "command": ["scontrol", "delete", "ReservationName=r1"]}

    def _failure(self) -> Iterator[Table]:
        """Yield how a node, or two, fail or are drained, and come back."""
        draw = self.draw
        at = draw.randint(3, 12) + 0.5
        nodes = ",".join(draw.sample(self.names, min(len(self.names), draw.randint(1, 2))))
        state = draw.choice(("DOWN", "DOWN", "DRAIN"))
        change = ["scontrol", "update", f"NodeName={nodes}"]
        yield {"at": at, "command": [*change, f"State={state}", "Reason=drawn"]}
        yield {"at": at + draw.randint(4, 10), "command": [*change, "State=RESUME"]}

    def scenario(self) -> Table:
        """Return the whole scenario."""
        jobs = self.jobs()
        cluster: Table = {"nodes": self.nodes}
        if qos := self.qos():
            cluster["qos"] = qos
        if self.licences:
            cluster["licenses"] = {"lic": 3}
        cluster["slurm_conf"] = self.conf()
        kind = "exotic" if self.exotic else "ordinary"
        table: Table = {
            "name": f"{kind}_{self.seed}",
            "title": f"random, {kind}",
            "expect": "Nothing particular: random.",
            "duration": 45,
            "job": jobs,
        }
        if actions := self.actions(jobs):
            table["action"] = actions
        return table | {"cluster": cluster}


def _names(hosts: str) -> list[str]:
    first, last = hosts[2:-1].split("-")
    return [f"n{index}" for index in range(int(first), int(last) + 1)]
