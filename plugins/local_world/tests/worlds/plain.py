"""Toy: processes by Popen."""
import os, select, signal, subprocess
from makeway.hookspecs import hookimpl
from makeway.model import JobState
from makeway.worlds.api import Seen, Survey
from makeway.worlds.events import Cleaned, Finished, Kill, Resume, Start, Suspend, Started
from makeway_local_world import submission as subs

class Plain:
    def __init__(self, cluster, settings, state):
        self.clock, self.dir, self.procs, self.news = state.clock, state.directory, {}, []
        self.r, self.w = os.pipe(); os.set_blocking(self.w, False); os.set_blocking(self.r, False)
        self.stopped=set()
    def perform(self, actions, now):
        for a in actions:
            j = a.job.id
            if isinstance(a, Start):
                s = subs.load(self.dir, j)
                out, err = subs.paths(s, subs.Names(job_id=j, incarnation=a.incarnation, array_id=a.job.spec.array_id, array_task=a.job.spec.array_task, name=a.job.spec.name))
                cmd = list(s.command)
                if s.script:
                    p = subs.directory_of(self.dir, j)/"script"; p.write_text(s.script); p.chmod(0o700); cmd=[str(p),*cmd]
                self.procs[j] = (subprocess.Popen(cmd, cwd=s.cwd, env=dict(s.environment), stdout=open(out,"ab"), stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True), a.incarnation)
            elif isinstance(a, Kill):
                if j in self.procs:
                    p,_=self.procs.pop(j); os.killpg(p.pid, signal.SIGKILL); p.wait()
                self.news.append(Cleaned(j, None, a.incarnation))
            elif isinstance(a, Suspend): os.killpg(self.procs[j][0].pid, signal.SIGSTOP); self.stopped.add(j)
            elif isinstance(a, Resume): os.killpg(self.procs[j][0].pid, signal.SIGCONT); self.stopped.discard(j)
    def wait(self, until):
        while True:
            for j,(p,i) in list(self.procs.items()):
                if p.poll() is not None:
                    del self.procs[j]; self.news.append(Finished(j, JobState.COMPLETED if p.returncode==0 else JobState.FAILED, True, i))
            now = self.clock.now()
            if self.news or (until is not None and now >= until): break
            left = 0.05 if until is None else min(0.05, until-now)
            if select.select([self.r],[],[],max(0,left))[0]:
                os.read(self.r, 4096); break
        ev, self.news = self.news, []
        return self.clock.now(), ev
    def survey(self):
        return Survey(at=self.clock.now(), jobs={j: Seen(job_id=j, state=JobState.SUSPENDED if j in self.stopped else JobState.RUNNING, incarnation=i) for j,(p,i) in self.procs.items()})
    def wake(self):
        try: os.write(self.w, b"x")
        except BlockingIOError: pass
@hookimpl
def makeway_world(): return Plain
