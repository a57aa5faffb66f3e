"""Make random scenarios about priorities, limits and fair share for a real Slurm, each by its seed.

Each is a site of a few small nodes with accounts, users and QOS, of which some have limits, and the jobs of a minute.
The format is that of the recordings in tests/priority.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

USERS = ("alice", "bob", "carol", "dave")
_QOS = ("low", "mid", "high")
_TRES = ("cpu", "node")
_FLAGS = ("DenyOnLimit", "OverPartQOS", "NoReserve", "PartitionTimeLimit", "PartitionMaxNodes", "NoDecay")
_INSTANTS = (0, 1, 2, 3, 5, 8, 12, 20, 30, 45, 60)

Table = dict[str, Any]


def scenario(seed: int) -> Table:
    """Return the scenario of `seed`, as a scenario file says it."""
    return _Site(seed).scenario()


class _Site:
    """One site, and its jobs."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.draw = random.Random(f"priorities-{seed}")
        draw = self.draw
        self.count = draw.randint(2, 4)
        self.cpus = draw.choice((2, 4, 4, 8))
        self.multifactor = draw.random() < 0.75
        self.memory = draw.random() < 0.25
        self.preempts = draw.random() < 0.3
        self.safe = draw.random() < 0.25
        self.partitions = draw.randint(1, 2)
        self.accounts = ["a", "b", "c"][: draw.randint(1, 3)]
        self.nested = draw.random() < 0.35
        self.of_user = {
            user: draw.sample(self.accounts, min(len(self.accounts), draw.choice((1, 1, 2))))
            for user in USERS
        }
        self.theme = draw.choice(("limits", "limits", "order", "minutes", "mixed", "mixed"))

    def maybe(self, share: float) -> bool:
        """Whether something comes to pass."""
        return self.draw.random() < share

    # ------------------------------------------------------------------------- the cluster
    def conf(self) -> str:
        """Return the lines of slurm.conf."""
        draw = self.draw
        lines = []
        if self.multifactor:
            lines += list(self._priorities())
        if self.maybe(0.3):
            lines.append("SchedulerType=sched/builtin")
        if self.maybe(0.15):
            lines.append("SchedulerParameters=assoc_limit_stop")
        unit = draw.choice(("CR_CPU", "CR_Core")) + "_Memory" * self.memory
        lines.append(f"SelectTypeParameters={unit}")
        if self.memory:
            lines.append(f"DefMemPerCPU={draw.choice((50, 100))}")
        if self.preempts:
            lines += ["PreemptType=preempt/qos", f"PreemptMode={draw.choice(('REQUEUE', 'CANCEL'))}"]
        lines.append(f"AccountingStorageEnforce=associations,limits,qos{',safe' * self.safe}")
        if self.maybe(0.15):
            lines.append(f"EnforcePartLimits={draw.choice(('ALL', 'ANY', 'NO'))}")
        nodes = f"n[1-{self.count}]"
        words = ["Default=YES", "MaxTime=1:00:00"]
        if self.maybe(0.2):
            words.append(f"DefaultTime={draw.choice((2, 5))}")
        lines.append(f"PartitionName=main Nodes={nodes} {' '.join([*words, *self._of_partition()])}")
        if self.partitions == 2:
            words = [f"MaxTime={draw.choice((5, 30))}", *self._of_partition()]
            if self.maybe(0.3):
                words.append("PriorityTier=5")
            if self.maybe(0.3):
                words.append("QOS=partqos")
            if self.maybe(0.2):
                words.append(
                    draw.choice(("AllowAccounts=a", "DenyAccounts=a", "AllowQos=mid,high", "DenyQos=low"))
                )
            lines.append(f"PartitionName=other Nodes={nodes} {' '.join(words)}")
        return "\n".join(lines)

    def _of_partition(self) -> Iterator[str]:
        draw = self.draw
        if self.maybe(0.3):
            yield f"PriorityJobFactor={draw.choice((1, 10, 40))}"
        if self.maybe(0.15):
            yield f"TRESBillingWeights={draw.choice(('CPU=2.0', 'CPU=1.0,Mem=2.0G', 'CPU=0.5,Node=1.0'))}"
        if self.maybe(0.1):
            yield f"MaxNodes={draw.randint(1, self.count)}"

    def _priorities(self) -> Iterator[str]:
        draw = self.draw
        yield "PriorityType=priority/multifactor"
        yield "PriorityCalcPeriod=1"
        half_life = draw.choice(("0-00:05", "0-00:10", "0-00:02", "0"))
        yield f"PriorityDecayHalfLife={half_life}"
        if half_life == "0":
            yield "PriorityUsageResetPeriod=YEARLY"
        if self.theme != "minutes" or self.maybe(0.5):
            yield f"PriorityWeightFairshare={draw.choice((1000, 10000, 100000))}"
        if self.maybe(0.5):
            yield f"PriorityWeightAge={draw.choice((600, 6000, 60000))}"
            yield f"PriorityMaxAge={draw.choice(('0-00:01', '0-00:10', '1-0'))}"
        if self.maybe(0.4):
            yield f"PriorityWeightJobSize={draw.choice((100, 1000, 10000))}"
        if self.maybe(0.3):
            yield "PriorityWeightPartition=2000"
        if self.maybe(0.4):
            yield "PriorityWeightQOS=3000"
        if self.maybe(0.15):
            yield "PriorityWeightAssoc=500"
        if self.maybe(0.2):
            yield f"PriorityWeightTRES={draw.choice(('CPU=400', 'CPU=1000,Mem=800', 'CPU=300,Node=1000'))}"
        if self.maybe(0.2):
            yield "PriorityFavorSmall=YES"
        flags = [
            flag
            for flag, share in (
                ("ACCRUE_ALWAYS", 0.1),
                ("CALCULATE_RUNNING", 0.1),
                ("MAX_TRES", 0.1),
                ("NO_FAIR_TREE", 0.25),
                ("SMALL_RELATIVE_TO_TIME", 0.1),
                ("INCR_ONLY", 0.05),
            )
            if self.maybe(share)
        ]
        if "NO_FAIR_TREE" in flags and self.maybe(0.4):
            flags[flags.index("NO_FAIR_TREE")] = "DEPTH_OBLIVIOUS"
        if flags:
            yield f"PriorityFlags={','.join(flags)}"

    # ----------------------------------------------------------------------- the accounting
    def sacctmgr(self) -> Iterator[str]:
        """Yield the commands that fill the database."""
        draw = self.draw
        for at, name in enumerate(_QOS):
            words = [f"add qos {name}"]
            if self.maybe(0.6):
                words.append(f"Priority={draw.choice((1, 10, 100)) * (at + 1)}")
            if self.preempts and at:
                words.append(f"Preempt={','.join(_QOS[:at])}")
            words += self._limits_of_qos()
            yield " ".join(words)
        yield " ".join(["add qos partqos", *self._limits_of_qos(more=0.5)])
        for name in self.accounts:
            words = [f"add account {name} Cluster=<CLUSTER> fairshare={draw.choice((1, 10, 30, 50))}"]
            yield " ".join([*words, *self._limits_of_association(0.4)])
        if self.nested:
            words = [f"add account sub parent=a Cluster=<CLUSTER> fairshare={draw.choice((1, 5, 'parent'))}"]
            yield " ".join([*words, *self._limits_of_association(0.3)])
        for user in USERS:
            for account in self._accounts_of(user):
                share = draw.choice((1, 1, 2, 3, 10, "parent"))
                words = [f"add user {user} Account={account} Cluster=<CLUSTER> fairshare={share}"]
                yield " ".join([*words, *self._limits_of_association(0.3)])
        yield f"modify user where name={','.join(USERS)} set qos=normal,low,mid,high"

    def _accounts_of(self, user: str) -> list[str]:
        own = list(self.of_user[user])
        return [*own, "sub"] if self.nested and user in USERS[:2] else own

    def _cpus(self) -> int:
        return self.draw.randint(1, self.count * self.cpus)

    def _tres(self) -> str:
        kind = self.draw.choice((*_TRES, "cpu"))
        return f"{kind}={self._cpus() if kind == 'cpu' else self.draw.randint(1, self.count)}"

    def _limits_of_qos(self, more: float = 0.0) -> list[str]:
        draw = self.draw
        if self.theme == "order" and not more:
            return []
        share = (0.18 if self.theme == "limits" else 0.08) + more / 6
        words = []
        if self.theme != "minutes":
            words += [
                f"{name}={self._tres()}"
                for name in ("GrpTRES", "MaxTRESPU", "MaxTRESPA", "MaxTRESPerJob")
                if self.maybe(share)
            ]
            words += [
                f"{name}={draw.randint(1, 4)}"
                for name in (
                    "GrpJobs",
                    "MaxJobsPU",
                    "MaxJobsPA",
                    "GrpSubmitJobs",
                    "MaxSubmitJobsPU",
                    "MaxSubmitJobsPA",
                )
                if self.maybe(share * 0.8)
            ]
            if self.maybe(share / 2):
                words.append(f"MinTRESPerJob=cpu={draw.randint(1, 3)}")
            if self.maybe(share / 2):
                words.append(f"MaxTRESPerNode=cpu={draw.randint(1, self.cpus)}")
        if self.maybe(share):
            words.append(f"MaxWall={draw.choice((1, 3, 5))}")
        words += self._minutes(share)
        if self.maybe(0.15):
            words.append(f"UsageFactor={draw.choice((0, 0.5, 2))}")
        flags = [
            flag
            for flag in (
                "DenyOnLimit",
                "OverPartQOS",
                "NoReserve",
                "PartitionTimeLimit",
                "PartitionMaxNodes",
                "NoDecay",
            )
            if self.maybe(0.07)
        ]
        return [*words, f"Flags={','.join(flags)}"] if flags else words

    def _minutes(self, share: float) -> Iterator[str]:
        draw = self.draw
        share = 0.25 if self.theme == "minutes" else share / 2
        if self.maybe(share):
            yield f"GrpTRESMins=cpu={draw.randint(1, 12)}"
        if self.maybe(share):
            yield f"GrpTRESRunMins=cpu={draw.randint(4, 40)}"
        if self.maybe(share / 2):
            yield f"MaxTRESMins=cpu={draw.randint(2, 20)}"
        if self.maybe(share / 2):
            yield f"GrpWall={draw.randint(1, 6)}"

    def _limits_of_association(self, likely: float) -> list[str]:
        draw = self.draw
        if self.theme == "order" or not self.maybe(likely):
            return []
        words = []
        if self.theme != "minutes":
            words += [f"GrpTRES={self._tres()}"] if self.maybe(0.35) else []
            words += [f"MaxTRES={self._tres()}"] if self.maybe(0.15) else []
            words += [
                f"{name}={draw.randint(1, 4)}"
                for name in (
                    "GrpJobs",
                    "MaxJobs",
                    "GrpSubmitJobs",
                    "MaxSubmitJobs",
                    "GrpJobsAccrue",
                    "MaxJobsAccrue",
                )
                if self.maybe(0.12)
            ]
            words += [f"MaxWall={draw.choice((1, 3, 5))}"] if self.maybe(0.15) else []
        return [*words, *self._minutes(0.2)]

    # ---------------------------------------------------------------------------- the jobs
    def jobs(self) -> list[Table]:
        """Return the jobs in order of submission."""
        instants = sorted(self.draw.choice(_INSTANTS) for _ in range(self.draw.randint(10, 18)))
        return [self._job(number, at) for number, at in enumerate(instants, 1)]

    def _job(self, number: int, at: int) -> Table:
        draw = self.draw
        user = draw.choice(USERS)
        args = list(self._shape())
        if self.maybe(0.9):
            args.append(f"-t{draw.choice((1, 2, 2, 5, 10))}")
        if self.maybe(0.6):
            args.append(f"-q{draw.choice(_QOS)}")
        if self.maybe(0.4):
            args.append(f"-A{draw.choice(self._accounts_of(user))}")
        if self.partitions == 2 and self.maybe(0.5):
            args.append(f"-p{draw.choice(('other', 'other', 'main,other'))}")
        if self.maybe(0.1):
            args.append(f"--nice={draw.choice((10, 500))}")
        if self.maybe(0.08):
            args.append(f"--begin=<+{at + draw.randint(5, 20)}>")
        if number > 1 and self.maybe(0.0):
            args.append(f"--dependency=afterany:<j{draw.randint(1, number - 1)}>")
        if self.maybe(0.08):
            args.append(f"--array=1-{draw.randint(2, 4)}{draw.choice(('', '%1', '%2'))}")
        if self.memory and self.maybe(0.4):
            args.append(f"--mem={draw.choice((100, 300, 600))}")
        return {
            "at": at,
            "name": f"j{number}",
            "user": user,
            "runtime": draw.choice((5, 8, 12, 20, 30, 45)),
            "args": args,
        }

    def _shape(self) -> Iterator[str]:
        draw = self.draw
        if self.maybe(0.2):
            yield f"-N{draw.randint(1, self.count)}"
            if self.maybe(0.6):
                yield "--exclusive"
            return
        yield f"-n{draw.randint(1, self.cpus if self.maybe(0.8) else self.cpus * self.count)}"
        if self.maybe(0.4):
            yield "-N1"

    def scenario(self) -> Table:
        """Return all of it."""
        jobs = self.jobs()
        duration = 150
        shown: Sequence[int] = sorted(self.draw.sample(range(10, 140), 3))
        what = ["sprio", "sshare"] if self.multifactor else ["squeue"]
        return {
            "name": f"priorities_{self.seed}",
            "title": f"random scenario {self.seed}",
            "duration": duration,
            "cluster": {
                "nodes": [{"name": f"n[1-{self.count}]", "cpus": self.cpus, "real_memory": 1000}],
                "users": list(USERS),
                "slurm_conf": self.conf(),
                "sacctmgr": list(self.sacctmgr()),
            },
            "job": jobs,
            "table": [{"at": at, "what": what} for at in shown],
        }
