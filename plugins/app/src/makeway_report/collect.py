"""Turn a record into the columns that the page draws from."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from makeway_report.columns import Packer, Words
from makeway_report.curves import Curves, as_json, slowdown
from makeway_report.lost import Start
from makeway_report.pieces import LOST, Piece, pieces_of
from makeway_report.places import Places, lanes
from makeway_report.record_file import RecordFile
from makeway_report.rest import Rest
from makeway_report.sentences import told

MOST_JOBS = 250_000
"""Jobs that are drawn one by one; of more, those with the least work are left to the sums."""
MOST_TOLD = 60_000
"""Jobs whose decisions are all told; of more, only those of jobs that displaced others or were displaced."""
OUTCOMES = ("starts", "preempts", "waits")


@attrs.frozen(kw_only=True)
class Collected:
    """One run, ready for the page."""

    about: dict[str, Any]
    data: str


class Collector:
    """Reads one record."""

    def __init__(self, record: RecordFile) -> None:
        self.record = record
        self.places = Places(record.cluster)
        self.words = {
            name: Words() for name in ("user", "partition", "qos", "account", "side", "state", "limit")
        }
        self.reasons, self.sentences = Words(), Words()
        self.ids: dict[str, int] = {}
        self.jobs: dict[str, list[int]] = {}
        self.pieces: list[Piece] = []
        self.waits: list[tuple[int, float, float, int]] = []
        self.decisions: list[tuple[int, float, int, int]] = []
        self.starts: dict[str, dict[int, Start]] = {}
        self.wait_curves, self.slowdown_curves = Curves(), Curves()
        self.names: list[str] = []
        self.end = 0.0
        self.unit = 1

    def collect(self, label: str) -> Collected:
        """Return the run under this label."""
        involved = self._involved()
        kept, total = self._kept(involved)
        rest = Rest(self.end)
        for at, (job_id, job) in enumerate(self.record.jobs()):
            self._curves(job)
            if kept is not None and not kept[at]:
                rest.add(job, self.places)
                continue
            self._job(job_id, job, all_told=total <= MOST_TOLD or job_id in involved)
        packer = self._packed()
        index, data = packer.packed()
        heading = self.record.heading
        about = {
            "label": label,
            "workload": heading["workload"],
            "epoch": heading["epoch"],
            "policy": heading["policy"],
            "cluster": self.record.cluster["name"],
            "cores": self.record.cluster["cores"],
            "tiers": {each["name"]: each["priority_tier"] for each in self.record.cluster["partitions"]},
            "metrics": self.record.rest["metrics"],
            "end": self.end,
            "unit": self.unit,
            "jobs": total,
            "drawn": len(self.names),
            "told": total <= MOST_TOLD,
            "waits": as_json(self.wait_curves.shown(self._orders())),
            "slowdowns": as_json(self.slowdown_curves.shown(self._orders())),
            "rest": rest.as_json() if kept is not None else None,
            "columns": index,
        }
        return Collected(about=about, data=data)

    # ------------------------------------------------------------------------------ what to draw
    def _involved(self) -> set[str]:
        """Return the jobs that displaced others or were displaced."""
        found = set()
        for each in self.record.preemptions():
            found.add(each["victim"])
            if each["preemptor"] is not None:
                found.add(each["preemptor"])
        return found

    def _kept(self, involved: set[str]) -> tuple[bytearray | None, int]:
        """Return which jobs are drawn one by one (None: all), and how many there are; learn the end and the unit."""
        work = array("d")
        whole = True
        for job_id, job in self.record.jobs():
            amount = job["core_seconds_lost"]
            for each in job["intervals"]:
                whole = whole and each["start"] == int(each["start"]) and each["end"] == int(each["end"])
                self.end = max(self.end, each["end"])
                if each["state"] == "RUNNING":
                    amount += (each["end"] - each["start"]) * job["requested"]["cpus"]
            whole = whole and job["submit"] == int(job["submit"])
            self.end = max(self.end, job["submit"])
            important = job_id in involved or job["core_seconds_lost"] > 0
            work.append(float("inf") if important else amount)
        self.unit = 1 if whole else 1000
        if len(work) <= MOST_JOBS:
            return None, len(work)
        kept = bytearray(len(work))
        for at in sorted(range(len(work)), key=lambda at: -work[at])[:MOST_JOBS]:
            kept[at] = work[at] > 0
        return kept, len(work)

    def _orders(self) -> dict[str, list[str]]:
        """Return partitions and QOS from the highest to the lowest."""
        cluster = self.record.cluster
        partitions = sorted(cluster["partitions"], key=lambda each: -each["priority_tier"])
        qos = sorted(cluster["qos"], key=lambda each: -each["priority"])
        return {"partition": [each["name"] for each in partitions], "qos": [each["name"] for each in qos]}

    def _curves(self, job: Mapping[str, Any]) -> None:
        intervals = job["intervals"]
        first = next((each for each in intervals if each["state"] == "RUNNING"), None)
        if first is None:
            return
        groups = {"partition": job["partition"], "qos": job.get("qos", "(none)"), "user": job["user"]}
        self.wait_curves.add(first["start"] - job["submit"], groups)
        if job["final_state"] in ("PENDING", "RUNNING", "SUSPENDED", "COMPLETING"):
            return
        run = job.get("needed") or sum(
            each["end"] - each["start"]
            for each in intervals
            if each["state"] == "RUNNING" and each["restart"] == job["restarts"]
        )
        self.slowdown_curves.add(slowdown(job["submit"], intervals[-1]["end"], run), groups)

    # ------------------------------------------------------------------------------------ a job
    def _job(self, job_id: str, job: Mapping[str, Any], *, all_told: bool) -> None:
        number = self.ids[job_id] = len(self.names)
        self.names.append(job_id)
        asked = job["requested"]
        limit = asked["time_limit"]
        # Where it was somewhere, the last piece says when it ended.
        apart = job["intervals"] and not any("nodes" in each for each in job["intervals"])
        ended = job["intervals"][-1]["end"] if apart else job["submit"]
        values = {
            "submit": self._ticks(job["submit"]),
            "ended": self._ticks(ended - job["submit"]),
            "nodes": asked["nodes"],
            "cpus": asked["cpus"],
            "limit": self.words["limit"].place("" if limit is None else f"{round(limit)}"),
            "lost": round(job["core_seconds_lost"]),
            "restarts": job["restarts"],
            "user": self.words["user"].place(job["user"]),
            "partition": self.words["partition"].place(job["partition"]),
            "qos": self.words["qos"].place(job.get("qos", "(none)")),
            "account": self.words["account"].place(job.get("account", "(none)")),
            "side": self.words["side"].place(job["displaces_as"]),
            "state": self.words["state"].place(job["final_state"]),
            "reason": self.sentences.place(job["reason"]),
            "name": self.sentences.place(job["name"]),
        }
        for name, value in values.items():
            self.jobs.setdefault(name, []).append(value)
        self._pieces(number, job_id, job)
        for each in job["waits"]:
            self.waits.append((number, each["start"], each["end"], self.reasons.place(each["reason"])))
        for each in job["decisions"] if all_told else ():
            text = self.sentences.place(told(each))
            self.decisions.append((number, each["at"], OUTCOMES.index(each["outcome"]), text))

    def _pieces(self, number: int, job_id: str, job: Mapping[str, Any]) -> None:
        made, found = pieces_of(number, job, self.places)
        if job["core_seconds_lost"] > 0:
            self.starts[job_id] = found
        self.pieces += made

    def _ticks(self, seconds: float) -> int:
        return round(seconds * self.unit)

    # ---------------------------------------------------------------------------------- columns
    def _packed(self) -> Packer:
        packer = Packer()
        packer.words("nodes", self.places.names)
        packer.numbers("nodeCpus", self.places.cpus)
        if all(name.isdecimal() and name == str(int(name)) and len(name) < 15 for name in self.names):
            packer.numbers("ids", [int(name) for name in self.names], delta=True)
        else:
            packer.words("ids", self.names)
        for name, words in self.words.items():
            packer.words(f"{name}Names", words.listed)
        packer.words("reasons", self.reasons.listed)
        for name, values in self.jobs.items():
            packer.numbers(
                name if name in ("submit", "ended") else f"job_{name}", values, delta=name == "submit"
            )
        self._pack_pieces(packer)
        self._pack_waits(packer)
        self._pack_preemptions(packer)
        packer.words("sentences", self.sentences.listed)
        return packer

    def _pack_pieces(self, packer: Packer) -> None:
        pieces = sorted(self.pieces, key=lambda piece: (piece.start, piece.job, piece.end))
        running = [at for at, piece in enumerate(pieces) if piece.state in (0, LOST)]
        chosen = [piece.place for piece in pieces]
        shown = lanes([(pieces[at].start, pieces[at].end, pieces[at].place) for at in running], self.places)
        for at, place in zip(running, shown, strict=True):
            chosen[at] = place
        packer.numbers("start", [self._ticks(piece.start) for piece in pieces], delta=True)
        packer.numbers("length", [self._ticks(piece.end) - self._ticks(piece.start) for piece in pieces])
        packer.numbers("pieceJob", [piece.job for piece in pieces], delta=True)
        packer.numbers("pieceState", [piece.state for piece in pieces])
        packer.numbers("pieceRestart", [piece.restart for piece in pieces])
        self._pack_places(packer, chosen)

    def _pack_places(self, packer: Packer, chosen: list[int]) -> None:
        """Number places in the order of their first use, and code what is new as 0, what was there as its age."""
        order: dict[int, int] = {}
        ages = []
        for place in chosen:
            found = order.get(place)
            ages.append(0 if found is None else len(order) - found)
            if found is None:
                order[place] = len(order)
        packer.numbers("place", ages)
        ranges = [self.places.places[place].ranges for place in order]
        packer.numbers("placeRanges", [len(each) for each in ranges])
        packer.numbers("placeCores", [self.places.places[place].cores for place in order])
        packer.numbers("rangeFirst", [first for each in ranges for first, _, _, _ in each], delta=True)
        for name, at in (("rangeCount", 1), ("rangeTop", 2), ("rangeHeight", 3)):
            packer.numbers(name, [one[at] for each in ranges for one in each])

    def _pack_waits(self, packer: Packer) -> None:
        submit = self.jobs.get("submit", [])
        packer.numbers("waitJob", [each[0] for each in self.waits], delta=True)
        packer.numbers("waitFrom", [self._ticks(each[1]) - submit[each[0]] for each in self.waits])
        packer.numbers("waitLength", [self._ticks(each[2]) - self._ticks(each[1]) for each in self.waits])
        packer.numbers("waitReason", [each[3] for each in self.waits])
        told = self.decisions
        packer.numbers("toldJob", [each[0] for each in told], delta=True)
        packer.numbers("toldAt", [self._ticks(each[1]) - submit[each[0]] for each in told])
        packer.numbers("toldOutcome", [each[2] for each in told])
        packer.numbers("toldText", [each[3] for each in told])

    def _pack_preemptions(self, packer: Packer) -> None:
        modes, why = Words(), Words()
        columns: dict[str, list[int]] = {
            name: []
            for name in ("preemptAt", "preemptor", "victim", "preemptMode", "preemptWhy", "preemptLost")
        }
        for each in self._preemptions():
            who = each["preemptor"]
            columns["preemptAt"].append(self._ticks(each["at"]))
            columns["preemptor"].append(-1 if who is None else self.ids.get(who, -1))
            columns["victim"].append(self.ids[each["victim"]])
            columns["preemptMode"].append(modes.place(each["mode"]))
            columns["preemptWhy"].append(why.place(f"{each['why']} [{each['by']}]"))
            columns["preemptLost"].append(round(self._lost_at(each)))
        for name, values in columns.items():
            packer.numbers(name, values, delta=name == "preemptAt")
        packer.words("modes", modes.listed)
        packer.words("whys", why.listed)

    def _preemptions(self) -> Iterator[dict[str, Any]]:
        for each in self.record.preemptions():
            if each["victim"] in self.ids:
                yield each

    def _lost_at(self, preemption: Mapping[str, Any]) -> float:
        """Return the core-seconds that a preemption cost; a start is counted for the first one that ended it."""
        if preemption["mode"] == "suspend":
            return 0.0
        for start in self.starts.get(preemption["victim"], {}).values():
            if start.begin <= preemption["at"] <= start.end and start.lost > 0:
                lost, start.lost = start.lost * start.cores + start.never, 0.0
                return lost
        return 0.0


def collect(record: RecordFile, label: str) -> Collected:
    """Return what the page needs of a record."""
    return Collector(record).collect(label)
