import time,collections
from pathlib import Path
from recorded import *; from modes import *
import modes, attrs,sys
from makeway.replay import replay,Options
log=read_log(Path("/work/shared/workloads/xdmod-pozidriv.sacct.gz"))
c=derived_config(log)
import datetime
T0=datetime.datetime(2016,12,30,tzinfo=datetime.UTC).timestamp()-log.start_wall
c=attrs.evolve(c,scheduler=attrs.evolve(c.scheduler,type=sys.argv[2],clockwork=sys.argv[3]))
t=time.time()
o=MODES[sys.argv[1]](log,c,Assumptions(warm_at=T0,longer=None if sys.argv[4]=="limit" else float(sys.argv[4])))
real={l.job.id:l for l in log.losses}
p={l.job.id for l in o.losses}
near=sum(1 for l in o.losses if l.job.id in real and abs(real[l.job.id].at-l.at)<=300)
ds={s:sorted(abs(o.starts[j.id]-j.start) for j in log.started if j.id in o.starts and j.scavenger==s and j.start>=T0) for s in (True,False)}
print(sys.argv,len(o.losses),len(p&real.keys()),near,collections.Counter(l.preemptor for l in o.losses),o.not_placed,{k:(len(v),v[len(v)//2],v[len(v)*9//10]) for k,v in ds.items()},round(time.time()-t,1),flush=True)
