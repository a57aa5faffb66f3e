#!/usr/bin/env python3
"""Play one scenario about priorities or limits on a throw-away Slurm and record it as JSON.

    run_priority.py SCENARIO.toml -o RESULT.json [--keep-log FILE] [-v]

A scenario is what a recording in ../priority holds as its own.  The cluster (ports, daemons, database, clean-up) is
that of run_oracle.py.  Jobs really sleep; the clock is real, so offsets are good to about a second.
"""
import grp
import os
import pwd
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import run_oracle as base  # noqa: E402

FORMAT = 1
SAMPLE = 0.5
KEEP = ("Priority", "Reason", "NodeList", "AccrueTime", "EligibleTime", "StartTime", "EndTime", "TimeLimit",
        "Partition", "QOS", "Account", "UserId", "Restarts", "ReqTRES", "TRES", "SubmitTime", "JobState", "SchedNodeList",
        "BillableTRES", "Reservation", "ExitCode")
TIMES = ("AccrueTime", "EligibleTime", "StartTime", "EndTime", "SubmitTime")
SPRIO = "%i|%r|%u|%o|%n|%Y|%S|%A|%B|%F|%J|%P|%Q|%N|%T"
SPRIO_NAMES = ("job", "partition", "user", "account", "qos", "priority", "site", "age", "assoc", "fairshare", "jobsize", "partition_prio",
               "qos_prio", "nice", "tres")
LOG = [(kind, re.compile(rx)) for kind, rx in [
    ("decay", r"Decay factor over (?P<seconds>[\d.e+]+) seconds goes from (?P<per_second>[\d.]+) -> (?P<applied>[\d.]+)"),
    ("usage", r"Adding (?P<added>[\d.]+) new usage to assoc (?P<assoc>\d+) \((?P<who>.*?)\) raw usage is now (?P<raw>\d+\.\d+)"
              r".*Group wall added (?P<wall_added>\d+\.\d+) making it (?P<wall>\d+\.\d+)"),
    ("preempted", r"preempted JobId=(?P<job>\S+) has been (?P<how>\w+)"),
    ("started", r"sched: Allocate JobId=(?P<job>\S+) NodeList=(?P<nodes>\S+)"),
    ("started_by_backfill", r"_start_job: Started JobId=(?P<job>\S+) in (?P<partition>\S+) on (?P<nodes>\S+)"),
    ("taken", r"_slurm_rpc_submit_batch_job: JobId=(?P<job>\S+)"),
    ("begun", r"BillingWeight: JobId=(?P<job>\S+) is either new or it was resized"),
    ("ended", r"_job_complete: JobId=(?P<job>\S+) (?:WEXITSTATUS|WTERMSIG)"),
]]
LOOKS = {"main": "sched: Running job scheduler for full queue", "backfill": "sched/backfill: _attempt_backfill: beginning"}


class Cluster(base.Cluster):
    """The oracle's cluster, set up by literal sacctmgr commands."""

    def __init__(self, scn, prefix=None):
        super().__init__(scn, prefix)
        self.accounting = self.cl.get("accounting", True)

    def write_conf(self):
        super().write_conf()
        path = self.p("slurm.conf")
        with open(path) as f:
            text = f.read()
        if "DebugFlags=" in text:
            text = re.sub(r"(?m)^DebugFlags=.*$", "DebugFlags=Priority", text)
        with open(path, "w") as f:
            f.write(text)
        if "topology" in self.cl:
            with open(self.p("topology.conf"), "w") as f:
                f.write(self.cl["topology"])
        for user in self.cl.get("users", []):
            base.ensure_user(user)
        for group, members in self.cl.get("groups", {}).items():
            subprocess.run(["groupadd", "-f", group], check=True)
            for m in members:
                base.ensure_user(m)
                subprocess.run(["gpasswd", "-a", m, group], check=True, stdout=subprocess.DEVNULL)

    def fill_db(self):
        end = time.time() + 40
        while True:
            r = self.run(["sacctmgr", "-i", "-Q", "add", "cluster", f"oracle{self.slot}"], check=False)
            if r.returncode == 0 or time.time() > end:
                break
            time.sleep(0.5)
        for line in self.cl.get("sacctmgr", []):
            words = line.replace("<CLUSTER>", f"oracle{self.slot}").split()
            r = self.run(["sacctmgr", "-i", "-Q", *words], check=False, timeout=60)
            if r.returncode and "Nothing" not in r.stdout:
                raise base.Failure(f"sacctmgr {line}: {r.stdout} {r.stderr}")


def parse_jobs(text):
    out = {}
    for line in text.splitlines():
        if not line.startswith("JobId="):
            continue
        f = {}
        for k, v in base.FIELD.findall(line.strip()):
            f.setdefault(k, v)
        out[int(f["JobId"])] = f
    return out


class Play:
    def __init__(self, scn, cluster):
        self.scn, self.c = scn, cluster
        self.names, self.ids, self.subs = {}, {}, {}
        self.tables, self.actions, self.seen = [], [], {}

    def off(self, t):
        return round(t - self.t0, 2)

    def clock(self, text):
        """Slurm's local time stamp (TZ is UTC) as an offset, in whole seconds."""
        try:
            return round(time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S")) - time.timezone - self.t0)
        except ValueError:
            return None

    def fix(self, text):
        def one(m):
            name = m.group(1)
            if re.fullmatch(r"[+-]\d+", name):      # <+30>: the clock 30 s after offset 0
                return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(self.t0 + int(name)))
            return str(self.ids.get(name, m.group(0)))
        return re.sub(r"<([^<>]+)>", one, text)

    def submit(self, job):
        name = job["name"]
        args = [self.fix(a) for a in job.get("args", [])]
        u = pwd.getpwnam(job.get("user", "alice"))
        env = dict(self.c.env, HOME="/", USER=u.pw_name, LOGNAME=u.pw_name)
        groups = [g.gr_gid for g in grp.getgrall() if u.pw_name in g.gr_mem]
        trap = "trap '' TERM\n" if job.get("on_term") == "ignore" else ""
        script = f"#!/bin/bash\n{trap}exec sleep {job.get('runtime', 600)}\n"
        t = time.time()
        r = subprocess.run(["sbatch", "--parsable", "-J", name, "-o", "/dev/null", "-D", "/tmp", *args], input=script,
                           env=env, text=True, capture_output=True, timeout=30, cwd="/tmp",
                           user=u.pw_uid, group=u.pw_gid, extra_groups=groups)
        rec = {"at": job["at"], "submitted": self.off(t)}
        if r.returncode:
            rec["refused"] = re.sub(r"^sbatch: ", "", r.stderr.strip(), flags=re.M)
        else:
            jid = int(r.stdout.strip().split(";")[0])
            rec["job_id"] = jid
            self.ids[name], self.names[jid] = jid, name
            if r.stderr.strip():
                rec["said"] = r.stderr.strip()
        self.subs[name] = rec
        base.log("submit", name, rec)

    def act(self, a):
        cmd = [self.fix(w) for w in a["command"]]
        t = time.time()
        r = self.c.run(cmd, check=False)
        self.actions.append({"at": a["at"], "done": self.off(t), "command": a["command"], "rc": r.returncode,
                             "stdout": r.stdout.strip(), "stderr": r.stderr.strip()})
        base.log("action", cmd, r.returncode, r.stdout.strip(), r.stderr.strip())

    def job_name(self, jid, f):
        if "ArrayJobId" in f:
            head = self.names.get(int(f["ArrayJobId"]))
            task = f.get("ArrayTaskId", "")
            return f"{head}[{task}]" if head else None
        return self.names.get(jid)

    def sample(self):
        r = self.c.run(["scontrol", "-o", "show", "job"], check=False)
        now = self.off(time.time())
        if r.returncode:
            return
        for jid, f in parse_jobs(r.stdout).items():
            name = self.job_name(jid, f)
            if name is None:
                continue
            rec = self.seen.setdefault(jid, {"name": name, "changes": []})
            rec["name"], rec["fields"] = name, f
            nodes = [] if f.get("NodeList", "(null)") in ("(null)", "") else f["NodeList"]
            state = {"state": f["JobState"], "reason": f.get("Reason"), "priority": int(f.get("Priority", 0)),
                     "nodes": nodes or ""}
            if not rec["changes"] or any(rec["changes"][-1][k] != v for k, v in state.items()):
                rec["changes"].append({"t": now, **state})

    def table(self, spec):
        for what in spec["what"]:
            rec = {"at": spec["at"], "what": what}
            if what == "sprio":
                r = self.c.run(["sprio", "-h", "-o", SPRIO], check=False)
                rec["taken"] = self.off(time.time())
                rec["rows"] = []
                for line in r.stdout.splitlines():
                    row = dict(zip(SPRIO_NAMES, (x.strip() for x in line.split("|"))))
                    row["job"] = self.label(row["job"])
                    rec["rows"].append(row)
                rec["text"] = self.c.run(["sprio", "-l"], check=False).stdout
            elif what == "sshare":
                r = self.c.run(["sshare", "-a", "-l", "-P", "-m"], check=False)
                rec["taken"] = self.off(time.time())
                lines = r.stdout.splitlines()
                heads = lines[0].split("|") if lines else []
                rec["rows"] = [dict(zip(heads, ln.split("|"))) for ln in lines[1:]]
            elif what == "squeue":
                r = self.c.run(["squeue", "-r", "-S", "-p,i", "-o", "%i|%P|%j|%u|%t|%Q|%M|%D|%S|%r|%R"], check=False)
                rec["taken"] = self.off(time.time())
                lines = [ln.split("|") for ln in r.stdout.splitlines()]
                rec["rows"] = [dict(zip(lines[0], ln)) for ln in lines[1:]]
            else:
                words = what.replace("<CLUSTER>", f"oracle{self.c.slot}").split()
                if words[0] == "sh:":
                    words = ["sh", "-c", " ".join(words[1:])]
                r = self.c.run(words, check=False)
                rec["taken"] = self.off(time.time())
                rec["text"] = (r.stdout + r.stderr).replace(f"oracle{self.c.slot}", "cluster")
            self.tables.append(rec)

    def label(self, jid):
        head, _, task = jid.partition("_")
        name = self.names.get(int(head)) if head.isdigit() else None
        return (f"{name}[{task}]" if task else name) if name else jid

    def go(self):
        scn = self.scn
        for j in scn.get("job", []):
            if j.get("user", "alice") != "root":
                base.ensure_user(j.get("user", "alice"))
        time.sleep(base.SETTLE)
        if "minute_phase" in scn:  # second 0 comes so many seconds past a full minute
            time.sleep((scn["minute_phase"] - 1.0 - time.time()) % 60.0)
        # offset 0: half a second after a full second, so that whole-second clocks agree
        self.t0 = int(time.time()) + 1.0
        plan = [(j["at"], 0, i, self.submit, j) for i, j in enumerate(scn.get("job", []))]
        plan += [(a["at"], 1, i, self.act, a) for i, a in enumerate(scn.get("action", []))]
        plan += [(s["at"], 2, i, self.table, s) for i, s in enumerate(scn.get("table", []))]
        plan.sort(key=lambda x: x[:3])
        end = self.t0 + scn["duration"]
        due = self.t0 + SAMPLE
        while True:
            now = time.time()
            if plan and now >= self.t0 + plan[0][0]:
                _, _, _, fn, what = plan.pop(0)
                fn(what)
                continue
            if now >= due:
                self.sample()
                due = max(due + SAMPLE, time.time())
            if now >= end and not plan:
                break
            time.sleep(0.05)
        self.sample()
        return self.result()

    def result(self):
        events, looks = [], {}
        for t, text in base.LogReader(self.c.p("log", "slurmctld.log")).new():
            for whose, words in LOOKS.items():
                if words in text and t >= self.t0:
                    looks[whose] = [looks.get(whose, [round(t - self.t0, 3)])[0], round(t - self.t0, 3)]
            for kind, rx in LOG:
                m = rx.search(text)
                if m:
                    e = {"t": round(t - self.t0, 3), "what": kind}
                    for k, v in m.groupdict().items():
                        if k == "job":  # a task is ARRAY_TASK(JOB)
                            num = int(re.match(r"(?:.*\()?(\d+)", v).group(1))
                            e[k] = self.seen.get(num, {}).get("name") or self.label(v.split("(")[0])
                        elif re.fullmatch(r"[\d.e+]+", v) and k != "nodes":
                            e[k] = float(v)
                        else:
                            e[k] = v
                    events.append(e)
                    break
        jobs = {}
        for jid, rec in self.seen.items():
            f = rec["fields"]
            out = {k: f[k] for k in KEEP if k in f}
            if "UserId" in out:
                out["UserId"] = out["UserId"].split("(")[0]
            for k in TIMES:
                if k in out:
                    out[k] = self.clock(out[k])
            first = self.subs.get(rec["name"].split("[")[0], {})
            name = rec["name"]
            while name in jobs:
                name += "'"
            jobs[name] = {**first, "job_id": jid, "changes": rec["changes"], "last": out}
        for name, rec in self.subs.items():
            if "refused" in rec:
                jobs[name] = rec
        return {"format": FORMAT, "slurm_version": self.c.version, "scenario": self.scn,
                "minute_phase": round(self.t0 % 60.0, 3), "observed_seconds": self.off(time.time()), "jobs": jobs, "actions": self.actions,
                "tables": self.tables, "events": events, "looks": looks}


def main():
    ap = base.arguments(__doc__)
    ap.add_argument("--base-port", type=int, default=23000, help="first of 2880 ports the clusters may use")
    a = ap.parse_args()
    base.BASE_PORT, base.SLOTS = a.base_port, 48
    base.SLOT_DIR = os.path.join(base.tempfile.gettempdir(), base.PREFIX + f"slots-{a.base_port}")
    os.environ["TZ"] = "UTC"
    time.tzset()
    return base.perform(a, Cluster, Play)


if __name__ == "__main__":
    sys.exit(main())
